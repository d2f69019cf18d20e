//! `metrics-port`: what Prometheus reads, in both formats, under the names of redis_exporter;
//! health; and requests that nobody should send.

use russet_tests::client::Client;
use russet_tests::server::{Kind, Server, free_port};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How long something that happens soon may take.
const SOON: Duration = Duration::from_secs(20);
const OPEN: &str = "Accept: application/openmetrics-text\r\n";

/// A Russet, and the port of its metrics.
struct Watched {
    server: Server,
    port: u16,
}

fn watched(extra: &[&str]) -> Watched {
    let port = free_port().unwrap();
    let port_text = port.to_string();
    let args = [&["--metrics-port", &port_text][..], extra].concat();
    Watched { server: Server::start(Kind::Russet, &args).unwrap(), port }
}

fn connect(port: u16) -> TcpStream {
    let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
    stream.set_read_timeout(Some(SOON)).unwrap();
    stream
}

/// Sends bytes, and gives back head and body of the answer.
fn exchange(port: u16, request: &str) -> (String, String) {
    let mut stream = connect(port);
    stream.write_all(request.as_bytes()).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    (head.to_owned(), body.to_owned())
}

fn get(port: u16, path: &str, header: &str) -> (String, String) {
    exchange(port, &format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{header}\r\n"))
}

fn status(port: u16, path: &str) -> String {
    get(port, path, "").0.split(' ').nth(1).unwrap().to_owned()
}

/// A page, taken apart by the strict rules of the format.
#[derive(Debug, Default)]
struct Page {
    /// Kinds of families.
    kinds: BTreeMap<String, String>,
    /// Samples by name and labels.
    samples: BTreeMap<String, f64>,
}

fn is_name(text: &str) -> bool {
    let is_first = |c: char| c.is_ascii_alphabetic() || c == '_' || c == ':';
    text.starts_with(is_first) && text.chars().all(|c| is_first(c) || c.is_ascii_digit())
}

/// What a sample of this name belongs to.
fn family_of<'n>(name: &'n str, kind: &str, is_open: bool) -> &'n str {
    let endings: &[&str] = match kind {
        "histogram" => &["_bucket", "_sum", "_count"],
        "summary" => &["_sum", "_count"],
        "counter" if is_open => &["_total"],
        _ => &[],
    };
    endings.iter().find_map(|ending| name.strip_suffix(ending)).unwrap_or(name)
}

/// Checks the labels `{a="x",b="y"}` of a sample.
fn check_labels(labels: &str) {
    let mut rest = labels;
    while !rest.is_empty() {
        let (name, value) = rest.split_once("=\"").expect(labels);
        assert!(is_name(name), "{labels}");
        let mut is_escaped = false;
        let end = value.find(|c| {
            let is_end = c == '"' && !is_escaped;
            is_escaped = c == '\\' && !is_escaped;
            is_end
        });
        rest = &value[end.expect(labels) + 1..];
        rest = rest.strip_prefix(',').unwrap_or(rest);
    }
}

fn parse(text: &str, is_open: bool) -> Page {
    let mut page = Page::default();
    let mut family = (String::new(), String::new());
    let text = match is_open {
        true => text.strip_suffix("# EOF\n").expect("OpenMetrics ends with EOF"),
        false => text,
    };
    assert!(text.ends_with('\n') && !text.contains('\r'));
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').expect(line);
            let kinds = ["counter", "gauge", "histogram", "summary", "unknown"];
            assert!(is_name(name) && kinds.contains(&kind), "{line}");
            let before = page.kinds.insert(name.to_owned(), kind.to_owned());
            assert!(before.is_none(), "{name} has two families");
            family = (name.to_owned(), kind.to_owned());
            continue;
        }
        if let Some(rest) = line.strip_prefix("# HELP ") {
            assert!(is_name(rest.split(' ').next().unwrap()), "{line}");
            continue;
        }
        let (sample, value) = line.rsplit_once(' ').expect(line);
        let (name, labels) = match sample.split_once('{') {
            Some((name, labels)) => (name, labels.strip_suffix('}').expect(line)),
            None => (sample, ""),
        };
        assert!(is_name(name), "{line}");
        check_labels(labels);
        assert_eq!(family_of(name, &family.1, is_open), family.0, "{line}");
        let is_counter = is_open && family.1 == "counter";
        assert!(!is_counter || name.ends_with("_total"), "{line}");
        let value: f64 = value.parse().expect(line);
        assert!(page.samples.insert(sample.to_owned(), value).is_none(), "{sample} is there twice");
    }
    page
}

fn scrape(port: u16, header: &str) -> Page {
    let (head, body) = get(port, "/metrics", header);
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    assert!(head.contains(&format!("\r\nContent-Length: {}\r\n", body.len())), "{head}");
    let is_open = header == OPEN;
    assert_eq!(head.contains("Content-Type: application/openmetrics-text"), is_open, "{head}");
    parse(&body, is_open)
}

/// A page on which all that `use_it` did is counted: that may be a moment after the reply.
fn scrape_all(port: u16, header: &str) -> Page {
    let started = Instant::now();
    loop {
        let page = scrape(port, header);
        if page.samples.get("redis_commands_total{cmd=\"get\"}") == Some(&2.0) {
            return page;
        }
        assert!(started.elapsed() < SOON, "GET was not counted: {page:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Some of everything that is counted.
fn use_it(server: &Server) {
    let mut client = Client::connect(server.address()).unwrap();
    for line in [
        "SET a 1 EX 100",
        "GET a",
        "LPUSH a 1",
        "EVAL return(1) 0",
        "CONFIG SET slowlog-log-slower-than 0",
        "GET b",
    ] {
        client.call(&line.split(' ').collect::<Vec<_>>()).unwrap();
    }
}

/// Nothing could be scraped without an exporter beside the server.
#[test]
fn both_formats_are_strictly_right() {
    let Watched { server, port } = watched(&[]);
    use_it(&server);
    for header in ["", OPEN] {
        let page = scrape_all(port, header);
        assert_eq!(page.samples["redis_up"], 1.0);
        assert_eq!(page.samples["redis_db_keys{db=\"db0\"}"], 1.0);
        assert_eq!(page.samples["redis_db_keys{db=\"db15\"}"], 0.0);
        assert_eq!(page.samples["redis_commands_total{cmd=\"get\"}"], 2.0);
        assert_eq!(page.samples["redis_commands_failed_calls_total{cmd=\"lpush\"}"], 1.0);
        assert_eq!(page.samples["redis_errors_total{err=\"WRONGTYPE\"}"], 1.0);
        assert_eq!(page.samples["redis_keyspace_misses_total"], 1.0);
        assert_eq!(page.samples["russet_script_runs_total{locks=\"narrow\"}"], 1.0);
        check_histogram(&page, "get", 2.0);
    }
}

/// Buckets rise to the count, which is that of the calls.
#[track_caller]
fn check_histogram(page: &Page, command: &str, calls: f64) {
    let prefix = format!("redis_commands_latencies_usec_bucket{{cmd=\"{command}\",le=\"");
    let mut buckets: Vec<(f64, f64)> = page
        .samples
        .iter()
        .filter_map(|(sample, count)| {
            let end = sample.strip_prefix(&prefix)?.trim_end_matches("\"}");
            Some((end.parse().expect(sample), *count))
        })
        .collect();
    buckets.sort_by(|a, b| a.0.total_cmp(&b.0));
    assert!(buckets.is_sorted_by(|a, b| a.1 <= b.1), "{buckets:?}");
    assert_eq!(buckets.last(), Some(&(f64::INFINITY, calls)));
    let count = format!("redis_commands_latencies_usec_count{{cmd=\"{command}\"}}");
    assert_eq!(page.samples[&count], calls);
}

/// Dashboards that were made for redis_exporter ask for its names.
#[test]
fn names_and_kinds_are_those_of_redis_exporter() {
    let Watched { server, port } = watched(&["--appendonly", "yes"]);
    use_it(&server);
    let ours = scrape(port, "").kinds;
    let known = include_str!("metrics/exporter.txt");
    for line in known.lines().filter(|line| !line.starts_with('#')) {
        let (name, kind) = line.split_once(' ').unwrap();
        assert_eq!(ours.get(name).map(String::as_str), Some(kind), "{name}");
    }
}

/// A running exporter, if this machine has one: what it says of this server, we say too.
#[test]
fn a_real_exporter_says_nothing_that_is_missing() {
    let Watched { server, port } = watched(&["--appendonly", "yes"]);
    use_it(&server);
    let web = free_port().unwrap();
    let child = Command::new("prometheus-redis-exporter")
        .args(["-redis.addr", &format!("redis://{}", server.address())])
        .args(["-web.listen-address", &format!("127.0.0.1:{web}")])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let Ok(mut child) = child else {
        println!("SKIPPED: there is no prometheus-redis-exporter to compare with");
        return;
    };
    let started = Instant::now();
    while TcpStream::connect((Ipv4Addr::LOCALHOST, web)).is_err() && started.elapsed() < SOON {
        std::thread::sleep(Duration::from_millis(20));
    }
    let mut stream = connect(web);
    stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").unwrap();
    let mut text = String::new();
    let read = stream.read_to_string(&mut text);
    child.kill().unwrap();
    child.wait().unwrap();
    read.unwrap();
    // What it says of itself, and a figure that it reads out of the wrong field.
    let own =
        ["redis_exporter_", "redis_target_scrape", "redis_last_key_groups", "redis_db_keys_cached"];
    let theirs: BTreeSet<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next())
        .filter(|name| name.starts_with("redis_") && !own.iter().any(|own| name.starts_with(own)))
        .collect();
    assert!(theirs.len() > 100, "{text}");
    let ours = scrape(port, "").kinds;
    let missing: Vec<_> = theirs.iter().filter(|name| !ours.contains_key(**name)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// Prometheus' own parser, if this machine has it.
#[test]
fn promtool_accepts_the_page() {
    let Watched { server, port } = watched(&["--appendonly", "yes"]);
    use_it(&server);
    let tool = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let Ok(mut tool) = tool else {
        println!("SKIPPED: there is no promtool");
        return;
    };
    let (_, body) = get(port, "/metrics", "");
    tool.stdin.take().unwrap().write_all(body.as_bytes()).unwrap();
    let output = tool.wait_with_output().unwrap();
    // 3 is advice about names, which are the exporter's; 1 is an error.
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(matches!(output.status.code(), Some(0 | 3)), "{said}");
    assert!(!said.contains("error while linting"), "{said}");
}

/// Names in a text that look like metrics.
fn metrics_named(text: &str) -> BTreeSet<&str> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let words = text.split(|c| !is_part(c));
    words.filter(|word| word.starts_with("redis_") || word.starts_with("russet_")).collect()
}

#[test]
fn dashboard_alerts_and_manual_ask_for_what_is_there() {
    let Watched { server, port } = watched(&["--appendonly", "yes"]);
    use_it(&server);
    let kinds = scrape(port, "").kinds;
    let dashboard = include_str!("../../packaging/monitoring/grafana.json");
    let alerts = include_str!("../../packaging/monitoring/alerts.yml");
    let manual = include_str!("../../docs/operations.md");
    // A program and two words that only look like metrics.
    let others = ["redis_exporter", "russet_", "russet_amd64"];
    for name in [dashboard, alerts, manual].iter().flat_map(|text| metrics_named(text)) {
        let family = name.strip_suffix("_bucket").unwrap_or(name);
        assert!(kinds.contains_key(family) || others.contains(&name), "{name}");
    }
}

#[test]
fn health_follows_the_load() {
    let first = Server::start(Kind::Russet, &[]).unwrap();
    let mut client = Client::connect(first.address()).unwrap();
    client.call(&["DEBUG", "POPULATE", "300"]).unwrap();
    client.call(&["SAVE"]).unwrap();
    let port = free_port().unwrap();
    let (dir, port_text) = (first.dir().to_str().unwrap(), port.to_string());
    // Ten seconds for each key: it does not end before it is told to.
    let args = ["--dir", dir, "--metrics-port", &port_text, "--key-load-delay", "10000000"];
    let second = Server::start_loading(&args).unwrap();
    assert_eq!(status(port, "/health/live"), "200");
    assert_eq!(status(port, "/health/ready"), "503");
    assert_eq!(scrape(port, "").samples["redis_loading_dump_file"], 1.0);
    drop(second);
    let Watched { server: _server, port } = watched(&[]);
    assert_eq!(status(port, "/health/live"), "200");
    assert_eq!(status(port, "/health/ready"), "200");
}

#[test]
fn other_requests_get_an_answer_and_a_close() {
    let Watched { server: _server, port } = watched(&[]);
    for (request, status) in [
        ("GET /nothing HTTP/1.1\r\n\r\n".to_owned(), "404"),
        ("POST /metrics HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc".to_owned(), "405"),
        ("*1\r\n$4\r\nPING\r\n\r\n\r\n".to_owned(), "400"),
        ("GET / HTTP/1.1\r\nbroken\r\n\r\n".to_owned(), "400"),
        (format!("GET /{} HTTP/1.1\r\n\r\n", "a".repeat(9000)), "431"),
        (format!("GET / HTTP/1.1\r\nX: {}", "a".repeat(20_000)), "431"),
    ] {
        let (head, _) = exchange(port, &request);
        assert_eq!(head.split(' ').nth(1), Some(status), "{head}");
    }
    let (head, body) = exchange(port, "HEAD /health/live HTTP/1.1\r\n\r\n");
    assert!(head.contains("Content-Length: 5") && body.is_empty(), "{head}");
}

/// Whoever opened connections and said nothing could have kept the scraper out.
#[test]
fn idle_connections_keep_nobody_out() {
    let Watched { server: _server, port } = watched(&[]);
    let mut idle = Vec::new();
    for _ in 0..100 {
        let mut stream = connect(port);
        stream.write_all(b"GET /metrics HTTP/1.1\r\n").unwrap();
        idle.push(stream);
    }
    assert_eq!(status(port, "/health/live"), "200");
    // The first was closed to make room, whether or not its bytes had been read.
    let mut rest = Vec::new();
    let closed = idle[0].read_to_end(&mut rest).map_err(|error| error.kind());
    assert!(matches!(closed, Ok(0) | Err(ErrorKind::ConnectionReset)), "{closed:?}");
}

/// The ports that a process listens on, as the kernel has them.
fn listening_ports(pid: u32) -> BTreeSet<u16> {
    const LISTEN: &str = "0A";
    let files = std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap();
    let sockets: BTreeSet<String> = files
        .filter_map(|file| {
            std::fs::read_link(file.ok()?.path()).ok()?.into_os_string().into_string().ok()
        })
        .filter_map(|target| Some(target.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned()))
        .collect();
    let mut ports = BTreeSet::new();
    for table in ["tcp", "tcp6"] {
        let table = std::fs::read_to_string(format!("/proc/{pid}/net/{table}")).unwrap_or_default();
        for line in table.lines().skip(1) {
            // Number, local address, the other's, state; the socket is the tenth.
            let fields: Vec<&str> = line.split_whitespace().collect();
            if fields[3] == LISTEN && sockets.contains(fields[9]) {
                let (_, port) = fields[1].rsplit_once(':').unwrap();
                ports.insert(u16::from_str_radix(port, 16).unwrap());
            }
        }
    }
    ports
}

#[test]
fn there_is_no_port_unless_asked_for() {
    let server = Server::start(Kind::Russet, &[]).unwrap();
    assert_eq!(listening_ports(server.pid()), BTreeSet::from([server.address().port()]));
    let Watched { server, port } = watched(&[]);
    assert_eq!(listening_ports(server.pid()), BTreeSet::from([server.address().port(), port]));
}
