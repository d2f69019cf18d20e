//! With what an engine is opened: the directives of a redis.conf, by name.

use crate::host::{LogLevel, LogSink};
use russet_base::Clock;
use russet_commands::node::config::{Config, ConfigError, Settings};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The settings of an engine. Every directive of the server can be given; those about sockets, log
/// files and the process (`port`, `bind`, `daemonize`, `logfile`, `maxclients` and the like) have
/// no effect here, and those about data files only with a [directory](Options::directory).
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
    pub(crate) directory: Option<PathBuf>,
    pub(crate) clock: Option<Arc<dyn Clock>>,
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

    /// Keeps the data in this directory, which is made if it is not there: what was saved there is
    /// loaded when the engine is opened, and all data is saved when the last handle to it is
    /// dropped, unless `save` is "". SAVE does so at any time. With `appendonly yes` each change is
    /// logged there, and a crash loses what `appendfsync` says: with `always` nothing that a call
    /// has returned. Without a directory nothing is ever written.
    ///
    /// ```
    /// use russet_embedded::{Engine, Options};
    ///
    /// let path = std::env::temp_dir().join(format!("russet-doc-{}", std::process::id()));
    /// let options = Options::new().directory(&path).set("appendonly", "yes")?;
    /// Engine::open(options.clone())?.client().call(&["SET", "greeting", "hello"])?;
    /// let greeting: String = Engine::open(options)?.client().query(&["GET", "greeting"])?;
    /// assert_eq!(greeting, "hello");
    /// # std::fs::remove_dir_all(&path)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn directory(mut self, path: impl AsRef<Path>) -> Self {
        self.directory = Some(path.as_ref().to_owned());
        self
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

    /// The clock that decides expiry and timeouts; by default the machine's. A test can bring one
    /// that it moves by hand.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = Some(clock);
        self
    }

    pub(crate) fn into_config(mut self) -> Result<Config, ConfigError> {
        if let Some(directory) = &self.directory {
            self.settings.set("dir", directory.as_os_str().as_encoded_bytes())?;
        }
        self.settings.finish()
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options").finish_non_exhaustive()
    }
}
