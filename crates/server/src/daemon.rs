//! `daemonize` and `pidfile`: a process in the background, and how others find it.

use crate::log::{Level, Log};
use russet_commands::node::config::{Config, Directive};
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Set in the environment of the process that `daemonize` has started.
const DETACHED: &str = "RUSSET_DETACHED";

/// Where a process in the background leaves its id, unless told otherwise.
const PID_FILE_DEFAULT: &str = "/var/run/russet.pid";

/// Whether this process is the one in the background.
pub fn is_detached() -> bool {
    std::env::var_os(DETACHED).is_some()
}

/// Leaves the session of whoever started the server, so that its end is not ours.
pub fn leave_session() {
    // It fails only for who leads a session already, and so has none to leave.
    let _ = rustix::process::setsid();
}

/// Starts this program once more, in the background, with the same arguments. What can be found
/// wrong before is reported here: nobody would see it there.
pub fn start(args: &[OsString], config: &Config) -> Result<(), String> {
    if [args.first(), args.last()].contains(&Some(&OsString::from("-"))) {
        return Err("daemonize: a configuration from standard input can't be read twice".into());
    }
    Log::open(config)?;
    let dir = config.string(Directive::Dir);
    std::fs::read_dir(&dir).map_err(|error| format!("cannot use dir {dir}: {error}"))?;
    let program = std::env::current_exe().map_err(|error| format!("daemonize: {error}"))?;
    let spawned = Command::new(program)
        .args(args)
        .env(DETACHED, "1")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    spawned.map(drop).map_err(|error| format!("daemonize: {error}"))
}

/// A file with the process id, which goes with this value.
pub struct PidFile(Option<PathBuf>);

impl PidFile {
    /// Writes `pidfile`, if it is set or this process is in the background. A failure is logged:
    /// the server can do without.
    pub fn write(config: &Config, log: &Log) -> Self {
        let path = match config.string(Directive::PidFile) {
            path if !path.is_empty() => path,
            _ if is_detached() => PID_FILE_DEFAULT.to_owned(),
            _ => return PidFile(None),
        };
        match std::fs::write(&path, format!("{}\n", std::process::id())) {
            Ok(()) => PidFile(Some(path.into())),
            Err(error) => {
                log.say(Level::Warning, &format!("Cannot write pidfile {path}: {error}"));
                PidFile(None)
            }
        }
    }
}

impl PidFile {
    pub fn remove(&self) {
        if let Some(path) = &self.0 {
            // Who took it away has done our work.
            let _ = std::fs::remove_file(path);
        }
    }
}

impl Drop for PidFile {
    fn drop(&mut self) {
        self.remove();
    }
}
