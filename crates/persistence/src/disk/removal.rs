//! Large files are removed without waiting for it.
//!
//! To free the 256 MB of a file takes a file system 60 to 90 ms, and the log's writer removes what
//! a new base replaces. A file that is open keeps its blocks when its name is gone: whoever closes
//! it last waits, and that is a thread for nothing else. Cutting the file step by step would take
//! from those who are just copying it what they have not read yet.

use std::fs::File;
use std::path::Path;
use std::thread;

/// Files of fewer bytes are removed at once.
const LARGE_BYTES_MIN: u64 = 8 << 20;

/// A file that is worth it, before its name goes to another or to none.
pub(super) fn open_if_large(path: &Path) -> Option<File> {
    // Looked at first: to open what is no file may wait, or do something.
    let found = std::fs::symlink_metadata(path).ok()?;
    let is_large = found.is_file() && found.len() >= LARGE_BYTES_MIN;
    is_large.then(|| File::open(path).ok())?
}

/// Without a thread they are closed here.
pub(super) fn close_elsewhere(files: Vec<File>) {
    if !files.is_empty() {
        let _ended = thread::Builder::new().name("disk-free".into()).spawn(|| drop(files));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::{Disk, FileSystem};
    use std::fs;

    #[test]
    fn large_files_are_removed_and_replaced_as_small_ones() {
        let dir = std::env::temp_dir().join(format!("russet-removal-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        let make = |name: &str, len: u64| {
            let path = dir.join(name);
            File::create(&path).unwrap().set_len(len).unwrap();
            path
        };
        let (small, large) = (make("small", LARGE_BYTES_MIN - 1), make("large", LARGE_BYTES_MIN));
        assert!(open_if_large(&small).is_none() && open_if_large(&dir).is_none());
        assert!(open_if_large(&dir.join("none")).is_none());
        let reader = open_if_large(&large).unwrap();

        let new = dir.join("new");
        fs::write(&new, b"new").unwrap();
        FileSystem.rename(&new, &large).unwrap();
        assert_eq!(fs::read(&large).unwrap(), b"new");
        let len = reader.metadata().unwrap().len();
        assert_eq!(len, LARGE_BYTES_MIN, "who copies it has all of it");

        let again = make("large", LARGE_BYTES_MIN);
        FileSystem.remove_all(&[small, dir.join("none"), again]);
        assert!(FileSystem.list(&dir).unwrap().is_empty());
        fs::remove_dir(&dir).unwrap();
    }
}
