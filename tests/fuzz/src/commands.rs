//! Sequences of commands, made up from the catalog, of a few clients in one process: none panics,
//! every reply is whole, and what the commands say about the data agrees.

use crate::source::Source;
use crate::stage::Stage;
use crate::words;
use russet_catalog::Command;
use russet_catalog::spec::Flags;
use russet_commands::blocking::GiveUp;
use russet_protocol::Value;
use std::collections::BTreeSet;

const GUESTS: usize = 3;
/// Databases that the made-up commands may have filled: SELECT and MOVE reach all.
const DATABASES: usize = 16;
/// Calls between two looks at the data.
const CALLS_PER_LOOK: usize = 64;
/// Calls of one run: a longer one finds no more and takes longer to repeat.
const CALLS_MAX: usize = 2000;

/// The bytes are a source of choices; see [`words::call`].
pub fn check(bytes: &[u8]) {
    let commands: Vec<Command> = Command::ALL
        .iter()
        .copied()
        .filter(|command| !words::is_left_out(command.spec()))
        .collect();
    // Commands with keys come more often than those about the server.
    let with_keys: Vec<Command> = commands
        .iter()
        .copied()
        .filter(|command| command.spec().flags.has_any(Flags::WRITE.and(Flags::READONLY)))
        .collect();
    let mut source = Source::new(bytes);
    let mut stage = Stage::new(GUESTS);
    let mut calls = 0;
    while !source.is_empty() && calls < CALLS_MAX {
        let who = source.below(GUESTS);
        match source.below(32) {
            0 => stage.clock.advance_ms(1 + source.below(5000) as u64),
            1 => stage.give_up(who, GiveUp::TimedOut),
            2 if source.one_in(8) => stage.replace(who),
            choice => {
                let among = if choice < 8 { &commands } else { &with_keys };
                stage.run(who, &words::call(&mut source, among));
            }
        }
        calls += 1;
        if calls % CALLS_PER_LOOK == 0 {
            look(&mut stage);
        }
    }
    look(&mut stage);
}

/// The clock stands still while this asks, so no key expires between two questions.
fn look(stage: &mut Stage) {
    for db in 0..DATABASES {
        stage.select(db);
        let keys = strings(stage.ask(&[b"KEYS", b"*"]));
        let names: BTreeSet<&[u8]> = keys.iter().map(Vec::as_slice).collect();
        assert_eq!(names.len(), keys.len(), "KEYS names a key once");
        let scanned = scan(stage);
        assert!(scanned.iter().map(Vec::as_slice).eq(names.iter().copied()), "SCAN finds the keys");
        keys.iter().for_each(|key| look_at(stage, key));
        // DBSIZE counts keys that are over until someone comes across them.
        let size = integer(stage.ask(&[b"DBSIZE"]));
        let over_max = stage.volatile_keys(db) as i64;
        let live = keys.len() as i64;
        assert!((live..=live + over_max).contains(&size), "DBSIZE {size} of {live} keys");
        assert_eq!(stage.ask(&[b"RANDOMKEY"]) == Value::Null, keys.is_empty());
    }
    stage.select(0);
}

fn scan(stage: &mut Stage) -> BTreeSet<Vec<u8>> {
    let mut found = BTreeSet::new();
    let mut cursor = b"0".to_vec();
    loop {
        let reply = stage.ask(&[b"SCAN", &cursor, b"COUNT", b"3"]);
        let Value::Array(parts) = reply else { panic!("SCAN: {reply}") };
        let mut parts = parts.into_iter();
        cursor = match parts.next() {
            Some(Value::Bulk(cursor)) => cursor.to_vec(),
            other => panic!("SCAN's cursor: {other:?}"),
        };
        found.extend(parts.next().map(strings).unwrap_or_default());
        if cursor == b"0" {
            return found;
        }
    }
}

/// One key: its type, length and elements agree, and no collection is empty.
fn look_at(stage: &mut Stage, key: &[u8]) {
    assert_eq!(integer(stage.ask(&[b"EXISTS", key])), 1);
    assert_ne!(stage.ask(&[b"OBJECT", b"ENCODING", key]), Value::Null);
    let ttl_ms = integer(stage.ask(&[b"PTTL", key]));
    assert!(ttl_ms == -1 || ttl_ms > 0, "a live key has a time to live, not {ttl_ms}");
    let kind = stage.ask(&[b"TYPE", key]).to_string();
    match kind.as_str() {
        "+string" => {
            let length = integer(stage.ask(&[b"STRLEN", key]));
            let value = string(stage.ask(&[b"GET", key]));
            assert_eq!(usize::try_from(length).ok(), Some(value.len()), "STRLEN against GET");
        }
        "+list" => {
            let length = integer(stage.ask(&[b"LLEN", key]));
            let elements = strings(stage.ask(&[b"LRANGE", key, b"0", b"-1"]));
            assert!(length > 0, "an empty list is no list");
            assert_eq!(usize::try_from(length).ok(), Some(elements.len()), "LLEN against LRANGE");
            let last = string(stage.ask(&[b"LINDEX", key, b"-1"]));
            assert_eq!(elements.last(), Some(&last), "LINDEX against LRANGE");
        }
        "+zset" => {
            let length = integer(stage.ask(&[b"ZCARD", key]));
            let members = strings(stage.ask(&[b"ZRANGE", key, b"0", b"-1"]));
            assert!(length > 0, "an empty sorted set is none");
            assert_eq!(usize::try_from(length).ok(), Some(members.len()), "ZCARD against ZRANGE");
            for (rank, member) in members.iter().enumerate() {
                let found = integer(stage.ask(&[b"ZRANK", key, member]));
                assert_eq!(usize::try_from(found).ok(), Some(rank), "ZRANK against ZRANGE");
            }
        }
        "+set" => {
            let length = integer(stage.ask(&[b"SCARD", key]));
            let members = strings(stage.ask(&[b"SMEMBERS", key]));
            assert!(length > 0, "an empty set is no set");
            assert_eq!(usize::try_from(length).ok(), Some(members.len()), "SCARD against SMEMBERS");
            let names: BTreeSet<&Vec<u8>> = members.iter().collect();
            assert_eq!(names.len(), members.len(), "SMEMBERS names a member once");
            for member in &members {
                assert_eq!(integer(stage.ask(&[b"SISMEMBER", key, member])), 1);
            }
        }
        other => panic!("a type that nobody looks at yet: {other}"),
    }
}

fn integer(value: Value) -> i64 {
    match value {
        Value::Integer(number) => number,
        other => panic!("an integer was expected: {other}"),
    }
}

fn string(value: Value) -> Vec<u8> {
    match value {
        Value::Bulk(bytes) => bytes.to_vec(),
        other => panic!("a string was expected: {other}"),
    }
}

fn strings(value: Value) -> Vec<Vec<u8>> {
    match value {
        Value::Array(values) => values.into_iter().map(string).collect(),
        other => panic!("an array was expected: {other}"),
    }
}
