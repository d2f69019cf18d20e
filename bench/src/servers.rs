//! The servers that are compared: where each binary is, how it is started, and that it is ended.

use crate::client::Client;
use crate::cpu;
use crate::failure::{Doing, Failure, Result};
use crate::loading::copy;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const START_WAIT_MAX: Duration = Duration::from_secs(120);
/// Between two looks whether it answers.
const START_NAP: Duration = Duration::from_millis(5);
/// A free port may be taken by another program before the server binds it: then try another.
const START_ATTEMPTS_MAX: usize = 3;
/// Callgrind writes down what it has counted at the end.
const END_WAIT_MAX: Duration = Duration::from_secs(60);
pub const CALLGRIND: [&str; 2] = ["valgrind", "--tool=callgrind"];
/// Callgrind writes a file of this name, a dash and a number for each thread.
const COUNT_FILE: &str = "instructions";
/// What an event loop calls, and no other thread: the rest of a server works by the clock, so that
/// the slower a run, the more it would count.
const EVENT_LOOP_CALL: &str = "epoll_wait";
const LOG_TAIL_LINES: usize = 5;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    Russet,
    Valkey,
    Floor,
}

impl Kind {
    pub const ALL: [Kind; 3] = [Kind::Russet, Kind::Valkey, Kind::Floor];

    pub fn name(self) -> &'static str {
        match self {
            Kind::Russet => "Russet",
            Kind::Valkey => "Valkey",
            Kind::Floor => "floor",
        }
    }

    /// The floor stores nothing, so only throughput means anything for it.
    pub fn stores_data(self) -> bool {
        self != Kind::Floor
    }
}

/// A binary and how to start it.
#[derive(Clone, Debug)]
pub struct Launch {
    pub kind: Kind,
    pub binary: PathBuf,
    /// After the arguments that every run gives.
    pub arguments: Vec<String>,
    /// Libraries put before libc, an allocator for one.
    pub preload: Vec<PathBuf>,
    pub environment: Vec<(&'static str, OsString)>,
    /// What the binary says of itself.
    pub version: String,
    /// End it when this program ends, however it ends.
    pub dies_with_parent: bool,
    /// A directory with what it finds in its own.
    pub files: Option<PathBuf>,
    /// Run it under valgrind's callgrind, far slower, for [`Server::finish_count`].
    pub counts_instructions: bool,
}

/// A server that runs until this is dropped.
pub struct Server {
    pub kind: Kind,
    pub port: u16,
    child: Child,
    /// Holds its data and its log; removed with it.
    directory: PathBuf,
    /// How long it took to put files there.
    prepared_in: Duration,
}

impl Launch {
    /// With no arguments of its own, and free to outlive this program.
    pub fn new(kind: Kind, binary: PathBuf, version: String) -> Launch {
        Launch {
            kind,
            binary,
            arguments: Vec::new(),
            preload: Vec::new(),
            environment: Vec::new(),
            version,
            dies_with_parent: false,
            files: None,
            counts_instructions: false,
        }
    }

    pub fn start(&self) -> Result<Server> {
        let mut last = None;
        for _ in 0..START_ATTEMPTS_MAX {
            match self.start_once() {
                Ok(server) => return Ok(server),
                Err(failure) => last = Some(failure),
            }
        }
        Err(last.unwrap_or_else(|| Failure::server(self.kind.name(), "was never started")))
    }

    fn start_once(&self) -> Result<Server> {
        let port = free_port()?;
        let started = Instant::now();
        let directory = fresh_directory(self.kind)?;
        if let Some(files) = &self.files {
            copy(files, &directory)?;
        }
        let prepared_in = started.elapsed();
        let child = self.spawn(port, &directory);
        let child = child.inspect_err(|_| drop(fs::remove_dir_all(&directory)))?;
        let mut server = Server { kind: self.kind, port, child, directory, prepared_in };
        server.await_ready()?;
        Ok(server)
    }

    fn spawn(&self, port: u16, directory: &Path) -> Result<Child> {
        let doing = || format!("starting {}", self.binary.display());
        let log = File::create(directory.join("log")).doing(doing())?;
        let mut command = self.command(directory);
        command.args(["--port", &port.to_string()]);
        if self.kind.stores_data() {
            command.args(["--bind", "127.0.0.1", "--dir"]).arg(directory);
            // No section is to be disturbed by a save that nobody asked for.
            command.args(["--save", ""]);
        }
        if self.kind == Kind::Valkey {
            command.args(["--appendonly", "no", "--daemonize", "no"]);
        }
        command.args(&self.arguments);
        if !self.preload.is_empty() {
            let libraries: Vec<&OsStr> = self.preload.iter().map(|path| path.as_os_str()).collect();
            command.env("LD_PRELOAD", libraries.join(OsStr::new(":")));
        }
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.current_dir(directory).stdin(Stdio::null());
        command.stdout(log.try_clone().doing(doing())?).stderr(log);
        command.spawn().doing(doing())
    }

    /// The binary, and the programs that it runs under.
    fn command(&self, directory: &Path) -> Command {
        let mut line: Vec<OsString> = Vec::new();
        if self.dies_with_parent {
            line.extend(["setpriv", "--pdeathsig", "KILL"].map(OsString::from));
        }
        if self.counts_instructions {
            let mut out = OsString::from("--callgrind-out-file=");
            out.push(directory.join(COUNT_FILE));
            line.extend(CALLGRIND.map(OsString::from));
            line.extend([OsString::from("--separate-threads=yes"), out]);
        }
        line.push(self.binary.clone().into());
        let mut command = Command::new(&line[0]);
        command.args(&line[1..]);
        command
    }
}

impl Server {
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn directory(&self) -> &Path {
        &self.directory
    }

    pub fn prepared_in(&self) -> Duration {
        self.prepared_in
    }

    pub fn client(&self) -> Result<Client> {
        Client::connect(self.port)
    }

    /// Time on a core so far, over all its threads.
    pub fn cpu(&self) -> Result<Duration> {
        cpu::process(self.pid())
    }

    /// Time on a core since its start, that of threads and children which have ended included.
    pub fn cpu_total(&self) -> Result<Duration> {
        cpu::process_total(self.pid())
    }

    /// Ends it; the instructions that its event loops have executed from its start to its end.
    pub fn finish_count(mut self) -> Result<u64> {
        // A server that shuts down hangs up instead of answering.
        let _hangs_up = self.client()?.ask(&["SHUTDOWN", "NOSAVE"]);
        let deadline = Instant::now() + END_WAIT_MAX;
        while self.child.try_wait().doing("waiting for a server")?.is_none() {
            if Instant::now() > deadline {
                let what = format!("did not end within {END_WAIT_MAX:?}{}", self.log_tail());
                return Err(Failure::server(self.kind.name(), what));
            }
            thread::sleep(START_NAP);
        }
        let doing = "reading what callgrind counted";
        let mut counted = None;
        for file in fs::read_dir(&self.directory).doing(doing)? {
            let path = file.doing(doing)?.path();
            let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
            if name.starts_with(COUNT_FILE) && name != COUNT_FILE {
                let text = fs::read_to_string(&path).doing(doing)?;
                counted = event_loop_total(&text).map(|it| it + counted.unwrap_or(0)).or(counted);
            }
        }
        counted.ok_or_else(|| Failure::server("callgrind", "it saw no event loop"))
    }

    fn await_ready(&mut self) -> Result<()> {
        let deadline = Instant::now() + START_WAIT_MAX;
        loop {
            if let Some(status) = self.child.try_wait().doing("waiting for a server")? {
                let what = format!("ended at start ({status}){}", self.log_tail());
                return Err(Failure::server(self.kind.name(), what));
            }
            let answer = self.client().and_then(|mut client| client.ask(&["PING"]));
            if answer.is_ok_and(|value| !value.is_error()) {
                return Ok(());
            }
            if Instant::now() > deadline {
                let what = format!("not ready after {START_WAIT_MAX:?}{}", self.log_tail());
                return Err(Failure::server(self.kind.name(), what));
            }
            thread::sleep(START_NAP);
        }
    }

    fn log_tail(&self) -> String {
        let log = fs::read_to_string(self.directory.join("log")).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        let tail = &lines[lines.len().saturating_sub(LOG_TAIL_LINES)..];
        if tail.is_empty() { String::new() } else { format!("; it said: {}", tail.join(" / ")) }
    }
}

impl Drop for Server {
    /// Nothing that a benchmark stored is worth a clean shutdown.
    fn drop(&mut self) {
        let _already_ended = self.child.kill();
        let _reaped = self.child.wait();
        let _left_to_the_system = fs::remove_dir_all(&self.directory);
    }
}

/// The sum over all functions in callgrind's file of a thread, if that is an event loop.
fn event_loop_total(counts: &str) -> Option<u64> {
    let summary = counts.lines().find_map(|line| line.strip_prefix("summary:"));
    let summary = summary.filter(|_| counts.contains(EVENT_LOOP_CALL))?;
    summary.split_ascii_whitespace().next()?.parse().ok()
}

fn free_port() -> Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).doing("looking for a free port")?;
    Ok(listener.local_addr().doing("looking for a free port")?.port())
}

fn fresh_directory(kind: Kind) -> Result<PathBuf> {
    static MADE: AtomicU32 = AtomicU32::new(0);
    let number = MADE.fetch_add(1, Ordering::Relaxed);
    let name = format!("russet-bench-{}-{}-{number}", std::process::id(), kind.name());
    let path = std::env::temp_dir().join(name);
    fs::create_dir(&path).doing(format!("making {}", path.display()))?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::event_loop_total;

    /// Threads that work by the clock were counted too: on a busy machine a request seemed to need
    /// half as many instructions again.
    #[test]
    fn only_event_loops_are_counted() {
        let thread = |call: &str| format!("summary: 123456\n\nfn=(1) {call}\n16 3\n");
        assert_eq!(event_loop_total(&thread("epoll_wait")), Some(123_456));
        assert_eq!(event_loop_total(&thread("clock_nanosleep")), None);
        assert_eq!(event_loop_total("fn=(1) epoll_wait\n"), None);
    }
}
