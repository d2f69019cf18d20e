//! The log and the supervisor: what is written where, and when.

use russet_tests::client::Client;
use russet_tests::server::{Kind, Server, free_port};
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::time::{Duration, Instant};

/// How long something that happens soon may take.
const SOON: Duration = Duration::from_secs(20);

/// Has a line logged, and waits until it is in the file.
fn log_line(server: &Server, (file, text): (&Path, &str)) -> String {
    let mut client = Client::connect(server.address()).unwrap();
    client.call(&["DEBUG", "LOG", text]).unwrap();
    await_line(file, text)
}

/// Waits until a line with this text is in the file.
fn await_line(file: &Path, text: &str) -> String {
    let started = Instant::now();
    loop {
        let written = std::fs::read_to_string(file).unwrap_or_default();
        if let Some(line) = written.lines().find(|line| line.contains(text)) {
            return line.to_owned();
        }
        assert!(started.elapsed() < SOON, "{text} is not in {}: {written}", file.display());
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Russet, and the file that it logs to. What says that it is ready goes there, too.
fn logging(extra: &[&str]) -> (Server, std::path::PathBuf) {
    let dir = std::env::temp_dir();
    let name = format!("{}/russet-{}.log", dir.display(), free_port().unwrap());
    let args = [&["--logfile", &name][..], extra].concat();
    (Server::start_loading(&args).unwrap(), name.into())
}

/// The file stayed open under its old name: after a rotation all lines went to the rotated file, as
/// with no other Redis.
#[test]
fn a_rotated_log_is_begun_anew() {
    let (server, log) = logging(&[]);
    log_line(&server, (&log, "before the rotation"));
    let rotated = log.with_extension("log.1");
    std::fs::rename(&log, &rotated).unwrap();
    log_line(&server, (&log, "after the rotation"));
    assert!(!std::fs::read_to_string(&rotated).unwrap().contains("after the rotation"));
    std::fs::remove_file(&log).unwrap();
    log_line(&server, (&log, "after the removal"));
    [log, rotated].iter().for_each(|file| std::fs::remove_file(file).unwrap());
}

/// Only one format was there, and any other was refused.
#[test]
fn formats_change_while_the_server_runs() {
    let (server, log) = logging(&["--log-format", "logfmt", "--log-timestamp-format", "iso8601"]);
    let pid = server.pid();
    let line = log_line(&server, (&log, "first"));
    let start = format!("pid={pid} role=primary timestamp=\"20");
    assert!(
        line.starts_with(&start) && line.contains("+00:00\" level=warning message=\""),
        "{line}"
    );
    let mut client = Client::connect(server.address()).unwrap();
    let set = ["CONFIG", "SET", "log-format", "json", "log-timestamp-format", "milliseconds"];
    assert!(!client.call(&set).unwrap().is_error());
    let line = log_line(&server, (&log, "second"));
    assert!(line.starts_with(&format!("{{\"pid\":{pid},\"role\":\"primary\",\"timestamp\":\"1")));
    assert!(line.ends_with("\"}"), "{line}");
    let set = ["CONFIG", "SET", "log-format", "legacy", "log-timestamp-format", "legacy"];
    assert!(!client.call(&set).unwrap().is_error());
    let line = log_line(&server, (&log, "third"));
    assert!(line.starts_with(&format!("{pid}:M ")) && line.contains(" # "), "{line}");
    std::fs::remove_file(log).unwrap();
}

/// A client could write lines of its own into the log with DEBUG LOG and a line break.
#[test]
fn one_event_is_one_line() {
    let (server, log) = logging(&[]);
    let mut client = Client::connect(server.address()).unwrap();
    client.call(&["DEBUG", "LOG", "one\n99:M forged\x1b[2J"]).unwrap();
    log_line(&server, (&log, "the end"));
    let written = std::fs::read_to_string(&log).unwrap();
    let forged = written.lines().find(|line| line.contains("forged")).expect(&written);
    assert!(forged.contains("one 99:M forged") && !forged.contains('\x1b'), "{forged}");
    std::fs::remove_file(log).unwrap();
}

/// Who was closed for a limit left no trace but a count: nobody could say which client it was.
#[test]
fn clients_that_are_closed_for_what_they_hold_are_named() {
    let limits = ["--client-output-buffer-limit", "normal 100kb 0 0"];
    let (server, log) = logging(&limits);
    let connect = || Client::connect(server.address()).unwrap();
    let mut admin = connect();
    let mut call = |args: &[&str]| assert!(!admin.call(args).unwrap().is_error(), "{args:?}");
    call(&["CLIENT", "NO-EVICT", "ON"]);
    call(&["CONFIG", "SET", "client-query-buffer-limit", "1mb"]);
    call(&["SET", "secret-key", &"v".repeat(200_000)]);
    let close = |bytes: &[u8], why: &str| {
        let mut client = connect();
        let address = client.local_address().unwrap();
        // It may be closed before all is sent.
        let _sent = client.send_raw(bytes);
        let line = await_line(&log, why);
        assert!(line.contains(&format!(" addr={address} ")), "{line}");
    };
    close(b"GET secret-key\r\n", "bytes of output are over client-output-buffer-limit normal");
    let mut request = b"*2\r\n$4\r\nECHO\r\n$4000000\r\n".to_vec();
    request.resize(3_000_000, b'v');
    close(&request, "bytes of requests are over client-query-buffer-limit");
    call(&["CONFIG", "SET", "maxmemory-clients", "300kb"]);
    close(&request[..800_000], "maxmemory-clients is reached");
    assert!(!std::fs::read_to_string(&log).unwrap().contains("secret-key"));
    std::fs::remove_file(log).unwrap();
}

/// A unit of type notify waited in vain: nobody was told that the server is ready.
#[test]
fn systemd_is_told_when_the_server_is_ready_and_when_it_ends() {
    let path = std::env::temp_dir().join(format!("russet-notify-{}", std::process::id()));
    let socket = UnixDatagram::bind(&path).unwrap();
    socket.set_read_timeout(Some(SOON)).unwrap();
    let name = path.to_str().unwrap();
    let environment = [("NOTIFY_SOCKET", name), ("WATCHDOG_USEC", "400000")];
    // A supervised server stays where it is seen, whatever daemonize says.
    let args = ["--supervised", "auto", "--daemonize", "yes"];
    let mut server = Server::start_in(&environment, &args).unwrap();
    let next = |wanted: &str| {
        let mut text = [0; 200];
        loop {
            let len = socket.recv(&mut text).expect(wanted);
            if String::from_utf8_lossy(&text[..len]).starts_with(wanted) {
                return;
            }
        }
    };
    next("READY=1\n");
    next("WATCHDOG=1\n");
    next("WATCHDOG=1\n");
    server.signal("TERM").unwrap();
    next("STOPPING=1\n");
    assert_eq!(server.exit_code(SOON), Some(0));
    std::fs::remove_file(path).unwrap();
}

#[test]
fn a_supervisor_that_is_not_there_is_no_obstacle() {
    let server = Server::start(Kind::Russet, &["--supervised", "systemd"]).unwrap();
    let lines = server.lines_before_ready();
    assert!(lines.iter().any(|line| line.contains("no NOTIFY_SOCKET is set")), "{lines:?}");
}
