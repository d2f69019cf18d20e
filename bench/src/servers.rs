//! The servers that are compared: where each binary is, how it is started, and that it is ended.

use crate::client::Client;
use crate::cpu;
use crate::failure::{Doing, Failure, Result};
use std::fs::{self, File};
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const START_WAIT_MAX: Duration = Duration::from_secs(20);
/// A free port may be taken by another program before the server binds it: then try another.
const START_ATTEMPTS_MAX: usize = 3;
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
    /// A library put before libc's malloc.
    pub preload: Option<PathBuf>,
    /// What the binary says of itself.
    pub version: String,
    /// End it when this program ends, however it ends.
    pub dies_with_parent: bool,
}

/// A server that runs until this is dropped.
pub struct Server {
    pub kind: Kind,
    pub port: u16,
    child: Child,
    /// Holds its data and its log; removed with it.
    directory: PathBuf,
}

impl Launch {
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
        let directory = fresh_directory(self.kind)?;
        let child = self.spawn(port, &directory);
        let child = child.inspect_err(|_| drop(fs::remove_dir_all(&directory)))?;
        let mut server = Server { kind: self.kind, port, child, directory };
        server.await_ready()?;
        Ok(server)
    }

    fn spawn(&self, port: u16, directory: &Path) -> Result<Child> {
        let doing = || format!("starting {}", self.binary.display());
        let log = File::create(directory.join("log")).doing(doing())?;
        let mut command = if self.dies_with_parent {
            let mut command = Command::new("setpriv");
            command.args(["--pdeathsig", "KILL"]).arg(&self.binary);
            command
        } else {
            Command::new(&self.binary)
        };
        command.args(["--port", &port.to_string()]);
        if self.kind.stores_data() {
            command.args(["--bind", "127.0.0.1", "--dir"]).arg(directory);
        }
        if self.kind == Kind::Valkey {
            command.args(["--save", "", "--appendonly", "no", "--daemonize", "no"]);
        }
        command.args(&self.arguments);
        if let Some(library) = &self.preload {
            command.env("LD_PRELOAD", library);
        }
        command.current_dir(directory).stdin(Stdio::null());
        command.stdout(log.try_clone().doing(doing())?).stderr(log);
        command.spawn().doing(doing())
    }
}

impl Server {
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn client(&self) -> Result<Client> {
        Client::connect(self.port)
    }

    /// Time on a core so far, over all its threads.
    pub fn cpu(&self) -> Result<Duration> {
        cpu::process(self.pid())
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
            thread::sleep(Duration::from_millis(20));
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
