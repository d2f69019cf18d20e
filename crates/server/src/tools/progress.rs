//! A bar while files are read, where errors go to a terminal; elsewhere nothing.

use indicatif::{ProgressBar, ProgressStyle};
use russet_persistence::disk::{Disk, DiskFile, DiskLock, FileSystem};
use std::io::{self, Read};
use std::path::Path;

const TEMPLATE: &str = "{msg} [{wide_bar}] {bytes} of {total_bytes}, {eta} left";
/// Bytes between two looks at the bar.
const STEP_BYTES: u64 = 256 * 1024;

/// The bar goes when it does.
pub struct Progress(ProgressBar);

impl Progress {
    pub fn new(doing: &'static str, bytes: u64) -> Self {
        let bar = ProgressBar::new(bytes);
        if let Ok(style) = ProgressStyle::with_template(TEMPLATE) {
            bar.set_style(style);
        }
        bar.set_message(doing);
        Progress(bar)
    }

    /// Counts what is read.
    pub fn reading<R: Read>(&self, source: R) -> Counted<R> {
        Counted { source, unseen: 0, bar: self.0.clone() }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

pub struct Counted<R> {
    source: R,
    unseen: u64,
    bar: ProgressBar,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.source.read(buffer)?;
        self.unseen += read as u64;
        if self.unseen >= STEP_BYTES {
            self.bar.inc(std::mem::take(&mut self.unseen));
        }
        Ok(read)
    }
}

/// The file system, of which each read is counted.
pub struct CountedDisk(pub Progress);

impl Disk for CountedDisk {
    fn read(&self, path: &Path) -> io::Result<Box<dyn Read + Send>> {
        Ok(Box::new(self.0.reading(FileSystem.read(path)?)))
    }

    fn read_from(&self, path: &Path, at: u64) -> io::Result<Box<dyn Read + Send>> {
        Ok(Box::new(self.0.reading(FileSystem.read_from(path, at)?)))
    }

    fn len(&self, path: &Path) -> io::Result<u64> {
        FileSystem.len(path)
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        FileSystem.create(path)
    }

    fn append(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        FileSystem.append(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        FileSystem.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        FileSystem.remove(path)
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        FileSystem.create_dir(path)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        FileSystem.list(dir)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        FileSystem.sync_dir(dir)
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn DiskLock>> {
        FileSystem.lock(path)
    }
}
