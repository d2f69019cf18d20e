//! Sequences: which connection sends which call, and when.

use russet_base::random::Random;
use russet_catalog::lookup;
use russet_catalog::spec::Flags;

use super::grammar::Grammar;
use super::{ordered, settings, values};
use crate::client::Resp;

/// How many connections a plan may use.
pub const CONNECTIONS: usize = 3;

/// What kind of sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// One connection, everything in one pipeline; transactions among it.
    Pipeline,
    /// Three connections in turn: WATCH, MULTI, EXEC and blocking calls across them.
    Crossed,
    /// Three connections that subscribe and publish.
    PubSub,
    /// One connection that sends its calls a few at a time, inside scripts.
    Scripted,
}

/// One call. An argument `@id0` stands for the id of connection 0 on the server that gets it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    pub connection: usize,
    pub args: Vec<Vec<u8>>,
}

impl Step {
    /// Whether this call waits if it finds nothing.
    pub fn may_block(&self) -> bool {
        let command = self.args.first().and_then(|name| lookup(name));
        let reads_stream = self.is_named("XREAD") || self.is_named("XREADGROUP");
        let asks_to_block = || self.args.iter().any(|arg| arg.eq_ignore_ascii_case(b"BLOCK"));
        command.is_some_and(|command| command.spec().flags.has(Flags::BLOCKING))
            && (!reads_stream || asks_to_block())
    }

    /// Whether the sides must be made equal after this call: it draws members, or it lets a key
    /// expire at once.
    pub fn needs_care(&self) -> bool {
        let is_soon = |pair: &[Vec<u8>]| pair[0].eq_ignore_ascii_case(b"PX") && pair[1] == b"1";
        (self.is_named("SPOP") && self.args.get(2).is_none_or(|count| count.len() < 3))
            || (self.is_named("PEXPIRE") && self.args.get(2).is_some_and(|ms| ms == b"1"))
            || ((self.is_named("SET") || self.is_named("GETEX"))
                && self.args.windows(2).any(is_soon))
    }

    /// The key that this call puts a whole sorted set or list at, whatever was there before.
    pub fn stored_key(&self) -> Option<&[u8]> {
        let name = self.args.first()?.to_ascii_uppercase();
        let is_word = |arg: &Vec<u8>| {
            arg.eq_ignore_ascii_case(b"STORE") || arg.eq_ignore_ascii_case(b"STOREDIST")
        };
        let at = match name.as_slice() {
            b"SORT" | b"GEORADIUS" | b"GEORADIUSBYMEMBER" => self.args.iter().rposition(is_word)?,
            name if name.ends_with(b"STORE") => 0,
            _ => return None,
        };
        self.args.get(at + 1).map(Vec::as_slice)
    }

    /// Whether this call, or one that was queued for it, may count keys whose time is over.
    pub fn counts_keys(&self) -> bool {
        self.is_named("DBSIZE") || self.is_named("EXEC")
    }

    fn is_named(&self, name: &str) -> bool {
        self.args.first().is_some_and(|arg| arg.eq_ignore_ascii_case(name.as_bytes()))
    }
}

impl std::fmt::Display for Step {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:", ["a", "b", "c"][self.connection % CONNECTIONS])?;
        for arg in &self.args {
            match std::str::from_utf8(arg) {
                _ if arg.len() > 80 => write!(f, " <{} x {:?}>", arg.len(), arg[0] as char)?,
                Ok(text) if !text.is_empty() && text.chars().all(|c| c.is_ascii_graphic()) => {
                    write!(f, " {text}")?;
                }
                _ => write!(f, " \"{}\"", arg.escape_ascii())?,
            }
        }
        Ok(())
    }
}

#[derive(Clone, Debug)]
pub struct Plan {
    pub mode: Mode,
    pub resp: Resp,
    pub steps: Vec<Step>,
}

impl Plan {
    pub fn random(mode: Mode, grammar: &Grammar, random: &mut Random) -> Plan {
        let resp = if random.chance(0.5) { Resp::V2 } else { Resp::V3 };
        let steps = match mode {
            Mode::Pipeline => pipeline(grammar, random),
            Mode::Crossed => crossed(grammar, random),
            Mode::PubSub => pubsub(grammar, random),
            Mode::Scripted => scripted(grammar, random),
        };
        Plan { mode, resp, steps }
    }

    /// A pipeline can't go on behind a call that waits: such calls belong into a transaction.
    pub fn is_sound(&self) -> bool {
        let mut is_queueing = false;
        self.mode != Mode::Pipeline
            || self.steps.iter().all(|step| {
                is_queueing |= step.is_named("MULTI");
                is_queueing &= !["EXEC", "DISCARD", "RESET"].iter().any(|name| step.is_named(name));
                is_queueing || !step.may_block()
            })
    }

    /// The same with other steps.
    pub fn with_steps(&self, steps: Vec<Step>) -> Plan {
        Plan { mode: self.mode, resp: self.resp, steps }
    }
}

fn args(texts: &[&str]) -> Vec<Vec<u8>> {
    texts.iter().map(|text| text.as_bytes().to_vec()).collect()
}

fn pipeline(grammar: &Grammar, random: &mut Random) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut is_queueing = false;
    for _ in 0..120 {
        let args = match random.index(100) {
            0..=1 if !is_queueing => {
                is_queueing = true;
                args(&["MULTI"])
            }
            0..=15 if is_queueing => {
                is_queueing = false;
                args(&[if random.chance(0.9) { "EXEC" } else { "DISCARD" }])
            }
            0 => args(&[["EXEC", "DISCARD", "UNWATCH"][random.index(3)]]),
            1 => vec![b"WATCH".to_vec(), values::key(random)],
            2 if random.chance(0.3) => vec![b"SELECT".to_vec(), values::database(random)],
            3 if random.chance(0.2) => args(&["RESET"]),
            // What a later call finds should often be of the type it wants.
            4..=17 => making(random),
            18..=20 => settings::call(random),
            21..=24 => {
                let mut args = args(&[["GETKEYS", "GETKEYSANDFLAGS"][random.index(2)]]);
                args.insert(0, b"COMMAND".to_vec());
                args.extend(grammar.plain(random));
                args
            }
            // Inside a transaction nothing blocks.
            25..=35 if is_queueing => grammar.blocking(random),
            _ => grammar.plain(random),
        };
        // RESET leaves the transaction as well.
        is_queueing &= args[0] != b"RESET";
        steps.push(Step { connection: 0, args });
    }
    steps
}

/// A call that makes a value of some type, or adds to one.
fn making(random: &mut Random) -> Vec<Vec<u8>> {
    if random.chance(0.25) {
        return ordered::making(random);
    }
    const VERBS: [&str; 8] = ["SET", "SET", "RPUSH", "RPUSH", "SADD", "HSET", "ZADD", "XADD"];
    let known: Vec<&str> =
        VERBS.into_iter().filter(|verb| lookup(verb.as_bytes()).is_some()).collect();
    let verb = known[random.index(known.len())];
    let mut args = vec![verb.into(), values::key(random)];
    if verb == "XADD" {
        args.push(format!("{}-{}", random.index(12), random.index(4)).into_bytes());
    }
    // One pair or element, or some; a string has but one.
    let count = if verb == "SET" { 1 } else { 1 + random.index(4) };
    for _ in 0..count {
        match verb {
            "ZADD" => args.push((random.index(7) as i64 - 3).to_string().into_bytes()),
            "HSET" | "XADD" => args.push(values::text(random)),
            _ => {}
        }
        args.push(values::text(random));
    }
    args
}

/// A call that one connection may make on its own only; see [`Step::needs_care`].
fn drawn_or_expiring(random: &mut Random) -> Vec<Vec<u8>> {
    let key = values::key(random);
    match random.index(6) {
        0 => vec![b"SPOP".to_vec(), key],
        1..=2 => vec![b"SPOP".to_vec(), key, (1 + random.index(3)).to_string().into_bytes()],
        3 => vec![b"PEXPIRE".to_vec(), key, b"1".to_vec()],
        4 => vec![b"SET".to_vec(), key, values::text(random), b"PX".to_vec(), b"1".to_vec()],
        _ => vec![b"GETEX".to_vec(), key, b"PX".to_vec(), b"1".to_vec()],
    }
}

fn crossed(grammar: &Grammar, random: &mut Random) -> Vec<Step> {
    let mut steps = Vec::new();
    for _ in 0..60 {
        let connection = random.index(CONNECTIONS);
        let args = match random.index(100) {
            0..=9 => vec![b"WATCH".to_vec(), values::key(random)],
            10..=17 => args(&["MULTI"]),
            18..=27 => args(&["EXEC"]),
            28..=29 => args(&[["DISCARD", "UNWATCH"][random.index(2)]]),
            30..=44 => grammar.blocking(random),
            45..=59 => {
                let push = ["RPUSH", "LPUSH"][random.index(2)];
                let mut args = vec![push.into(), values::key(random)];
                (0..=random.index(3)).for_each(|_| args.push(values::text(random)));
                args
            }
            60..=64 => vec![b"DEL".to_vec(), values::key(random)],
            65..=66 => vec![b"SELECT".to_vec(), values::database(random)],
            69..=71 => drawn_or_expiring(random),
            72..=74 => settings::call(random),
            75..=78 => making(random),
            67..=68 => {
                let mut args = args(&["CLIENT", "UNBLOCK"]);
                args.push(format!("@id{}", random.index(CONNECTIONS)).into_bytes());
                if random.chance(0.6) {
                    args.push(["TIMEOUT", "ERROR", "other"][random.index(3)].into());
                }
                args
            }
            _ => grammar.plain(random),
        };
        steps.push(Step { connection, args });
    }
    steps
}

fn scripted(grammar: &Grammar, random: &mut Random) -> Vec<Step> {
    let args = |random: &mut Random| match random.index(100) {
        0..=17 => making(random),
        18..=19 => settings::call(random),
        20..=29 => grammar.blocking(random),
        30 => args(&[["MULTI", "EXEC", "WATCH", "RESET"][random.index(4)]]),
        31 => vec![b"SELECT".to_vec(), values::database(random)],
        _ => grammar.plain(random),
    };
    (0..80).map(|_| Step { connection: 0, args: args(random) }).collect()
}

fn pubsub(grammar: &Grammar, random: &mut Random) -> Vec<Step> {
    let mut steps = Vec::new();
    for _ in 0..40 {
        let connection = random.index(CONNECTIONS);
        let args = match random.index(10) {
            0 => vec![b"PSUBSCRIBE".to_vec(), values::channel_pattern(random)],
            1 => args(&["RESET"]),
            2 => grammar.plain(random),
            _ => grammar.pubsub(random),
        };
        steps.push(Step { connection, args });
    }
    steps
}
