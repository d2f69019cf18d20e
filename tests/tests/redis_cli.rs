//! What `redis-cli` shows of a server besides replies: its largest and hottest keys, its figures
//! and its latency. Each mode asks in its own way, so each is tried.

use russet_tests::client::Client;
use russet_tests::server::{Kind, Server, skip};
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

/// A server with a few keys, or nothing where there is no redis-cli.
fn server() -> Option<Server> {
    if Command::new("redis-cli").arg("--version").output().is_err() {
        skip("there is no redis-cli");
        return None;
    }
    let server = Server::start(Kind::Russet, &["--maxmemory-policy", "allkeys-lfu"]).unwrap();
    let mut client = Client::connect(server.address()).unwrap();
    for line in [
        "SET small 1",
        "SET large 0123456789012345678901234567890123456789012345678901234567890123456789",
        "RPUSH list a b c",
        "HSET hash f v g w",
        "SADD set a",
        "ZADD zset 1 a 2 b",
        "XADD stream * f v",
    ] {
        client.call(&line.split(' ').collect::<Vec<_>>()).unwrap();
    }
    for _ in 0..200 {
        client.call(&["GET", "small"]).unwrap();
    }
    Some(server)
}

fn cli(server: &Server, args: &[&str]) -> String {
    let port = server.address().port().to_string();
    let output = Command::new("redis-cli").args(["-p", &port]).args(args).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{args:?}: {text}");
    text
}

#[track_caller]
fn says(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "no {part} in {text}");
    }
}

#[test]
fn the_largest_keys_are_found() {
    let Some(server) = server() else { return };
    let text = cli(&server, &["--bigkeys"]);
    says(&text, &["Sampled 7 keys", "\"large\"' has 70 bytes", "\"list\"' has 3 items"]);
    says(&text, &["\"hash\"' has 2 fields", "\"zset\"' has 2 members", "1 streams with 1 entries"]);
    let text = cli(&server, &["--memkeys"]);
    says(
        &text,
        &["Sampled 7 keys", "string found '\"large\"' has", "stream found '\"stream\"' has"],
    );
}

#[test]
fn the_hottest_key_is_found() {
    let Some(server) = server() else { return };
    let text = cli(&server, &["--hotkeys"]);
    let summary = text.split("summary").last().unwrap();
    let hottest = summary.lines().find(|line| line.starts_with("hot key found")).expect(&text);
    says(hottest, &["small"]);
}

#[test]
fn latency_is_measured() {
    let Some(server) = server() else { return };
    let text = cli(&server, &["--latency", "--raw"]);
    let figures: Vec<f64> = text.split_whitespace().map(|part| part.parse().unwrap()).collect();
    assert!(figures.len() == 4 && figures[0] <= figures[1] && figures[3] > 0.0, "{text}");
    says(&cli(&server, &["LATENCY", "HISTOGRAM", "get"]), &["calls", "200", "histogram_usec"]);
    // It measures the machine and not the server, for a second.
    says(&cli(&server, &["--intrinsic-latency", "1"]), &["Max latency so far", "total runs"]);
}

/// These have no end of their own: the first of their lines is waited for.
#[test]
fn latency_is_measured_again_and_again() {
    let Some(server) = server() else { return };
    let port = server.address().port().to_string();
    let modes = [("--latency-history", "seconds range"), ("--latency-dist", "?\u{1b}[0m")];
    for (mode, shown) in modes {
        let child = Command::new("stdbuf")
            .args(["-oL", "redis-cli", "-p", &port, mode, "-i", "0.05"])
            .stdout(Stdio::piped())
            .spawn();
        let Ok(mut child) = child else { return skip("there is no stdbuf") };
        let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let found = lines.take(100).find(|line| line.contains(shown));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(found.is_some(), "{mode}");
    }
}

#[test]
fn figures_are_shown_as_they_change() {
    let Some(server) = server() else { return };
    let port = server.address().port().to_string();
    // Its lines would stay in its buffer: it has no end of its own.
    let child = Command::new("stdbuf")
        .args(["-oL", "redis-cli", "-p", &port, "--stat", "-i", "0.01"])
        .stdout(Stdio::piped())
        .spawn();
    let Ok(mut child) = child else { return skip("there is no stdbuf") };
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let rows: Vec<Vec<String>> = lines
        .map(|line| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
        .filter(|row| row.first().is_some_and(|first| first == "7"))
        .take(3)
        .collect();
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(rows.len(), 3);
    // Keys, memory, clients, blocked clients, requests, connections.
    let requests = |row: &[String]| row[4].parse::<u64>().unwrap();
    assert!(requests(&rows[2]) > requests(&rows[0]), "{rows:?}");
}
