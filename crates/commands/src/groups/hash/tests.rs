//! What wire files can't show: fields that end at a moment that the test sets, and large hashes.

use crate::testing::TestServer;
use russet_base::UnixMillis;
use russet_protocol::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;

fn server_with(lines: &[&str]) -> TestServer {
    let mut server = TestServer::new();
    for line in lines {
        server.say(line);
    }
    server
}

fn scheduled(server: &TestServer) -> u64 {
    let gauges = server.worker.node.keyspace.gauges().iter();
    gauges.flat_map(|shard| &shard.volatile).map(|count| count.load(Ordering::Relaxed)).sum()
}

#[test]
fn a_field_is_gone_at_its_moment_and_not_before() {
    let mut server = server_with(&["HSET h a 1 b 2", "HPEXPIRE h 100 FIELDS 1 a"]);
    server.clock.advance_ms(99);
    assert_eq!(server.say("HLEN h"), "2");
    assert_eq!(server.say("HPTTL h FIELDS 1 a"), "[1]");
    server.clock.advance_ms(1);
    assert_eq!(server.say("HLEN h"), "1");
    assert_eq!(server.say("HGETALL h"), "[\"b\", \"2\"]");
    assert_eq!(scheduled(&server), 0);
}

#[test]
fn a_key_whose_fields_are_over_is_seen_by_no_command() {
    let asked = [
        ("EXISTS h", "0"),
        ("TYPE h", "+none"),
        ("HLEN h", "0"),
        ("HGETALL h", "[]"),
        ("HRANDFIELD h", "nil"),
        ("HRANDFIELD h 5", "[]"),
        ("HSCAN h 0", "[\"0\", []]"),
        ("KEYS *", "[]"),
        ("KEYS h", "[]"),
        ("SCAN 0", "[\"0\", []]"),
        ("RANDOMKEY", "nil"),
        ("COPY h g", "0"),
        ("RENAME h g", "-ERR no such key"),
        ("MOVE h 1", "0"),
        ("DEL h", "0"),
        ("TOUCH h", "0"),
        ("TTL h", "-2"),
        ("EXPIRE h 10", "0"),
        ("OBJECT ENCODING h", "nil"),
        ("HTTL h FIELDS 1 a", "[-2]"),
        ("HPERSIST h FIELDS 1 a", "[-2]"),
        ("HEXPIRE h 10 FIELDS 1 a", "[-2]"),
        ("HGETDEL h FIELDS 1 a", "[nil]"),
        ("HGETEX h PERSIST FIELDS 1 a", "[nil]"),
        ("HSETEX h XX FIELDS 1 b 1", "0"),
        ("HSETEX h FXX FIELDS 1 a 1", "0"),
        ("HSETNX h a 1", "1"),
        ("HINCRBY h a 1", "1"),
        ("HSET h a 1", "1"),
        ("GET h", "nil"),
        ("APPEND h x", "1"),
        ("SET h x NX", "+OK"),
        ("LPUSH h x", "1"),
        ("DEBUG DIGEST-VALUE h", "[+0000000000000000000000000000000000000000]"),
    ];
    for (line, expected) in asked {
        let mut server = server_with(&["HSETEX h PX 100 FIELDS 2 a 1 b 2"]);
        server.clock.advance_ms(100);
        assert_eq!(server.say(line), expected, "{line}");
        // A walk removes nothing; the next look at the key does.
        server.say("EXISTS h");
        assert_eq!(scheduled(&server), 0, "{line}");
    }
}

#[test]
fn the_schedule_follows_whatever_happens_to_a_key() {
    let ways: [&[&str]; 12] = [
        &["DEL h"],
        &["SET h x"],
        &["FLUSHALL"],
        &["HDEL h a"],
        &["HSET h a 2"],
        &["HPERSIST h FIELDS 1 a"],
        &["HGETEX h PERSIST FIELDS 1 a"],
        &["HEXPIRE h 0 FIELDS 1 a"],
        &["RENAME h g", "DEL g"],
        &["COPY h g", "DEL h", "DEL g"],
        &["MOVE h 1", "SELECT 1", "DEL h"],
        &["SWAPDB 0 1", "SELECT 1", "UNLINK h"],
    ];
    for way in ways {
        let mut server = server_with(&["HSETEX h EX 100 FIELDS 1 a 1", "HSET h b 2"]);
        assert_eq!(scheduled(&server), 1);
        way.iter().for_each(|line| drop(server.say(line)));
        assert_eq!(scheduled(&server), 0, "{way:?}");
    }
}

#[test]
fn a_key_that_expires_takes_its_fields_from_the_schedule() {
    for value in ["short", &"long".repeat(500)] {
        let mut server = TestServer::new();
        server.say(&format!("HSETEX h EX 1000 FIELDS 2 a 1 b {value}"));
        server.say("PEXPIRE h 5");
        server.clock.advance_ms(5);
        let now = UnixMillis(1_700_000_000_005);
        let shards = 0..server.worker.node.keyspace.shards();
        shards.for_each(|shard| assert!(!server.worker.expire(shard, (now, 1000))));
        assert_eq!(scheduled(&server), 0);
        assert_eq!(server.say("DBSIZE"), "0");
    }
}

#[test]
fn a_key_that_is_over_with_its_fields_expires_as_a_key() {
    let lines = ["HSETEX h PX 5 FIELDS 2 a 1 b 2", "PEXPIRE h 5", "SET other x"];
    let mut server = server_with(&lines);
    server.clock.advance_ms(5);
    assert_eq!(server.say("EXISTS h"), "0");
    assert_eq!(server.worker.node.expired_keys(), 1);
    assert_eq!(server.worker.node.expired_fields(), 0);
    assert_eq!(scheduled(&server), 0);
    let mut server = server_with(&lines);
    server.clock.advance_ms(5);
    assert_eq!(server.say("KEYS *"), "[\"other\"]");
}

fn names(reply: &Value) -> Vec<Vec<u8>> {
    let Value::Array(items) = reply else { panic!("an array was expected: {reply}") };
    let name = |item: &Value| match item {
        Value::Bulk(bytes) => bytes.to_vec(),
        other => panic!("a name was expected: {other}"),
    };
    items.iter().map(name).collect()
}

#[test]
fn a_scan_sees_all_that_stays_while_the_hash_grows_and_shrinks() {
    let mut server = TestServer::new();
    (0..600).for_each(|at| drop(server.say(&format!("HSET h stays:{at} {at}"))));
    let (mut cursor, mut seen, mut round) = ("0".to_owned(), BTreeSet::new(), 0);
    loop {
        let reply = server.run(&["HSCAN", "h", &cursor, "COUNT", "20", "NOVALUES"]);
        let Value::Array(parts) = reply else { panic!("HSCAN answers an array") };
        seen.extend(names(&parts[1]));
        let Value::Bulk(next) = &parts[0] else { panic!("HSCAN answers a cursor") };
        cursor = String::from_utf8_lossy(next).into_owned();
        if cursor == "0" {
            break;
        }
        (0..200).for_each(|at| match round % 2 {
            0 => drop(server.say(&format!("HSET h passes:{round}:{at} {at}"))),
            _ => drop(server.say(&format!("HDEL h passes:{}:{at}", round - 1))),
        });
        round += 1;
    }
    assert!(round > 3, "the walk took several calls");
    let stays = |at: i32| format!("stays:{at}").into_bytes();
    assert!((0..600).all(|at| seen.contains(&stays(at))));
}

#[test]
fn a_large_hash_loses_its_fields_in_the_order_of_their_ends() {
    let mut server = TestServer::new();
    for at in 1..=500 {
        server.say(&format!("HSETEX h PX {at} FIELDS 1 field:{at} value:{at}"));
    }
    for at in 1..500 {
        server.clock.advance_ms(1);
        assert_eq!(server.say("HLEN h"), (500 - at).to_string());
        assert_eq!(server.say(&format!("HEXISTS h field:{at}")), "0");
    }
    server.clock.advance_ms(1);
    assert_eq!(server.say("EXISTS h"), "0");
}

#[test]
fn as_many_random_fields_as_were_asked_for() {
    let mut server = TestServer::new();
    (0..400).for_each(|at| drop(server.say(&format!("HSET h field:{at} {at}"))));
    for count in [1, 2, 50, 99, 100, 101, 350, 399] {
        let picked = names(&server.run(&["HRANDFIELD", "h", &count.to_string()]));
        let distinct: BTreeSet<&Vec<u8>> = picked.iter().collect();
        assert_eq!((picked.len(), distinct.len()), (count, count));
        let picked = names(&server.run(&["HRANDFIELD", "h", &format!("-{count}")]));
        assert_eq!(picked.len(), count);
    }
    assert_eq!(server.say("HRANDFIELD h -9000000000"), "-ERR value is out of range");
}

/// Each draw went through all fields that were over and not removed yet: a hundred draws from a
/// million such fields took seconds, and as many as here would never end.
#[test]
fn draws_pass_the_hidden_fields_once() {
    const HIDDEN: usize = 100_000;
    let mut server = server_with(&["HSET h a 1 b 2 c 3"]);
    for first in (0..HIDDEN).step_by(1000) {
        let fields = (first..first + 1000).flat_map(|at| [format!("f{at}"), "v".to_owned()]);
        let call = ["HSETEX", "h", "PX", "10", "FIELDS", "1000"].map(str::to_owned);
        server.run(&call.into_iter().chain(fields).collect::<Vec<_>>());
    }
    server.say("CLIENT PAUSE 100000 WRITE");
    server.clock.advance_ms(10);
    let picked = names(&server.run(&["HRANDFIELD", "h", &format!("-{HIDDEN}")]));
    assert_eq!(picked.len(), HIDDEN);
    let seen: BTreeSet<_> = picked.into_iter().collect();
    assert_eq!(seen.len(), 3, "{seen:?}");
    assert_eq!(server.say("HLEN h"), "3");
}

/// Fields that ended during a pause of writes were removed, with their events, by whoever read the
/// hash. While it lasts they are hidden and stay.
#[test]
fn fields_that_end_during_a_pause_are_hidden_and_stay_until_it_is_over() {
    for value in ["short", &"long".repeat(500)] {
        let mut server = server_with(&[
            &format!("HSET h a 1 b {value} c 3"),
            "HPEXPIRE h 10 FIELDS 2 a b",
            "HSETEX over PX 10 FIELDS 1 f v",
            "RPUSH l h",
            "CLIENT PAUSE 100000 WRITE",
        ]);
        server.clock.advance_ms(10);
        let asked = [
            ("HGET h a", "nil"),
            ("HMGET h a b c", "[nil, nil, \"3\"]"),
            ("HEXISTS h b", "0"),
            ("HLEN h", "1"),
            ("HSTRLEN h b", "0"),
            ("HGETALL h", "[\"c\", \"3\"]"),
            ("HRANDFIELD h", "\"c\""),
            ("HRANDFIELD h -3", "[\"c\", \"c\", \"c\"]"),
            ("HRANDFIELD h 3", "[\"c\"]"),
            ("HSCAN h 0", "[\"0\", [\"c\", \"3\"]]"),
            ("HTTL h FIELDS 2 a c", "[-2, -1]"),
            ("SORT_RO l BY nosort GET *->a GET *->c", "[nil, \"3\"]"),
            ("EXISTS h over", "1"),
            ("TYPE over", "+none"),
            ("HLEN over", "0"),
            ("HGETALL over", "[]"),
            ("KEYS [ho]*", "[\"h\"]"),
            ("SUNION over", "[]"),
        ];
        for (line, reply) in asked {
            assert_eq!(server.say(line), reply, "{line}");
            let shards = 0..server.worker.node.keyspace.shards();
            let now = server.worker.node.clock.now();
            shards.for_each(|shard| assert!(!server.worker.expire(shard, (now, 1000))));
            assert_eq!((scheduled(&server), server.worker.node.expired_fields()), (2, 0), "{line}");
        }
        assert!((0..50).all(|_| server.say("RANDOMKEY") != "\"over\""));
        server.say("CLIENT UNPAUSE");
        assert_eq!(server.say("HLEN h"), "1");
        assert_eq!(server.say("EXISTS over"), "0");
        assert_eq!((scheduled(&server), server.worker.node.expired_fields()), (0, 3));
    }
}

/// Fields' deadlines are recorded as moments, and removal at once as removal.
#[test]
fn hashes_record_what_they_came_to() {
    TestServer::new().check_records(&[
        ("HSET h a 1 b 2 c 3", "HSET h a 1 b 2 c 3"),
        ("HSETNX h a 1", ""),
        ("HSETNX h d 1", "HSETNX h d 1"),
        ("HINCRBY h d 1", "HINCRBY h d 1"),
        ("HINCRBYFLOAT h d 0.5", "HSET h d 2.5"),
        ("HEXPIRE h 10 FIELDS 2 a no", "HPEXPIREAT h 1700000010000 FIELDS 1 a"),
        ("HPEXPIRE h 10 NX FIELDS 2 a b", "HPEXPIREAT h 1700000000010 FIELDS 1 b"),
        ("HEXPIREAT h 1700000005 GT FIELDS 2 a b", "HPEXPIREAT h 1700000005000 FIELDS 1 b"),
        ("HEXPIRE h 10 XX FIELDS 1 c", ""),
        ("HPERSIST h FIELDS 2 b c", "HPERSIST h FIELDS 2 b c"),
        ("HPERSIST h FIELDS 2 b c", ""),
        ("HGETEX h FIELDS 1 a", ""),
        ("HGETEX h PX 5 FIELDS 2 b no", "HPEXPIREAT h 1700000000005 FIELDS 1 b"),
        ("HGETEX h PERSIST FIELDS 2 b c", "HPERSIST h FIELDS 1 b"),
        ("HGETEX h PXAT 1 FIELDS 2 b no", "HDEL h b"),
        ("HGETDEL h FIELDS 2 b no", ""),
        ("HGETDEL h FIELDS 2 c no", "HDEL h c no"),
        (
            "HSETEX h EX 10 FIELDS 2 x 1 y 2",
            "HSET h x 1 y 2 | HPEXPIREAT h 1700000010000 FIELDS 2 x y",
        ),
        ("HSETEX h FNX FIELDS 1 x 1", ""),
        ("HSETEX h FIELDS 1 x 2", "HSET h x 2"),
        (
            "HSETEX h KEEPTTL FIELDS 2 x 3 y 3",
            "HSET h x 3 y 3 | HPEXPIREAT h 1700000010000 FIELDS 1 y",
        ),
        ("HSETEX h PXAT 1 FIELDS 2 y 1 no 1", "HDEL h y"),
        ("HSETEX h PXAT 1 FIELDS 1 no 1", ""),
        ("HPEXPIREAT h 1 FIELDS 2 x no", "HDEL h x"),
        ("HDEL h no", ""),
        ("HDEL h a d", "HDEL h a d"),
    ]);
}

/// HSET takes a field's deadline away, HINCRBYFLOAT does not.
#[test]
fn hincrbyfloat_records_the_deadline_that_stays() {
    TestServer::new().check_records(&[
        ("HSETEX h EX 10 FIELDS 1 a 1", "HSET h a 1 | HPEXPIREAT h 1700000010000 FIELDS 1 a"),
        ("HINCRBYFLOAT h a 0.5", "HSET h a 1.5 | HPEXPIREAT h 1700000010000 FIELDS 1 a"),
    ]);
}

/// Fields whose time is over are recorded by their names before the call that found them, in either
/// form of a hash; one that goes as a whole as its deletion.
#[test]
fn expired_fields_are_recorded() {
    let large: String = (0..2000).map(|at| format!(" f{at} {}", "v".repeat(20))).collect();
    for setup in ["HSET h keep 1".to_owned(), format!("HSET h keep 1{large}")] {
        let mut server = server_with(&[&setup, "HSETEX h PX 5 FIELDS 2 a 1 12 2"]);
        server.clock.advance_ms(5);
        let recorded = server.records_of("HSET h b 1").join(" | ");
        let names = ["HDEL h a 12 | HSET h b 1", "HDEL h 12 a | HSET h b 1"];
        assert!(names.contains(&&*recorded), "{recorded}");
        server.check_records(&[("HLEN h", "")]);
    }
    for setup in
        ["HSETEX h PX 5 FIELDS 1 a 1".to_owned(), { format!("HSETEX h PX 5 FIELDS 2000{large}") }]
    {
        let mut server = server_with(&[&setup]);
        server.clock.advance_ms(5);
        server.check_records(&[("HGET h a", "DEL h"), ("EXISTS h", "")]);
    }
}

/// Housekeeping records what it removes as a look-up does.
#[test]
fn fields_that_housekeeping_removes_are_recorded() {
    let mut server = server_with(&["HSET h keep 1", "HSETEX h PX 5 FIELDS 1 a 1"]);
    server.clock.advance_ms(5);
    let recorded = server.record(|server| {
        let now = server.worker.node.clock.now();
        for shard in 0..server.worker.node.keyspace.shards() {
            server.worker.expire(shard, (now, 100));
        }
    });
    assert_eq!(recorded, ["HDEL h a"]);
}

/// A hash of `fields` fields of which all but `live0` and `live1` end at one moment, at that
/// moment.
fn server_with_backlog(fields: usize) -> TestServer {
    let mut server = server_with(&["HSET h live0 0 live1 1"]);
    for first in (0..fields).step_by(100) {
        let names: Vec<String> = (first..first + 100).map(|n| format!("f{n} {n}")).collect();
        let set = format!("HSETEX h PXAT 1700000000100 FIELDS 100 {}", names.join(" "));
        assert_eq!(server.say(&set), "1");
    }
    server.clock.advance_ms(100);
    server
}

/// The first look-up after many fields had ended removed all of them: a million took a third of a
/// second, and everyone waited. Now it removes a few, and the others are as good as gone.
#[test]
fn a_look_up_removes_few_fields_and_shows_none_that_is_over() {
    let asked = [
        ("HLEN h", "2"),
        ("HGET h f7", "nil"),
        ("HMGET h f8 live1", "[nil, \"1\"]"),
        ("HEXISTS h f9", "0"),
        ("HSTRLEN h f9", "0"),
        ("HTTL h FIELDS 2 f10 live0", "[-2, -1]"),
        ("HPERSIST h FIELDS 1 f11", "[-2]"),
        ("HEXPIRE h 100 FIELDS 1 f12", "[-2]"),
        ("HGETEX h PERSIST FIELDS 1 f13", "[nil]"),
        ("HGETDEL h FIELDS 1 f14", "[nil]"),
        ("HDEL h f15 f16", "0"),
        ("HSETEX h FXX FIELDS 1 f17 v", "0"),
        ("HLEN h", "2"),
        ("EXISTS h", "1"),
        ("RANDOMKEY", "\"h\""),
        ("KEYS *", "[\"h\"]"),
    ];
    let mut server = server_with_backlog(10_000);
    for (count, (line, reply)) in asked.into_iter().enumerate() {
        assert_eq!(server.say(line), reply, "{line}");
        let removed = server.worker.node.expired_fields();
        assert!(removed <= 200 * (count as u64 + 1), "{line} removed {removed}");
    }
    let mut all = server.say("HGETALL h");
    assert!(["live0", "live1"].iter().all(|name| all.contains(name)), "{all}");
    assert_eq!(all.matches(',').count(), 3, "{all}");
    all = server.say("HRANDFIELD h 10");
    assert_eq!(all.matches(',').count(), 1, "{all}");
    assert!((0..20).all(|_| server.say("HRANDFIELD h").contains("live")));
    assert_eq!(server.say("HSETNX h f20 new"), "1");
    assert_eq!(server.say("HINCRBY h f21 5"), "5");
    assert_eq!(server.say("HSET h f22 v f23 v live0 v"), "2");
    assert_eq!(server.say("HTTL h FIELDS 4 f20 f21 f22 f23"), "[-1, -1, -1, -1]");
    assert_eq!(server.say("HLEN h"), "6");
    assert_eq!(server.say("COPY h copy"), "1");
    assert_eq!(server.say("HLEN copy"), "6");
    assert!(server.worker.node.expired_fields() < 9_000, "it was never done at once");
    // Housekeeping does the rest.
    let now = server.worker.node.clock.now();
    for shard in 0..server.worker.node.keyspace.shards() {
        while server.worker.expire(shard, (now, 100)) {}
    }
    assert_eq!((server.say("HLEN h"), server.say("HLEN copy")), ("6".into(), "6".into()));
    assert_eq!(scheduled(&server), 0);
}

/// When the last field that is not over goes, the key goes, with all that was only hidden.
#[test]
fn a_hash_of_which_only_hidden_fields_are_left_is_gone() {
    for line in [
        "HDEL h live0 live1",
        "HGETDEL h FIELDS 2 live0 live1",
        "HPEXPIRE h 0 FIELDS 2 live0 live1",
    ] {
        let mut server = server_with_backlog(5_000);
        server.say(line);
        assert_eq!(server.say("EXISTS h"), "0", "{line}");
        assert_eq!(server.say("DBSIZE"), "0", "{line}");
        assert_eq!(scheduled(&server), 0);
        assert!(server.worker.node.expired_fields() >= 5_000);
    }
    // By their own deadlines, too.
    let mut server = server_with_backlog(5_000);
    server.say("HPEXPIRE h 50 FIELDS 2 live0 live1");
    server.clock.advance_ms(50);
    assert_eq!(server.say("HLEN h"), "0");
    assert_eq!((server.say("DBSIZE"), scheduled(&server)), ("0".into(), 0));
}

/// Removing what was hidden already changes nothing for who watches: it would have no transaction
/// succeed until the last of them is gone.
#[test]
fn a_watcher_is_notified_when_fields_end_and_not_when_they_are_removed() {
    let mut server = server_with_backlog(5_000);
    assert_eq!(server.say("HLEN h"), "2");
    for line in ["WATCH h", "HLEN h", "HGET h f1", "MULTI", "HLEN h"] {
        server.say(line);
    }
    assert_eq!(server.say("EXEC"), "[2]");
    server.say("HPEXPIRE h 10 FIELDS 1 live0");
    server.say("WATCH h");
    server.clock.advance_ms(10);
    assert_eq!(server.say("HLEN h"), "1");
    server.say("MULTI");
    assert_eq!(server.say("EXEC"), "nil-array", "a field has ended");
}

/// Random commands on a large hash that always has fields which are over and not removed yet.
#[test]
fn a_hash_with_hidden_fields_is_as_one_without() {
    let mut random = russet_base::Random::from_seed(21);
    let mut server = TestServer::new();
    let mut model: BTreeMap<u64, Option<i64>> = BTreeMap::new();
    let mut now_ms = 1_700_000_000_000_i64;
    for step in 0..6_000 {
        if random.below(40) == 0 {
            now_ms += 50;
            server.clock.advance_ms(50);
            model.retain(|_, deadline| deadline.is_none_or(|at_ms| at_ms > now_ms));
        }
        let field = random.below(3_000);
        // Few moments, so that many fields end at each.
        let at_ms = (now_ms / 100 + 1 + random.below(4) as i64) * 100;
        let (line, reply) = match random.below(12) {
            0..=4 => {
                let fields: Vec<u64> = (field..field + 40).collect();
                model.extend(fields.iter().map(|field| (*field, Some(at_ms))));
                let pairs: Vec<String> = fields.iter().map(|field| format!("{field} v")).collect();
                (format!("HSETEX h PXAT {at_ms} FIELDS 40 {}", pairs.join(" ")), "1".to_owned())
            }
            5 => {
                let is_new = model.insert(field, None).is_none();
                (format!("HSET h {field} v"), u8::from(is_new).to_string())
            }
            6 => {
                let is_gone = model.remove(&field).is_some();
                (format!("HDEL h {field}"), u8::from(is_gone).to_string())
            }
            7 => {
                let answer = match model.get_mut(&field) {
                    None => -2,
                    Some(deadline) => {
                        *deadline = Some(at_ms);
                        1
                    }
                };
                (format!("HPEXPIREAT h {at_ms} FIELDS 1 {field}"), format!("[{answer}]"))
            }
            8 => {
                let answer = match model.get_mut(&field) {
                    None => -2,
                    Some(None) => -1,
                    Some(deadline) => {
                        *deadline = None;
                        1
                    }
                };
                (format!("HPERSIST h FIELDS 1 {field}"), format!("[{answer}]"))
            }
            9 => {
                let is_there = u8::from(model.contains_key(&field));
                (format!("HEXISTS h {field}"), is_there.to_string())
            }
            _ => ("HLEN h".to_owned(), model.len().to_string()),
        };
        assert_eq!(server.say(&line), reply, "step {step}: {line}");
    }
    let Value::Array(shown) = server.run(&["HKEYS", "h"]) else { panic!("HKEYS gave no array") };
    assert_eq!(shown.len(), model.len());
}
