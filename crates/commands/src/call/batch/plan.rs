//! Which of the next commands run together: small ones, and transactions that are there in whole.

use crate::call::batch::BATCH_MAX;
use crate::call::session::LookedUp;
use crate::groups::once;
use crate::node::Node;
use russet_base::Args;
use russet_catalog::spec::{Arity, Batching, Flags};
use russet_catalog::{Command, is_first_arg_only_key, keys as key_positions, resolve};
use russet_engine::keys::KnownKey;
use smallvec::SmallVec;
use std::ops::Range;

/// Longer calls run alone: their own work outweighs what this saves.
const ARGS_MAX: usize = 32;
pub(super) const ARGS_BYTES_MAX: usize = 4096;
/// Keys of one call, and of all calls that run together.
const KEYS_MAX: usize = 16;
const BATCH_KEYS_MAX: usize = 48;

const _: () = assert!(BATCH_KEYS_MAX <= u8::MAX as usize);

/// What never runs with others: it waits, looks at more than its keys, or speaks to the server.
const ALONE: Flags = Flags::BLOCKING
    .or(Flags::ADMIN)
    .or(Flags::PUBSUB)
    .or(Flags::NOSCRIPT)
    .or(Flags::MOVABLE_KEYS)
    .or(Flags::ALL_SHARDS);

/// What a command is to the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Whole,
    Multi,
    /// It runs when its transaction does.
    Queued,
    Exec,
}

/// A command that was looked at ahead.
pub(super) struct Planned<'a> {
    pub args: Args<'a>,
    pub command: Command,
    pub part: Part,
    /// Which of all the keys' places are its own.
    keys_start: u8,
    keys_end: u8,
}

impl Planned<'_> {
    /// What was found out about it, if it is run alone after all.
    pub fn looked_up(&self, known: &[KnownKey]) -> LookedUp {
        let location = match &known[self.keys()] {
            [known] => Some(known.location),
            _ => None,
        };
        LookedUp { command: self.command, location }
    }

    pub fn keys(&self) -> Range<usize> {
        usize::from(self.keys_start)..usize::from(self.keys_end)
    }
}

/// The keys of all calls of a batch, in order.
pub(super) type BatchKeys<'a> = SmallVec<[KnownKey<'a>; BATCH_KEYS_MAX]>;

pub(super) type Calls<'a> = SmallVec<[Planned<'a>; BATCH_MAX]>;

/// What is planned, and all its keys.
pub(super) struct Plan<'n, 'p, 'a> {
    pub node: &'n Node,
    pub known: &'p mut BatchKeys<'a>,
    pub calls: Calls<'a>,
    /// A transaction's end was not among the commands.
    pub is_cut: bool,
    /// The command that was looked at and not taken.
    pub next: Option<LookedUp>,
}

impl<'a> Plan<'_, '_, 'a> {
    /// Takes commands as long as they may run with others, and their keys' places, in order.
    pub fn take(
        &mut self,
        mut commands: impl Iterator<Item = Args<'a>> + Clone,
        may_begin_transactions: bool,
    ) {
        while let Some(args) = commands.next() {
            let Ok(command) = resolve(args) else { break };
            let is_taken = match command {
                Command::Multi => {
                    may_begin_transactions
                        && args.len() == 1
                        && self.take_transaction(args, &mut commands)
                }
                Command::Once => self.take_once(args),
                _ => self.take_one(command, args, Part::Whole),
            };
            if !is_taken {
                self.next = Some(LookedUp { command, location: None });
                break;
            }
        }
    }

    #[inline]
    fn take_one(&mut self, command: Command, args: Args<'a>, part: Part) -> bool {
        let keys_start = self.known.len();
        if !is_plain(command, args) || !add_keys(self.node, (command, args), self.known) {
            self.known.truncate(keys_start);
            return false;
        }
        self.push(command, args, (part, keys_start));
        true
    }

    fn take_once(&mut self, args: Args<'a>) -> bool {
        let keys_start = self.known.len();
        let Some(own) = once::keys_in_batch(self.node, args, is_plain) else { return false };
        self.known.extend(own);
        if self.known.len() > BATCH_KEYS_MAX {
            self.known.truncate(keys_start);
            return false;
        }
        self.push(Command::Once, args, (Part::Whole, keys_start));
        true
    }

    /// From MULTI to EXEC, if all between may run with others. Clients that send transactions in
    /// one piece are spared the queue.
    fn take_transaction(
        &mut self,
        multi: Args<'a>,
        commands: &mut (impl Iterator<Item = Args<'a>> + Clone),
    ) -> bool {
        let (calls_start, keys_start) = (self.calls.len(), self.known.len());
        self.push(Command::Multi, multi, (Part::Multi, keys_start));
        let mut ahead = commands.clone();
        loop {
            let Some(args) = ahead.next() else {
                self.is_cut = true;
                break;
            };
            match resolve(args) {
                Ok(Command::Exec) if args.len() == 1 => {
                    self.push(Command::Exec, args, (Part::Exec, self.known.len()));
                    *commands = ahead;
                    return true;
                }
                Ok(command) if self.take_one(command, args, Part::Queued) => {}
                _ => break,
            }
        }
        self.calls.truncate(calls_start);
        self.known.truncate(keys_start);
        false
    }

    #[inline]
    fn push(&mut self, command: Command, args: Args<'a>, (part, keys_start): (Part, usize)) {
        let (keys_start, keys_end) = (keys_start as u8, self.known.len() as u8);
        self.calls.push(Planned { args, command, part, keys_start, keys_end });
    }
}

#[inline]
fn is_plain(command: Command, args: Args) -> bool {
    let (args_min, args_max) = BATCH_ARGS[command as usize];
    (usize::from(args_min)..=usize::from(args_max)).contains(&args.len())
        && args.extent_bytes() <= ARGS_BYTES_MAX
        && is_moderate(command, args)
}

/// Whether a command does not ask for much by a number.
#[inline]
fn is_moderate(command: Command, args: Args) -> bool {
    match command.spec().batching {
        Batching::ByFlags => true,
        Batching::NumberUpTo { digits } => {
            args.get(2).is_none_or(|number| number.len() <= usize::from(digits))
        }
        Batching::Never => false,
    }
}

/// By command: how many arguments a call may have to run with others. No number will do for a
/// command that never does.
static BATCH_ARGS: [(u8, u8); Command::COUNT] = {
    let mut table = [(1, 0); Command::COUNT];
    let mut at = 0;
    while at < Command::COUNT {
        let spec = Command::ALL[at].spec();
        if !spec.flags.has_any(ALONE) {
            table[at] = match spec.arity {
                Arity::Exactly(args_len) if args_len as usize <= ARGS_MAX => {
                    (args_len as u8, args_len as u8)
                }
                Arity::AtLeast(args_len) if args_len as usize <= ARGS_MAX => {
                    (args_len as u8, ARGS_MAX as u8)
                }
                _ => (1, 0),
            };
        }
        at += 1;
    }
    table
};

/// Adds one call's keys. False if it has none, or too many, or can't be told.
#[inline]
fn add_keys<'a>(
    node: &Node,
    (command, args): (Command, Args<'a>),
    known: &mut BatchKeys<'a>,
) -> bool {
    let before = known.len();
    let mut add = |key: &'a [u8]| {
        let location = node.keyspace.locate(key);
        node.keyspace.prefetch_lock(location);
        known.push(KnownKey { key, location });
    };
    if is_first_arg_only_key(command) {
        add(args.at(1));
        return true;
    }
    let found = key_positions(command, args, &mut |key| add(args.at(key.index)));
    let added = known.len() - before;
    found.is_ok() && (1..=KEYS_MAX).contains(&added) && known.len() <= BATCH_KEYS_MAX
}

#[cfg(test)]
mod tests {
    use super::*;
    use russet_base::args::Span;

    fn is_taken(line: &str) -> bool {
        let mut spans = Vec::new();
        let mut start = 0;
        for arg in line.split(' ') {
            spans.push(Span { start: start as u32, len: arg.len() as u32 });
            start += arg.len() + 1;
        }
        let args = Args::new(line.as_bytes(), &spans);
        is_plain(resolve(args).unwrap(), args)
    }

    #[test]
    fn what_asks_for_much_by_a_number_runs_alone() {
        for line in ["SRANDMEMBER k", "SRANDMEMBER k -99", "LPOP k 100", "SETBIT k 99999 1"] {
            assert!(is_taken(line), "{line}");
        }
        for line in [
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
            assert!(!is_taken(line), "{line}");
        }
    }
}
