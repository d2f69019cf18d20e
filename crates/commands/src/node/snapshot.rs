//! All data in a file, and back: the start of the process, DEBUG RELOAD. How saves and the rewrite
//! of the log take it while calls go on is in `snapshot/background.rs`, and who waits for them in
//! `snapshot/awaited.rs`. The format is the persistence crate's.

mod awaited;
mod background;
mod checked;
mod data;
mod parallel;
mod saves;
#[cfg(test)]
mod tests;
mod unfinished;

pub use awaited::AwaitedSave;
pub(crate) use background::{Begun, Cancelled};
pub(super) use data::Use;
pub use saves::{Purpose, Saves};

use super::Node;
use super::config::Directive;
use super::offline::Strictness;
use crate::groups::{hash, list, scripting, set, zset};
use russet_base::UnixMillis;
use russet_engine::barrier::Barrier;
use russet_engine::keys::{Effects, Keys};
use russet_engine::keyspace::Location;
use russet_engine::once::OnceRecord;
use russet_engine::store::raw::table::NewValue;
use russet_engine::value::Object;
use russet_persistence::disk::Disk;
use russet_persistence::rdb::load::{self, LoadOptions, LoadedKey, Report, Target};
use russet_persistence::rdb::save::Written;
use russet_persistence::rdb::{RdbError, Rules};
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

/// Keys that are loaded between two looks at their sizes.
const KEYS_PER_PUBLISH: u64 = 1024;

/// How keys that are loaded meet those that are there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meeting {
    /// They don't: a key that is there is an error.
    Refuse,
    /// The loaded one stays.
    Replace,
}

/// What becomes of keys and fields of a file whose time is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Overdue {
    Drop,
    /// They stay for now: what comes behind the file, the increments of a log, may have changed
    /// them or given them another deadline.
    Keep,
}

/// The time at which data is loaded that may change afterwards: no deadline is in the past. What
/// counts from now on, as the use of keys, goes by the real time.
pub(super) const LOAD_TIME: UnixMillis = UnixMillis(0);

impl Overdue {
    /// The time that deadlines are compared with.
    fn load_time(self, now: UnixMillis) -> UnixMillis {
        match self {
            Overdue::Drop => now,
            Overdue::Keep => LOAD_TIME,
        }
    }

    fn set_time(self, keys: &mut Keys) {
        if self == Overdue::Keep {
            keys.real_time = Some(keys.now);
            keys.now = LOAD_TIME;
        }
    }
}

/// What the end of the process is to do about the data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EndOptions {
    /// Save or don't; by default if there are save points.
    pub saves: Option<bool>,
    /// End even if saving fails.
    pub is_forced: bool,
}

impl EndOptions {
    /// From the options of SHUTDOWN, which directives have, too.
    pub fn parse(options: &str) -> Self {
        let has = |wanted| options.split(' ').any(|option| option == wanted);
        let saves = if has("save") { Some(true) } else { has("nosave").then_some(false) };
        EndOptions { saves, is_forced: has("force") }
    }
}

impl Node {
    /// What decides the forms of values that are loaded.
    pub(crate) fn value_rules(&self) -> Rules {
        Rules {
            set: set::rules_of(self),
            hash: hash::limits_of(self),
            list: list::limits_of(self),
            zset: zset::limits_of(self),
        }
    }

    /// Changes since the data was last saved.
    pub fn unsaved_changes(&self) -> u64 {
        self.dirty_ever().saturating_sub(self.saves.dirty_before.load(Ordering::Relaxed))
    }

    fn dirty_ever(&self) -> u64 {
        self.stats.sum(|worker| worker.dirty.read())
    }

    pub(super) fn data_dir(&self) -> PathBuf {
        OsStr::from_bytes(&self.config.text(Directive::Dir)).into()
    }

    /// Saves all data under `dbfilename`. Every shard is held. The file that was there is replaced
    /// once the new one is complete and on disk.
    pub(crate) fn save(&self, keys: &mut Keys) -> Result<Written, String> {
        let disk = self.host.disk().ok_or("there is no directory to save to")?;
        let name = self.config.string(Directive::DbFilename);
        let dir = self.data_dir();
        self.remove_unfinished();
        let temporary = self.unfinished_path(self.saves.next_number());
        self.saves.count_begun();
        let saved = self.save_as(&*disk, keys, (&dir, &temporary, &dir.join(&name)));
        match saved {
            Ok(written) => {
                self.note_saved(self.dirty_ever());
                let Written { keys, bytes } = written;
                self.host.note(&format!("Saved {keys} keys in {bytes} bytes as {name}"));
                Ok(written)
            }
            Err(error) => {
                let _removed = disk.remove(&temporary);
                let text = format!("cannot save to {}: {error}", dir.join(&name).display());
                self.host.log(&text);
                Err(text)
            }
        }
    }

    fn save_as(
        &self,
        disk: &dyn Disk,
        keys: &mut Keys,
        (dir, temporary, path): (&Path, &Path, &Path),
    ) -> io::Result<Written> {
        let file = disk.create(temporary)?;
        // Where files can't be locked it is not, which matters to nobody but who starts right now.
        let _lock = disk.lock(temporary);
        let (file, written) = self.write_data(file, keys, Use::Dump)?;
        file.sync_data()?;
        drop(file);
        disk.rename(temporary, path)?;
        disk.sync_dir(dir)?;
        Ok(written)
    }

    /// Lets `action` have the keys of all shards, as nobody's call.
    pub(super) fn with_all_keys<R>(&self, action: impl FnOnce(&mut Keys) -> R) -> R {
        let locked = self.keyspace.lock(self.keyspace.all_shards());
        let mut effects = Effects::default();
        let mut keys = self.keyspace.keys(locked, &mut effects, (0, self.clock.now()));
        let result = action(&mut keys);
        keys.publish();
        result
    }

    pub(super) fn is_loading(&self) -> bool {
        self.keyspace.barriers().is_up(Barrier::Loading)
    }

    /// Whether an end with these options saves. What was loaded so far is not to replace the file
    /// that it comes from, whoever asks for it.
    pub fn saves_at_end(&self, options: EndOptions) -> bool {
        if self.is_loading() {
            return false;
        }
        let by_default = || self.host.disk().is_some() && !self.config.save_points().is_empty();
        options.saves.unwrap_or_else(by_default)
    }

    /// Saves before the process ends, if it is to, and lets nothing be written from then on. An
    /// error says why it should not end.
    pub fn save_at_end(&self, options: EndOptions) -> Result<(), String> {
        if self.saves.is_end_decided.load(Ordering::Relaxed) {
            return Ok(());
        }
        // A client has asked for an end that saves: this one waits for that, though it would not.
        let begun = self.saves.ending().clone();
        if let Some(save) = begun {
            return save.await_outcome(self);
        }
        self.await_migrations();
        self.check_log_at_end(options)?;
        if !self.saves_at_end(options) {
            return Ok(());
        }
        self.save_and_wait(options)
    }

    /// Loads the file under `dbfilename`, if there is one: at the start, on all cores, before
    /// anyone is served. No shard is held.
    pub fn load_snapshot(&self) -> Result<Option<Report>, String> {
        self.load_file(|source| self.load_on_all_cores(source, Overdue::Drop))
    }

    /// Loads the file under `dbfilename`, if there is one. Every shard is held.
    pub(crate) fn load(&self, keys: &mut Keys, meeting: Meeting) -> Result<Option<Report>, String> {
        self.load_file(|source| self.load_from(keys, source, (meeting, Overdue::Drop)))
    }

    fn load_file(
        &self,
        load: impl FnOnce(Box<dyn io::Read + Send>) -> Result<Report, RdbError>,
    ) -> Result<Option<Report>, String> {
        let Some(disk) = self.host.disk() else { return Ok(None) };
        let path = self.data_dir().join(self.config.string(Directive::DbFilename));
        let source = match disk.read(&path) {
            Ok(source) => source,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(format!("cannot read {}: {error}", path.display())),
        };
        self.begin_loading(disk.len(&path).unwrap_or(0));
        let report = load(source);
        let report = report.map_err(|error| format!("{} {error}", path.display()))?;
        self.saves.keys_loaded.store(report.keys_loaded, Ordering::Relaxed);
        self.saves.keys_expired.store(report.keys_expired, Ordering::Relaxed);
        Ok(Some(report))
    }

    /// Loads the base of a log, which may go on with commands. No shard is held.
    pub(super) fn load_base(&self, source: impl io::Read) -> Result<Report, RdbError> {
        self.load_on_all_cores(source, Overdue::Keep)
    }

    pub(super) fn load_from(
        &self,
        keys: &mut Keys,
        source: impl io::Read,
        (meeting, overdue): (Meeting, Overdue),
    ) -> Result<Report, RdbError> {
        let (rules, now) = (self.value_rules(), overdue.load_time(keys.now));
        let Strictness { checks_sum, tries_any_version } = self.strictness();
        let options = LoadOptions { rules: &rules, now, checks_sum, tries_any_version };
        let (db, now_before, real_time) = (keys.db, keys.now, keys.real_time);
        overdue.set_time(keys);
        let mut target = NodeTarget { node: self, keys, meeting, loaded: 0 };
        let report = load::load(source, options, &mut target);
        keys.publish();
        (keys.db, keys.now, keys.real_time) = (db, now_before, real_time);
        keys.effects.notices.clear();
        report
    }
}

/// Puts what a file holds into the keyspace.
struct NodeTarget<'t, 'k> {
    node: &'t Node,
    keys: &'t mut Keys<'k>,
    meeting: Meeting,
    loaded: u64,
}

impl Target for NodeTarget<'_, '_> {
    fn databases(&self) -> usize {
        self.node.keyspace.databases()
    }

    fn key(&mut self, loaded: LoadedKey<'_>, value: NewValue<'_, Object>) -> Result<(), String> {
        let keys = &mut *self.keys;
        self.loaded += 1;
        if keys.db != loaded.db || self.loaded.is_multiple_of(KEYS_PER_PUBLISH) {
            keys.publish();
            keys.db = loaded.db;
        }
        match parallel::put(keys, loaded, value, self.meeting) {
            true => Ok(()),
            false => Err(parallel::TWICE.to_owned()),
        }
    }

    fn function(&mut self, source: &[u8]) -> Result<(), String> {
        scripting::function::load_saved(self.node, source)
            .map_err(|refusal| refusal.wire().into_owned())
    }

    fn request(&mut self, db: usize, id: &[u8], record: OnceRecord<'_>) {
        let Location { shard, hash } = self.keys.locate(id);
        let now = self.node.clock.now();
        self.keys.shard(usize::from(shard)).once.put(db, (id, hash), record, now);
    }
}
