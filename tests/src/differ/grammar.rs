//! Calls made from the catalog's argument trees, cut down to what the peer knows if there is one.

use std::collections::HashSet;
use std::net::SocketAddr;

use russet_base::random::Random;
use russet_catalog::Command;
use russet_catalog::arg::{Arg, ArgKind};
use russet_catalog::spec::{Flags, Group};

use super::{ordered, values};
use crate::client::{Client, Reply};

/// Not for random calls: they end, silence or redirect the connection, tell of the machine, or have
/// texts of our own.
const LEFT_OUT: &[&str] = &[
    "quit",
    "hello",
    "auth",
    "monitor",
    "shutdown",
    "debug",
    "lolwut",
    "info",
    "time",
    "reset",
    "select",
    "multi",
    "exec",
    "discard",
    "watch",
    "unwatch",
    "object|help",
    // It takes seconds, and the other has a reply too many for an argument that it does not know.
    "pfselftest",
    "pfdebug",
    "pubsub|help",
    "xgroup|help",
    "xinfo|help",
    // Nothing but moments.
    "xinfo|consumers",
    // What they answer depends on how far one in the background has come.
    "bgsave",
    "bgrewriteaof",
    "save",
    // They take rights away, tell of other connections, or reach outside; tests/tests/acl.rs and
    // migrate.rs have them.
    "acl|setuser",
    "acl|deluser",
    "acl|load",
    "acl|save",
    "acl|genpass",
    "acl|log",
    "acl|help",
    "migrate",
];

/// A command that both sides have, and those of its option tokens that the peer has too; None:
/// there is no peer, and every option will do.
struct Verb {
    command: Command,
    tokens: Option<HashSet<String>>,
}

/// Every call that can be made on both sides.
pub struct Grammar {
    plain: Vec<Verb>,
    blocking: Vec<Verb>,
    pubsub: Vec<Verb>,
}

impl Grammar {
    /// Asks the peer for its COMMAND DOCS.
    pub fn of_peer(address: SocketAddr) -> Result<Grammar, String> {
        let mut client = Client::connect(address).map_err(|error| error.to_string())?;
        Grammar::of(&mut |command| {
            let docs = client.call(&["COMMAND", "DOCS", command.full_name()]);
            let docs = docs.map_err(|error| format!("COMMAND DOCS: {error}"))?;
            let mut tokens = HashSet::new();
            let is_known = matches!(&docs, Reply::Array(items) if !items.is_empty());
            collect_tokens(&docs, &mut tokens);
            Ok(is_known.then_some(Verb { command, tokens: Some(tokens) }))
        })
    }

    /// All that Russet knows, also what comes out differently every time.
    pub fn of_catalog() -> Grammar {
        let all = Grammar::of(&mut |command| Ok(Some(Verb { command, tokens: None })));
        all.expect("nobody is asked, so nobody can fail to answer")
    }

    fn of(
        verb: &mut dyn FnMut(Command) -> Result<Option<Verb>, String>,
    ) -> Result<Grammar, String> {
        let (mut plain, mut blocking, mut pubsub) = (Vec::new(), Vec::new(), Vec::new());
        for &command in Command::ALL {
            let spec = command.spec();
            if command.is_container() || LEFT_OUT.contains(&spec.full_name) {
                continue;
            }
            let list = match spec.group {
                Group::PubSub => &mut pubsub,
                Group::String
                | Group::Bitmap
                | Group::List
                | Group::Set
                | Group::HyperLogLog
                | Group::Geo
                | Group::SortedSet
                | Group::Hash
                | Group::Stream
                | Group::Module
                | Group::Generic => {
                    if spec.flags.has(Flags::BLOCKING) {
                        &mut blocking
                    } else {
                        &mut plain
                    }
                }
                _ if is_taken_too(spec.full_name) => &mut plain,
                _ => continue,
            };
            list.extend(verb(command)?);
        }
        Ok(Grammar { plain, blocking, pubsub })
    }

    /// A call of a command that never blocks and has nothing to do with pub/sub.
    pub fn plain(&self, random: &mut Random) -> Vec<Vec<u8>> {
        loop {
            let verb = &self.plain[random.index(self.plain.len())];
            let is_rare = verb.command.spec().flags.has(Flags::ALL_SHARDS);
            if is_rare && random.chance(0.8) {
                continue;
            }
            return verb.call(random);
        }
    }

    pub fn blocking(&self, random: &mut Random) -> Vec<Vec<u8>> {
        self.blocking[random.index(self.blocking.len())].call(random)
    }

    pub fn pubsub(&self, random: &mut Random) -> Vec<Vec<u8>> {
        self.pubsub[random.index(self.pubsub.len())].call(random)
    }
}

/// Of the groups that are otherwise about the server and the connection.
fn is_taken_too(full_name: &str) -> bool {
    let names = ["ping", "echo", "dbsize", "flushdb", "flushall", "swapdb", "memory|usage"];
    names.contains(&full_name)
}

/// Every `token` of a COMMAND DOCS reply, upper case.
fn collect_tokens(docs: &Reply, tokens: &mut HashSet<String>) {
    let Reply::Array(items) = docs else { return };
    for pair in items.windows(2) {
        if let (Some(b"token"), Some(token)) = (pair[0].text(), pair[1].text()) {
            tokens.insert(String::from_utf8_lossy(token).to_uppercase());
        }
    }
    items.iter().for_each(|item| collect_tokens(item, tokens));
}

impl Verb {
    fn call(&self, random: &mut Random) -> Vec<Vec<u8>> {
        loop {
            let mut call = self.draw(random);
            if self.tokens.is_none() {
                return call;
            }
            ordered::fix(random, &mut call);
            let is_odd = leaves_expired(&call)
                || draws_without_end(&call)
                || stores_twice(&call)
                || silences_peer(&call);
            if !is_odd {
                return call;
            }
        }
    }

    fn draw(&self, random: &mut Random) -> Vec<Vec<u8>> {
        let spec = self.command.spec();
        let mut call: Vec<Vec<u8>> =
            spec.full_name.split('|').map(|name| cased(random, name)).collect();
        self.arguments(random, spec.args, &mut call);
        // Now and then an argument too many or too few.
        match random.index(60) {
            0 if call.len() > 1 => drop(call.pop()),
            1 => call.push(values::text(random)),
            _ => {}
        }
        call
    }

    /// The arguments in order, except that options may change places and come twice.
    fn arguments(&self, random: &mut Random, args: &[Arg], call: &mut Vec<Vec<u8>>) {
        let split = args.iter().rposition(|arg| !arg.optional).map_or(0, |at| at + 1);
        let (fixed, options) = args.split_at(split);
        let mut at = 0;
        while at < fixed.len() {
            if matches!(fixed[at].name, "numkeys" | "numfields") && at + 1 < fixed.len() {
                self.counted(random, &fixed[at + 1], call);
                at += 2;
            } else {
                self.argument(random, &fixed[at], call);
                at += 1;
            }
        }
        let mut options: Vec<&Arg> = options.iter().collect();
        if random.chance(0.4) {
            random.shuffle(&mut options);
        }
        if let Some(&again) = options.first().filter(|_| random.chance(0.03)) {
            options.push(again);
        }
        for option in options {
            self.argument(random, option, call);
        }
    }

    /// A number of keys, mostly the right one, and the keys.
    fn counted(&self, random: &mut Random, keys: &Arg, call: &mut Vec<Vec<u8>>) {
        let count = 1 + random.index(3);
        call.push(if random.chance(0.93) {
            count.to_string().into_bytes()
        } else {
            values::integer(random)
        });
        (0..count).for_each(|_| self.once(random, keys, call));
    }

    fn argument(&self, random: &mut Random, arg: &Arg, call: &mut Vec<Vec<u8>>) {
        if arg.optional && random.chance(0.55) {
            return;
        }
        let times = if arg.multiple { 1 + random.index(3) } else { 1 };
        for time in 0..times {
            if let Some(token) = arg.token.filter(|_| time == 0 || arg.multiple_token) {
                if !self.is_known(token) {
                    return;
                }
                call.push(cased(random, token));
            }
            self.once(random, arg, call);
        }
    }

    /// An argument without its token.
    fn once(&self, random: &mut Random, arg: &Arg, call: &mut Vec<Vec<u8>>) {
        match arg.kind {
            ArgKind::PureToken => {}
            ArgKind::OneOf => {
                let known: Vec<&Arg> = arg.parts.iter().filter(|part| self.has(part)).collect();
                // Two that exclude each other, at times.
                let times = if random.chance(0.03) { 2 } else { 1 };
                for _ in 0..times {
                    let chosen = random.index(known.len());
                    if let Some(part) = known.get(chosen) {
                        self.argument(random, part, call);
                    }
                }
            }
            ArgKind::Block if arg.name == "streams" => streams(random, call),
            ArgKind::Block => self.arguments(random, arg.parts, call),
            // What other commands do to a HyperLogLog corrupts it. DIFFERS: Valkey, when it comes
            // upon that, has already added the elements before.
            ArgKind::Key(_) if self.command.spec().group == Group::HyperLogLog => {
                call.push(values::counter_key(random));
            }
            // Where members have different scores, the order is not one of text, and what a peer
            // finds depends on how it stores the set.
            ArgKind::Key(_) if self.reads_by_text() => {
                call.push(ordered::lex_key(random));
            }
            // What is added to no score is the score.
            _ if arg.name == "increment" && self.command.spec().group == Group::SortedSet => {
                call.push(values::score(random));
            }
            _ if arg.name == "count" && self.command.spec().full_name == "xautoclaim" => {
                call.push(values::claimed_count(random));
            }
            _ => call.push(values::value(random, arg)),
        }
    }

    fn reads_by_text(&self) -> bool {
        let name = self.command.spec().full_name;
        name == "zlexcount" || name.ends_with("bylex")
    }

    fn has(&self, arg: &Arg) -> bool {
        arg.token.is_none_or(|token| self.is_known(token))
    }

    fn is_known(&self, token: &str) -> bool {
        // An ID made of the time is another on each side.
        let is_peers =
            |tokens: &HashSet<String>| token != "*" && tokens.contains(&token.to_uppercase());
        self.tokens.as_ref().is_none_or(is_peers)
    }
}

/// The keys and IDs of XREAD and XREADGROUP, nearly always as many of the one as of the other.
fn streams(random: &mut Random, call: &mut Vec<Vec<u8>>) {
    let count = 1 + random.index(3);
    (0..count).for_each(|_| call.push(values::key(random)));
    let ids = if random.chance(0.95) { count } else { random.index(4) };
    (0..ids).for_each(|_| call.push(values::stream_id(random)));
}

/// GEORADIUS with its STORE option twice. DIFFERS: of the same one peers take the last, Russet
/// refuses; of both, COMMAND GETKEYS names both keys, peers the last.
fn stores_twice(call: &[Vec<u8>]) -> bool {
    let count =
        |name: &str| call.iter().filter(|arg| arg.eq_ignore_ascii_case(name.as_bytes())).count();
    call.first().is_some_and(|name| name.to_ascii_uppercase().starts_with(b"GEORADIUS"))
        && count("STORE") + count("STOREDIST") > 1
}

/// MSETEX with a deadline in the past. DIFFERS: Valkey writes such keys, so that they count and
/// touch WATCH until it comes across them; Russet does not write them, as no SET does.
fn leaves_expired(call: &[Vec<u8>]) -> bool {
    let is = |arg: &Vec<u8>, name: &str| arg.eq_ignore_ascii_case(name.as_bytes());
    call.first().is_some_and(|name| is(name, "MSETEX"))
        && call
            .windows(2)
            .any(|pair| (is(&pair[0], "EXAT") || is(&pair[0], "PXAT")) && pair[1].len() == 1)
}

/// ZRANDMEMBER and the like with a hugely negative count: peers answer until memory is full.
/// DIFFERS: Russet refuses.
fn draws_without_end(call: &[Vec<u8>]) -> bool {
    const DRAWS_MIN: i64 = -100_000;
    let number = |arg: &Vec<u8>| String::from_utf8_lossy(arg).parse::<i64>();
    let draws = |name: &Vec<u8>| {
        let name = name.to_ascii_uppercase();
        name.ends_with(b"RANDMEMBER") || name == b"HRANDFIELD"
    };
    call.first().is_some_and(draws)
        && call.get(2).is_some_and(|arg| number(arg).is_ok_and(|count| count < DRAWS_MIN))
}

/// GEORADIUS with STORE, ANY and what can't go with it: Valkey 9.1.2 stops answering.
fn silences_peer(call: &[Vec<u8>]) -> bool {
    let has = |name: &str| call.iter().any(|arg| arg.eq_ignore_ascii_case(name.as_bytes()));
    call.first().is_some_and(|name| name.to_ascii_uppercase().starts_with(b"GEORADIUS"))
        && has("ANY")
        && (has("STORE") || has("STOREDIST"))
}

fn cased(random: &mut Random, name: &str) -> Vec<u8> {
    if random.chance(0.2) { name.to_lowercase().into() } else { name.to_uppercase().into() }
}
