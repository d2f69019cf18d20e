//! Files and directories as the log and the snapshots use them: few operations, each of which a
//! test can fail. [`FileSystem`] is the real one, [`simulated`] the one for tests. Formats are left
//! to others.
//!
//! What is on disk after a crash: the bytes of a file up to its last [`DiskFile::sync_data`], and
//! the entries of a directory as of its last [`Disk::sync_dir`]. Anything newer may be there, in
//! part or not at all.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

mod removal;
pub mod simulated;

pub trait Disk: Send + Sync {
    /// The file from its start. It reads what was there when it was opened, and maybe more.
    fn read(&self, path: &Path) -> io::Result<Box<dyn Read + Send>>;
    /// The file from some offset on, which may be its end.
    fn read_from(&self, path: &Path, at: u64) -> io::Result<Box<dyn Read + Send>> {
        let mut source = self.read(path)?;
        io::copy(&mut (&mut source).take(at), &mut io::sink())?;
        Ok(source)
    }
    /// Bytes of a file.
    fn len(&self, path: &Path) -> io::Result<u64> {
        self.append(path)?.len()
    }
    /// An empty file, whether or not there was one.
    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>>;
    /// The file as it is, to be continued at its end; it must be there.
    fn append(&self, path: &Path) -> io::Result<Box<dyn DiskFile>>;
    /// Gives a file its new name at once, in place of what had that name.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Removes files that may be large, without waiting until their room is free. One that can't
    /// be removed is left.
    fn remove_all(&self, paths: &[PathBuf]) {
        paths.iter().for_each(|path| _ = self.remove(path));
    }
    /// A directory; it may be there already.
    fn create_dir(&self, path: &Path) -> io::Result<()>;
    /// The names of the files in a directory, sorted.
    fn list(&self, dir: &Path) -> io::Result<Vec<String>>;
    /// Makes creations, renames and removals in `dir` survive a crash.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;
    /// Keeps other processes from locking the same file, which is made if it is not there. An
    /// error of kind `WouldBlock` says that someone has it.
    fn lock(&self, path: &Path) -> io::Result<Box<dyn DiskLock>>;
}

/// A file that is written to at its end. One thread may append while another syncs.
pub trait DiskFile: Send + Sync {
    /// Writes a first part of `bytes`, and returns how long it was.
    fn append(&self, bytes: &[u8]) -> io::Result<usize>;
    /// Makes what was appended before the call survive a crash. After an error it is not known
    /// what did, and a second try that succeeds proves nothing: the system may have given up
    /// the bytes.
    fn sync_data(&self) -> io::Result<()>;
    /// Cuts the file; the next append continues there.
    fn truncate(&self, len: u64) -> io::Result<()>;
    fn len(&self) -> io::Result<u64>;
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }
}

/// A file that could not be made: it is empty, and takes nothing.
pub(crate) struct NoFile;

impl DiskFile for NoFile {
    fn append(&self, _bytes: &[u8]) -> io::Result<usize> {
        Err(io::ErrorKind::StorageFull.into())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn truncate(&self, _len: u64) -> io::Result<()> {
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        Ok(0)
    }
}

/// Held as long as it lives.
pub trait DiskLock: Send + Sync {
    /// Whether the locked file still has its name: a file that was removed keeps nobody out.
    fn is_in_place(&self) -> bool;
}

impl Write for dyn DiskFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.append(bytes)
    }

    /// There is nothing to flush: bytes go to the system as they come.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The file system of the machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct FileSystem;

impl Disk for FileSystem {
    fn read(&self, path: &Path) -> io::Result<Box<dyn Read + Send>> {
        Ok(Box::new(File::open(path)?))
    }

    fn read_from(&self, path: &Path, at: u64) -> io::Result<Box<dyn Read + Send>> {
        let mut file = File::open(path)?;
        file.seek(SeekFrom::Start(at))?;
        Ok(Box::new(file))
    }

    fn len(&self, path: &Path) -> io::Result<u64> {
        // Without opening it for writing, which may not be allowed.
        Ok(fs::metadata(path)?.len())
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        // Opened for appending, so that a cut file is continued where it ends now.
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        file.set_len(0)?;
        Ok(Box::new(RealFile(file)))
    }

    fn append(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        Ok(Box::new(RealFile(OpenOptions::new().append(true).open(path)?)))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let replaced = removal::open_if_large(to);
        fs::rename(from, to)?;
        removal::close_elsewhere(replaced.into_iter().collect());
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn remove_all(&self, paths: &[PathBuf]) {
        let large = paths.iter().filter_map(|path| removal::open_if_large(path)).collect();
        paths.iter().for_each(|path| _ = fs::remove_file(path));
        removal::close_elsewhere(large);
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        fs::create_dir_all(path)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(dir)? {
            let entry = entry?;
            if entry.file_type()?.is_file()
                && let Ok(name) = entry.file_name().into_string()
            {
                names.push(name);
            }
        }
        names.sort();
        Ok(names)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        File::open(dir)?.sync_all()
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn DiskLock>> {
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        match file.try_lock() {
            Ok(()) => Ok(Box::new(RealLock { file, path: path.to_owned() })),
            Err(TryLockError::WouldBlock) => Err(io::ErrorKind::WouldBlock.into()),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}

struct RealFile(File);

impl DiskFile for RealFile {
    fn append(&self, bytes: &[u8]) -> io::Result<usize> {
        (&self.0).write(bytes)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.0.sync_data()
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }
}

/// The system gives the lock up with the file.
struct RealLock {
    file: File,
    path: PathBuf,
}

impl DiskLock for RealLock {
    fn is_in_place(&self) -> bool {
        let id = |found: io::Result<fs::Metadata>| found.ok().map(|it| (it.dev(), it.ino()));
        let named = id(fs::metadata(&self.path));
        named.is_some() && named == id(self.file.metadata())
    }
}

#[cfg(test)]
mod tests {
    use super::simulated::SimulatedDisk;
    use super::*;

    /// What every disk does when nothing fails.
    fn behaves(disk: &dyn Disk, dir: &Path) {
        disk.create_dir(dir).unwrap();
        let (first, second) = (dir.join("first"), dir.join("second"));
        assert_eq!(disk.append(&first).err().unwrap().kind(), io::ErrorKind::NotFound);
        assert_eq!(disk.read(&first).err().unwrap().kind(), io::ErrorKind::NotFound);
        let mut file = disk.create(&first).unwrap();
        assert!(file.is_empty().unwrap());
        file.write_all(b"hello world").unwrap();
        file.truncate(5).unwrap();
        file.write_all(b"!").unwrap();
        file.sync_data().unwrap();
        disk.append(&first).unwrap().write_all(b"?").unwrap();
        assert_eq!((file.len().unwrap(), disk.len(&first).unwrap()), (7, 7));
        disk.create(&second).unwrap().write_all(b"gone").unwrap();
        disk.rename(&first, &second).unwrap();
        disk.sync_dir(dir).unwrap();
        assert_eq!(disk.list(dir).unwrap(), ["second"]);
        let mut text = String::new();
        disk.read(&second).unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "hello!?");
        let mut rest = String::new();
        disk.read_from(&second, 5).unwrap().read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "!?");
        assert!(disk.create(&second).unwrap().is_empty().unwrap());
        disk.remove(&second).unwrap();
        assert_eq!(disk.remove(&second).unwrap_err().kind(), io::ErrorKind::NotFound);
        assert!(disk.list(dir).unwrap().is_empty());

        let lock = disk.lock(&dir.join("lock")).unwrap();
        let refused = disk.lock(&dir.join("lock")).err().unwrap();
        assert_eq!(refused.kind(), io::ErrorKind::WouldBlock);
        drop(lock);
        let lock = disk.lock(&dir.join("lock")).unwrap();
        assert!(lock.is_in_place());
        disk.remove(&dir.join("lock")).unwrap();
        assert!(!lock.is_in_place());
        disk.create(&dir.join("lock")).unwrap();
        assert!(!lock.is_in_place(), "another file has the name");
        disk.remove(&dir.join("lock")).unwrap();
    }

    #[test]
    fn the_file_system_and_its_simulation_behave_alike() {
        let dir = std::env::temp_dir().join(format!("russet-disk-{}", std::process::id()));
        behaves(&FileSystem, &dir);
        fs::remove_dir(&dir).unwrap();
        behaves(&SimulatedDisk::new(), Path::new("/data"));
    }
}
