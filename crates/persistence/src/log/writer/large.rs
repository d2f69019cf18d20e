//! With `always`: large calls are on the disk before they run.
//!
//! What comes behind a call in the journal can't be durable before the call is, and 256 MB take a
//! disk a second. So the client of such a call, who waits for the disk in any case, waits before
//! it runs: a thread writes the call to a file of its own, piece by piece, while all others go on.
//! When the call comes out of the journal, that file becomes an increment, and the log goes on in
//! another behind it. What is not as it was foreseen is written where it stands, as any other call.

use super::Policy;
use super::block::Block;
use super::rewrite::other;
use super::thread::Writer;
use crate::disk::{Disk, DiskFile};
use crate::log::LogDirectory;
use crate::log::directory::UnnamedFiles;
use crate::log::render::{Rendered, Renderer};
use crate::log::sums::SumWriter;
use russet_base::Args;
use russet_engine::journal::Journal;
use russet_engine::record::{Encoded, Records};
use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;

/// Bytes after which the file is synced, so that a sync of another file, which some file systems do
/// not let pass, is not behind many of them. Smaller ones take a disk longer whose syncs are slow.
const PIECE_BYTES: u64 = 512 << 10;
/// Files of a log beyond which it gets no more in this way before it is rewritten.
pub(super) const FILES_MAX: usize = 1024;

/// Does something when a file is written, or can't be, and why.
pub(super) type Over = Box<dyn FnOnce(Option<String>) + Send>;

struct Job {
    frame: Encoded,
    over: Over,
}

#[derive(Default)]
struct Queue {
    jobs: VecDeque<Job>,
    /// The thread that does them, one after the other; it ends when there are none.
    thread: Option<JoinHandle<()>>,
    is_running: bool,
    last_number: u64,
}

/// Calls that are written ahead.
pub(super) struct LargeCalls {
    unnamed: UnnamedFiles,
    journal: Arc<Journal>,
    queue: Mutex<Queue>,
    /// Those that are written, until they come out of the journal.
    files: Mutex<Vec<LargeFile>>,
    is_stopping: AtomicBool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poison| poison.into_inner())
}

impl LargeCalls {
    pub fn new(directory: &LogDirectory, journal: Arc<Journal>) -> Self {
        LargeCalls {
            unnamed: directory.unnamed(),
            journal,
            queue: Mutex::default(),
            files: Mutex::default(),
            is_stopping: AtomicBool::new(false),
        }
    }

    /// Has a call written. False: it is not, and nothing will be done.
    pub fn write_ahead(self: &Arc<Self>, (db, args): (usize, Args), over: Over) -> bool {
        let mut records = Records::recording();
        records.push_args(db, args);
        records.end_unit();
        let frame = std::mem::take(records.encoded_mut());
        let mut queue = lock(&self.queue);
        if self.is_stopping.load(Ordering::Acquire) {
            return false;
        }
        if !queue.is_running {
            let calls = self.clone();
            let run = move || calls.run();
            let Ok(thread) = std::thread::Builder::new().name("log-large".into()).spawn(run) else {
                return false;
            };
            (queue.thread, queue.is_running) = (Some(thread), true);
        }
        queue.jobs.push_back(Job { frame, over });
        true
    }

    fn run(&self) {
        while let Some((Job { frame, over }, number)) = self.next_job() {
            // In a program that survives a panic nobody else would tell the client, and none of
            // those behind it, which would wait for a thread that is gone.
            let written = catch_unwind(AssertUnwindSafe(|| self.write(frame, number)))
                .unwrap_or_else(|_| Err(io::Error::other("the thread that writes it panicked")));
            match written {
                Ok(file) => {
                    lock(&self.files).push(file);
                    over(None);
                }
                // It was given up, and is written as others are.
                Err(_) if self.is_stopping.load(Ordering::Acquire) => over(None),
                Err(error) => over(Some(error.to_string())),
            }
        }
    }

    fn next_job(&self) -> Option<(Job, u64)> {
        let mut queue = lock(&self.queue);
        let job = queue.jobs.pop_front();
        queue.is_running = job.is_some();
        queue.last_number += 1;
        job.map(|job| (job, queue.last_number))
    }

    fn write(&self, frame: Encoded, number: u64) -> io::Result<LargeFile> {
        let path = self.unnamed.path(number);
        let paced = Paced {
            file: self.unnamed.disk.create(&path)?,
            unsynced_bytes: AtomicU64::new(0),
            is_stopping: &self.is_stopping,
        };
        let bytes = frame.bytes_total() as u64;
        self.journal.add_ahead(bytes);
        let (disk, journal) = (self.unnamed.disk.clone(), self.journal.clone());
        let mut file = LargeFile { frame, path, len: 0, bytes, disk, journal, is_used: false };
        let mut records = Rendered::default();
        Renderer::default().frame(&file.frame, &mut records);
        file.len = Block::new(records, 0, (0, 0)).write(&paced, &mut SumWriter::default(), 0)?;
        paced.sync_data()?;
        Ok(file)
    }

    /// The file that has what this frame has. If there is one that was meant for it but has not,
    /// that is of no use any more.
    fn take(&self, frame: &Encoded) -> Option<LargeFile> {
        let mut files = lock(&self.files);
        let at = files.iter().position(|file| file.frame.shares_long_arg(frame))?;
        let file = files.swap_remove(at);
        drop(files);
        file.frame.is_same(frame).then_some(file)
    }

    /// Gives up those whose calls were refused.
    fn sweep(&self) {
        let mut files = lock(&self.files);
        if files.iter().any(|file| file.frame.is_only_owner()) {
            let all = std::mem::take(&mut *files);
            let (unused, awaited) = all.into_iter().partition(|file| file.frame.is_only_owner());
            *files = awaited;
            drop(files);
            let _removed_now: Vec<LargeFile> = unused;
        }
    }

    /// Nothing is written ahead any more. What is there may come out of the journal yet.
    pub fn give_up(&self) {
        self.is_stopping.store(true, Ordering::Release);
    }

    /// The same at the end of the log: what has not come out of the journal will not.
    pub fn stop(&self) {
        self.give_up();
        let thread = lock(&self.queue).thread.take();
        if let Some(thread) = thread {
            // A panic there has been reported.
            let _joined = thread.join();
        }
        let _removed_now = std::mem::take(&mut *lock(&self.files));
    }
}

/// A file that is synced again and again while it is written, and that can be given up.
struct Paced<'c> {
    file: Box<dyn DiskFile>,
    unsynced_bytes: AtomicU64,
    is_stopping: &'c AtomicBool,
}

impl DiskFile for Paced<'_> {
    fn append(&self, bytes: &[u8]) -> io::Result<usize> {
        if self.is_stopping.load(Ordering::Acquire) {
            return Err(io::Error::other("the log ends"));
        }
        let written = self.file.append(bytes)?;
        let before = self.unsynced_bytes.fetch_add(written as u64, Ordering::Relaxed);
        if before + written as u64 >= PIECE_BYTES {
            self.sync_data()?;
        }
        Ok(written)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.unsynced_bytes.store(0, Ordering::Relaxed);
        self.file.sync_data()
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        self.file.truncate(len)
    }

    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }
}

/// A file that has one call, and is durable. Until it is part of the log it is removed with this.
pub(super) struct LargeFile {
    frame: Encoded,
    path: PathBuf,
    len: u64,
    /// What the call takes in the journal.
    bytes: u64,
    disk: Arc<dyn Disk>,
    journal: Arc<Journal>,
    is_used: bool,
}

impl Drop for LargeFile {
    fn drop(&mut self) {
        self.journal.remove_ahead(self.bytes);
        if !self.is_used {
            // One that is left takes room until the log is opened the next time.
            let _removed = self.disk.remove(&self.path);
        }
    }
}

impl Writer {
    /// Looks for the file of a large call that comes out of the journal.
    pub(super) fn large_file(calls: &LargeCalls, frame: &Encoded) -> Option<LargeFile> {
        if frame.has_long_args() { calls.take(frame) } else { None }
    }

    pub(super) fn sweep_large(&self) {
        self.large.sweep();
    }

    /// Whether the next block is in a file that can become part of the log.
    pub(super) fn is_large_next(&self) -> bool {
        self.shared.policy() == Policy::Always
            && self.directory.files() < FILES_MAX
            && self.blocks.get(self.written).is_some_and(|block| block.large.is_some())
    }

    /// The file of the next block becomes part of the log, which goes on behind it.
    pub(super) fn commit_large(&mut self) -> io::Result<()> {
        // What belongs to the old file must be durable there before another follows it.
        self.end_sync(true)?;
        if self.len > self.synced_len || self.left_end > 0 {
            self.sync_now()?;
        }
        debug_assert_eq!(self.written, 0, "all before it is durable");
        self.check_files(Some(self.len))?;
        let Some(mut large) = self.blocks.front_mut().and_then(|block| block.large.take()) else {
            return Ok(());
        };
        let file = self.directory.commit_whole(&large.path).map_err(other)?;
        large.is_used = true;
        let renderer = std::mem::take(&mut self.renderer);
        self.use_file(file);
        self.others_bytes += large.len;
        self.written = 1;
        self.forget(1, true);
        if let Some(block) = self.blocks.front_mut() {
            // What was gathered behind it was to follow what was selected before.
            block.make_first();
            self.renderer = renderer;
        }
        Ok(())
    }
}
