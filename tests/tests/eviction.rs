#![forbid(unsafe_code)]
//! `maxmemory`: it holds under load, the right keys go, and what is refused is what Valkey refuses.

use russet_tests::client::{Client, REPLY_WAIT, Reply, encode};
use russet_tests::server::{Kind, Server};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const MIB: u64 = 1024 * 1024;
/// How far memory may be beyond the limit.
const EXCESS_BYTES_MAX: u64 = 10 * MIB;

fn connect(server: &Server) -> Client {
    Client::connect(server.address()).unwrap()
}

fn info(client: &mut Client, field: &str) -> u64 {
    let reply = client.call(&["INFO", "memory", "stats"]).unwrap();
    let text = String::from_utf8_lossy(reply.text().unwrap()).into_owned();
    let prefix = format!("{field}:");
    let line = text.lines().find_map(|line| line.strip_prefix(&prefix));
    line.unwrap_or_else(|| panic!("INFO has no {field}")).trim().parse().unwrap()
}

fn set_limit(client: &mut Client, bytes: u64) {
    let reply = client.call(&["CONFIG", "SET", "maxmemory", &bytes.to_string()]).unwrap();
    assert_eq!(reply, Reply::Status(b"OK".to_vec()));
}

/// Several clients write more than there is room for, each policy in turn: the limit holds at every
/// moment, keys go, and no write is refused.
#[test]
fn the_limit_holds_under_load() {
    let server = Server::start(Kind::Russet, &["--threads", "4", "--threads-min", "4"]).unwrap();
    let mut client = connect(&server);
    for policy in ["allkeys-lru", "allkeys-lfu", "allkeys-random", "volatile-ttl", "volatile-lrm"] {
        client.call(&["FLUSHALL"]).unwrap();
        client.call(&["CONFIG", "SET", "maxmemory-policy", policy]).unwrap();
        let limit = info(&mut client, "used_memory") + 16 * MIB;
        set_limit(&mut client, limit);
        let evicted_before = info(&mut client, "evicted_keys");
        let is_over = AtomicBool::new(false);
        let most = std::thread::scope(|scope| {
            let writers: Vec<_> = (0..4)
                .map(|writer| {
                    let server = &server;
                    scope.spawn(move || write(server, writer))
                })
                .collect();
            let watch = scope.spawn(|| {
                let mut client = connect(&server);
                let mut most = 0;
                while !is_over.load(Ordering::Relaxed) {
                    most = most.max(info(&mut client, "used_memory"));
                }
                most
            });
            writers.into_iter().for_each(|writer| writer.join().unwrap());
            is_over.store(true, Ordering::Relaxed);
            watch.join().unwrap()
        });
        assert!(most < limit + EXCESS_BYTES_MAX, "{policy}: {most} of {limit} bytes");
        assert!(info(&mut client, "evicted_keys") > evicted_before, "{policy} evicts nothing");
    }
}

/// 40 MB in keys that have an expiry.
/// A server without data took more than a small limit, and refused everything.
#[test]
fn a_small_limit_leaves_room_for_data() {
    let args = ["--maxmemory", "2mb", "--maxmemory-policy", "allkeys-lru"];
    let server = Server::start(Kind::Russet, &args).unwrap();
    let mut client = connect(&server);
    let value = "x".repeat(100);
    for number in 0..20_000 {
        let reply = client.call(&["SET", &format!("key:{number}"), &value]).unwrap();
        assert_eq!(reply, ok(), "{number}");
    }
    let Reply::Int(kept) = client.call(&["DBSIZE"]).unwrap() else { panic!("no number") };
    assert!((3_000..19_000).contains(&kept), "{kept}");
    assert!(info(&mut client, "used_memory") <= 2 * MIB + 4096);
}

fn write(server: &Server, writer: usize) {
    let mut client = connect(server);
    let value = "v".repeat(1000);
    for round in 0..100 {
        for key in 0..100 {
            let key = format!("{writer}:{round}:{key}");
            let args = ["SET", &key, &value, "EX", "1000"].map(|arg| arg.as_bytes().to_vec());
            client.send(&args).unwrap();
        }
        for _ in 0..100 {
            assert_eq!(client.read(REPLY_WAIT).unwrap(), Reply::Status(b"OK".to_vec()));
        }
    }
}

/// Whoever listens hears of each key that goes, and a client that watches one has its transaction
/// fail.
#[test]
fn eviction_is_seen() {
    let server = Server::start(Kind::Russet, &["--notify-keyspace-events", "Ee"]).unwrap();
    let (mut client, mut listener) = (connect(&server), connect(&server));
    listener.call(&["SUBSCRIBE", "__keyevent@0__:evicted"]).unwrap();
    let mut watcher = connect(&server);
    watcher.call(&["SET", "watched", "1"]).unwrap();
    watcher.call(&["WATCH", "watched"]).unwrap();
    watcher.call(&["MULTI"]).unwrap();
    client.call(&["CONFIG", "SET", "maxmemory-policy", "allkeys-lru"]).unwrap();
    set_limit(&mut client, 1);
    let deadline = Instant::now() + Duration::from_secs(20);
    while client.call(&["EXISTS", "watched"]).unwrap() != Reply::Int(0) {
        assert!(Instant::now() < deadline, "the key does not go");
    }
    set_limit(&mut client, 0);
    let message = listener.read(REPLY_WAIT).unwrap();
    let parts = ["message", "__keyevent@0__:evicted", "watched"];
    assert_eq!(message, Reply::Array(parts.map(|part| Reply::Bulk(part.into())).to_vec()));
    watcher.call(&["GET", "watched"]).unwrap();
    assert_eq!(watcher.call(&["EXEC"]).unwrap(), Reply::NullArray);
}

/// What needs memory is refused when there is none, in the same words and places as in Valkey, and
/// changes nothing.
#[test]
fn what_is_refused_without_memory() {
    let server = Server::start(Kind::Russet, &[]).unwrap();
    let russet = refusals(&mut connect(&server));
    let Some(peer) = Server::start_if_there(Kind::Valkey, &[]) else { return };
    assert_eq!(russet, refusals(&mut connect(&peer)));
}

fn refusals(client: &mut Client) -> Vec<(String, Reply)> {
    const LIBRARY: &str = "#!lua name=lib\nredis.register_function('f', function(keys) \
        return redis.call('SET', keys[1], 1) end)\nredis.register_function{function_name='g', \
        callback=function(keys) return redis.call('SET', keys[1], 1) end, flags={'allow-oom'}}";
    const CALLS: &[&[&str]] = &[
        &["SET", "a", "2"],
        &["GET", "a"],
        &["DEL", "b"],
        &["LPUSH", "l", "1"],
        &["EXPIRE", "a", "100"],
        &["EVAL", "return redis.pcall('SET', KEYS[1], 1)", "1", "a"],
        &["EVAL", "return redis.pcall('GET', KEYS[1])", "1", "a"],
        &["EVAL", "redis.call('DEL', KEYS[1]) return redis.call('SET', KEYS[1], 1)", "1", "b"],
        &["EVAL", "#!lua\nreturn 1", "0"],
        &["EVAL", "#!lua flags=no-writes\nreturn redis.call('GET', KEYS[1])", "1", "a"],
        &["EVAL", "#!lua flags=allow-oom\nreturn redis.call('SET', KEYS[1], 1)", "1", "c"],
        &["FCALL", "f", "1", "d"],
        &["FCALL", "g", "1", "d"],
        &["FUNCTION", "LOAD", "REPLACE", LIBRARY],
        &["MULTI"],
        &["SET", "a", "3"],
        &["GET", "a"],
        &["EXEC"],
        &["MULTI"],
        &["GET", "a"],
        &["EXEC"],
        &["PUBLISH", "channel", "message"],
    ];
    client.call(&["SET", "a", "1"]).unwrap();
    client.call(&["SET", "b", "1"]).unwrap();
    client.call(&["FUNCTION", "LOAD", LIBRARY]).unwrap();
    set_limit(client, 1);
    let call = |args: &&[&str]| (args.join(" "), client.call(args).unwrap());
    let replies = CALLS.iter().map(call).collect();
    set_limit(client, 0);
    assert_eq!(client.call(&["SET", "a", "4"]).unwrap(), Reply::Status(b"OK".to_vec()));
    replies
}

/// A client that waited to move an element was served by a script that may go beyond the limit,
/// though its own call may not: the element was written where there was no memory for it.
#[test]
fn who_waits_is_served_only_if_there_is_memory_for_its_call() {
    let server = Server::start(Kind::Russet, &[]).unwrap();
    let russet = served_without_memory(&server);
    assert!(russet[0].is_error() && russet[1..] == [Reply::Int(0), Reply::Int(1)], "{russet:?}");
    let Some(peer) = Server::start_if_there(Kind::Valkey, &[]) else { return };
    assert_eq!(russet, served_without_memory(&peer));
}

fn served_without_memory(server: &Server) -> Vec<Reply> {
    const PUSH: &str = "#!lua flags=allow-oom\nreturn redis.call('RPUSH', KEYS[1], 'x')";
    let (mut client, mut waiter) = (connect(server), connect(server));
    let call = ["BLMOVE", "src", "dst", "LEFT", "RIGHT", "0"].map(|arg| arg.as_bytes().to_vec());
    waiter.send_raw(&encode(&call)).unwrap();
    loop {
        let clients = client.call(&["INFO", "clients"]).unwrap();
        let text = String::from_utf8_lossy(clients.text().unwrap()).into_owned();
        if text.contains("blocked_clients:1") {
            break;
        }
    }
    set_limit(&mut client, 1);
    client.call(&["EVAL", PUSH, "1", "src"]).unwrap();
    let reply = waiter.read(REPLY_WAIT).unwrap();
    let counts = [["EXISTS", "dst"], ["LLEN", "src"]].map(|call| client.call(&call).unwrap());
    set_limit(&mut client, 0);
    [reply].into_iter().chain(counts).collect()
}

/// A transaction that was queued while there was memory is refused as a whole when there is none.
#[test]
fn a_transaction_without_memory_is_refused() {
    let server = Server::start(Kind::Russet, &[]).unwrap();
    let (mut client, mut other) = (connect(&server), connect(&server));
    client.call(&["MULTI"]).unwrap();
    client.call(&["SET", "a", "1"]).unwrap();
    set_limit(&mut other, 1);
    let refused = client.call(&["EXEC"]).unwrap();
    let text = "EXECABORT Transaction discarded because of: OOM command not allowed when used \
        memory > 'maxmemory'.";
    assert_eq!(refused, Reply::Error(text.as_bytes().to_vec()));
    assert_eq!(other.call(&["EXISTS", "a"]).unwrap(), Reply::Int(0));
}

/// A client that has sent most of a large request, and not its end; what it has sent counts.
fn begin_large_request(server: &Server, bytes: usize, is_exempt: bool) -> Client {
    let mut client = connect(server);
    if is_exempt {
        assert_eq!(client.call(&["CLIENT", "NO-EVICT", "ON"]).unwrap(), ok());
    }
    let beginning = format!("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n${}\r\n", bytes + 1);
    client.send_raw(beginning.as_bytes()).unwrap();
    client.send_raw(&vec![b'v'; bytes]).unwrap();
    client
}

fn ok() -> Reply {
    Reply::Status(b"OK".to_vec())
}

/// `maxmemory-clients`, in bytes or as a part of `maxmemory`: the largest clients are closed, those
/// that have asked for it by CLIENT NO-EVICT excepted.
#[test]
fn the_largest_clients_are_closed() {
    for limit in ["4mb", "2%"] {
        let options = ["--maxmemory", "200mb", "--maxmemory-clients", limit];
        let server = Server::start(Kind::Russet, &options).unwrap();
        let mut control = connect(&server);
        assert_eq!(control.call(&["CLIENT", "NO-EVICT", "ON"]).unwrap(), ok());
        let mut small = connect(&server);
        let mut exempt = begin_large_request(&server, 2_500_000, true);
        let mut largest = begin_large_request(&server, 2_000_000, false);
        assert!(largest.is_closed(REPLY_WAIT), "{limit}: the largest that may be closed is");
        assert_eq!(info(&mut control, "evicted_clients"), 1);
        let deadline = Instant::now() + REPLY_WAIT;
        while info(&mut control, "mem_clients_normal") > 4 * MIB {
            assert!(Instant::now() < deadline, "what it held is not free");
        }
        assert_eq!(small.call(&["PING"]).unwrap(), Reply::Status(b"PONG".to_vec()));
        exempt.send_raw(b"v\r\n").unwrap();
        assert_eq!(exempt.read(REPLY_WAIT).unwrap(), ok());
        // A limit that is lowered closes clients that are idle.
        let mut idle = begin_large_request(&server, 1_000_000, false);
        while info(&mut control, "mem_clients_normal") < 1_000_000 {
            assert!(Instant::now() < deadline, "what it sent does not count");
        }
        control.call(&["CONFIG", "SET", "maxmemory-clients", "500kb"]).unwrap();
        assert!(idle.is_closed(REPLY_WAIT));
        assert_eq!(info(&mut control, "evicted_clients"), 2);
    }
}
