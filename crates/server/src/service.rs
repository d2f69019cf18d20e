//! What connections mean to Russet: sessions that run commands.

use crate::event_loop::{Address, After, Buffers, Peer, Service};
use russet_base::limits::{ARGUMENTS_MAX, INLINE_BYTES_MAX, OUTPUT_BYTES_MAX};
use russet_base::{Args, UnixMillis};
use russet_commands::blocking::{self, GiveUp};
use russet_commands::clients::{ClientCard, ClientFlags};
use russet_commands::config::{ClientClass, Directive};
use russet_commands::connection;
use russet_commands::dispatch::{Ending, Progress, Worker};
use russet_commands::mail::Letter;
use russet_commands::node::Node;
use russet_commands::pubsub;
use russet_commands::session::{Gate, ReplyMode, Session};
use russet_commands::together::Ran;
use russet_protocol::{Output, RequestLimits, RespWriter};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Replies up to this size are sent whatever the limits: Redis keeps so much in a buffer that it
/// does not count.
const REPLY_BYTES_FREE: usize = 16 * 1024;

pub struct RussetService {
    pub node: Arc<Node>,
}

/// A connection's session, and what the output limits need to remember.
pub struct Client {
    pub session: Session,
    /// Since when its output has been over the soft limit.
    soft_limit_since_ms: Option<i64>,
    /// It asked for more than its hard limit allows at once: nothing more is sent to it.
    is_cut_off: bool,
    /// What its card says that it holds.
    buffers: Buffers,
}

impl Client {
    /// Puts what it holds on its card, which an idle client's turn leaves as it is.
    #[inline]
    fn note(&mut self, buffers: Buffers) {
        if self.buffers != buffers {
            self.buffers = buffers;
            let card = &self.session.card;
            let free = buffers.input_capacity_bytes - buffers.input_bytes;
            card.query_bytes.store(buffers.input_bytes as u64, Ordering::Relaxed);
            card.query_free_bytes.store(free as u64, Ordering::Relaxed);
            card.output_bytes.store(buffers.output_bytes as u64, Ordering::Relaxed);
            let capacity = buffers.output_capacity_bytes as u64;
            card.output_capacity_bytes.store(capacity, Ordering::Relaxed);
        }
    }
}

impl RussetService {
    fn writer<'a>(session: &Session, out: &'a mut Output) -> RespWriter<'a> {
        RespWriter::new(out, session.resp)
    }

    /// Tries a blocked call again, with all its own locks.
    fn retry(&self, worker: &mut Worker, session: &mut Session, out: &mut Output) -> After {
        let Some(state) = &session.blocked else {
            return After::Wait;
        };
        let args = state.args.clone();
        worker.begin_batch();
        let progress = self.run_in(worker, session, args.as_args(), out);
        worker.end_batch();
        match progress {
            Progress::Done => self.unblocked(session),
            Progress::Busy | Progress::Blocked => After::Wait,
        }
    }

    fn unblocked(&self, session: &mut Session) -> After {
        session.blocked = None;
        session.card.set_flag(ClientFlags::BLOCKED, false);
        self.node.stats.blocked_clients.fetch_sub(1, Ordering::Relaxed);
        After::Continue
    }

    /// Ends a wait from its own side, unless a writer has served it: then the reply is in the mail.
    fn give_up(
        &self,
        worker: &mut Worker,
        session: &mut Session,
        why: GiveUp,
        out: &mut Output,
    ) -> After {
        let is_ours = session.blocked.as_ref().is_some_and(|state| state.waiter.claim());
        if is_ours { self.answer(worker, session, why, out) } else { After::Wait }
    }

    /// The last words of a wait that has been claimed.
    fn answer(
        &self,
        worker: &mut Worker,
        session: &mut Session,
        why: GiveUp,
        out: &mut Output,
    ) -> After {
        let mut writer = Self::writer(session, out);
        let Some(state) = blocking::answer(session, why, &mut writer) else {
            return After::Wait;
        };
        let ending = match why {
            GiveUp::UnblockedWithError => Ending::Unblocked,
            GiveUp::TimedOut | GiveUp::Disconnected => Ending::TimedOut,
        };
        worker.count_unblocked(session, &state, ending);
        self.unblocked(session)
    }

    /// A client that asks for more at once than it may hold is cut off.
    #[inline]
    fn check_output(&self, client: &mut Client, output_bytes: usize) {
        if output_bytes > REPLY_BYTES_FREE && !self.is_within_hard_limit(client, output_bytes) {
            self.node.stats.output_limit_disconnections.fetch_add(1, Ordering::Relaxed);
            client.is_cut_off = true;
            client.session.is_closing = true;
        }
    }

    fn is_within_hard_limit(&self, client: &Client, output_bytes: usize) -> bool {
        // Who has not logged in is owed no more than a few refusals.
        if !client.session.is_authenticated() {
            return false;
        }
        let hard_bytes = self.node.config.output_buffer_limit(class_of(client)).hard_bytes;
        output_bytes as u64 <= bounded(hard_bytes)
    }

    fn run_in(
        &self,
        worker: &mut Worker,
        session: &mut Session,
        args: Args,
        out: &mut Output,
    ) -> Progress {
        let before = out.len();
        let mut writer = Self::writer(session, out);
        let progress = worker.run(session, args, &mut writer);
        let (node, reply_bytes) = (&self.node, out.len() - before);
        node.large_requests.note(node, session, args, args.extent_bytes() as u64);
        node.large_replies.note(node, session, args, reply_bytes as u64);
        if session.gate.has(Gate::REPLIES_OFF) {
            withhold_reply(session, out, before, progress);
        }
        progress
    }
}

fn class_of(client: &Client) -> ClientClass {
    let is_pubsub = client.session.subscriptions.count_all() > 0;
    if is_pubsub { ClientClass::Pubsub } else { ClientClass::Normal }
}

/// DIFFERS: no limit (0) still means one: a client that never reads can't take all the memory.
fn bounded(hard_bytes: u64) -> u64 {
    if hard_bytes == 0 { OUTPUT_BYTES_MAX } else { hard_bytes }
}

/// CLIENT REPLY: the replies of a command that was run are thrown away.
/// COMPAT: but not the confirmations of subscriptions, which are pushed like their messages
/// (tests/wire/pubsub/reply_off.wire).
fn withhold_reply(session: &mut Session, out: &mut Output, before: usize, progress: Progress) {
    if !pubsub::is_confirmation(session, &out.bytes_from(before)) {
        out.truncate(before);
    }
    if progress != Progress::Done {
        return;
    }
    match session.reply_mode {
        ReplyMode::SkipNext => session.set_reply_mode(ReplyMode::SkipThis),
        ReplyMode::SkipThis => session.set_reply_mode(ReplyMode::On),
        ReplyMode::On | ReplyMode::Off => {}
    }
}

impl Service for RussetService {
    type Worker = Worker;
    type Client = Client;

    fn worker(self: &Arc<Self>) -> Worker {
        Worker::new(self.node.clone())
    }

    fn connect(&self, peer: &Peer, address: Address<Self>, out: &mut Output) -> Option<Client> {
        let config = &self.node.config;
        if self.node.clients.len() as i64 >= config.int(Directive::MaxClients) {
            self.node.stats.rejected_connections.fetch_add(1, Ordering::Relaxed);
            out.extend_from_slice(b"-ERR max number of clients reached\r\n");
            return None;
        }
        let needs_auth = !config.text(Directive::RequirePass).is_empty();
        if config.flag(Directive::ProtectedMode) && !needs_auth && !peer.is_loopback {
            out.extend_from_slice(
                b"-DENIED Russet is running in protected mode: it has no password and takes \
                  connections from this machine only. Set requirepass, or protected-mode no.\r\n",
            );
            return None;
        }
        let (address_text, local) = (peer.address.clone(), peer.local_address.clone());
        let id = self.node.clients.next_id();
        let card = Arc::new(ClientCard::new(id, address_text, local, peer.fd, self.now_ms()));
        card.set_flag(ClientFlags::UNIX_SOCKET, peer.is_unix);
        let mailbox = Arc::new(address);
        card.attach(mailbox.clone());
        self.node.clients.add(card.clone());
        self.node.stats.connections.fetch_add(1, Ordering::Relaxed);
        let session = Session::new(card, mailbox, needs_auth);
        let buffers = Buffers::default();
        Some(Client { session, soft_limit_since_ms: None, is_cut_off: false, buffers })
    }

    fn disconnect(&self, _worker: &mut Worker, client: &mut Client) {
        if client.session.blocked.is_some() {
            self.node.stats.blocked_clients.fetch_sub(1, Ordering::Relaxed);
        }
        connection::disconnect(&self.node, &mut client.session);
    }

    fn limits(&self, client: &Client) -> RequestLimits {
        RequestLimits {
            bulk_bytes_max: self.node.config.int(Directive::ProtoMaxBulkLen) as usize,
            arguments_max: ARGUMENTS_MAX,
            inline_bytes_max: INLINE_BYTES_MAX,
            authenticated: client.session.is_authenticated(),
        }
    }

    fn begin_round(&self, worker: &mut Worker) {
        worker.read_clock();
    }

    fn round_ms(&self, worker: &Worker) -> i64 {
        worker.now.0
    }

    fn end_round(&self, worker: &mut Worker, micros: u64) {
        worker.stats.count_round(micros);
    }

    fn begin_turn(&self, worker: &mut Worker, client: &mut Client) {
        worker.begin_batch();
        client.session.card.last_ms.store(worker.now.0, Ordering::Relaxed);
    }

    fn end_turn(&self, worker: &mut Worker, _client: &mut Client) {
        worker.end_batch();
    }

    fn sent(&self, worker: &mut Worker, client: &mut Client, output_bytes: usize) {
        let bytes = output_bytes as u64;
        worker.stats.output_bytes.add(bytes);
        worker.stats.writes.add(1);
        let total = &client.session.card.output_bytes_total;
        total.store(total.load(Ordering::Relaxed) + bytes, Ordering::Relaxed);
    }

    fn received(&self, worker: &mut Worker, client: &mut Client, bytes: usize) {
        worker.stats.input_bytes.add(bytes as u64);
        worker.stats.reads.add(1);
        let total = &client.session.card.input_bytes_total;
        total.store(total.load(Ordering::Relaxed) + bytes as u64, Ordering::Relaxed);
    }

    fn expect(&self, worker: &mut Worker, client: &Client, args: Args) {
        worker.expect(&client.session, args);
    }

    fn fetch_expected(&self, worker: &mut Worker) {
        worker.fetch_expected();
    }

    fn run_together<'a>(
        &self,
        worker: &mut Worker,
        client: &mut Client,
        commands: impl Iterator<Item = Args<'a>> + Clone,
        out: &mut Output,
    ) -> Ran {
        let ran = worker.run_together(&mut client.session, commands, &mut *out);
        self.check_output(client, out.len());
        ran
    }

    fn run(
        &self,
        worker: &mut Worker,
        client: &mut Client,
        args: Args,
        out: &mut Output,
    ) -> Progress {
        let progress = self.run_in(worker, &mut client.session, args, out);
        self.check_output(client, out.len());
        if progress == Progress::Blocked {
            client.session.card.set_flag(ClientFlags::BLOCKED, true);
            self.node.stats.blocked_clients.fetch_add(1, Ordering::Relaxed);
        }
        progress
    }

    fn is_closing(&self, client: &Client) -> bool {
        client.session.is_closing
    }

    fn is_cut_off(&self, client: &Client) -> bool {
        client.is_cut_off
    }

    fn may_hold_input(&self, _client: &Client, input_bytes: usize) -> bool {
        let bytes_max = self.node.config.int(Directive::ClientQueryBufferLimit);
        let is_within = i64::try_from(input_bytes).is_ok_and(|bytes| bytes <= bytes_max);
        if !is_within {
            self.node.stats.query_limit_disconnections.fetch_add(1, Ordering::Relaxed);
        }
        is_within
    }

    fn letter(
        &self,
        worker: &mut Worker,
        client: &mut Client,
        letter: Letter,
        out: &mut Output,
    ) -> After {
        let session = &mut client.session;
        let is_blocked = session.blocked.is_some();
        match letter {
            Letter::Push(bytes) => {
                if session.takes_push(&bytes) {
                    out.push_shared(bytes);
                }
                After::Wait
            }
            Letter::Served { waiter, reply } => match &session.blocked {
                Some(state) if Arc::ptr_eq(&state.waiter, &waiter) => {
                    if session.reply_mode == ReplyMode::On {
                        out.extend_from_slice(&reply);
                    }
                    worker.count_unblocked(session, state, Ending::Answered(&reply));
                    self.unblocked(session)
                }
                _ => After::Wait,
            },
            Letter::Retry(waiter) => match &session.blocked {
                Some(state) if Arc::ptr_eq(&state.waiter, &waiter) => {
                    self.retry(worker, session, out)
                }
                _ => After::Wait,
            },
            Letter::ShardFree if is_blocked => self.retry(worker, session, out),
            Letter::ShardFree | Letter::Resume if !is_blocked => After::Continue,
            Letter::Unblock { waiter, with_error } => match &session.blocked {
                Some(state) if Arc::ptr_eq(&state.waiter, &waiter) => {
                    let why = match with_error {
                        true => GiveUp::UnblockedWithError,
                        false => GiveUp::TimedOut,
                    };
                    self.answer(worker, session, why, out)
                }
                _ => After::Wait,
            },
            Letter::Kill => After::Close,
            Letter::ShardFree | Letter::Resume | Letter::SocketReady => After::Wait,
        }
    }

    fn may_move(&self, client: &Client) -> bool {
        let session = &client.session;
        session.subscriptions.count_all() == 0
            && session.blocked.is_none()
            && session.wait.is_none()
            && !session.card.has_flag(ClientFlags::MONITOR)
    }

    fn moved(&self, client: &mut Client, address: Address<Self>) {
        let mailbox = Arc::new(address);
        client.session.card.attach(mailbox.clone());
        client.session.mailbox = mailbox;
        // A letter that was on its way to the old address is lost; this is the only kind that a
        // client which waits for nothing can get.
        if client.session.card.is_killed.load(Ordering::Relaxed) {
            client.session.is_closing = true;
        }
    }

    fn deadline_ms(&self, client: &Client) -> Option<i64> {
        client.session.blocked.as_ref()?.deadline.map(|at| at.0)
    }

    fn tick(
        &self,
        worker: &mut Worker,
        client: &mut Client,
        buffers: Buffers,
        out: &mut Output,
    ) -> After {
        worker.now = self.node.clock.now();
        let now = worker.now;
        let is_due = |at: UnixMillis| at <= now;
        if client.session.blocked.as_ref().is_some_and(|state| state.deadline.is_some_and(is_due)) {
            return self.give_up(worker, &mut client.session, GiveUp::TimedOut, out);
        }
        let card = &client.session.card;
        let idle_seconds = self.node.config.int(Directive::Timeout);
        let is_exempt = client.session.blocked.is_some()
            || client.session.subscriptions.count_all() > 0
            || card.has_flag(ClientFlags::MONITOR);
        if idle_seconds > 0 && !is_exempt {
            let idle_ms = now.0 - card.last_ms.load(Ordering::Relaxed);
            if idle_ms > idle_seconds.saturating_mul(1000) {
                return After::Close;
            }
        }
        if !self.may_hold_output(client, buffers) { After::Close } else { After::Wait }
    }

    fn may_hold_output(&self, client: &mut Client, buffers: Buffers) -> bool {
        client.note(buffers);
        let output_bytes = buffers.output_bytes;
        if output_bytes == 0 {
            client.soft_limit_since_ms = None;
            return true;
        }
        let limit = self.node.config.output_buffer_limit(class_of(client));
        let bytes = output_bytes as u64;
        let mut is_over = bytes > bounded(limit.hard_bytes);
        if limit.soft_bytes > 0 && bytes > limit.soft_bytes {
            let now = self.now_ms();
            let since = *client.soft_limit_since_ms.get_or_insert(now);
            is_over |= now - since > limit.soft_seconds as i64 * 1000;
        } else {
            client.soft_limit_since_ms = None;
        }
        if is_over {
            self.node.stats.output_limit_disconnections.fetch_add(1, Ordering::Relaxed);
        }
        !is_over
    }

    fn now_ms(&self) -> i64 {
        self.node.clock.now().0
    }

    fn look_ahead(&self) {
        self.node.keyspace.prepare_memory();
    }
}
