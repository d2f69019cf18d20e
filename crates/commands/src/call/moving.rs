//! Calls that have to wait for keys on their way to another server: see
//! `groups/generic/migrate.rs`.

use crate::call::mail::ResumeByMail;
use crate::call::session::Session;
use crate::groups::scripting::once;
use crate::groups::transactions;
use crate::node::Node;
use russet_base::Args;
use russet_catalog::spec::Flags;
use russet_catalog::{Command, keys as key_positions};
use russet_engine::barrier::Barrier;
use russet_engine::moving::Marks;
use russet_engine::store::shard_set::ShardSet;
use std::sync::Arc;

/// Transfers that may be under way at once, each with its thread. Further ones wait.
const TRANSFERS_MAX: usize = 64;

/// Whether a call, whose shards are locked, has to give them back and wait; then its client will
/// get a letter.
pub(crate) fn must_wait(
    node: &Node,
    session: &Session,
    call: (Command, Args),
    shards: &ShardSet,
) -> bool {
    // What is marked is its own, if it moves keys itself.
    if !node.keyspace.barriers().is_up(Barrier::Moving) || session.migration.is_some() {
        return false;
    }
    if call.0 == Command::Shutdown && !ends_at_once(call.1) {
        node.migrations.give_up();
    }
    let holds_all = *shards == node.keyspace.all_shards();
    let wake = Arc::new(ResumeByMail(session.mailbox.clone()));
    node.keyspace.moving().delay(wake, |marks| is_blocking(marks, session, call, holds_all))
}

fn is_blocking(
    marks: &Marks,
    session: &Session,
    (command, args): (Command, Args),
    holds_all: bool,
) -> bool {
    if command == Command::Migrate && marks.transfers() >= TRANSFERS_MAX {
        return true;
    }
    // What has arrived elsewhere must not be here when the server starts again.
    if command == Command::Shutdown {
        return !marks.is_empty() && !ends_at_once(args);
    }
    let runs_others = runs_others(command);
    // Which keys it will use can't be told. Those that only read all keys find the marked ones as
    // they are.
    if holds_all && (runs_others || command.spec().flags.has(Flags::WRITE)) {
        return !marks.is_empty();
    }
    if command == Command::Exec || once::wraps_exec(command, args) {
        return transactions::queued(session)
            .any(|(queued, args)| names(marks, None, queued, args));
    }
    // These may use keys of another database than the one that is selected.
    let is_any = runs_others || matches!(command, Command::Copy | Command::Move);
    names(marks, (!is_any).then_some(session.db), command, args)
}

/// Whether SHUTDOWN waits for nothing, or is not about to end the server.
fn ends_at_once(args: Args) -> bool {
    let is_such =
        |arg: &[u8]| [&b"force"[..], b"abort"].iter().any(|it| arg.eq_ignore_ascii_case(it));
    args.iter().any(is_such)
}

fn runs_others(command: Command) -> bool {
    matches!(
        command,
        Command::Exec
            | Command::Once
            | Command::Eval
            | Command::Evalsha
            | Command::EvalRo
            | Command::EvalshaRo
            | Command::Fcall
            | Command::FcallRo
    )
}

/// Whether one of a call's keys is marked.
fn names(marks: &Marks, db: Option<usize>, command: Command, args: Args) -> bool {
    let mut is_any = false;
    // A call without keys, or whose keys can't be found, uses none.
    let _found = key_positions(command, args, &mut |key| {
        is_any |= marks.has(db, args.at(key.index));
    });
    is_any
}
