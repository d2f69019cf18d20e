//! The path of every request: look up, check, plan, lock, invoke, publish.

use crate::call::batch::{BatchLists, BatchWindow};
use crate::call::blocking::{self, BlockedState};
use crate::call::client::Hold;
use crate::call::ctx::Ctx;
use crate::call::gate;
use crate::call::http_guard;
use crate::call::invoke::{
    Invoked, Origin, invoke_sent, login_refusal, note_dependence, publish_effects,
};
use crate::call::mail::WakeByMail;
use crate::call::moving;
use crate::call::names::unknown_text;
use crate::call::session::{LookedUp, Session};
use crate::call::tally::{Tally, Timing, note_call, note_size};
use crate::error::Refusal;
use crate::groups::generic;
use crate::groups::scripting;
use crate::groups::scripting::code::{self, Code};
use crate::groups::scripting::once;
use crate::groups::scripting::{BUSY_FUNCTION, BUSY_SCRIPT};
use crate::groups::transactions;
use crate::node::Node;
use crate::node::slowlog::mark_of;
use crate::node::stats::WorkerStats;
use russet_base::escape::escape;
use russet_base::{Args, UnixMillis};
use russet_catalog::spec::Flags;
use russet_catalog::{Command, is_first_arg_only_key, keys as key_positions, resolve};
use russet_engine::evict::Candidates;
use russet_engine::keys::{Caller, Effects, Keys, KnownKey};
use russet_engine::keyspace::{KeyspaceWait, Location};
use russet_engine::shard::Shard;
use russet_engine::store::raw::lock::Locked;
use russet_engine::store::shard_set::ShardSet;
use russet_protocol::Sink;
use smallvec::SmallVec;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Longer calls fetch their keys themselves, all at once.
const EXPECTED_ARGS_MAX: usize = 32;

/// The keys of a call. Room for those of most calls costs nothing, for it is not cleared.
pub(crate) type KnownKeys<'a> = SmallVec<[KnownKey<'a>; 16]>;

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
    /// Databases and locations of keys that commands of other connections will touch soon.
    expected: Vec<(usize, Location)>,
    pub(crate) batch_window: BatchWindow,
    pub(crate) lists: BatchLists,
    pub(crate) tally: Tally,
    pub(crate) effects: Effects,
    pub(crate) candidates: Candidates,
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
            expected: Vec::new(),
            batch_window: BatchWindow::default(),
            lists: BatchLists::default(),
            tally: Tally::default(),
            effects: Effects::default(),
            candidates: Candidates::default(),
        }
    }

    /// How long a client has to wait before its next call, for the sake of all who have waited for
    /// its last one: it would be back before they have had their turn.
    pub fn backoff_after_turn(&mut self) -> Duration {
        self.tally.take_backoff()
    }

    /// Before the first command of a connection's turn; see [`Tally::begin_batch`].
    pub fn begin_batch(&mut self) {
        self.tally.begin_batch(&self.node);
        self.now = self.tally.now();
    }

    /// Reads the time; after the thread has slept.
    pub fn read_clock(&mut self) {
        self.tally.read_clock(&self.node);
        self.now = self.tally.now();
    }

    /// Counts what the commands since [`Worker::begin_batch`] have done, and their time.
    pub fn end_batch(&mut self) {
        self.count_effects();
        self.shrink_buffers();
        self.tally.end_batch(&self.node, &self.stats);
        self.now = self.tally.now();
    }

    /// As [`Worker::end_batch`], where the batch was one call; see [`Tally::end_call`].
    pub fn end_call(&mut self) {
        self.count_effects();
        self.shrink_buffers();
        self.tally.end_call(&self.node, &self.stats);
        self.now = self.tally.now();
    }

    /// Gives back what a call of many keys, or with many effects, has made the buffers grow by.
    #[inline]
    fn shrink_buffers(&mut self) {
        self.effects.shrink();
    }

    /// A command that will run soon, though others come first: notes its keys.
    pub fn expect(&mut self, session: &mut Session, args: Args) {
        let Ok(command) = resolve(args) else { return };
        let spec = command.spec();
        let is_long = !spec.arity.allows(args.len()) || args.len() > EXPECTED_ARGS_MAX;
        if is_long || self.node.may_be_renamed(command) {
            return;
        }
        let (keyspace, expected) = (&self.node.keyspace, &mut self.expected);
        let before = expected.len();
        let _no_matter = key_positions(command, args, &mut |key| {
            let location = keyspace.locate(args.at(key.index));
            keyspace.prefetch_lock(location);
            expected.push((session.db, location));
        });
        let location = match expected[before..] {
            [(_, location)] => Some(location),
            _ => None,
        };
        session.next_call = Some(LookedUp { command, location });
    }

    /// Fetches the keys of the commands that are expected.
    pub fn fetch_expected(&mut self) {
        self.node.keyspace.prefetch(&self.expected);
        self.expected.clear();
    }

    /// Counts a call that waited and was answered from outside: served by another client's write,
    /// timed out, or told to stop.
    pub fn count_unblocked(&mut self, session: &mut Session, state: &BlockedState, ending: Ending) {
        let Some(command) = state.command() else { return };
        session.count_run(&self.stats, 1);
        session.end_caching(Some(command));
        // Its work was done in the time of the client that served it.
        let args = state.args.as_args();
        let asker = (&*self.node, &*session);
        note_call(asker, &self.stats, (command, args), 0, None);
        note_size(asker, (command, args), ending.reply().len(), None);
        let asker = (&*self.node, session.db);
        self.tally.note_served_keys(asker, (command, args), ending.reply().len());
        match ending {
            Ending::Answered(reply) => {
                if let Some(text) = reply.strip_prefix(b"-") {
                    self.node.stats.count_error(&escape(text));
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
        publish_effects(&mut keys, node);
        has_more
    }

    /// Looks after blocked and watching clients; see [`blocking::sweep`].
    pub fn sweep(&mut self) {
        self.now = self.node.clock.now();
        blocking::sweep(&self.node, &mut self.effects, self.now);
        self.count_effects();
        self.shrink_buffers();
    }

    /// Runs one command of a client.
    #[inline]
    pub fn run(&mut self, session: &mut Session, args: Args, sink: &mut dyn Sink) -> Progress {
        // A call that waits for keys was given the command's own name when it came.
        match &self.node.renames {
            Some(renames) if session.blocked().is_none() => {
                let names = renames.translate(args);
                self.run_translated(session, (args, names), sink)
            }
            _ => self.run_own(session, args, sink),
        }
    }

    /// Runs one command that is called by its own name.
    pub(super) fn run_own(
        &mut self,
        session: &mut Session,
        args: Args,
        sink: &mut dyn Sink,
    ) -> Progress {
        session.refresh_rights(&self.node.acl);
        let looked_up = session.next_call.take();
        let resolved = looked_up.map_or_else(|| resolve(args), |call| Ok(call.command));
        debug_assert_eq!(resolved, resolve(args), "what was looked at is what is run");
        let command = match resolved {
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
            let refusal = login_refusal(session, command).unwrap_or(Refusal::Arity(spec.full_name));
            self.refuse(session, Some((command, args)), refusal, sink);
            return Progress::Done;
        }
        self.make_room_before(session, sink);
        // What MIGRATE has carried away is deleted here, whatever has changed since it was allowed.
        let may_end = session.migration.is_some();
        if !may_end && (!session.gate.is_open() || !self.node.keyspace.barriers().are_down()) {
            match gate::check(&self.node, session, command, args, sink) {
                gate::Verdict::Pass => {}
                gate::Verdict::Answered => return Progress::Done,
                gate::Verdict::Wait => {
                    session.hold_for_pause();
                    return Progress::Busy;
                }
                gate::Verdict::Refuse(refusal) => {
                    if !blocking::end_refused(session) {
                        return Progress::Blocked;
                    }
                    self.refuse(session, Some((command, args)), refusal, sink);
                    return Progress::Done;
                }
            }
        }
        let location = looked_up.and_then(|call| call.location);
        loop {
            if let Some(progress) = self.call(session, (command, args, location), sink) {
                return progress;
            }
        }
    }

    /// A command that was never started; inside MULTI it dooms the transaction.
    pub(super) fn refuse(
        &mut self,
        session: &mut Session,
        call: Option<(Command, Args)>,
        refusal: Refusal,
        sink: &mut dyn Sink,
    ) {
        // What it may have waited for is of no use to the command behind it.
        session.take_wait();
        session.migration = None;
        session.save = None;
        session.beside = None;
        session.ahead = None;
        session.walk = None;
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
        session.end_caching(call.map(|(command, _)| command));
        self.node.stats.count_error(&text);
        sink.error(&text);
    }

    /// None if it needs other shards and is to be called again.
    fn call(
        &mut self,
        session: &mut Session,
        (command, args, location): (Command, Args, Option<Location>),
        sink: &mut dyn Sink,
    ) -> Option<Progress> {
        let timing = transactions::timing(&self.node, session, command);
        if timing == Timing::Alone {
            // It may be INFO, which shows what the fast ones before it have done.
            self.end_batch();
        }
        let mut known = KnownKeys::new();
        let code = self.plan(session, (command, args, location), &mut known);
        let node = &*self.node;
        let Some(mut locked) = lock(node, session, (command, args), &self.shards) else {
            return Some(self.find_busy(session, (command, args), sink));
        };
        locked.set_mark(mark_of(command));
        let retrying = session.blocked().map(|_| session.card.clone());
        let _unblock_waits = retrying.as_ref().map(|card| card.waiter());
        if session.blocked().is_some_and(|state| state.waiter.is_claimed()) {
            return Some(Progress::Blocked);
        }
        if !node.keyspace.barriers().are_down() {
            let may_look = gate::may_look(node, &locked, command);
            let must_wait =
                may_look && moving::must_wait(node, session, (command, args), &self.shards);
            if !may_look || must_wait {
                drop((locked, _unblock_waits));
                return Some(self.hold_back(session, (command, args), sink, may_look));
            }
        }
        let is_again = retrying.is_some() || session.has_job();
        let origin = if is_again { Origin::Waiter } else { Origin::Client };
        session.card.last_command.store(command as u16 + 1, Ordering::Relaxed);
        self.effects.caller = session.caller();
        // A block, for a `drop` would move the locks about before it lets go of them.
        let invoked = {
            let mut keys = node.keyspace.keys(locked, &mut self.effects, (session.db, self.now));
            keys.know(&known);
            keys.is_silent = session.is_silent;
            if known.len() > 1 {
                keys.prefetch_known();
            }
            let mut ctx = Ctx {
                keys: &mut keys,
                reply: sink,
                session,
                node,
                stats: &self.stats,
                tally: &mut self.tally,
                timing,
                origin,
                command,
                code: code.as_ref(),
                may_block: true,
            };
            let invoked = invoke_sent(&mut ctx, args);
            if origin == Origin::Waiter && invoked == Invoked::Done {
                blocking::end_retry(&mut ctx);
            }
            publish_effects(&mut keys, node);
            end_unit(&mut keys, session, (node, command));
            invoked
        };
        self.now = self.tally.now();
        self.progress_of(session, command, invoked)
    }

    #[inline]
    fn progress_of(
        &mut self,
        session: &mut Session,
        command: Command,
        invoked: Invoked,
    ) -> Option<Progress> {
        if !self.effects.own_messages.is_empty() {
            session.own_messages.append(&mut self.effects.own_messages);
        }
        self.effects.caller = Caller::default();
        match invoked {
            Invoked::Blocked => Some(Progress::Blocked),
            Invoked::Later => Some(Progress::Busy),
            Invoked::Unfinished => None,
            Invoked::Done => {
                session.count_run(&self.stats, 1);
                session.end_caching(Some(command));
                Some(Progress::Done)
            }
        }
    }

    /// A key of the call is on its way to another server: the client waits. Or the log has failed,
    /// and what the call would show can't be made durable now.
    #[cold]
    fn hold_back(
        &mut self,
        session: &mut Session,
        call: (Command, Args),
        sink: &mut dyn Sink,
        may_look: bool,
    ) -> Progress {
        if may_look {
            session.hold_for_pause();
            return Progress::Busy;
        }
        let refusal = Refusal::LogFailed(self.node.keyspace.journal().failure());
        self.refuse(session, Some(call), refusal, sink);
        Progress::Done
    }

    /// A shard is busy: for long, if it is with a slow script.
    fn find_busy(
        &mut self,
        session: &mut Session,
        call: (Command, Args),
        sink: &mut dyn Sink,
    ) -> Progress {
        let Some(run) = self.node.scripts.running.blocking(&self.shards) else {
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

    /// Finds the shards that a call needs, where its keys are, and the code that it runs.
    fn plan<'a>(
        &mut self,
        session: &mut Session,
        (command, args, location): (Command, Args<'a>, Option<Location>),
        known: &mut KnownKeys<'a>,
    ) -> Option<Code> {
        // Most calls: one key, no code, no further shards.
        if let Some(key) = args.get(1).filter(|_| is_first_arg_only_key(command)) {
            let location = location.unwrap_or_else(|| self.node.keyspace.locate(key));
            self.shards.clear();
            self.shards.insert(usize::from(location.shard));
            known.push(KnownKey { key, location });
            return None;
        }
        let asker = (&*self.node, self.stats.number);
        match command {
            Command::Exec => {
                self.shards = transactions::plan(asker, session);
                None
            }
            Command::Once => {
                let (shards, code) = once::plan(asker, session, args, known);
                self.shards = shards;
                code
            }
            _ if generic::walks_alone(command, args) => {
                let call = (command, args);
                self.shards = generic::next_shards_alone(&self.node.keyspace, session, call);
                None
            }
            _ => {
                let code = code::find(&self.node, self.stats.number, command, args);
                self.shards.clear();
                let found = (&mut self.shards, known);
                plan_keys(&self.node, (command, args), code.as_ref(), found);
                code
            }
        }
    }
}

/// Adds the shards of one call's keys. A call whose keys can't be found is refused by its handler
/// before it touches any.
pub(crate) fn plan_keys<'a>(
    node: &Node,
    (command, args): (Command, Args<'a>),
    code: Option<&Code>,
    (shards, known): (&mut ShardSet, &mut KnownKeys<'a>),
) {
    let keyspace = &node.keyspace;
    if command.spec().flags.has_any(Flags::ALL_SHARDS.or(Flags::FURTHER_SHARDS)) {
        *shards = std::mem::take(shards).union(&generic::shards_of(keyspace, command, args));
        return;
    }
    if code.is_some_and(Code::is_wide) {
        *shards = keyspace.all_shards();
        return;
    }
    if let Some(shard) = code.and_then(Code::own_shard) {
        shards.insert(shard);
    }
    // What is being changed is seen once the change is in the journal.
    if scripting::changes_functions(command)
        || scripting::shows_functions(command) && node.scripts.changes.is_under_way()
    {
        shards.insert(scripting::REGISTRY_SHARD);
    }
    let mut last = None;
    let _refused_by_the_handler = key_positions(command, args, &mut |key| {
        let key = args.at(key.index);
        let location = keyspace.locate_next(key, &mut last);
        shards.insert(location.shard as usize);
        known.push(KnownKey { key, location });
    });
}

/// What is left to do for a call while its shards are locked, once its records are in the journal.
#[inline]
fn end_unit(keys: &mut Keys, session: &mut Session, (node, command): (&Node, Command)) {
    if matches!(command, Command::Exec | Command::Once | Command::Debug) {
        node.do_scheduled(keys);
        node.scripts.changes.end(keys);
    } else if scripting::changes_functions(command) {
        node.scripts.changes.end(keys);
    }
    note_dependence(keys, session, command);
}

/// Locks, or sets the client aside to wait.
#[inline]
fn lock<'n>(
    node: &'n Node,
    session: &mut Session,
    call: (Command, Args),
    shards: &ShardSet,
) -> Option<Locked<'n, Shard>> {
    let wait = match session.take_wait() {
        None => match node.keyspace.try_lock(shards) {
            Ok(locked) => return Some(locked),
            Err(_busy) => node.keyspace.wait(Arc::new(WakeByMail(session.mailbox.clone()))),
        },
        Some(wait) => wait,
    };
    poll(node, session, call, (wait, shards))
}

#[cold]
fn poll<'n>(
    node: &'n Node,
    session: &mut Session,
    call: (Command, Args),
    (mut wait, shards): (KeyspaceWait, &ShardSet),
) -> Option<Locked<'n, Shard>> {
    // Nobody keeps others waiting for a script that is past `busy-reply-threshold`.
    let may_reserve = node.scripts.running.blocking(shards).is_none();
    let locked = node.keyspace.poll(&mut wait, shards, may_reserve);
    match &locked {
        Some(_) => node.shard_waits.note_wait((node, session), call, &wait),
        None => session.hold_for_shards(wait),
    }
    locked
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
