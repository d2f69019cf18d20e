//! With what an engine is opened: the directives of a redis.conf, by name.

use crate::host::{LogLevel, LogSink};
use russet_commands::node::config::{Config, ConfigError, Settings};
use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// The settings of an engine. Every directive of the server can be given; those about sockets,
/// files and the process (`port`, `bind`, `daemonize`, `logfile`, `maxclients` and the like) have
/// no effect here.
///
/// ```
/// use russet_embedded::{Engine, Options};
///
/// let options = Options::new()
///     .databases(4)?
///     .set("notify-keyspace-events", "KEA")?
///     .on_log(|level, line| eprintln!("{level:?}: {line}"));
/// let engine = Engine::open(options)?;
/// let refused = Options::new().set("databasess", "4").unwrap_err();
/// assert_eq!(refused.to_string(), "unknown directive 'databasess', did you mean 'databases'?");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Default)]
pub struct Options {
    settings: Settings,
    pub(crate) log: Option<LogSink>,
}

impl Options {
    /// The defaults of the server.
    pub fn new() -> Self {
        Options::default()
    }

    /// Sets a directive to what would stand behind its name in a redis.conf.
    pub fn set(mut self, name: &str, value: impl AsRef<[u8]>) -> Result<Self, ConfigError> {
        self.settings.set(name, value.as_ref())?;
        Ok(self)
    }

    /// Reads a file in the style of redis.conf.
    pub fn file(mut self, path: impl AsRef<Path>) -> Result<Self, ConfigError> {
        self.settings.file(path.as_ref())?;
        Ok(self)
    }

    /// `databases`: how many there are; 16 by default.
    pub fn databases(self, count: usize) -> Result<Self, ConfigError> {
        self.set("databases", count.to_string())
    }

    /// `shards`: parts of the keyspace that commands can run in side by side; 0, the default,
    /// leaves it to the engine.
    pub fn shards(self, count: usize) -> Result<Self, ConfigError> {
        self.set("shards", count.to_string())
    }

    /// Where lines for a log go: those of `redis.log` in scripts, and warnings. By default nowhere.
    /// It is called in the midst of a command and must not call the engine.
    pub fn on_log(mut self, sink: impl Fn(LogLevel, &str) + Send + Sync + 'static) -> Self {
        self.log = Some(Arc::new(sink));
        self
    }

    pub(crate) fn into_config(self) -> Result<Config, ConfigError> {
        self.settings.finish()
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options").finish_non_exhaustive()
    }
}
