//! Sequences of commands, made up from the catalog, of a few clients in one process, alone and in
//! pipelines: none panics, each call has one whole reply, what is refused leaves the data as it
//! was, and what the commands say about the data agrees.

use crate::calls;
use crate::server::FuzzServer;
use crate::source::Source;
use russet_catalog::Command;
use russet_catalog::spec::Flags;
use russet_protocol::Value;
use std::collections::BTreeSet;

const CLIENTS: usize = 3;
/// Databases that the made-up commands may have filled: SELECT and MOVE reach all.
const DATABASES: usize = 16;
/// Calls between two looks at the data.
const CALLS_PER_LOOK: usize = 64;
/// Calls of one pipeline: more than one batch holds.
const PIPELINED_MAX: usize = 80;
/// Calls of one run: a longer one finds no more and takes longer to repeat.
const CALLS_MAX: usize = 2000;

/// The bytes are a source of choices; see [`calls::call`].
pub fn check(bytes: &[u8]) {
    let commands: Vec<Command> = Command::ALL
        .iter()
        .copied()
        .filter(|command| !calls::is_left_out(command.spec()))
        .collect();
    // Commands with keys come more often than those about the server.
    let with_keys: Vec<Command> = commands
        .iter()
        .copied()
        .filter(|command| command.spec().flags.has_any(Flags::WRITE.or(Flags::READONLY)))
        .collect();
    let mut source = Source::new(bytes);
    let mut server = FuzzServer::new(CLIENTS);
    let (mut calls_made, mut next_look) = (0, CALLS_PER_LOOK);
    while !source.is_empty() && calls_made < CALLS_MAX {
        let who = source.below(CLIENTS);
        match source.below(32) {
            0 => server.clock.advance_ms(1 + source.below(5000) as u64),
            1 => server.time_out(who),
            2 if source.one_in(8) => server.replace(who),
            3..=5 => {
                let count = 2 + source.below(PIPELINED_MAX - 1);
                let calls: Vec<_> =
                    (0..count).map(|_| pipelined(&mut source, &commands, &with_keys)).collect();
                server.pipeline(who, &calls);
                calls_made += count;
            }
            choice => {
                let among = if choice < 9 { &commands } else { &with_keys };
                server.run(who, &calls::call(&mut source, among));
            }
        }
        calls_made += 1;
        if calls_made >= next_look {
            look(&mut server);
            next_look = calls_made + CALLS_PER_LOOK;
        }
    }
    look(&mut server);
}

/// A call in a pipeline: often one that can run in a batch with others, at times a transaction's.
fn pipelined(source: &mut Source, all: &[Command], with_keys: &[Command]) -> Vec<Vec<u8>> {
    const FREQUENT: &[Command] =
        &[Command::Get, Command::Set, Command::Incr, Command::Hset, Command::Hget, Command::Rpush];
    match source.below(16) {
        0 => vec![b"MULTI".to_vec()],
        1 => vec![b"EXEC".to_vec()],
        2 => calls::call(source, all),
        3..=8 => calls::call(source, FREQUENT),
        _ => calls::call(source, with_keys),
    }
}

/// The clock stands still while this asks, so no key expires between two questions.
fn look(server: &mut FuzzServer) {
    for db in 0..DATABASES {
        server.select(db);
        let keys = strings(server.ask(&[b"KEYS", b"*"]));
        let names: BTreeSet<&[u8]> = keys.iter().map(Vec::as_slice).collect();
        assert_eq!(names.len(), keys.len(), "KEYS names a key once");
        let scanned = scan(server);
        assert!(scanned.iter().map(Vec::as_slice).eq(names.iter().copied()), "SCAN finds the keys");
        keys.iter().for_each(|key| look_at(server, key));
        // DBSIZE counts keys that are over until someone comes across them.
        let size = integer(server.ask(&[b"DBSIZE"]));
        let over_max = server.volatile_keys(db) as i64;
        let live = keys.len() as i64;
        assert!((live..=live + over_max).contains(&size), "DBSIZE {size} of {live} keys");
        assert_eq!(server.ask(&[b"RANDOMKEY"]) == Value::Null, keys.is_empty());
    }
    server.select(0);
}

fn scan(server: &mut FuzzServer) -> BTreeSet<Vec<u8>> {
    let mut found = BTreeSet::new();
    let mut cursor = b"0".to_vec();
    loop {
        let reply = server.ask(&[b"SCAN", &cursor, b"COUNT", b"3"]);
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
fn look_at(server: &mut FuzzServer, key: &[u8]) {
    assert_eq!(integer(server.ask(&[b"EXISTS", key])), 1);
    assert_ne!(server.ask(&[b"OBJECT", b"ENCODING", key]), Value::Null);
    let ttl_ms = integer(server.ask(&[b"PTTL", key]));
    assert!(ttl_ms == -1 || ttl_ms > 0, "a live key has a time to live, not {ttl_ms}");
    let kind = server.ask(&[b"TYPE", key]).to_string();
    match kind.as_str() {
        "+string" => {
            let length = integer(server.ask(&[b"STRLEN", key]));
            let value = string(server.ask(&[b"GET", key]));
            assert_eq!(usize::try_from(length).ok(), Some(value.len()), "STRLEN against GET");
        }
        "+list" => {
            let length = integer(server.ask(&[b"LLEN", key]));
            let elements = strings(server.ask(&[b"LRANGE", key, b"0", b"-1"]));
            assert!(length > 0, "an empty list is no list");
            assert_eq!(usize::try_from(length).ok(), Some(elements.len()), "LLEN against LRANGE");
            let last = string(server.ask(&[b"LINDEX", key, b"-1"]));
            assert_eq!(elements.last(), Some(&last), "LINDEX against LRANGE");
        }
        "+zset" => {
            let length = integer(server.ask(&[b"ZCARD", key]));
            let members = strings(server.ask(&[b"ZRANGE", key, b"0", b"-1"]));
            assert!(length > 0, "an empty sorted set is none");
            assert_eq!(usize::try_from(length).ok(), Some(members.len()), "ZCARD against ZRANGE");
            for (rank, member) in members.iter().enumerate() {
                let found = integer(server.ask(&[b"ZRANK", key, member]));
                assert_eq!(usize::try_from(found).ok(), Some(rank), "ZRANK against ZRANGE");
            }
        }
        "+hash" => look_at_hash(server, key),
        "+set" => {
            let length = integer(server.ask(&[b"SCARD", key]));
            let members = strings(server.ask(&[b"SMEMBERS", key]));
            assert!(length > 0, "an empty set is no set");
            assert_eq!(usize::try_from(length).ok(), Some(members.len()), "SCARD against SMEMBERS");
            let names: BTreeSet<&Vec<u8>> = members.iter().collect();
            assert_eq!(names.len(), members.len(), "SMEMBERS names a member once");
            for member in &members {
                assert_eq!(integer(server.ask(&[b"SISMEMBER", key, member])), 1);
            }
        }
        "+stream" => look_at_stream(server, key),
        "+MBbloom--" => {
            let items = integer(server.ask(&[b"BF.CARD", key]));
            let capacity = server.ask(&[b"BF.INFO", key, b"CAPACITY"]).to_string();
            assert!(items >= 0 && !capacity.starts_with('-'), "{items} items: {capacity}");
        }
        other => panic!("a type that nobody looks at yet: {other}"),
    }
}

fn look_at_hash(server: &mut FuzzServer, key: &[u8]) {
    let length = integer(server.ask(&[b"HLEN", key]));
    let names = strings(server.ask(&[b"HKEYS", key]));
    let values = strings(server.ask(&[b"HVALS", key]));
    assert!(length > 0, "an empty hash is no hash");
    assert_eq!(usize::try_from(length).ok(), Some(names.len()), "HLEN against HKEYS");
    assert_eq!(names.len(), values.len(), "HKEYS against HVALS");
    let distinct: BTreeSet<&[u8]> = names.iter().map(Vec::as_slice).collect();
    assert_eq!(distinct.len(), names.len(), "each field once");
    for (name, value) in names.iter().zip(&values) {
        assert_eq!(&string(server.ask(&[b"HGET", key, name])), value, "HGET against HVALS");
        let Value::Array(ttl) = server.ask(&[b"HPTTL", key, b"FIELDS", b"1", name]) else {
            panic!("HPTTL answers an array");
        };
        assert!(ttl.iter().all(|ttl| matches!(ttl, Value::Integer(-1 | 1..))), "HPTTL: {ttl:?}");
    }
}

/// A stream may be empty. Its entries are in the order of their IDs, and XINFO agrees.
fn look_at_stream(server: &mut FuzzServer, key: &[u8]) {
    let length = integer(server.ask(&[b"XLEN", key]));
    let ids = entry_ids(server.ask(&[b"XRANGE", key, b"-", b"+"]));
    assert_eq!(usize::try_from(length).ok(), Some(ids.len()), "XLEN against XRANGE");
    assert!(ids.is_sorted_by(|one, next| one < next), "IDs grow");
    let mut reversed = entry_ids(server.ask(&[b"XREVRANGE", key, b"+", b"-"]));
    reversed.reverse();
    assert_eq!(ids, reversed, "XREVRANGE against XRANGE");
    let info = server.ask(&[b"XINFO", b"STREAM", key, b"FULL", b"COUNT", b"0"]).to_string();
    let is_reported =
        [", ", ": "].iter().any(|between| info.contains(&format!("\"length\"{between}{length},")));
    assert!(is_reported, "XINFO against XLEN: {info}");
}

/// The IDs of entries, as numbers.
fn entry_ids(value: Value) -> Vec<(u64, u64)> {
    let Value::Array(entries) = value else { panic!("entries were expected: {value}") };
    let id = |entry: Value| match entry {
        Value::Array(parts) => match parts.into_iter().next() {
            Some(Value::Bulk(id)) => String::from_utf8_lossy(&id).into_owned(),
            other => panic!("an ID was expected: {other:?}"),
        },
        other => panic!("an entry was expected: {other}"),
    };
    let number = |text: &str| text.parse::<u64>().expect("an ID is two numbers");
    entries
        .into_iter()
        .map(|entry| {
            let id = id(entry);
            let (ms, seq) = id.split_once('-').expect("an ID has a dash");
            (number(ms), number(seq))
        })
        .collect()
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
