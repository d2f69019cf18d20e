//! MULTI, EXEC, DISCARD, WATCH, UNWATCH.
//!
//! EXEC locks the union of its commands' shards and those of the watched keys, so nothing comes
//! between its commands. A command that fails does not undo those before it.

use crate::ctx::{Ctx, DONE, Flow, Outcome};
use crate::dispatch::{fail, is_timed_with_batch, note_call, plan_keys};
use crate::error::Refusal;
use crate::handlers;
use crate::node::Node;
use crate::scripting::{self, function::Libraries};
use crate::session::{Gate, Session};
use russet_base::args::Span;
use russet_base::{Args, OwnedArgs};
use russet_catalog::Command;
use russet_engine::keyspace::Place;
use russet_engine::store::shard_set::ShardSet;
use russet_protocol::Sink;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Words of queued commands that share a buffer; what comes after so many bytes gets another one.
const SHARED_BYTES_MAX: usize = 1 << 20;
/// A transaction that took no more than this is kept for the next one of its client.
const KEPT_BYTES_MAX: usize = 4096;

/// A transaction being queued.
#[derive(Debug, Default)]
pub struct Transaction {
    queued: Vec<Queued>,
    /// The words of all queued commands, one after the other, in one buffer if they are few.
    words: Vec<OwnedArgs>,
    queued_bytes: usize,
    /// A command was refused while queueing: EXEC will be, too.
    pub is_doomed: bool,
    /// A command is not fast.
    has_slow: bool,
    /// A command calls a function.
    calls_function: bool,
    /// A command changes what functions there are.
    changes_functions: bool,
}

/// A command, and where its words are.
#[derive(Clone, Copy, Debug)]
struct Queued {
    command: Command,
    buffer: u32,
    first: u32,
    len: u32,
}

impl Transaction {
    fn push(&mut self, command: Command, args: Args) {
        let is_full = |words: &OwnedArgs| words.memory_bytes() > SHARED_BYTES_MAX;
        if self.words.last().is_none_or(is_full) {
            self.words.push(OwnedArgs::default());
        }
        let buffer = self.words.len() as u32 - 1;
        let Some(words) = self.words.last_mut() else { return };
        let (first, len) = (words.as_args().len() as u32, args.len() as u32);
        words.extend(args);
        self.queued.push(Queued { command, buffer, first, len });
        self.has_slow |= !is_timed_with_batch(command);
        self.calls_function |= scripting::calls_function(command);
        self.changes_functions |= scripting::changes_functions(command);
        self.queued_bytes += args.bytes_total() + args.len() * size_of::<Span>();
    }

    fn commands(&self) -> impl Iterator<Item = (Command, Args<'_>)> {
        self.queued.iter().map(|queued| {
            let words = self.words[queued.buffer as usize].as_args();
            (queued.command, words.from(queued.first as usize).first(queued.len as usize))
        })
    }

    /// Whether a function that it calls may be one that it has loaded, or replaced.
    fn may_change_own_functions(&self) -> bool {
        self.calls_function && self.changes_functions
    }

    /// Forgets everything, and keeps its room if that is not too much.
    fn emptied(mut self: Box<Self>) -> Option<Box<Self>> {
        let room: usize = self.words.iter().map(OwnedArgs::memory_bytes).sum();
        if room + self.queued.capacity() * size_of::<Queued>() > KEPT_BYTES_MAX {
            return None;
        }
        self.queued.clear();
        self.words.iter_mut().for_each(OwnedArgs::clear);
        let (queued, words) = (std::mem::take(&mut self.queued), std::mem::take(&mut self.words));
        *self = Transaction { queued, words, ..Transaction::default() };
        Some(self)
    }
}

/// Commands that act on the transaction itself, or that Redis runs at once inside one.
pub(crate) fn runs_at_once(command: Command) -> bool {
    matches!(command, Command::Exec | Command::Discard | Command::Quit | Command::Reset)
}

pub(crate) fn queue(session: &mut Session, command: Command, args: Args) {
    let Some(transaction) = &mut session.transaction else {
        return;
    };
    transaction.push(command, args);
    let card = &session.card;
    card.queued.store(transaction.queued.len() as i64, Ordering::Relaxed);
    card.queued_bytes.store(transaction.queued_bytes as u64, Ordering::Relaxed);
    card.mark_uncounted();
}

/// The commands that the transaction under way has queued.
pub(crate) fn queued(session: &Session) -> impl Iterator<Item = (Command, Args<'_>)> {
    session.transaction.iter().flat_map(|held| held.commands())
}

/// The shards of all queued commands and of the watched keys.
pub(crate) fn plan(
    (node, worker): (&Node, usize),
    session: &Session,
    places: &mut Vec<(usize, Place)>,
) -> ShardSet {
    let mut shards = ShardSet::EMPTY;
    for (_, key) in &session.watching {
        shards.insert(node.keyspace.place(key).shard as usize);
    }
    for (command, args) in queued(session) {
        plan_keys((node, worker), command, args, &mut shards, places);
        if scripting::is_unknown(node, command, args) {
            // A command before it may load it: then it needs what only its code could tell.
            shards = node.keyspace.all_shards();
        }
    }
    if session.transaction.as_ref().is_some_and(|held| held.may_change_own_functions()) {
        // What code they will run can't be told before.
        shards = node.keyspace.all_shards();
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

/// Whether the transaction under way has only fast commands, which are timed with their batch.
pub(crate) fn is_fast(session: &Session) -> bool {
    session.transaction.as_ref().is_none_or(|transaction| !transaction.has_slow)
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
        // An expired key counts as absent from here on: its later removal is no change.
        let exists = ctx.keys.exists(key);
        let flag = ctx.session.watch_flag.clone();
        ctx.keys.shard_of(key).watched.add(db, key, &flag, exists);
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
    let functions = functions_at_start(ctx);
    if functions.as_ref().is_some_and(|functions| needs_more_shards(ctx, functions)) {
        return Ok(Flow::Replan);
    }
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
    ctx.reply.array(transaction.queued.len());
    ctx.may_block = false;
    // To others, and to CLIENT INFO among its commands, it is a transaction until it has ended.
    let queued = &ctx.session.card.queued;
    queued.store(transaction.queued.len() as i64, Ordering::Relaxed);
    ctx.session.libraries = functions;
    run_all(ctx, &transaction);
    ctx.session.libraries = None;
    ctx.command = Command::Exec;
    ctx.session.card.queued.store(-1, Ordering::Relaxed);
    ctx.session.spare_transaction = transaction.emptied();
    DONE
}

/// The functions that a transaction calls, unless it changes them itself. It calls them as they are
/// when it begins: another client may replace them while it runs, and with that what they need.
fn functions_at_start(ctx: &Ctx) -> Option<Arc<Libraries>> {
    let transaction = ctx.session.transaction.as_ref()?;
    let is_fixed = transaction.calls_function && !transaction.changes_functions;
    is_fixed.then(|| Arc::clone(&ctx.node.scripts.libraries()))
}

/// Whether a function was replaced since the shards were chosen, and now needs all of them.
fn needs_more_shards(ctx: &Ctx, functions: &Libraries) -> bool {
    let is_wide = |(command, args): (Command, Args)| {
        scripting::calls_function(command) && functions.is_wide(args.at(1))
    };
    !ctx.keys.holds_all() && queued(ctx.session).any(is_wide)
}

/// Runs the commands one after the other. Fast ones share the time until the next slow one, or that
/// of the batch if there is none.
fn run_all(ctx: &mut Ctx, transaction: &Transaction) {
    let (node, stats) = (ctx.node, ctx.stats);
    let is_precise = node.slowlog.is_precise() || node.latency.is_on();
    let is_timed = is_precise || transaction.has_slow;
    let mut counts = std::mem::take(&mut ctx.session.uncounted);
    let mut since = if is_timed { node.clock.monotonic_micros() } else { 0 };
    let mut lap = || {
        let started = std::mem::replace(&mut since, node.clock.monotonic_micros());
        since.saturating_sub(started)
    };
    for (command, args) in transaction.commands() {
        ctx.command = command;
        let is_fast = !is_precise && is_timed_with_batch(command);
        if !is_fast && !counts.is_empty() {
            counts.settle(stats, lap());
        }
        match handlers::of(command)(ctx, args) {
            Ok(Flow::Done) => {}
            Ok(Flow::Block(_)) => unreachable!("no handler blocks when it may not"),
            Ok(Flow::Replan) => fail(ctx, &Refusal::text("ERR Script was replaced, try again")),
            Err(refusal) => fail(ctx, &refusal),
        }
        match is_fast {
            true => counts.add(command),
            false => note_call(node, stats, ctx.session, (command, args), lap()),
        }
        if node.monitors.is_on() {
            node.monitors.feed(node, ctx.session, command, args);
        }
    }
    stats.processed.add(transaction.queued.len() as u64);
    if is_timed && !counts.is_empty() {
        counts.settle(stats, lap());
    }
    ctx.session.uncounted = counts;
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
    use crate::testing::{Desk, Guest};
    use std::sync::atomic::Ordering;

    /// Each watched key was compared with all that were watched before: 90,000 of them held every
    /// shard for ten seconds. With that, this test would not end.
    #[test]
    fn many_keys_can_be_watched_by_one_call() {
        const KEYS: usize = 300_000;
        let mut desk = Desk::new();
        let words: Vec<String> = (0..KEYS).map(|at| format!("k{at}")).collect();
        let words = || std::iter::once("WATCH").chain(words.iter().map(String::as_str));
        let call: Vec<&str> = words().chain(words().skip(1)).collect();
        assert_eq!(desk.run(&call).to_string(), "+OK");
        assert_eq!(desk.session.card.watching.load(Ordering::Relaxed), KEYS as u32);
        desk.say("MULTI");
        desk.say("PING");
        Guest::of(&desk).says(&mut desk, "SET k299999 x");
        assert_eq!(desk.say("EXEC"), "nil-array");
        assert_eq!(desk.session.card.watching.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_key_is_watched_in_its_own_database_however_often_it_is_named() {
        let mut desk = Desk::new();
        for line in ["WATCH k k", "SELECT 1", "WATCH k", "MULTI", "PING"] {
            desk.say(line);
        }
        assert_eq!(desk.session.watching.len(), 2);
        assert_eq!(Guest::of(&desk).says(&mut desk, "SET k x"), ["+OK"]);
        assert_eq!(desk.say("EXEC"), "nil-array");
        for line in ["WATCH k k", "MULTI", "PING"] {
            desk.say(line);
        }
        assert_eq!(Guest::of(&desk).says(&mut desk, "SET k y"), ["+OK"]);
        assert_eq!(desk.say("EXEC"), "[+PONG]");
    }
}
