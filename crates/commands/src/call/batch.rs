//! The small commands of a pipeline, run in one batch under one taking of locks.
//!
//! Most commands are small and name a key or two. To lock for each alone, and to wait for memory
//! key by key, costs more than the commands themselves. So as many of the next commands as are
//! small are planned, their shards locked and their keys fetched at once; then they run one after
//! the other, each with its own effects. Nothing else changes: to everyone else they are commands
//! that came one after the other, quickly.
//!
//! A command that might take long never runs this way, for it would keep other keys than its own
//! waiting; and a busy shard ends the run before the command that needs it.

mod plan;

use crate::call::client::Hold;
use crate::call::ctx::Ctx;
use crate::call::dispatch::Worker;
use crate::call::invoke::{Origin, append, invoke, note_dependence, publish_call};
use crate::call::session::{Gate, Session};
use crate::call::tally::{Tally, Timing};
use crate::groups::scripting::once;
use crate::groups::transactions;
use crate::node::Node;
use crate::node::slowlog::mark_of;
use crate::node::stats::WorkerStats;
pub(crate) use plan::BatchLists;
use plan::{ARGS_BYTES_MAX, Calls, Part, Plan, Planned};
use russet_base::Args;
use russet_catalog::Command;
use russet_catalog::spec::{Flags, Spec};
use russet_engine::keys::{Caller, Fetch, Keys, KnownKey, Weight};
use russet_protocol::{RespWriter, Sink, Wire};
use std::sync::atomic::Ordering;

/// Commands of a batch at most. Fetching more keys at once gains nothing: the processor
/// waits for no more lines of memory than this.
pub const BATCH_MAX: usize = 16;
/// As few are taken together when shards are found busy time and again.
const BATCH_MIN: usize = 4;

/// How many commands are taken together. Each holds its shards until the run is over, so the more
/// threads do the same, the fewer are worth it: fewer when a shard is found busy, more when none
/// is.
#[derive(Debug)]
pub(crate) struct BatchWindow(usize);

impl Default for BatchWindow {
    fn default() -> Self {
        BatchWindow(BATCH_MAX)
    }
}

impl BatchWindow {
    fn adjust(&mut self, is_busy: bool) {
        self.0 = match is_busy {
            true => (self.0 - self.0 / 4).max(BATCH_MIN),
            false => (self.0 + 1).min(BATCH_MAX),
        };
    }

    /// The first command may take long, and those behind it are often of its kind: what was
    /// planned of them was in vain.
    #[cold]
    fn halve(&mut self) {
        self.0 = (self.0 / 2).max(2);
    }
}

/// How far a run came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ran {
    pub count: usize,
    /// Behind them a transaction begins that could run with what comes after these commands.
    pub is_cut: bool,
}

impl Worker {
    /// Runs the first of these commands that can be a batch. None may be: then the first is to be
    /// run alone.
    pub fn run_batch<'a, 'o>(
        &mut self,
        session: &mut Session,
        commands: impl Iterator<Item = Args<'a>> + Clone,
        out: impl Into<Wire<'o>>,
    ) -> Ran {
        session.refresh_rights(&self.node.acl);
        self.make_room(session);
        let node = &*self.node;
        if !may_batch(node, session) {
            return Ran::default();
        }
        let may_begin = session.watching.is_empty();
        let rights = session.gate.has(Gate::RESTRICTED).then_some(&*session);
        let mut plan = Plan::new((node, rights), self.lists.take());
        plan.take(commands.take(BATCH_MAX), (self.batch_window.0, may_begin));
        let Plan { known, mut calls, fetch, is_cut, next, .. } = plan;
        if calls.len() < 2 {
            session.next_call = calls.first().map(|call| call.looked_up(&known)).or(next);
            let is_cut = is_cut && calls.is_empty();
            self.lists.put_back(known, calls);
            return Ran { count: 0, is_cut };
        }
        self.effects.caller = session.caller();
        let none_yet = node.keyspace.lock_none_as(mark_of(calls[0].command));
        let mut keys = node.keyspace.keys(none_yet, &mut self.effects, (session.db, self.now));
        keys.know(&known);
        keys.is_silent = session.is_silent;
        let planned = calls.len();
        let may_be_long = hold(&mut keys, (&mut calls, fetch), &mut self.batch_window);
        // One of the keys may be on its way to another server: then each is looked at by itself.
        calls.truncate(if node.keyspace.barriers().are_down() { planned } else { 0 });
        prefetch_beside(&mut keys, session, (&calls, &known));
        let notes_requests = node.large_requests.wants(ARGS_BYTES_MAX as u64);
        let writer = RespWriter::new(out, session.resp);
        let replies_end = writer.bytes_len();
        let mut executor = BatchExecutor {
            keys,
            writer,
            replies_end,
            session,
            node,
            stats: &self.stats,
            tally: &mut self.tally,
            notes_requests,
            large_reply_bytes: node.large_replies.cost_min(),
            notes_keys: node.hot_keys.is_on(),
        };
        let ran = executor.run_all(&calls, &known, may_be_long);
        if executor.keys.is_recording() {
            // Before the counts are published, as behind a single call.
            append(&mut executor.keys, node);
            note_dependence(&mut executor.keys, executor.session, Command::Get);
        }
        executor.keys.publish();
        drop(executor);
        self.effects.caller = Caller::default();
        session.next_call = match calls.get(ran) {
            Some(call) => Some(call.looked_up(&known)),
            None => next.filter(|_| calls.len() == planned),
        };
        match calls[..ran].last() {
            Some(last) => self.note_last(session, last.command, ran),
            None if !calls.is_empty() => self.batch_window.halve(),
            None => {}
        }
        let is_cut = is_cut && ran == planned;
        self.lists.put_back(known, calls);
        Ran { count: ran, is_cut }
    }

    #[inline]
    fn note_last(&self, session: &Session, last: Command, ran: usize) {
        session.card.last_command.store(last as u16 + 1, Ordering::Relaxed);
        session.count_run(&self.stats, ran as u64);
    }
}

/// The transaction that these begin with, from MULTI to EXEC.
fn transaction_of<'c, 'a>(calls: &'c [Planned<'a>]) -> &'c [Planned<'a>] {
    let exec = calls.iter().position(|call| call.part == Part::Exec);
    &calls[..=exec.expect("a transaction is planned in whole")]
}

/// Where commands run, one after the other.
struct BatchExecutor<'s, 'k> {
    keys: Keys<'k>,
    writer: RespWriter<'s>,
    /// Where the reply before ends.
    replies_end: usize,
    session: &'s mut Session,
    node: &'s Node,
    stats: &'s WorkerStats,
    tally: &'s mut Tally,
    /// A request may be large enough to be remembered.
    notes_requests: bool,
    /// From this size on a reply is remembered.
    large_reply_bytes: u64,
    /// HOTKEYS wants to know the keys.
    notes_keys: bool,
}

impl<'k> BatchExecutor<'_, 'k> {
    /// Runs calls up to the first that is not sure to be done soon; how many.
    #[inline]
    fn run_all(&mut self, calls: &[Planned], known: &[KnownKey], may_be_long: bool) -> usize {
        let mut ran = 0;
        while let Some(call) = calls.get(ran) {
            let parts = match call.part {
                Part::Whole => &calls[ran..=ran],
                _ => transaction_of(&calls[ran..]),
            };
            let is_long = |part: &Planned| {
                !is_small(&mut self.keys, part.command.spec(), &known[part.keys()])
            };
            if may_be_long && parts.iter().any(is_long) {
                break;
            }
            match call.part {
                Part::Whole => self.run_whole(call),
                _ => self.run_transaction(parts),
            }
            ran += parts.len();
        }
        ran
    }

    #[inline]
    fn run_whole(&mut self, call: &Planned) {
        self.keys.skip_to(call.keys().start);
        invoke(&mut self.ctx(call.command), &call.args);
        self.finish(call);
    }

    /// Answers MULTI and what would be queued, and runs it at EXEC. All shards are held until the
    /// end, so nothing comes between.
    fn run_transaction(&mut self, calls: &[Planned]) {
        let [multi, queued @ .., exec] = calls else { return };
        self.writer.ok();
        self.tally.add(multi.command);
        queued.iter().for_each(|_| self.writer.status("QUEUED"));
        self.replies_end = self.writer.bytes_len();
        self.keys.skip_to(multi.keys().start);
        let calls = queued.iter().map(|call| (call.command, call.args, None));
        transactions::run_queued(&mut self.ctx(exec.command), calls);
        self.tally.add(exec.command);
        self.finish(exec);
    }

    #[inline]
    fn ctx<'c>(&'c mut self, command: Command) -> Ctx<'c, 'k> {
        Ctx {
            keys: &mut self.keys,
            reply: &mut self.writer,
            session: self.session,
            node: self.node,
            stats: self.stats,
            tally: self.tally,
            timing: Timing::WithBatch,
            origin: Origin::Client,
            command,
            code: None,
            may_block: true,
        }
    }

    /// What follows from a command, or from a whole transaction.
    #[inline]
    fn finish(&mut self, call: &Planned) {
        let BatchExecutor { keys, writer, session, node, tally, .. } = self;
        publish_call(keys, node);
        if self.notes_requests {
            let request_bytes = call.args.extent_bytes() as u64;
            let asker = (*node, &**session);
            let noted = (call.command, call.args);
            node.large_requests.note(asker, noted, request_bytes, Some(keys));
        }
        let before = std::mem::replace(&mut self.replies_end, writer.bytes_len());
        let reply_bytes = (self.replies_end - before) as u64;
        if reply_bytes >= self.large_reply_bytes {
            let asker = (*node, &**session);
            node.large_replies.note(asker, (call.command, call.args), reply_bytes, Some(keys));
        }
        if self.notes_keys {
            let net_bytes = call.args.extent_bytes() as u64 + reply_bytes;
            tally.note_keys((node, session.db), (call.command, call.args), net_bytes);
        }
        if !keys.effects.own_messages.is_empty() {
            self.send_own();
        }
    }

    /// Messages that the command has sent to its own client come behind the reply.
    #[cold]
    fn send_own(&mut self) {
        let messages = std::mem::take(&mut self.keys.effects.own_messages);
        let taken = messages.iter().filter(|bytes| self.session.takes_push(bytes));
        if let Some(mut out) = self.writer.wire() {
            taken.for_each(|bytes| out.extend_from_slice(bytes));
        }
        self.replies_end = self.writer.bytes_len();
    }
}

/// Locks the shards of as many of the commands as can be without waiting, gives up the others, and
/// has the keys fetched. Says whether what they hold may be large.
#[inline]
fn hold(
    keys: &mut Keys,
    (calls, fetch): (&mut Calls, Fetch),
    batch_window: &mut BatchWindow,
) -> bool {
    let planned_end = calls.last().map_or(0, |call| call.keys().end);
    let keys_held = keys.hold_known_now();
    batch_window.adjust(keys_held < planned_end);
    if keys_held < planned_end {
        let is_held = |call: &&Planned| call.keys().end <= keys_held;
        let held = calls.iter().take_while(is_held).count();
        // A transaction is run in whole or not at all.
        let is_edge = |call: &Planned| matches!(call.part, Part::Multi | Part::Exec);
        let edge = calls[..held].iter().rposition(is_edge);
        let open = edge.filter(|at| calls[*at].part == Part::Multi);
        calls.truncate(open.unwrap_or(held));
    }
    let keys_end = calls.last().map_or(0, |call| call.keys().end);
    keys.prefetch_held(keys_end, fetch)
}

/// Fetches what is looked at beside the keys' entries: by ONCE, and to note who has read them.
#[inline]
fn prefetch_beside(keys: &mut Keys, session: &Session, (calls, known): (&[Planned], &[KnownKey])) {
    if session.tracking.as_ref().is_some_and(|tracked| tracked.remembers_reads()) {
        keys.prefetch_readers(calls.last().map_or(0, |call| call.keys().end));
    }
    // As a rule all are of this kind, or none is.
    if calls.first().is_some_and(|call| call.command == Command::Once) {
        for call in calls.iter().filter(|call| call.command == Command::Once) {
            once::prefetch(keys, &known[call.keys()]);
        }
    }
}

/// Nothing holds this client's commands back or wants to see each by itself.
fn may_batch(node: &Node, session: &Session) -> bool {
    session.gate.is_open_to_user()
        && matches!(session.hold, Hold::None)
        && node.keyspace.barriers().are_down()
        && !node.monitors.is_on()
        && !node.slowlog.is_precise()
        && !node.latency.is_on()
        && !session.has_caching_mark()
        // Invalidations of what was evicted are sent before the reply of one that runs alone.
        && session.own_messages.is_empty()
}

/// Whether a command is sure to be done soon, by what its keys hold.
#[inline]
fn is_small(keys: &mut Keys, spec: &Spec, known: &[KnownKey]) -> bool {
    known.iter().all(|known| match keys.weigh(known.location) {
        Weight::Small => true,
        Weight::Collection => spec.flags.has_any(Flags::FAST.or(Flags::SHORT)),
        Weight::LongString => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TestServer;
    use russet_base::OwnedArgs;
    use russet_protocol::Output;

    /// Busy shards make the window narrow, and only batches make it wide again. Where it was
    /// narrower than a transaction none was ever a batch: each was queued and run command by
    /// command from then on, for two and a half times the time.
    #[test]
    fn a_transaction_that_begins_within_the_window_is_a_batch() {
        let mut server = TestServer::new();
        let lines = ["MULTI", "INCR a", "INCR b", "INCR c", "EXEC", "GET a"];
        let calls: Vec<OwnedArgs> = lines.iter().map(|line| line.split(' ').collect()).collect();
        for _ in 0..BATCH_MAX {
            server.worker.batch_window.adjust(true);
        }
        let mut out = Output::default();
        let args = calls.iter().map(OwnedArgs::as_args);
        let ran = server.worker.run_batch(&mut server.session, args, &mut out);
        assert_eq!(ran, Ran { count: 5, is_cut: false });
        assert!(server.worker.batch_window.0 > BATCH_MIN);
    }

    /// What a transaction ran was counted twice where it came in one piece, and by its client not
    /// at all where it did not.
    #[test]
    fn commands_of_a_transaction_count_once() {
        let mut server = TestServer::new();
        let lines = ["MULTI", "GET a", "GET b", "EXEC"];
        let counted = |server: &TestServer| {
            let commands = server.session.card.commands.load(Ordering::Relaxed);
            (server.worker.stats.processed.read(), commands)
        };
        lines.iter().for_each(|line| drop(server.say(line)));
        assert_eq!(counted(&server), (4, 4), "MULTI, EXEC and what it runs");
        let calls: Vec<OwnedArgs> = lines.iter().map(|line| line.split(' ').collect()).collect();
        let args = calls.iter().map(OwnedArgs::as_args);
        let ran = server.worker.run_batch(&mut server.session, args, &mut Output::default());
        assert_eq!((ran.count, counted(&server)), (4, (8, 8)));
    }

    /// Where the end of a transaction was not there yet, it was queued, unless commands stood
    /// before it: in a pipeline of transactions every fourth.
    #[test]
    fn a_transaction_whose_end_is_missing_is_told_of() {
        let mut server = TestServer::new();
        let lines = ["MULTI", "INCR a", "INCR b"];
        let calls: Vec<OwnedArgs> = lines.iter().map(|line| line.split(' ').collect()).collect();
        for len in 1..=lines.len() {
            let args = calls[..len].iter().map(OwnedArgs::as_args);
            let ran = server.worker.run_batch(&mut server.session, args, &mut Output::default());
            assert_eq!(ran, Ran { count: 0, is_cut: true });
        }
        let args = [&calls[1], &calls[0]].map(OwnedArgs::as_args).into_iter();
        let ran = server.worker.run_batch(&mut server.session, args, &mut Output::default());
        assert_eq!(ran, Ran::default(), "first comes what stands before it");
    }
}
