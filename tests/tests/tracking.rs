//! Client-side caching under load: a client that drops what is invalidated never keeps a value that
//! is out of date.

use std::collections::HashMap;
use std::time::Duration;

use russet_base::random::Random;
use russet_tests::client::{Client, Reply};
use russet_tests::server::{Kind, Server};

const WAIT: Duration = Duration::from_secs(20);
const KEYS: usize = 8;
const ROUNDS: usize = 400;
/// Each of them waits for the disk.
const SYNCED_ROUNDS: usize = 40;
/// Enough for several to run as a batch.
const PIPELINE: usize = 12;

/// A client with a cache, as client libraries have one.
struct Caching {
    client: Client,
    cache: HashMap<Vec<u8>, Vec<u8>>,
    invalidations: usize,
}

impl Caching {
    fn connect(server: &Server, mode: &[&str]) -> Self {
        let mut client = Client::connect(server.address()).unwrap();
        assert!(!client.call(&["HELLO", "3"]).unwrap().is_error());
        let call = [&["CLIENT", "TRACKING", "ON"], mode].concat();
        assert!(!client.call(&call).unwrap().is_error());
        Caching { client, cache: HashMap::new(), invalidations: 0 }
    }

    /// The next reply; what is pushed before it is acted on.
    fn reply(&mut self) -> Reply {
        loop {
            match self.client.read(WAIT).unwrap() {
                Reply::Push(parts) => self.invalidate(&parts),
                reply => return reply,
            }
        }
    }

    fn invalidate(&mut self, parts: &[Reply]) {
        assert_eq!(parts[0], Reply::Bulk(b"invalidate".to_vec()));
        self.invalidations += 1;
        match &parts[1] {
            Reply::Array(keys) => {
                for key in keys {
                    self.cache.remove(key.text().unwrap());
                }
            }
            _ => self.cache.clear(),
        }
    }

    /// Reads keys in one pipeline, and writes one of them itself now and then.
    fn read_some(&mut self, random: &mut Random) {
        let keys: Vec<String> = (0..PIPELINE).map(|_| key(random)).collect();
        let writes_at = random.index(PIPELINE * 4);
        let mut request = String::new();
        for (at, key) in keys.iter().enumerate() {
            let call = if at == writes_at { "INCR" } else { "GET" };
            request.push_str(&format!("{call} {key}\r\n"));
        }
        self.client.send_raw(request.as_bytes()).unwrap();
        for (at, key) in keys.into_iter().enumerate() {
            match self.reply() {
                Reply::Bulk(value) => {
                    self.cache.insert(key.into_bytes(), value);
                }
                reply => assert!(at == writes_at || reply == Reply::Null, "{reply:?}"),
            }
        }
    }
}

fn key(random: &mut Random) -> String {
    format!("k{}", random.index(KEYS))
}

fn write_some(server: &Server, (seed, rounds): (u64, usize)) {
    let (mut random, mut client) =
        (Random::from_seed(seed), Client::connect(server.address()).unwrap());
    for round in 0..rounds {
        let mut request = String::new();
        for _ in 0..PIPELINE {
            let key = key(&mut random);
            request.push_str(&match random.index(8) {
                0 => format!("DEL {key}\r\n"),
                1 => format!("EVAL \"return redis.call('incr', KEYS[1])\" 1 {key}\r\n"),
                2 => format!("SET {key} 1 PX 1\r\n"),
                _ => format!("INCR {key}\r\n"),
            });
        }
        if round % (rounds / 4) == 0 {
            request.push_str("FLUSHALL\r\n");
        }
        client.send_raw(request.as_bytes()).unwrap();
        for _ in 0..request.matches("\r\n").count() {
            assert!(!client.read(WAIT).unwrap().is_error());
        }
    }
}

fn no_copy_is_out_of_date(mode: &[&str], (further, rounds): (&[&str], usize)) {
    let options = [&["--threads", "2", "--threads-min", "2"], further].concat();
    let server = Server::start(Kind::Russet, &options).unwrap();
    let mut readers: Vec<Caching> = (0..2).map(|_| Caching::connect(&server, mode)).collect();
    std::thread::scope(|scope| {
        for seed in 1..=2 {
            let server = &server;
            scope.spawn(move || write_some(server, (seed, rounds)));
        }
        for (seed, reader) in readers.iter_mut().enumerate() {
            let mut random = Random::from_seed(seed as u64 + 10);
            scope.spawn(move || (0..rounds).for_each(|_| reader.read_some(&mut random)));
        }
    });
    // What has expired unseen is looked at now, and invalidated before a later PING is answered.
    let mut client = Client::connect(server.address()).unwrap();
    let mut fresh = HashMap::new();
    for at in 0..KEYS {
        let key = format!("k{at}");
        if let Reply::Bulk(value) = client.call(&["GET", &key]).unwrap() {
            fresh.insert(key.into_bytes(), value);
        }
    }
    for reader in &mut readers {
        reader.client.send_raw(b"PING\r\n").unwrap();
        assert_eq!(reader.reply(), Reply::Status(b"PONG".to_vec()));
        assert!(reader.invalidations > 0);
        for (key, value) in &reader.cache {
            assert_eq!(fresh.get(key), Some(value), "{}", String::from_utf8_lossy(key));
        }
    }
}

#[test]
fn a_client_that_tracks_what_it_reads_keeps_nothing_old() {
    no_copy_is_out_of_date(&[], (&[], ROUNDS));
}

#[test]
fn a_client_that_tracks_all_keys_keeps_nothing_old() {
    no_copy_is_out_of_date(&["BCAST"], (&[], ROUNDS));
}

/// Replies and invalidations are held until what they show is durable, and keep their order.
#[test]
fn nothing_old_is_kept_where_every_write_is_synced() {
    let log = ["--appendonly", "yes", "--appendfsync", "always"];
    no_copy_is_out_of_date(&[], (&log, SYNCED_ROUNDS));
}

/// Messages that a client had published to itself came behind the replies of all that it had sent
/// at once.
#[test]
fn what_a_client_publishes_to_itself_comes_behind_the_reply() {
    let server = Server::start(Kind::Russet, &[]).unwrap();
    let mut client = Client::connect(server.address()).unwrap();
    assert!(!client.call(&["HELLO", "3"]).unwrap().is_error());
    let calls = "SUBSCRIBE c\r\nPUBLISH c 1\r\nPING a\r\nMULTI\r\nPUBLISH c 2\r\nEXEC\r\nPING b\r\n\
                 CLIENT REPLY OFF\r\nPUBLISH c 3\r\nCLIENT REPLY ON\r\n";
    client.send_raw(calls.as_bytes()).unwrap();
    let mut shown = Vec::new();
    for _ in 0..11 {
        shown.push(match client.read(WAIT).unwrap() {
            Reply::Push(parts) => match &parts[2] {
                Reply::Bulk(text) => format!("message {}", String::from_utf8_lossy(text)),
                _ => "subscribed".to_owned(),
            },
            Reply::Int(number) => number.to_string(),
            Reply::Array(_) => "array".to_owned(),
            reply => String::from_utf8_lossy(reply.text().unwrap()).into_owned(),
        });
    }
    let expected = [
        "subscribed",
        "1",
        "message 1",
        "a",
        "OK",
        "QUEUED",
        "array",
        "message 2",
        "b",
        "message 3",
        "OK",
    ];
    assert_eq!(shown, expected);
}

/// The reply to a call that waits for other clients came behind the invalidation of the value that
/// it carries, so that a cache kept the old value for ever.
#[test]
fn an_invalidation_comes_behind_a_reply_that_waits_for_others() {
    let args = ["--threads", "4", "--threads-min", "4"];
    let server = Server::start(Kind::Russet, &args).unwrap();
    let mut caching = Caching::connect(&server, &[]);
    for round in 0..20 {
        let mut other = Client::connect(server.address()).unwrap();
        let Reply::Int(id) = other.call(&["CLIENT", "ID"]).unwrap() else { panic!("no id") };
        let (value, id) = (round.to_string(), id.to_string());
        let client = &mut caching.client;
        let (set, kill) = (format!("SET k {value}"), format!("CLIENT KILL ID {id}"));
        for call in ["MULTI", "GET k", &set, &kill, "EXEC"] {
            let args: Vec<Vec<u8>> = call.split(' ').map(|arg| arg.as_bytes().to_vec()).collect();
            client.send(&args).unwrap();
        }
        (0..4).for_each(|_| assert!(matches!(client.read(WAIT).unwrap(), Reply::Status(_))));
        let reply = client.read(WAIT).unwrap();
        assert!(matches!(&reply, Reply::Array(parts) if parts.len() == 3), "{round}: {reply:?}");
        assert!(matches!(client.read(WAIT).unwrap(), Reply::Push(_)));
    }
}
