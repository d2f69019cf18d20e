//! How `russet` starts, refuses to start, and ends.

use std::io::Write as _;
use std::process::Output;
use std::time::Duration;

use russet_tests::client::{Client, Reply};
use russet_tests::server::{Kind, Server, run_russet};

/// How long a server may take to end.
const END_WAIT: Duration = Duration::from_secs(10);

fn text(output: &Output) -> String {
    let both = [output.stdout.as_slice(), output.stderr.as_slice()].concat();
    String::from_utf8_lossy(&both).into_owned()
}

/// Refused with exit code 1 and one line that says all of these.
#[track_caller]
fn refused(args: &[&str], says: &[&str]) {
    let output = run_russet(args).unwrap();
    let printed = text(&output);
    assert_eq!(output.status.code(), Some(1), "{args:?}: {printed}");
    assert_eq!(printed.trim().lines().count(), 1, "{args:?}: {printed}");
    for part in says {
        assert!(printed.contains(part), "{args:?} does not say {part}: {printed}");
    }
}

#[test]
fn help_and_version() {
    let help = run_russet(&["--help"]).unwrap();
    assert_eq!(help.status.code(), Some(0));
    assert!(text(&help).contains("--port"));
    let version = run_russet(&["--version"]).unwrap();
    assert_eq!(version.status.code(), Some(0));
    assert!(text(&version).contains(env!("CARGO_PKG_VERSION")));
}

#[test]
fn an_unknown_directive_is_named_with_the_nearest() {
    refused(&["--prot", "7000"], &["prot", "port"]);
    refused(&["--maxclient", "10"], &["maxclient", "maxclients"]);
}

#[test]
fn a_bad_value_is_named() {
    refused(&["--port", "abc"], &["port", "abc"]);
    refused(&["--port", "70000"], &["port", "70000"]);
    refused(&["--maxclients", "-1"], &["maxclients", "-1"]);
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    refused(&["/no/such/file.conf"], &["/no/such/file.conf"]);
}

#[test]
fn a_port_in_use_is_named() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let output = run_russet(&["--port", &port, "--bind", "127.0.0.1"]).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output).contains(&port), "{}", text(&output));
}

/// Why a start or an end had failed was on standard error only, where nobody looks later.
#[test]
fn the_reason_of_a_failed_start_is_in_the_log_file() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let path = std::env::temp_dir().join(format!("russet-start-{}.log", std::process::id()));
    let name = path.to_str().unwrap();
    let output = run_russet(&["--port", &port, "--bind", "127.0.0.1", "--logfile", name]).unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    assert!(text(&output).contains(&port), "{}", text(&output));
    let log = std::fs::read_to_string(&path).unwrap();
    assert!(log.contains(&port), "{log}");
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn a_file_and_then_pairs() {
    let path = std::env::temp_dir().join(format!("russet-start-{}.conf", std::process::id()));
    let mut file = std::fs::File::create(&path).unwrap();
    writeln!(file, "# a comment\n\nmaxclients 77\ntimeout 5\nrequirepass \"from file\"").unwrap();
    let name = path.to_str().unwrap();
    let server = Server::start_with_file(Kind::Russet, name, &["--timeout", "9"]).unwrap();
    let mut client = Client::connect(server.address()).unwrap();
    assert!(client.call(&["PING"]).unwrap().is_error());
    assert_eq!(client.call(&["AUTH", "from file"]).unwrap(), Reply::Status(b"OK".to_vec()));
    let setting = |client: &mut Client, name: &str| client.call(&["CONFIG", "GET", name]).unwrap();
    let pair = |name: &str, value: &str| {
        Reply::Array(vec![Reply::Bulk(name.into()), Reply::Bulk(value.into())])
    };
    assert_eq!(setting(&mut client, "maxclients"), pair("maxclients", "77"));
    assert_eq!(setting(&mut client, "timeout"), pair("timeout", "9"));
    std::fs::remove_file(path).unwrap();
}

#[test]
fn signals_end_it_with_code_zero() {
    for signal in ["TERM", "INT"] {
        let mut server = Server::start(Kind::Russet, &[]).unwrap();
        let mut client = Client::connect(server.address()).unwrap();
        assert_eq!(client.call(&["PING"]).unwrap(), Reply::Status(b"PONG".to_vec()));
        server.signal(signal).unwrap();
        assert_eq!(server.exit_code(END_WAIT), Some(0), "{signal}");
    }
}

#[test]
fn shutdown_ends_it_with_code_zero() {
    for args in
        [&["SHUTDOWN"][..], &["SHUTDOWN", "NOSAVE"], &["SHUTDOWN", "NOSAVE", "NOW", "FORCE"]]
    {
        let mut server = Server::start(Kind::Russet, &[]).unwrap();
        let mut client = Client::connect(server.address()).unwrap();
        // There is no reply: the connection closes.
        assert!(client.call(args).is_err(), "{args:?}");
        assert_eq!(server.exit_code(END_WAIT), Some(0), "{args:?}");
    }
}

#[test]
fn more_clients_than_allowed_are_refused() {
    // Who comes from this machine may be one of sixteen more.
    const CLIENTS: usize = 3 + 16;
    let server = Server::start(Kind::Russet, &["--maxclients", "3"]).unwrap();
    let mut kept = Vec::new();
    for _ in 0..CLIENTS {
        let mut client = Client::connect(server.address()).unwrap();
        client.call(&["PING"]).unwrap();
        kept.push(client);
    }
    let mut refused = Client::connect(server.address()).unwrap();
    let said = refused.read(END_WAIT).unwrap();
    assert_eq!(said, Reply::Error(b"ERR max number of clients reached".to_vec()));
    assert!(refused.is_closed(END_WAIT));
}

/// `maxmemory` and `save` were accepted in silence, and neither was obeyed; a hundred others too.
#[test]
fn a_start_says_which_directives_it_does_not_obey() {
    let loud = ["--shutdown-on-sigterm", "safe", "--hz", "20"];
    let server = Server::start(Kind::Russet, &loud).unwrap();
    let said = |part: &str| server.lines_before_ready().iter().filter(|l| l.contains(part)).count();
    assert_eq!(said("# shutdown-on-sigterm 'safe' has no effect in this version of Russet"), 1);
    assert_eq!(said("# No effect in this version of Russet: hz"), 1);
    // CONFIG SET says it for the first time only.
    let mut client = Client::connect(server.address()).unwrap();
    for _ in 0..2 {
        for set in
            [["dynamic-hz", "no"], ["hz", "10"], ["save", "60 2"], ["cluster-databases", "2"]]
        {
            let _refused_or_ok = client.call(&["CONFIG", "SET", set[0], set[1]]).unwrap();
        }
    }
    client.call(&["CONFIG", "SET", "activerehashing", "no"]).unwrap();
    let lines: Vec<String> = std::iter::from_fn(|| server.next_line(END_WAIT))
        .take_while(|line| !line.contains("activerehashing has no effect"))
        .filter(|line| line.contains("no effect"))
        .collect();
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].ends_with("# dynamic-hz has no effect in this version of Russet"));
}

#[test]
fn a_start_that_keeps_its_promises_is_silent() {
    let quiet = ["--save", "60 1", "--maxmemory", "0", "--appendonly", "no", "--timeout", "0"];
    let server = Server::start(Kind::Russet, &quiet).unwrap();
    let lines = server.lines_before_ready();
    assert!(!lines.iter().any(|line| line.contains("effect")), "{lines:?}");
}

/// A file for Redis was either refused at its first bad line or taken, and nobody could see what
/// of it would hold.
#[test]
fn a_file_is_checked_without_a_start() {
    // For its directory.
    let server = Server::start(Kind::Russet, &[]).unwrap();
    let file = server.dir().join("check.conf");
    let path = file.to_str().unwrap();
    std::fs::write(&file, "port 7000\nlogfile never.log\npidfile never.pid\nhz 10\n").unwrap();
    let output = run_russet(&["--check-config", path]).unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    assert!(text(&output).contains(&format!("{path}:4: without effect: hz 10\n")));
    assert!(text(&output).ends_with("\n3 effective, 1 without effect, 0 refused\n"));
    assert!(!std::path::Path::new("never.log").exists());
    std::fs::write(&file, "port 7000\ncluster-enabled yes\nhz 10\n").unwrap();
    let output = run_russet(&["--check-config", path]).unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    assert!(text(&output).contains(&format!("{path}:2: refused: cluster-enabled yes (")));
    refused(&["--check-config"], &["--check-config takes one file"]);
}

/// A file was accepted with which no server starts: only its syntax was checked, not whether the
/// machine has what they name.
#[test]
fn a_file_that_this_machine_can_not_obey_is_refused() {
    // For its directory.
    let server = Server::start(Kind::Russet, &["--save", ""]).unwrap();
    let file = server.dir().join("check.conf");
    let path = file.to_str().unwrap();
    let long = server.dir().join("s".repeat(200));
    let bad_users = server.dir().join("users.acl");
    std::fs::write(&bad_users, "user alice on nonsense\n").unwrap();
    let lines = [
        ("logfile", "/no/such/directory/x.log".to_owned()),
        ("logfile", server.dir().display().to_string()),
        ("unixsocket", "/no/such/directory/x.sock".to_owned()),
        ("unixsocket", long.display().to_string()),
        // An address that is for documentation only.
        ("bind", "203.0.113.7".to_owned()),
        ("aclfile", "/no/such/directory/users.acl".to_owned()),
        ("aclfile", bad_users.display().to_string()),
        ("metrics-port", "1".to_owned()),
        ("tls-port", "1".to_owned()),
        ("tls-cluster", "yes".to_owned()),
        ("dir", "/no/such/directory".to_owned()),
    ];
    for (name, value) in lines {
        std::fs::write(&file, format!("port 1\n{name} {value}\n")).unwrap();
        let output = run_russet(&["--check-config", path]).unwrap();
        assert_eq!(output.status.code(), Some(1), "{}", text(&output));
        let line = format!("{path}:2: refused: {name} {value} (");
        assert!(text(&output).contains(&line), "{}", text(&output));
        assert_eq!(run_russet(&[path]).unwrap().status.code(), Some(1), "{name} {value}");
    }
    let both = format!("user bob on +@all\naclfile {}\n", bad_users.display());
    for users in [both.as_str(), "user bob on nonsense\n"] {
        std::fs::write(&file, format!("port 0\n{users}")).unwrap();
        let output = run_russet(&["--check-config", path]).unwrap();
        assert_eq!(output.status.code(), Some(1), "{}", text(&output));
        assert!(text(&output).contains(&format!("{path}:2: refused: user (")), "{}", text(&output));
        assert_eq!(run_russet(&[path]).unwrap().status.code(), Some(1), "{users}");
    }
    let limits =
        "client-output-buffer-limit replica 1 2 3\nclient-output-buffer-limit normal 1 2 3\n";
    let rest = "logfile here.log\nunixsocket here.sock\nbind -203.0.113.7 127.0.0.1\n";
    std::fs::write(&file, [limits, rest].concat()).unwrap();
    let output = run_russet(&["--check-config", path]).unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let shown = text(&output);
    let replica =
        "without effect: client-output-buffer-limit replica 1 2 3 (there are no replicas)";
    assert!(shown.contains(replica), "{shown}");
    assert!(shown.contains("4 effective, 1 without effect, 0 refused\n"), "{shown}");
    assert!(!std::path::Path::new("here.log").exists());
}

/// `--check-config` took a group that does not exist, a start that failed left its socket behind,
/// and the number that means "leave it" to the system was a group.
#[test]
fn a_group_that_does_not_exist_is_refused_and_nothing_is_left() {
    // For its directory.
    let server = Server::start(Kind::Russet, &["--save", ""]).unwrap();
    let (file, socket) = (server.dir().join("check.conf"), server.dir().join("s.sock"));
    let path = file.to_str().unwrap();
    let start = format!("port 0\nunixsocket {}\n", socket.display());
    for group in ["nobody has this", "4294967295", "4294967296", "-1"] {
        std::fs::write(&file, format!("{start}unixsocketgroup \"{group}\"\n")).unwrap();
        let output = run_russet(&["--check-config", path]).unwrap();
        assert_eq!(output.status.code(), Some(1), "{}", text(&output));
        let line = format!("{path}:3: refused: unixsocketgroup ");
        assert!(text(&output).contains(&line), "{}", text(&output));
        refused(&[path], &["s.sock", &format!("there is no group '{group}'")]);
        assert!(!socket.exists(), "{group}");
    }
    // What fails later leaves none either.
    let port = server.address().port();
    for line in [format!("metrics-port {port}"), "tls-cluster yes".to_owned()] {
        std::fs::write(&file, format!("{start}{line}\n")).unwrap();
        assert_eq!(run_russet(&[path]).unwrap().status.code(), Some(1), "{line}");
        assert!(!socket.exists(), "{line}");
    }
    // Without a socket nobody asks for its group.
    std::fs::write(&file, "port 0\nunixsocketgroup nobody\n").unwrap();
    assert_eq!(run_russet(&["--check-config", path]).unwrap().status.code(), Some(0));
}
