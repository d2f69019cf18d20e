//! The small commands of a pipeline, run together under one taking of locks.
//!
//! Most commands are small and name a key or two. To lock for each alone, and to wait for memory
//! key by key, costs more than the commands themselves. So as many of the next commands as are
//! small are planned, their shards locked and their keys fetched together; then they run one after
//! the other, each with its own effects. Nothing else changes: to everyone else they are commands
//! that came one after the other, quickly.
//!
//! A command that might take long never runs this way, for it would keep other keys than its own
//! waiting; and a busy shard ends the run before the command that needs it.

use crate::ctx::{Ctx, Flow};
use crate::dispatch::{Worker, fail, settle};
use crate::handlers;
use crate::node::Node;
use crate::once;
use crate::session::Session;
use russet_base::Args;
use russet_catalog::spec::{Arity, Flags, Spec};
use russet_catalog::{Command, is_first_word_only_key, keys as key_positions, resolve};
use russet_engine::keys::{Keys, Weight};
use russet_engine::keyspace::Place;
use russet_protocol::RespWriter;
use smallvec::SmallVec;
use std::ops::Range;
use std::sync::atomic::Ordering;

/// Commands that run together at most. Fetching more keys at once gains nothing: the processor
/// waits for no more lines of memory than this.
pub const TOGETHER_MAX: usize = 16;
/// As few are taken together when shards are found busy time and again.
const TOGETHER_MIN: usize = 4;
/// Longer calls run alone: their own work outweighs what this saves.
const WORDS_MAX: usize = 32;
const WORDS_BYTES_MAX: usize = 4096;
/// Longest numbers of commands that may run with others: how many, and where in a string.
const COUNT_DIGITS_MAX: usize = 3;
const OFFSET_DIGITS_MAX: usize = 5;
/// Keys of one call, and of all calls that run together.
const KEYS_MAX: usize = 16;
const KEYS_TOGETHER_MAX: usize = 48;

const _: () = assert!(KEYS_TOGETHER_MAX <= u8::MAX as usize);

/// What never runs with others: it waits, looks at more than its keys, or speaks to the server.
const ALONE: Flags = Flags::BLOCKING
    .and(Flags::ADMIN)
    .and(Flags::PUBSUB)
    .and(Flags::NOSCRIPT)
    .and(Flags::MOVABLE_KEYS)
    .and(Flags::ALL_SHARDS);

/// A command that was looked at ahead.
struct Planned<'a> {
    args: Args<'a>,
    command: Command,
    /// Which of all the keys' places are its own.
    places_start: u8,
    places_end: u8,
}

/// How many commands are taken together. Each holds its shards until the run is over, so the more
/// threads do the same, the fewer are worth it: fewer when a shard is found busy, more when none
/// is.
#[derive(Debug)]
pub(crate) struct Reach(usize);

impl Default for Reach {
    fn default() -> Self {
        Reach(TOGETHER_MAX)
    }
}

impl Reach {
    fn adjust(&mut self, is_busy: bool) {
        self.0 = match is_busy {
            true => (self.0 - self.0 / 4).max(TOGETHER_MIN),
            false => (self.0 + 1).min(TOGETHER_MAX),
        };
    }
}

impl Planned<'_> {
    fn places(&self) -> Range<usize> {
        usize::from(self.places_start)..usize::from(self.places_end)
    }
}

impl Worker {
    /// Runs the first of these commands that can run together; how many were run. None may be: then
    /// the first is to be run alone.
    pub fn run_together<'a>(
        &mut self,
        session: &mut Session,
        commands: impl Iterator<Item = Args<'a>>,
        out: &mut Vec<u8>,
    ) -> usize {
        if !may_run_together(&self.node, session) {
            return 0;
        }
        let mut planned = SmallVec::<[Planned; TOGETHER_MAX]>::new();
        plan(&self.node, &mut self.places, &mut planned, commands.take(self.reach.0));
        if planned.len() < 2 {
            return 0;
        }
        let node = &*self.node;
        let none_yet = node.keyspace.lock_none();
        let mut keys = node.keyspace.keys(none_yet, &mut self.effects, (session.db, self.now));
        keys.know(&self.places);
        keys.is_silent = session.is_silent;
        let is_held = |call: &Planned| keys.hold_known_now(call.places());
        let held = planned.iter().map(is_held).take_while(|is_held| *is_held).count();
        self.reach.adjust(held < planned.len());
        planned.truncate(held);
        let places_end = planned.last().map_or(0, |call| call.places().end);
        let may_be_long = keys.prefetch_held(places_end);
        prefetch_once(&mut keys, &planned, &self.places);
        let may_ask_much = node.large_requests.wants(WORDS_BYTES_MAX as u64);
        let mut writer = RespWriter::new(out, session.resp);
        let mut ran = 0usize;
        for call in &planned {
            let places = call.places();
            if may_be_long
                && !is_small(&mut keys, call.command.spec(), &self.places[places.clone()])
            {
                break;
            }
            let before = writer.bytes_len();
            keys.skip_to(places.start);
            let mut ctx = Ctx {
                keys: &mut keys,
                reply: &mut writer,
                session,
                node,
                stats: &self.stats,
                command: call.command,
                may_block: true,
            };
            match handlers::of(call.command)(&mut ctx, call.args) {
                Ok(Flow::Done) => {}
                Ok(_) => unreachable!("no command that waits or runs code is planned here"),
                Err(refusal) => fail(&mut ctx, &refusal),
            }
            if keys.effects.has_told() {
                settle(&mut keys, node);
            }
            if may_ask_much {
                let request_bytes = call.args.extent_bytes() as u64;
                node.large_requests.note(node, session, call.args, request_bytes);
            }
            let reply_bytes = (writer.bytes_len() - before) as u64;
            node.large_replies.note(node, session, call.args, reply_bytes);
            self.batch.add(call.command);
            ran += 1;
        }
        keys.publish();
        drop(keys);
        if let Some(last) = ran.checked_sub(1) {
            let last = planned[last].command;
            session.card.last_command.store(last as u16 + 1, Ordering::Relaxed);
            self.count_run(session, ran as u64);
        }
        ran
    }
}

/// Fetches what ONCE will look at.
#[inline]
fn prefetch_once(keys: &mut Keys, planned: &[Planned], places: &[(usize, Place)]) {
    // As a rule all are of this kind, or none is.
    if planned.first().is_some_and(|call| call.command == Command::Once) {
        for call in planned.iter().filter(|call| call.command == Command::Once) {
            once::prefetch(keys, &places[call.places()]);
        }
    }
}

/// Nothing holds this client's commands back or wants to see each by itself.
fn may_run_together(node: &Node, session: &Session) -> bool {
    session.gate.is_open()
        && session.blocked.is_none()
        && session.wait.is_none()
        && !node.pause.is_on()
        && !node.monitors.is_on()
        && !node.slowlog.is_precise()
        && !node.latency.is_on()
}

/// Takes commands as long as they may run with others, and their keys' places, in order.
fn plan<'a>(
    node: &Node,
    places: &mut Vec<(usize, Place)>,
    planned: &mut SmallVec<[Planned<'a>; TOGETHER_MAX]>,
    commands: impl Iterator<Item = Args<'a>>,
) {
    places.clear();
    for args in commands {
        let Ok(command) = resolve(args) else { break };
        let places_start = places.len();
        if command == Command::Once {
            let Some(own) = once::places_together(node, args, is_plain) else { break };
            places.extend(own);
            if places.len() > KEYS_TOGETHER_MAX {
                places.truncate(places_start);
                break;
            }
        } else if !is_plain(command, args) || !add_places(node, (command, args), places) {
            places.truncate(places_start);
            break;
        }
        let (places_start, places_end) = (places_start as u8, places.len() as u8);
        planned.push(Planned { args, command, places_start, places_end });
    }
}

#[inline]
fn is_plain(command: Command, args: Args) -> bool {
    let (words_min, words_max) = PLAIN_WORDS[command as usize];
    (usize::from(words_min)..=usize::from(words_max)).contains(&args.len())
        && args.extent_bytes() <= WORDS_BYTES_MAX
        && is_moderate(command, args)
}

/// Whether a command does not ask for much by a number: the more members at random, the longer it
/// takes, however small the key; a string grows up to the offset that is written at. What LCS
/// does grows with the product of its strings.
#[inline]
fn is_moderate(command: Command, args: Args) -> bool {
    let digits_max = match command {
        Command::Srandmember
        | Command::Hrandfield
        | Command::Zrandmember
        | Command::Spop
        | Command::Zpopmin
        | Command::Zpopmax
        | Command::Lpop
        | Command::Rpop => COUNT_DIGITS_MAX,
        Command::Setbit | Command::Setrange => OFFSET_DIGITS_MAX,
        Command::Bitfield | Command::Lcs => return false,
        _ => return true,
    };
    args.get(2).is_none_or(|number| number.len() <= digits_max)
}

/// By command: how many words a call may have to run with others. No number will do for a command
/// that never does.
static PLAIN_WORDS: [(u8, u8); Command::COUNT] = {
    let mut table = [(1, 0); Command::COUNT];
    let mut at = 0;
    while at < Command::COUNT {
        let spec = Command::ALL[at].spec();
        if !spec.flags.has_any(ALONE) {
            table[at] = match spec.arity {
                Arity::Exactly(words) if words as usize <= WORDS_MAX => (words as u8, words as u8),
                Arity::AtLeast(words) if words as usize <= WORDS_MAX => {
                    (words as u8, WORDS_MAX as u8)
                }
                _ => (1, 0),
            };
        }
        at += 1;
    }
    table
};

/// Adds the places of one call's keys. False if it has none, or too many, or can't be told.
#[inline]
fn add_places(
    node: &Node,
    (command, args): (Command, Args),
    places: &mut Vec<(usize, Place)>,
) -> bool {
    let before = places.len();
    let mut add = |key: &[u8]| {
        let place = node.keyspace.place(key);
        node.keyspace.prefetch_lock(place);
        places.push((key.as_ptr() as usize, place));
    };
    if is_first_word_only_key(command) {
        let key = args.at(1);
        // An empty key has no address of its own to be known by.
        if key.is_empty() {
            return false;
        }
        add(key);
        return true;
    }
    let mut is_known = true;
    let told = key_positions(command, args, &mut |key| {
        let key = args.at(key.index);
        is_known &= !key.is_empty();
        add(key);
    });
    let added = places.len() - before;
    told.is_ok() && is_known && (1..=KEYS_MAX).contains(&added) && places.len() <= KEYS_TOGETHER_MAX
}

/// Whether a command is sure to be done soon, by what its keys hold.
#[inline]
fn is_small(keys: &mut Keys, spec: &Spec, places: &[(usize, Place)]) -> bool {
    places.iter().all(|&(_, place)| match keys.weigh(place) {
        Weight::Small => true,
        Weight::Collection => spec.flags.has(Flags::FAST),
        Weight::LongString => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use russet_base::args::Span;

    fn is_taken(words: &str) -> bool {
        let mut spans = Vec::new();
        let mut start = 0;
        for word in words.split(' ') {
            spans.push(Span { start: start as u32, len: word.len() as u32 });
            start += word.len() + 1;
        }
        let args = Args::new(words.as_bytes(), &spans);
        is_plain(resolve(args).unwrap(), args)
    }

    #[test]
    fn what_asks_for_much_by_a_number_runs_alone() {
        for words in ["SRANDMEMBER k", "SRANDMEMBER k -99", "LPOP k 100", "SETBIT k 99999 1"] {
            assert!(is_taken(words), "{words}");
        }
        for words in [
            "SRANDMEMBER k -100",
            "HRANDFIELD k -1000000 WITHVALUES",
            "ZRANDMEMBER k -1000000",
            "SPOP k 1000",
            "ZPOPMIN k 1000000",
            "RPOP k 1000000",
            "SETBIT k 4294967295 1",
            "SETRANGE k 536870000 x",
            "BITFIELD k SET u8 4294967000 1",
            "LCS a b",
        ] {
            assert!(!is_taken(words), "{words}");
        }
    }
}
