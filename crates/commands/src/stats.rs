//! Counters for INFO. Each worker writes its own block with plain stores; readers add them up.

use russet_catalog::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, RwLock};

/// Buckets of a latency histogram: powers of two of microseconds.
pub const HISTOGRAM_BUCKETS: usize = 32;

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
    pub histogram: [Counter; HISTOGRAM_BUCKETS],
}

/// What one worker thread has counted.
#[derive(Debug)]
pub struct WorkerStats {
    pub commands: Box<[CommandCounters]>,
    pub processed: Counter,
    pub hits: Counter,
    pub misses: Counter,
    pub dirty: Counter,
    pub input_bytes: Counter,
    pub output_bytes: Counter,
    pub reads: Counter,
    pub writes: Counter,
}

impl WorkerStats {
    fn new() -> Self {
        WorkerStats {
            commands: (0..Command::COUNT).map(|_| CommandCounters::default()).collect(),
            processed: Counter::default(),
            hits: Counter::default(),
            misses: Counter::default(),
            dirty: Counter::default(),
            input_bytes: Counter::default(),
            output_bytes: Counter::default(),
            reads: Counter::default(),
            writes: Counter::default(),
        }
    }

    pub fn of(&self, command: Command) -> &CommandCounters {
        &self.commands[command as usize]
    }

    #[inline]
    pub fn count_call(&self, command: Command, micros: u64) {
        let counters = &self.commands[command as usize];
        counters.calls.add(1);
        counters.micros.add(micros);
        let bucket = (64 - micros.leading_zeros() as usize).min(HISTOGRAM_BUCKETS - 1);
        counters.histogram[bucket].add(1);
    }

    fn reset(&self) {
        for counters in &self.commands {
            counters.calls.reset();
            counters.micros.reset();
            counters.rejected.reset();
            counters.failed.reset();
            counters.histogram.iter().for_each(Counter::reset);
        }
        let all = [&self.processed, &self.hits, &self.misses, &self.input_bytes];
        all.into_iter()
            .chain([&self.output_bytes, &self.reads, &self.writes])
            .for_each(Counter::reset);
    }
}

/// All workers' counters, and those that are too rare to have a home in a worker.
#[derive(Debug, Default)]
pub struct Stats {
    workers: RwLock<Vec<Arc<WorkerStats>>>,
    pub connections: AtomicU64,
    pub rejected_connections: AtomicU64,
    pub output_limit_disconnections: AtomicU64,
    pub query_limit_disconnections: AtomicU64,
    pub evicted_clients: AtomicU64,
    pub blocked_clients: AtomicU64,
    pub memory_peak_bytes: AtomicU64,
    pub errors: std::sync::Mutex<std::collections::BTreeMap<String, u64>>,
    pub error_replies: AtomicU64,
}

/// Most different error codes that INFO errorstats lists, as in Redis.
const ERROR_KINDS_MAX: usize = 128;

impl Stats {
    pub fn new_worker(&self) -> Arc<WorkerStats> {
        let worker = Arc::new(WorkerStats::new());
        self.workers.write().unwrap_or_else(|poison| poison.into_inner()).push(worker.clone());
        worker
    }

    pub fn workers(&self) -> Vec<Arc<WorkerStats>> {
        self.workers.read().unwrap_or_else(|poison| poison.into_inner()).clone()
    }

    /// One figure over all workers.
    pub fn sum(&self, figure: impl Fn(&WorkerStats) -> u64) -> u64 {
        self.workers().iter().map(|worker| figure(worker)).sum()
    }

    /// Counts an error reply by its code, the first word.
    pub fn count_error(&self, text: &str) {
        self.error_replies.fetch_add(1, Ordering::Relaxed);
        let code = text.split(' ').next().unwrap_or(text);
        let mut errors = self.errors.lock().unwrap_or_else(|poison| poison.into_inner());
        if let Some(count) = errors.get_mut(code) {
            *count += 1;
        } else if errors.len() < ERROR_KINDS_MAX {
            errors.insert(code.to_owned(), 1);
        }
    }

    /// CONFIG RESETSTAT.
    pub fn reset(&self) {
        self.workers().iter().for_each(|worker| worker.reset());
        let rare = [
            &self.connections,
            &self.rejected_connections,
            &self.output_limit_disconnections,
            &self.query_limit_disconnections,
            &self.evicted_clients,
            &self.error_replies,
        ];
        rare.into_iter().for_each(|counter| counter.store(0, Ordering::Relaxed));
        self.errors.lock().unwrap_or_else(|poison| poison.into_inner()).clear();
    }
}
