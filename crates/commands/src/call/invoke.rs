//! The one way to a handler. However a call arrives, from a client, out of a transaction, a script
//! or ONCE, from a log or from a master, it is checked, run, recorded, counted and shown here. Its
//! shards are locked already.

use crate::call::blocking::{self, BlockedCall};
use crate::call::ctx::{Ctx, Flow, Outcome};
use crate::call::handlers;
use crate::call::session::{Gate, Session};
use crate::call::tally::{Timing, note_call};
use crate::error::Refusal;
use crate::node::Node;
use russet_base::{Args, OwnedArgs};
use russet_catalog::Command;
use russet_catalog::spec::{Flags, Recorded};
use russet_engine::keys::{Effects, Keys};
use russet_protocol::Sink;

/// Who has a call run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    Client,
    /// A transaction: a client sent it before.
    Transaction,
    Script,
    /// A call that waited for keys and is tried again. It was shown when it came.
    Waiter,
    /// ONCE, which is itself counted and shown.
    Once,
    /// A log that is read at start. Nothing stands in its way, nothing is counted or shown.
    Load,
}

/// What became of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Invoked {
    /// The reply is written; it may be an error.
    Done,
    /// Nothing is written: the client waits for keys.
    Blocked,
}

/// Runs a call whose shards are locked.
#[inline]
pub(crate) fn invoke(ctx: &mut Ctx, args: Args) -> Invoked {
    if ctx.timing == Timing::Alone {
        return invoke_alone(ctx, args);
    }
    let invoked = run(ctx, args);
    if invoked == Invoked::Done {
        match ctx.timing {
            Timing::WithBatch => ctx.tally.add(ctx.command),
            _ if ctx.origin == Origin::Load => {}
            _ => ctx.stats.count_call(ctx.command, 0),
        }
    }
    invoked
}

/// Runs a call and times it by itself. One that waits is counted when it is over.
fn invoke_alone(ctx: &mut Ctx, args: Args) -> Invoked {
    let started = ctx.tally.start(ctx.node, ctx.stats);
    let invoked = run(ctx, args);
    if invoked == Invoked::Done {
        let micros = ctx.tally.elapsed_since(ctx.node, started);
        note_call(ctx.node, ctx.stats, ctx.session, (ctx.command, args), micros);
    }
    invoked
}

/// Checks a call, runs its handler, records and shows it.
#[inline(always)]
fn run(ctx: &mut Ctx, args: Args) -> Invoked {
    let invoked = match ctx.keys.is_recording() {
        false => run_handler(ctx, args).0,
        true => run_recorded(ctx, args),
    };
    if ctx.node.monitors.is_on() && ctx.is_shown() {
        ctx.node.monitors.feed(ctx.node, ctx.session, ctx.command, args);
    }
    invoked
}

/// What became of a call, and whether it was refused.
#[inline(always)]
fn run_handler(ctx: &mut Ctx, args: Args) -> (Invoked, bool) {
    if let Some(refusal) = refusal_of(ctx.session, ctx.command) {
        return conclude(ctx, args, Err(refusal));
    }
    match handlers::of(ctx.command)(ctx, args) {
        Ok(Flow::Done) => (Invoked::Done, false),
        other => conclude(ctx, args, other),
    }
}

/// The client waits, or is refused.
#[cold]
fn conclude(ctx: &mut Ctx, args: Args, outcome: Outcome) -> (Invoked, bool) {
    match outcome {
        Ok(Flow::Done) => (Invoked::Done, false),
        Ok(Flow::Block(request)) => {
            blocking::wait(ctx, args, *request);
            (Invoked::Blocked, false)
        }
        Err(refusal) => {
            fail(ctx, &refusal);
            (Invoked::Done, true)
        }
    }
}

fn run_recorded(ctx: &mut Ctx, args: Args) -> Invoked {
    let before = Before::of(ctx.keys.effects);
    let (invoked, is_refused) = run_handler(ctx, args);
    record(ctx, args, (before, is_refused));
    invoked
}

/// What stands in the way of any call, whoever has it run.
#[inline]
pub(crate) fn refusal_of(session: &Session, command: Command) -> Option<Refusal> {
    let must_log_in =
        session.gate.has(Gate::NEEDS_AUTH) && !command.spec().flags.has(Flags::NO_AUTH);
    must_log_in.then_some(Refusal::NoAuth)
}

/// Answers with a refusal, and counts it.
#[cold]
fn fail(ctx: &mut Ctx, refusal: &Refusal) {
    let text = refusal.wire();
    ctx.stats.of(ctx.command).failed.add(1);
    if !matches!(refusal, Refusal::Counted(_)) {
        ctx.node.stats.count_error(&text);
    }
    ctx.reply.error(&text);
}

/// What the effects were before a call.
#[derive(Clone, Copy)]
struct Before {
    dirty: u64,
    records: usize,
}

impl Before {
    fn of(effects: &Effects) -> Self {
        Before { dirty: effects.dirty, records: effects.records.len() }
    }
}

/// Records what a call has changed, unless its handler has done so itself.
fn record(ctx: &mut Ctx, args: Args, (before, is_refused): (Before, bool)) {
    let db = ctx.keys.db;
    let effects = &mut *ctx.keys.effects;
    let has_changed = effects.dirty != before.dirty;
    match ctx.command.spec().recorded {
        Recorded::Verbatim if has_changed => {
            effects.records.push_owned(db, OwnedArgs::from(args));
        }
        Recorded::ReplicasOnly if !is_refused => {
            effects.records.push_for_replicas(db, OwnedArgs::from(args));
        }
        Recorded::Verbatim | Recorded::ReplicasOnly | Recorded::Rewritten | Recorded::Never => {}
    }
    if effects.records.len() > before.records {
        ctx.stats.of(ctx.command).recorded.add(1);
    }
}

/// Serves a client that waits, out of the call that feeds it. What is taken is recorded by the
/// call's own room; the client counts it when it gets the reply.
pub(crate) fn serve(
    call: &dyn BlockedCall,
    keys: &mut Keys,
    reply: &mut dyn Sink,
    key: &[u8],
) -> Result<(), Refusal> {
    call.serve(keys, reply, key)
}

/// What follows from the effects of calls, while their shards are still locked: those who wait are
/// served, records and events passed on, gauges brought up to date.
#[inline]
pub(crate) fn publish_effects(keys: &mut Keys, node: &Node) {
    if !keys.effects.is_published() {
        publish(keys, node);
    }
}

fn publish(keys: &mut Keys, node: &Node) {
    if !keys.effects.ready.is_empty() {
        // The command may have taken long, and what it fed may have expired meanwhile.
        keys.now = node.clock.now();
        blocking::serve_ready(keys);
    }
    keys.publish();
    if !keys.effects.records.is_empty() {
        node.pass_on(&mut keys.effects.records);
    }
    if !keys.effects.notices.is_empty() {
        node.publish_notices(&keys.effects.notices);
        keys.effects.notices.clear();
    }
}
