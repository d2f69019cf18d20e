//! The append-only log of a server that is killed under load, and what Redis and Valkey make of it.
//!
//! `RUSSET_CRASH_ROUNDS` says how often the server is killed under each policy.

use std::io::Write;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use russet_base::random::Random;
use russet_tests::client::{Client, ReadError, Reply, encode};
use russet_tests::server::{Kind, Server};

/// Kills under each policy, if nothing else is said.
const ROUNDS_DEFAULT: u64 = 50;
/// Servers that are killed side by side, each with its own directory: a round is mostly waiting.
const SERVERS: u64 = 5;
const WRITERS: usize = 4;
/// How long the load lasts before a kill, in milliseconds: at least, and by chance so much more.
const LOAD_MS: u64 = 120;
/// The same where only what is a second old must be there.
const LOAD_EVERYSEC_MS: u64 = 1_100;
/// A value that is written before its SET runs, with `always`.
const LARGE_BYTES: usize = 9 << 20;
const TIMEOUT: Duration = Duration::from_secs(20);
/// With `everysec` what is older than this is there.
const EVERYSEC: Duration = Duration::from_secs(1);

fn rounds() -> u64 {
    let given = std::env::var("RUSSET_CRASH_ROUNDS").ok().and_then(|it| it.parse().ok());
    given.unwrap_or(ROUNDS_DEFAULT)
}

fn text(parts: &[&str]) -> Vec<Vec<u8>> {
    parts.iter().map(|part| part.as_bytes().to_vec()).collect()
}

fn number(client: &mut Client, args: &[&str]) -> i64 {
    match client.call(args).unwrap() {
        Reply::Int(number) => number,
        reply => reply.text().map_or(0, |it| String::from_utf8_lossy(it).parse().unwrap()),
    }
}

/// The ways in which writers count: a plain call, a transaction, a script, and once for each id.
/// Each has a key for each writer.
const COUNTERS: [&str; 4] = ["plain", "transaction", "script", "once"];
const ONCE: usize = 3;
/// Ids before the last that survived, which are sent again: none of them may run twice.
const REPEATED: i64 = 5;

/// What one writer has had acknowledged since the last start: when, and what each counter was.
#[derive(Default)]
struct Acknowledged {
    counts: [Vec<(Instant, i64)>; COUNTERS.len()],
    /// Ids that were used, from 1 on; of the last one the reply may be missing.
    ids: i64,
}

impl Acknowledged {
    fn last(&self, counter: usize) -> i64 {
        self.counts[counter].last().map_or(0, |(_, count)| *count)
    }

    /// What must be there after a kill.
    fn bound(&self, counter: usize, (policy, end): (&str, Instant)) -> i64 {
        match policy {
            "always" => self.last(counter),
            "everysec" => {
                let old = |(at, _): &&(Instant, i64)| end.duration_since(*at) > EVERYSEC;
                self.counts[counter].iter().rfind(old).map_or(0, |(_, count)| *count)
            }
            _ => 0,
        }
    }
}

/// A server under load, until it is killed.
struct Load<'a> {
    address: SocketAddr,
    is_killed: AtomicBool,
    /// How often each writer has had all its counters acknowledged.
    rounds: [AtomicUsize; WRITERS],
    /// The highest that each writer's plain counter was seen at by another client.
    seen: &'a [AtomicI64; WRITERS],
}

impl Load<'_> {
    /// A reply; None if the server was killed. Before that it may neither refuse nor close.
    fn answered(&self, reply: Result<Reply, ReadError>) -> Option<Reply> {
        match reply {
            Ok(reply) => {
                assert!(!reply.is_error(), "{reply:?}");
                Some(reply)
            }
            Err(why) => {
                assert!(self.is_killed.load(Ordering::SeqCst), "before the kill: {why}");
                None
            }
        }
    }

    fn connect(&self) -> Option<Client> {
        let client = Client::connect(self.address);
        let is_killed = self.is_killed.load(Ordering::SeqCst);
        assert!(client.is_ok() || is_killed, "before the kill: {:?}", client.err());
        client.ok()
    }

    /// Counts until the server is gone; always None.
    fn write(&self, writer: usize, acknowledged: &mut Acknowledged) -> Option<()> {
        let mut client = self.connect()?;
        loop {
            for counter in 0..COUNTERS.len() {
                let count = self.count(&mut client, (counter, writer), acknowledged)?;
                acknowledged.counts[counter].push((Instant::now(), count));
            }
            self.rounds[writer].fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Adds one to a counter of a writer: what it is then.
    fn count(
        &self,
        client: &mut Client,
        (counter, writer): (usize, usize),
        acknowledged: &mut Acknowledged,
    ) -> Option<i64> {
        let (key, other) = keys(counter, writer);
        let reply = match COUNTERS[counter] {
            "plain" => self.answered(client.call(&["INCR", &key]))?,
            "transaction" => {
                let calls: [&[&str]; 4] =
                    [&["MULTI"], &["INCR", &key], &["RPUSH", &other, "x"], &["EXEC"]];
                let sent = calls.iter().try_for_each(|call| client.send(&text(call)));
                self.answered(sent.map(|()| Reply::Null).map_err(ReadError::from))?;
                (1..calls.len()).try_for_each(|_| self.answered(client.read(TIMEOUT)).map(drop))?;
                match self.answered(client.read(TIMEOUT))? {
                    Reply::Array(mut both) if both.len() == 2 && both[0] == both[1] => {
                        both.remove(0)
                    }
                    reply => panic!("EXEC: {reply:?}"),
                }
            }
            "script" => {
                let script = "redis.call('DECR', KEYS[2]) return redis.call('INCR', KEYS[1])";
                self.answered(client.call(&["EVAL", script, "2", &key, &other]))?
            }
            _ => {
                acknowledged.ids += 1;
                self.answered(once(client, writer, acknowledged.ids))?
            }
        };
        let Reply::Int(count) = reply else { panic!("{}: {reply:?}", COUNTERS[counter]) };
        Some(count)
    }

    /// Reads writers' counters until the server is gone; always None.
    fn watch(&self) -> Option<()> {
        let mut client = self.connect()?;
        loop {
            for (writer, seen) in self.seen.iter().enumerate() {
                let reply = self.answered(client.call(&["GET", &keys(0, writer).0]))?;
                let count = reply.text().map(|it| String::from_utf8_lossy(it).parse().unwrap());
                seen.fetch_max(count.unwrap_or(0), Ordering::Relaxed);
            }
        }
    }

    /// Whether every writer has had something acknowledged.
    fn is_written(&self) -> bool {
        self.rounds.iter().all(|rounds| rounds.load(Ordering::SeqCst) > 0)
    }
}

/// A counter's key, and the one that changes with it in a transaction or a script.
fn keys(counter: usize, writer: usize) -> (String, String) {
    let name = COUNTERS[counter];
    (format!("{name}-{writer}"), format!("{name}-{writer}-other"))
}

/// The request with this id. Ids are used in order, so its reply is the id, whether it runs now or
/// has run.
fn once(client: &mut Client, writer: usize, id: i64) -> Result<Reply, ReadError> {
    let name = format!("id-{writer}-{id}");
    client.call(&["ONCE", &name, "PX", "6000000", "INCR", &keys(ONCE, writer).0])
}

/// What must be so after a crash.
fn check(
    server: &Server,
    acknowledged: &mut [Acknowledged; WRITERS],
    seen: &[AtomicI64; WRITERS],
    (policy, end): (&str, Instant),
) {
    let mut client = Client::connect(server.address()).unwrap();
    for (writer, acknowledged) in acknowledged.iter_mut().enumerate() {
        for (counter, name) in COUNTERS.iter().enumerate() {
            let (key, other) = keys(counter, writer);
            let mut count = number(&mut client, &["GET", &key]);
            let (bound, last) =
                (acknowledged.bound(counter, (policy, end)), acknowledged.last(counter));
            assert!(
                (bound..=last + 1).contains(&count),
                "{policy}: writer {writer} had {name} at {bound} to {last}, and it is {count}"
            );
            match *name {
                "plain" if policy == "always" => {
                    let seen = seen[writer].load(Ordering::Relaxed);
                    assert!(count >= seen, "a reader was shown {seen}, and it is {count}");
                }
                "transaction" => {
                    let length = number(&mut client, &["LLEN", &other]);
                    assert_eq!(count, length, "half a transaction");
                }
                "script" => {
                    assert_eq!(count + number(&mut client, &["GET", &other]), 0, "half a script");
                }
                "once" => {
                    // What was lost runs again with the id that it had, what was not does not.
                    for id in (count - REPEATED).max(1)..=acknowledged.ids {
                        assert_eq!(once(&mut client, writer, id).unwrap(), Reply::Int(id));
                    }
                    count = number(&mut client, &["GET", &key]);
                    assert_eq!(count, acknowledged.ids, "a request ran twice, or not at all");
                }
                _ => {}
            }
            // From now on counters are what they are.
            acknowledged.counts[counter] = vec![(Instant::now(), count)];
        }
        seen[writer].store(acknowledged.last(0), Ordering::Relaxed);
    }
}

/// A server that refused every write passed all of this: nothing was written, so nothing was lost.
fn crash_again_and_again(policy: &str) {
    let kills = rounds();
    let calls: usize = std::thread::scope(|scope| {
        let run = |number| {
            let share = kills / SERVERS + u64::from(number < kills % SERVERS);
            scope.spawn(move || crash_one(policy, number, share))
        };
        let servers: Vec<_> = (0..SERVERS).map(run).collect();
        servers.into_iter().map(|server| server.join().unwrap()).sum()
    });
    println!("{policy}: {kills} kills, {calls} rounds of calls");
}

/// Kills a server so many times; how many rounds of calls were answered.
fn crash_one(policy: &str, number: u64, kills: u64) -> usize {
    let name = format!("russet-crash-{policy}-{number}-{}", std::process::id());
    let home = std::env::temp_dir().join(name);
    std::fs::create_dir_all(&home).unwrap();
    let dir = home.display().to_string();
    let extra = ["--dir", &dir, "--appendonly", "yes", "--appendfsync", policy];
    let mut random = Random::from_entropy();
    let mut acknowledged: [Acknowledged; WRITERS] = Default::default();
    let seen: [AtomicI64; WRITERS] = Default::default();
    let load_ms = if policy == "everysec" { LOAD_EVERYSEC_MS } else { LOAD_MS };
    let (mut calls, mut end) = (0, Instant::now());
    for _ in 0..kills {
        let server = Server::start(Kind::Russet, &extra).unwrap();
        check(&server, &mut acknowledged, &seen, (policy, end));
        let (address, is_killed) = (server.address(), AtomicBool::new(false));
        let load = Load { address, is_killed, rounds: Default::default(), seen: &seen };
        std::thread::scope(|scope| {
            let load = &load;
            let write =
                |(writer, acknowledged)| scope.spawn(move || load.write(writer, acknowledged));
            let writers: Vec<_> = acknowledged.iter_mut().enumerate().map(write).collect();
            scope.spawn(move || load.watch());
            let time = load_ms + random.below(LOAD_MS);
            std::thread::sleep(Duration::from_millis(time));
            // A writer that has ended has failed.
            let deadline = Instant::now() + TIMEOUT;
            while !load.is_written()
                && !writers.iter().any(|writer| writer.is_finished())
                && Instant::now() < deadline
            {
                std::thread::sleep(Duration::from_millis(1));
            }
            load.is_killed.store(true, Ordering::SeqCst);
            server.signal("KILL").unwrap();
            end = Instant::now();
        });
        assert!(load.is_written(), "nothing was written: {:?}", load.rounds);
        calls += load.rounds.iter().map(|rounds| rounds.load(Ordering::SeqCst)).sum::<usize>();
    }
    let server = Server::start(Kind::Russet, &extra).unwrap();
    check(&server, &mut acknowledged, &seen, (policy, end));
    drop(server);
    std::fs::remove_dir_all(&home).unwrap();
    calls
}

#[test]
fn what_was_answered_survives_a_kill_with_always() {
    crash_again_and_again("always");
}

#[test]
fn what_is_a_second_old_survives_a_kill_with_everysec() {
    crash_again_and_again("everysec");
}

#[test]
fn units_are_whole_after_a_kill_with_no() {
    crash_again_and_again("no");
}

/// Calls of every type that other servers have, with deadlines, groups and a function.
const CALLS: &[&str] = &[
    "SET s a",
    "APPEND s b",
    "SET e 1 EX 100000",
    "INCRBYFLOAT f 1.5",
    "SETRANGE r 5 x",
    "SETBIT bits 77 1",
    // Options that these servers don't know, and would pass over.
    "BITOP ONE one s bits",
    "BITOP DIFF diff s bits",
    "ZADD counted 1 a 2 b",
    "ZUNIONSTORE count 2 counted counted AGGREGATE COUNT",
    "PFADD p a b c",
    "RPUSH l a b c d",
    "LPOP l",
    "LMOVE l l2 LEFT RIGHT",
    "SADD m a b c",
    "SADD ints 1 2 3",
    "SPOP m",
    "ZADD z 1 a 2 b",
    "ZINCRBY z 2 a",
    "GEOADD g 13.3 38.1 Palermo",
    "HSET h f 1 g 2",
    "HINCRBY h f 2",
    "XADD x * f 1",
    "XADD x * f 2",
    "XGROUP CREATE x g 0",
    "XREADGROUP GROUP g c COUNT 1 STREAMS x >",
    // And more of these options.
    "XADD y 1-1 a 1",
    "XADD y 2-1 a 2",
    "XADD y 3-1 a 3",
    "XADD y 4-1 a 4",
    "XGROUP CREATE y g 0",
    "XREADGROUP GROUP g c COUNT 1 STREAMS y >",
    "XGROUP SETID y g 3-1",
    "XTRIM y ACKED MAXLEN 1",
    "XADD y DELREF MAXLEN 2 5-1 a 5",
    "XADD y IDMP p m * a 6",
    "XADD y IDMPAUTO p * a 7",
    "GEOADD g 15.08 37.5 Catania 40 40 far",
    "GEOSEARCHSTORE polygon g BYPOLYGON 4 12 37 18 37 18 40 12 40",
    "ONCE id PX 600000 INCR n",
    "EVAL redis.call('SET',KEYS[1],'v')return(redis.call('INCR',KEYS[2])) 2 {t}a {t}b",
    "COPY s s3 DB 3",
    "SELECT 5",
    "SET there 1",
    "RENAME there here",
    "DEL gone",
];

fn digest(address: SocketAddr) -> Vec<u8> {
    let mut client = Client::connect(address).unwrap();
    client.call(&["DEBUG", "DIGEST"]).unwrap().text().unwrap().to_vec()
}

fn copy_dir(from: &Path, to: &Path) {
    let to = to.join("appendonlydir");
    std::fs::create_dir_all(&to).unwrap();
    for entry in std::fs::read_dir(from.join("appendonlydir")).unwrap() {
        let path = entry.unwrap().path();
        std::fs::copy(&path, to.join(path.file_name().unwrap())).unwrap();
    }
}

fn increments(dir: &Path) -> usize {
    let files = std::fs::read_dir(dir.join("appendonlydir")).unwrap();
    let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.ends_with(".incr.aof")).count()
}

/// Our directory is loaded by Redis and Valkey; what they add to it we load again.
#[test]
fn other_servers_load_our_log_and_we_what_they_add() {
    let home = std::env::temp_dir().join(format!("russet-peers-{}", std::process::id()));
    let ours = home.join("ours");
    std::fs::create_dir_all(&ours).unwrap();
    let dir = ours.display().to_string();
    let russet = ["--dir", &dir, "--appendonly", "yes", "--enable-debug-command", "yes"];
    let expected = {
        let mut server = Server::start(Kind::Russet, &russet).unwrap();
        let mut client = Client::connect(server.address()).unwrap();
        for line in CALLS {
            let reply = client.call(&line.split(' ').collect::<Vec<_>>()).unwrap();
            assert!(!reply.is_error(), "{line}: {reply:?}");
        }
        // A file of its own, in the middle of the log.
        let large = "x".repeat(LARGE_BYTES);
        let always = ["CONFIG", "SET", "appendfsync", "always"];
        for call in [&always[..], &["SET", "large", &large], &["SET", "behind", "1"]] {
            assert!(!client.call(call).unwrap().is_error(), "{}", call[1]);
        }
        assert_eq!(increments(&ours), 3, "what is before it, it, and what is behind it");
        let library = "#!lua name=l\nredis.register_function('f', function() return 1 end)";
        assert!(!client.call(&["FUNCTION", "LOAD", library]).unwrap().is_error());
        let expected = digest(server.address());
        server.signal("TERM").unwrap();
        assert_eq!(server.exit_code(TIMEOUT), Some(0));
        expected
    };
    for kind in [Kind::Redis, Kind::Valkey] {
        let theirs = home.join(format!("{kind:?}"));
        copy_dir(&ours, &theirs);
        let dir = theirs.display().to_string();
        let extra = ["--dir", &dir, "--appendonly", "yes", "--enable-debug-command", "yes"];
        let Some(mut peer) = Server::start_if_there(kind, &extra) else { continue };
        assert_eq!(digest(peer.address()), expected, "{kind:?} loads something else");
        let mut client = Client::connect(peer.address()).unwrap();
        for call in [&["SET", "added", "by a peer"][..], &["INCR", "n"], &["DEL", "l2"]] {
            let reply = client.call(call).unwrap();
            assert!(!reply.is_error(), "{call:?}: {reply:?}");
        }
        let changed = digest(peer.address());
        peer.signal("TERM").unwrap();
        assert_eq!(peer.exit_code(TIMEOUT), Some(0));
        let server = Server::start(Kind::Russet, &extra).unwrap();
        assert_eq!(digest(server.address()), changed, "what {kind:?} added is not there");
    }
    std::fs::remove_dir_all(&home).unwrap();
}

fn call(client: &mut Client, line: &str) -> Reply {
    let reply = client.call(&line.split(' ').collect::<Vec<_>>()).unwrap();
    assert!(!reply.is_error(), "{line}: {reply:?}");
    reply
}

/// The log is switched on with data there, written to, rewritten and written to again; killed, the
/// server has all of it back, and a peer loads it, too.
#[test]
fn a_rewritten_log_is_loaded_by_us_and_by_others() {
    let home = std::env::temp_dir().join(format!("russet-rewrite-{}", std::process::id()));
    let ours = home.join("ours");
    std::fs::create_dir_all(&ours).unwrap();
    let dir = ours.display().to_string();
    let extra = ["--dir", &dir, "--enable-debug-command", "yes", "--appendfsync", "always"];
    let (expected, full) = {
        let server = Server::start(Kind::Russet, &extra).unwrap();
        let mut client = Client::connect(server.address()).unwrap();
        CALLS.iter().for_each(|line| _ = call(&mut client, line));
        call(&mut client, "SELECT 0");
        call(&mut client, "CONFIG SET appendonly yes");
        call(&mut client, "APPEND s more");
        call(&mut client, "BGREWRITEAOF");
        call(&mut client, "RPUSH l after");
        client.await_rewrite();
        call(&mut client, "INCR last");
        let full = client.call(&["DEBUG", "DIGEST", "FULL"]).unwrap();
        let found = (digest(server.address()), full);
        server.signal("KILL").unwrap();
        found
    };
    let logged: Vec<&str> = extra.iter().copied().chain(["--appendonly", "yes"]).collect();
    {
        let mut server = Server::start(Kind::Russet, &logged).unwrap();
        let mut client = Client::connect(server.address()).unwrap();
        assert_eq!(client.call(&["DEBUG", "DIGEST", "FULL"]).unwrap(), full);
        assert_eq!(number(&mut client, &["ONCE", "id", "PX", "600000", "INCR", "n"]), 1);
        server.signal("TERM").unwrap();
        assert_eq!(server.exit_code(TIMEOUT), Some(0));
    }
    for kind in [Kind::Redis, Kind::Valkey] {
        let theirs = home.join(format!("{kind:?}"));
        copy_dir(&ours, &theirs);
        let dir = theirs.display().to_string();
        let extra = ["--dir", &dir, "--appendonly", "yes", "--enable-debug-command", "yes"];
        let Some(mut peer) = Server::start_if_there(kind, &extra) else { continue };
        assert_eq!(digest(peer.address()), expected, "{kind:?} loads something else");
        let mut client = Client::connect(peer.address()).unwrap();
        call(&mut client, "SET added 1");
        call(&mut client, "BGREWRITEAOF");
        client.await_rewrite();
        call(&mut client, "INCR added");
        let changed = digest(peer.address());
        peer.signal("TERM").unwrap();
        assert_eq!(peer.exit_code(TIMEOUT), Some(0));
        let server = Server::start(Kind::Russet, &extra).unwrap();
        assert_eq!(digest(server.address()), changed, "a log that {kind:?} has rewritten");
    }
    std::fs::remove_dir_all(&home).unwrap();
}

/// A second process must not write to the same log.
#[test]
fn a_directory_in_use_is_refused() {
    let first = Server::start(Kind::Russet, &["--appendonly", "yes"]).unwrap();
    let dir = first.dir().display().to_string();
    let refused = Server::start(Kind::Russet, &["--dir", &dir, "--appendonly", "yes"]);
    assert!(refused.is_err(), "both run");
}

/// A damaged log is refused with the place and the reason, and left as it is.
#[test]
fn a_damaged_log_is_refused() {
    let home = std::env::temp_dir().join(format!("russet-damage-{}", std::process::id()));
    std::fs::create_dir_all(&home).unwrap();
    let dir = home.display().to_string();
    let extra = ["--dir", &dir, "--appendonly", "yes", "--appendfsync", "always"];
    {
        let mut server = Server::start(Kind::Russet, &extra).unwrap();
        let mut client = Client::connect(server.address()).unwrap();
        (0..50).for_each(|at| _ = client.call(&["SET", &format!("k{at}"), "value"]).unwrap());
        server.signal("TERM").unwrap();
        assert_eq!(server.exit_code(TIMEOUT), Some(0));
    }
    let path = home.join("appendonlydir/appendonly.aof.1.incr.aof");
    let mut bytes = std::fs::read(&path).unwrap();
    let at = bytes.len() / 2;
    bytes[at] ^= 4;
    std::fs::write(&path, &bytes).unwrap();
    let refused =
        russet_tests::server::run_russet(&["--port", "0", "--dir", &dir, "--appendonly", "yes"]);
    let refused = refused.unwrap();
    let message = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && message.contains("damaged at byte"), "{message}");
    assert_eq!(std::fs::read(&path).unwrap(), bytes, "nothing is changed");
    std::fs::remove_dir_all(&home).unwrap();
}

/// While one large SET was written ahead, those behind it were read until the limit of requests
/// closed their client; and they were then no longer written ahead.
#[test]
fn large_calls_of_one_pipeline_are_read_one_by_one() {
    const CALLS: usize = 12;
    let extra = ["--appendonly", "yes", "--appendfsync", "always"];
    let limit = ["--client-query-buffer-limit", "32mb", "--auto-aof-rewrite-percentage", "0"];
    let server = Server::start(Kind::Russet, &[extra, limit].concat()).unwrap();
    let mut client = Client::connect(server.address()).unwrap();
    let mut sender = client.sender().unwrap();
    let sending = std::thread::spawn(move || {
        let value = vec![b'v'; LARGE_BYTES];
        for number in 0..CALLS {
            let call = [b"SET".to_vec(), format!("k{number}").into_bytes(), value.clone()];
            sender.write_all(&encode(&call)).unwrap();
        }
    });
    for number in 0..CALLS {
        let reply = client.read(TIMEOUT).unwrap();
        assert_eq!(reply, Reply::Status(b"OK".to_vec()), "call {number}");
    }
    sending.join().unwrap();
    assert_eq!(number(&mut client, &["DBSIZE"]), CALLS as i64);
    // Each is in a file of its own, with one behind it.
    assert!(increments(server.dir()) > CALLS, "they were written in place");
}
