//! What connections mean to Russet: clients that run commands, within limits on what they hold.

use crate::event_loop::{Address, Buffers, Peer, Service};
use russet_base::Args;
use russet_base::limits::{ARGUMENTS_MAX, INLINE_BYTES_MAX, OUTPUT_BYTES_MAX};
use russet_commands::call::batch::Ran;
use russet_commands::call::client::{After, Client};
use russet_commands::call::dispatch::{Progress, Worker};
use russet_commands::call::mail::Letter;
use russet_commands::node::Node;
use russet_commands::node::clients::{ClientCard, ClientFlags};
use russet_commands::node::config::{ClientClass, Directive};
use russet_protocol::{Output, RequestLimits};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Replies up to this size are sent whatever the limits: Redis keeps so much in a buffer that it
/// does not count.
const REPLY_BYTES_FREE: usize = 16 * 1024;

pub struct RussetService {
    pub node: Arc<Node>,
}

/// A client, and what the output limits need to remember.
pub struct Connected {
    pub client: Client,
    /// Since when its output has been over the soft limit.
    soft_limit_since_ms: Option<i64>,
    /// What its card says that it holds.
    buffers: Buffers,
}

impl Connected {
    /// Puts what it holds on its card, which an idle client's turn leaves as it is.
    #[inline]
    fn note(&mut self, buffers: Buffers, node: &Node) {
        let card = &self.client.session.card;
        if self.buffers != buffers || card.is_uncounted() {
            self.buffers = buffers;
            let free = buffers.input_capacity_bytes - buffers.input_bytes;
            card.query_bytes.store(buffers.input_bytes as u64, Ordering::Relaxed);
            card.query_free_bytes.store(free as u64, Ordering::Relaxed);
            card.output_bytes.store(buffers.output_bytes as u64, Ordering::Relaxed);
            let capacity = buffers.output_capacity_bytes as u64;
            card.output_capacity_bytes.store(capacity, Ordering::Relaxed);
            card.count_memory(node.keyspace.used_memory());
        }
    }
}

impl RussetService {
    /// A client that asks for more at once than it may hold is cut off.
    #[inline]
    fn check_output(&self, connected: &mut Connected, output_bytes: usize) {
        if output_bytes > REPLY_BYTES_FREE && !self.is_within_hard_limit(connected, output_bytes) {
            self.node.stats.output_limit_disconnections.fetch_add(1, Ordering::Relaxed);
            connected.client.session.cut_off();
        }
    }

    fn is_within_hard_limit(&self, connected: &Connected, output_bytes: usize) -> bool {
        // Who has not logged in gets no more than a few refusals.
        if !connected.client.session.is_authenticated() {
            return false;
        }
        let hard_bytes = self.node.config.output_buffer_limit(class_of(connected)).hard_bytes;
        output_bytes as u64 <= bounded(hard_bytes)
    }
}

fn class_of(connected: &Connected) -> ClientClass {
    let is_pubsub = connected.client.session.subscriptions.count_all() > 0;
    if is_pubsub { ClientClass::Pubsub } else { ClientClass::Normal }
}

/// DIFFERS: no limit (0) still means one: a client that never reads can't take all the memory.
fn bounded(hard_bytes: u64) -> u64 {
    if hard_bytes == 0 { OUTPUT_BYTES_MAX } else { hard_bytes }
}

impl Service for RussetService {
    type Worker = Worker;
    type Client = Connected;

    fn worker(self: &Arc<Self>) -> Worker {
        Worker::new(self.node.clone())
    }

    fn connect(&self, peer: &Peer, address: Address<Self>, out: &mut Output) -> Option<Connected> {
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
        let card = ClientCard::new(id, address_text, local, peer.fd, self.now_ms());
        card.set_flag(ClientFlags::UNIX_SOCKET, peer.is_unix);
        let client = Client::new(&self.node, card, Arc::new(address), needs_auth);
        self.node.stats.connections.fetch_add(1, Ordering::Relaxed);
        let buffers = Buffers::default();
        Some(Connected { client, soft_limit_since_ms: None, buffers })
    }

    fn disconnect(&self, _worker: &mut Worker, connected: &mut Connected) {
        connected.client.disconnect(&self.node);
    }

    fn limits(&self, connected: &Connected) -> RequestLimits {
        RequestLimits {
            bulk_bytes_max: self.node.config.int(Directive::ProtoMaxBulkLen) as usize,
            arguments_max: ARGUMENTS_MAX,
            inline_bytes_max: INLINE_BYTES_MAX,
            authenticated: connected.client.session.is_authenticated(),
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

    fn begin_turn(&self, worker: &mut Worker, connected: &mut Connected) {
        worker.begin_batch();
        connected.client.session.card.last_ms.store(worker.now.0, Ordering::Relaxed);
    }

    fn end_turn(&self, worker: &mut Worker, _connected: &mut Connected) {
        worker.end_batch();
    }

    fn sent(&self, worker: &mut Worker, connected: &mut Connected, output_bytes: usize) {
        let bytes = output_bytes as u64;
        worker.stats.output_bytes.add(bytes);
        worker.stats.writes.add(1);
        let total = &connected.client.session.card.output_bytes_total;
        total.store(total.load(Ordering::Relaxed) + bytes, Ordering::Relaxed);
        connected.client.session.card.last_ms.store(worker.now.0, Ordering::Relaxed);
    }

    fn received(&self, worker: &mut Worker, connected: &mut Connected, bytes: usize) {
        worker.stats.input_bytes.add(bytes as u64);
        worker.stats.reads.add(1);
        let total = &connected.client.session.card.input_bytes_total;
        total.store(total.load(Ordering::Relaxed) + bytes as u64, Ordering::Relaxed);
        connected.client.session.card.last_ms.store(worker.now.0, Ordering::Relaxed);
    }

    fn expect(&self, worker: &mut Worker, connected: &mut Connected, args: Args) {
        worker.expect(&mut connected.client.session, args);
    }

    fn fetch_expected(&self, worker: &mut Worker) {
        worker.fetch_expected();
    }

    fn run_batch<'a>(
        &self,
        worker: &mut Worker,
        connected: &mut Connected,
        commands: impl Iterator<Item = Args<'a>> + Clone,
        out: &mut Output,
    ) -> Ran {
        let ran = connected.client.run_batch(worker, commands, out);
        self.check_output(connected, out.len());
        ran
    }

    fn run(
        &self,
        worker: &mut Worker,
        connected: &mut Connected,
        args: Args,
        out: &mut Output,
    ) -> Progress {
        let progress = connected.client.run(worker, args, out);
        self.check_output(connected, out.len());
        progress
    }

    fn may_run(&self, connected: &Connected) -> bool {
        connected.client.may_run()
    }

    fn is_under_way(&self, connected: &Connected) -> bool {
        connected.client.is_under_way()
    }

    fn turn_over(&self, connected: &mut Connected) {
        connected.client.end_turn();
    }

    fn is_closing(&self, connected: &Connected) -> bool {
        connected.client.session.is_closing
    }

    fn is_cut_off(&self, connected: &Connected) -> bool {
        connected.client.session.is_cut_off
    }

    fn may_hold_input(&self, _connected: &Connected, input_bytes: usize) -> bool {
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
        connected: &mut Connected,
        letter: Letter,
        out: &mut Output,
    ) -> After {
        connected.client.letter(worker, letter, out)
    }

    fn may_move(&self, connected: &Connected) -> bool {
        !connected.client.may_get_letters()
    }

    fn moved(&self, connected: &mut Connected, address: Address<Self>) {
        connected.client.moved(Arc::new(address));
    }

    fn deadline_ms(&self, connected: &Connected) -> Option<i64> {
        connected.client.deadline().map(|at| at.0)
    }

    fn tick(
        &self,
        worker: &mut Worker,
        connected: &mut Connected,
        buffers: Buffers,
        out: &mut Output,
    ) -> After {
        worker.now = self.node.clock.now();
        let after = connected.client.tick(worker, out);
        if after != After::Wait {
            return after;
        }
        let session = &connected.client.session;
        let idle_seconds = self.node.config.int(Directive::Timeout);
        let is_exempt = connected.client.is_waiting()
            || session.subscriptions.count_all() > 0
            || session.card.has_flag(ClientFlags::MONITOR);
        if idle_seconds > 0 && !is_exempt {
            let idle_ms = worker.now.0 - session.card.last_ms.load(Ordering::Relaxed);
            if idle_ms > idle_seconds.saturating_mul(1000) {
                return After::Close;
            }
        }
        if !self.may_hold_output(connected, buffers) { After::Close } else { After::Wait }
    }

    fn may_hold_output(&self, connected: &mut Connected, buffers: Buffers) -> bool {
        connected.note(buffers, &self.node);
        let output_bytes = buffers.output_bytes;
        if output_bytes == 0 {
            connected.soft_limit_since_ms = None;
            return true;
        }
        let limit = self.node.config.output_buffer_limit(class_of(connected));
        let bytes = output_bytes as u64;
        let mut is_over = bytes > bounded(limit.hard_bytes);
        if limit.soft_bytes > 0 && bytes > limit.soft_bytes {
            let now = self.now_ms();
            let since = *connected.soft_limit_since_ms.get_or_insert(now);
            is_over |= now - since > limit.soft_seconds as i64 * 1000;
        } else {
            connected.soft_limit_since_ms = None;
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
