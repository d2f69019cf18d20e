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
use crate::call::mail::{Letter, Mailbox, Pending, Receipt};
use crate::call::session::{Gate, ReplyMode, Session};
use crate::groups::connection;
use crate::groups::pubsub;
use crate::groups::transactions;
use crate::node::Node;
use crate::node::clients::{ClientCard, ClientFlags};
use russet_base::{Args, UnixMillis};
use russet_engine::keyspace::KeyspaceWait;
use russet_protocol::{Output, RespWriter};
use std::sync::Arc;

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
}

/// A reply that waits until what it says is so.
pub struct Withheld {
    reply: Vec<u8>,
    pending: Arc<Pending>,
    deadline: UnixMillis,
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
}

impl Client {
    /// A client that is known to others from now on.
    pub fn new(node: &Node, card: ClientCard, mailbox: Arc<dyn Mailbox>, needs_auth: bool) -> Self {
        let card = Arc::new(card);
        card.attach(mailbox.clone());
        node.clients.add(card.clone());
        Client { session: Session::new(card, mailbox, needs_auth), receipts: Vec::new() }
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
        matches!(self.session.hold, Hold::Shards { .. } | Hold::Others(_))
    }

    /// The moment when its wait is over, whatever happens.
    #[inline]
    pub fn deadline(&self) -> Option<UnixMillis> {
        match &self.session.hold {
            Hold::Keys(state) => state.deadline,
            Hold::Others(withheld) => Some(withheld.deadline),
            Hold::None | Hold::Shards { .. } | Hold::Pause => None,
        }
    }

    /// Runs one command. After [`Progress::Busy`] the same args are to be given again when
    /// [`Client::may_run`].
    pub fn run(&mut self, worker: &mut Worker, args: Args, out: &mut Output) -> Progress {
        let before = out.len();
        let session = &mut self.session;
        let progress = worker.run(session, args, &mut RespWriter::new(&mut *out, session.resp));
        let (node, reply_bytes) = (&worker.node, out.len() - before);
        node.large_requests.note(node, session, args, args.extent_bytes() as u64);
        node.large_replies.note(node, session, args, reply_bytes as u64);
        if progress == Progress::Done {
            self.finish_reply(worker, out, before)
        } else {
            debug_assert_eq!(reply_bytes, 0, "a command that waits has said nothing");
            progress
        }
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

    /// A command was carried out; its reply starts at `before`.
    #[inline]
    fn finish_reply(&mut self, worker: &Worker, out: &mut Output, before: usize) -> Progress {
        if self.session.gate.has(Gate::REPLIES_OFF) {
            withhold_reply(&mut self.session, out, before);
        }
        match self.session.pending.take() {
            Some(pending) if !pending.is_over() => {
                let deadline = UnixMillis(worker.now.0 + ACKNOWLEDGED_WITHIN_MS);
                let reply = out.bytes_from(before).into_owned();
                out.truncate(before);
                let withheld = Withheld { reply, pending, deadline };
                self.session.hold = Hold::Others(Box::new(withheld));
                Progress::Blocked
            }
            _ => Progress::Done,
        }
    }

    /// Acts on a letter.
    pub fn letter(&mut self, worker: &mut Worker, letter: Letter, out: &mut Output) -> After {
        match letter {
            Letter::Push(bytes) => {
                if self.session.takes_push(&bytes) {
                    out.push_shared(bytes);
                }
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
            Letter::Kill(receipt) => {
                self.receipts.extend(receipt);
                After::Close
            }
            Letter::SocketReady => After::Wait,
        }
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
            Hold::None | Hold::Shards { .. } | Hold::Pause => After::Wait,
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
        worker.count_unblocked(&self.session, &state, ending);
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
        self.session.subscriptions.count_all() > 0
            || !matches!(self.session.hold, Hold::None)
            || self.session.card.has_flag(ClientFlags::MONITOR)
            || self.session.card.has_flag(ClientFlags::PAUSED)
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
    }

    /// Ends its wait without an answer: whoever called is no longer interested, but the client goes
    /// on. A command that has not run will not; the reply of one that has is dropped.
    pub fn cancel(&mut self) {
        if let Hold::Keys(state) = std::mem::take(&mut self.session.hold) {
            blocking::claim(&state.waiter);
        }
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
