//! The small commands of a pipeline, run together under one taking of locks.
//!
//! Most commands are small and name a key or two. To lock for each alone, and to wait for memory
//! key by key, costs more than the commands themselves. So as many of the next commands as are
//! small are planned, their shards locked and their keys fetched at once; then they run one after
//! the other, each with its own effects. Nothing else changes: to everyone else they are commands
//! that came one after the other, quickly.
//!
//! A command that might take long never runs this way, for it would keep other keys than its own
//! waiting; and a busy shard ends the run before the command that needs it.

mod plan;

use crate::call::client::Hold;
use crate::call::ctx::Ctx;
use crate::call::dispatch::Worker;
use crate::call::invoke::{Origin, invoke, publish_effects};
use crate::call::session::Session;
use crate::call::tally::{Tally, Timing};
use crate::groups::once;
use crate::groups::transactions;
use crate::node::Node;
use crate::node::stats::WorkerStats;
use plan::{ARGS_BYTES_MAX, BatchKeys, Calls, Part, Plan, Planned};
use russet_base::Args;
use russet_catalog::Command;
use russet_catalog::spec::{Flags, Spec};
use russet_engine::keys::{Keys, KnownKey, Weight};
use russet_protocol::{RespWriter, Sink, Wire};
use std::sync::atomic::Ordering;

/// Commands that run together at most. Fetching more keys at once gains nothing: the processor
/// waits for no more lines of memory than this.
pub const BATCH_MAX: usize = 16;
/// As few are taken together when shards are found busy time and again.
const BATCH_MIN: usize = 4;

/// How many commands are taken together. Each holds its shards until the run is over, so the more
/// threads do the same, the fewer are worth it: fewer when a shard is found busy, more when none
/// is.
#[derive(Debug)]
pub(crate) struct BatchWindow(usize);

impl Default for BatchWindow {
    fn default() -> Self {
        BatchWindow(BATCH_MAX)
    }
}

impl BatchWindow {
    fn adjust(&mut self, is_busy: bool) {
        self.0 = match is_busy {
            true => (self.0 - self.0 / 4).max(BATCH_MIN),
            false => (self.0 + 1).min(BATCH_MAX),
        };
    }
}

/// How far a run came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ran {
    pub count: usize,
    /// Behind them a transaction begins that could run with what comes after these commands.
    pub is_cut: bool,
}

impl Worker {
    /// Runs the first of these commands that can run together. None may be: then the first is to be
    /// run alone.
    pub fn run_batch<'a, 'o>(
        &mut self,
        session: &mut Session,
        commands: impl Iterator<Item = Args<'a>> + Clone,
        out: impl Into<Wire<'o>>,
    ) -> Ran {
        let node = &*self.node;
        if !may_batch(node, session) {
            return Ran::default();
        }
        let mut known = BatchKeys::new();
        let mut plan =
            Plan { node, known: &mut known, calls: Calls::new(), is_cut: false, next: None };
        plan.take(commands.take(self.reach.0), session.watching.is_empty());
        let Plan { mut calls, is_cut, next, .. } = plan;
        if calls.len() < 2 {
            session.next_call = calls.first().map(|call| call.looked_up(&known)).or(next);
            return Ran::default();
        }
        let none_yet = node.keyspace.lock_none();
        let mut keys = node.keyspace.keys(none_yet, &mut self.effects, (session.db, self.now));
        keys.know(&known);
        keys.is_silent = session.is_silent;
        let planned = calls.len();
        let may_be_long = hold(&mut keys, &mut calls, &mut self.reach);
        prefetch_once(&mut keys, &calls, &known);
        let notes_requests = node.large_requests.wants(ARGS_BYTES_MAX as u64);
        let writer = RespWriter::new(out, session.resp);
        let (stats, tally) = (&*self.stats, &mut self.tally);
        let mut stage = BatchExecutor { keys, writer, session, node, stats, tally, notes_requests };
        let is_small = |stage: &mut BatchExecutor, call: &Planned| {
            !may_be_long || is_small(&mut stage.keys, call.command.spec(), &known[call.keys()])
        };
        let mut ran = 0;
        while let Some(call) = calls.get(ran) {
            let parts = match call.part {
                Part::Whole => &calls[ran..=ran],
                _ => transaction_of(&calls[ran..]),
            };
            if !parts.iter().all(|part| is_small(&mut stage, part)) {
                break;
            }
            match call.part {
                Part::Whole => stage.run_whole(call),
                _ => stage.run_transaction(parts),
            }
            ran += parts.len();
        }
        stage.keys.publish();
        drop(stage);
        session.next_call = match calls.get(ran) {
            Some(call) => Some(call.looked_up(&known)),
            None => next.filter(|_| calls.len() == planned),
        };
        if let Some(last) = ran.checked_sub(1) {
            let last = calls[last].command;
            session.card.last_command.store(last as u16 + 1, Ordering::Relaxed);
            self.count_run(session, ran as u64);
        }
        Ran { count: ran, is_cut: is_cut && ran == calls.len() }
    }
}

/// The transaction that these begin with, from MULTI to EXEC.
fn transaction_of<'c, 'a>(calls: &'c [Planned<'a>]) -> &'c [Planned<'a>] {
    let exec = calls.iter().position(|call| call.part == Part::Exec);
    &calls[..=exec.expect("a transaction is planned in whole")]
}

/// Where commands run, one after the other.
struct BatchExecutor<'s, 'k> {
    keys: Keys<'k>,
    writer: RespWriter<'s>,
    session: &'s mut Session,
    node: &'s Node,
    stats: &'s WorkerStats,
    tally: &'s mut Tally,
    /// A request may be large enough to be remembered.
    notes_requests: bool,
}

impl<'k> BatchExecutor<'_, 'k> {
    #[inline]
    fn run_whole(&mut self, call: &Planned) {
        let before = self.writer.bytes_len();
        self.keys.skip_to(call.keys().start);
        invoke(&mut self.ctx(call.command), call.args);
        self.finish(call, before);
    }

    /// Answers MULTI and what would be queued, and runs it at EXEC. All shards are held until the
    /// end, so nothing comes between.
    fn run_transaction(&mut self, calls: &[Planned]) {
        let [multi, queued @ .., exec] = calls else { return };
        self.writer.ok();
        self.tally.add(multi.command);
        queued.iter().for_each(|_| self.writer.status("QUEUED"));
        let before = self.writer.bytes_len();
        self.keys.skip_to(multi.keys().start);
        let calls = queued.iter().map(|call| (call.command, call.args, None));
        transactions::run_queued(&mut self.ctx(exec.command), calls);
        self.tally.add(exec.command);
        self.finish(exec, before);
    }

    #[inline]
    fn ctx<'c>(&'c mut self, command: Command) -> Ctx<'c, 'k> {
        Ctx {
            keys: &mut self.keys,
            reply: &mut self.writer,
            session: self.session,
            node: self.node,
            stats: self.stats,
            tally: self.tally,
            timing: Timing::WithBatch,
            origin: Origin::Client,
            command,
            code: None,
            may_block: true,
        }
    }

    /// What follows from a command, or from a whole transaction, whose reply starts at `before`.
    #[inline]
    fn finish(&mut self, call: &Planned, before: usize) {
        let BatchExecutor { keys, writer, session, node, .. } = self;
        if keys.effects.has_listeners() {
            publish_effects(keys, node);
        }
        if self.notes_requests {
            let request_bytes = call.args.extent_bytes() as u64;
            node.large_requests.note(node, session, call.args, request_bytes);
        }
        let reply_bytes = (writer.bytes_len() - before) as u64;
        node.large_replies.note(node, session, call.args, reply_bytes);
    }
}

/// Locks the shards of as many of the commands as can be without waiting, gives up the others, and
/// has the keys fetched. Says whether what they hold may be large.
#[inline]
fn hold(keys: &mut Keys, calls: &mut Calls, reach: &mut BatchWindow) -> bool {
    let is_held = |call: &Planned| keys.hold_known_now(call.keys());
    let held = calls.iter().map(is_held).take_while(|is_held| *is_held).count();
    reach.adjust(held < calls.len());
    if held < calls.len() {
        // A transaction is run in whole or not at all.
        let is_edge = |call: &Planned| matches!(call.part, Part::Multi | Part::Exec);
        let edge = calls[..held].iter().rposition(is_edge);
        let open = edge.filter(|at| calls[*at].part == Part::Multi);
        calls.truncate(open.unwrap_or(held));
    }
    let keys_end = calls.last().map_or(0, |call| call.keys().end);
    keys.prefetch_held(keys_end)
}

/// Fetches what ONCE will look at.
#[inline]
fn prefetch_once(keys: &mut Keys, calls: &[Planned], known: &[KnownKey]) {
    // As a rule all are of this kind, or none is.
    if calls.first().is_some_and(|call| call.command == Command::Once) {
        for call in calls.iter().filter(|call| call.command == Command::Once) {
            once::prefetch(keys, &known[call.keys()]);
        }
    }
}

/// Nothing holds this client's commands back or wants to see each by itself.
fn may_batch(node: &Node, session: &Session) -> bool {
    session.gate.is_open()
        && matches!(session.hold, Hold::None)
        && !node.pause.is_on()
        && !node.monitors.is_on()
        && !node.slowlog.is_precise()
        && !node.latency.is_on()
}

/// Whether a command is sure to be done soon, by what its keys hold.
#[inline]
fn is_small(keys: &mut Keys, spec: &Spec, known: &[KnownKey]) -> bool {
    known.iter().all(|known| match keys.weigh(known.location) {
        Weight::Small => true,
        Weight::Collection => spec.flags.has(Flags::FAST),
        Weight::LongString => false,
    })
}
