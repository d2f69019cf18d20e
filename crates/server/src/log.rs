//! The log: one line per event, to standard output or `logfile`, and to syslog if asked for. It
//! never holds keys, values or secrets of its own accord; what a script logs is the script's
//! affair.

mod line;
mod syslog;

use crate::sys::crash;
use line::{Format, Shape, Timestamp, one_line};
use russet_commands::node::config::{Config, Directive};
use std::fs::{File, Metadata, OpenOptions};
use std::io::{IsTerminal, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};
use syslog::Syslog;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Level {
    Debug,
    Verbose,
    Notice,
    Warning,
}

impl Level {
    /// As scripts number them: 0 is debug, 3 is a warning.
    pub fn from_number(number: u8) -> Level {
        match number {
            0 => Level::Debug,
            1 => Level::Verbose,
            2 => Level::Notice,
            _ => Level::Warning,
        }
    }

    fn mark(self) -> char {
        match self {
            Level::Debug => '.',
            Level::Verbose => '-',
            Level::Notice => '*',
            Level::Warning => '#',
        }
    }

    fn name(self) -> &'static str {
        match self {
            Level::Debug => "debug",
            Level::Verbose => "info",
            Level::Notice => "notice",
            Level::Warning => "warning",
        }
    }
}

/// The least level that `loglevel` lets through, as a number; beyond all of them is nothing.
fn threshold(loglevel: &str) -> u8 {
    match loglevel {
        "debug" => Level::Debug as u8,
        "verbose" => Level::Verbose as u8,
        "notice" => Level::Notice as u8,
        "warning" => Level::Warning as u8,
        _ => u8::MAX,
    }
}

/// `logfile`. It may be renamed or removed while the server runs, as by logrotate.
struct LogFile {
    path: PathBuf,
    /// None: it could not be opened again.
    file: Option<File>,
}

impl LogFile {
    fn open(path: &Path) -> std::io::Result<File> {
        OpenOptions::new().create(true).append(true).open(path)
    }

    /// Writes to the file that has the name now. COMPAT: Redis opens the file for each line, and
    /// rotation relies on that; a look at the name is enough.
    fn write(&mut self, line: &str) -> std::io::Result<()> {
        let id = |found: Metadata| (found.dev(), found.ino());
        let named = std::fs::metadata(&self.path).map(id).ok();
        let open = self.file.as_ref().and_then(|file| file.metadata().map(id).ok());
        let is_away = named.is_none() || named != open;
        if is_away && let Ok(file) = LogFile::open(&self.path) {
            crash::redirect(&file);
            self.file = Some(file);
        }
        match &mut self.file {
            Some(file) => file.write_all(line.as_bytes()),
            None => Ok(()),
        }
    }
}

pub struct Log {
    file: Option<Mutex<LogFile>>,
    syslog: Option<Syslog>,
    threshold: AtomicU8,
    shape: Mutex<Shape>,
}

impl Log {
    pub fn open(config: &Config) -> Result<Log, String> {
        let path = config.string(Directive::LogFile);
        let file = match path.is_empty() {
            true => None,
            false => {
                let failed = |error| format!("cannot open logfile {path}: {error}");
                // The server is not in its directory yet.
                let dir = config.string(Directive::Dir);
                let absolute = std::path::absolute(Path::new(&dir).join(&path)).map_err(failed)?;
                let file = LogFile::open(&absolute).map_err(failed)?;
                Some(Mutex::new(LogFile { path: absolute, file: Some(file) }))
            }
        };
        let syslog = match config.flag(Directive::SyslogEnabled) {
            false => None,
            true => {
                let ident = config.string(Directive::SyslogIdent);
                let facility = config.choice(Directive::SyslogFacility);
                let opened = Syslog::open(Path::new(syslog::SOCKET), &ident, facility);
                Some(opened.map_err(|error| format!("cannot use syslog: {error}"))?)
            }
        };
        let log = Log { file, syslog, threshold: AtomicU8::new(0), shape: Mutex::default() };
        log.configure(config);
        Ok(log)
    }

    /// Takes over `loglevel`, `log-format` and `log-timestamp-format`.
    pub fn configure(&self, config: &Config) {
        let level = threshold(config.choice(Directive::LogLevel));
        self.threshold.store(level, Ordering::Relaxed);
        *self.shape.lock().unwrap_or_else(|poison| poison.into_inner()) = Shape {
            format: Format::named(config.choice(Directive::LogFormat)),
            timestamp: Timestamp::named(config.choice(Directive::LogTimestampFormat)),
        };
    }

    /// Whether people see lines as they come.
    pub fn is_terminal(&self) -> bool {
        self.file.is_none() && std::io::stdout().is_terminal()
    }

    /// Whether lines go anywhere but to standard output.
    pub fn is_kept(&self) -> bool {
        self.file.is_some() || self.syslog.is_some()
    }

    /// The file of the log, or standard output, once more: for who can't wait for a lock.
    pub fn file_for_crashes(&self) -> std::io::Result<OwnedFd> {
        let file =
            self.file.as_ref().map(|it| it.lock().unwrap_or_else(|poison| poison.into_inner()));
        match file.as_ref().and_then(|it| it.file.as_ref()) {
            Some(file) => file.as_fd().try_clone_to_owned(),
            None => std::io::stdout().as_fd().try_clone_to_owned(),
        }
    }

    pub fn say(&self, level: Level, text: &str) {
        if (level as u8) < self.threshold.load(Ordering::Relaxed) {
            return;
        }
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let shape = *self.shape.lock().unwrap_or_else(|poison| poison.into_inner());
        let line = shape.line(level, since, text);
        // A log that can't be written is no reason to stop serving.
        let _written = match &self.file {
            Some(file) => file.lock().unwrap_or_else(|poison| poison.into_inner()).write(&line),
            None => std::io::stdout().write_all(line.as_bytes()),
        };
        if let Some(syslog) = &self.syslog {
            syslog.send(level, since, &one_line(text));
        }
    }
}
