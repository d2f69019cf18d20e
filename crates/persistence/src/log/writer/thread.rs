//! The writer's own loop.

use super::block::{BLOCK_BYTES_MAX, Block, Written, write_all, write_anew};
use super::group_commit::GroupCommit;
use super::large::{LargeCalls, LargeFile};
use super::rewrite::{Aside, NewBase, Rewrite, other};
use super::spares::{ROOM_BYTES_MAX, Spares};
use super::{Beginning, LogEvents, Policy, SYNC_AFTER, Shared};
use crate::disk::{DiskFile, NoFile};
use crate::log::manifest::LogFile;
use crate::log::render::{Rendered, Renderer};
use crate::log::sums::SumWriter;
use crate::log::{LogDirectory, LogError};
use russet_engine::journal::Journal;
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// How long it sleeps while there is something to do, and while there is nothing. Who can't wait
/// that long wakes it.
const NAP: Duration = Duration::from_millis(5);
const REST: Duration = Duration::from_millis(50);
/// After so long without a record, a last line says that all of the file is durable.
const IDLE_AFTER: Duration = Duration::from_millis(100);
/// How often it is tried to write what is left, at the end.
const TRIES_AT_END_MAX: u32 = 3;
/// After how long it is tried to write again after an error.
const RETRY_AFTER: Duration = Duration::from_millis(200);

/// A sync that another thread does.
struct Sync {
    result: Receiver<io::Result<()>>,
    /// The journal's offset and the length of the file that it covers.
    end: u64,
    len: u64,
    /// The first of the blocks that are kept, which it covers. Behind a cut that is being made
    /// several end at the same offset.
    blocks: usize,
}

pub(super) struct Writer {
    pub(super) directory: LogDirectory,
    file: Arc<dyn DiskFile>,
    /// Whether the last increment of the directory is this file: there was room for it.
    has_file: bool,
    /// There is no log yet: it begins with the base of the next rewrite. Until then nothing is
    /// written, which is no failure.
    pub(super) awaits_base: bool,
    pub(super) shared: Arc<Shared>,
    journal: Arc<Journal>,
    pub(super) events: Arc<dyn LogEvents>,
    pub(super) renderer: Renderer,
    sums: SumWriter,
    /// Length of the file, and how much of it is known to be durable.
    pub(super) len: u64,
    pub(super) synced_len: u64,
    /// Bytes of the log's other files.
    pub(super) others_bytes: u64,
    pub(super) new_base: Option<NewBase>,
    /// What is to be kept of the file after a sync that failed.
    safe_len: u64,
    /// A sync of the file has failed: a later one proves nothing of what that was to cover.
    pub(super) has_sync_failed: bool,
    /// What the last line says to be durable.
    claimed_len: u64,
    /// Blocks that are not durable; those before `written` are in the file.
    pub(super) blocks: VecDeque<Block>,
    /// What is not to be written before the file is changed.
    pub(super) aside: Option<Aside>,
    pub(super) written: usize,
    /// The journal's offset behind the blocks that were left to the system, with `no`, and not
    /// synced since; 0 if there are none.
    pub(super) left_end: u64,
    /// The journal's offset behind what nobody can prove to be durable: a sync has failed that was
    /// to cover what was left to the system, which is not kept. Only a new base can; 0 if there is
    /// no such thing.
    pub(super) doubted_end: u64,
    /// How often that has happened, and how often it had when the base was begun.
    pub(super) doubts: u64,
    pub(super) doubts_covered: u64,
    /// Someone else has removed files of the log: only a new base makes good for them.
    pub(super) has_lost_files: bool,
    pub(super) files_checked_at: Instant,
    /// Calls that are written ahead.
    pub(super) large: Arc<LargeCalls>,
    sync: Option<Sync>,
    group: GroupCommit,
    pub(super) failed_at: Option<Instant>,
    busy_at: Instant,
    /// The time, and the one that was noted last.
    unix_seconds: u64,
    stamped_seconds: u64,
    /// Room for records of the next blocks, while there are some.
    spares: Spares,
    /// What the last block took: the next one may take as much.
    usual_bytes: usize,
}

impl Writer {
    pub fn new(
        (directory, begun): (LogDirectory, Beginning),
        (shared, journal, large): (Arc<Shared>, Arc<Journal>, Arc<LargeCalls>),
        events: Arc<dyn LogEvents>,
    ) -> Self {
        let (file, why_not, awaits_base) = match begun {
            Beginning::File(file) => (file, None, false),
            Beginning::Full(why) => (Arc::new(NoFile) as Arc<dyn DiskFile>, Some(why), false),
            Beginning::Base => (Arc::new(NoFile) as Arc<dyn DiskFile>, None, true),
        };
        let others_bytes = directory.sizes().1;
        let mut writer = Writer {
            others_bytes,
            new_base: None,
            directory,
            file,
            has_file: why_not.is_none() && !awaits_base,
            awaits_base,
            shared,
            journal,
            events,
            renderer: Renderer::default(),
            sums: SumWriter::default(),
            len: 0,
            synced_len: 0,
            safe_len: 0,
            has_sync_failed: false,
            claimed_len: 0,
            blocks: VecDeque::new(),
            aside: None,
            written: 0,
            left_end: 0,
            doubted_end: 0,
            doubts: 0,
            doubts_covered: 0,
            has_lost_files: false,
            files_checked_at: Instant::now(),
            large,
            sync: None,
            group: GroupCommit::default(),
            failed_at: awaits_base.then(Instant::now),
            busy_at: Instant::now(),
            unix_seconds: 0,
            stamped_seconds: 0,
            spares: Spares::default(),
            usual_bytes: 0,
        };
        if let Some(why) = why_not {
            writer.fail(&why);
        }
        writer
    }

    pub fn run(mut self, mut next: u64) {
        let mut tries_at_end = 0;
        loop {
            let is_stopping = self.shared.is_stopping.load(Ordering::Acquire);
            let before = next;
            let may_wait = !is_stopping && self.failed_at.is_none();
            if may_wait && self.shared.policy() == Policy::Always && next != self.journal.offset() {
                self.group.await_others(&self.journal);
            }
            next = self.turn(next, is_stopping);
            let is_drained = next == self.journal.offset();
            if is_stopping {
                self.end_rewrite(true);
                let is_failed = self.failed_at.is_some();
                tries_at_end += u32::from(is_failed);
                if (is_drained && self.blocks.is_empty()) || tries_at_end >= TRIES_AT_END_MAX {
                    break;
                }
                continue;
            }
            if next != before {
                self.busy_at = Instant::now();
            } else if self.busy_at.elapsed() >= IDLE_AFTER {
                (self.spares, self.usual_bytes) = (Spares::default(), 0);
            }
            let is_busy = next != before || self.sync.is_some();
            match self.shared.policy() {
                Policy::Always if !is_drained && self.failed_at.is_none() => {}
                Policy::Always => self.journal.sleep(next, REST),
                _ => self.journal.sleep(next, if is_busy { NAP } else { REST }),
            }
        }
        self.finish(next);
    }

    /// Writes what is there and sees to it that it becomes durable.
    fn turn(&mut self, next: u64, is_stopping: bool) -> u64 {
        self.end_given_up(is_stopping);
        let next = self.gather(next);
        let is_due = |at: Instant| is_stopping || at.elapsed() >= RETRY_AFTER;
        if self.failed_at.is_some_and(is_due) && !self.is_recovering() && !self.awaits_base {
            self.try_again();
        }
        let done = match self.failed_at {
            None => self.write().and_then(|()| self.make_durable(is_stopping)),
            Some(_) => Ok(()),
        };
        let is_check_asked = self.shared.is_check_asked.load(Ordering::Acquire);
        let done = done.and_then(|()| self.check_files_at_times(is_check_asked));
        let done = done.and_then(|()| self.begin_rewrite(next));
        let done = done.and_then(|()| match self.failed_at {
            None => self.confirm(),
            Some(_) => Ok(()),
        });
        if let Err(error) = done {
            self.fail(&error.to_string());
        }
        self.end_rewrite(false);
        self.sweep_large();
        self.report();
        if is_check_asked {
            self.shared.is_check_asked.store(false, Ordering::Release);
        }
        next
    }

    /// Takes frames from the journal and puts a block together. What is newer than a cut that is
    /// being made is set aside.
    fn gather(&mut self, next: u64) -> u64 {
        let room = self.spares.take().unwrap_or_else(|| Vec::with_capacity(self.usual_bytes));
        let (db, mut records) = (self.renderer.db(), Rendered::with_room(room));
        self.stamp(&mut records.bytes);
        let shared = self.shared.clone();
        // Held until they are taken: what is appended behind a rewrite that is asked for meanwhile
        // must not be taken for what its base holds.
        let asked = shared.asked_rewrite();
        let offset = asked.as_ref().and_then(Rewrite::offset);
        let until = offset.filter(|_| self.new_base.is_none());
        let cut = &shared.cut_version;
        let (mut frames, mut frame_bytes) = (0, 0);
        let mut number = next;
        let mut large: Option<(LargeFile, Block)> = None;
        let (renderer, aside) = (&mut self.renderer, &mut self.aside);
        let large_calls = &self.large;
        let behind = self.journal.take(next..until.unwrap_or(u64::MAX), |frame| {
            let bytes = frame.bytes_total() as u64;
            number += 1;
            let large_file = Self::large_file(large_calls, frame);
            if frame.version >= cut.load(Ordering::SeqCst) {
                let aside = aside.get_or_insert_with(|| Aside::beginning(number - 1));
                aside.frame(frame);
            } else if let Some(file) = large_file.filter(|_| aside.is_none()) {
                let (db, mut records) = (renderer.db(), Rendered::default());
                renderer.frame(frame, &mut records);
                large = Some((file, Block::new(records, db, (number, bytes))));
                return false;
            } else {
                (frames, frame_bytes) = (frames + 1, frame_bytes + bytes);
                renderer.frame(frame, &mut records);
            }
            records.bytes_total() < BLOCK_BYTES_MAX
        });
        drop(asked);
        if let Some(aside) = &mut self.aside {
            // When it is durable, so is all that was gathered before.
            aside.frames.end = behind;
        }
        if frames == 0 {
            self.spares.keep(records.bytes);
        } else {
            self.stamped_seconds = self.unix_seconds;
            self.usual_bytes = records.bytes.len().min(ROOM_BYTES_MAX);
            // What is set aside is not durable, though what came behind it may be.
            let end = behind - u64::from(large.is_some());
            let end = self.aside.as_ref().map_or(end, |aside| aside.frames.start);
            self.blocks.push_back(Block::new(records, db, (end, frame_bytes)));
        }
        if let Some((file, mut block)) = large {
            block.large = Some(file);
            self.blocks.push_back(block);
        }
        behind
    }

    /// Notes the time before what follows, once in a second: see `aof-timestamp-enabled`.
    fn stamp(&mut self, records: &mut Vec<u8>) {
        if self.shared.has_timestamps.load(Ordering::Relaxed) {
            let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            self.unix_seconds = since.as_secs();
            if self.unix_seconds != self.stamped_seconds {
                records.extend_from_slice(format!("#TS:{}\r\n", self.unix_seconds).as_bytes());
            }
        }
    }

    fn write(&mut self) -> io::Result<()> {
        loop {
            if self.is_large_next() {
                self.commit_large()?;
            }
            let Some(block) = self.blocks.get_mut(self.written) else { return Ok(()) };
            let started = Instant::now();
            self.len += block.write(&*self.file, &mut self.sums, self.synced_len)?;
            self.claimed_len = self.synced_len;
            self.written += 1;
            let (time, is_syncing) = (started.elapsed(), self.sync.is_some());
            self.events.took("aof-write", time);
            self.events.took(
                match () {
                    () if is_syncing => "aof-write-pending-fsync",
                    () if self.new_base.is_some() => "aof-write-active-child",
                    () => "aof-write-alone",
                },
                time,
            );
        }
    }

    fn make_durable(&mut self, is_stopping: bool) -> io::Result<()> {
        self.end_sync(is_stopping)?;
        // DIFFERS: `always` is not weakened while a base is written.
        let spares_disk = self.new_base.is_some()
            && !is_stopping
            && self.shared.spares_disk.load(Ordering::Relaxed);
        match self.shared.policy() {
            Policy::EverySecond if spares_disk && self.sync.is_none() => self.leave_to_system(),
            _ if self.sync.is_some() || (self.written == 0 && self.left_end == 0) => {}
            Policy::Always => self.sync_now()?,
            _ if is_stopping => self.sync_now()?,
            Policy::EverySecond => {
                let is_old = |block: &Block| block.at.elapsed() >= SYNC_AFTER;
                if self.left_end > 0 || self.blocks.front().is_some_and(is_old) {
                    self.begin_sync()?;
                }
            }
            Policy::Never => self.leave_to_system(),
        }
        Ok(())
    }

    /// What was written is the system's now. Nothing else is known of it.
    fn leave_to_system(&mut self) {
        if self.written > 0 {
            self.safe_len = self.len;
            self.forget(self.written, false);
        }
    }

    pub(super) fn sync_now(&mut self) -> io::Result<()> {
        let (started, len) = (Instant::now(), self.len);
        self.file.sync_data().inspect_err(|_| self.doubt())?;
        let time = started.elapsed();
        self.events.took("aof-fsync-always", time);
        self.synced(len, (self.written, u64::MAX));
        self.group.synced(time, self.journal.deferred_count());
        Ok(())
    }

    /// Has the file synced while this thread goes on.
    fn begin_sync(&mut self) -> io::Result<()> {
        let last = self.blocks.iter().take(self.written).next_back();
        let (end, len) = (last.map_or(self.left_end, |block| block.end), self.len);
        let (sender, result) = sync_channel(1);
        let file = self.file.clone();
        // Nobody waits for a result any more once the writer has ended.
        let run = move || _ = sender.send(file.sync_data());
        std::thread::Builder::new().name("log-sync".into()).spawn(run)?;
        self.sync = Some(Sync { result, end, len, blocks: self.written });
        self.shared.is_syncing.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Looks whether the sync under way is over, or waits for it.
    pub(super) fn end_sync(&mut self, may_wait: bool) -> io::Result<()> {
        let Some(sync) = &self.sync else { return Ok(()) };
        let result = match may_wait {
            true => sync.result.recv().map_err(|_| TryRecvError::Disconnected),
            false => sync.result.try_recv(),
        };
        let result = match result {
            Ok(result) => result,
            Err(TryRecvError::Empty) => return Ok(()),
            Err(TryRecvError::Disconnected) => Err(io::Error::other("the sync did not end")),
        };
        let Some(Sync { end, len, blocks, .. }) = self.sync.take() else { return Ok(()) };
        self.shared.is_syncing.store(false, Ordering::Relaxed);
        result.inspect_err(|_| self.doubt())?;
        self.synced(len, (blocks.min(self.written), end));
        Ok(())
    }

    /// The first blocks are durable, and so are the file up to this length and what was left to
    /// the system before this offset.
    fn synced(&mut self, len: u64, (blocks, end): (usize, u64)) {
        self.shared.syncs.fetch_add(1, Ordering::Relaxed);
        self.synced_len = len;
        // More is safe if the policy became `no` while the sync was under way.
        self.safe_len = self.safe_len.max(len);
        if self.left_end > 0 && self.left_end <= end {
            let left_end = std::mem::take(&mut self.left_end);
            self.set_durable(left_end, 0);
        }
        self.forget(blocks, true);
    }

    /// What is before this offset is durable, and `bytes` less are waiting; but what comes behind
    /// something that may not be durable does not count.
    pub(super) fn set_durable(&mut self, mut end: u64, bytes: u64) {
        if self.doubted_end > 0 {
            self.doubted_end = self.doubted_end.max(end);
            end = 0;
        }
        self.shared.frames.fetch_max(end, Ordering::Relaxed);
        self.journal.set_durable(end, bytes);
    }

    /// Drops blocks that need not be kept any more.
    pub(super) fn forget(&mut self, count: usize, is_durable: bool) {
        let (mut end, mut bytes) = (0, 0);
        for block in self.blocks.drain(..count) {
            (end, bytes) = (block.end, bytes + block.frame_bytes);
            self.spares.keep(block.into_room());
        }
        self.written -= count;
        if count > 0 {
            if !is_durable {
                self.left_end = end;
                end = 0;
            }
            self.set_durable(end, bytes);
        }
    }

    /// When nothing was written for a while: a line that says that all before it is durable, so
    /// that damage to it is not taken for a torn end.
    fn confirm(&mut self) -> io::Result<()> {
        let is_due = self.blocks.is_empty()
            && self.sync.is_none()
            && self.claimed_len < self.synced_len
            && self.busy_at.elapsed() >= IDLE_AFTER;
        if is_due { self.write_claim() } else { Ok(()) }
    }

    /// Goes on in a new file.
    pub(super) fn use_file(&mut self, file: Arc<dyn DiskFile>) {
        self.others_bytes += self.len;
        (self.file, self.has_file) = (file, true);
        (self.sums, self.renderer) = (SumWriter::default(), Renderer::default());
        (self.len, self.synced_len, self.safe_len, self.claimed_len) = (0, 0, 0, 0);
        self.has_sync_failed = false;
    }

    pub(super) fn write_claim(&mut self) -> io::Result<()> {
        let line = self.sums.line(b"", self.synced_len);
        write_all(&*self.file, line.as_bytes())?;
        self.len += line.len() as u64;
        self.claimed_len = self.synced_len;
        Ok(())
    }

    fn fail(&mut self, why: &str) {
        if self.failed_at.is_none() {
            self.events.warn(&format!("The log can't be written: {why}"));
            self.journal.set_failure(Some(why.to_owned()));
            self.shared.is_failed.store(true, Ordering::Relaxed);
        }
        self.failed_at = Some(Instant::now());
    }

    fn try_again(&mut self) {
        match self.begin_anew() {
            Ok(()) => self.recovered(),
            Err(error) => {
                self.failed_at = Some(Instant::now());
                self.journal.set_failure(Some(error.to_string()));
            }
        }
    }

    fn recovered(&mut self) {
        self.failed_at = None;
        self.shared.is_failed.store(false, Ordering::Relaxed);
        self.journal.set_failure(None);
        self.events.warn("The log can be written again, in a new file");
    }

    /// After an error: cuts what was written in part, and makes durable what was written in whole,
    /// for the disk may stay full for long. If a sync has failed only what one covered before that
    /// is kept.
    pub(super) fn keep_whole(&mut self) -> io::Result<()> {
        // Whatever it came to: what is not durable is written again.
        let _no_matter = self.end_sync(true);
        if !self.has_sync_failed {
            self.file.truncate(self.len)?;
            match self.file.sync_data() {
                Ok(()) => {
                    self.check_files(self.has_file.then_some(self.len))?;
                    self.synced(self.len, (self.written, u64::MAX));
                    return Ok(());
                }
                Err(_) => self.doubt(),
            }
        }
        self.file.truncate(self.safe_len)?;
        self.file.sync_data().inspect_err(|_| self.doubt())?;
        (self.len, self.synced_len) = (self.safe_len, self.safe_len);
        self.check_files(self.has_file.then_some(self.safe_len))
    }

    /// Makes the file good and writes all that is not in it to a new one.
    fn begin_anew(&mut self) -> io::Result<()> {
        self.keep_whole()?;
        let (name, file, written) = self.write_kept(0)?;
        self.directory.commit_increment(name).map_err(other)?;
        self.go_on_in(file, written);
        Ok(())
    }

    /// Goes on behind a base that holds all blocks before this one, and all files of the log.
    pub(super) fn begin_behind(&mut self, base: LogFile, first: usize) -> Result<(), LogError> {
        self.directory.keep_others_out()?;
        if self.awaits_base {
            return self.begin_log(base, first);
        }
        let written = self.write_kept(first).map_err(LogError::io("write behind the new base"));
        let (name, file, written) = written?;
        self.directory.begin_with(base, name)?;
        self.go_on_in(file, written);
        self.has_lost_files = false;
        self.report_need();
        self.recovered();
        Ok(())
    }

    /// Writes the blocks from this one on to a new increment.
    fn write_kept(&mut self, first: usize) -> io::Result<(LogFile, Arc<dyn DiskFile>, Written)> {
        let (name, file) = self.directory.create_increment()?;
        let written = write_anew(self.blocks.range_mut(first..), &*file);
        let written = written.inspect_err(|_| self.directory.discard(&name.name))?;
        Ok((name, file, written))
    }

    /// All that is kept is durable, and what follows goes to this file.
    fn go_on_in(&mut self, file: Arc<dyn DiskFile>, Written { sums, len }: Written) {
        let renderer = std::mem::take(&mut self.renderer);
        self.use_file(file);
        (self.sums, self.len) = (sums, len);
        // The first of the next block has to select its database, unless one is selected.
        self.renderer = if len == 0 { Renderer::default() } else { renderer };
        self.written = self.blocks.len();
        self.synced(len, (self.written, u64::MAX));
    }

    fn report(&mut self) {
        let unsynced: usize = self.blocks.iter().map(Block::len).sum();
        self.shared.unsynced_bytes.store(unsynced as u64, Ordering::Relaxed);
        let aside = self.aside.as_ref().map(|aside| aside.at);
        let first = self.blocks.front().map(|block| block.at);
        // What waits for a first base is not late.
        let oldest = first.into_iter().chain(aside).min().filter(|_| !self.awaits_base);
        *self.shared.oldest() = oldest;
        self.shared.look_at_age(&self.journal);
        self.shared.size_bytes.store(self.others_bytes + self.len, Ordering::Relaxed);
        self.shared.files.store(self.directory.files(), Ordering::Relaxed);
    }

    /// The last line, durable as well.
    fn finish(&mut self, next: u64) {
        if self.failed_at.is_none() && self.claimed_len < self.synced_len {
            let _no_matter = self.write_claim().and_then(|()| self.file.sync_data());
        }
        let left_bytes = self.drop_rest(next);
        if self.awaits_base {
            return;
        }
        if left_bytes > 0 {
            let lost = self.journal.offset() - self.journal.durable();
            let line = format!("The log ends without its last {lost} frames: it can't be written");
            self.events.warn(&line);
        }
        self.check_files_at_end();
    }

    /// Takes what can't be written out of the journal, so that another log finds room there; its
    /// bytes.
    fn drop_rest(&mut self, mut next: u64) -> u64 {
        let mut bytes: u64 = self.blocks.drain(..).map(|block| block.frame_bytes).sum();
        while next < self.journal.offset() {
            next = self.journal.take(next..u64::MAX, |frame| {
                bytes += frame.bytes_total() as u64;
                true
            });
        }
        self.journal.set_durable(0, bytes);
        bytes
    }
}
