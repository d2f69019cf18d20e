//! Plausible values for each kind of argument: few enough to collide, with the edges among them.
//!
//! Nothing here lets a key expire while a sequence runs (but see `plan::drawn_or_expiring`), and
//! nothing makes a string of more than some kilobytes.

use russet_base::random::Random;
use russet_catalog::arg::{Arg, ArgKind};

pub const KEYS: &[&[u8]] = &[b"k1", b"k2", b"k3", b"{t}a", b"{t}b", b"x{t}", b"bin\0\r\n\xff"];

const TEXTS: &[&[u8]] = &[
    b"",
    b"a",
    b"b",
    b"abc",
    b"hello world",
    b"\0\xff\r\n",
    b"0",
    b"1",
    b"-1",
    b"10",
    b"007",
    b"+1",
    b" 1",
    b"1 ",
    b"-0",
    b"3.5",
    b"1e3",
    b"inf",
    b"nan",
    b"9223372036854775807",
    b"-9223372036854775808",
    b"9223372036854775808",
    b"12345678901234567890",
];

const NUMBERS: &[&[u8]] =
    &[b"0", b"1", b"2", b"3", b"-1", b"-2", b"-3", b"5", b"10", b"100", b"-100"];

const EDGES: &[&[u8]] = &[
    b"9223372036854775807",
    b"-9223372036854775808",
    b"9223372036854775808",
    b"3000000000",
    b"-3000000000",
    b"2147483648",
    b"abc",
    b"",
    b"1.5",
    b" 1",
    b"01",
    b"+5",
    b"-0",
    b"1e2",
];

/// Nothing whose low 32 bits are a small number: LSET of Valkey takes it for that number.
const INDEXES: &[&[u8]] = &[
    b"0",
    b"1",
    b"2",
    b"-1",
    b"-2",
    b"5",
    b"-7",
    b"2147483647",
    b"-2147483648",
    b"abc",
    b"1.5",
    b"",
];

const FLOATS: &[&[u8]] = &[
    b"0",
    b"1",
    b"-1",
    b"0.1",
    b"-2.5",
    b"3.0e3",
    b"1e-5",
    b"1e17",
    b"-0.0",
    b"10.50",
    b"3.14159265358979",
    b"1e308",
    b"1e400",
    b"inf",
    b"-inf",
    b"nan",
    b"abc",
    b"",
    b" 1",
    b"1 ",
    b"5.",
    b".5",
];

/// What is no proper time to live, or one in the past.
const SECONDS: &[&[u8]] = &[
    b"0",
    b"-1",
    b"-100",
    b"9223372036854775807",
    b"9223372036854775",
    b"-9223372036854775808",
    b"abc",
    b"1.5",
    b"",
];
const MILLISECONDS: &[&[u8]] =
    &[b"0", b"-1", b"9223372036854775807", b"-9223372036854775808", b"abc", b"1.5"];
const UNIX_SECONDS: &[&[u8]] = &[
    b"33177117420",
    b"4102444800",
    b"1",
    b"0",
    b"-5",
    b"9223372036854775807",
    b"9223372036854775",
    b"abc",
];
const UNIX_MILLISECONDS: &[&[u8]] =
    &[b"33177117420000", b"4102444800000", b"1", b"0", b"-5", b"9223372036854775807", b"abc"];
/// Never short: a timeout that fires would make the outcome a matter of speed.
const TIMEOUTS: &[&[u8]] = &[b"0", b"0", b"0.0", b"1000", b"1000.5", b"-1", b"abc", b"", b"1e3"];

const OFFSETS: &[&[u8]] = &[
    b"0",
    b"1",
    b"5",
    b"7",
    b"8",
    b"9",
    b"15",
    b"31",
    b"100",
    b"1023",
    b"-1",
    b"4294967296",
    b"9223372036854775807",
    b"abc",
    b"",
];
/// Without those that overflow when multiplied: peers wrap around. DIFFERS: Russet refuses.
const FIELD_OFFSETS: &[&[u8]] = &[b"#0", b"#1", b"#3", b"#-1", b"#", b"#x", b"#536870912000"];
const ENCODINGS: &[&[u8]] = &[
    b"u1", b"u4", b"u8", b"u16", b"u32", b"u63", b"i1", b"i5", b"i8", b"i16", b"i33", b"i64",
    b"u64", b"i65", b"u0", b"i0", b"x8", b"u", b"", b"U8", b"i08",
];
const PATTERNS: &[&[u8]] = &[
    b"*", b"k*", b"k?", b"k[12]", b"k[^1]", b"k[1-2]", b"\\k1", b"{t}*", b"*a", b"", b"k[",
    b"nothing", b"[a-k]1", b"k1", b"b*\0*",
];
/// What SORT makes keys from.
const KEY_PATTERNS: &[&[u8]] =
    &[b"*", b"k*", b"#", b"nosort", b"{t}*", b"*{t}", b"k*->a", b"*->", b"k1*", b"", b"k*->b->*"];
const CHANNELS: &[&[u8]] = &[b"c1", b"c2", b"news.a", b"", b"{t}c"];
const CHANNEL_PATTERNS: &[&[u8]] = &[b"*", b"c*", b"news.*", b"c[12]", b""];
const DATABASES: &[&[u8]] = &[b"0", b"0", b"0", b"1", b"1", b"2", b"15", b"16", b"-1", b"abc", b""];
const TYPES: &[&[u8]] = &[b"string", b"list", b"STRING", b"hash", b"nosuch", b""];
/// Ends of ranges of every kind.
const RANGE_ENDS: &[&[u8]] = &[
    b"-", b"+", b"[a", b"(a", b"[abc", b"(b", b"[", b"(", b"[1", b"(10", b"0", b"1", b"-1", b"5",
    b"(1", b"-inf", b"+inf", b"(-inf", b"100", b"", b"a", b"+x", b"1.5",
];
const STREAM_IDS: &[&[u8]] = &[
    b"0",
    b"1",
    b"1-1",
    b"1-2",
    b"2-1",
    b"3",
    b"3-*",
    b"5-5",
    b"7-*",
    b"9-1",
    b"12-*",
    b"0-1",
    b"0-0",
    b"-",
    b"+",
    b"$",
    b">",
    b"(1-1",
    b"(3",
    b"abc",
    b"",
    b"5-",
    b"18446744073709551615-1",
];
const GROUPS: &[&[u8]] = &[b"g", b"g", b"h", b""];
const CONSUMERS: &[&[u8]] = &[b"alice", b"bob", b""];
const CURSORS: &[&[u8]] = &[b"0", b"0", b"0", b"17", b"abc", b"18446744073709551616"];

pub fn pick(random: &mut Random, pool: &[&[u8]]) -> Vec<u8> {
    pool[random.index(pool.len())].to_vec()
}

pub fn key(random: &mut Random) -> Vec<u8> {
    if random.chance(0.01) { Vec::new() } else { pick(random, KEYS) }
}

pub fn channel_pattern(random: &mut Random) -> Vec<u8> {
    pick(random, CHANNEL_PATTERNS)
}

pub fn database(random: &mut Random) -> Vec<u8> {
    pick(random, DATABASES)
}

/// A value: mostly from the pool, at times of a length near an encoding's edge.
pub fn text(random: &mut Random) -> Vec<u8> {
    match random.index(20) {
        0 => vec![b'x'; 40 + random.index(30)],
        1 => vec![b'y'; [63, 64, 65, 127, 128, 255, 256, 1000, 3000][random.index(9)]],
        2 => (0..random.index(12)).map(|_| random.next_u64() as u8).collect(),
        3 => (random.next_u64() as i64 >> random.index(63)).to_string().into_bytes(),
        _ => pick(random, TEXTS),
    }
}

pub fn integer(random: &mut Random) -> Vec<u8> {
    match random.index(12) {
        0 => pick(random, EDGES),
        1 => (random.index(300) as i64 - 100).to_string().into_bytes(),
        _ => pick(random, NUMBERS),
    }
}

/// What BITFIELD SET writes. DIFFERS: of peers, the smallest integer of all saturates upwards.
fn field_value(random: &mut Random) -> Vec<u8> {
    let value = integer(random);
    if value == b"-9223372036854775808" { b"-3000000000".to_vec() } else { value }
}

/// How many XAUTOCLAIM may claim. DIFFERS: a peer asks for room for all of them first, and fails
/// where there is less memory.
pub fn claimed_count(random: &mut Random) -> Vec<u8> {
    let value = integer(random);
    let is_much = value == b"3000000000" || value == b"2147483648";
    if is_much { b"300".to_vec() } else { value }
}

/// Keys that only the commands of HyperLogLogs name.
pub fn counter_key(random: &mut Random) -> Vec<u8> {
    pick(random, &[b"hll1", b"hll2", b"{t}hll"])
}

/// Mostly not far from where other places are, and hardly ever the same twice: places that are
/// equally far come in an order of each server's own.
fn degrees(random: &mut Random, max: f64) -> Vec<u8> {
    let value = match random.index(12) {
        0 => return pick(random, FLOATS),
        1 => max * (1.0 - random.unit() / 100.0),
        2 => -max * (1.0 - random.unit() / 100.0),
        3 => (random.unit() * 2.0 - 1.0) * max,
        _ => random.unit() * 4.0,
    };
    format!("{value:.6}").into_bytes()
}

/// From nothing to all the way round.
fn length(random: &mut Random) -> Vec<u8> {
    match random.index(10) {
        0 => pick(random, FLOATS),
        _ => format!("{:.3}", 10f64.powf(random.unit() * 8.0 - 1.0)).into_bytes(),
    }
}

/// Long enough that nothing expires under a test, and hardly ever the same twice: whether GT finds
/// the same time to live greater would be a matter of speed.
fn time_to_live(random: &mut Random, unit: u64) -> Vec<u8> {
    (unit * 100 + 1 + random.below(unit * 100_000)).to_string().into_bytes()
}

/// The ID of a stream's entry, or what stands for one.
pub fn stream_id(random: &mut Random) -> Vec<u8> {
    if random.chance(0.4) {
        return format!("{}-{}", random.index(12), random.index(4)).into_bytes();
    }
    pick(random, STREAM_IDS)
}

/// A score, but no negative zero: only a skiplist keeps it, and peers make one of what SORT reads.
pub fn score(random: &mut Random) -> Vec<u8> {
    let score = pick(random, FLOATS);
    if score.starts_with(b"-0") { b"0".to_vec() } else { score }
}

/// A value for a leaf of an argument tree.
pub fn value(random: &mut Random, arg: &Arg) -> Vec<u8> {
    let pool = match arg.name {
        "id" | "start" | "end" | "last-id" | "lastid" | "max-deleted-id"
            if arg.kind == ArgKind::String =>
        {
            return stream_id(random);
        }
        "threshold" if random.chance(0.5) => return stream_id(random),
        "threshold" => NUMBERS,
        "group" => GROUPS,
        "consumer" => CONSUMERS,
        "seconds" if random.chance(0.4) => return time_to_live(random, 1),
        "milliseconds" if random.chance(0.4) => return time_to_live(random, 1_000),
        "seconds" => SECONDS,
        "milliseconds" => MILLISECONDS,
        "unix-time-seconds" => UNIX_SECONDS,
        "unix-time-milliseconds" => UNIX_MILLISECONDS,
        "timeout" => TIMEOUTS,
        "index" => INDEXES,
        "encoding" => ENCODINGS,
        "offset" if random.chance(0.15) => FIELD_OFFSETS,
        "offset" => OFFSETS,
        "db" | "destination-db" | "index1" | "index2" => DATABASES,
        "channel" | "shardchannel" => CHANNELS,
        "type" => TYPES,
        "cursor" => CURSORS,
        "longitude" => return degrees(random, 180.0),
        "latitude" => return degrees(random, 85.051_128_78),
        "radius" | "width" | "height" => return length(random),
        _ if matches!(arg.kind, ArgKind::KeyPattern(_)) => KEY_PATTERNS,
        "min" | "max" | "start" | "stop" if arg.kind == ArgKind::String => RANGE_ENDS,
        "min" | "max" if arg.kind == ArgKind::Double && random.chance(0.5) => RANGE_ENDS,
        _ if arg.kind == ArgKind::Pattern => PATTERNS,
        "score" => return score(random),
        _ if arg.kind == ArgKind::Double => FLOATS,
        "value" if arg.kind == ArgKind::Integer => return field_value(random),
        _ if arg.kind == ArgKind::Integer => return integer(random),
        _ if matches!(arg.kind, ArgKind::Key(_)) => return key(random),
        _ => return text(random),
    };
    pick(random, pool)
}
