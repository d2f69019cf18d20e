//! What large requests and replies cost while they are under way, and what they leave behind.

use russet_tests::client::{Client, REPLY_WAIT, Reply, encode};
use russet_tests::server::{Kind, Server};
use std::io::Write as _;
use std::net::TcpStream;
use std::time::{Duration, Instant};

const MIB: u64 = 1024 * 1024;
/// What a server takes for other reasons: threads, their buffers, pages not yet given back.
const NOISE_BYTES: u64 = 8 * MIB;
/// What large calls may leave of a server's size: idle pages that are kept for the next one, chunks
/// of the table, buffers of threads. An unoptimised build has more of the last.
const RESIDENT_BYTES_MAX: u64 = 32 * MIB;

fn ok() -> Reply {
    Reply::Status(b"OK".to_vec())
}

fn args(parts: &[&str]) -> Vec<Vec<u8>> {
    parts.iter().map(|part| part.as_bytes().to_vec()).collect()
}

fn set(key: &str, value: &[u8]) -> Vec<Vec<u8>> {
    vec![b"SET".to_vec(), key.as_bytes().to_vec(), value.to_vec()]
}

fn used_memory(client: &mut Client) -> u64 {
    let reply = client.call(&["INFO", "memory"]).unwrap();
    let text = String::from_utf8_lossy(reply.text().unwrap()).into_owned();
    let line = text.lines().find_map(|line| line.strip_prefix("used_memory:"));
    line.unwrap().trim().parse().unwrap()
}

/// The most memory that a process has ever had.
fn peak_bytes(server: &Server) -> u64 {
    status_bytes(server, "VmHWM:")
}

fn resident_bytes(server: &Server) -> u64 {
    status_bytes(server, "VmRSS:")
}

fn status_bytes(server: &Server, field: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(field)).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}

/// Waits until memory is back at about what it was: what a call leaves may be swept up later.
fn assert_memory_returns(client: &mut Client, before: u64, what: &str) {
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let stays = used_memory(client).saturating_sub(before);
        if stays < 4 * MIB {
            return;
        }
        assert!(Instant::now() < deadline, "{what}: {stays} bytes stay");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// The same for what the system has given the server.
fn assert_resident_returns(server: &Server, before: u64, what: &str) {
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let stays = resident_bytes(server).saturating_sub(before);
        if stays < RESIDENT_BYTES_MAX {
            return;
        }
        assert!(Instant::now() < deadline, "{what}: {stays} resident bytes stay");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// A value was held three times while it was set: in the buffer that it was read into, in the old
/// one that had become too small, and as the value.
#[test]
fn a_long_value_is_held_once_on_its_way_in() {
    const BYTES: u64 = 96 * MIB;
    let value = vec![b'x'; BYTES as usize];
    for in_transaction in [false, true] {
        let server = Server::start(Kind::Russet, &[]).unwrap();
        let mut client = Client::connect(server.address()).unwrap();
        assert_eq!(client.call(&["PING"]).unwrap(), Reply::Status(b"PONG".to_vec()));
        let before = peak_bytes(&server);
        if in_transaction {
            client.call(&["MULTI"]).unwrap();
        }
        client.send(&set("k", &value)).unwrap();
        client.read(REPLY_WAIT).unwrap();
        if in_transaction {
            assert_eq!(client.call(&["EXEC"]).unwrap(), Reply::Array(vec![ok()]));
        }
        let taken = peak_bytes(&server) - before;
        assert!(taken < BYTES + BYTES / 5 + NOISE_BYTES, "{taken} for {BYTES}: {in_transaction}");
        assert_eq!(client.call(&["STRLEN", "k"]).unwrap(), Reply::Int(BYTES as i64));
        // Nobody but the value has the bytes any more.
        let memory = used_memory(&mut client);
        assert_eq!(client.call(&["SETRANGE", "k", "7", "y"]).unwrap(), Reply::Int(BYTES as i64));
        assert_memory_returns(&mut client, memory, "SETRANGE");
        assert!(peak_bytes(&server) - before < BYTES + BYTES / 5 + NOISE_BYTES);
    }
}

/// Behind a call that was blocked it went to a buffer that was copied each time it had become too
/// small, which held up the other clients of its loop; later only if a whole request or another
/// long value came before it.
#[test]
fn a_long_value_behind_a_blocked_call_is_held_once() {
    const BYTES: u64 = 96 * MIB;
    let value = vec![b'x'; BYTES as usize];
    for before_it in [None, Some(args(&["GET", "a"])), Some(set("a", &value[..100_000]))] {
        let server = Server::start(Kind::Russet, &[]).unwrap();
        let mut client = Client::connect(server.address()).unwrap();
        let mut other = Client::connect(server.address()).unwrap();
        assert_eq!(other.call(&["PING"]).unwrap(), Reply::Status(b"PONG".to_vec()));
        let before = peak_bytes(&server);
        // As soon as all of it is sent most of it has been read.
        client.send(&args(&["BLPOP", "queue", "0"])).unwrap();
        if let Some(call) = &before_it {
            client.send(call).unwrap();
        }
        client.send(&set("k", &value)).unwrap();
        client.send(&args(&["STRLEN", "k"])).unwrap();
        assert_eq!(other.call(&["EXISTS", "k"]).unwrap(), Reply::Int(0));
        assert_eq!(other.call(&["RPUSH", "queue", "element"]).unwrap(), Reply::Int(1));
        assert!(matches!(client.read(REPLY_WAIT).unwrap(), Reply::Array(pair) if pair.len() == 2));
        if before_it.is_some() {
            client.read(REPLY_WAIT).unwrap();
        }
        assert_eq!(client.read(REPLY_WAIT).unwrap(), ok());
        assert_eq!(client.read(REPLY_WAIT).unwrap(), Reply::Int(BYTES as i64));
        let taken = peak_bytes(&server) - before;
        assert!(taken < BYTES + BYTES / 5 + NOISE_BYTES, "{taken} for {BYTES}");
    }
}

/// Who announces much and sends little has not been given much.
#[test]
fn an_announced_value_takes_no_memory() {
    let server = Server::start(Kind::Russet, &[]).unwrap();
    let mut client = Client::connect(server.address()).unwrap();
    let before = used_memory(&mut client);
    let mut liars = Vec::new();
    for _ in 0..4 {
        let mut liar = TcpStream::connect(server.address()).unwrap();
        let begin = b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$536870912\r\n";
        liar.write_all(&[begin, &[b'x'; 10_000][..]].concat()).unwrap();
        liars.push(liar);
    }
    for _ in 0..50 {
        let taken = used_memory(&mut client).saturating_sub(before);
        assert!(taken < NOISE_BYTES, "{taken}");
    }
}

/// Each reply that waited to be sent was a copy of the value, in a buffer of up to twice its size.
#[test]
fn a_reader_that_never_reads_shares_the_value() {
    const REPLIES: usize = 100;
    let server = Server::start(Kind::Russet, &[]).unwrap();
    let mut client = Client::connect(server.address()).unwrap();
    let value = vec![b'x'; MIB as usize];
    client.send(&set("k", &value)).unwrap();
    assert_eq!(client.read(REPLY_WAIT).unwrap(), ok());
    let before = used_memory(&mut client);

    let mut reader = Client::connect(server.address()).unwrap();
    let id = reader.call(&["CLIENT", "ID"]).unwrap();
    let Reply::Int(id) = id else { panic!("{id:?}") };
    reader.send_raw(&encode(&args(&["GET", "k"])).repeat(REPLIES)).unwrap();
    reader.send_raw(&encode(&args(&["MGET", "k", "none", "k"]))).unwrap();
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let line = client.call(&["CLIENT", "LIST", "ID", &id.to_string()]).unwrap();
        let line = String::from_utf8_lossy(line.text().unwrap()).into_owned();
        let omem = line.split(" omem=").nth(1).and_then(|rest| rest.split(' ').next());
        // What the socket has taken is not among it.
        let is_there = omem.unwrap().parse::<u64>().unwrap() > (REPLIES as u64 - 20) * MIB;
        if is_there && line.contains("cmd=mget") {
            break;
        }
        assert!(Instant::now() < deadline, "{line}");
    }
    let taken = used_memory(&mut client).saturating_sub(before);
    assert!(taken < NOISE_BYTES, "{taken}");

    // What others do with the key meanwhile changes no reply.
    let changes = [&["SETRANGE", "k", "0", "y"][..], &["APPEND", "k", "y"], &["DEL", "k"]];
    changes.iter().for_each(|change| assert!(!client.call(change).unwrap().is_error()));
    for _ in 0..REPLIES {
        assert!(reader.read(REPLY_WAIT).unwrap() == Reply::Bulk(value.clone()));
    }
    let all = [Reply::Bulk(value.clone()), Reply::NullBulk, Reply::Bulk(value)];
    assert!(reader.read(REPLY_WAIT).unwrap() == Reply::Array(all.to_vec()));
    assert_memory_returns(&mut client, before - MIB, "replies that were sent");
}

/// Unsent replies were in one buffer, which doubled and moved.
#[test]
fn unsent_replies_take_little_more_than_their_bytes() {
    const REPLIES: u64 = 200;
    let server = Server::start(Kind::Russet, &[]).unwrap();
    let mut client = Client::connect(server.address()).unwrap();
    let mut push = args(&["RPUSH", "l"]);
    push.extend((0..10_000).map(|n: u32| format!("{n:010}").into_bytes()));
    client.send(&push).unwrap();
    assert_eq!(client.read(REPLY_WAIT).unwrap(), Reply::Int(10_000));
    let reply_bytes = 8 + 10_000 * (5 + 12);
    let before = (used_memory(&mut client), peak_bytes(&server));

    let mut reader = Client::connect(server.address()).unwrap();
    reader.send_raw(&encode(&args(&["LRANGE", "l", "0", "-1"])).repeat(REPLIES as usize)).unwrap();
    reader.send_raw(&encode(&args(&["PUBLISH", "done", "x"]))).unwrap();
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let list = client.call(&["CLIENT", "LIST"]).unwrap();
        if String::from_utf8_lossy(list.text().unwrap()).contains("cmd=publish") {
            break;
        }
        assert!(Instant::now() < deadline);
    }
    let bytes_max = REPLIES * reply_bytes * 11 / 10 + NOISE_BYTES;
    assert!(used_memory(&mut client) - before.0 < bytes_max);
    assert!(peak_bytes(&server) - before.1 < bytes_max);
    for _ in 0..REPLIES {
        let Reply::Array(items) = reader.read(REPLY_WAIT).unwrap() else { panic!("no array") };
        assert_eq!(items.len(), 10_000);
        assert_eq!(items[7_777], Reply::Bulk(b"0000007777".to_vec()));
    }
    assert_eq!(reader.read(REPLY_WAIT).unwrap(), Reply::Int(0));
}

/// How many bytes the server has read from the client of this name.
fn bytes_read(client: &mut Client, name: &str) -> usize {
    let list = client.call(&["CLIENT", "LIST"]).unwrap();
    let list = String::from_utf8_lossy(list.text().unwrap()).into_owned();
    let line = list.lines().find(|line| line.contains(&format!(" name={name} "))).unwrap();
    let field = line.split(' ').find_map(|field| field.strip_prefix("tot-net-in="));
    field.unwrap().parse().unwrap()
}

/// Sends a SET of a long value to a shard that a script holds. Whether it did hold it.
fn send_to_busy_shard([busy, client, probe, admin]: &mut [Client; 4], size: usize) -> bool {
    let value: Vec<u8> = (0..size).map(|at| b'a' + (at % 23) as u8).collect();
    assert_eq!(client.call(&["CLIENT", "SETNAME", "writer"]).unwrap(), ok());
    let read_before = bytes_read(admin, "writer");
    let script = "local start = os.clock() while os.clock() - start < 0.3 do end \
                  return redis.call('SET', KEYS[1], 'old')";
    busy.send(&args(&["EVAL", script, "1", "{t}k"])).unwrap();
    // A call on the key waits as soon as the script runs.
    let deadline = Instant::now() + REPLY_WAIT;
    probe.send(&args(&["EXISTS", "{t}k"])).unwrap();
    while probe.read(Duration::from_millis(20)).is_ok() {
        assert!(Instant::now() < deadline, "the script does not run");
        probe.send(&args(&["EXISTS", "{t}k"])).unwrap();
    }
    let request = [
        encode(&args(&["PING"])),
        encode(&set("{t}k", &value)),
        encode(&args(&["APPEND", "{t}k", "!"])),
        encode(&set("{t}other", &value)),
        encode(&args(&["GET", "{t}k"])),
    ];
    for piece in request.concat().chunks(77_777) {
        client.send_raw(piece).unwrap();
    }
    assert_eq!(client.read(REPLY_WAIT).unwrap(), Reply::Status(b"PONG".to_vec()));
    let until_set = read_before + request[0].len() + request[1].len();
    while bytes_read(admin, "writer") < until_set {
        assert!(Instant::now() < deadline, "SET was not read");
    }
    // It has been read whole and was not run: the script holds the shard still.
    let has_waited = busy.glance().unwrap().is_none();
    assert_eq!(busy.read(REPLY_WAIT).unwrap(), ok());
    probe.read(REPLY_WAIT).unwrap();
    assert_eq!(client.read(REPLY_WAIT).unwrap(), ok());
    assert_eq!(client.read(REPLY_WAIT).unwrap(), Reply::Int(size as i64 + 1));
    assert_eq!(client.read(REPLY_WAIT).unwrap(), ok());
    let expected = [&value[..], b"!"].concat();
    assert!(client.read(REPLY_WAIT).unwrap() == Reply::Bulk(expected));
    assert!(client.call(&["GET", "{t}other"]).unwrap() == Reply::Bulk(value));
    has_waited
}

/// A command with a long argument can't be parsed again: it must survive a busy shard, and letters
/// to its connection, as it is.
#[test]
fn a_long_value_waits_for_a_busy_shard() {
    let server = Server::start(Kind::Russet, &[]).unwrap();
    let mut clients = [(); 4].map(|()| Client::connect(server.address()).unwrap());
    for size in [65_536, 65_537, 300_000, 5_000_000] {
        let deadline = Instant::now() + REPLY_WAIT;
        while !send_to_busy_shard(&mut clients, size) {
            assert!(Instant::now() < deadline, "{size}: the script has always ended before");
        }
    }
}

/// The lists that a call of many keys makes stayed as long as the call had made them, and what was
/// given back to the allocator stayed there for some seconds more.
#[test]
fn large_calls_leave_no_memory_behind() {
    const KEYS: usize = 200_000;
    let server = Server::start_keeping_pages(&[]).unwrap();
    let mut client = Client::connect(server.address()).unwrap();
    let mut other = Client::connect(server.address()).unwrap();
    let keys: Vec<Vec<u8>> = (0..KEYS).map(|n| format!("key:{n:07}").into_bytes()).collect();
    let on_all = |name: &str| [vec![name.as_bytes().to_vec()], keys.clone()].concat();
    other.call(&["CONFIG", "SET", "notify-keyspace-events", "KEA"]).unwrap();
    let before = (used_memory(&mut other), resident_bytes(&server));
    let assert_returned = |other: &mut Client, what: &str| {
        assert_memory_returns(other, before.0, what);
        assert_resident_returns(&server, before.1, what);
    };

    let pairs = keys.iter().flat_map(|key| [key.clone(), b"v".to_vec()]);
    client.send(&[b"MSET".to_vec()].into_iter().chain(pairs).collect::<Vec<_>>()).unwrap();
    assert_eq!(client.read(REPLY_WAIT).unwrap(), ok());
    for name in ["MGET", "EXISTS", "DEL", "WATCH"] {
        client.send(&on_all(name)).unwrap();
        assert!(!client.read(REPLY_WAIT).unwrap().is_error());
    }
    assert_eq!(client.call(&["UNWATCH"]).unwrap(), ok());
    assert_returned(&mut other, "MSET, MGET, EXISTS, DEL, WATCH");

    // Each SET is an event, and they are published when the script ends.
    let script = "for i = 1, 200000 do redis.call('SET', KEYS[1], i) end";
    client.send(&args(&["EVAL", script, "1", "k"])).unwrap();
    assert_eq!(client.read(REPLY_WAIT).unwrap(), Reply::NullBulk);
    let script = "local t = {} for i = 1, 50000 do t[i] = i * 7919 % 50021 end \
                  table.sort(t, function(a, b) return 'x' .. a < 'x' .. b end) return #t";
    client.send(&args(&["EVAL", script, "0"])).unwrap();
    assert_eq!(client.read(REPLY_WAIT).unwrap(), Reply::Int(50_000));
    assert_returned(&mut other, "scripts");

    for (begin, end) in [("SUBSCRIBE", "UNSUBSCRIBE"), ("PSUBSCRIBE", "PUNSUBSCRIBE")] {
        client.send(&on_all(begin)).unwrap();
        (0..KEYS).for_each(|_| drop(client.read(REPLY_WAIT).unwrap()));
        client.send(&args(&[end])).unwrap();
        (0..KEYS).for_each(|_| drop(client.read(REPLY_WAIT).unwrap()));
        assert_returned(&mut other, begin);
    }

    client.send(&[on_all("BLPOP"), args(&["0"])].concat()).unwrap();
    while other.call(&["RPUSH", "key:0000005", "x"]).unwrap() == Reply::Int(1)
        && client.glance().unwrap().is_none()
    {
        other.call(&["DEL", "key:0000005"]).unwrap();
    }
    other.call(&["DEL", "key:0000005"]).unwrap();
    assert_returned(&mut other, "BLPOP");

    client.call(&["MULTI"]).unwrap();
    for part in keys.chunks(1000) {
        let queued: Vec<u8> =
            part.iter().flat_map(|key| encode(&[b"GET".to_vec(), key.clone()])).collect();
        client.send_raw(&queued).unwrap();
        part.iter().for_each(|_| drop(client.read(REPLY_WAIT).unwrap()));
    }
    let Reply::Array(items) = client.call(&["EXEC"]).unwrap() else { panic!("no array") };
    assert_eq!(items.len(), KEYS);
    assert_returned(&mut other, "EXEC");
}

/// Entries of one to 64 KB lie in the allocator's memory and were counted by the table as well:
/// 8,325 bytes for a value of 4,000.
#[test]
fn used_memory_counts_each_value_once() {
    const TOTAL_BYTES: usize = 8 << 20;
    let server = Server::start(Kind::Russet, &[]).unwrap();
    let mut client = Client::connect(server.address()).unwrap();
    for value_bytes in [1500, 4000, 30_000, 200_000] {
        let value = "x".repeat(value_bytes);
        let before = used_memory(&mut client);
        for at in 0..TOTAL_BYTES / value_bytes {
            let key = format!("{value_bytes}:{at}");
            client.send(&["SET", &key, &value].map(|arg| arg.as_bytes().to_vec())).unwrap();
        }
        for _ in 0..TOTAL_BYTES / value_bytes {
            assert_eq!(client.read(REPLY_WAIT).unwrap(), ok());
        }
        let grown = used_memory(&mut client) - before;
        // Keys, slots and what is lost by rounding take less than half as much again.
        let range = TOTAL_BYTES as u64..TOTAL_BYTES as u64 * 3 / 2;
        assert!(range.contains(&grown), "values of {value_bytes}: {grown} for {TOTAL_BYTES}");
    }
}

/// Messages that nobody reads, and values that were deleted while they waited to be sent, were no
/// part of `used_memory`: 100 MB of them were nothing.
#[test]
fn bytes_that_only_an_output_has_are_used_memory() {
    const COUNT: usize = 120;
    let limits = ["--client-output-buffer-limit", "pubsub 0 0 0", "--save", ""];
    let server = Server::start(Kind::Russet, &limits).unwrap();
    let [mut client, mut listener, mut reader] =
        [(); 3].map(|()| Client::connect(server.address()).unwrap());
    let value = "v".repeat((MIB / 4) as usize);
    let before = used_memory(&mut client);
    listener.call(&["SUBSCRIBE", "news"]).unwrap();
    for _ in 0..COUNT {
        client.call(&["PUBLISH", "news", &value]).unwrap();
    }
    assert_unsent_is_counted(&mut client, before, "messages");
    let keys: Vec<String> = (0..COUNT).map(|at| format!("k{at}")).collect();
    for key in &keys {
        client.call(&["SET", key, &value]).unwrap();
    }
    let call: Vec<&str> = ["MGET"].into_iter().chain(keys.iter().map(String::as_str)).collect();
    reader.send(&args(&call)).unwrap();
    let deadline = Instant::now() + Duration::from_secs(20);
    while unsent_bytes(&mut client) < 30 * MIB {
        assert!(Instant::now() < deadline, "the values are not sent");
    }
    client.call(&["FLUSHALL"]).unwrap();
    assert_unsent_is_counted(&mut client, before, "deleted values");
    drop((listener, reader));
    assert_memory_returns(&mut client, before, "output of clients that are gone");
}

/// Of all clients.
fn unsent_bytes(client: &mut Client) -> u64 {
    let reply = client.call(&["CLIENT", "LIST"]).unwrap();
    let text = String::from_utf8_lossy(reply.text().unwrap()).into_owned();
    let fields = text.split_ascii_whitespace().filter_map(|field| field.strip_prefix("omem="));
    fields.map(|bytes| bytes.parse::<u64>().unwrap()).sum()
}

/// Waits until what is in use has grown by what is unsent: outputs are looked at each second.
fn assert_unsent_is_counted(client: &mut Client, before: u64, what: &str) {
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let unsent = unsent_bytes(client);
        let grown = used_memory(client).saturating_sub(before);
        if unsent > 8 * MIB && grown.abs_diff(unsent) < unsent / 50 {
            return;
        }
        assert!(Instant::now() < deadline, "{what}: {grown} bytes for {unsent}");
        std::thread::sleep(Duration::from_millis(50));
    }
}
