//! What can be wrong with a log, and where.

use std::fmt;
use std::io;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogError {
    /// The system refused: what was being done, and why it was not.
    Io {
        doing: String,
        why: String,
        /// There was no room.
        is_full: bool,
    },
    /// Another process uses the directory.
    InUse {
        path: String,
    },
    Manifest {
        at: usize,
        why: &'static str,
    },
    /// A file does not hold what was written to it.
    Damage {
        at: u64,
        why: &'static str,
    },
    /// A command of a file was refused.
    Command {
        at: u64,
        why: String,
    },
    /// The RDB file that a file begins with can't be read; the reason says where.
    Base {
        at: u64,
        why: String,
    },
    /// Files are there that nothing explains.
    Unexplained {
        why: String,
    },
    InFile {
        name: String,
        error: Box<LogError>,
    },
}

impl LogError {
    pub(super) fn manifest(at: usize, why: &'static str) -> Self {
        LogError::Manifest { at, why }
    }

    pub(super) fn damage(at: u64, why: &'static str) -> Self {
        LogError::Damage { at, why }
    }

    pub(super) fn io(doing: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let doing = doing.into();
        move |error| {
            let is_full =
                matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded);
            LogError::Io { doing, why: error.to_string(), is_full }
        }
    }

    /// Whether there was no room: that passes.
    pub(super) fn is_full(&self) -> bool {
        matches!(self, LogError::Io { is_full: true, .. })
    }

    /// The file that it is about, and the first byte that is wrong there.
    pub fn position(&self) -> (Option<&str>, Option<u64>) {
        match self {
            LogError::InFile { name, error } => (Some(name), error.position().1),
            LogError::Damage { at, .. }
            | LogError::Command { at, .. }
            | LogError::Base { at, .. } => (None, Some(*at)),
            LogError::Manifest { at, .. } => (None, Some(*at as u64)),
            LogError::Io { .. } | LogError::InUse { .. } | LogError::Unexplained { .. } => {
                (None, None)
            }
        }
    }

    pub(super) fn in_file(self, name: &str) -> Self {
        LogError::InFile { name: name.to_owned(), error: Box::new(self) }
    }
}

impl fmt::Display for LogError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LogError::Io { doing, why, .. } => write!(f, "cannot {doing}: {why}"),
            LogError::InUse { path } => {
                write!(f, "the log in {path} is in use by another process")
            }
            LogError::Manifest { at, why } => {
                write!(f, "the manifest of the log can't be used: at byte {at}, {why}")
            }
            LogError::Damage { at, why } => {
                write!(f, "damaged at byte {at}: {why}")
            }
            LogError::Command { at, why } => {
                write!(f, "the command at byte {at} was refused: {why}")
            }
            LogError::Base { why, .. } => f.write_str(why),
            LogError::Unexplained { why } => f.write_str(why),
            LogError::InFile { name, error } => write!(f, "log file {name}: {error}"),
        }
    }
}

impl std::error::Error for LogError {}
