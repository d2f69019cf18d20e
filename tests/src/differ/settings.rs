//! CONFIG, CLIENT and OBJECT calls: what they ask for and set, and how a plan begins with the same
//! settings on both sides.

use russet_base::random::Random;

use super::plan::CONNECTIONS;
use super::values::{self, pick};

/// Directives that both sides have, with the values that a plan begins with. None of them ends or
/// silences a connection.
pub const DIRECTIVES: &[(&str, &str)] = &[
    ("hash-max-listpack-entries", "512"),
    ("hash-max-listpack-value", "64"),
    ("list-max-listpack-size", "-2"),
    ("set-max-intset-entries", "512"),
    ("set-max-listpack-entries", "128"),
    ("set-max-listpack-value", "64"),
    ("zset-max-listpack-entries", "128"),
    ("zset-max-listpack-value", "64"),
    ("notify-keyspace-events", ""),
    ("slowlog-max-len", "128"),
    ("slowlog-log-slower-than", "10000"),
    ("latency-monitor-threshold", "0"),
    ("lfu-log-factor", "10"),
    ("lfu-decay-time", "1"),
    ("maxmemory-samples", "5"),
    ("tracking-table-max-keys", "1000000"),
    ("lazyfree-lazy-user-del", "no"),
];

const VALUES: &[&[u8]] = &[
    b"0",
    b"1",
    b"2",
    b"7",
    b"64",
    b"128",
    b"yes",
    b"no",
    b"1kb",
    b"2kb",
    b"-1",
    b"-2",
    b"-5",
    b"-6",
    b"",
    b"abc",
    b"KEA",
    b"Kgx",
    b"1.5",
    b" 1",
    b"07",
    b"9223372036854775807",
    b"99999999999999999999",
];

/// Of events: some letters, and what is none.
const CLASSES: &[&[u8]] = &[b"", b"KEA", b"Kgx", b"Elsh$", b"K", b"AKE", b"zsKtmdn", b"?", b"K "];

const NAMES: &[&[u8]] = &[b"", b"worker", b"two words", b"a-b:c", b"x\ny", b"\xff", b"~end"];
const SWITCHES: &[&[u8]] = &[b"ON", b"off", b"YES", b""];
const ATTRIBUTES: &[&[u8]] = &[b"LIB-NAME", b"lib-ver", b"lib-other", b""];

/// A call about the connection, the configuration, or the inside of a key.
pub fn call(random: &mut Random) -> Vec<Vec<u8>> {
    match random.index(16) {
        0..=2 => config_set(random),
        3..=4 => config_get(random),
        5 => args(&["CLIENT", "GETNAME"], &[]),
        6 => args(&["CLIENT", "SETNAME"], &[pick(random, NAMES)]),
        7 => args(&["CLIENT", "SETINFO"], &[pick(random, ATTRIBUTES), pick(random, NAMES)]),
        8 => args(&["CLIENT", "NO-TOUCH"], &[pick(random, SWITCHES)]),
        9 => args(&["CLIENT", "NO-EVICT"], &[pick(random, SWITCHES)]),
        10 => {
            let asked = ["GETREDIR", "TRACKINGINFO", "nosuch"][random.index(3)];
            args(&["CLIENT", asked], &[])
        }
        11 => args(&["CLIENT", "INFO"], &[]),
        12 => {
            let id = format!("@id{}", random.index(CONNECTIONS));
            args(&["CLIENT", "LIST", "ID"], &[id.into_bytes()])
        }
        // Refused, all of them: those that are not would change the plan.
        13 => {
            let refused: [&[&str]; 6] = [
                &["CLIENT", "PAUSE", "abc"],
                &["CLIENT", "PAUSE", "-1"],
                &["CLIENT", "KILL", "127.0.0.1:1"],
                &["CLIENT", "KILL", "ID", "x"],
                &["CLIENT", "REPLY", "maybe"],
                &["CLIENT", "LIST", "TYPE", "nosuch"],
            ];
            args(refused[random.index(refused.len())], &[])
        }
        _ => {
            let asked = ["ENCODING", "REFCOUNT", "IDLETIME", "FREQ", "nosuch"][random.index(5)];
            args(&["OBJECT", asked], &[values::key(random)])
        }
    }
}

fn args(texts: &[&str], more: &[Vec<u8>]) -> Vec<Vec<u8>> {
    texts.iter().map(|text| text.as_bytes().to_vec()).chain(more.iter().cloned()).collect()
}

fn directive(random: &mut Random) -> Vec<u8> {
    match random.index(30) {
        0 => b"nosuch".to_vec(),
        _ => DIRECTIVES[random.index(DIRECTIVES.len())].0.into(),
    }
}

fn config_set(random: &mut Random) -> Vec<Vec<u8>> {
    let mut call = args(&["CONFIG", "SET"], &[]);
    for _ in 0..=random.index(2) {
        let name = directive(random);
        // Letters of events that only Redis 8 and Russet have (`o`) would be refused by Valkey.
        let pool = if name == b"notify-keyspace-events" { CLASSES } else { VALUES };
        call.push(name);
        call.push(pick(random, pool));
    }
    call
}

fn config_get(random: &mut Random) -> Vec<Vec<u8>> {
    let mut call = args(&["CONFIG", "GET"], &[]);
    (0..=random.index(2)).for_each(|_| call.push(directive(random)));
    call
}
