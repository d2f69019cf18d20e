//! What connections mean to Russet: clients that run commands, within limits on what they hold.

use crate::event_loop::{Address, Buffers, Peer, Service};
use crate::log::{Level, Log};
use crate::open_files::LOCAL_CLIENTS_EXTRA;
use crate::tls;
use russet_base::Args;
use russet_base::limits::{ARGUMENTS_MAX, INLINE_BYTES_MAX, OUTPUT_BYTES_MAX, REQUEST_BYTES_MAX};
use russet_commands::call::batch::Ran;
use russet_commands::call::client::{After, Client};
use russet_commands::call::dispatch::{Progress, Worker};
use russet_commands::call::mail::Letter;
use russet_commands::node::Node;
use russet_commands::node::clients::{ClientCard, ClientFlags};
use russet_commands::node::config::{ClientClass, Config, Directive};
use russet_protocol::{Output, RequestLimits};
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Replies up to this size are sent whatever the limits: Redis keeps so much in a buffer that it
/// does not count.
const REPLY_BYTES_FREE: usize = 16 * 1024;
/// Reads of this size are of one long argument as a rule, and there may be many in one turn.
const LONG_READ_BYTES: usize = 256 * 1024;

pub struct RussetService {
    pub node: Arc<Node>,
    pub log: Arc<Log>,
}

/// What a client from elsewhere is told while nobody needs a password.
const PROTECTED: &[u8] = b"-DENIED Russet is running in protected mode: it has no password and \
    takes connections from this machine only. Set requirepass, or protected-mode no.\r\n";

/// A client, and what the output limits need to remember.
pub struct Connected {
    pub client: Client,
    /// Since when its output has been over the soft limit.
    soft_limit_since_ms: Option<i64>,
    /// Since when it could have logged in and has not, as far as it was looked at.
    login_awaited_since_ms: Option<i64>,
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
            node.clients.count_memory(card, node.keyspace.used_memory());
            node.limit_client_memory();
        }
    }
}

impl RussetService {
    /// A client that asks for more at once than it may hold is cut off.
    #[inline]
    fn check_output(&self, connected: &mut Connected, output_bytes: usize) {
        if output_bytes > REPLY_BYTES_FREE && !self.is_within_hard_limit(connected, output_bytes) {
            self.note_output_limit(connected, output_bytes);
            connected.client.session.cut_off();
        }
    }

    #[cold]
    fn note_output_limit(&self, connected: &Connected, output_bytes: usize) {
        self.node.stats.output_limit_disconnections.fetch_add(1, Ordering::Relaxed);
        let limit = match connected.client.session.is_authenticated() {
            true => format!("client-output-buffer-limit {}", class_of(connected).name()),
            false => "what it may have before it logs in".to_owned(),
        };
        self.log_closed(connected, &format!("{output_bytes} bytes of output are over {limit}"));
    }

    /// A client is closed because of what it holds: whoever asks why finds it in the log. Clients
    /// that have not logged in can't fill the log.
    fn log_closed(&self, connected: &Connected, why: &str) {
        let session = &connected.client.session;
        let level = if session.is_authenticated() { Level::Warning } else { Level::Verbose };
        let (id, address) = (session.id(), &session.card.address);
        self.log.say(level, &format!("Client id={id} addr={address} closed: {why}"));
    }

    /// Whether a client has had `login-timeout` to log in. RESET makes it one that has not.
    fn is_late_to_log_in(&self, now_ms: i64, connected: &mut Connected) -> bool {
        if connected.client.session.is_authenticated() {
            connected.login_awaited_since_ms = None;
            return false;
        }
        let seconds = self.node.config.int(Directive::LoginTimeout);
        let since = *connected.login_awaited_since_ms.get_or_insert(now_ms);
        seconds > 0 && now_ms - since >= seconds.saturating_mul(1000)
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

/// How many clients there may be for one more to be let in.
/// DIFFERS: some more from this machine, so that whoever looks after a full server gets in.
fn clients_max(config: &Config, peer: &Peer) -> i64 {
    let local = if peer.is_loopback { LOCAL_CLIENTS_EXTRA as i64 } else { 0 };
    config.int(Directive::MaxClients).saturating_add(local)
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
        if self.node.clients.len() as i64 >= clients_max(config, peer) {
            self.node.stats.rejected_connections.fetch_add(1, Ordering::Relaxed);
            out.extend_from_slice(b"-ERR max number of clients reached\r\n");
            return None;
        }
        // COMPAT: a default user that is switched off but needs no password counts as open
        // (`protected_mode_asks_for_a_password`).
        let is_open = self.node.acl.default_user().rights().is_passwordless;
        let is_denied = config.flag(Directive::ProtectedMode) && is_open && !peer.is_loopback;
        if is_denied {
            out.extend_from_slice(PROTECTED);
            // Over TLS it can only be told when the handshake is done.
            if !peer.is_tls {
                return None;
            }
        }
        let (address_text, local) = (peer.address.clone(), peer.local_address.clone());
        let id = self.node.clients.next_id();
        let card = ClientCard::new(id, address_text, local, peer.fd, self.now_ms());
        card.set_flag(ClientFlags::UNIX_SOCKET, peer.is_unix);
        card.set_flag(ClientFlags::TLS, peer.is_tls);
        let mut client = Client::new(&self.node, card, Arc::new(address));
        client.session.begin_as_default(&self.node.acl);
        client.session.is_closing = is_denied;
        self.node.stats.connections.fetch_add(1, Ordering::Relaxed);
        let buffers = Buffers::default();
        Some(Connected { client, soft_limit_since_ms: None, login_awaited_since_ms: None, buffers })
    }

    fn secured(&self, connected: &mut Connected, certificate: Option<&[u8]>) {
        self.node.stats.tls_handshakes.fetch_add(1, Ordering::Relaxed);
        let Some(certificate) = certificate else { return };
        let names = match self.node.config.choice(Directive::TlsAuthClientsUser) {
            "CN" => tls::common_name(certificate).into_iter().collect(),
            "URI" => tls::uri_names(certificate),
            _ => return,
        };
        self.node.log_in_by_certificate(&mut connected.client.session, &names);
    }

    fn handshake_failed(&self, connected: &Connected, why: &io::Error) {
        self.node.stats.tls_handshakes_failed.fetch_add(1, Ordering::Relaxed);
        let address = &connected.client.session.card.address;
        let text = format!("TLS handshake with {address} failed: {why}");
        self.log.say(Level::Verbose, &text);
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

    fn backoff_after_turn(&self, worker: &mut Worker) -> Duration {
        worker.backoff_after_turn()
    }

    fn begin_turn(&self, worker: &mut Worker, connected: &mut Connected) {
        worker.begin_batch();
        // What the clients before it were to wait for is not this one's.
        worker.backoff_after_turn();
        connected.client.session.card.last_ms.store(worker.now.0, Ordering::Relaxed);
    }

    fn end_turn(&self, worker: &mut Worker, _connected: &mut Connected) {
        worker.end_batch();
    }

    #[inline]
    fn before_send(&self, connected: &mut Connected, out: &mut Output) {
        connected.client.hold_output(&self.node, out);
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
        // While a long argument is read the time of the batch gets old.
        let is_long = bytes >= LONG_READ_BYTES;
        let now = if is_long { self.node.clock.now() } else { worker.now };
        connected.client.session.card.last_ms.store(now.0, Ordering::Relaxed);
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

    fn may_read(&self, connected: &Connected) -> bool {
        connected.client.may_read()
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

    fn may_hold_input(&self, connected: &Connected, input_bytes: usize) -> bool {
        let is_within = input_bytes <= input_bytes_max(&self.node.config);
        if !is_within {
            self.node.stats.query_limit_disconnections.fetch_add(1, Ordering::Relaxed);
            let why = format!("{input_bytes} bytes of requests are over client-query-buffer-limit");
            self.log_closed(connected, &why);
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
        if self.is_late_to_log_in(worker.now.0, connected) {
            return After::Close;
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
            self.note_output_limit(connected, output_bytes);
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

/// Most bytes that an unfinished request may hold.
/// DIFFERS: what is longer than the log can be loaded with is refused, whatever is configured.
fn input_bytes_max(config: &Config) -> usize {
    let configured = usize::try_from(config.int(Directive::ClientQueryBufferLimit)).unwrap_or(0);
    configured.min(REQUEST_BYTES_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A command of more than 4 GiB was accepted when `client-query-buffer-limit` was raised, and
    /// no server could have loaded the log that it was in.
    #[test]
    fn no_request_is_longer_than_a_log_can_be_loaded_with() {
        let config = Config::default();
        assert_eq!(input_bytes_max(&config), 1 << 30);
        config.replace_int(Directive::ClientQueryBufferLimit, 1 << 40);
        assert_eq!(input_bytes_max(&config), REQUEST_BYTES_MAX);
    }

    fn peer(is_loopback: bool) -> Peer {
        let address = || "192.0.2.1:1".to_owned();
        Peer {
            address: address(),
            local_address: address(),
            fd: 3,
            is_unix: false,
            is_loopback,
            is_tls: false,
        }
    }

    /// A full server let nobody in, not even who came to see why it is full.
    #[test]
    fn a_full_server_has_room_for_its_own_machine_only() {
        let config = Config::default();
        config.replace_int(Directive::MaxClients, 5);
        assert_eq!(clients_max(&config, &peer(false)), 5);
        assert_eq!(clients_max(&config, &peer(true)), 5 + LOCAL_CLIENTS_EXTRA as i64);
    }
}
