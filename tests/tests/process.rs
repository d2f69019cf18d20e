//! The process around the commands: what it uses, and what it leaves in the system.

use std::time::{Duration, Instant};

use russet_tests::client::{Client, Reply};
use russet_tests::server::{Kind, Server};

/// How long something that happens soon may take.
const SOON: Duration = Duration::from_secs(20);

/// A figure of INFO.
fn info(client: &mut Client, section: &str, name: &str) -> String {
    let Reply::Bulk(text) = client.call(&["INFO", section]).unwrap() else {
        panic!("INFO gave no text")
    };
    let text = String::from_utf8(text).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.unwrap_or_else(|| panic!("no {name} in {text}")).to_owned()
}

/// `used_cpu_user_main_thread` was the time of the thread that waits for the end of the process,
/// and so it was 0 for ever: whoever watches it to see how busy a server is saw nothing.
#[test]
fn the_time_of_the_threads_that_run_commands_is_told() {
    let server = Server::start(Kind::Russet, &[]).unwrap();
    let mut client = Client::connect(server.address()).unwrap();
    let started = Instant::now();
    while info(&mut client, "cpu", "used_cpu_user_main_thread") == "0.000000" {
        assert!(started.elapsed() < SOON, "still 0 after much work");
        client.call(&["EVAL", "local n = 0 for i = 1, 200000 do n = n + i end", "0"]).unwrap();
    }
}
