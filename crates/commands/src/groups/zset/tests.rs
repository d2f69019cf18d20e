//! What wire files cannot show of sorted sets: walks in steps, chance, and counters.

use crate::testing::TestServer;
use russet_protocol::Value;
use std::collections::{BTreeMap, BTreeSet};

fn texts(value: Value) -> Vec<String> {
    let Value::Array(items) = value else { panic!("an array was expected: {value}") };
    let text = |item: &Value| match item {
        Value::Bulk(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        other => panic!("a string was expected: {other}"),
    };
    items.iter().map(text).collect()
}

fn fill(server: &mut TestServer, names: impl Iterator<Item = String>) {
    for (score, name) in names.enumerate() {
        server.run(&["ZADD", "z", &score.to_string(), &name]);
    }
}

#[test]
fn a_walk_sees_all_that_stays_while_the_set_grows() {
    for start in [50, 2_000] {
        let mut server = TestServer::new();
        fill(&mut server, (0..start).map(|at| format!("old{at}")));
        let (mut cursor, mut seen, mut step) = ("0".to_owned(), BTreeSet::new(), 0);
        loop {
            let Value::Array(parts) = server.run(&["ZSCAN", "z", &cursor, "NOSCORES"]) else {
                panic!("ZSCAN answers an array");
            };
            let [Value::Bulk(next), page] = &parts[..] else { panic!("a cursor and a page") };
            cursor = String::from_utf8_lossy(next).into_owned();
            seen.extend(texts(page.clone()));
            if cursor == "0" {
                break;
            }
            step += 1;
            server.run(&["ZADD", "z", "1", &format!("new{step}"), "2", &format!("old{step}")]);
            server.run(&["ZREM", "z", &format!("new{}", step - 1)]);
        }
        assert!((0..start).all(|at| seen.contains(&format!("old{at}"))), "{start}");
    }
}

#[test]
fn members_drawn_at_once_are_different_and_all_likely() {
    let mut server = TestServer::new();
    for size in [30, 400] {
        server.say("DEL z");
        fill(&mut server, (0..size).map(|at| format!("m{at}")));
        let mut drawn = BTreeMap::<String, usize>::new();
        for count in [1, size / 10, size / 2, size - 1] {
            for _ in 0..60 {
                let found = texts(server.run(&["ZRANDMEMBER", "z", &count.to_string()]));
                assert_eq!(found.len(), count);
                assert_eq!(found.iter().collect::<BTreeSet<_>>().len(), count);
                found.into_iter().for_each(|name| *drawn.entry(name).or_default() += 1);
            }
        }
        assert_eq!(drawn.len(), size);
    }
}

#[test]
fn more_draws_than_memory_holds_are_refused() {
    let mut server = TestServer::new();
    server.say("ZADD z 1 a");
    assert_eq!(server.say("ZRANDMEMBER z -67108865"), "-ERR value is out of range");
    assert_eq!(server.say("ZRANDMEMBER z -2"), "[\"a\", \"a\"]");
}

#[test]
fn each_changed_member_counts_as_a_change() {
    let mut server = TestServer::new();
    let dirty = |server: &mut TestServer| {
        let info = server.say("INFO persistence");
        let line = info.split("rdb_changes_since_last_save:").nth(1).unwrap_or_default();
        line.chars().take_while(char::is_ascii_digit).collect::<String>().parse::<u64>().unwrap()
    };
    for (line, changes) in [
        ("ZADD z 1 a 2 b 3 c", 3),
        ("ZADD z 1 a 5 b 6 d", 2),
        ("ZINCRBY z 0 a", 0),
        ("ZPOPMIN z 2", 2),
        ("ZREMRANGEBYRANK z 0 -1", 2),
        ("ZADD z 1 a", 1),
        ("ZUNIONSTORE y 1 z", 1),
        ("ZUNIONSTORE y 1 nothing", 1),
        ("ZUNIONSTORE y 1 nothing", 0),
        ("ZREM z a nobody", 1),
    ] {
        let before = dirty(&mut server);
        server.say(line);
        assert_eq!(dirty(&mut server) - before, changes, "{line}");
    }
}

/// A union of two large ones, some members of which both have.
#[test]
fn a_large_union_is_whole_and_in_order() {
    let mut server = TestServer::new();
    for (key, start) in [("a", 0), ("b", 1_500)] {
        for at in start..start + 3_000 {
            server.run(&["ZADD", key, &(at % 977).to_string(), &format!("m{at}")]);
        }
    }
    assert_eq!(server.say("ZUNIONSTORE out 2 a b WEIGHTS 1 2"), "4500");
    assert_eq!(server.say("ZINTERCARD 2 a b"), "1500");
    assert_eq!(server.say("ZSCORE out m2000"), "\"138\"");
    let members = texts(server.run(&["ZRANGE", "out", "0", "-1"]));
    assert_eq!(members.len(), 4_500);
    for rank in (0..4_500).step_by(97) {
        assert_eq!(server.run(&["ZRANK", "out", &members[rank]]), Value::Integer(rank as i64));
    }
    assert_eq!(server.say("ZDIFFSTORE out 2 a b"), "1500");
    assert_eq!(server.say("ZCARD out"), "1500");
}

#[test]
fn pops_that_may_wait_are_recorded_as_plain_ones() {
    let mut server = TestServer::new();
    server.say("ZADD z 1 a 2 b 3 c 4 d 5 e");
    for (line, record) in [
        ("BZPOPMIN nosuch z 0", "ZPOPMIN z 1"),
        ("BZPOPMAX z 0", "ZPOPMAX z 1"),
        ("BZMPOP 0 2 nosuch z MIN COUNT 2", "ZPOPMIN z 2"),
        ("ZMPOP 1 z MAX", "ZMPOP 1 z MAX"),
    ] {
        assert_eq!(server.records_of(line), [record], "{line}");
    }
}
