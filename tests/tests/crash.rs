//! What the log says when the server ends because of a fault of its own.

use std::path::Path;

use russet_tests::client::{Client, Reply};
use russet_tests::server::Server;
use russet_tests::wait::eventually;

const END: &str = "=== RUSSET CRASH REPORT END ===\n";

/// A server whose log is a file in its directory, and that has data which is nobody's affair.
fn start(extra: &[&str]) -> (Server, Client) {
    let args = [&["--logfile", "log", "--syslog-enabled", "no"][..], extra].concat();
    // What it prints is in that file.
    let server = Server::start_loading(&args).unwrap();
    let mut client = Client::connect(server.address()).unwrap();
    let set = ["SET", "SECRETKEY", "SECRETVALUE"];
    eventually("server", || {
        (client.call(&set).unwrap() == Reply::Status("OK".into())).then_some(())
    });
    (server, client)
}

fn await_report(log: &Path) -> String {
    let text = eventually("report", || {
        let text = std::fs::read_to_string(log).unwrap();
        text.ends_with(END).then_some(text)
    });
    let (_, report) = text.split_once("=== RUSSET CRASH REPORT START").unwrap();
    assert_eq!(report.matches("=== RUSSET").count(), 1, "one report: {report}");
    report.to_owned()
}

fn await_end(server: &Server) {
    eventually("end", || std::net::TcpStream::connect(server.address()).err());
}

/// A fault ended the process without a word of what it was and where.
#[test]
fn a_crash_leaves_a_report() {
    for (how, parts) in [
        ("SEGFAULT", &["signal: SIGSEGV\naddress: 0x", "\ninstruction: 0x", " (program + 0x"][..]),
        ("PANIC", &["panic: called by DEBUG PANIC\nat: ", "\nbacktrace:\n", "server/debug.rs:"]),
        ("ASSERT", &["panic: called by DEBUG ASSERT\nat: ", "\nbacktrace:\n"]),
    ] {
        let (server, mut client) = start(&[]);
        let log = server.dir().join("log");
        assert!(client.call(&["DEBUG", how, "SECRETARG"]).unwrap().is_error());
        assert!(client.call(&["DEBUG", how]).is_err());
        let report = await_report(&log);
        let process = format!("\nprocess: {}\n", server.pid());
        let facts = [&process, "version: Russet ", "\nthread: ", "\nuptime_in_seconds: "];
        for part in parts.iter().chain(&facts).chain(&[" loop-", "\nused_memory: "]) {
            assert!(report.contains(part), "{how}: no {part} in {report}");
        }
        assert!(!report.contains("SECRET"), "{report}");
        await_end(&server);
    }
}

/// Signals from outside are reported, too, and end it; the report follows a log that was rotated.
#[test]
fn a_signal_of_a_fault_leaves_a_report() {
    for signal in ["SEGV", "BUS", "FPE", "ILL", "ABRT"] {
        let (server, mut client) = start(&[]);
        let log = server.dir().join("log");
        std::fs::rename(&log, server.dir().join("old")).unwrap();
        client.call(&["DEBUG", "LOG", "a line begins the new file"]).unwrap();
        server.signal(signal).unwrap();
        let report = await_report(&log);
        assert!(report.contains(&format!("\nsignal: SIG{signal}\n")), "{report}");
        assert!(!report.contains("SECRET"), "{report}");
        await_end(&server);
    }
}

/// `crash-log-enabled no`, given at the start or set later.
#[test]
fn a_report_may_be_switched_off() {
    for how in ["SEGFAULT", "PANIC"] {
        let (server, mut client) = start(&["--crash-log-enabled", "no"]);
        let set = |client: &mut Client, value: &str| {
            let reply = client.call(&["CONFIG", "SET", "crash-log-enabled", value]).unwrap();
            assert_eq!(reply, Reply::Status("OK".into()));
        };
        if how == "PANIC" {
            set(&mut client, "yes");
            set(&mut client, "no");
        }
        assert!(client.call(&["DEBUG", how]).is_err());
        await_end(&server);
        let text = std::fs::read_to_string(server.dir().join("log")).unwrap();
        assert!(!text.contains("CRASH REPORT"), "{text}");
    }
}
