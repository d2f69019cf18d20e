//! MULTI, EXEC, DISCARD, WATCH, UNWATCH.
//!
//! EXEC locks the union of its commands' shards and those of the watched keys, so nothing comes
//! between its commands. A command that fails does not undo those before it.

use crate::call::ctx::{Ctx, DONE, Outcome};
use crate::call::dispatch::{KnownKeys, plan_keys};
use crate::call::invoke::{Origin, invoke, written};
use crate::call::session::{Gate, Session};
use crate::call::tally::{Timing, is_precise, is_timed_with_batch, note_size};
use crate::error::Refusal;
use crate::groups::scripting;
use crate::groups::scripting::code::{self, Code};
use crate::node::Node;
use crate::node::acl::Context;
use crate::node::config::Directive;
use russet_base::args::Span;
use russet_base::num::parse_i64;
use russet_base::{Args, OwnedArgs};
use russet_catalog::Command;
use russet_engine::store::shard_set::ShardSet;
use russet_protocol::Sink;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Arguments of queued commands that share a buffer; what comes after so many bytes gets another
/// one.
const SHARED_BYTES_MAX: usize = 1 << 20;
/// A transaction that took no more than this is kept for the next one of its client.
const KEPT_BYTES_MAX: usize = 4096;

/// A transaction being queued.
#[derive(Debug, Default)]
pub struct Transaction {
    queued: Vec<Queued>,
    /// The arguments of all queued commands, one after the other, in one buffer if they are few.
    buffers: Vec<OwnedArgs>,
    queued_bytes: usize,
    /// A command was refused while queueing: EXEC will be, too.
    pub is_doomed: bool,
    /// The database that a queued SELECT leads to.
    db: Option<usize>,
    /// A command is not fast.
    has_slow: bool,
    /// A command runs a script or a function.
    runs_code: bool,
    /// A command changes what functions there are.
    changes_functions: bool,
}

/// A command, and where its arguments are.
#[derive(Debug)]
struct Queued {
    command: Command,
    /// What it runs, as EXEC finds it when it is planned.
    code: Option<Code>,
    buffer: u32,
    first: u32,
    len: u32,
}

fn args_of<'t>(buffers: &'t [OwnedArgs], queued: &Queued) -> Args<'t> {
    let all = buffers[queued.buffer as usize].as_args();
    all.from(queued.first as usize).first(queued.len as usize)
}

impl Transaction {
    fn push(&mut self, command: Command, args: Args) {
        let is_full = |buffer: &OwnedArgs| buffer.memory_bytes() > SHARED_BYTES_MAX;
        if self.buffers.last().is_none_or(is_full) {
            self.buffers.push(OwnedArgs::default());
        }
        let buffer_at = self.buffers.len() as u32 - 1;
        let Some(buffer) = self.buffers.last_mut() else { return };
        let (first, len) = (buffer.as_args().len() as u32, args.len() as u32);
        buffer.extend(args);
        self.queued.push(Queued { command, code: None, buffer: buffer_at, first, len });
        self.has_slow |= !is_timed_with_batch(command);
        self.runs_code |= code::runs_code(command);
        self.changes_functions |= scripting::changes_functions(command);
        self.queued_bytes += args.bytes_total() + args.len() * size_of::<Span>();
    }

    fn commands(&self) -> impl ExactSizeIterator<Item = (Command, Args<'_>)> {
        self.queued.iter().map(|queued| (queued.command, args_of(&self.buffers, queued)))
    }

    /// Finds the code that its commands run, as it is now: another client may replace it while
    /// the transaction runs. False if it can't be known yet, for a command may load or replace what
    /// a later one runs.
    fn find_code(&mut self, (node, worker): (&Node, usize)) -> bool {
        if !self.runs_code {
            return true;
        }
        if self.changes_functions {
            return false;
        }
        let libraries = Arc::clone(&node.scripts.libraries());
        let mut is_known = true;
        for queued in self.queued.iter_mut().filter(|queued| code::runs_code(queued.command)) {
            let args = args_of(&self.buffers, queued);
            queued.code = code::find_in(&libraries, (node, worker), queued.command, args);
            is_known &= queued.code.is_some();
        }
        is_known
    }

    /// Forgets everything, and keeps its room if that is not too much.
    fn emptied(mut self: Box<Self>) -> Option<Box<Self>> {
        let room: usize = self.buffers.iter().map(OwnedArgs::memory_bytes).sum();
        if room + self.queued.capacity() * size_of::<Queued>() > KEPT_BYTES_MAX {
            return None;
        }
        self.queued.clear();
        self.buffers.iter_mut().for_each(OwnedArgs::clear);
        let queued = std::mem::take(&mut self.queued);
        let buffers = std::mem::take(&mut self.buffers);
        *self = Transaction { queued, buffers, ..Transaction::default() };
        Some(self)
    }
}

/// Commands that act on the transaction itself, or that Redis runs at once inside one.
pub(crate) fn runs_at_once(command: Command) -> bool {
    matches!(command, Command::Exec | Command::Discard | Command::Quit | Command::Reset)
}

pub(crate) fn queue(node: &Node, session: &mut Session, (command, args): (Command, Args)) {
    let Some(transaction) = &mut session.transaction else {
        return;
    };
    transaction.push(command, args);
    if command == Command::Select
        && let Some(db) = database_of(node, args.at(1))
    {
        transaction.db = Some(db);
    }
    let card = &session.card;
    card.queued.store(transaction.queued.len() as i64, Ordering::Relaxed);
    card.queued_bytes.store(transaction.queued_bytes as u64, Ordering::Relaxed);
    card.mark_uncounted();
}

/// The database that SELECT would lead to.
fn database_of(node: &Node, index: &[u8]) -> Option<usize> {
    let index = parse_i64(index).filter(|index| *index < node.config.int(Directive::Databases));
    index.and_then(|index| usize::try_from(index).ok())
}

/// The database that the next command will work on: one that is queued comes behind those before
/// it, unless none of them will run.
pub(crate) fn db(session: &Session) -> usize {
    let transaction = session.transaction.as_ref().filter(|transaction| !transaction.is_doomed);
    transaction.and_then(|transaction| transaction.db).unwrap_or(session.db)
}

/// The commands that the transaction under way has queued.
pub(crate) fn queued(session: &Session) -> impl Iterator<Item = (Command, Args<'_>)> {
    session.transaction.iter().flat_map(|held| held.commands())
}

/// The shards of all queued commands and of the watched keys.
pub(crate) fn plan(asker: (&Node, usize), session: &mut Session) -> ShardSet {
    let keyspace = &asker.0.keyspace;
    let Some(transaction) = &mut session.transaction else { return ShardSet::EMPTY };
    if !transaction.find_code(asker) {
        return keyspace.all_shards();
    }
    let mut shards = ShardSet::EMPTY;
    for (_, key) in &session.watching {
        shards.insert(keyspace.locate(key).shard as usize);
    }
    for queued in &transaction.queued {
        let call = (queued.command, args_of(&transaction.buffers, queued));
        plan_keys(asker.0, call, queued.code.as_ref(), (&mut shards, &mut KnownKeys::new()));
    }
    shards
}

/// Ends the transaction under way, watched keys included.
pub(crate) fn discard_state(session: &mut Session) {
    if let Some(transaction) = session.transaction.take() {
        session.spare_transaction = transaction.emptied();
    }
    session.gate.set(Gate::IN_MULTI, false);
    session.card.queued.store(-1, Ordering::Relaxed);
    session.card.queued_bytes.store(0, Ordering::Relaxed);
    session.card.mark_uncounted();
    unwatch_all(session);
}

fn unwatch_all(session: &mut Session) {
    if !session.watching.is_empty() {
        session.watching = Default::default();
        session.watch_flag = Arc::default();
        session.card.watching.store(0, Ordering::Relaxed);
        session.card.watched_bytes.store(0, Ordering::Relaxed);
        session.card.mark_uncounted();
    }
}

pub fn multi(ctx: &mut Ctx, _args: Args) -> Outcome {
    begin(ctx.session, ctx.reply);
    DONE
}

/// What MULTI does: it needs neither keys nor locks.
pub(crate) fn begin(session: &mut Session, reply: &mut dyn Sink) {
    let spare = session.spare_transaction.take();
    session.transaction = Some(spare.unwrap_or_default());
    session.gate.set(Gate::IN_MULTI, true);
    session.card.queued.store(0, Ordering::Relaxed);
    reply.ok();
}

/// How a call is timed. EXEC of the transaction under way: with its batch if all its commands are.
#[inline]
pub(crate) fn timing(node: &Node, session: &Session, command: Command) -> Timing {
    if command != Command::Exec {
        return Timing::of(node, command);
    }
    let has_slow = session.transaction.as_ref().is_some_and(|transaction| transaction.has_slow);
    if has_slow || is_precise(node) { Timing::Alone } else { Timing::WithBatch }
}

pub fn discard(ctx: &mut Ctx, _args: Args) -> Outcome {
    if ctx.session.transaction.is_none() {
        return Err(Refusal::text("ERR DISCARD without MULTI"));
    }
    discard_state(ctx.session);
    ctx.reply.ok();
    DONE
}

pub fn watch(ctx: &mut Ctx, args: Args) -> Outcome {
    let db = ctx.keys.db;
    for key in args.from(1).iter() {
        if !ctx.session.watching.insert((db, key.into())) {
            continue;
        }
        ctx.session.card.watched_bytes.fetch_add(key.len() as u64, Ordering::Relaxed);
        // An expired key counts as absent from here on: its later removal is no change. Where no
        // key has a deadline none can be expired, and a change comes before any deadline.
        let exists = ctx.keys.none_expires(key) || ctx.keys.exists(key);
        ctx.keys.shard_of(key).watched.add(db, key, &ctx.session.watch_flag, exists);
    }
    ctx.session.card.watching.store(ctx.session.watching.len() as u32, Ordering::Relaxed);
    ctx.session.card.mark_uncounted();
    ctx.reply.ok();
    DONE
}

pub fn unwatch(ctx: &mut Ctx, _args: Args) -> Outcome {
    unwatch_all(ctx.session);
    ctx.reply.ok();
    DONE
}

pub fn exec(ctx: &mut Ctx, _args: Args) -> Outcome {
    let Some(transaction) = ctx.session.transaction.take() else {
        return Err(Refusal::text("ERR EXEC without MULTI"));
    };
    let is_touched = is_touched(ctx);
    discard_state(ctx.session);
    if transaction.is_doomed {
        return Err(Refusal::text("EXECABORT Transaction discarded because of previous errors."));
    }
    if is_touched {
        ctx.reply.null_array();
        return DONE;
    }
    // To others, and to CLIENT INFO among its commands, it is a transaction until it has ended.
    let queued = &ctx.session.card.queued;
    queued.store(transaction.queued.len() as i64, Ordering::Relaxed);
    let calls = transaction.queued.iter().map(|queued| {
        (queued.command, args_of(&transaction.buffers, queued), queued.code.as_ref())
    });
    run_queued(ctx, calls);
    // In a batch they are counted with the other commands.
    ctx.session.count_run(ctx.stats, transaction.queued.len() as u64);
    ctx.session.card.queued.store(-1, Ordering::Relaxed);
    ctx.session.spare_transaction = transaction.emptied();
    DONE
}

/// Runs the commands of a transaction one after the other, and answers with all their replies.
pub(crate) fn run_queued<'a>(
    ctx: &mut Ctx,
    calls: impl ExactSizeIterator<Item = (Command, Args<'a>, Option<&'a Code>)>,
) {
    ctx.reply.array(calls.len());
    let is_timed_with_batch = ctx.timing == Timing::WithBatch;
    let mut inner = Ctx {
        keys: ctx.keys,
        reply: ctx.reply,
        session: ctx.session,
        node: ctx.node,
        stats: ctx.stats,
        tally: ctx.tally,
        timing: ctx.timing,
        origin: Origin::Transaction,
        command: ctx.command,
        code: None,
        may_block: false,
    };
    for (command, args, code) in calls {
        (inner.command, inner.code) = (command, code);
        if !is_timed_with_batch {
            inner.timing = Timing::of(inner.node, command);
        }
        // Rules may have been changed since it was queued, or by what ran before it.
        inner.session.refresh_rights(&inner.node.acl);
        if let Err(refusal) = check_rights(&inner, args) {
            inner.stats.of(command).rejected.add(1);
            inner.node.stats.count_error(&refusal);
            inner.reply.error(&refusal);
            continue;
        }
        let before = written(&mut inner);
        let notes_keys = inner.node.hot_keys.is_on();
        if notes_keys {
            inner.tally.begin_call();
        }
        invoke(&mut inner, &args);
        let reply_bytes = written(&mut inner).saturating_sub(before);
        // DIFFERS: its request counts, too: Valkey forgets how large it was when it came.
        let asker = (inner.node, &*inner.session);
        note_size(asker, (command, args), reply_bytes, Some(inner.keys));
        // For HOTKEYS: EXEC itself has no keys.
        if notes_keys {
            let net_bytes = (args.bytes_total() + reply_bytes) as u64;
            let asker = (inner.node, inner.session.db);
            inner.tally.note_keys(asker, (command, args), net_bytes);
        }
    }
}

fn check_rights(ctx: &Ctx, args: Args) -> Result<(), String> {
    let checked = ctx.node.check_rights(ctx.session, (ctx.command, args), Context::Multi);
    checked.map_err(|(denial, _)| {
        let reason = denial.reason.at_exec();
        format!(
            "NOPERM ACLs rules changed between the moment the transaction was accumulated and the \
             EXEC call. This command is no longer allowed for the following reason: {reason}"
        )
    })
}

/// Whether a watched key was changed, or is gone because its time was over.
fn is_touched(ctx: &mut Ctx) -> bool {
    let watching = std::mem::take(&mut ctx.session.watching);
    for (db, key) in &watching {
        ctx.keys.in_db(*db, |keys| keys.exists(key));
    }
    ctx.session.watching = watching;
    ctx.session.watch_flag.is_touched()
}

/// Whether the call is EXEC of a transaction in which some command is such.
pub(crate) fn any_queued(
    session: &Session,
    command: Command,
    is_such: &dyn Fn(Command, Args) -> bool,
) -> bool {
    let mut calls = session.transaction.iter().flat_map(|held| held.commands());
    command == Command::Exec && calls.any(|(queued, args)| is_such(queued, args))
}

#[cfg(test)]
mod tests {
    use crate::testing::{TestClient, TestServer};
    use std::sync::atomic::Ordering;

    /// Each watched key was compared with all that were watched before: 90,000 of them held every
    /// shard for ten seconds. With that, this test would not end.
    #[test]
    fn many_keys_can_be_watched_by_one_call() {
        const KEYS: usize = 300_000;
        let mut server = TestServer::new();
        let keys: Vec<String> = (0..KEYS).map(|at| format!("k{at}")).collect();
        let args = || std::iter::once("WATCH").chain(keys.iter().map(String::as_str));
        let call: Vec<&str> = args().chain(args().skip(1)).collect();
        assert_eq!(server.run(&call).to_string(), "+OK");
        assert_eq!(server.session.card.watching.load(Ordering::Relaxed), KEYS as u32);
        server.say("MULTI");
        server.say("PING");
        TestClient::of(&server).says(&mut server, "SET k299999 x");
        assert_eq!(server.say("EXEC"), "nil-array");
        assert_eq!(server.session.card.watching.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_key_is_watched_in_its_own_database_however_often_it_is_named() {
        let mut server = TestServer::new();
        for line in ["WATCH k k", "SELECT 1", "WATCH k", "MULTI", "PING"] {
            server.say(line);
        }
        assert_eq!(server.session.watching.len(), 2);
        assert_eq!(TestClient::of(&server).says(&mut server, "SET k x"), ["+OK"]);
        assert_eq!(server.say("EXEC"), "nil-array");
        for line in ["WATCH k k", "MULTI", "PING"] {
            server.say(line);
        }
        assert_eq!(TestClient::of(&server).says(&mut server, "SET k y"), ["+OK"]);
        assert_eq!(server.say("EXEC"), "[+PONG]");
    }
}
