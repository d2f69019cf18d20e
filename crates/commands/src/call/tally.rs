//! When calls began, and what their time is counted as.
//!
//! Reading the clock costs a good part of what a fast call takes. So fast calls of one batch share
//! the time between two readings; only a call that may take long is timed by itself.

use crate::call::session::Session;
use crate::node::Node;
use crate::node::stats::{CallCounts, WorkerStats};
use russet_base::{Args, UnixMillis};
use russet_catalog::Command;
use russet_catalog::spec::Flags;

/// How the time of a call is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timing {
    /// It has an equal share of its batch's time.
    WithBatch,
    Alone,
    /// It is part of the call that runs it.
    WithCaller,
}

impl Timing {
    /// Of a call that a client sent, or that EXEC runs.
    #[inline]
    pub fn of(node: &Node, command: Command) -> Self {
        if is_timed_with_batch(command) && !is_precise(node) {
            Timing::WithBatch
        } else {
            Timing::Alone
        }
    }
}

/// Whether a command takes so little time that reading the clock twice would be a good part of it.
#[inline]
pub fn is_timed_with_batch(command: Command) -> bool {
    command.spec().flags.has_any(Flags::FAST.or(Flags::SHARES_TIME))
}

/// Somebody wants to know the time of every single call.
#[inline]
pub fn is_precise(node: &Node) -> bool {
    node.slowlog.is_precise() || node.latency.is_on()
}

/// Of fast calls that come one at a time, every how many-th is timed.
const CALLS_PER_SAMPLE: u32 = 16;

/// The last reading of the clock, and the fast calls since.
#[derive(Debug, Default)]
pub struct Tally {
    batch: CallCounts,
    /// What the last call took that was timed as one of many, and how many more count as it did.
    sample_micros: u64,
    sample_calls_left: u32,
    /// The wall clock in microseconds; if it is set back, a batch seems to take no time.
    read_at: u64,
    is_fresh: bool,
}

impl Tally {
    /// Reads the time; after the thread has slept.
    pub fn read_clock(&mut self, node: &Node) {
        self.read_at = node.clock.now_micros().cast_unsigned();
        self.is_fresh = true;
    }

    /// The time of the last reading.
    #[inline]
    pub fn now(&self) -> UnixMillis {
        UnixMillis(self.read_at.cast_signed().div_euclid(1000))
    }

    /// Before the first call of a connection's turn. The turn before ended just now, so the time
    /// that it read will do, unless the thread has slept since.
    #[inline]
    pub fn begin_batch(&mut self, node: &Node) {
        if !self.is_fresh {
            self.read_clock(node);
        }
        self.is_fresh = false;
    }

    /// Counts the time since the last reading as that of the fast calls, in equal shares.
    #[inline]
    pub fn end_batch(&mut self, node: &Node, stats: &WorkerStats) {
        if !self.batch.is_empty() {
            let started = self.read_at;
            self.read_clock(node);
            self.batch.finish(stats, self.read_at.saturating_sub(started));
        }
    }

    /// As [`Tally::end_batch`], for a batch of one call. A second reading would be a good part of
    /// what it takes, so one in many is timed, and counts for those that follow it.
    #[inline]
    pub fn end_call(&mut self, node: &Node, stats: &WorkerStats) {
        if self.batch.is_empty() {
            return;
        }
        if self.sample_calls_left == 0 {
            let started = self.read_at;
            self.read_clock(node);
            self.sample_micros = self.read_at.saturating_sub(started);
            self.sample_calls_left = CALLS_PER_SAMPLE;
        }
        self.sample_calls_left -= 1;
        self.batch.finish(stats, self.sample_micros);
    }

    /// A fast call is over.
    #[inline]
    pub fn add(&mut self, command: Command) {
        self.batch.add(command);
    }

    /// When a call that is timed alone begins: its time is not that of the fast ones before it,
    /// which ended no more than a parsing ago.
    pub fn start(&mut self, node: &Node, stats: &WorkerStats) -> u64 {
        self.end_batch(node, stats);
        self.read_at
    }

    /// Microseconds since a call that is timed alone has begun.
    pub fn elapsed_since(&mut self, node: &Node, started: u64) -> u64 {
        self.read_clock(node);
        self.read_at.saturating_sub(started)
    }
}

/// Counts a call that was timed by itself, and remembers it if it took long.
pub fn note_call(
    node: &Node,
    stats: &WorkerStats,
    session: &Session,
    (command, args): (Command, Args),
    micros: u64,
) {
    stats.count_call(command, micros);
    let flags = command.spec().flags;
    if !flags.has(Flags::SKIP_SLOWLOG) {
        node.slowlog.note(node, session, args, micros);
    }
    let event = if flags.has(Flags::FAST) { "fast-command" } else { "command" };
    node.latency.note(event, micros, || node.clock.now().seconds());
}
