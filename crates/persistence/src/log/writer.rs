//! The thread that takes frames from the journal, writes them to the log and makes them durable.
//!
//! Bytes are kept until they are durable. After an error the increment is cut where it was known
//! to be good, and all that is not durable goes to a new one: a sync that succeeds after one that
//! failed proves nothing. Meanwhile the journal's barrier refuses writes. A rewrite helps, too: its
//! base holds what could not be written, and the files that it replaces make room.

mod block;
mod doubts;
mod files;
mod group_commit;
mod large;
mod rewrite;
mod spares;
mod thread;

pub use rewrite::BaseFile;

use super::{LogDirectory, LogError};
use crate::data_file::Form;
use crate::disk::DiskFile;
use large::{FILES_MAX, LargeCalls, Over};
use rewrite::{NO_CUT, Rewrite};
use russet_base::Args;
use russet_engine::barrier::Barrier;
use russet_engine::journal::Journal;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use thread::Writer;

/// With `everysec`: how old the oldest record is that a sync starts for. So a sync has as much time
/// again before anything is a second old.
const SYNC_AFTER: Duration = Duration::from_millis(500);
/// With `everysec`: how old a record may be that is not durable before writers are held back.
const LATE_AFTER: Duration = Duration::from_secs(1);

/// How often it is looked whether a rewrite is over, by who waits for it.
const AWAIT_NAP: Duration = Duration::from_millis(1);

/// `appendfsync`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Policy {
    Always = 0,
    EverySecond = 1,
    Never = 2,
}

impl Policy {
    fn from_byte(byte: u8) -> Self {
        match byte {
            0 => Policy::Always,
            1 => Policy::EverySecond,
            _ => Policy::Never,
        }
    }
}

/// A listener for what happens to the log. It is called on the log's own thread.
pub trait LogEvents: Send + Sync {
    /// A line for whoever looks after the server.
    fn warn(&self, line: &str);

    /// A write or a sync took so long.
    fn took(&self, _event: &'static str, _time: Duration) {}
}

/// What INFO shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogStatus {
    pub is_failed: bool,
    pub size_bytes: u64,
    pub base_bytes: u64,
    /// Written, but not known to be durable.
    pub unsynced_bytes: u64,
    pub is_syncing: bool,
    pub syncs: u64,
    /// Frames of the journal that were made durable.
    pub frames: u64,
    /// How often writers were held back because a sync took too long.
    pub delays: u64,
    pub is_rewriting: bool,
    pub current_rewrite_seconds: Option<u64>,
    pub rewrites: u64,
    pub is_rewrite_bad: bool,
    /// Some of it may not be durable, and only a rewrite can make it so.
    pub needs_base: bool,
    /// How long the last rewrite took; None before the first.
    pub rewrite_seconds: Option<u64>,
    /// What the log took after the last rewrite, or at the start.
    pub rewritten_bytes: u64,
}

#[derive(Default)]
struct Shared {
    policy: AtomicU8,
    is_stopping: AtomicBool,
    /// Someone waits until it was looked whether the files are there.
    is_check_asked: AtomicBool,
    is_failed: AtomicBool,
    is_syncing: AtomicBool,
    /// Files of the log.
    files: AtomicUsize,
    size_bytes: AtomicU64,
    base_bytes: AtomicU64,
    unsynced_bytes: AtomicU64,
    syncs: AtomicU64,
    frames: AtomicU64,
    delays: AtomicU64,
    is_rewriting: AtomicBool,
    is_rewrite_bad: AtomicBool,
    needs_base: AtomicBool,
    rewrites: AtomicU64,
    rewrite_seconds: AtomicU64,
    rewritten_bytes: AtomicU64,
    asked_rewrite: Mutex<Option<Rewrite>>,
    /// `aof-timestamp-enabled` and `no-appendfsync-on-rewrite`.
    has_timestamps: AtomicBool,
    spares_disk: AtomicBool,
    /// `aof-use-rdb-preamble no`.
    has_command_base: AtomicBool,
    /// Frames of this version and newer ones are set aside.
    cut_version: AtomicU64,
    /// Where the base of a rewrite is to be written, from when the writer knows until someone
    /// takes it.
    base_file: Mutex<Option<BaseFile>>,
    rewrite_started: Mutex<Option<Instant>>,
    /// When the oldest record was written that is not durable.
    oldest: Mutex<Option<Instant>>,
}

impl Shared {
    fn policy(&self) -> Policy {
        Policy::from_byte(self.policy.load(Ordering::Acquire))
    }

    fn oldest(&self) -> MutexGuard<'_, Option<Instant>> {
        self.oldest.lock().unwrap_or_else(|poison| poison.into_inner())
    }

    fn asked_rewrite(&self) -> MutexGuard<'_, Option<Rewrite>> {
        self.asked_rewrite.lock().unwrap_or_else(|poison| poison.into_inner())
    }

    fn base_file(&self) -> MutexGuard<'_, Option<BaseFile>> {
        self.base_file.lock().unwrap_or_else(|poison| poison.into_inner())
    }

    fn rewrite_started(&self) -> MutexGuard<'_, Option<Instant>> {
        self.rewrite_started.lock().unwrap_or_else(|poison| poison.into_inner())
    }

    /// A rewrite is over.
    fn end_rewrite(&self, is_good: bool) {
        let started = self.rewrite_started().take();
        let seconds = started.map_or(0, |at| at.elapsed().as_secs());
        self.rewrite_seconds.store(seconds, Ordering::Relaxed);
        self.is_rewrite_bad.store(!is_good, Ordering::Relaxed);
        self.is_rewriting.store(false, Ordering::Release);
    }

    /// Holds writers back while the oldest record is late, with the policy that promises a bound.
    fn look_at_age(&self, journal: &Journal) {
        let age = self.oldest().map_or(Duration::ZERO, |at| at.elapsed());
        let is_late = self.policy() == Policy::EverySecond && age >= LATE_AFTER;
        if is_late && !journal.barriers().is_up(Barrier::Late) {
            self.delays.fetch_add(1, Ordering::Relaxed);
        }
        journal.raise(Barrier::Late, is_late);
    }
}

/// What a log begins with.
enum Beginning {
    File(Arc<dyn DiskFile>),
    /// Nothing: there is no room for a file.
    Full(String),
    /// Nothing before there is a base.
    Base,
}

/// A log that is being written.
pub struct Log {
    shared: Arc<Shared>,
    journal: Arc<Journal>,
    large: Arc<LargeCalls>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Log {
    /// Begins a new increment and starts the thread that fills it. The journal's mode is up to the
    /// caller; nothing may be in it yet that is not in the directory.
    ///
    /// A log that is there already and finds no room for an increment begins as one that can't be
    /// written: what it holds can be read, and it goes on when there is room.
    pub fn start(
        mut directory: LogDirectory,
        journal: Arc<Journal>,
        policy: Policy,
        events: Arc<dyn LogEvents>,
    ) -> Result<Log, LogError> {
        // All that the manifest names is loaded: this may make room.
        directory.remove_left();
        let begun = match directory.begin_increment() {
            Ok(file) => Beginning::File(file),
            Err(error) if error.is_full() && !directory.is_new() => {
                Beginning::Full(error.to_string())
            }
            Err(error) => return Err(error),
        };
        Self::start_with((directory, begun), (journal, policy), events)
    }

    /// Starts a log in place of what is in the directory. It begins with the base of the next
    /// rewrite, which the caller begins at once: what is appended behind the cut is kept until that
    /// is there. If it fails there is no log, and the directory is as it was.
    pub fn start_for_base(
        directory: LogDirectory,
        journal: Arc<Journal>,
        policy: Policy,
        events: Arc<dyn LogEvents>,
    ) -> Result<Log, LogError> {
        directory.remove_temporary();
        Self::start_with((directory, Beginning::Base), (journal, policy), events)
    }

    fn start_with(
        (directory, begun): (LogDirectory, Beginning),
        (journal, policy): (Arc<Journal>, Policy),
        events: Arc<dyn LogEvents>,
    ) -> Result<Log, LogError> {
        let shared = Arc::new(Shared::default());
        shared.policy.store(policy as u8, Ordering::Release);
        shared.cut_version.store(NO_CUT, Ordering::Relaxed);
        let (base, all) = directory.sizes();
        shared.base_bytes.store(base, Ordering::Relaxed);
        shared.size_bytes.store(all, Ordering::Relaxed);
        shared.rewritten_bytes.store(all, Ordering::Relaxed);
        shared.rewrite_seconds.store(u64::MAX, Ordering::Relaxed);
        let next = journal.offset();
        journal.set_durable(next, 0);
        let large = Arc::new(LargeCalls::new(&directory, journal.clone()));
        let own = (shared.clone(), journal.clone(), large.clone());
        let writer = Writer::new((directory, begun), own, events);
        let run = move || writer.run(next);
        let thread = std::thread::Builder::new().name("log".into()).spawn(run);
        let thread = thread.map_err(LogError::io("start the thread of the log"))?;
        journal.set_reader(Some(thread.thread().clone()));
        Ok(Log { shared, journal, large, thread: Mutex::new(Some(thread)) })
    }

    /// With `always`: writes a call with a long argument before it runs, so that nobody waits for
    /// it who comes behind it. `over` is done then, with the reason if it could not be written.
    /// False: nothing is done.
    pub fn write_ahead(&self, call: (usize, Args), over: Over) -> bool {
        let may = self.shared.policy() == Policy::Always
            && !self.shared.is_failed.load(Ordering::Relaxed)
            && self.shared.files.load(Ordering::Relaxed) < FILES_MAX;
        may && self.large.write_ahead(call, over)
    }

    /// Every shard must be held, as for [`Journal::set_mode`], which goes with it.
    pub fn set_policy(&self, policy: Policy) {
        self.shared.policy.store(policy as u8, Ordering::Release);
        self.shared.look_at_age(&self.journal);
        self.journal.wake_reader();
    }

    /// `aof-timestamp-enabled`: whether the time is noted between records.
    pub fn set_timestamps(&self, has_timestamps: bool) {
        self.shared.has_timestamps.store(has_timestamps, Ordering::Relaxed);
    }

    /// `no-appendfsync-on-rewrite`: whether syncs of `everysec` are left out while a base is
    /// written.
    pub fn set_spares_disk(&self, spares_disk: bool) {
        self.shared.spares_disk.store(spares_disk, Ordering::Relaxed);
    }

    /// `aof-use-rdb-preamble`: what the next base is to be.
    pub fn set_base_form(&self, form: Form) {
        self.shared.has_command_base.store(form == Form::Commands, Ordering::Relaxed);
    }

    pub fn is_rewriting(&self) -> bool {
        self.shared.is_rewriting.load(Ordering::Acquire)
    }

    /// Whether the caller is the one who may begin a rewrite; then it must call [`Log::rewrite`],
    /// [`Log::expect_cut`] or [`Log::give_up_rewrite`].
    pub fn claim_rewrite(&self) -> bool {
        let is_claimed = !self.shared.is_rewriting.swap(true, Ordering::AcqRel);
        if is_claimed {
            *self.shared.rewrite_started() = Some(Instant::now());
        }
        is_claimed
    }

    /// The rewrite failed before there was a base.
    pub fn give_up_rewrite(&self) {
        let mut asked = self.shared.asked_rewrite();
        match &mut *asked {
            // The writer knows whether something was set aside.
            Some(rewrite) => *rewrite = Rewrite::GivenUp,
            // It ends the rewrite when it finds that nobody has the file.
            None if self.shared.base_file().take().is_some() => {}
            None => self.shared.end_rewrite(false),
        }
        drop(asked);
        self.journal.wake_reader();
    }

    /// A snapshot of this version is about to be cut, to replace what was appended by calls of
    /// older versions. What newer ones append is set aside until [`Log::cut_is_made`].
    pub fn expect_cut(&self, version: u64) {
        *self.shared.asked_rewrite() = Some(Rewrite::Cut { joined: None });
        self.shared.cut_version.store(version, Ordering::SeqCst);
    }

    /// Nothing is appended any more that the snapshot has.
    pub fn cut_is_made(&self) {
        let offset = self.journal.offset();
        if let Some(Rewrite::Cut { joined }) = &mut *self.shared.asked_rewrite() {
            *joined = Some(offset);
        }
        self.journal.wake_reader();
    }

    /// Where the snapshot is to be written: there once the log goes on in a new file. None if it
    /// won't.
    pub fn await_base_file(&self) -> Option<BaseFile> {
        loop {
            if let Some(file) = self.shared.base_file().take() {
                return Some(file);
            }
            let is_over = self.shared.is_stopping.load(Ordering::Acquire) || !self.is_rewriting();
            if is_over {
                return None;
            }
            std::thread::sleep(AWAIT_NAP);
        }
    }

    /// Replaces all that was appended so far by a base that holds it. Every shard is held.
    pub fn rewrite(&self, base: Vec<u8>, form: Form) {
        let at = self.journal.offset();
        *self.shared.asked_rewrite() = Some(Rewrite::Whole { at, base, form });
        self.journal.wake_reader();
    }

    /// Waits until no rewrite is under way, or the log can't be written.
    pub fn await_rewrite(&self) {
        while self.is_rewriting() && !self.shared.is_failed.load(Ordering::Relaxed) {
            std::thread::sleep(AWAIT_NAP);
        }
    }

    /// Looks now whether all files are there; [`LogStatus::needs_base`] says so if not.
    pub fn check_files(&self) {
        self.shared.is_check_asked.store(true, Ordering::Release);
        self.journal.wake_reader();
        while self.shared.is_check_asked.load(Ordering::Acquire) && self.is_running() {
            std::thread::sleep(AWAIT_NAP);
        }
    }

    fn is_running(&self) -> bool {
        let thread = self.thread.lock().unwrap_or_else(|poison| poison.into_inner());
        thread.as_ref().is_some_and(|thread| !thread.is_finished())
    }

    /// To be called now and then, for the log's own thread may be stuck in a write.
    pub fn tick(&self) {
        self.shared.look_at_age(&self.journal);
    }

    pub fn status(&self) -> LogStatus {
        let shared = &self.shared;
        let number = |number: &AtomicU64| number.load(Ordering::Relaxed);
        LogStatus {
            is_failed: shared.is_failed.load(Ordering::Relaxed),
            size_bytes: number(&shared.size_bytes),
            base_bytes: number(&shared.base_bytes),
            unsynced_bytes: number(&shared.unsynced_bytes),
            is_syncing: shared.is_syncing.load(Ordering::Relaxed),
            syncs: number(&shared.syncs),
            frames: number(&shared.frames),
            delays: number(&shared.delays),
            is_rewriting: self.is_rewriting(),
            current_rewrite_seconds: shared.rewrite_started().map(|at| at.elapsed().as_secs()),
            rewrites: number(&shared.rewrites),
            is_rewrite_bad: shared.is_rewrite_bad.load(Ordering::Relaxed),
            needs_base: shared.needs_base.load(Ordering::Acquire),
            rewrite_seconds: Some(number(&shared.rewrite_seconds)).filter(|it| *it < u64::MAX),
            rewritten_bytes: number(&shared.rewritten_bytes),
        }
    }

    /// Makes all that is in the journal durable and ends. Nothing may be appended any more.
    pub fn stop(&self) {
        let thread = self.thread.lock().unwrap_or_else(|poison| poison.into_inner()).take();
        let Some(thread) = thread else { return };
        self.shared.is_stopping.store(true, Ordering::Release);
        self.journal.wake_reader();
        self.large.give_up();
        // A panic there has been reported.
        let _joined = thread.join();
        self.large.stop();
        self.journal.set_reader(None);
        self.journal.set_failure(None);
        self.journal.raise(Barrier::Late, false);
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        self.stop();
    }
}
