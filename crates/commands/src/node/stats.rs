//! Counters for INFO. Each worker writes its own block with plain stores; readers add them up.

mod samples;

pub use samples::{Rates, Totals};

use russet_catalog::Command;
use samples::Samples;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, RwLock, RwLockReadGuard};

/// Buckets of a latency histogram: number `n` holds what took up to 2^n microseconds.
pub const HISTOGRAM_BUCKETS: usize = 32;

pub type Histogram = [u64; HISTOGRAM_BUCKETS];

/// A counter with one writer.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    #[inline]
    pub fn add(&self, amount: u64) {
        self.0.store(self.0.load(Ordering::Relaxed).wrapping_add(amount), Ordering::Relaxed);
    }

    pub fn read(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    fn replace(&self, value: u64) -> u64 {
        let before = self.read();
        self.0.store(value, Ordering::Relaxed);
        before
    }

    fn raise_to(&self, value: u64) {
        if self.read() < value {
            self.0.store(value, Ordering::Relaxed);
        }
    }

    pub fn reset(&self) {
        self.0.store(0, Ordering::Relaxed);
    }
}

#[derive(Debug, Default)]
pub struct CommandCounters {
    pub calls: Counter,
    pub micros: Counter,
    pub rejected: Counter,
    pub failed: Counter,
    /// Calls that changed something, while records were gathered.
    pub recorded: Counter,
    pub histogram: [Counter; HISTOGRAM_BUCKETS],
}

impl CommandCounters {
    fn reset(&self) {
        // Of most commands nothing was counted.
        if [&self.calls, &self.rejected, &self.failed].iter().all(|counter| counter.read() == 0) {
            return;
        }
        [&self.calls, &self.micros, &self.rejected, &self.failed, &self.recorded]
            .into_iter()
            .chain(&self.histogram)
            .for_each(Counter::reset);
    }
}

/// One command's figures over all workers.
#[derive(Clone, Copy, Debug)]
pub struct CommandReport {
    pub command: Command,
    pub calls: u64,
    pub micros: u64,
    pub rejected: u64,
    pub failed: u64,
    pub histogram: Histogram,
}

/// Calls that are timed together, in order.
#[derive(Debug, Default)]
pub struct CallCounts {
    runs: Vec<(Command, u64)>,
    calls: u64,
}

impl CallCounts {
    #[inline]
    pub fn add(&mut self, command: Command) {
        self.calls += 1;
        match self.runs.last_mut() {
            Some((last, count)) if *last == command => *count += 1,
            _ => self.runs.push((command, 1)),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.calls == 0
    }

    pub fn calls(&self) -> u64 {
        self.calls
    }

    /// Counts them all as having taken equal shares of the time, and forgets them.
    pub fn finish(&mut self, stats: &WorkerStats, micros: u64) {
        let calls = std::mem::take(&mut self.calls);
        if calls == 1 {
            self.runs.drain(..).for_each(|(command, _)| stats.count_call(command, micros));
            return;
        }
        let Some(share) = micros.checked_div(calls) else { return };
        let mut rest = micros % calls;
        for (command, count) in self.runs.drain(..) {
            let longer = count.min(rest);
            rest -= longer;
            stats.count_calls(command, longer, share + 1);
            stats.count_calls(command, count - longer, share);
        }
    }
}

/// What one worker thread has counted.
#[derive(Debug)]
pub struct WorkerStats {
    /// Workers are counted from 0.
    pub number: usize,
    /// `latency-tracking`: whether histograms are kept.
    is_tracking: Arc<AtomicBool>,
    pub commands: Box<[CommandCounters]>,
    pub processed: Counter,
    pub hits: Counter,
    pub misses: Counter,
    pub dirty: Counter,
    /// Runs of scripts that held only the shards of their keys, and runs that held all.
    pub narrow_runs: Counter,
    pub wide_runs: Counter,
    pub input_bytes: Counter,
    pub output_bytes: Counter,
    pub reads: Counter,
    pub writes: Counter,
    /// Rounds of event loops: all that was ready was served, once.
    pub rounds: Counter,
    pub round_micros: Counter,
    pub round_micros_max: Counter,
    pub round_commands_max: Counter,
    /// What `processed` was when the last round ended.
    processed_before: Counter,
}

impl WorkerStats {
    fn new(number: usize, is_tracking: Arc<AtomicBool>) -> Self {
        WorkerStats {
            number,
            is_tracking,
            commands: (0..Command::COUNT).map(|_| CommandCounters::default()).collect(),
            processed: Counter::default(),
            hits: Counter::default(),
            misses: Counter::default(),
            dirty: Counter::default(),
            narrow_runs: Counter::default(),
            wide_runs: Counter::default(),
            input_bytes: Counter::default(),
            output_bytes: Counter::default(),
            reads: Counter::default(),
            writes: Counter::default(),
            rounds: Counter::default(),
            round_micros: Counter::default(),
            round_micros_max: Counter::default(),
            round_commands_max: Counter::default(),
            processed_before: Counter::default(),
        }
    }

    /// A round of an event loop has ended.
    pub fn count_round(&self, micros: u64) {
        self.rounds.add(1);
        self.round_micros.add(micros);
        self.round_micros_max.raise_to(micros);
        let processed = self.processed.read();
        let before = self.processed_before.replace(processed);
        self.round_commands_max.raise_to(processed.saturating_sub(before));
    }

    pub fn of(&self, command: Command) -> &CommandCounters {
        &self.commands[command as usize]
    }

    #[inline]
    pub fn count_call(&self, command: Command, micros: u64) {
        self.count_calls(command, 1, micros);
    }

    /// Counts calls that took `micros` each.
    #[inline]
    pub fn count_calls(&self, command: Command, calls: u64, micros: u64) {
        if calls == 0 {
            return;
        }
        let counters = &self.commands[command as usize];
        counters.calls.add(calls);
        counters.micros.add(calls * micros);
        if self.is_tracking.load(Ordering::Relaxed) {
            let bits = u64::BITS - micros.saturating_sub(1).leading_zeros();
            counters.histogram[(bits as usize).min(HISTOGRAM_BUCKETS - 1)].add(calls);
        }
    }

    fn reset(&self) {
        self.commands.iter().for_each(CommandCounters::reset);
        let all = [&self.processed, &self.hits, &self.misses, &self.input_bytes];
        all.into_iter()
            .chain([&self.output_bytes, &self.reads, &self.writes])
            .chain([&self.rounds, &self.round_micros, &self.round_micros_max])
            .chain([&self.round_commands_max, &self.processed_before])
            .for_each(Counter::reset);
    }
}

/// All workers' counters, and those that are too rare to have a home in a worker.
#[derive(Debug)]
pub struct Stats {
    workers: RwLock<Vec<Arc<WorkerStats>>>,
    is_tracking: Arc<AtomicBool>,
    pub connections: AtomicU64,
    pub rejected_connections: AtomicU64,
    pub output_limit_disconnections: AtomicU64,
    pub query_limit_disconnections: AtomicU64,
    /// Of TLS: those that were completed, and those that were not.
    pub tls_handshakes: AtomicU64,
    pub tls_handshakes_failed: AtomicU64,
    pub evicted_clients: AtomicU64,
    pub evicted_keys: AtomicU64,
    pub blocked_clients: Arc<AtomicU64>,
    pub memory_peak_bytes: AtomicU64,
    pub memory_peak_seconds: AtomicI64,
    /// What was in use before the first client came.
    pub memory_startup_bytes: AtomicU64,
    pub errors: Mutex<BTreeMap<String, u64>>,
    pub error_replies: AtomicU64,
    /// The shards' counts of expired keys when the statistics were last reset: they are only ever
    /// written by who holds a shard.
    pub expired_before: AtomicU64,
    /// The same for fields of hashes.
    pub expired_fields_before: AtomicU64,
    pub housekeeping_turns: AtomicU64,
    pub housekeeping_micros: AtomicU64,
    /// Shards in which more was due to expire than one visit may remove, when last looked at.
    pub expiry_backlog_shards: AtomicU64,
    samples: Mutex<Samples>,
}

impl Default for Stats {
    fn default() -> Self {
        Stats {
            workers: RwLock::default(),
            is_tracking: Arc::new(AtomicBool::new(true)),
            connections: AtomicU64::new(0),
            rejected_connections: AtomicU64::new(0),
            output_limit_disconnections: AtomicU64::new(0),
            query_limit_disconnections: AtomicU64::new(0),
            tls_handshakes: AtomicU64::new(0),
            tls_handshakes_failed: AtomicU64::new(0),
            evicted_clients: AtomicU64::new(0),
            evicted_keys: AtomicU64::new(0),
            blocked_clients: Arc::default(),
            memory_peak_bytes: AtomicU64::new(0),
            memory_peak_seconds: AtomicI64::new(0),
            memory_startup_bytes: AtomicU64::new(0),
            errors: Mutex::default(),
            error_replies: AtomicU64::new(0),
            expired_before: AtomicU64::new(0),
            expired_fields_before: AtomicU64::new(0),
            housekeeping_turns: AtomicU64::new(0),
            housekeeping_micros: AtomicU64::new(0),
            expiry_backlog_shards: AtomicU64::new(0),
            samples: Mutex::default(),
        }
    }
}

/// With so many different error codes in INFO errorstats, scripts can add no more.
const CUSTOM_KINDS_MAX: usize = 128;
/// Nor can anyone, though only DEBUG ERROR could come so far.
const ERROR_KINDS_MAX: usize = 1024;
/// COMPAT: what codes beyond that are counted under, as in Valkey.
const ERRORS_OVERFLOW: &str = "ERRORSTATS_OVERFLOW";

impl Stats {
    pub fn new_worker(&self) -> Arc<WorkerStats> {
        let mut workers = self.workers.write().unwrap_or_else(|poison| poison.into_inner());
        let worker = Arc::new(WorkerStats::new(workers.len(), self.is_tracking.clone()));
        workers.push(worker.clone());
        worker
    }

    pub fn workers(&self) -> Vec<Arc<WorkerStats>> {
        self.listed().clone()
    }

    fn listed(&self) -> RwLockReadGuard<'_, Vec<Arc<WorkerStats>>> {
        self.workers.read().unwrap_or_else(|poison| poison.into_inner())
    }

    /// `latency-tracking`.
    pub fn set_tracking(&self, is_tracking: bool) {
        self.is_tracking.store(is_tracking, Ordering::Relaxed);
    }

    pub fn is_tracking(&self) -> bool {
        self.is_tracking.load(Ordering::Relaxed)
    }

    /// One figure over all workers.
    pub fn sum(&self, figure: impl Fn(&WorkerStats) -> u64) -> u64 {
        self.listed().iter().map(|worker| figure(worker)).sum()
    }

    /// The figures of one command.
    pub fn report(&self, command: Command) -> CommandReport {
        let mut report = CommandReport {
            command,
            calls: 0,
            micros: 0,
            rejected: 0,
            failed: 0,
            histogram: [0; HISTOGRAM_BUCKETS],
        };
        for worker in self.listed().iter() {
            let counters = worker.of(command);
            report.calls += counters.calls.read();
            report.micros += counters.micros.read();
            report.rejected += counters.rejected.read();
            report.failed += counters.failed.read();
            for (sum, counter) in report.histogram.iter_mut().zip(&counters.histogram) {
                *sum += counter.read();
            }
        }
        report
    }

    /// Takes one sample of what grows; called about ten times in a second.
    pub fn sample(&self, now_micros: u64) {
        let totals = Totals {
            commands: self.sum(|worker| worker.processed.read()),
            input_bytes: self.sum(|worker| worker.input_bytes.read()),
            output_bytes: self.sum(|worker| worker.output_bytes.read()),
            rounds: self.sum(|worker| worker.rounds.read()),
            round_micros: self.sum(|worker| worker.round_micros.read()),
        };
        self.samples().take(now_micros, totals);
    }

    /// How fast things grow, over the last sixteen samples.
    pub fn rates(&self) -> Rates {
        self.samples().rates()
    }

    fn samples(&self) -> MutexGuard<'_, Samples> {
        self.samples.lock().unwrap_or_else(|poison| poison.into_inner())
    }

    /// Counts an error reply by its code, the first word.
    pub fn count_error(&self, text: &str) {
        self.count_up_to(text, ERROR_KINDS_MAX);
    }

    /// The same for an error whose code a script chose.
    pub fn count_custom_error(&self, text: &str) {
        self.count_up_to(text, CUSTOM_KINDS_MAX);
    }

    fn count_up_to(&self, text: &str, kinds_max: usize) {
        self.error_replies.fetch_add(1, Ordering::Relaxed);
        let code = text.split([' ', '\r', '\n']).next().unwrap_or(text);
        let mut errors = self.errors.lock().unwrap_or_else(|poison| poison.into_inner());
        let is_full = errors.len() >= kinds_max && !errors.contains_key(code);
        let code = if is_full { ERRORS_OVERFLOW } else { code };
        match errors.get_mut(code) {
            Some(count) => *count += 1,
            None => drop(errors.insert(code.to_owned(), 1)),
        }
    }

    /// CONFIG RESETSTAT.
    pub fn reset(&self) {
        self.listed().iter().for_each(|worker| worker.reset());
        let rare = [
            &self.connections,
            &self.rejected_connections,
            &self.output_limit_disconnections,
            &self.query_limit_disconnections,
            &self.tls_handshakes,
            &self.tls_handshakes_failed,
            &self.evicted_clients,
            &self.evicted_keys,
            &self.error_replies,
            &self.housekeeping_turns,
            &self.housekeeping_micros,
        ];
        rare.into_iter().for_each(|counter| counter.store(0, Ordering::Relaxed));
        self.errors.lock().unwrap_or_else(|poison| poison.into_inner()).clear();
        *self.samples() = Samples::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_add_up_and_their_records_are_kept() {
        let stats = Stats::default();
        let worker = stats.new_worker();
        for (commands, micros) in [(3, 20), (7, 50), (0, 1)] {
            worker.processed.add(commands);
            worker.count_round(micros);
        }
        assert_eq!((worker.rounds.read(), worker.round_micros.read()), (3, 71));
        assert_eq!((worker.round_micros_max.read(), worker.round_commands_max.read()), (50, 7));
        stats.reset();
        worker.processed.add(2);
        worker.count_round(5);
        assert_eq!((worker.rounds.read(), worker.round_commands_max.read()), (1, 2));
    }
}
