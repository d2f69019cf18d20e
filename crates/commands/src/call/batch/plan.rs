//! Which of the next commands make a batch: small ones, and transactions that are there in whole.

use crate::call::session::{LookedUp, Session};
use crate::groups::scripting::once;
use crate::node::Node;
use russet_base::Args;
use russet_base::shared::reuse;
use russet_catalog::spec::{Arity, Batching, Flags, Group, Spec};
use russet_catalog::{Command, ONCE_ARGS, is_first_arg_only_key, keys as key_positions, resolve};
use russet_engine::keys::{Fetch, KnownKey};
use std::ops::Range;

/// Longer calls run alone: their own work outweighs what this saves.
const ARGS_MAX: usize = 32;
pub(super) const ARGS_BYTES_MAX: usize = 4096;
/// Keys of one call, and of all calls of the batch.
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
    /// Which of all the keys' locations are its own.
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
pub(super) type BatchKeys<'a> = Vec<KnownKey<'a>>;

pub(super) type Calls<'a> = Vec<Planned<'a>>;

/// Room for the lists of a batch, which serves one after the other. It is bounded as they are.
#[derive(Default)]
pub(crate) struct BatchLists {
    known: BatchKeys<'static>,
    calls: Calls<'static>,
}

impl BatchLists {
    /// Both lists, empty.
    #[inline]
    pub(super) fn take<'a>(&mut self) -> (BatchKeys<'a>, Calls<'a>) {
        (reuse(std::mem::take(&mut self.known)), reuse(std::mem::take(&mut self.calls)))
    }

    #[inline]
    pub(super) fn put_back(&mut self, known: BatchKeys<'_>, calls: Calls<'_>) {
        (self.known, self.calls) = (reuse(known), reuse(calls));
    }
}

/// What is planned, and all its keys.
pub(super) struct Plan<'n, 'a> {
    pub node: &'n Node,
    /// Whose rights are to be looked at, if its user has restrictions.
    pub rights: Option<&'n Session>,
    pub known: BatchKeys<'a>,
    pub calls: Calls<'a>,
    /// How much of what the keys hold the commands look at.
    pub fetch: Fetch,
    /// A transaction's end was not among the commands.
    pub is_cut: bool,
    /// The command that was looked at and not taken.
    pub next: Option<LookedUp>,
}

impl<'n, 'a> Plan<'n, 'a> {
    /// With room for what will be planned.
    pub fn new(
        (node, rights): (&'n Node, Option<&'n Session>),
        (known, calls): (BatchKeys<'a>, Calls<'a>),
    ) -> Self {
        Plan { node, rights, known, calls, fetch: Fetch::Start, is_cut: false, next: None }
    }

    /// Takes commands as long as they may run with others, and their keys' locations, in order. A
    /// transaction that begins within the window may end behind it: it is taken in whole or not at
    /// all.
    pub fn take(
        &mut self,
        mut commands: impl Iterator<Item = Args<'a>> + Clone,
        (window, may_begin_transactions): (usize, bool),
    ) {
        while self.calls.len() < window
            && let Some(args) = commands.next()
        {
            let Ok(command) = resolve(args) else { break };
            // It runs alone, where it gets its own name.
            if self.node.may_be_renamed(command) {
                break;
            }
            let is_taken = match command {
                // What is refused runs alone, where it is answered.
                _ if !self.is_allowed(command, args) => false,
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
    fn is_allowed(&self, command: Command, args: Args) -> bool {
        let Some(session) = self.rights else { return true };
        let rights = session.login.rights();
        let is_allowed = |call| rights.check(&self.node.call_of(session, call)).is_ok();
        is_allowed((command, args))
            && once::wrapped(command, args)
                .is_none_or(|inner| is_allowed((inner, args.from(ONCE_ARGS))))
    }

    #[inline(always)]
    fn take_one(&mut self, command: Command, args: Args<'a>, part: Part) -> bool {
        if !is_plain(command, args) {
            return false;
        }
        let keys_start = self.known.len();
        if is_first_arg_only_key(command) {
            self.add_key(args.at(1));
        } else if !self.add_keys(command, args) {
            self.known.truncate(keys_start);
            return false;
        }
        self.push(command, args, (part, keys_start));
        true
    }

    #[inline(always)]
    fn add_key(&mut self, key: &'a [u8]) {
        let location = self.node.keyspace.locate(key);
        self.node.keyspace.prefetch_lock(location);
        self.known.push(KnownKey { key, location });
    }

    /// Adds one call's keys. False if it has none, or too many, or they can't be found.
    #[inline(never)]
    fn add_keys(&mut self, command: Command, args: Args<'a>) -> bool {
        let before = self.known.len();
        let found = key_positions(command, args, &mut |key| self.add_key(args.at(key.index)));
        let added = self.known.len() - before;
        found.is_ok() && (1..=KEYS_MAX).contains(&added) && self.known.len() <= BATCH_KEYS_MAX
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
                // A refusal spoils a transaction: one that has any is queued, command by command.
                Ok(command) if !self.is_allowed(command, args) => break,
                Ok(command) if self.node.may_be_renamed(command) => break,
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
        self.fetch = self.fetch.max(BATCH_RULES[command as usize].fetch);
        self.calls.push(Planned { args, command, part, keys_start, keys_end });
    }
}

#[inline(always)]
fn is_plain(command: Command, args: Args) -> bool {
    let rule = BATCH_RULES[command as usize];
    (usize::from(rule.args_min)..=usize::from(rule.args_max)).contains(&args.len())
        && args.extent_bytes() <= ARGS_BYTES_MAX
        && (matches!(rule.numbers, Numbers::Any) || has_moderate_numbers(rule.numbers, args))
}

/// Apart from the path of most commands.
#[inline(never)]
fn has_moderate_numbers(numbers: Numbers, args: Args) -> bool {
    match numbers {
        Numbers::Any => true,
        Numbers::Third(digits) => args.get(2).is_none_or(|number| number.len() <= digits.into()),
        Numbers::All(digits) => args.from(2).iter().all(|arg| is_moderate(arg, digits.into())),
    }
}

/// Whether an argument that may be a number does not ask for much.
fn is_moderate(arg: &[u8], digits_max: usize) -> bool {
    match arg {
        [b'#', number @ ..] => number.len() + 2 <= digits_max,
        [b'0'..=b'9' | b'-' | b'+', ..] => arg.len() <= digits_max,
        _ => true,
    }
}

/// Which calls of a command may run with others.
#[derive(Clone, Copy)]
struct BatchRule {
    args_min: u8,
    args_max: u8,
    numbers: Numbers,
    fetch: Fetch,
}

/// How many digits there may be in numbers that say how much there is to do.
#[derive(Clone, Copy)]
enum Numbers {
    Any,
    /// In the one behind the key.
    Third(u8),
    All(u8),
}

impl BatchRule {
    /// No number of arguments will do.
    const NONE: BatchRule =
        BatchRule { args_min: 1, args_max: 0, numbers: Numbers::Any, fetch: Fetch::Start };

    const fn of(spec: &Spec) -> BatchRule {
        let numbers = match spec.batching {
            Batching::ByFlags => Numbers::Any,
            Batching::NumberUpTo { digits } => Numbers::Third(digits),
            Batching::NumbersUpTo { digits } => Numbers::All(digits),
            Batching::Never => return BatchRule::NONE,
        };
        let (args_min, args_max) = match spec.arity {
            Arity::Exactly(args_len) => (args_len as usize, args_len as usize),
            Arity::AtLeast(args_len) => (args_len as usize, ARGS_MAX),
        };
        if spec.flags.has_any(ALONE) || args_min > ARGS_MAX {
            return BatchRule::NONE;
        }
        let fetch = match spec.group {
            Group::List | Group::Set | Group::SortedSet | Group::Hash | Group::Geo => {
                if spec.flags.has(Flags::WRITE) { Fetch::ToEdit } else { Fetch::Whole }
            }
            _ => Fetch::Start,
        };
        BatchRule { args_min: args_min as u8, args_max: args_max as u8, numbers, fetch }
    }
}

static BATCH_RULES: [BatchRule; Command::COUNT] = {
    let mut table = [BatchRule::NONE; Command::COUNT];
    let mut at = 0;
    while at < Command::COUNT {
        table[at] = BatchRule::of(Command::ALL[at].spec());
        at += 1;
    }
    table
};

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
        for line in [
            "SRANDMEMBER k",
            "SRANDMEMBER k -99",
            "LPOP k 100",
            "SETBIT k 99999 1",
            "BITFIELD k OVERFLOW SAT INCRBY u8 99999 1 GET i64 #999",
        ] {
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
            "BITFIELD k GET u8 0 SET u8 100000 1",
            "BITFIELD k SET u64 #1000 1",
            "LCS a b",
        ] {
            assert!(!is_taken(line), "{line}");
        }
    }
}
