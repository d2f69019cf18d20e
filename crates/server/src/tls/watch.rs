//! `tls-auto-reload-interval`: whether certificates or keys have changed in their files.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// What changes when a file is written or replaced: its number, length, and time of change.
type Stamp = (u64, u64, i64, i64);

/// The files, and how each was; None if it was not there.
type Seen = Vec<(PathBuf, Option<Stamp>)>;

/// Remembers how the files were when they were last looked at.
#[derive(Debug, Default)]
pub struct CertificateWatch {
    last: Option<(Instant, Seen)>,
}

impl CertificateWatch {
    /// Whether a file is another than at the last look. There is none before `interval` is over,
    /// and the first only remembers.
    pub fn has_changed(&mut self, interval: Duration, files: impl Fn() -> Vec<PathBuf>) -> bool {
        if self.last.as_ref().is_some_and(|(at, _)| at.elapsed() < interval) {
            return false;
        }
        let seen = files().into_iter().map(|path| (path.clone(), stamp(&path))).collect();
        let before = self.last.replace((Instant::now(), seen));
        let now = self.last.as_ref().map(|(_, seen)| seen);
        before.is_some_and(|(_, before)| Some(&before) != now)
    }
}

fn stamp(path: &Path) -> Option<Stamp> {
    let found = std::fs::metadata(path).ok()?;
    Some((found.ino(), found.len(), found.mtime(), found.mtime_nsec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_was_replaced_has_changed() {
        let dir = std::env::temp_dir().join(format!("russet-watch-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let (path, other) = (dir.join("cert.pem"), dir.join("new.pem"));
        std::fs::write(&path, "one").unwrap();
        let mut watch = CertificateWatch::default();
        let mut look = || watch.has_changed(Duration::ZERO, || vec![path.clone()]);
        assert!(!look() && !look());
        std::fs::write(&other, "two").unwrap();
        std::fs::rename(&other, &path).unwrap();
        assert!(look() && !look());
        std::fs::remove_file(&path).unwrap();
        assert!(look() && !look());
        std::fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn no_look_comes_before_its_time() {
        let mut watch = CertificateWatch::default();
        let hour = Duration::from_secs(3600);
        assert!(!watch.has_changed(hour, Vec::new));
        assert!(!watch.has_changed(hour, || panic!("it is too early")));
    }
}
