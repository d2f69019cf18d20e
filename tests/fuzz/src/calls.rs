//! Calls made up from the catalog's grammar: mostly well formed, sometimes spoilt.

use crate::source::Source;
use russet_catalog::arg::{Arg, ArgKind};
use russet_catalog::{Command, Spec};

/// Few keys, so that commands meet; some share a shard by their tag, one has no bytes.
const KEYS: &[&str] = &["k", "l", "m", "{t}a", "{t}b", "x{}", "a-longer-key-than-the-others", ""];
const INTEGERS: &[&str] = &[
    "0",
    "1",
    "-1",
    "2",
    "3",
    "7",
    "10",
    "63",
    "64",
    "100",
    "-2",
    "-100",
    "4096",
    "1000000",
    "4294967296",
    "9223372036854775807",
    "-9223372036854775808",
    "9223372036854775808",
    "007",
    "1.5",
    "+1",
    "",
];
const FLOATS: &[&str] =
    &["0", "0.01", "1.5", "-1.5", "3.0e3", "1e308", "-1e400", "inf", "nan", "5e-324", "0x10", ""];
const STRINGS: &[&str] = &[
    "",
    "v",
    "0",
    "10",
    "-3",
    "hello world",
    "3.25",
    "abcabcabc",
    "\0\u{1}\u{ff}",
    "i8",
    "u63",
    "#1",
    "GET",
    "SET",
    "INCRBY",
    "EX",
    "NX",
    "AND",
    "LEFT",
    "RIGHT",
    "1:2",
    "yes",
    "OK",
];
const PATTERNS: &[&str] = &["*", "k", "?", "[a-m]", "{t}*", "**a*", "\\*", "[^k]*", ""];
/// IDs and what stands for them; few groups and consumers.
const STREAM_TOKENS: &[&str] = &[
    "0",
    "1",
    "1-1",
    "1-2",
    "2-*",
    "3-*",
    "7-*",
    "20-*",
    "5-1",
    "-",
    "+",
    "$",
    ">",
    "(1-1",
    "0-0",
    "18446744073709551615-18446744073709551615",
    "g",
    "*",
];
/// Longest made-up value: long enough to leave the packed encodings.
const LONG_BYTES: usize = 300;
/// How deep the grammar is followed, and how often a repeated argument is repeated.
const DEPTH_MAX: usize = 6;
const REPEATS_MAX: usize = 4;

/// Not run: they end the process, sleep, pause every client, or reach outside the process.
const LEFT_OUT: &[&str] = &[
    "shutdown",
    "debug",
    "client|pause",
    "config|set",
    "config|rewrite",
    "replicaof",
    "slaveof",
    "failover",
    "migrate",
    "acl|load",
    "acl|save",
    // The fuzzer's own client would lose its rights.
    "acl|setuser",
    "sync",
    "psync",
];

pub fn is_left_out(spec: &Spec) -> bool {
    let parent = spec.full_name.split('|').next().unwrap_or_default();
    LEFT_OUT.iter().any(|name| *name == spec.full_name || *name == parent)
}

/// One call. Its args may be refused, but never break anything.
pub fn call(source: &mut Source, commands: &[Command]) -> Vec<Vec<u8>> {
    let spec = source.pick(commands).spec();
    let mut args: Vec<Vec<u8>> =
        spec.full_name.split('|').map(|part| part.as_bytes().to_vec()).collect();
    for arg in spec.args {
        write(arg, source, &mut args, 0);
    }
    if source.one_in(16) {
        spoil(source, &mut args);
    }
    args
}

fn write(arg: &Arg, source: &mut Source, args: &mut Vec<Vec<u8>>, depth: usize) {
    if depth > DEPTH_MAX || (arg.optional && !source.one_in(3)) {
        return;
    }
    let repeats = if arg.multiple { 1 + source.below(REPEATS_MAX) } else { 1 };
    for index in 0..repeats {
        if let (Some(token), true) = (arg.token, index == 0 || arg.multiple_token) {
            args.push(token.as_bytes().to_vec());
        }
        match arg.kind {
            ArgKind::Block if arg.name == "streams" => {
                // As many IDs as keys, or nothing would ever be read.
                let count = 1 + source.below(REPEATS_MAX);
                for part in arg.parts {
                    (0..count).for_each(|_| args.push(value(part, source)));
                }
            }
            ArgKind::Block => arg.parts.iter().for_each(|p| write(p, source, args, depth + 1)),
            ArgKind::OneOf if !arg.parts.is_empty() => {
                write(&source.pick(arg.parts), source, args, depth + 1);
            }
            ArgKind::OneOf | ArgKind::PureToken => {}
            _ => args.push(value(arg, source)),
        }
    }
}

fn is_stream_token(name: &str) -> bool {
    ["id", "start", "end", "group", "consumer", "threshold", "last-id", "lastid"].contains(&name)
}

fn value(arg: &Arg, source: &mut Source) -> Vec<u8> {
    let choices = match arg.kind {
        ArgKind::Key(_) => KEYS,
        ArgKind::Integer | ArgKind::UnixTime if matches!(arg.name, "numkeys" | "numfields") => {
            &["1", "2", "1", "3", "0"]
        }
        ArgKind::Integer | ArgKind::UnixTime => INTEGERS,
        ArgKind::Double => FLOATS,
        ArgKind::Pattern | ArgKind::KeyPattern(_) => PATTERNS,
        ArgKind::String if is_stream_token(arg.name) => STREAM_TOKENS,
        _ if source.one_in(16) => return vec![b'v'; source.below(LONG_BYTES)],
        _ if source.one_in(16) => return source.take(24).to_vec(),
        _ => STRINGS,
    };
    source.pick(choices).as_bytes().to_vec()
}

/// Loses, doubles, adds or replaces an argument.
fn spoil(source: &mut Source, args: &mut Vec<Vec<u8>>) {
    let at = source.below(args.len());
    match source.below(4) {
        0 if args.len() > 1 => {
            args.remove(at);
        }
        1 => args.insert(at, args[at].clone()),
        2 => args.push(source.take(8).to_vec()),
        _ => args[at] = source.take(16).to_vec(),
    }
}
