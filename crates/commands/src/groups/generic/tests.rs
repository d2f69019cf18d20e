//! What the wire can't show: the clock moved by hand, many threads, random operations.

use crate::call::dispatch::{Progress, Worker};
use crate::call::session::Session;
use crate::node::Node;
use crate::testing::TestServer;
use russet_base::{OwnedArgs, Random};
use russet_protocol::{Resp, Value, ValueSink};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

fn check(server: &mut TestServer, dialogue: &[(&str, &str)]) {
    for (line, expected) in dialogue {
        assert_eq!(server.say(line).replace("\\'", "'"), *expected, "{line}");
    }
}

#[test]
fn delex_looks_at_the_key_first() {
    let mut server = TestServer::new();
    check(
        &mut server,
        &[
            ("DELEX absent NONSENSE v", "0"),
            ("SET k v", "+OK"),
            ("DELEX k NONSENSE v", "-ERR Invalid condition. Use IFEQ, IFNE, IFDEQ, or IFDNE"),
            ("DELEX k IFDEQ abc", "-ERR must be exactly 16 hexadecimal characters"),
            ("DELEX k IFDEQ zzzzzzzzzzzzzzzz", "0"),
            ("DELEX k IFEQ", "-ERR wrong number of arguments for 'delex' command"),
            ("DELEX k IFNE v", "0"),
            ("DELIFEQ k w", "0"),
            ("DELIFEQ k v", "1"),
            ("SET n 12", "+OK"),
            ("DELEX n IFEQ 12", "1"),
        ],
    );
}

#[test]
fn a_key_ends_when_its_time_is_over() {
    let mut server = TestServer::new();
    check(
        &mut server,
        &[
            ("SET k v", "+OK"),
            ("TTL k", "-1"),
            ("EXPIRE k 10 XX", "0"),
            ("EXPIRE k 10 GT", "0"),
            ("EXPIRE k 10 LT", "1"),
            ("PTTL k", "10000"),
            ("EXPIRE k 10 LT", "0"),
            ("EXPIRE k 5 GT", "0"),
            ("EXPIRE k 5 NX", "0"),
            ("PEXPIRE k 10500 XX GT", "1"),
            ("TTL k", "11"),
            ("PEXPIRETIME k", "1700000010500"),
            ("EXPIRETIME k", "1700000011"),
            ("PERSIST k", "1"),
            ("PERSIST k", "0"),
            ("PEXPIREAT k 9223372036854775807", "1"),
            ("EXPIRETIME k", "9223372036854776"),
            ("EXPIRE k 9223372036854775807", "-ERR invalid expire time in 'expire' command"),
            ("PEXPIRE k 9223372036854775807", "-ERR invalid expire time in 'pexpire' command"),
            ("EXPIRE k 1", "1"),
        ],
    );
    server.clock.advance_ms(999);
    assert_eq!(server.say("EXISTS k k"), "2");
    server.clock.advance_ms(1);
    check(
        &mut server,
        &[
            ("KEYS *", "[]"),
            ("RANDOMKEY", "nil"),
            ("EXISTS k", "0"),
            ("TTL k", "-2"),
            ("SET k v", "+OK"),
            ("PEXPIRE k -9223372036854775808", "1"),
            ("EXISTS k", "0"),
        ],
    );
}

#[test]
fn values_move_with_their_expiry() {
    let mut server = TestServer::new();
    check(
        &mut server,
        &[
            ("SET a v", "+OK"),
            ("EXPIRE a 10", "1"),
            ("SET b w", "+OK"),
            ("RENAMENX a b", "0"),
            ("RENAMENX a a", "0"),
            ("RENAME a a", "+OK"),
            ("RENAME a b", "+OK"),
            ("RENAME a b", "-ERR no such key"),
            ("TTL b", "10"),
            ("COPY b b", "-ERR source and destination objects are the same"),
            ("COPY b c", "1"),
            ("COPY b c", "0"),
            ("PERSIST c", "1"),
            ("COPY b c REPLACE", "1"),
            ("TTL c", "10"),
            ("COPY b b DB 1", "1"),
            ("COPY b c DB 16", "-ERR DB index is out of range"),
            ("COPY b c DB", "-ERR syntax error"),
            ("MOVE b 1", "0"),
            ("MOVE b 0", "-ERR source and destination objects are the same"),
            ("MOVE c 1", "1"),
            ("EXISTS c", "0"),
            ("SWAPDB 0 1", "+OK"),
            ("GET c", "\"v\""),
            ("TTL c", "10"),
            ("DBSIZE", "2"),
            ("FLUSHDB", "+OK"),
            ("DBSIZE", "0"),
            ("SWAPDB 0 1", "+OK"),
            ("DBSIZE", "1"),
            ("FLUSHALL ASYNC", "+OK"),
            ("DBSIZE", "0"),
        ],
    );
}

#[test]
fn idle_time_is_since_the_last_use() {
    let mut server = TestServer::new();
    server.say("SET k v");
    server.clock.advance_ms(7_000);
    check(&mut server, &[("TYPE k", "+string"), ("TTL k", "-1"), ("OBJECT IDLETIME k", "7")]);
    server.session.is_silent = true;
    check(&mut server, &[("GET k", "\"v\""), ("OBJECT IDLETIME k", "7")]);
    check(&mut server, &[("TOUCH k absent", "1"), ("OBJECT IDLETIME k", "0")]);
    check(&mut server, &[("CONFIG SET maxmemory-policy allkeys-lfu", "+OK")]);
    assert!(
        server.say("OBJECT IDLETIME k").starts_with("-ERR An LFU maxmemory policy is selected")
    );
}

#[test]
fn the_counter_of_uses_decays() {
    let mut server = TestServer::new();
    server.say("CONFIG SET maxmemory-policy allkeys-lfu lfu-decay-time 2");
    check(&mut server, &[("SET k v", "+OK"), ("OBJECT FREQ k", "5"), ("GET k", "\"v\"")]);
    check(&mut server, &[("OBJECT FREQ k", "6"), ("OBJECT FREQ absent", "nil")]);
    server.clock.advance_ms(360_000);
    check(&mut server, &[("OBJECT FREQ k", "3"), ("GET k", "\"v\""), ("OBJECT FREQ k", "4")]);
    server.clock.advance_ms(36_000_000);
    check(&mut server, &[("OBJECT FREQ k", "0")]);
}

#[test]
fn flushing_and_swapping_touch_watched_keys() {
    for (setup, change, expected) in [
        ("SET k v", "FLUSHDB", "nil-array"),
        ("SET other v", "FLUSHALL", "[]"),
        ("SET k v", "SWAPDB 1 0", "nil-array"),
        ("SET other v", "SWAPDB 0 1", "[]"),
        ("SET k v", "SWAPDB 2 1", "[]"),
    ] {
        let mut server = TestServer::new();
        check(&mut server, &[(setup, "+OK"), ("WATCH k", "+OK"), (change, "+OK")]);
        check(&mut server, &[("MULTI", "+OK"), ("EXEC", expected)]);
    }
}

fn strings(value: &Value) -> Vec<String> {
    let elements = value.as_elements().expect("an array");
    let text = |value: &Value| String::from_utf8_lossy(value.as_bytes().expect("text")).into();
    elements.iter().map(text).collect()
}

/// One step of a walk: the next cursor and the keys.
fn scan_step(server: &mut TestServer, cursor: &str, options: &[&str]) -> (String, Vec<String>) {
    let mut args = vec!["SCAN", cursor];
    args.extend_from_slice(options);
    let reply = server.run(&args);
    let [cursor, keys] = reply.as_elements().expect("an array") else { panic!("{reply}") };
    (String::from_utf8_lossy(cursor.as_bytes().expect("text")).into(), strings(keys))
}

fn scan_all(server: &mut TestServer, options: &[&str]) -> Vec<String> {
    let (mut cursor, mut found) = (String::from("0"), Vec::new());
    loop {
        let (next, keys) = scan_step(server, &cursor, options);
        found.extend(keys);
        if next == "0" {
            found.sort();
            return found;
        }
        cursor = next;
    }
}

#[test]
fn a_walk_finds_every_key_once_and_filters() {
    let mut server = TestServer::new();
    assert_eq!(scan_step(&mut server, "0", &[]), ("0".into(), vec![]));
    let mut all: Vec<String> = (0..5000).map(|i| format!("key:{i}")).collect();
    all.extend((0..50).map(|i| format!("t{{ag}}{i}")));
    for key in &all {
        server.run(&["SET", key, "v"]);
    }
    all.sort();
    for count in ["1", "7", "1000", "100000"] {
        assert_eq!(scan_all(&mut server, &["COUNT", count]), all);
    }
    assert_eq!(scan_all(&mut server, &["MATCH", "*", "TYPE", "STRING"]), all);
    assert_eq!(scan_all(&mut server, &["TYPE", "list"]), [""; 0]);
    assert_eq!(scan_all(&mut server, &["TYPE", "stream"]), [""; 0]);
    assert_eq!(scan_all(&mut server, &["MATCH", "key:77"]), ["key:77"]);
    assert_eq!(scan_all(&mut server, &["MATCH", "key:77", "TYPE", "list"]), [""; 0]);
    assert_eq!(scan_all(&mut server, &["MATCH", "key:777?"]).len(), 0);
    assert_eq!(scan_all(&mut server, &["MATCH", "key:77?"]).len(), 10);
    assert_eq!(scan_all(&mut server, &["MATCH", "t{ag}*"]).len(), 50);
    assert_eq!(strings(&server.run(&["KEYS", "t{ag}*"])).len(), 50);
    assert_eq!(strings(&server.run(&["KEYS", "key:77?"])).len(), 10);
    assert_eq!(server.say("KEYS key:77"), "[\"key:77\"]");
    assert_eq!(strings(&server.run(&["KEYS", "*"])).len(), all.len());
    for key in &all {
        server.run(&["PEXPIRE", key, "5"]);
    }
    server.clock.advance_ms(5);
    assert_eq!(scan_all(&mut server, &["COUNT", "100"]), [""; 0]);
    assert_eq!(server.say("RANDOMKEY"), "nil");
}

#[test]
fn a_walk_is_refused_or_ends_on_odd_args() {
    let mut server = TestServer::new();
    server.say("SET k v");
    check(
        &mut server,
        &[
            ("SCAN x", "-ERR invalid cursor"),
            ("SCAN -1", "-ERR invalid cursor"),
            ("SCAN 18446744073709551616", "-ERR invalid cursor"),
            ("SCAN 0 COUNT 0", "-ERR syntax error"),
            ("SCAN 0 COUNT x", "-ERR value is not an integer or out of range"),
            ("SCAN 0 TYPE x", "-ERR unknown type name 'x'"),
            ("SCAN 0 MATCH", "-ERR syntax error"),
            ("SCAN 0 COUNT 9223372036854775807", "[\"0\", [\"k\"]]"),
        ],
    );
    for cursor in ["18446744073709551615", "9007199254740991", "255", "65536", "16777216"] {
        scan_all(&mut server, &["COUNT", "10"]);
        scan_step(&mut server, cursor, &[]);
    }
    // In a transaction the locks stay as they are, so the walk goes shard by shard.
    check(&mut server, &[("MULTI", "+OK"), ("SCAN 0", "+QUEUED"), ("KEYS k", "+QUEUED")]);
    assert!(!server.run(&["EXEC"]).is_error());
}

#[test]
fn keys_that_stay_are_found_while_others_come_and_go() {
    for seed in 0..6 {
        let mut random = Random::from_seed(seed);
        let mut server = TestServer::new();
        let staying: BTreeSet<String> = (0..300).map(|i| format!("stay:{i}")).collect();
        for key in &staying {
            server.run(&["SET", key, "v"]);
        }
        for _ in 0..4 {
            let (mut cursor, mut found) = (String::from("0"), BTreeSet::new());
            // Sometimes the table grows during the walk, sometimes it shrinks.
            let share = random.unit();
            loop {
                let count = (1 + random.below(40)).to_string();
                let (next, keys) = scan_step(&mut server, &cursor, &["COUNT", &count]);
                found.extend(keys);
                if next == "0" {
                    break;
                }
                cursor = next;
                for _ in 0..random.below(400) {
                    let key = format!("other:{}", random.below(20_000));
                    match random.chance(share) {
                        true => server.run(&["SET", &key, "v"]),
                        false => server.run(&["DEL", &key]),
                    };
                }
            }
            assert!(staying.is_subset(&found), "seed {seed}");
        }
    }
}

#[test]
fn random_keys_are_fairly_drawn() {
    const KEYS: usize = 40;
    const DRAWS_EACH: usize = 100;
    let mut server = TestServer::new();
    for i in 0..KEYS {
        // Half of them share a shard: a pick of the shard alone would favour the others.
        let key = if i % 2 == 0 { format!("{{tag}}{i}") } else { format!("key:{i}") };
        server.run(&["SET", &key, "v"]);
    }
    let mut drawn = std::collections::BTreeMap::<String, usize>::new();
    for _ in 0..KEYS * DRAWS_EACH {
        *drawn.entry(server.say("RANDOMKEY")).or_default() += 1;
    }
    assert_eq!(drawn.len(), KEYS);
    assert!(drawn.values().all(|count| (50..200).contains(count)), "{drawn:?}");
}

/// One of several clients that run at once on a node of their own.
struct Client {
    worker: Worker,
    session: Session,
}

impl Client {
    fn new(node: &Arc<Node>) -> Self {
        let other = TestServer::new();
        Client { worker: Worker::new(node.clone()), session: other.session }
    }

    fn run(&mut self, call: &[&str]) -> Value {
        let args: OwnedArgs = call.iter().collect();
        loop {
            let mut sink = ValueSink::new(Resp::V2);
            match self.worker.run(&mut self.session, args.as_args(), &mut sink) {
                Progress::Done => return sink.into_value().expect("a reply"),
                Progress::Busy => std::thread::yield_now(),
                Progress::Blocked => panic!("nothing here blocks"),
            }
        }
    }
}

const ROUNDS: usize = 3000;

/// Runs `work` on several threads at once, and `look` on one more until they are done.
fn batch(
    node: &Arc<Node>,
    work: impl Fn(&mut Client, &mut Random) + Sync,
    look: impl Fn(&mut Client) + Sync,
) {
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let observer = scope.spawn(|| {
            let mut client = Client::new(node);
            while !is_over.load(Ordering::Relaxed) {
                look(&mut client);
            }
        });
        let workers: Vec<_> = (0..3)
            .map(|seed| {
                let work = &work;
                scope.spawn(move || {
                    let mut client = Client::new(node);
                    let mut random = Random::from_seed(seed);
                    (0..ROUNDS).for_each(|_| work(&mut client, &mut random));
                })
            })
            .collect();
        let outcomes: Vec<_> = workers.into_iter().map(|worker| worker.join()).collect();
        is_over.store(true, Ordering::Relaxed);
        observer.join().expect("the observer saw nothing wrong");
        outcomes.into_iter().for_each(|outcome| outcome.expect("the worker saw nothing wrong"));
    });
}

#[test]
fn renamed_values_are_never_lost_or_doubled() {
    const TOKENS: usize = 8;
    const NAMES: u64 = 32;
    let mut server = TestServer::new();
    for i in 0..TOKENS {
        server.run(&["SET", &format!("name:{i}"), &format!("token{i}")]);
    }
    let node = server.worker.node.clone();
    batch(
        &node,
        |client, random| {
            let name = |random: &mut Random| format!("name:{}", random.below(NAMES));
            let (from, to) = (name(random), name(random));
            client.run(&["RENAMENX", &from, &to]);
        },
        |client| {
            // By themselves both go shard by shard, and may miss a key that is renamed meanwhile.
            client.run(&["MULTI"]);
            client.run(&["DBSIZE"]);
            client.run(&["KEYS", "name:*"]);
            let Value::Array(seen) = client.run(&["EXEC"]) else { panic!("EXEC was refused") };
            assert_eq!(seen[0], Value::Integer(TOKENS as i64));
            assert_eq!(strings(&seen[1]).len(), TOKENS);
        },
    );
    let mut values = BTreeSet::new();
    for i in 0..NAMES {
        values.insert(server.say(&format!("GET name:{i}")));
    }
    assert_eq!(values.len(), TOKENS + 1, "the tokens, and nil: {values:?}");
}

#[test]
fn moved_keys_are_in_one_database_at_a_time() {
    let mut server = TestServer::new();
    for i in 0..16 {
        server.run(&["SET", &format!("k{i}"), "v"]);
    }
    let node = server.worker.node.clone();
    let seen = |client: &mut Client, db: usize| {
        client.session.db = db;
        strings(&client.run(&["KEYS", "*"])).len()
    };
    batch(
        &node,
        |client, random| {
            let key = format!("k{}", random.below(16));
            let (from, to) = if random.chance(0.5) { (0, "1") } else { (1, "0") };
            client.session.db = from;
            client.run(&["MOVE", &key, to]);
            if random.chance(0.01) {
                client.run(&["SWAPDB", "0", "1"]);
            }
        },
        |client| assert!(seen(client, 0) <= 16),
    );
    let mut client = Client::new(&node);
    assert_eq!(seen(&mut client, 0) + seen(&mut client, 1), 16);
}

#[test]
fn copies_are_of_one_moment() {
    let mut server = TestServer::new();
    check(&mut server, &[("SET a 0", "+OK"), ("COPY a b", "1"), ("COPY a c", "1")]);
    let node = server.worker.node.clone();
    batch(
        &node,
        |client, random| {
            let value = random.below(1000).to_string();
            client.run(&["MULTI"]);
            client.run(&["SET", "a", &value]);
            client.run(&["COPY", "a", "b", "REPLACE"]);
            client.run(&["COPY", "a", "c", "REPLACE"]);
            client.run(&["EXEC"]);
        },
        |client| {
            client.run(&["MULTI"]);
            ["a", "b", "c"].iter().for_each(|key| drop(client.run(&["GET", key])));
            let values = strings(&client.run(&["EXEC"]));
            assert!(values.iter().all(|value| *value == values[0]), "{values:?}");
        },
    );
}

#[test]
fn walks_find_keys_that_stay_under_many_threads() {
    let mut server = TestServer::new();
    let staying: BTreeSet<String> = (0..500).map(|i| format!("stay:{i}")).collect();
    for key in &staying {
        server.run(&["SET", key, "v"]);
    }
    let node = server.worker.node.clone();
    batch(
        &node,
        |client, random| {
            let key = format!("other:{}", random.below(3000));
            let verb: &[&str] =
                if random.chance(0.6) { &["SET", &key, "v"] } else { &["DEL", &key] };
            client.run(verb);
        },
        |client| {
            let (mut cursor, mut found) = (String::from("0"), BTreeSet::new());
            loop {
                let reply = client.run(&["SCAN", &cursor, "COUNT", "50"]);
                let elements = reply.as_elements().expect("an array");
                found.extend(strings(&elements[1]));
                cursor = String::from_utf8_lossy(elements[0].as_bytes().expect("text")).into();
                if cursor == "0" {
                    break;
                }
            }
            assert!(staying.is_subset(&found));
        },
    );
}

#[test]
fn elements_that_move_between_lists_are_never_lost_or_doubled() {
    const ELEMENTS: usize = 200;
    let mut server = TestServer::new();
    for i in 0..ELEMENTS {
        server.run(&["RPUSH", "list:0", &i.to_string()]);
    }
    let node = server.worker.node.clone();
    let lists = ["list:0", "list:1", "list:2", "list:3"];
    batch(
        &node,
        |client, random| {
            let end = |random: &mut Random| if random.chance(0.5) { "LEFT" } else { "RIGHT" };
            let (from, to) = (lists[random.index(4)], lists[random.index(4)]);
            client.run(&["LMOVE", from, to, end(random), end(random)]);
        },
        |client| {
            client.run(&["MULTI"]);
            lists.iter().for_each(|list| drop(client.run(&["LLEN", list])));
            let lens = client.run(&["EXEC"]);
            let lens = lens.as_elements().expect("an array").iter();
            let total: i64 = lens.map(|len| len.as_integer().expect("a length")).sum();
            assert_eq!(total, ELEMENTS as i64);
        },
    );
    let mut elements = BTreeSet::new();
    for list in lists {
        elements.extend(strings(&server.run(&["LRANGE", list, "0", "-1"])));
    }
    assert_eq!(elements.len(), ELEMENTS);
}

#[test]
fn keys_written_by_one_call_are_read_by_one_call() {
    let mut server = TestServer::new();
    // Enough keys for several shards.
    let keys: Vec<String> = (0..6).map(|i| format!("key:{i}")).collect();
    let write = |client: &mut Client, value: &str| {
        let mut args = vec!["MSET"];
        keys.iter().for_each(|key| args.extend([key.as_str(), value]));
        client.run(&args);
    };
    let node = server.worker.node.clone();
    write(&mut Client::new(&node), "0");
    let read: Vec<&str> = std::iter::once("MGET").chain(keys.iter().map(String::as_str)).collect();
    batch(
        &node,
        |client, random| write(client, &random.below(1_000_000).to_string()),
        |client| {
            let values = strings(&client.run(&read));
            assert!(values.iter().all(|value| *value == values[0]), "{values:?}");
        },
    );
    assert_eq!(server.say("DBSIZE"), "6");
}

#[test]
fn a_copied_list_is_a_list_of_its_own() {
    let mut server = TestServer::new();
    for i in 0..3000 {
        server.run(&["RPUSH", "large", &format!("element {i}")]);
    }
    check(&mut server, &[("RPUSH small a b", "2"), ("COPY small other", "1")]);
    check(&mut server, &[("COPY large copy", "1"), ("LPOP large", "\"element 0\"")]);
    check(&mut server, &[("LLEN large", "2999"), ("LLEN copy", "3000")]);
    check(&mut server, &[("RPUSH other c", "3"), ("LLEN small", "2"), ("TYPE copy", "+list")]);
    check(&mut server, &[("DEL large", "1"), ("LINDEX copy -1", "\"element 2999\"")]);
}

/// Times become moments, conditions what they came to, SORT its result. What was found expired is
/// recorded before the call that found it.
#[test]
fn commands_about_keys_record_what_they_came_to() {
    let mut server = TestServer::new();
    ["SET k v", "SET s v", "RPUSH l 3 1 2", "SET t v"]
        .iter()
        .for_each(|line| drop(server.say(line)));
    server.check_records(&[
        ("EXPIRE k 10", "PEXPIREAT k 1700000010000"),
        ("EXPIRE k 5 GT", ""),
        ("PEXPIRE k 5 LT", "PEXPIREAT k 1700000000005"),
        ("EXPIREAT k 1700000001 XX", "PEXPIREAT k 1700000001000"),
        ("PERSIST k", "PERSIST k"),
        ("PERSIST k", ""),
        ("EXPIRE k -1 NX", "DEL k"),
        ("EXPIRE k 10", ""),
        ("SORT l STORE t", "DEL t | RPUSH t 1 2 3"),
        ("SORT l", ""),
        ("SORT no STORE t", "DEL t"),
        ("SORT no STORE t", ""),
        ("RENAME s s", ""),
        ("RENAME s k", "RENAME s k"),
        ("RENAMENX k l", ""),
        ("COPY k c DB 2", "COPY k c DB 2"),
        ("COPY k c DB 2", ""),
        ("MOVE c 1", ""),
        ("MOVE k 1", "MOVE k 1"),
        ("TOUCH l", ""),
        ("DEL l no", "DEL l no"),
        ("UNLINK l no", ""),
        ("SWAPDB 0 1", "SWAPDB 0 1"),
        ("PEXPIRE k 5", "PEXPIREAT k 1700000000005"),
    ]);
    server.clock.advance_ms(5);
    server.check_records(&[
        ("GET k", "DEL k"),
        ("SELECT 2", ""),
        ("PEXPIRE c 5", "2> PEXPIREAT c 1700000000010"),
    ]);
    server.clock.advance_ms(5);
    // A database without keys may still hold what ONCE remembers.
    server.check_records(&[
        ("SET c v NX", "2> DEL c | 2> SET c v"),
        ("FLUSHDB", "2> FLUSHDB"),
        ("FLUSHALL ASYNC", "2> FLUSHALL ASYNC"),
    ]);
}
