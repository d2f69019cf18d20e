//! The directory of a log: its manifest, its files, the lock that keeps others out. Files are made
//! so that a crash at any moment leaves a log that can be loaded.

use super::LogError;
use super::file::Opened;
use super::manifest::{FileKind, LogFile, MANIFEST_BYTES_MAX, Manifest};
use super::read::Target;
use crate::data_file::Form;
use crate::disk::{Disk, DiskFile, DiskLock};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What the names of files begin with that are not complete yet.
pub(super) const TEMPORARY_PREFIX: &str = "temp-";

/// Where a log is, and how its files are called.
#[derive(Clone, Debug)]
pub struct LogNames {
    /// The working directory, in which a log of old servers would be.
    pub root: PathBuf,
    /// `appenddirname`.
    pub dir: String,
    /// `appendfilename`.
    pub file: String,
}

/// What a load has found.
#[derive(Clone, Debug, Default)]
pub struct LoadReport {
    pub files: usize,
    pub bytes: u64,
    /// What whoever looks after the server should know.
    pub warnings: Vec<String>,
}

pub struct LogDirectory {
    disk: Arc<dyn Disk>,
    names: LogNames,
    path: PathBuf,
    manifest: Manifest,
    /// Whether the manifest on the disk is this one. It is not known after a write that failed.
    is_manifest_written: bool,
    /// Whether the log begins here, with nothing or with a base of data that is there.
    is_new: bool,
    /// The last number that an increment was given.
    last_number: u64,
    /// None while another process may have it.
    lock: Option<Box<dyn DiskLock>>,
}

impl LogDirectory {
    /// Opens the directory, or makes it, and keeps other processes out as long as it lives.
    pub fn open(disk: Arc<dyn Disk>, names: LogNames) -> Result<Self, LogError> {
        let path = names.root.join(&names.dir);
        let manifest = Manifest::default();
        let mut directory = LogDirectory {
            disk,
            names,
            path,
            manifest,
            is_manifest_written: false,
            is_new: false,
            last_number: 0,
            lock: None,
        };
        directory.keep_others_out()?;
        directory.read_manifest()?;
        directory.is_new = directory.is_empty();
        Ok(directory)
    }

    /// Locks the directory, unless it is locked. The lock's file may have been removed, and the
    /// directory with it.
    pub(super) fn keep_others_out(&mut self) -> Result<(), LogError> {
        if self.lock.as_ref().is_some_and(|lock| lock.is_in_place()) {
            return Ok(());
        }
        self.lock = None;
        let made = self.disk.create_dir(&self.path);
        let made = made.and_then(|()| self.disk.sync_dir(&self.names.root));
        made.map_err(LogError::io(format!("make the directory {}", self.path.display())))?;
        let lock_path = self.path.join(format!("{}.lock", self.names.file));
        let lock = self.disk.lock(&lock_path).map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock => LogError::InUse { path: self.path.display().to_string() },
            _ => LogError::io(format!("lock {}", lock_path.display()))(error),
        })?;
        self.lock = Some(lock);
        Ok(())
    }

    /// A file of the log that is not there, a manifest that is not the one that was written, or the
    /// last increment if it has not as many bytes as were written: someone else has changed the
    /// directory.
    pub(super) fn missing_file(&self, last_len: Option<u64>) -> Option<String> {
        let last = self.last_increment();
        let is_there = |file: &LogFile| {
            let len = self.disk.len(&self.path.join(&file.name));
            let is_last = file.kind == FileKind::Increment && Some(file.number) == last;
            match len {
                Ok(len) => !is_last || last_len.is_none_or(|last_len| len == last_len),
                Err(error) => error.kind() != io::ErrorKind::NotFound,
            }
        };
        let mut files = self.manifest.base().into_iter().chain(self.manifest.increments());
        let missing = files.find(|file| !is_there(file)).map(|file| file.name.clone());
        missing.or_else(|| (!self.is_manifest_there()).then(|| self.manifest_name()))
    }

    fn is_manifest_there(&self) -> bool {
        match self.read(&self.manifest_path(), MANIFEST_BYTES_MAX) {
            _ if !self.is_manifest_written => true,
            Ok(bytes) => bytes == self.manifest.to_text().as_bytes(),
            Err(error) => error.kind() != io::ErrorKind::NotFound,
        }
    }

    fn manifest_name(&self) -> String {
        format!("{}.manifest", self.names.file)
    }

    fn manifest_path(&self) -> PathBuf {
        self.path.join(self.manifest_name())
    }

    /// Where something is written that is not to have its name before it is complete.
    fn temporary_path(&self, name: &str) -> PathBuf {
        self.path.join(format!("{TEMPORARY_PREFIX}{name}"))
    }

    fn read_manifest(&mut self) -> Result<(), LogError> {
        let listed = self.disk.list(&self.path).map_err(LogError::io("list the log's files"))?;
        match self.read(&self.manifest_path(), MANIFEST_BYTES_MAX) {
            Ok(bytes) => self.manifest = Manifest::parse(&bytes)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.check_unexplained(&listed)?;
            }
            Err(error) => return Err(LogError::io("read the log's manifest")(error)),
        }
        // Files may be left of attempts that failed: their numbers are not used again.
        let numbers = self.manifest.files.iter().map(|file| file.number);
        let left = listed.iter().filter_map(|name| self.number_of(name));
        self.last_number = numbers.chain(left).max().unwrap_or(0);
        self.name_first_base(&listed)?;
        self.adopt_old_file(&listed)
    }

    /// Gives a base its name, if the process ended between the manifest and that.
    fn name_first_base(&self, listed: &[String]) -> Result<(), LogError> {
        let Some(base) = self.manifest.base() else { return Ok(()) };
        let temporary = format!("{TEMPORARY_PREFIX}{}", base.name);
        match listed.contains(&base.name) || !listed.contains(&temporary) {
            true => Ok(()),
            false => self.give_name(&base.name),
        }
    }

    fn give_name(&self, name: &str) -> Result<(), LogError> {
        let renamed = self.disk.rename(&self.temporary_path(name), &self.path.join(name));
        renamed.and_then(|()| self.sync_dir()).map_err(LogError::io("name the base of the log"))
    }

    /// Removes what attempts that failed, or did not end, have left. Torn ends are kept. To be
    /// called once all that the manifest names was loaded, so that a manifest which is wrong costs
    /// nothing.
    pub(super) fn remove_left(&self) {
        self.remove_files(|name| {
            self.is_temporary(name) || (self.is_own(name) && !self.manifest.names(name))
        });
    }

    /// The same where nothing was loaded, for the log begins anew: only what is never part of a
    /// log, a large call that was on its way when the process ended say.
    pub(super) fn remove_temporary(&self) {
        self.remove_files(|name| self.is_temporary(name));
    }

    fn remove_files(&self, is_left: impl Fn(&str) -> bool) {
        let names = self.disk.list(&self.path).unwrap_or_default();
        for name in names.iter().filter(|name| is_left(name)) {
            // One that is left takes room, and nothing more.
            let _removed = self.disk.remove(&self.path.join(name));
        }
    }

    fn is_temporary(&self, name: &str) -> bool {
        let name = name.strip_prefix(TEMPORARY_PREFIX);
        name.is_some_and(|rest| self.is_own(rest) || rest == self.manifest_name())
    }

    /// Whether a file has a name of those that are made here.
    fn is_own(&self, name: &str) -> bool {
        let Some(number) = self.number_of(name) else { return false };
        let bases = [Form::Rdb, Form::Commands].map(|form| self.base_name(number, form));
        name == self.increment_name(number) || bases.iter().any(|base| base == name)
    }

    fn increment_name(&self, number: u64) -> String {
        increment_name(&self.names.file, number)
    }

    fn base_name(&self, number: u64, form: Form) -> String {
        let kind = if form == Form::Rdb { "rdb" } else { "aof" };
        format!("{}.{number}.base.{kind}", self.names.file)
    }

    /// Removes a file that was made in vain. After an error it is not known which manifest there
    /// is: what the one on the disk names stays.
    pub(super) fn discard(&self, name: &str) {
        let is_unnamed = match self.read(&self.manifest_path(), MANIFEST_BYTES_MAX) {
            Ok(bytes) => Manifest::parse(&bytes).is_ok_and(|manifest| !manifest.names(name)),
            Err(error) => error.kind() == io::ErrorKind::NotFound,
        };
        if is_unnamed {
            // One that is left takes room until the log is opened the next time.
            let _removed = self.disk.remove(&self.path.join(name));
        }
    }

    /// The same for a base, which may have no name yet.
    pub(super) fn discard_base(&self, name: &str) {
        match self.manifest.files.is_empty() {
            true => _ = self.disk.remove(&self.temporary_path(name)),
            false => self.discard(name),
        }
    }

    /// The number in the name of a file of this log.
    fn number_of(&self, name: &str) -> Option<u64> {
        name.strip_prefix(&self.names.file)?.strip_prefix('.')?.split('.').next()?.parse().ok()
    }

    /// Without a manifest there can be files only that were made in vain.
    fn check_unexplained(&self, listed: &[String]) -> Result<(), LogError> {
        for name in listed.iter().filter(|name| self.number_of(name).is_some()) {
            if self.holds_data(&self.path.join(name))? {
                let why = format!("log file {name} is there, but no manifest says what it is");
                return Err(LogError::Unexplained { why });
            }
        }
        Ok(())
    }

    /// Whether there is a file with anything in it.
    fn holds_data(&self, path: &Path) -> Result<bool, LogError> {
        Ok(self.first_byte(path)?.is_some_and(|len| len > 0))
    }

    /// How much of a file's first byte there is; None without a file. One that can't be read must
    /// not pass for one that is not there: it may hold everything.
    fn first_byte(&self, path: &Path) -> Result<Option<usize>, LogError> {
        match self.disk.read(path).and_then(|mut file| file.read(&mut [0])) {
            Ok(len) => Ok(Some(len)),
            Err(error) if is_no_file(&error) => Ok(None),
            Err(error) => Err(LogError::io("look at what is there of a log")(error)),
        }
    }

    /// A log of servers before Redis 7 is one file beside the directory: it becomes the base.
    fn adopt_old_file(&mut self, listed: &[String]) -> Result<(), LogError> {
        let old_path = self.names.root.join(&self.names.file);
        let is_adopted = match self.manifest.files.as_slice() {
            [] => false,
            // The move was not completed.
            [only] => only.name == self.names.file && !listed.contains(&self.names.file),
            _ => return Ok(()),
        };
        let is_wanted = self.manifest.files.is_empty() || is_adopted;
        if !is_wanted || self.first_byte(&old_path)?.is_none() {
            return Ok(());
        }
        let base = LogFile { name: self.names.file.clone(), number: 1, kind: FileKind::Base };
        self.write_manifest(&Manifest { files: vec![base] })?;
        let moved = self.disk.rename(&old_path, &self.path.join(&self.names.file));
        moved.map_err(LogError::io("move the old log into its directory"))?;
        let synced = self.sync_dir().and_then(|()| self.disk.sync_dir(&self.names.root));
        synced.map_err(LogError::io("make the move of the old log durable"))
    }

    /// Whether there is nothing to load.
    pub fn is_empty(&self) -> bool {
        self.manifest.files.iter().all(|file| file.kind == FileKind::History)
    }

    pub(super) fn is_new(&self) -> bool {
        self.is_new
    }

    fn sync_dir(&self) -> io::Result<()> {
        self.disk.sync_dir(&self.path)
    }

    fn read(&self, path: &Path, bytes_max: usize) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let mut reader = self.disk.read(path)?.take(bytes_max as u64 + 1);
        reader.read_to_end(&mut bytes)?;
        match bytes.len() <= bytes_max {
            true => Ok(bytes),
            false => Err(io::Error::other("it is too long")),
        }
    }

    /// Puts a new manifest in place of the old one.
    fn write_manifest(&mut self, manifest: &Manifest) -> Result<(), LogError> {
        let path = self.manifest_path();
        let temporary = self.temporary_path(&self.manifest_name());
        self.is_manifest_written = false;
        let written = self.disk.create(&temporary).and_then(|mut file| {
            file.write_all(manifest.to_text().as_bytes())?;
            file.sync_data()
        });
        written
            .and_then(|()| self.disk.rename(&temporary, &path))
            .and_then(|()| self.sync_dir())
            .map_err(LogError::io("write the log's manifest"))?;
        self.manifest = manifest.clone();
        self.is_manifest_written = true;
        Ok(())
    }

    /// Runs all that the log holds. A torn end is cut, if `may_cut` says so.
    pub fn load(&self, target: &mut dyn Target, may_cut: bool) -> Result<LoadReport, LogError> {
        let mut report = LoadReport::default();
        let last = self.manifest.increments().next_back();
        for file in self.manifest.base().into_iter().chain(self.manifest.increments()) {
            let is_last = last.is_none_or(|last| last == file);
            self.load_file(file, (target, &mut report), may_cut && is_last)
                .map_err(|error| error.in_file(&file.name))?;
            report.files += 1;
        }
        Ok(report)
    }

    fn load_file(
        &self,
        file: &LogFile,
        (target, report): (&mut dyn Target, &mut LoadReport),
        may_cut: bool,
    ) -> Result<(), LogError> {
        let path = self.path.join(&file.name);
        let (opened, replayed) = Opened::load(&*self.disk, &path, target)?;
        let verified = opened.verified;
        report.bytes += verified.end;
        if let Some(why) = verified.why_cut.filter(|_| !may_cut) {
            return Err(LogError::damage(verified.end, why));
        }
        replayed?;
        if let Some(why) = verified.why_cut {
            let line = opened.cut(&self.path, &file.name).map_err(LogError::io("cut its end"))?;
            report.warnings.push(format!("{line} ({why})"));
        }
        report.warnings.extend(opened.unchecked_warning(&file.name));
        Ok(())
    }

    /// Makes the file of a new increment. It is no part of the log before it is committed.
    pub(super) fn create_increment(&mut self) -> io::Result<(LogFile, Arc<dyn DiskFile>)> {
        self.last_number += 1;
        let number = self.last_number;
        let name = self.increment_name(number);
        let file = self.disk.create(&self.path.join(&name))?;
        self.sync_dir().inspect_err(|_| self.discard(&name))?;
        Ok((LogFile { name, number, kind: FileKind::Increment }, file.into()))
    }

    /// The first increment of a log that goes on.
    pub(super) fn begin_increment(&mut self) -> Result<Arc<dyn DiskFile>, LogError> {
        let made = self.create_increment();
        let (name, file) = made.map_err(LogError::io("make a new file of the log"))?;
        self.commit_increment(name)?;
        Ok(file)
    }

    /// Makes an increment part of the log: what is in it is loaded from now on.
    pub(super) fn commit_increment(&mut self, file: LogFile) -> Result<(), LogError> {
        let mut manifest = self.manifest.clone();
        let name = file.name.clone();
        manifest.files.push(file);
        self.write_manifest(&manifest).inspect_err(|_| self.discard(&name))
    }

    /// Where files are written that may become increments.
    pub(super) fn unnamed(&self) -> UnnamedFiles {
        let disk = self.disk.clone();
        UnnamedFiles { disk, dir: self.path.clone(), file: self.names.file.clone() }
    }

    /// Makes a file that is complete and durable an increment, and begins the next.
    pub(super) fn commit_whole(&mut self, path: &Path) -> Result<Arc<dyn DiskFile>, LogError> {
        self.last_number += 1;
        let number = self.last_number;
        let name = self.increment_name(number);
        let whole = LogFile { name: name.clone(), number, kind: FileKind::Increment };
        let named = self.disk.rename(path, &self.path.join(&name));
        let made = named.and_then(|()| self.create_increment());
        let made = made.map_err(LogError::io("make a new file of the log"));
        let committed = made.and_then(|(next, file)| {
            let mut manifest = self.manifest.clone();
            let next_name = next.name.clone();
            manifest.files.extend([whole, next]);
            self.write_manifest(&manifest).inspect_err(|_| self.discard(&next_name))?;
            Ok(file)
        });
        committed.inspect_err(|_| self.discard(&name))
    }

    /// How many files the log has.
    pub(super) fn files(&self) -> usize {
        self.manifest.files.len()
    }

    /// The number of the increment that was committed last.
    pub(super) fn last_increment(&self) -> Option<u64> {
        self.manifest.increments().next_back().map(|file| file.number)
    }

    pub(super) fn disk(&self) -> Arc<dyn Disk> {
        self.disk.clone()
    }

    /// The next base: how it is called, and where it is to be written.
    pub(super) fn next_base(&mut self, form: Form) -> (LogFile, PathBuf) {
        self.last_number += 1;
        let number = self.last_number;
        let name = self.base_name(number, form);
        // Without a manifest it has no name before there is one.
        let path = match self.manifest.files.is_empty() {
            true => self.temporary_path(&name),
            false => self.path.join(&name),
        };
        (LogFile { name, number, kind: FileKind::Base }, path)
    }

    /// Makes a base that is complete the log's own, with the increments from a number on. The files
    /// that it replaces are removed.
    pub(super) fn replace_base(&mut self, base: LogFile, first: u64) -> Result<(), LogError> {
        let old = self.commit_base(base, first)?;
        self.remove_old(&old);
        Ok(())
    }

    /// Makes a base the log's own, and returns what it replaces.
    fn commit_base(&mut self, base: LogFile, first: u64) -> Result<Vec<LogFile>, LogError> {
        self.sync_dir().map_err(LogError::io("make the name of the new base durable"))?;
        let is_kept = |file: &LogFile| file.kind == FileKind::Increment && file.number >= first;
        let (kept, old): (Vec<LogFile>, Vec<LogFile>) =
            self.manifest.files.iter().cloned().partition(is_kept);
        let files = std::iter::once(base).chain(kept).collect();
        self.write_manifest(&Manifest { files })?;
        Ok(old)
    }

    /// Makes a base and an increment, both complete, all that the log consists of. The files that
    /// they replace are removed.
    pub(super) fn begin_with(&mut self, base: LogFile, increment: LogFile) -> Result<(), LogError> {
        self.sync_dir().map_err(LogError::io("make the name of the new base durable"))?;
        let (name, base_name) = (increment.name.clone(), base.name.clone());
        let old = self.manifest.files.clone();
        let written = self.write_manifest(&Manifest { files: vec![base, increment] });
        written.inspect_err(|_| self.discard(&name))?;
        if old.is_empty() {
            self.give_name(&base_name)?;
        }
        self.remove_old(&old);
        Ok(())
    }

    fn remove_old(&self, old: &[LogFile]) {
        // One that is left takes room, and nothing more.
        let paths: Vec<PathBuf> = old.iter().map(|file| self.path.join(&file.name)).collect();
        self.disk.remove_all(&paths);
    }

    /// Makes a base all that the log consists of. What was there before is removed.
    ///
    /// There may be no manifest yet, and without one a file of the log is a riddle: so the base
    /// gets its name after the manifest has it.
    pub fn begin_with_base(&mut self, bytes: &[u8], form: Form) -> Result<(), LogError> {
        self.is_new = true;
        let (base, _) = self.next_base(form);
        let name = base.name.clone();
        let temporary = self.temporary_path(&name);
        let written = self.disk.create(&temporary).and_then(|mut file| {
            file.write_all(bytes)?;
            file.sync_data()
        });
        if let Err(error) = written {
            // What is left of it is removed when the log is opened the next time.
            let _removed = self.disk.remove(&temporary);
            return Err(LogError::io("write the base of the log")(error));
        }
        let old = self.commit_base(base, u64::MAX)?;
        self.give_name(&name)?;
        self.remove_old(&old);
        Ok(())
    }

    /// Bytes of the base, and of all files of the log.
    pub fn sizes(&self) -> (u64, u64) {
        let size = |file: &LogFile| self.disk.len(&self.path.join(&file.name)).unwrap_or(0);
        let base = self.manifest.base().map_or(0, size);
        (base, base + self.manifest.increments().map(size).sum::<u64>())
    }
}

/// Files that are no part of a log yet. If they never are, they are removed when it is opened the
/// next time.
pub(super) struct UnnamedFiles {
    pub disk: Arc<dyn Disk>,
    dir: PathBuf,
    file: String,
}

impl UnnamedFiles {
    pub fn path(&self, number: u64) -> PathBuf {
        let name = increment_name(&self.file, number);
        self.dir.join(format!("{TEMPORARY_PREFIX}{name}"))
    }
}

fn increment_name(file: &str, number: u64) -> String {
    format!("{file}.{number}.incr.aof")
}

fn is_no_file(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::IsADirectory)
}
