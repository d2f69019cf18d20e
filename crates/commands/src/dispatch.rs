//! The path of every command: look up, check, plan, lock, run, settle.

use crate::blocking::{self, BlockedState};
use crate::client::Hold;
use crate::ctx::{Ctx, Flow, Outcome};
use crate::error::Refusal;
use crate::gate;
use crate::generic;
use crate::handlers;
use crate::http_guard;
use crate::mail::WakeByMail;
use crate::node::Node;
use crate::once;
use crate::scripting::{self, BUSY_FUNCTION, BUSY_SCRIPT};
use crate::session::{Gate, Session};
use crate::stats::{CallCounts, WorkerStats};
use crate::together::Reach;
use crate::transactions;
use russet_base::told::told;
use russet_base::{Args, UnixMillis};
use russet_catalog::spec::Flags;
use russet_catalog::{Command, Unknown, keys as key_positions, resolve};
use russet_engine::keys::{Effects, Keys};
use russet_engine::keyspace::{KeyspaceWait, Place};
use russet_engine::shard::Shard;
use russet_engine::store::raw::lock::Locked;
use russet_engine::store::shard_set::ShardSet;
use russet_protocol::Sink;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Longer calls fetch their keys themselves, all at once.
const EXPECTED_WORDS_MAX: usize = 32;
/// Places of keys that a worker keeps room for between calls.
const PLACES_KEPT_MAX: usize = 1024;

/// How far a command came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// The reply is written.
    Done,
    /// A shard is busy, or the client paused: the same command is to be given again after a letter.
    Busy,
    /// The command is under way and the client waits; nothing is written. `session.hold` says more.
    Blocked,
}

/// One thread's way to run commands.
pub struct Worker {
    pub node: Arc<Node>,
    pub stats: Arc<WorkerStats>,
    /// The time that commands see: read once for each batch of commands.
    pub now: UnixMillis,
    /// What the call under way needs: kept, for a set is large to make and to move.
    shards: ShardSet,
    pub(crate) places: Vec<(usize, Place)>,
    /// Databases and places of keys that commands of other connections will touch soon.
    expected: Vec<(usize, Place)>,
    /// Fast commands of the batch under way, timed together.
    pub(crate) reach: Reach,
    pub(crate) batch: CallCounts,
    /// The wall clock in microseconds; if it is set back, a batch seems to take no time.
    batch_started: u64,
    is_clock_fresh: bool,
    pub(crate) effects: Effects,
}

impl Worker {
    pub fn new(node: Arc<Node>) -> Self {
        let stats = node.stats.new_worker();
        let now = node.clock.now();
        Worker {
            node,
            stats,
            now,
            shards: ShardSet::EMPTY,
            places: Vec::new(),
            expected: Vec::new(),
            reach: Reach::default(),
            batch: CallCounts::default(),
            batch_started: 0,
            is_clock_fresh: false,
            effects: Effects::default(),
        }
    }

    /// Before the first command of a connection's turn. The turn before ended just now, so the time
    /// that it read will do, unless the thread has slept since.
    pub fn begin_batch(&mut self) {
        if !self.is_clock_fresh {
            self.read_clock();
        }
        self.is_clock_fresh = false;
    }

    /// Reads the time; after the thread has slept.
    pub fn read_clock(&mut self) {
        let micros = self.node.clock.now_micros();
        self.now = UnixMillis(micros.div_euclid(1000));
        self.batch_started = micros.cast_unsigned();
        self.is_clock_fresh = true;
    }

    /// Accounts the time of the fast commands since [`Worker::begin_batch`] in equal shares.
    pub fn end_batch(&mut self) {
        self.count_effects();
        self.shrink_buffers();
        if self.batch.is_empty() {
            return;
        }
        let started = self.batch_started;
        self.read_clock();
        let elapsed = self.batch_started.saturating_sub(started);
        self.batch.settle(&self.stats, elapsed);
    }

    /// Gives back what a call of many keys, or with many effects, has made the buffers grow by.
    #[inline]
    fn shrink_buffers(&mut self) {
        if self.places.capacity() > PLACES_KEPT_MAX {
            self.places = Vec::new();
        }
        self.effects.shrink();
    }

    /// A command that will run soon, though others come first: notes its keys.
    pub fn expect(&mut self, session: &Session, args: Args) {
        let Ok(command) = resolve(args) else { return };
        let spec = command.spec();
        if !spec.arity.allows(args.len()) || args.len() > EXPECTED_WORDS_MAX {
            return;
        }
        let (keyspace, expected) = (&self.node.keyspace, &mut self.expected);
        let _no_matter = key_positions(command, args, &mut |key| {
            let place = keyspace.place(args.at(key.index));
            keyspace.prefetch_lock(place);
            expected.push((session.db, place));
        });
    }

    /// Fetches the keys of the commands that are expected.
    pub fn fetch_expected(&mut self) {
        self.node.keyspace.prefetch(&self.expected);
        self.expected.clear();
    }

    /// Counts a call that waited and was answered from outside: served by another client's write,
    /// timed out, or told to stop.
    pub fn count_unblocked(&mut self, session: &Session, state: &BlockedState, ending: Ending) {
        let Some(command) = state.command() else { return };
        self.count_run(session, 1);
        // Its work was done in the time of the client that served it.
        note_call(&self.node, &self.stats, session, (command, state.args.as_args()), 0);
        match ending {
            Ending::Answered(reply) => {
                if let Some(text) = reply.strip_prefix(b"-") {
                    self.node.stats.count_error(&told(text));
                    self.stats.of(command).failed.add(1);
                }
            }
            Ending::TimedOut(_) => {}
            Ending::Unblocked(_) => {
                self.node.stats.count_error("UNBLOCKED");
                self.stats.of(command).rejected.add(1);
            }
        }
    }

    /// Adds what the commands so far have done to what INFO shows.
    fn count_effects(&mut self) {
        let Effects { dirty, hits, misses, .. } = &mut self.effects;
        self.stats.dirty.add(std::mem::take(dirty));
        self.stats.hits.add(std::mem::take(hits));
        self.stats.misses.add(std::mem::take(misses));
    }

    /// Removes some of what has expired in a shard, and publishes that while the shard is locked;
    /// whether more is due.
    pub fn expire(&mut self, shard: usize, (now, budget): (UnixMillis, usize)) -> bool {
        let node = &*self.node;
        let expired = node.keyspace.expire_shard(shard, &mut self.effects, (now, budget));
        let Some((mut keys, has_more)) = expired else { return false };
        settle(&mut keys, node);
        has_more
    }

    /// Looks after blocked and watching clients; see [`blocking::tend`].
    pub fn tend(&mut self) {
        self.now = self.node.clock.now();
        blocking::tend(&self.node, &mut self.effects, self.now);
        self.count_effects();
        self.shrink_buffers();
    }

    /// Runs one command of a client.
    pub fn run(&mut self, session: &mut Session, args: Args, sink: &mut dyn Sink) -> Progress {
        let command = match resolve(args) {
            Ok(command) => command,
            Err(_) if http_guard::is_http(args.at(0)) => {
                http_guard::close(&self.node, session);
                return Progress::Done;
            }
            Err(unknown) => {
                let is_known = session.is_authenticated();
                let refusal = if is_known { unknown_text(unknown, args) } else { Refusal::NoAuth };
                self.refuse(session, None, refusal, sink);
                return Progress::Done;
            }
        };
        let spec = command.spec();
        if !spec.arity.allows(args.len()) {
            let is_stranger = needs_auth(session, command);
            let refusal =
                if is_stranger { Refusal::NoAuth } else { Refusal::Arity(spec.full_name) };
            self.refuse(session, Some((command, args)), refusal, sink);
            return Progress::Done;
        }
        if !session.gate.is_open() || self.node.pause.is_on() {
            match gate::check(&self.node, session, command, args, sink) {
                gate::Verdict::Pass => {}
                gate::Verdict::Answered => return Progress::Done,
                gate::Verdict::Wait => {
                    session.hold_for_pause();
                    return Progress::Busy;
                }
                gate::Verdict::Refuse(refusal) => {
                    self.refuse(session, Some((command, args)), refusal, sink);
                    return Progress::Done;
                }
            }
        }
        if command == Command::Multi && !self.is_precise() && !self.node.monitors.is_on() {
            transactions::begin(session, sink);
            session.card.last_command.store(command as u16 + 1, Ordering::Relaxed);
            self.account(session, command, args, None);
            return Progress::Done;
        }
        self.call(session, command, args, sink)
    }

    /// Somebody wants to know the time of every single command.
    fn is_precise(&self) -> bool {
        self.node.slowlog.is_precise() || self.node.latency.is_on()
    }

    /// A command that was never started; inside MULTI it dooms the transaction.
    fn refuse(
        &mut self,
        session: &mut Session,
        call: Option<(Command, Args)>,
        refusal: Refusal,
        sink: &mut dyn Sink,
    ) {
        // What it may have waited for is of no use to the command behind it.
        session.take_wait();
        let mut text = refusal.wire();
        if let Some((command, _)) = call {
            self.stats.of(command).rejected.add(1);
        }
        let is_exec = |(command, args)| command == Command::Exec || once::wraps_exec(command, args);
        if call.is_some_and(is_exec) {
            transactions::discard_state(session);
            let reason = text.strip_prefix("ERR ").unwrap_or(&text);
            text = format!("EXECABORT Transaction discarded because of: {reason}").into();
        } else if let Some(transaction) = &mut session.transaction {
            transaction.is_doomed = true;
        }
        self.node.stats.count_error(&text);
        sink.error(&text);
    }

    fn call(
        &mut self,
        session: &mut Session,
        command: Command,
        args: Args,
        sink: &mut dyn Sink,
    ) -> Progress {
        let is_fast = is_timed_with_batch(command)
            || (command == Command::Exec && transactions::is_fast(session));
        let is_timed = !is_fast || self.is_precise();
        if is_timed {
            // Its time is not that of the fast ones before it; and it may be INFO, which shows what
            // they have done.
            self.end_batch();
        }
        self.plan(session, command, args);
        let node = &*self.node;
        let Some(locked) = lock(node, session, &self.shards) else {
            return self.find_busy(session, (command, args), sink);
        };
        let retrying = session.blocked().map(|_| session.card.clone());
        let _unblock_waits = retrying.as_ref().map(|card| card.waiter());
        if session.blocked().is_some_and(|state| state.waiter.is_settled()) {
            return Progress::Blocked;
        }
        // The turn began, or the command before it ended, no more than a parsing ago.
        let started = self.batch_started;
        let is_retry = session.blocked().is_some();
        // A block, for a `drop` would move the locks about before it lets go of them.
        let progress = 'run: {
            let mut keys = node.keyspace.keys(locked, &mut self.effects, (session.db, self.now));
            keys.know(&self.places);
            keys.is_silent = session.is_silent;
            if self.places.len() > 1 {
                keys.prefetch_known();
            }
            let mut ctx = Ctx {
                keys: &mut keys,
                reply: sink,
                session,
                node,
                stats: &self.stats,
                command,
                may_block: true,
            };
            let outcome = handlers::of(command)(&mut ctx, args);
            if let Ok(Flow::Replan) = outcome {
                break 'run None;
            }
            let progress = conclude(&mut ctx, outcome, args);
            settle(&mut keys, node);
            if node.monitors.is_on() && !is_retry {
                node.monitors.feed(node, session, command, args);
            }
            Some(progress)
        };
        let Some(progress) = progress else {
            return self.call(session, command, args, sink);
        };
        session.card.last_command.store(command as u16 + 1, Ordering::Relaxed);
        self.batch.absorb(&mut session.uncounted);
        // A blocked call is counted when it is over.
        if progress != Progress::Blocked {
            self.account(session, command, args, is_timed.then_some(started));
        }
        progress
    }

    /// A shard is busy: for long, if it is with a slow script.
    fn find_busy(
        &mut self,
        session: &mut Session,
        call: (Command, Args),
        sink: &mut dyn Sink,
    ) -> Progress {
        let Some(run) = self.node.scripts.running.in_the_way(&self.shards) else {
            return Progress::Busy;
        };
        // A call that waits for keys simply waits on.
        if session.blocked().is_some() {
            return Progress::Busy;
        }
        session.hold = Hold::None;
        let text = if run.is_function { BUSY_FUNCTION } else { BUSY_SCRIPT };
        self.refuse(session, Some(call), Refusal::text(text), sink);
        Progress::Done
    }

    pub(crate) fn count_run(&self, session: &Session, commands: u64) {
        self.stats.processed.add(commands);
        let before = session.card.commands.load(Ordering::Relaxed);
        session.card.commands.store(before + commands, Ordering::Relaxed);
    }

    fn account(&mut self, session: &Session, command: Command, args: Args, started: Option<u64>) {
        self.count_run(session, 1);
        match started {
            None => self.batch.add(command),
            Some(started) => {
                self.read_clock();
                let micros = self.batch_started.saturating_sub(started);
                note_call(&self.node, &self.stats, session, (command, args), micros);
            }
        }
    }

    /// Finds the shards that a call needs, and the places of its keys for the handler.
    fn plan(&mut self, session: &Session, command: Command, args: Args) {
        self.places.clear();
        let asker = (&*self.node, self.stats.number);
        match command {
            Command::Exec => {
                self.shards = transactions::plan(asker, session, &mut self.places);
            }
            Command::Once => {
                self.shards = once::plan(asker, session, args, &mut self.places);
            }
            _ => {
                self.shards.clear();
                plan_keys(asker, command, args, &mut self.shards, &mut self.places);
            }
        }
    }
}

/// Counts a call that was timed by itself, and remembers it if it took long.
pub(crate) fn note_call(
    node: &Node,
    stats: &WorkerStats,
    session: &Session,
    (command, args): (Command, Args),
    micros: u64,
) {
    stats.count_call(command, micros);
    let flags = command.spec().flags;
    if !flags.has(Flags::SKIP_SLOWLOG) {
        node.slowlog.note(node, session, args, micros);
    }
    let event = if flags.has(Flags::FAST) { "fast-command" } else { "command" };
    node.latency.note(event, micros, || node.clock.now().seconds());
}

/// Whether a command takes so little time that reading the clock twice would be a good part of it.
/// SET does, though the catalog does not call it fast.
#[inline]
pub(crate) fn is_timed_with_batch(command: Command) -> bool {
    command.spec().flags.has(Flags::FAST) || command == Command::Set
}

/// Adds the shards of one call's keys, for the worker of this number. A call whose keys can't be
/// told is refused by its handler before it touches any.
pub(crate) fn plan_keys(
    (node, worker): (&Node, usize),
    command: Command,
    args: Args,
    shards: &mut ShardSet,
    places: &mut Vec<(usize, Place)>,
) {
    if command.spec().flags.has_any(Flags::ALL_SHARDS.and(Flags::FURTHER_SHARDS)) {
        *shards = std::mem::take(shards).union(&generic::shards_of(&node.keyspace, command, args));
        return;
    }
    if scripting::runs_wide(node, worker, command, args) {
        *shards = node.keyspace.all_shards();
        return;
    }
    let _refused_by_the_handler = key_positions(command, args, &mut |key| {
        let bytes = args.at(key.index);
        let place = node.keyspace.place(bytes);
        shards.insert(place.shard as usize);
        // An empty key has no address of its own to be known by.
        if !bytes.is_empty() {
            places.push((bytes.as_ptr() as usize, place));
        }
    });
}

/// Locks, or sets the client aside to wait.
#[inline]
fn lock<'n>(node: &'n Node, session: &mut Session, shards: &ShardSet) -> Option<Locked<'n, Shard>> {
    match session.take_wait() {
        None => match node.keyspace.try_lock(shards) {
            Ok(locked) => Some(locked),
            Err(_busy) => {
                let wait = node.keyspace.wait(Arc::new(WakeByMail(session.mailbox.clone())));
                poll(node, session, wait, shards)
            }
        },
        Some(wait) => poll(node, session, wait, shards),
    }
}

#[cold]
fn poll<'n>(
    node: &'n Node,
    session: &mut Session,
    mut wait: KeyspaceWait,
    shards: &ShardSet,
) -> Option<Locked<'n, Shard>> {
    // Nobody keeps others waiting for a script that is past `busy-reply-threshold`.
    let may_reserve = node.scripts.running.in_the_way(shards).is_none();
    let locked = node.keyspace.poll(&mut wait, shards, may_reserve);
    if locked.is_none() {
        session.hold_for_shards(wait);
    }
    locked
}

/// Turns a handler's outcome into a reply or a wait.
fn conclude(ctx: &mut Ctx, outcome: Outcome, args: Args) -> Progress {
    match outcome {
        Ok(Flow::Done | Flow::Replan) => {}
        Ok(Flow::Block(request)) => {
            match ctx.session.blocked() {
                None => blocking::park(ctx, args, *request),
                // A second try was in vain: its turn is over for now.
                Some(state) => state.keys.iter().for_each(|key| ctx.keys.recheck_waiters(key)),
            }
            return Progress::Blocked;
        }
        Err(refusal) => fail(ctx, &refusal),
    }
    if ctx.session.blocked().is_some()
        && let Hold::Keys(state) = std::mem::take(&mut ctx.session.hold)
    {
        // A second try was answered: nobody else may, and those behind it get their turn.
        let was_waiting = blocking::claim(&state.waiter);
        debug_assert!(was_waiting, "its keys and its card were locked since it was seen waiting");
        for key in state.keys.iter() {
            ctx.keys.recheck_waiters(key);
        }
    }
    Progress::Done
}

/// How a wait ended.
#[derive(Clone, Copy, Debug)]
pub enum Ending<'r> {
    /// Served by another client's write; the reply may be an error.
    Answered(&'r [u8]),
    TimedOut(&'r [u8]),
    /// By CLIENT UNBLOCK with an error.
    Unblocked(&'r [u8]),
}

impl<'r> Ending<'r> {
    pub(crate) fn reply(self) -> &'r [u8] {
        match self {
            Ending::Answered(reply) | Ending::TimedOut(reply) | Ending::Unblocked(reply) => reply,
        }
    }
}

/// Answers with a refusal, and counts it.
pub(crate) fn fail(ctx: &mut Ctx, refusal: &Refusal) {
    let text = refusal.wire();
    ctx.stats.of(ctx.command).failed.add(1);
    if !matches!(refusal, Refusal::Counted(_)) {
        ctx.node.stats.count_error(&text);
    }
    ctx.reply.error(&text);
}

/// What follows from a command's effects, while its shards are still locked.
#[inline]
pub(crate) fn settle(keys: &mut Keys, node: &Node) {
    if !keys.effects.is_settled() {
        settle_effects(keys, node);
    }
}

fn settle_effects(keys: &mut Keys, node: &Node) {
    if !keys.effects.ready.is_empty() {
        // The command may have taken long, and what it fed may have expired meanwhile.
        keys.now = node.clock.now();
        blocking::serve_ready(keys);
    }
    keys.publish();
    if !keys.effects.notices.is_empty() {
        node.publish_notices(&keys.effects.notices);
        keys.effects.notices.clear();
    }
}

/// COMPAT: the words are cut as Redis cuts them (tests/wire/connection/protocol.wire).
fn unknown_text(unknown: Unknown, args: Args) -> Refusal {
    const NAME_BYTES_MAX: usize = 128;
    let cut = |word: &[u8], max: usize| told(&word[..word.len().min(max)]).into_owned();
    match unknown {
        Unknown::Subcommand(parent) => Refusal::text(format!(
            "ERR unknown subcommand '{}'. Try {} HELP.",
            cut(args.at(1), NAME_BYTES_MAX),
            parent.spec().name.to_uppercase()
        )),
        Unknown::Command => {
            let mut beginning = String::new();
            for word in args.from(1).iter() {
                if beginning.len() >= NAME_BYTES_MAX {
                    break;
                }
                let room = NAME_BYTES_MAX - beginning.len();
                beginning.push_str(&format!("'{}' ", cut(word, room)));
            }
            let name = cut(args.at(0), NAME_BYTES_MAX);
            Refusal::text(format!(
                "ERR unknown command '{name}', with args beginning with: {beginning}"
            ))
        }
    }
}

/// Whether the client must authenticate before anything else.
pub(crate) fn needs_auth(session: &Session, command: Command) -> bool {
    session.gate.has(Gate::NEEDS_AUTH) && !command.spec().flags.has(Flags::NO_AUTH)
}
