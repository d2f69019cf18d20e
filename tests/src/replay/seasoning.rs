//! Calls that come out differently every time: what expires soon, what is drawn, what takes its ID
//! from the clock. The differential generator must leave most of them out; records must not.

use russet_base::random::Random;

/// The longest short time to live.
pub const SOON_MS_MAX: u64 = 20;

/// Most keys here are of one type each, so that calls meet what they are for; some are the
/// generator's, of any type.
const HASHES: &[&str] = &["h1", "h2", "{t}a"];
const SETS: &[&str] = &["s1", "s2", "k1"];
const STREAMS: &[&str] = &["x1", "x2", "k2"];
const LISTS: &[&str] = &["q1", "q2", "k3"];
const STRINGS: &[&str] = &["v1", "v2", "{t}b"];
const ZSETS: &[&str] = &["z1", "z2"];

const FIELDS: &[&str] = &["a", "b", "c", "1"];
const CONSUMERS: &[&str] = &["alice", "bob"];
const CONDITIONS: &[&str] = &["NX", "XX", "GT", "LT"];

fn pick<'a>(random: &mut Random, pool: &[&'a str]) -> &'a str {
    pool[random.index(pool.len())]
}

fn soon(random: &mut Random) -> String {
    (1 + random.below(SOON_MS_MAX)).to_string()
}

fn args(text: &str) -> Vec<Vec<u8>> {
    text.split(' ').map(|arg| arg.as_bytes().to_vec()).collect()
}

/// One call, with one reply, that does not wait.
pub fn call(random: &mut Random) -> Vec<Vec<u8>> {
    match random.index(20) {
        0..=4 => args(&stream(random)),
        5..=8 => args(&hash(random)),
        9..=12 => args(&string(random)),
        13..=15 => args(&set(random)),
        16 => args(&sorted(random)),
        17 => args(&list(random)),
        18 => args(&across(random)),
        _ => script(random),
    }
}

fn string(random: &mut Random) -> String {
    let (key, soon) = (pick(random, STRINGS), soon(random));
    let condition = pick(random, CONDITIONS);
    match random.index(12) {
        0..=1 => format!("SET {key} v{soon} PX {soon}"),
        2 => format!("SET {key} {soon} KEEPTTL GET"),
        3 => format!("PSETEX {key} {soon} p"),
        4 => format!("GETEX {key} PX {soon}"),
        5 => format!("GETEX {key} PERSIST"),
        6 => format!("PEXPIRE {key} {soon} {condition}"),
        7 => format!("EXPIRE {key} 1 {condition}"),
        8 => format!("INCRBYFLOAT {key} 0.1"),
        9 => format!("MSETEX 2 v1 a v2 b PX {soon} {}", pick(random, &["NX", "XX", "KEEPTTL"])),
        10 => format!("ONCE id{} PX {soon} INCR {key}", random.index(4)),
        _ => format!("ONCE id{} PX 60000 APPEND {key} {soon}", random.index(4)),
    }
}

fn hash(random: &mut Random) -> String {
    let (key, soon) = (pick(random, HASHES), soon(random));
    let (field, other) = (pick(random, FIELDS), pick(random, FIELDS));
    let condition = pick(random, CONDITIONS);
    match random.index(12) {
        0..=2 => format!("HSET {key} {field} {soon} {other} x"),
        3..=4 => format!("HPEXPIRE {key} {soon} FIELDS 2 {field} {other}"),
        5 => format!("HPEXPIRE {key} {soon} {condition} FIELDS 1 {field}"),
        6 => format!("HSETEX {key} PX {soon} FIELDS 1 {field} {soon}"),
        7 => format!("HGETEX {key} PX {soon} FIELDS 1 {field}"),
        8 => format!("HINCRBYFLOAT {key} {field} 0.5"),
        9 => format!("HGETDEL {key} FIELDS 1 {field}"),
        10 => format!("HPERSIST {key} FIELDS 1 {field}"),
        _ => format!("HEXPIRE {key} 1 FIELDS 1 {field}"),
    }
}

fn set(random: &mut Random) -> String {
    let (key, other) = (pick(random, SETS), pick(random, SETS));
    let count = random.index(4);
    match random.index(8) {
        0..=2 => format!("SADD {key} {count} m{} n{}", random.index(9), random.index(9)),
        3..=4 => format!("SPOP {key}"),
        5 => format!("SPOP {key} {count}"),
        6 => format!("SMOVE {key} {other} {count}"),
        _ => format!("SORT {key} ALPHA LIMIT 0 {count} STORE {}", pick(random, LISTS)),
    }
}

fn sorted(random: &mut Random) -> String {
    let key = pick(random, ZSETS);
    match random.index(4) {
        0..=1 => format!("ZADD {key} {} m{}", random.index(5), random.index(9)),
        2 => format!("ZPOPMIN {key}"),
        _ => format!("ZMPOP 2 z1 z2 MAX COUNT {}", 1 + random.index(2)),
    }
}

fn list(random: &mut Random) -> String {
    let (key, other) = (pick(random, LISTS), pick(random, LISTS));
    match random.index(4) {
        0..=1 => format!("RPUSH {key} e{} f", random.index(9)),
        2 => format!("LMOVE {key} {other} LEFT RIGHT"),
        _ => format!("LMPOP 2 {key} {other} RIGHT"),
    }
}

fn stream(random: &mut Random) -> String {
    let (key, consumer) = (pick(random, STREAMS), pick(random, CONSUMERS));
    let count = 1 + random.index(3);
    match random.index(20) {
        0..=4 => format!("XADD {key} * f {count}"),
        5 => format!("XADD {key} MAXLEN ~ {count} * f v"),
        6 => format!("XADD {key} NOMKSTREAM MAXLEN = {count} * f v"),
        7 => format!("XGROUP CREATE {key} g {} MKSTREAM", pick(random, &["0", "$", "1-1"])),
        8..=10 => format!("XREADGROUP GROUP g {consumer} COUNT {count} STREAMS {key} >"),
        11 => format!("XREADGROUP GROUP g {consumer} NOACK STREAMS {key} >"),
        12 => format!("XREADGROUP GROUP g {consumer} STREAMS {key} 0"),
        13..=14 => format!("XAUTOCLAIM {key} g {consumer} 0 0 COUNT {count}"),
        15 => format!("XCLAIM {key} g {consumer} 1 1-1 IDLE 5 FORCE LASTID 2-1"),
        16 => format!("XGROUP SETID {key} g {}", pick(random, &["0", "$"])),
        17 => format!("XTRIM {key} MAXLEN ~ {count}"),
        18 => format!("XGROUP DELCONSUMER {key} g {consumer}"),
        _ => format!("XGROUP CREATECONSUMER {key} g {consumer}"),
    }
}

fn across(random: &mut Random) -> String {
    let pools = [HASHES, SETS, STREAMS, LISTS, STRINGS, ZSETS];
    let mut any = || {
        let pool = pools[random.index(pools.len())];
        pick(random, pool)
    };
    let (from, to) = (any(), any());
    match random.index(6) {
        0 => format!("RENAME {from} {to}"),
        1 => format!("RENAMENX {from} {to}"),
        2..=3 => format!("COPY {from} {to} REPLACE"),
        4 => format!("MOVE {from} 1"),
        _ => format!("DEL {from} {to}"),
    }
}

/// Scripts whose writes depend on the clock, on chance, or on what has expired.
fn script(random: &mut Random) -> Vec<Vec<u8>> {
    const SCRIPTS: [&str; 5] = [
        "local t = redis.call('TIME') return redis.call('SET', KEYS[1], t[1] .. t[2])",
        "local m = redis.call('SPOP', KEYS[2]) if m then redis.call('RPUSH', KEYS[3], m) end",
        "redis.call('SET', KEYS[1], math.random()) return redis.call('PEXPIRE', KEYS[1], 5)",
        "if redis.call('EXISTS', KEYS[1]) == 0 then redis.call('INCR', KEYS[4]) end",
        "redis.call('SADD', KEYS[2], 1) return redis.call('NOSUCH')",
    ];
    let script = SCRIPTS[random.index(SCRIPTS.len())];
    ["EVAL", script, "4", "v1", "s1", "q1", "v2"]
        .iter()
        .map(|arg| arg.as_bytes().to_vec())
        .collect()
}
