//! Snapshots that are taken by a thread of their own while calls go on: BGSAVE, save points, and
//! the rewrite of the log. One at a time.

use super::Use;
use super::awaited::Awaiting;
use super::saves::{Purpose, Running};
use crate::groups::scripting::function::Libraries;
use crate::node::Node;
use crate::node::config::Directive;
use russet_engine::barrier::Barrier;
use russet_engine::snapshot::Walk;
use russet_persistence::disk::{Disk, DiskLock};
use russet_persistence::log::{BaseFile, Log};
use russet_persistence::rdb::save::Written;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// After a save that failed none is begun for so long, unless someone asks for it.
const RETRY_AFTER_MS: i64 = 5000;
/// How often it is looked whether a snapshot that was cancelled is over.
const NAP: Duration = Duration::from_millis(1);

const IS_SAVING: &str = "Background save already in progress";
const IS_BUSY: &str = "Another child process is active (AOF?): can't BGSAVE right now. Use BGSAVE \
                       SCHEDULE in order to schedule a BGSAVE whenever possible.";

/// What became of a wish for a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Begun {
    Started,
    Scheduled,
}

/// What BGSAVE CANCEL has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cancelled {
    Running,
    Scheduled,
}

/// The libraries of functions as they were at the cut.
type CutLibraries = Arc<Mutex<Option<Arc<Libraries>>>>;

/// A snapshot to be taken, by a thread of its own.
struct Task {
    node: Arc<Node>,
    number: u64,
    /// To be rewritten.
    log: Option<Arc<Log>>,
    /// None if one that was cancelled before is not over yet.
    walk: Option<Walk>,
    libraries: CutLibraries,
    keys_saved: Arc<AtomicU64>,
    /// Changes that were counted before the cut.
    dirty: u64,
    started: Instant,
    awaiting: Awaiting,
}

/// A file that is complete.
struct Saved {
    written: Written,
    /// Bytes that were copied for it at most.
    copies: u64,
    /// Until it has its name.
    _lock: Option<Box<dyn DiskLock>>,
}

impl Node {
    /// SAVE is refused meanwhile.
    pub(crate) fn check_not_saving(&self) -> Result<(), String> {
        match self.saves.purpose() {
            Some(Purpose::Save) => Err(IS_SAVING.to_owned()),
            _ => Ok(()),
        }
    }

    /// BGSAVE. `may_wait`: it is scheduled if something is in its way; `must_wait`: in any case.
    pub(crate) fn begin_save(&self, may_wait: bool, must_wait: bool) -> Result<Begun, String> {
        self.host.disk().ok_or("there is no directory to save to")?;
        let is_free = match self.saves.purpose() {
            Some(Purpose::Save) => return Err(IS_SAVING.to_owned()),
            Some(Purpose::Rewrite) => false,
            None => !must_wait,
        };
        if is_free {
            self.begin_background(Purpose::Save, None)?;
            return Ok(Begun::Started);
        }
        if !may_wait && !must_wait {
            return Err(IS_BUSY.to_owned());
        }
        self.saves.is_scheduled.store(true, Ordering::Relaxed);
        Ok(Begun::Scheduled)
    }

    /// A save is to begin as soon as it can, if any are configured.
    pub(crate) fn save_soon(&self) {
        if self.host.disk().is_some() && !self.config.save_points().is_empty() {
            self.saves.is_scheduled.store(true, Ordering::Relaxed);
        }
    }

    /// FLUSHALL: one that waits for its turn has what is left then, and one that a client waits for
    /// what there was.
    pub(crate) fn cancel_running_save(&self) {
        self.cancel(Purpose::Save, |running| !running.is_awaited);
    }

    /// BGSAVE CANCEL.
    pub(crate) fn cancel_background_save(&self) -> Option<Cancelled> {
        self.cancel_save_if(|running| !running.is_awaited)
    }

    /// The end: whoever waits for it hears of it.
    pub(crate) fn cancel_save(&self) {
        self.cancel_save_if(|_| true);
    }

    fn cancel_save_if(&self, may_cancel: fn(&Running) -> bool) -> Option<Cancelled> {
        if self.cancel(Purpose::Save, may_cancel) {
            return Some(Cancelled::Running);
        }
        let was_scheduled = self.saves.is_scheduled.swap(false, Ordering::Relaxed);
        was_scheduled.then_some(Cancelled::Scheduled)
    }

    /// The log is to be rewritten in another way, or not at all.
    pub(in crate::node) fn cancel_rewrite(&self) {
        self.cancel(Purpose::Rewrite, |_| true);
    }

    fn cancel(&self, purpose: Purpose, may_cancel: fn(&Running) -> bool) -> bool {
        let mut running = self.saves.running();
        let found = running.take_if(|it| it.purpose == purpose && may_cancel(it));
        let Some(cancelled) = found else { return false };
        if let Some(snapshot) = &cancelled.snapshot {
            snapshot.cancel();
        }
        if purpose == Purpose::Save {
            self.note_time_taken(cancelled.started);
        }
        true
    }

    fn note_time_taken(&self, started: Instant) {
        let seconds = i64::try_from(started.elapsed().as_secs()).unwrap_or(i64::MAX);
        self.saves.last_seconds_taken.store(seconds, Ordering::Relaxed);
    }

    /// The end: no snapshot is taken any more. No shard may be held.
    pub(in crate::node) fn end_snapshots(&self) {
        self.cancel_save();
        self.cancel_rewrite();
        // Those who wait for one that has not begun hear that it won't.
        drop(std::mem::take(&mut *self.saves.awaiting()));
        self.saves.join_threads();
    }

    /// About ten times in a second: saves if a save point says so, or if it was scheduled.
    pub(in crate::node) fn save_if_due(&self) {
        self.begin_if_awaited();
        if self.is_loading() || self.host.disk().is_none() || self.saves.purpose().is_some() {
            return;
        }
        let now = self.clock.now();
        let since_try = now.0.saturating_sub(self.saves.last_try_ms.load(Ordering::Relaxed));
        if !self.saves.is_last_good() && (0..RETRY_AFTER_MS).contains(&since_try) {
            return;
        }
        let (changes, since) = (self.unsaved_changes(), now.seconds() - self.saves.last_seconds());
        let points = self.config.save_points();
        let due = points
            .iter()
            .find(|point| changes > 0 && changes >= point.changes && since > point.seconds as i64);
        if let Some(point) = due {
            let (changes, seconds) = (point.changes, point.seconds);
            self.host.note(&format!("{changes} changes in {seconds} seconds. Saving..."));
        }
        if (due.is_some() || self.saves.is_scheduled())
            && let Err(why) = self.begin_background(Purpose::Save, None)
        {
            self.host.log(&format!("No background save: {why}"));
        }
    }

    /// Writes are refused while saves fail, if so configured.
    pub(in crate::node) fn refresh_save_barrier(&self) {
        let is_up = !self.saves.is_last_good()
            && self.config.flag(Directive::StopWritesOnBgsaveError)
            && !self.config.save_points().is_empty();
        self.keyspace.barriers().set(Barrier::SaveFailed, is_up);
    }

    /// All changes that were counted before are in the file.
    pub(super) fn note_saved(&self, dirty: u64) {
        self.saves.last_ms.store(self.clock.now().0, Ordering::Relaxed);
        self.saves.dirty_before.store(dirty, Ordering::Relaxed);
        self.saves.is_last_good.store(true, Ordering::Relaxed);
        self.refresh_save_barrier();
    }

    /// Begins a rewrite of a log that the caller has claimed.
    pub(in crate::node) fn begin_rewrite_of(&self, log: Arc<Log>) -> Result<(), String> {
        let begun = self.begin_background(Purpose::Rewrite, Some(log.clone()));
        begun.inspect_err(|_| log.give_up_rewrite())
    }

    pub(super) fn begin_background(
        &self,
        purpose: Purpose,
        log: Option<Arc<Log>>,
    ) -> Result<(), String> {
        let node = self.durability.node().ok_or("the server is ending")?;
        if purpose == Purpose::Save && self.is_loading() {
            return Err("the data is still being loaded".to_owned());
        }
        let mut running = self.saves.running();
        if let Some(running) = &*running {
            let why = if running.purpose == Purpose::Save { IS_SAVING } else { IS_BUSY };
            return Err(why.to_owned());
        }
        // First of all the thread: a cut can't be taken back.
        let (sender, receiver) = sync_channel::<Task>(1);
        let run = move || receiver.recv().into_iter().for_each(Task::run);
        let thread = std::thread::Builder::new().name("snapshot".into()).spawn(run);
        let thread = thread.map_err(|error| format!("cannot start a thread: {error}"))?;
        if purpose == Purpose::Save {
            self.saves.is_scheduled.store(false, Ordering::Relaxed);
            self.saves.last_try_ms.store(self.clock.now().0, Ordering::Relaxed);
        }
        let mut task = Task {
            node,
            number: self.saves.next_number(),
            log,
            walk: None,
            libraries: CutLibraries::default(),
            keys_saved: Arc::default(),
            dirty: 0,
            started: Instant::now(),
            awaiting: Awaiting::default(),
        };
        if purpose == Purpose::Save {
            task.awaiting = std::mem::take(&mut *self.saves.awaiting());
        }
        task.cut();
        *running = Some(Running {
            purpose,
            started: task.started,
            snapshot: task.walk.as_ref().map(|walk| walk.snapshot().clone()),
            keys_saved: task.keys_saved.clone(),
            is_awaited: !task.awaiting.is_empty(),
            number: task.number,
        });
        drop(running);
        self.saves.add_thread(thread);
        // The thread waits for it.
        let _sent = sender.send(task);
        Ok(())
    }
}

impl Task {
    /// Takes the data as it is from here on, unless a snapshot that was cancelled is not over.
    fn cut(&mut self) {
        let (libraries, node) = (self.libraries.clone(), Arc::downgrade(&self.node));
        let at_cut = move || {
            if let Some(node) = node.upgrade() {
                let now = Arc::clone(&node.scripts.libraries());
                *libraries.lock().unwrap_or_else(|poison| poison.into_inner()) = Some(now);
            }
        };
        let expect = |version| self.log.iter().for_each(|log| log.expect_cut(version));
        self.dirty = self.node.dirty_ever();
        self.walk = self.node.keyspace.begin_snapshot(expect, Box::new(at_cut));
    }

    /// Whether nobody has cancelled it.
    fn is_wanted(&self) -> bool {
        self.node.saves.running().as_ref().is_some_and(|running| running.number == self.number)
    }

    fn run(mut self) {
        while self.walk.is_none() && self.is_wanted() {
            std::thread::sleep(NAP);
            let node = self.node.clone();
            let mut running = node.saves.running();
            if let Some(running) = running.as_mut().filter(|it| it.number == self.number) {
                self.cut();
                running.snapshot = self.walk.as_ref().map(|walk| walk.snapshot().clone());
            }
        }
        let Some(walk) = self.walk.take() else {
            return self.log.iter().for_each(|log| log.give_up_rewrite());
        };
        walk.join_all(&self.node.keyspace);
        match self.log.clone() {
            None => self.save(walk),
            Some(log) => self.rewrite(&log, walk),
        }
    }

    /// Writes all to a file, makes it durable and ends the walk.
    fn write(
        &self,
        file: &(PathBuf, Arc<dyn Disk>),
        mut walk: Walk,
        purpose: Use,
    ) -> io::Result<Saved> {
        let libraries = self.libraries.lock().unwrap_or_else(|poison| poison.into_inner()).take();
        let libraries = libraries.unwrap_or_default();
        let write = || {
            let opened = file.1.create(&file.0)?;
            let facts = (purpose, &*self.keys_saved);
            // Where files can't be locked it is not, which matters to nobody but who starts now.
            let lock = file.1.lock(&file.0).ok();
            let (opened, written) = self.node.write_walk(opened, (&mut walk, &libraries), facts)?;
            opened.sync_data()?;
            Ok((written, lock))
        };
        // In a program that survives a panic the snapshot is over, too: calls would keep what they
        // change for it for ever. Nothing is used any more but the walk, which is only ended.
        let written = catch_unwind(AssertUnwindSafe(write))
            .unwrap_or_else(|_| Err(io::Error::other("its thread has panicked")));
        let copies = walk.snapshot().peak_bytes();
        walk.end(&self.node.keyspace);
        written.map(|(written, lock)| Saved { written, copies, _lock: lock })
    }

    fn rewrite(&self, log: &Log, walk: Walk) {
        log.cut_is_made();
        let base: Option<BaseFile> = log.await_base_file();
        let Some(base) = base else {
            log.give_up_rewrite();
            walk.end(&self.node.keyspace);
            return self.forget();
        };
        let purpose = Use::Base(base.form);
        let written = self.write(&(base.path.clone(), base.disk.clone()), walk, purpose);
        base.written(written.map(drop));
        self.forget();
    }

    /// It is not running any more.
    fn forget(&self) {
        self.node.saves.running().take_if(|running| running.number == self.number);
    }

    fn save(&mut self, walk: Walk) {
        let node = self.node.clone();
        let node = &*node;
        let Some(disk) = node.host.disk() else { return walk.end(&node.keyspace) };
        node.saves.count_begun();
        let (dir, name) = (node.data_dir(), node.config.string(Directive::DbFilename));
        node.remove_unfinished();
        let temporary = node.unfinished_path(self.number);
        let written = self.write(&(temporary.clone(), disk.clone()), walk, Use::Dump);
        let mut running = node.saves.running();
        if running.take_if(|running| running.number == self.number).is_none() {
            drop(running);
            node.host.note("The background save was cancelled");
            self.awaiting.finish(&Err("the save was cancelled".to_owned()));
            return self.remove(&*disk, &temporary);
        }
        // Nobody can cancel it while it gets its name.
        let saved = written.and_then(|written| {
            disk.rename(&temporary, &dir.join(&name))?;
            disk.sync_dir(&dir)?;
            Ok(written)
        });
        node.note_time_taken(self.started);
        match saved {
            Ok(Saved { written: Written { keys, bytes }, copies, .. }) => {
                node.saves.last_copies_bytes.store(copies, Ordering::Relaxed);
                node.note_saved(self.dirty);
                drop(running);
                node.host.note(&format!("Saved {keys} keys in {bytes} bytes as {name}"));
                self.awaiting.finish(&Ok(()));
            }
            Err(error) => {
                // Who waits for it hears of it; nobody else has to.
                if self.awaiting.is_empty() {
                    node.saves.is_last_good.store(false, Ordering::Relaxed);
                    node.refresh_save_barrier();
                }
                drop(running);
                let text = format!("cannot save to {}: {error}", dir.join(&name).display());
                node.host.log(&text);
                self.remove(&*disk, &temporary);
                self.awaiting.finish(&Err(text));
            }
        }
    }

    fn remove(&self, disk: &dyn Disk, path: &Path) {
        let started = Instant::now();
        let _removed = disk.remove(path);
        let latency = &self.node.latency;
        if latency.is_on() {
            let micros = u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX);
            let seconds = || self.node.clock.now().seconds();
            latency.note("rdb-unlink-temp-file", micros, seconds);
        }
    }
}
