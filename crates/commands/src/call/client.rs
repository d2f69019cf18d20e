//! One client, without its socket: it runs requests, waits for shards, keys or other clients,
//! receives letters, and ends. The server gives it a socket, tests a script.
//!
//! What a client waits for is one value, [`Hold`]: whoever ends a wait, ends all of it. The bytes
//! of a reply pass through here whether the command ran at once, was tried again, or was served by
//! someone else, so that CLIENT REPLY means the same for all.

#[cfg(test)]
mod tests;

use crate::call::batch::Ran;
use crate::call::blocking::{self, BlockedState, GiveUp};
use crate::call::dispatch::{Ending, Progress, Worker};
use crate::call::held_output::HeldOutput;
use crate::call::invoke::error_reply;
use crate::call::mail::{Letter, Mailbox, Pending, Receipt};
use crate::call::session::{Gate, ReplyMode, Session};
use crate::call::tally::Tally;
use crate::groups::connection;
use crate::groups::pubsub;
use crate::groups::replication;
use crate::groups::transactions;
use crate::node::clients::{ClientCard, ClientFlags};
use crate::node::{Node, tracking};
use russet_base::{Args, SharedBytes, UnixMillis};
use russet_engine::keyspace::KeyspaceWait;
use russet_engine::store::raw::lock::Wake;
use russet_protocol::{Output, RespWriter};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// How long a reply is kept back for the sake of other clients. One that runs a long command reads
/// its letters only when that is over.
const ACKNOWLEDGED_WITHIN_MS: i64 = 1000;

/// Why a client's next command is not run now.
#[derive(Default)]
pub enum Hold {
    #[default]
    None,
    /// Its command waits for busy shards. It is given to [`Client::run`] again after a letter.
    Shards { wait: KeyspaceWait, is_woken: bool },
    /// CLIENT PAUSE holds its command back.
    Pause,
    /// Its call waits for keys to be fed.
    Keys(Box<BlockedState>),
    /// Its command was run. The reply is sent when other clients have done what it asked of them.
    Others(Box<Withheld>),
    /// WAITAOF: its reply waits until its writes are durable.
    Durable(Box<AwaitedSync>),
    /// Another thread does something for its command: MIGRATE, SAVE, SHUTDOWN, a large SET. The
    /// command is given to [`Client::run`] again then.
    Job,
}

/// A reply that waits until what it says is so.
pub struct Withheld {
    reply: Vec<u8>,
    /// What has come for the client meanwhile: invalidations above all, which must not come before
    /// an old value that the reply carries.
    messages: Vec<SharedBytes>,
    pending: Arc<Pending>,
    deadline: UnixMillis,
}

/// A reply that waits until the journal is durable up to an offset.
pub struct AwaitedSync {
    pub offset: u64,
    pub deadline: Option<UnixMillis>,
    /// What is answered then, and what if the time is over first.
    pub reply: Vec<u8>,
    pub late_reply: Vec<u8>,
    /// By which the client hears of it.
    pub waker: Arc<dyn Wake>,
}

/// What to do with a client after something was done with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum After {
    /// Go on with its commands.
    Continue,
    /// It still waits.
    Wait,
    Close,
}

pub struct Client {
    pub session: Session,
    /// Letters that are being acted on: their senders wait until this turn is over.
    receipts: Vec<Receipt>,
    held: HeldOutput,
}

impl Client {
    /// A client that is known to others from now on. It may do everything, until its session
    /// is given a user.
    pub fn new(node: &Node, card: ClientCard, mailbox: Arc<dyn Mailbox>) -> Self {
        let card = Arc::new(card);
        card.attach(mailbox.clone());
        node.clients.add(card.clone());
        let session = Session::new(card, mailbox);
        Client { session, receipts: Vec::new(), held: HeldOutput::default() }
    }

    /// Whether its next command can be run, as far as it is known.
    #[inline]
    pub fn may_run(&self) -> bool {
        !self.session.is_closing
            && matches!(self.session.hold, Hold::None | Hold::Shards { is_woken: true, .. })
    }

    /// Whether it waits for anything.
    pub fn is_waiting(&self) -> bool {
        !matches!(self.session.hold, Hold::None)
    }

    /// Whether its command is under way, though it waits: it is carried out even if nobody reads
    /// the reply. A call that waits for keys, or behind a pause, ends with its client.
    pub fn is_under_way(&self) -> bool {
        match self.session.hold {
            // Of what is only written ahead nobody has seen anything yet.
            Hold::Pause => self.session.migration.is_some() || self.session.save.is_some(),
            Hold::Shards { .. } | Hold::Others(_) | Hold::Durable(_) => true,
            // What another thread has done for it may be over, and its call is yet to be given
            // again.
            _ => self.session.has_job(),
        }
    }

    /// Whether more of its requests may be read. While a large call is written ahead they stay with
    /// the sender: those behind it may be as large.
    pub fn may_read(&self) -> bool {
        self.session.ahead.is_none() || !matches!(self.session.hold, Hold::Job)
    }

    /// The moment when its wait is over, whatever happens.
    #[inline]
    pub fn deadline(&self) -> Option<UnixMillis> {
        match &self.session.hold {
            Hold::Keys(state) => state.deadline,
            Hold::Others(withheld) => Some(withheld.deadline),
            Hold::Durable(awaited) => awaited.deadline,
            Hold::None | Hold::Shards { .. } | Hold::Pause | Hold::Job => None,
        }
    }

    /// Runs one command. After [`Progress::Busy`] the same args are to be given again when
    /// [`Client::may_run`].
    pub fn run(&mut self, worker: &mut Worker, args: Args, out: &mut Output) -> Progress {
        let before = out.len();
        let session = &mut self.session;
        let runs = |session: &Session| session.card.commands.load(Ordering::Relaxed);
        let ran_before = worker.node.hot_keys.is_on().then(|| {
            worker.tally.begin_call();
            runs(session)
        });
        let progress = worker.run(session, args, &mut RespWriter::new(&mut *out, session.resp));
        if ran_before.is_some_and(|ran_before| ran_before != runs(session)) {
            let asker = (&*worker.node, session.db);
            note_keys(asker, &mut worker.tally, args, out.len() - before);
        }
        let progress = match progress {
            Progress::Done => self.finish_reply(worker, out, before),
            Progress::Busy | Progress::Blocked => {
                let is_silent = out.len() == before || self.gets_messages();
                debug_assert!(is_silent, "a command that waits has no reply");
                progress
            }
        };
        if !self.session.own_messages.is_empty() {
            self.send_own(out);
        }
        progress
    }

    /// Runs the first of these commands that can run as a batch; see [`Worker::run_batch`].
    pub fn run_batch<'a>(
        &mut self,
        worker: &mut Worker,
        commands: impl Iterator<Item = Args<'a>> + Clone,
        out: &mut Output,
    ) -> Ran {
        worker.run_batch(&mut self.session, commands, out)
    }

    /// Before output is sent: keeps back what shows something that is not durable yet, if that may
    /// not be shown.
    #[inline]
    pub fn hold_output(&mut self, node: &Node, out: &mut Output) {
        if self.session.depends_on != 0 {
            let offset = self.session.depends_on;
            let journal = node.keyspace.journal();
            self.held.update(journal, &self.session.mailbox, (out, offset));
        }
    }

    /// Whether everything that it was answered may be shown. If not, a letter will come.
    #[inline]
    pub fn may_show(&mut self, node: &Node) -> bool {
        let offset = self.session.depends_on;
        let journal = node.keyspace.journal();
        if offset == 0 || journal.is_released(offset) {
            return true;
        }
        let mailbox = self.session.mailbox.clone();
        journal.defer(offset, Box::new(move || mailbox.post_asleep(Letter::Durable)));
        false
    }

    /// A command was carried out; its reply starts at `before`.
    #[inline]
    fn finish_reply(&mut self, worker: &Worker, out: &mut Output, before: usize) -> Progress {
        if self.session.gate.has(Gate::REPLIES_OFF) {
            withhold_reply(&mut self.session, out, before);
        }
        if let Some(awaited) = self.session.awaited_sync.take() {
            return self.await_sync(worker, (out, before), awaited);
        }
        match self.session.pending.take() {
            Some(pending) if !pending.is_over() => {
                let deadline = UnixMillis(worker.now.0 + ACKNOWLEDGED_WITHIN_MS);
                let reply = out.bytes_from(before).into_owned();
                out.truncate(before);
                let withheld = Withheld { reply, messages: Vec::new(), pending, deadline };
                self.session.hold = Hold::Others(Box::new(withheld));
                Progress::Blocked
            }
            _ => Progress::Done,
        }
    }

    /// Sends the messages that its command has sent to it.
    #[cold]
    fn send_own(&mut self, out: &mut Output) {
        for bytes in std::mem::take(&mut self.session.own_messages) {
            self.push(bytes, out);
        }
    }

    /// Sends a message, behind a reply that is withheld.
    fn push(&mut self, bytes: SharedBytes, out: &mut Output) {
        if !self.session.takes_push(&bytes) {
            return;
        }
        match &mut self.session.hold {
            Hold::Others(withheld) => withheld.messages.push(bytes),
            _ => out.push_message(bytes),
        }
    }

    /// WAITAOF was carried out: it is answered at once, or when its client's writes are durable.
    #[cold]
    fn await_sync(
        &mut self,
        worker: &Worker,
        (out, before): (&mut Output, usize),
        awaited: Box<AwaitedSync>,
    ) -> Progress {
        if !worker.node.keyspace.journal().when_durable(awaited.offset, &awaited.waker) {
            return Progress::Done;
        }
        out.truncate(before);
        self.session.hold = Hold::Durable(awaited);
        Progress::Blocked
    }

    /// Something has become durable, or the log has ended.
    fn look_at_sync(&mut self, worker: &Worker, out: &mut Output) -> After {
        let Hold::Durable(awaited) = &self.session.hold else { return After::Wait };
        let journal = worker.node.keyspace.journal();
        // Another log may have begun by now.
        match journal.is_on() && journal.when_durable(awaited.offset, &awaited.waker) {
            true => After::Wait,
            false => self.end_sync(worker, out),
        }
    }

    /// Answers WAITAOF.
    fn end_sync(&mut self, worker: &Worker, out: &mut Output) -> After {
        let Hold::Durable(awaited) = std::mem::take(&mut self.session.hold) else {
            return After::Wait;
        };
        let journal = worker.node.keyspace.journal();
        if journal.durable() >= awaited.offset {
            out.extend_from_slice(&awaited.reply);
        } else if journal.is_on() {
            out.extend_from_slice(&awaited.late_reply);
        } else {
            let refusal = replication::log_is_off();
            worker.node.stats.count_error(&refusal.wire());
            out.extend_from_slice(&error_reply(self.session.resp, &refusal));
        }
        After::Continue
    }

    /// Acts on a letter.
    pub fn letter(&mut self, worker: &mut Worker, letter: Letter, out: &mut Output) -> After {
        match letter {
            Letter::Push(bytes) => {
                self.push(bytes, out);
                After::Wait
            }
            Letter::Served { waiter, reply } if self.waits_as(&waiter) => {
                self.end_blocked(worker, Ending::Answered(&reply), out)
            }
            Letter::Retry(waiter) if self.waits_as(&waiter) => self.retry(worker, out),
            Letter::Unblock { waiter, with_error, receipt } if self.waits_as(&waiter) => {
                self.receipts.extend(receipt);
                let error = GiveUp::UnblockedWithError;
                let why = if with_error { error } else { GiveUp::TimedOut };
                self.answer(worker, why, out)
            }
            Letter::Served { .. } | Letter::Retry(_) | Letter::Unblock { .. } => After::Wait,
            Letter::ShardFree => match &mut self.session.hold {
                Hold::Shards { is_woken, .. } => {
                    *is_woken = true;
                    After::Continue
                }
                Hold::Keys(state) if state.retry.is_some() => self.retry(worker, out),
                _ => After::Wait,
            },
            Letter::Resume(receipt) => {
                self.receipts.extend(receipt);
                match self.session.hold {
                    Hold::Pause => {
                        self.session.hold = Hold::None;
                        After::Continue
                    }
                    Hold::Keys(_) => self.retry(worker, out),
                    _ => After::Wait,
                }
            }
            Letter::Acknowledged => match &self.session.hold {
                Hold::Others(withheld) if withheld.pending.is_over() => self.release_reply(out),
                _ => After::Wait,
            },
            Letter::Durable => {
                self.held.durable();
                self.look_at_sync(worker, out)
            }
            Letter::JobOver => match self.session.hold {
                Hold::Job => {
                    self.session.hold = Hold::None;
                    After::Continue
                }
                _ => After::Wait,
            },
            Letter::Kill(receipt) => {
                self.receipts.extend(receipt);
                After::Close
            }
            Letter::Overdue => {
                self.log_overdue(worker);
                After::Close
            }
            Letter::SocketReady => After::Wait,
        }
    }

    fn log_overdue(&self, worker: &Worker) {
        let card = &self.session.card;
        let why = "more messages wait for the log than journal-backlog-max allows";
        let line = format!("Client id={} addr={} closed: {why}", card.id, card.address);
        worker.node.host.log(&line);
    }

    fn waits_as(&self, waiter: &Arc<russet_engine::waiting::Waiter>) -> bool {
        self.session.blocked().is_some_and(|state| Arc::ptr_eq(&state.waiter, waiter))
    }

    /// Tries a blocked call again, with all its own locks.
    fn retry(&mut self, worker: &mut Worker, out: &mut Output) -> After {
        let Some(state) = self.session.blocked() else { return After::Wait };
        blocking::begin_retry(state);
        let args = state.args.clone();
        worker.begin_batch();
        let progress = self.run(worker, args.as_args(), out);
        worker.end_batch();
        match progress {
            Progress::Done => After::Continue,
            Progress::Busy | Progress::Blocked => After::Wait,
        }
    }

    /// The time is over, or a second has passed.
    pub fn tick(&mut self, worker: &mut Worker, out: &mut Output) -> After {
        if self.deadline().is_none_or(|at| at > worker.now) {
            return After::Wait;
        }
        match self.session.hold {
            Hold::Keys(_) => self.give_up(worker, GiveUp::TimedOut, out),
            Hold::Others(_) => self.release_reply(out),
            Hold::Durable(_) => self.end_sync(worker, out),
            Hold::None | Hold::Shards { .. } | Hold::Pause | Hold::Job => After::Wait,
        }
    }

    /// Ends a wait for keys from the client's own side, unless a writer has served it: then the
    /// reply is in the mail.
    pub fn give_up(&mut self, worker: &mut Worker, why: GiveUp, out: &mut Output) -> After {
        let is_ours = self.session.blocked().is_some_and(|state| blocking::claim(&state.waiter));
        if is_ours { self.answer(worker, why, out) } else { After::Wait }
    }

    /// Answers a wait for keys that has been claimed.
    fn answer(&mut self, worker: &mut Worker, why: GiveUp, out: &mut Output) -> After {
        let Some(state) = self.session.blocked() else { return After::Wait };
        let mut reply = Vec::new();
        blocking::give_up_reply(state, why, &mut RespWriter::new(&mut reply, self.session.resp));
        let ending = match why {
            GiveUp::UnblockedWithError => Ending::Unblocked(&reply),
            GiveUp::TimedOut => Ending::TimedOut(&reply),
        };
        self.end_blocked(worker, ending, out)
    }

    fn end_blocked(&mut self, worker: &mut Worker, ending: Ending, out: &mut Output) -> After {
        let Hold::Keys(state) = std::mem::take(&mut self.session.hold) else {
            return After::Wait;
        };
        worker.count_unblocked(&mut self.session, &state, ending);
        let before = out.len();
        out.extend_from_slice(ending.reply());
        match self.finish_reply(worker, out, before) {
            Progress::Done => After::Continue,
            Progress::Busy | Progress::Blocked => After::Wait,
        }
    }

    fn release_reply(&mut self, out: &mut Output) -> After {
        if let Hold::Others(withheld) = std::mem::take(&mut self.session.hold) {
            out.extend_from_slice(&withheld.reply);
            withheld.messages.into_iter().for_each(|bytes| out.push_message(bytes));
        }
        After::Continue
    }

    /// What its letters asked for has been done.
    #[inline]
    pub fn end_turn(&mut self) {
        self.receipts.clear();
    }

    /// Whether letters to its mailbox may be on their way, so that it must keep it.
    pub fn may_get_letters(&self) -> bool {
        self.gets_messages()
            || !matches!(self.session.hold, Hold::None)
            || !self.held.is_empty()
            || self.session.card.has_flag(ClientFlags::PAUSED)
    }

    /// Whether it is sent what no command of its own has asked for.
    fn gets_messages(&self) -> bool {
        self.session.subscriptions.count_all() > 0
            || self.session.tracking.is_some()
            || self.session.card.is_redirect_target()
            || self.session.card.has_flag(ClientFlags::MONITOR)
    }

    /// Its letters go to another mailbox from now on.
    pub fn moved(&mut self, mailbox: Arc<dyn Mailbox>) {
        self.session.card.attach(mailbox.clone());
        self.session.mailbox = mailbox;
        // A letter that was on its way to the old address is lost; this is the only kind that a
        // client which waits for nothing can get.
        if self.session.card.is_killed() {
            self.session.is_closing = true;
        }
        // And invalidations, if another client has redirected them to it just now.
        if self.session.card.is_redirect_target() {
            let all = tracking::invalidation(self.session.resp, None);
            self.session.mailbox.post(Letter::Push(all));
        }
    }

    /// Ends its wait without an answer: whoever called is no longer interested, but the client goes
    /// on. A command that has not run will not; the reply of one that has is dropped.
    pub fn cancel(&mut self) {
        if let Hold::Keys(state) = std::mem::take(&mut self.session.hold) {
            blocking::claim(&state.waiter);
        }
        self.session.migration = None;
        self.session.save = None;
        self.session.beside = None;
        self.session.ahead = None;
    }

    /// Gives up a transaction that is open, and what it watches.
    pub fn discard(&mut self) {
        transactions::discard_state(&mut self.session);
    }

    /// The client is gone: nobody serves, watches or publishes for it any more.
    pub fn disconnect(&mut self, node: &Node) {
        self.cancel();
        connection::disconnect(node, &mut self.session);
    }
}

/// For HOTKEYS: what a call that has run alone cost its keys.
#[cold]
fn note_keys(asker: (&Node, usize), tally: &mut Tally, args: Args, reply_bytes: usize) {
    if let Ok(command) = asker.0.resolve(args) {
        let net_bytes = (args.extent_bytes() + reply_bytes) as u64;
        tally.note_keys(asker, (command, args), net_bytes);
    }
}

/// CLIENT REPLY: the reply of a command that was carried out is thrown away.
/// COMPAT: but not the confirmations of subscriptions, which are pushed like their messages
/// (tests/wire/pubsub/reply_off.wire).
#[cold]
fn withhold_reply(session: &mut Session, out: &mut Output, before: usize) {
    if !pubsub::is_confirmation(session, &out.bytes_from(before)) {
        out.truncate(before);
    }
    match session.reply_mode {
        ReplyMode::SkipNext => session.set_reply_mode(ReplyMode::SkipThis),
        ReplyMode::SkipThis => session.set_reply_mode(ReplyMode::On),
        ReplyMode::On | ReplyMode::Off => {}
    }
}
