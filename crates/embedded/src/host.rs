//! What the commands know of the program that the engine is embedded in: little. It has its
//! own allocator, its own signals, and its own idea of when the process ends.

use crate::engine::Core;
use russet_commands::node::{Host, ProcessReport};
use russet_persistence::disk::Disk;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

/// How grave a line for the log is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    /// For those who look for a fault.
    Debug,
    /// What happens all the time.
    Verbose,
    /// What an operator wants to know.
    Notice,
    /// What an operator has to look at.
    Warning,
}

impl LogLevel {
    fn from_number(number: u8) -> Self {
        match number {
            0 => LogLevel::Debug,
            1 => LogLevel::Verbose,
            2 => LogLevel::Notice,
            _ => LogLevel::Warning,
        }
    }
}

pub(crate) type LogSink = Arc<dyn Fn(LogLevel, &str) + Send + Sync>;

/// The host of an engine that no server is built on.
#[derive(Default)]
pub(crate) struct ProgramHost {
    pub log: Option<LogSink>,
    /// Where data files are, if the engine has a directory.
    pub disk: Option<Arc<dyn Disk>>,
    /// The engine exists only after its host.
    pub core: Arc<OnceLock<Weak<Core>>>,
}

impl Host for ProgramHost {
    /// SHUTDOWN ends the engine, not the process.
    fn shut_down(&self) {
        if let Some(core) = self.core.get().and_then(Weak::upgrade) {
            core.close();
        }
    }

    /// It has no event loops: commands run on the threads that call.
    fn threads(&self) -> usize {
        0
    }

    fn process(&self) -> ProcessReport {
        let executable = std::env::current_exe().map(|path| path.display().to_string());
        let os = format!("{} {}", std::env::consts::OS, std::env::consts::ARCH);
        ProcessReport {
            id: std::process::id(),
            executable: executable.unwrap_or_default(),
            os,
            ..ProcessReport::default()
        }
    }

    fn sleep(&self, time: Duration) {
        std::thread::sleep(time);
    }

    fn log(&self, line: &str) {
        if let Some(log) = &self.log {
            log(LogLevel::Warning, line);
        }
    }

    fn note(&self, line: &str) {
        if let Some(log) = &self.log {
            log(LogLevel::Notice, line);
        }
    }

    fn disk(&self) -> Option<Arc<dyn Disk>> {
        self.disk.clone()
    }

    fn log_script(&self, level: u8, line: &str) {
        if let Some(log) = &self.log {
            log(LogLevel::from_number(level), line);
        }
    }
}
