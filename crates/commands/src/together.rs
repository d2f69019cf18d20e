//! The small commands of a pipeline, run together under one taking of locks.
//!
//! Most commands are small and name a key or two. To lock for each alone, and to wait for memory
//! key by key, costs more than the commands themselves. So as many of the next commands as are
//! small are planned, their shards locked and their keys fetched together; then they run one after
//! the other, each with its own effects. Nothing else changes: to everyone else they are commands
//! that came one after the other, quickly.
//!
//! A command that might take long never runs this way, for it would keep other keys than its own
//! waiting; and a busy shard ends the run before the command that needs it.

mod plan;

use crate::client::Hold;
use crate::ctx::Ctx;
use crate::dispatch::Worker;
use crate::invoke::{Origin, invoke, publish_effects};
use crate::node::Node;
use crate::once;
use crate::session::Session;
use crate::stats::WorkerStats;
use crate::tally::{Tally, Timing};
use crate::transactions;
use plan::{Calls, Part, Plan, Planned, WORDS_BYTES_MAX};
use russet_base::Args;
use russet_catalog::Command;
use russet_catalog::spec::{Flags, Spec};
use russet_engine::keys::{Keys, Weight};
use russet_engine::keyspace::Place;
use russet_protocol::{RespWriter, Sink, Wire};
use std::sync::atomic::Ordering;

/// Commands that run together at most. Fetching more keys at once gains nothing: the processor
/// waits for no more lines of memory than this.
pub const TOGETHER_MAX: usize = 16;
/// As few are taken together when shards are found busy time and again.
const TOGETHER_MIN: usize = 4;

/// How many commands are taken together. Each holds its shards until the run is over, so the more
/// threads do the same, the fewer are worth it: fewer when a shard is found busy, more when none
/// is.
#[derive(Debug)]
pub(crate) struct Reach(usize);

impl Default for Reach {
    fn default() -> Self {
        Reach(TOGETHER_MAX)
    }
}

impl Reach {
    fn adjust(&mut self, is_busy: bool) {
        self.0 = match is_busy {
            true => (self.0 - self.0 / 4).max(TOGETHER_MIN),
            false => (self.0 + 1).min(TOGETHER_MAX),
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
    pub fn run_together<'a, 'o>(
        &mut self,
        session: &mut Session,
        commands: impl Iterator<Item = Args<'a>> + Clone,
        out: impl Into<Wire<'o>>,
    ) -> Ran {
        let node = &*self.node;
        if !may_run_together(node, session) {
            return Ran::default();
        }
        let mut plan = Plan { node, places: &mut self.places, calls: Calls::new(), is_cut: false };
        plan.take(commands.take(self.reach.0), session.watching.is_empty());
        let Plan { mut calls, is_cut, .. } = plan;
        if calls.len() < 2 {
            return Ran::default();
        }
        let none_yet = node.keyspace.lock_none();
        let mut keys = node.keyspace.keys(none_yet, &mut self.effects, (session.db, self.now));
        keys.know(&self.places);
        keys.is_silent = session.is_silent;
        let may_be_long = hold(&mut keys, &mut calls, &mut self.reach);
        prefetch_once(&mut keys, &calls, &self.places);
        let notes_requests = node.large_requests.wants(WORDS_BYTES_MAX as u64);
        let writer = RespWriter::new(out, session.resp);
        let (stats, tally) = (&*self.stats, &mut self.tally);
        let mut stage = Stage { keys, writer, session, node, stats, tally, notes_requests };
        let places = &self.places;
        let is_small = |stage: &mut Stage, call: &Planned| {
            !may_be_long || is_small(&mut stage.keys, call.command.spec(), &places[call.places()])
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
struct Stage<'s, 'k> {
    keys: Keys<'k>,
    writer: RespWriter<'s>,
    session: &'s mut Session,
    node: &'s Node,
    stats: &'s WorkerStats,
    tally: &'s mut Tally,
    /// A request may be large enough to be remembered.
    notes_requests: bool,
}

impl<'k> Stage<'_, 'k> {
    #[inline]
    fn run_whole(&mut self, call: &Planned) {
        let before = self.writer.bytes_len();
        self.keys.skip_to(call.places().start);
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
        self.keys.skip_to(multi.places().start);
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
        let Stage { keys, writer, session, node, .. } = self;
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
fn hold(keys: &mut Keys, calls: &mut Calls, reach: &mut Reach) -> bool {
    let is_held = |call: &Planned| keys.hold_known_now(call.places());
    let held = calls.iter().map(is_held).take_while(|is_held| *is_held).count();
    reach.adjust(held < calls.len());
    if held < calls.len() {
        // A transaction is run in whole or not at all.
        let is_edge = |call: &Planned| matches!(call.part, Part::Multi | Part::Exec);
        let edge = calls[..held].iter().rposition(is_edge);
        let open = edge.filter(|at| calls[*at].part == Part::Multi);
        calls.truncate(open.unwrap_or(held));
    }
    let places_end = calls.last().map_or(0, |call| call.places().end);
    keys.prefetch_held(places_end)
}

/// Fetches what ONCE will look at.
#[inline]
fn prefetch_once(keys: &mut Keys, calls: &[Planned], places: &[(usize, Place)]) {
    // As a rule all are of this kind, or none is.
    if calls.first().is_some_and(|call| call.command == Command::Once) {
        for call in calls.iter().filter(|call| call.command == Command::Once) {
            once::prefetch(keys, &places[call.places()]);
        }
    }
}

/// Nothing holds this client's commands back or wants to see each by itself.
fn may_run_together(node: &Node, session: &Session) -> bool {
    session.gate.is_open()
        && matches!(session.hold, Hold::None)
        && !node.pause.is_on()
        && !node.monitors.is_on()
        && !node.slowlog.is_precise()
        && !node.latency.is_on()
}

/// Whether a command is sure to be done soon, by what its keys hold.
#[inline]
fn is_small(keys: &mut Keys, spec: &Spec, places: &[(usize, Place)]) -> bool {
    places.iter().all(|&(_, place)| match keys.weigh(place) {
        Weight::Small => true,
        Weight::Collection => spec.flags.has(Flags::FAST),
        Weight::LongString => false,
    })
}
