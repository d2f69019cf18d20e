//! When calls began, and what their time is counted as.
//!
//! Reading the clock costs a good part of what a fast call takes. So fast calls of one batch share
//! the time between two readings; only a call that may take long is timed by itself.

use crate::call::hot_keys::{Cost, HotKeySampler};
use crate::call::session::Session;
use crate::groups::scripting::code::runs_code;
use crate::node::Node;
use crate::node::stats::{CallCounts, WorkerStats};
use russet_base::{Args, UnixMillis};
use russet_catalog::Command;
use russet_catalog::spec::Flags;
use russet_engine::keys::Keys;
use std::time::Duration;

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

/// A client whose script had every key to itself for long has to wait for this share of that time
/// before its next call, and no longer than the second.
const BACKOFF_SHARE: u32 = 8;
const BACKOFF_MAX: Duration = Duration::from_millis(10);

/// The last reading of the clock, and the fast calls since.
#[derive(Debug, Default)]
pub struct Tally {
    batch: CallCounts,
    /// What the last call took that was timed as one of many, and how many more count as it did.
    sample_micros: u64,
    sample_calls_left: u32,
    /// The wall clock in microseconds; if it is set back, a batch seems to take no time.
    read_at: u64,
    /// The same in milliseconds.
    now: UnixMillis,
    is_fresh: bool,
    /// The last reading was at the end of a script.
    has_ended_script: bool,
    /// What the last call took that was timed by itself.
    alone_micros: Option<u64>,
    /// For how long scripts have had every key to themselves, since that was asked last.
    wide_micros: u64,
    hot_keys: HotKeySampler,
}

impl Tally {
    /// Reads the time; after the thread has slept.
    pub fn read_clock(&mut self, node: &Node) {
        let micros = node.clock.now_micros();
        self.read_at = micros.cast_unsigned();
        self.now = UnixMillis(micros.div_euclid(1000));
        self.is_fresh = true;
    }

    /// The time of the last reading.
    #[inline]
    pub fn now(&self) -> UnixMillis {
        self.now
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
            self.finish_batch(stats, self.read_at.saturating_sub(started));
        }
        self.flush_hot_keys();
    }

    #[inline]
    fn finish_batch(&mut self, stats: &WorkerStats, micros: u64) {
        if self.hot_keys.has_notes() {
            self.hot_keys.end_batch(micros, self.batch.calls());
        }
        self.batch.finish(stats, micros);
    }

    /// Hands over what was noted for HOTKEYS.
    #[inline]
    fn flush_hot_keys(&mut self) {
        if self.hot_keys.has_notes() {
            self.hot_keys.flush(self.now);
        }
    }

    /// Before a call whose keys are noted by [`Tally::note_keys`].
    pub fn begin_call(&mut self) {
        self.alone_micros = None;
    }

    /// Notes what a call has cost its keys, for HOTKEYS. Bytes of the request and the reply.
    #[inline]
    pub fn note_keys(&mut self, (node, db): (&Node, usize), call: (Command, Args), net_bytes: u64) {
        let cost = Cost { micros: self.alone_micros.take(), net_bytes, db };
        self.hot_keys.note((node, self.now), call, cost);
    }

    /// The same of a call that another client's call has served.
    pub fn note_served_keys(
        &mut self,
        (node, db): (&Node, usize),
        call: (Command, Args),
        reply_bytes: usize,
    ) {
        if node.hot_keys.is_on() {
            let net_bytes = (call.1.bytes_total() + reply_bytes) as u64;
            let cost = Cost { micros: Some(0), net_bytes, db };
            self.hot_keys.note((node, self.now), call, cost);
        }
    }

    /// As [`Tally::end_batch`], for a batch of one call. A second reading would be a good part of
    /// what it takes, so one in many is timed, and counts for those that follow it.
    #[inline]
    pub fn end_call(&mut self, node: &Node, stats: &WorkerStats) {
        if self.batch.is_empty() {
            self.flush_hot_keys();
            return;
        }
        if self.sample_calls_left == 0 {
            let started = self.read_at;
            self.read_clock(node);
            self.sample_micros = self.read_at.saturating_sub(started);
            self.sample_calls_left = CALLS_PER_SAMPLE;
        }
        self.sample_calls_left -= 1;
        self.finish_batch(stats, self.sample_micros);
        self.flush_hot_keys();
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

    /// Microseconds since a call that is timed alone has begun. A script that has just ended has
    /// read the time itself.
    pub fn elapsed_since(&mut self, node: &Node, started: u64, command: Command) -> u64 {
        if !std::mem::take(&mut self.has_ended_script) || !runs_code(command) {
            self.read_clock(node);
        }
        let micros = self.read_at.saturating_sub(started);
        self.alone_micros = Some(micros);
        micros
    }

    /// A script that had every key to itself is over.
    pub fn add_wide(&mut self, micros: u64) {
        self.wide_micros += micros;
    }

    /// How long the client of such scripts has to wait before its next call.
    pub fn take_backoff(&mut self) -> Duration {
        let held = Duration::from_micros(std::mem::take(&mut self.wide_micros));
        (held / BACKOFF_SHARE).min(BACKOFF_MAX)
    }

    /// When a script begins, in microseconds of the wall clock: with its call, as a rule.
    pub fn script_start(&self, node: &Node, timing: Timing) -> u64 {
        match timing {
            Timing::Alone => self.read_at,
            _ => node.clock.now_micros().cast_unsigned(),
        }
    }

    /// What a script took that began then.
    pub fn end_script(&mut self, node: &Node, timing: Timing, started: u64) -> u64 {
        if timing != Timing::Alone {
            return node.clock.now_micros().cast_unsigned().saturating_sub(started);
        }
        self.read_clock(node);
        self.has_ended_script = true;
        self.read_at.saturating_sub(started)
    }
}

/// Counts a call that was timed by itself, and remembers it if it took long. With the keys of a
/// call whose effects are not published yet.
pub fn note_call(
    (node, session): (&Node, &Session),
    stats: &WorkerStats,
    (command, args): (Command, Args),
    micros: u64,
    keys: Option<&mut Keys>,
) {
    stats.count_call(command, micros);
    node.slowlog.note((node, session), (command, args), micros, keys);
    let flags = command.spec().flags;
    let event = if flags.has(Flags::FAST) { "fast-command" } else { "command" };
    node.latency.note(event, micros, || node.clock.now().seconds());
}

/// Remembers a call that has run, if its request or its reply was large.
#[inline]
pub fn note_size(
    asker: (&Node, &Session),
    call: (Command, Args),
    reply_bytes: usize,
    mut keys: Option<&mut Keys>,
) {
    let Node { large_requests, large_replies, .. } = asker.0;
    large_requests.note(asker, call, call.1.extent_bytes() as u64, keys.as_deref_mut());
    large_replies.note(asker, call, reply_bytes as u64, keys);
}

#[cfg(test)]
mod tests {
    use crate::node::Host;
    use crate::node::config::Config;
    use crate::testing::TestServer;
    use russet_base::hash::KeyHasher;
    use russet_base::{ManualClock, UnixMillis};
    use std::sync::Arc;

    /// `redis.log` takes a tenth of a second.
    struct SlowLog(Arc<ManualClock>);

    impl Host for SlowLog {
        fn log_script(&self, _level: u8, _line: &str) {
            self.0.advance_ms(100);
        }
    }

    /// With `slowlog-log-slower-than` below a millisecond, what a script computed between its calls
    /// was counted as the time of the calls: SET was said to have taken what a loop before it had.
    #[test]
    fn the_time_of_a_script_is_not_that_of_its_calls() {
        let clock = Arc::new(ManualClock::at(UnixMillis(1_700_000_000_000)));
        let host = Box::new(SlowLog(clock.clone()));
        let parts = (Config::default(), host as Box<dyn Host>);
        let mut server = TestServer::with_clock(clock, parts, KeyHasher::with_seed(7));
        server.say("CONFIG SET slowlog-log-slower-than 900 latency-monitor-threshold 5");
        let script = "redis.log(3, '') redis.call('set', KEYS[1], '1') redis.log(3, '') \
                      return redis.call('get', KEYS[1])";
        assert_eq!(server.run(&["EVAL", script, "1", "k"]).to_string(), "\"1\"");
        let slow = server.worker.node.slowlog.newest(10);
        let slow: Vec<_> = slow.iter().map(|entry| (&*entry.args[0], entry.cost)).collect();
        assert_eq!(slow, [(&b"EVAL"[..], 200_000)]);
        let stats = server.say("INFO commandstats");
        assert!(stats.contains("cmdstat_set:calls=1,usec=0,"), "{stats}");
        assert!(stats.contains("cmdstat_get:calls=1,usec=0,"), "{stats}");
        assert!(!server.say("LATENCY LATEST").contains("fast-command"));
    }
}
