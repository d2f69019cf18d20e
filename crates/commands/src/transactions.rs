//! MULTI, EXEC, DISCARD, WATCH, UNWATCH.
//!
//! EXEC locks the union of its commands' shards and those of the watched keys, so nothing comes
//! between its commands. A command that fails does not undo those before it.

use crate::ctx::{Ctx, DONE, Flow, Outcome};
use crate::dispatch::{fail, note_call, plan_keys};
use crate::error::Refusal;
use crate::handlers;
use crate::node::Node;
use crate::scripting;
use crate::session::{Gate, Session};
use russet_base::{Args, OwnedArgs};
use russet_catalog::Command;
use russet_engine::keyspace::Place;
use russet_engine::store::shard_set::ShardSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A transaction being queued.
#[derive(Debug, Default)]
pub struct Transaction {
    queued: Vec<(Command, OwnedArgs)>,
    queued_bytes: usize,
    /// A command was refused while queueing: EXEC will be, too.
    pub is_doomed: bool,
}

/// Commands that act on the transaction itself, or that Redis runs at once inside one.
pub(crate) fn runs_at_once(command: Command) -> bool {
    matches!(command, Command::Exec | Command::Discard | Command::Quit | Command::Reset)
}

pub(crate) fn queue(session: &mut Session, command: Command, args: Args) {
    let Some(transaction) = &mut session.transaction else {
        return;
    };
    let words = OwnedArgs::from(args);
    transaction.queued_bytes += words.memory_bytes();
    transaction.queued.push((command, words));
    let card = &session.card;
    card.queued.store(transaction.queued.len() as i64, Ordering::Relaxed);
    card.queued_bytes.store(transaction.queued_bytes as u64, Ordering::Relaxed);
}

/// The commands that the transaction under way has queued.
pub(crate) fn queued(session: &Session) -> impl Iterator<Item = (Command, Args<'_>)> {
    let queued = session.transaction.iter().flat_map(|held| &held.queued);
    queued.map(|(command, words)| (*command, words.as_args()))
}

/// The shards of all queued commands and of the watched keys.
pub(crate) fn plan(node: &Node, session: &Session, places: &mut Vec<(usize, Place)>) -> ShardSet {
    let mut shards = ShardSet::EMPTY;
    for (_, key) in &session.watching {
        shards.insert(node.keyspace.place(key).shard as usize);
    }
    for (command, words) in session.transaction.iter().flat_map(|held| &held.queued) {
        plan_keys(node, *command, words.as_args(), &mut shards, places);
        if scripting::is_unknown(node, *command, words.as_args()) {
            // A command before it may load it: then it needs what only its code could tell.
            shards = node.keyspace.all_shards();
        }
    }
    shards
}

/// Ends the transaction under way, watched keys included.
pub(crate) fn discard_state(session: &mut Session) {
    session.transaction = None;
    session.gate.set(Gate::IN_MULTI, false);
    session.card.queued.store(-1, Ordering::Relaxed);
    session.card.queued_bytes.store(0, Ordering::Relaxed);
    unwatch_all(session);
}

fn unwatch_all(session: &mut Session) {
    if !session.watching.is_empty() {
        session.watching.clear();
        session.watch_flag = Arc::default();
        session.card.watching.store(0, Ordering::Relaxed);
    }
}

pub fn multi(ctx: &mut Ctx, _args: Args) -> Outcome {
    ctx.session.transaction = Some(Box::default());
    ctx.session.gate.set(Gate::IN_MULTI, true);
    ctx.session.card.queued.store(0, Ordering::Relaxed);
    ctx.reply.ok();
    DONE
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
        if ctx.session.watching.iter().any(|(of, known)| *of == db && **known == *key) {
            continue;
        }
        // An expired key counts as absent from here on: its later removal is no change.
        let exists = ctx.keys.exists(key);
        let flag = ctx.session.watch_flag.clone();
        ctx.keys.shard_of(key).watched.add(db, key, &flag, exists);
        ctx.session.watching.push((db, key.into()));
    }
    ctx.session.card.watching.store(ctx.session.watching.len() as u32, Ordering::Relaxed);
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
    ctx.reply.array(transaction.queued.len());
    ctx.may_block = false;
    // To others, and to CLIENT INFO among its commands, it is a transaction until it has ended.
    let queued = &ctx.session.card.queued;
    queued.store(transaction.queued.len() as i64, Ordering::Relaxed);
    let mut started = ctx.node.clock.monotonic_micros();
    for (command, words) in &transaction.queued {
        ctx.command = *command;
        started = run_queued(ctx, (*command, words.as_args()), started);
    }
    ctx.command = Command::Exec;
    ctx.session.card.queued.store(-1, Ordering::Relaxed);
    DONE
}

/// Runs one command that begins at `started`; when it ended, which is when the next one begins.
fn run_queued(ctx: &mut Ctx, (command, args): (Command, Args), started: u64) -> u64 {
    let node = ctx.node;
    match handlers::of(command)(ctx, args) {
        Ok(Flow::Done) => {}
        Ok(Flow::Block(_)) => unreachable!("no handler blocks when it may not"),
        Ok(Flow::Replan) => fail(ctx, &Refusal::text("ERR Script was replaced, try again")),
        Err(refusal) => fail(ctx, &refusal),
    }
    let ended = node.clock.monotonic_micros();
    ctx.stats.processed.add(1);
    note_call(node, ctx.stats, ctx.session, (command, args), ended.saturating_sub(started));
    if node.monitors.is_on() {
        node.monitors.feed(node, ctx.session, command, args);
    }
    ended
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
    let mut queued = session.transaction.iter().flat_map(|held| &held.queued);
    command == Command::Exec && queued.any(|(queued, args)| is_such(*queued, args.as_args()))
}
