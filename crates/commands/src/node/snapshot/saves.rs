//! What is known of files that were written and read, and of the snapshot that is being taken.

use super::awaited::{AwaitedSave, Awaiting};
use russet_base::UnixMillis;
use russet_engine::snapshot::Snapshot;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::Instant;

/// What a snapshot is taken for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// BGSAVE, or a save point.
    Save,
    /// The base of a log.
    Rewrite,
}

/// A snapshot that is being taken.
pub(super) struct Running {
    pub purpose: Purpose,
    pub started: Instant,
    /// None while one that was cancelled before is not over.
    pub snapshot: Option<Arc<Snapshot>>,
    pub keys_saved: Arc<AtomicU64>,
    /// SAVE, or an end: nobody else may cancel it.
    pub is_awaited: bool,
    /// It is told from those before and after it by this.
    pub number: u64,
}

pub struct Saves {
    /// When the data was last saved; the start counts.
    pub(super) last_ms: AtomicI64,
    pub(super) count: AtomicU64,
    pub(super) is_last_good: AtomicBool,
    /// Changes that were counted before.
    pub(super) dirty_before: AtomicU64,
    pub(super) keys_loaded: AtomicU64,
    pub(super) keys_expired: AtomicU64,
    /// SHUTDOWN has saved, or was told not to.
    pub(super) is_end_decided: AtomicBool,
    running: Mutex<Option<Running>>,
    /// BGSAVE is to begin as soon as it can.
    pub(super) is_scheduled: AtomicBool,
    /// When it was last begun in the background.
    pub(super) last_try_ms: AtomicI64,
    /// How long the last one in the background took; below 0 before the first.
    pub(super) last_seconds_taken: AtomicI64,
    pub(super) last_copies_bytes: AtomicU64,
    threads: Mutex<Vec<JoinHandle<()>>>,
    /// Those who wait for the next save.
    awaiting: Mutex<Awaiting>,
    /// The save of an end that is under way.
    ending: Mutex<Option<Arc<AwaitedSave>>>,
    /// All data was saved for the end.
    pub(super) is_end_saved: AtomicBool,
    numbers: AtomicU64,
    /// DEBUG SET-SKIP-CHECKSUM-VALIDATION: sums of payloads and files are not looked at.
    pub(crate) skips_sums: AtomicBool,
}

/// What INFO shows of a snapshot that is being taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SnapshotFigures {
    pub is_save: bool,
    pub seconds: u64,
    pub keys_saved: u64,
    pub keys_total: u64,
    pub copies_bytes: u64,
    pub copies_peak_bytes: u64,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poison| poison.into_inner())
}

impl Saves {
    pub(in crate::node) fn new(started: UnixMillis) -> Self {
        Saves {
            last_ms: AtomicI64::new(started.0),
            count: AtomicU64::new(0),
            is_last_good: AtomicBool::new(true),
            dirty_before: AtomicU64::new(0),
            keys_loaded: AtomicU64::new(0),
            keys_expired: AtomicU64::new(0),
            is_end_decided: AtomicBool::new(false),
            running: Mutex::default(),
            is_scheduled: AtomicBool::new(false),
            last_try_ms: AtomicI64::new(0),
            last_seconds_taken: AtomicI64::new(-1),
            last_copies_bytes: AtomicU64::new(0),
            threads: Mutex::default(),
            awaiting: Mutex::default(),
            ending: Mutex::default(),
            is_end_saved: AtomicBool::new(false),
            numbers: AtomicU64::new(0),
            skips_sums: AtomicBool::new(false),
        }
    }

    /// The end of the process saves nothing any more: SHUTDOWN has seen to it.
    pub(crate) fn decide_end(&self) {
        self.is_end_decided.store(true, Ordering::Relaxed);
    }

    /// LASTSAVE.
    pub fn last_seconds(&self) -> i64 {
        self.last_ms.load(Ordering::Relaxed).div_euclid(1000)
    }

    /// Saves that were begun.
    pub fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    pub(super) fn count_begun(&self) {
        self.count.fetch_add(1, Ordering::Relaxed);
    }

    pub fn is_last_good(&self) -> bool {
        self.is_last_good.load(Ordering::Relaxed)
    }

    /// Keys of the last file that was loaded, and those in it whose time was over.
    pub fn last_load(&self) -> (u64, u64) {
        (self.keys_loaded.load(Ordering::Relaxed), self.keys_expired.load(Ordering::Relaxed))
    }

    /// How long the last BGSAVE took, in seconds, and what was copied for it at most, in bytes.
    pub fn last_background(&self) -> (i64, u64) {
        let bytes = self.last_copies_bytes.load(Ordering::Relaxed);
        (self.last_seconds_taken.load(Ordering::Relaxed), bytes)
    }

    pub fn is_scheduled(&self) -> bool {
        self.is_scheduled.load(Ordering::Relaxed)
    }

    pub(super) fn awaiting(&self) -> MutexGuard<'_, Awaiting> {
        lock(&self.awaiting)
    }

    pub(super) fn ending(&self) -> MutexGuard<'_, Option<Arc<AwaitedSave>>> {
        lock(&self.ending)
    }

    pub(super) fn next_number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }

    pub(super) fn running(&self) -> MutexGuard<'_, Option<Running>> {
        lock(&self.running)
    }

    /// What a snapshot is being taken for.
    pub fn purpose(&self) -> Option<Purpose> {
        self.running().as_ref().map(|running| running.purpose)
    }

    pub fn figures(&self) -> Option<SnapshotFigures> {
        let running = self.running();
        let Running { purpose, started, snapshot, keys_saved, .. } = running.as_ref()?;
        let snapshot = snapshot.as_ref();
        Some(SnapshotFigures {
            is_save: *purpose == Purpose::Save,
            seconds: started.elapsed().as_secs(),
            keys_saved: keys_saved.load(Ordering::Relaxed),
            keys_total: snapshot.map_or(0, |snapshot| snapshot.keys()),
            copies_bytes: snapshot.map_or(0, |snapshot| snapshot.copies_bytes()),
            copies_peak_bytes: snapshot.map_or(0, |snapshot| snapshot.peak_bytes()),
        })
    }

    /// A thread that takes a snapshot, to be waited for at the end.
    pub(super) fn add_thread(&self, thread: JoinHandle<()>) {
        let mut threads = lock(&self.threads);
        threads.retain(|thread| !thread.is_finished());
        threads.push(thread);
    }

    /// Waits for all threads that take snapshots. No shard may be held.
    pub(super) fn join_threads(&self) {
        let threads = std::mem::take(&mut *lock(&self.threads));
        for thread in threads {
            // The last handle of the node may be dropped by one of them. A panic there has been
            // reported.
            if thread.thread().id() != std::thread::current().id() {
                let _joined = thread.join();
            }
        }
    }
}
