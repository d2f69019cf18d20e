//! The checks that hold a command back before it is planned: authentication, commands that are
//! switched off, transactions, rights, memory, subscribed clients, a load, the log, CLIENT PAUSE.
//! Skipped whole when none applies.
//!
//! COMPAT: which of several refusals a client sees is decided by their order, which is Valkey's
//! (tests/wire/transactions/order.wire).

use crate::call::invoke::{Origin, limit_refusal, login_refusal, shows_figures, walks};
use crate::call::mail::ResumeByMail;
use crate::call::session::{Gate, Session};
use crate::error::Refusal;
use crate::groups::scripting::{code, once, shows_functions};
use crate::groups::server::protected_refusal;
use crate::groups::transactions;
use crate::node::Node;
use crate::node::config::Directive;
use russet_base::Args;
use russet_catalog::Command;
use russet_catalog::spec::Flags;
use russet_engine::barrier::Barrier;
use russet_engine::keys::last_write;
use russet_engine::shard::Shard;
use russet_engine::store::raw::lock::Locked;
use russet_protocol::Sink;
use std::sync::Arc;

pub(crate) enum Verdict {
    Pass,
    /// The reply is written.
    Answered,
    /// Not now: the client is notified when.
    Wait,
    Refuse(Refusal),
}

pub(crate) fn check(
    node: &Node,
    session: &mut Session,
    command: Command,
    args: Args,
    sink: &mut dyn Sink,
) -> Verdict {
    if let Some(refusal) = login_refusal(session, command) {
        return Verdict::Refuse(refusal);
    }
    if let Some(refusal) = protected_refusal(node, session, command) {
        return Verdict::Refuse(refusal);
    }
    let is_queued = session.gate.has(Gate::IN_MULTI)
        && !transactions::runs_at_once(command)
        && !once::wraps_exec(command, args);
    if is_queued && command.spec().flags.has(Flags::NO_MULTI) {
        let name = command.full_name();
        return Verdict::Refuse(Refusal::text(format!(
            "ERR Command '{name}' not allowed inside a transaction"
        )));
    }
    if let Err(refusal) = node.check_client_call(session, (command, args)) {
        return Verdict::Refuse(refusal);
    }
    if session.gate.has(Gate::OUT_OF_MEMORY)
        && let Some(refusal) = limit_refusal(session, (command, args), Origin::Client)
    {
        return Verdict::Refuse(refusal);
    }
    if session.gate.has(Gate::SUBSCRIBED_RESP2) && !is_allowed_when_subscribed(command) {
        let name = command.full_name();
        return Verdict::Refuse(Refusal::text(format!(
            "ERR Can't execute '{name}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / \
             RESET are allowed in this context"
        )));
    }
    if let Some(refusal) = barrier_refusal(node, session, (command, args)) {
        return Verdict::Refuse(refusal);
    }
    if node.pause.holds(node, session, (command, args)) {
        return Verdict::Wait;
    }
    if !is_queued && is_delayed(node, session, (command, args)) {
        return Verdict::Wait;
    }
    if is_queued {
        transactions::queue(node, session, (command, args));
        sink.status("QUEUED");
        return Verdict::Answered;
    }
    Verdict::Pass
}

/// Why the log, or the load of the data, does not let a call run.
fn barrier_refusal(
    node: &Node,
    session: &Session,
    (command, args): (Command, Args),
) -> Option<Refusal> {
    let barriers = node.keyspace.barriers();
    if barriers.are_down() {
        return None;
    }
    if barriers.is_up(Barrier::Loading)
        && (!command.spec().flags.has(Flags::LOADING) || disturbs_load(command, args))
    {
        return Some(Refusal::Loading);
    }
    // COMPAT: PING, too, so that who looks after the server learns of it
    // (node/durability/tests.rs).
    let is_concerned = || command == Command::Ping || writes(node, session, (command, args));
    if barriers.is_up(Barrier::Failed)
        && (is_concerned() || is_message_kept(node, session, (command, args)))
    {
        return Some(Refusal::LogFailed(node.keyspace.journal().failure()));
    }
    (barriers.is_up(Barrier::SaveFailed) && is_concerned()).then_some(Refusal::SaveFailed)
}

/// Whether a call has to wait until the log has caught up. Then a letter will come.
fn is_delayed(node: &Node, session: &Session, call: (Command, Args)) -> bool {
    let barriers = node.keyspace.barriers();
    !barriers.are_down()
        && barriers.delays_writers()
        && (writes(node, session, call) || is_message_kept(node, session, call))
        && node.keyspace.journal().delay(Arc::new(ResumeByMail(session.mailbox.clone())))
}

/// Whether a call, or one of the transaction that it ends, may write.
fn writes(node: &Node, session: &Session, (command, args): (Command, Args)) -> bool {
    may_write(node, command, args)
        || transactions::any_queued(session, command, &|queued, args| may_write(node, queued, args))
}

/// Whether a call publishes a message that would be kept until the log can be written, behind
/// others that are: nobody but the log's limit bounds how many there are.
fn is_message_kept(node: &Node, session: &Session, (command, _): (Command, Args)) -> bool {
    let publishes = |command| matches!(command, Command::Publish | Command::Spublish);
    let journal = node.keyspace.journal();
    journal.is_strict()
        && (publishes(command)
            || transactions::any_queued(session, command, &|queued, _| publishes(queued)))
        && journal.has_deferred()
}

fn may_write(node: &Node, command: Command, args: Args) -> bool {
    command.spec().flags.has(Flags::WRITE) || code::may_write(node, command, args)
}

fn is_allowed_when_subscribed(command: Command) -> bool {
    matches!(
        command,
        Command::Subscribe
            | Command::Unsubscribe
            | Command::Psubscribe
            | Command::Punsubscribe
            | Command::Ssubscribe
            | Command::Sunsubscribe
            | Command::Ping
            | Command::Quit
            | Command::Reset
    )
}

/// Whether what the shards hold may be shown soon: not if it can't be made durable and has to be.
pub(super) fn may_look(node: &Node, locked: &Locked<Shard>, command: Command) -> bool {
    let journal = node.keyspace.journal();
    if !node.keyspace.barriers().is_up(Barrier::Failed) || !journal.is_strict() {
        return true;
    }
    // It will hold other shards, too, or reads counts without any.
    let shows_all = command.spec().flags.has(Flags::READONLY) && walks(command);
    let shows_all = shows_all || shows_figures(command);
    let held = if locked.held().is_empty() { 0 } else { last_write(&node.keyspace, locked) };
    let functions = if shows_functions(command) { node.scripts.changes.last() } else { 0 };
    let shown = if shows_all { journal.offset() } else { held.max(functions) };
    shown <= journal.durable() || helps_when_log_failed(command)
}

/// Shows nothing of the data, and is the way out for who looks after the server.
fn helps_when_log_failed(command: Command) -> bool {
    matches!(command, Command::ConfigSet | Command::Save | Command::Shutdown)
}

/// Whether a call that may run during a load would change the files under it: its directory, its
/// log, or a save of what was loaded so far.
/// DIFFERS: DEBUG RELOAD and DEBUG LOADAOF run; CONFIG SET is refused there, too.
fn disturbs_load(command: Command, args: Args) -> bool {
    let is_of_files = |name: &[u8]| {
        matches!(Directive::named(name), Some(Directive::AppendOnly | Directive::Dir))
    };
    match command {
        Command::ConfigSet => args.from(2).iter().step_by(2).any(is_of_files),
        Command::Debug => args.get(1).is_some_and(|given| {
            ["reload", "loadaof", "populate"]
                .iter()
                .any(|subcommand| given.eq_ignore_ascii_case(subcommand.as_bytes()))
        }),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::TestServer;
    use russet_engine::barrier::Barrier;

    /// `dir` was changed under the load, DEBUG RELOAD saved what there was of the data so far, and
    /// keys of DEBUG POPULATE made the load call its file corrupt.
    #[test]
    fn a_load_keeps_its_files() {
        let mut server = TestServer::new();
        let node = server.worker.node.clone();
        let calls = [
            "CONFIG SET dir .",
            "CONFIG SET hz 10 APPENDONLY no",
            "DEBUG RELOAD",
            "DEBUG LOADAOF",
            "DEBUG POPULATE 1",
        ];
        node.keyspace.barriers().set(Barrier::Loading, true);
        for call in calls {
            assert!(server.say(call).starts_with("-LOADING"), "{call}");
        }
        assert_eq!(server.say("CONFIG SET hz 10"), "+OK");
        node.keyspace.barriers().set(Barrier::Loading, false);
        for call in calls {
            assert!(!server.say(call).starts_with("-LOADING"), "{call}");
        }
    }
}
