//! A disk in memory for tests. It fails at a given operation, loses what was not synced when the
//! power goes, and tears or reorders what was on its way. Every change counts as one operation, so
//! that a test can walk through all of them.

use super::{Disk, DiskFile, DiskLock};
use russet_base::Random;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What the operation that a fault was set for does instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nothing is done, and an error returned. A failed sync also gives the unsynced bytes up, as
    /// Linux does: they can be read until the power goes, and no later sync saves them.
    Error,
    /// An append writes half of its bytes; anything else fails.
    Short,
    /// The power goes: this operation and all later ones fail.
    PowerOff,
    /// It panics, as if there were a bug.
    Panic,
}

/// What is left of operations that no sync covered, when the power goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// Nothing.
    All,
    /// The first ones, by chance how many; the last of them may be cut.
    Tail,
    /// Any of them: writes may be missing before others that are there.
    Any,
}

#[derive(Clone, Default)]
pub struct SimulatedDisk {
    state: Arc<Mutex<State>>,
}

#[derive(Clone, Default)]
struct State {
    files: Vec<FileState>,
    /// Directory entries as running programs see them.
    entries: BTreeMap<PathBuf, usize>,
    dirs: BTreeSet<PathBuf>,
    /// Entries as of the last sync of their directory.
    synced_entries: BTreeMap<PathBuf, usize>,
    unsynced_entries: Vec<EntryChange>,
    locks: BTreeSet<PathBuf>,
    /// Files that may not be opened for writing.
    read_only: BTreeSet<PathBuf>,
    operations: u64,
    faults: BTreeMap<u64, Fault>,
    /// Bytes that all files together may have.
    bytes_max: Option<usize>,
    is_off: bool,
}

#[derive(Clone, Default)]
struct FileState {
    bytes: Vec<u8>,
    synced: Vec<u8>,
    unsynced: Vec<ByteChange>,
}

#[derive(Clone)]
enum ByteChange {
    Write { at: usize, bytes: Vec<u8> },
    Cut { len: usize },
}

#[derive(Clone)]
enum EntryChange {
    Link { path: PathBuf, file: usize },
    Rename { from: PathBuf, to: PathBuf, file: usize },
    Remove { path: PathBuf },
}

impl SimulatedDisk {
    pub fn new() -> Self {
        Self::default()
    }

    /// Changes and syncs so far.
    pub fn operations(&self) -> u64 {
        self.state().operations
    }

    /// Has the operation with this number, counted from 0, meet a fault.
    pub fn fail_at(&self, operation: u64, fault: Fault) {
        self.state().faults.insert(operation, fault);
    }

    /// Has the disk be full when its files have so many bytes.
    pub fn set_bytes_max(&self, bytes_max: Option<usize>) {
        self.state().bytes_max = bytes_max;
    }

    /// From now on a file may be read and renamed, but not written.
    pub fn set_read_only(&self, path: &Path) {
        self.state().read_only.insert(path.to_owned());
    }

    /// Bytes of all files that have a name.
    pub fn bytes(&self) -> usize {
        self.state().bytes()
    }

    /// From now on nothing fails that no new fault was set for.
    pub fn mend(&self) {
        let mut state = self.state();
        state.faults.clear();
        state.is_off = false;
    }

    /// The disk as it is found after the power went, now. Locks are gone; this one is untouched.
    pub fn after_power_loss(&self, loss: Loss, seed: u64) -> Self {
        let state = self.state().clone();
        let mut random = Random::from_seed(seed);
        let kept = kept_of(state.unsynced_entries.len(), loss, &mut random);
        let mut entries = state.synced_entries;
        for (change, is_kept) in state.unsynced_entries.iter().zip(kept) {
            if is_kept {
                change.apply(&mut entries);
            }
        }
        let files = state.files.iter().map(|file| file.after_power_loss(loss, &mut random));
        let state = State {
            files: files.collect(),
            synced_entries: entries.clone(),
            entries,
            dirs: state.dirs,
            ..State::default()
        };
        Self { state: Arc::new(Mutex::new(state)) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts an operation; the fault it meets, unless that is an error already.
    fn operation(&self) -> io::Result<(MutexGuard<'_, State>, Option<Fault>)> {
        let mut state = self.state();
        if state.is_off {
            return Err(io::Error::other("the power is off"));
        }
        let number = state.operations;
        state.operations += 1;
        let fault = state.faults.get(&number).copied();
        assert!(fault != Some(Fault::Panic), "a panic that a test has asked for");
        if fault == Some(Fault::PowerOff) {
            state.is_off = true;
            return Err(io::Error::other("the power is off"));
        }
        Ok((state, fault))
    }

    /// An operation that is done, or fails as a whole.
    fn whole_operation(&self) -> io::Result<MutexGuard<'_, State>> {
        match self.operation()? {
            (state, None) => Ok(state),
            (_, Some(_)) => Err(io::Error::other("the disk failed")),
        }
    }
}

/// Which of `count` unsynced changes are left.
fn kept_of(count: usize, loss: Loss, random: &mut Random) -> Vec<bool> {
    let whole = match loss {
        Loss::All => 0,
        Loss::Tail | Loss::Any => random.below(count as u64 + 1) as usize,
    };
    (0..count).map(|index| index < whole || (loss == Loss::Any && random.below(2) == 0)).collect()
}

impl FileState {
    fn change(&mut self, change: ByteChange) {
        change.apply(&mut self.bytes);
        self.unsynced.push(change);
    }

    fn after_power_loss(&self, loss: Loss, random: &mut Random) -> Self {
        let mut bytes = self.synced.clone();
        let kept = kept_of(self.unsynced.len(), loss, random);
        for (change, is_kept) in self.unsynced.iter().zip(&kept) {
            if *is_kept {
                change.apply(&mut bytes);
            }
        }
        // The first that is not there may be there in part.
        if let Some(first) = kept.iter().position(|is_kept| !is_kept)
            && let ByteChange::Write { at, bytes: written } = &self.unsynced[first]
            && loss != Loss::All
        {
            let cut = random.below(written.len() as u64 + 1) as usize;
            ByteChange::Write { at: *at, bytes: written[..cut].to_vec() }.apply(&mut bytes);
        }
        Self { synced: bytes.clone(), bytes, unsynced: Vec::new() }
    }
}

impl ByteChange {
    fn apply(&self, file: &mut Vec<u8>) {
        match self {
            Self::Write { at, bytes } => {
                let end = at + bytes.len();
                if file.len() < end {
                    file.resize(end, 0);
                }
                file[*at..end].copy_from_slice(bytes);
            }
            Self::Cut { len } => file.resize(*len, 0),
        }
    }
}

impl EntryChange {
    fn apply(&self, entries: &mut BTreeMap<PathBuf, usize>) {
        match self {
            Self::Link { path, file } => {
                entries.insert(path.clone(), *file);
            }
            Self::Rename { from, to, file } => {
                entries.remove(from);
                entries.insert(to.clone(), *file);
            }
            Self::Remove { path } => {
                entries.remove(path);
            }
        }
    }

    fn is_in(&self, dir: &Path) -> bool {
        let (Self::Link { path, .. } | Self::Rename { to: path, .. } | Self::Remove { path }) =
            self;
        path.parent() == Some(dir)
    }
}

impl State {
    fn bytes(&self) -> usize {
        self.entries.values().map(|file| self.files[*file].bytes.len()).sum()
    }

    fn find(&self, path: &Path) -> io::Result<usize> {
        self.entries.get(path).copied().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn change_entry(&mut self, change: EntryChange) {
        change.apply(&mut self.entries);
        self.unsynced_entries.push(change);
    }
}

impl Disk for SimulatedDisk {
    fn read(&self, path: &Path) -> io::Result<Box<dyn Read + Send>> {
        let state = self.state();
        let file = state.find(path)?;
        Ok(Box::new(io::Cursor::new(state.files[file].bytes.clone())))
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        let mut state = self.whole_operation()?;
        let parent = path.parent().unwrap_or(Path::new(""));
        if !state.dirs.contains(parent) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let file = match state.find(path) {
            Ok(file) => {
                state.files[file].change(ByteChange::Cut { len: 0 });
                file
            }
            Err(_) => {
                let file = state.files.len();
                state.files.push(FileState::default());
                state.change_entry(EntryChange::Link { path: path.to_owned(), file });
                file
            }
        };
        Ok(Box::new(SimulatedFile { disk: self.clone(), file }))
    }

    fn append(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        let state = self.state();
        let file = state.find(path)?;
        match state.read_only.contains(path) {
            true => Err(io::ErrorKind::PermissionDenied.into()),
            false => Ok(Box::new(SimulatedFile { disk: self.clone(), file })),
        }
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.whole_operation()?;
        let file = state.find(from)?;
        state.change_entry(EntryChange::Rename { from: from.into(), to: to.into(), file });
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut state = self.whole_operation()?;
        state.find(path)?;
        state.change_entry(EntryChange::Remove { path: path.to_owned() });
        Ok(())
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        // Directories are taken to survive: what is in them is what tests are about.
        self.whole_operation()?.dirs.insert(path.to_owned());
        Ok(())
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        let state = self.state();
        if !state.dirs.contains(dir) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let names = state.entries.keys().filter(|path| path.parent() == Some(dir));
        Ok(names.filter_map(|path| Some(path.file_name()?.to_str()?.to_owned())).collect())
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        let mut state = self.whole_operation()?;
        let (synced, unsynced) = std::mem::take(&mut state.unsynced_entries)
            .into_iter()
            .partition(|change| change.is_in(dir));
        state.unsynced_entries = unsynced;
        let synced: Vec<EntryChange> = synced;
        for change in synced {
            change.apply(&mut state.synced_entries);
        }
        Ok(())
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn DiskLock>> {
        if self.state().find(path).is_err() {
            self.create(path)?;
        }
        if !self.state().locks.insert(path.to_owned()) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let file = self.state().find(path)?;
        Ok(Box::new(SimulatedLock { disk: self.clone(), path: path.to_owned(), file }))
    }
}

struct SimulatedFile {
    disk: SimulatedDisk,
    file: usize,
}

impl DiskFile for SimulatedFile {
    fn append(&self, bytes: &[u8]) -> io::Result<usize> {
        let (mut state, fault) = self.disk.operation()?;
        let written = match fault {
            None => bytes,
            Some(Fault::Short) if bytes.len() > 1 => &bytes[..bytes.len() / 2],
            Some(_) => return Err(io::ErrorKind::StorageFull.into()),
        };
        let room = state.bytes_max.map_or(usize::MAX, |max| max.saturating_sub(state.bytes()));
        let written = &written[..written.len().min(room)];
        if written.is_empty() && !bytes.is_empty() {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let file = &mut state.files[self.file];
        let at = file.bytes.len();
        file.change(ByteChange::Write { at, bytes: written.to_vec() });
        Ok(written.len())
    }

    fn sync_data(&self) -> io::Result<()> {
        let (mut state, fault) = self.disk.operation()?;
        let file = &mut state.files[self.file];
        let changes = std::mem::take(&mut file.unsynced);
        if fault.is_some() {
            return Err(io::Error::other("the disk failed"));
        }
        for change in changes {
            change.apply(&mut file.synced);
        }
        Ok(())
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        let mut state = self.disk.whole_operation()?;
        let len = usize::try_from(len).map_err(io::Error::other)?;
        state.files[self.file].change(ByteChange::Cut { len });
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.disk.state().files[self.file].bytes.len() as u64)
    }
}

struct SimulatedLock {
    disk: SimulatedDisk,
    path: PathBuf,
    file: usize,
}

impl DiskLock for SimulatedLock {
    fn is_in_place(&self) -> bool {
        self.disk.state().find(&self.path).is_ok_and(|file| file == self.file)
    }
}

impl Drop for SimulatedLock {
    fn drop(&mut self) {
        self.disk.state().locks.remove(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn content(disk: &SimulatedDisk, name: &str) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        disk.read(&Path::new("/d").join(name)).ok()?.read_to_end(&mut bytes).unwrap();
        Some(bytes)
    }

    #[test]
    fn power_loss_takes_what_no_sync_covered() {
        let disk = SimulatedDisk::new();
        let dir = Path::new("/d");
        disk.create_dir(dir).unwrap();
        let mut file = disk.create(&dir.join("a")).unwrap();
        file.write_all(b"one").unwrap();
        file.sync_data().unwrap();
        // The bytes are safe, the name is not.
        assert_eq!(content(&disk.after_power_loss(Loss::All, 1), "a"), None);
        disk.sync_dir(dir).unwrap();
        file.write_all(b"two").unwrap();
        disk.rename(&dir.join("a"), &dir.join("b")).unwrap();
        let after = disk.after_power_loss(Loss::All, 1);
        assert_eq!(content(&after, "a").unwrap(), b"one");
        assert_eq!(content(&after, "b"), None);
        for seed in 0..50 {
            for loss in [Loss::Tail, Loss::Any] {
                let after = disk.after_power_loss(loss, seed);
                let bytes = content(&after, "a").or(content(&after, "b")).unwrap();
                assert!(b"onetwo".starts_with(&bytes) && bytes.len() >= 3);
            }
        }
        assert_eq!(content(&disk, "b").unwrap(), b"onetwo");
    }

    #[test]
    fn a_sync_after_a_failed_one_proves_nothing() {
        let disk = SimulatedDisk::new();
        disk.create_dir(Path::new("/d")).unwrap();
        let mut file = disk.create(Path::new("/d/a")).unwrap();
        disk.sync_dir(Path::new("/d")).unwrap();
        file.write_all(b"lost").unwrap();
        disk.fail_at(disk.operations(), Fault::Error);
        file.sync_data().unwrap_err();
        file.sync_data().unwrap();
        assert_eq!(content(&disk, "a").unwrap(), b"lost");
        assert_eq!(content(&disk.after_power_loss(Loss::Tail, 1), "a").unwrap(), b"");
    }

    #[test]
    fn faults_come_where_they_were_set() {
        let disk = SimulatedDisk::new();
        disk.create_dir(Path::new("/d")).unwrap();
        let file = disk.create(Path::new("/d/a")).unwrap();
        disk.fail_at(2, Fault::Short);
        disk.fail_at(3, Fault::Error);
        disk.fail_at(5, Fault::PowerOff);
        assert_eq!(file.append(b"abcd").unwrap(), 2);
        file.append(b"cd").unwrap_err();
        assert_eq!(file.append(b"cd").unwrap(), 2);
        file.sync_data().unwrap_err();
        file.append(b"x").unwrap_err();
        disk.mend();
        file.sync_data().unwrap();
        assert_eq!(content(&disk, "a").unwrap(), b"abcd");
    }
}
