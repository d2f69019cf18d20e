//! Whether the log's files are still there. Writes to a file that someone has removed succeed, and
//! nobody will ever load it.

use super::rewrite::other;
use super::thread::Writer;
use std::io;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// How often it is looked.
const CHECK_FILES_AFTER: Duration = Duration::from_secs(1);

impl Writer {
    /// Looks whether all files of the log are there, the last one with so many bytes if that is
    /// known, and nobody else has locked them.
    pub(super) fn check_files(&mut self, last_len: Option<u64>) -> io::Result<()> {
        self.directory.keep_others_out().map_err(other)?;
        let missing = self.directory.missing_file(last_len);
        let why = missing.map(|name| format!("{name} was removed or replaced by someone else"));
        if why.is_some() && !self.has_lost_files {
            let why = why.as_deref().unwrap_or_default();
            self.events.warn(&format!("The log needs a new base: {why}"));
        }
        self.has_lost_files = why.is_some();
        self.report_need();
        why.map_or(Ok(()), |why| Err(io::Error::other(why)))
    }

    /// After an error who tries again looks.
    pub(super) fn check_files_at_times(&mut self, is_asked: bool) -> io::Result<()> {
        let is_due = is_asked || self.files_checked_at.elapsed() >= CHECK_FILES_AFTER;
        if self.failed_at.is_some() || !is_due {
            return Ok(());
        }
        self.files_checked_at = Instant::now();
        self.check_files(Some(self.len))
    }

    /// The last look. Nobody is left who could write a base.
    pub(super) fn check_files_at_end(&mut self) {
        let len = self.failed_at.is_none().then_some(self.len);
        if let Err(error) = self.check_files(len) {
            self.shared.is_failed.store(true, Ordering::Relaxed);
            self.events.warn(&format!("The log ends without all of its files: {error}"));
        }
    }
}
