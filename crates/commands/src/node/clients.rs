//! Who is connected, as CLIENT LIST shows it. Each connection writes its own card; anyone may read.

use crate::call::mail::{Letter, Mailbox, Receipt};
use russet_engine::types::capacity::allocated_bytes;
use russet_engine::used_memory::UsedMemory;
use russet_engine::waiting::Waiter;
use std::collections::BTreeMap;
use std::sync::atomic::{
    AtomicBool, AtomicI64, AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering,
};
use std::sync::{Arc, Mutex, MutexGuard, RwLock, Weak};

/// What one connection takes besides its buffers: its session, card and socket state.
const CLIENT_BYTES: u64 = 2048;
/// What TLS adds to that: keys, and a buffer for a record that is not complete.
const TLS_BYTES: u64 = 8192;
/// What a channel takes besides its name: its place among the client's, and the client's among its
/// listeners.
const SUBSCRIPTION_BYTES: u64 = 480;
/// The same for a key that is watched.
const WATCHED_KEY_BYTES: u64 = 216;
/// The same for a prefix that is tracked.
const PREFIX_BYTES: u64 = 200;
/// The client has a copy of the name, and so has the list of those who listen, watch or track.
const NAME_COPIES: u64 = 2;
/// What a key that a client waits for takes besides its name: its place among the client's, in the
/// args by which its call is made again, and in its shard, with the queue of those who wait.
const AWAITED_KEY_BYTES: u64 = 216;

/// What others may know of a connection. Plain stores by the owner: the figures need not agree with
/// each other to the last request.
pub struct ClientCard {
    pub id: u64,
    pub address: String,
    pub local_address: String,
    pub fd: i32,
    pub connected_ms: i64,
    pub last_ms: AtomicI64,
    pub db: AtomicU32,
    pub subscriptions: AtomicU32,
    pub patterns: AtomicU32,
    pub shard_subscriptions: AtomicU32,
    /// Queued commands, or -1 outside MULTI.
    pub queued: AtomicI64,
    pub watching: AtomicU32,
    pub query_bytes: AtomicU64,
    pub query_free_bytes: AtomicU64,
    pub queued_bytes: AtomicU64,
    /// Unsent replies, and the buffer that they are in.
    pub output_bytes: AtomicU64,
    pub output_capacity_bytes: AtomicU64,
    /// The arguments of the call that it is blocked in; out of date once it is not.
    pub argument_bytes: AtomicU64,
    /// What the keys take that it waits for; out of date once it does not.
    pub awaited_bytes: AtomicU64,
    /// Names of channels and patterns that it listens to, and of keys that it watches.
    pub channel_bytes: AtomicU64,
    pub watched_bytes: AtomicU64,
    /// What of it is part of the memory in use, and whether that is out of date.
    counted_bytes: AtomicU64,
    is_uncounted: AtomicBool,
    pub resp: AtomicU8,
    /// Bits of [`ClientFlags`].
    pub flags: AtomicU16,
    /// The last command as its number in the catalog plus one; 0: none yet.
    pub last_command: AtomicU16,
    pub commands: AtomicU64,
    pub input_bytes_total: AtomicU64,
    pub output_bytes_total: AtomicU64,
    is_killed: AtomicBool,
    /// CLIENT TRACKING: bits of [`TrackingModes`], and the client that gets its invalidations.
    tracking_modes: AtomicU8,
    redirect: AtomicU64,
    /// What its prefixes take.
    prefix_bytes: AtomicU64,
    /// Another client has redirected its invalidations to this one.
    is_redirect_target: AtomicBool,
    pub names: Mutex<ClientNames>,
    mailbox: Mutex<Option<Arc<dyn Mailbox>>>,
    /// Its last wait, for CLIENT UNBLOCK to end.
    waiter: Mutex<Weak<Waiter>>,
}

#[derive(Clone, Debug, Default)]
pub struct ClientNames {
    pub name: Vec<u8>,
    pub user: Vec<u8>,
    pub library: Vec<u8>,
    pub library_version: Vec<u8>,
}

pub struct ClientFlags;

impl ClientFlags {
    pub const MULTI: u16 = 1;
    pub const BLOCKED: u16 = 1 << 1;
    pub const MONITOR: u16 = 1 << 2;
    pub const PUBSUB: u16 = 1 << 3;
    pub const DIRTY_CAS: u16 = 1 << 4;
    pub const CLOSE_AFTER_REPLY: u16 = 1 << 5;
    pub const UNBLOCKED: u16 = 1 << 6;
    pub const CLOSE_ASAP: u16 = 1 << 7;
    pub const UNIX_SOCKET: u16 = 1 << 8;
    pub const NO_EVICT: u16 = 1 << 9;
    pub const NO_TOUCH: u16 = 1 << 10;
    pub const TRACKING: u16 = 1 << 11;
    /// Held back by CLIENT PAUSE: shown as blocked, but CLIENT UNBLOCK does not end it.
    pub const PAUSED: u16 = 1 << 12;
    /// It has said by CLIENT CAPA that it follows redirections.
    pub const FOLLOWS_REDIRECTIONS: u16 = 1 << 13;
    /// It has said READONLY: it would read from a replica, too.
    pub const READONLY: u16 = 1 << 14;
    /// Its connection is encrypted.
    pub const TLS: u16 = 1 << 15;
    /// What RESET ends.
    pub const ENDED_BY_RESET: u16 =
        Self::MONITOR | Self::NO_EVICT | Self::NO_TOUCH | Self::READONLY;
}

struct TrackingModes;

impl TrackingModes {
    const BROADCAST: u8 = 1;
    const NOLOOP: u8 = 2;
    /// The client that was to get its invalidations is gone.
    const BROKEN: u8 = 4;
}

impl ClientCard {
    /// How it tracks keys: where it redirects invalidations to (0: nowhere), and in which modes.
    pub fn set_tracking(&self, redirect: u64, is_broadcast: bool, has_noloop: bool) {
        let modes = if is_broadcast { TrackingModes::BROADCAST } else { 0 }
            | if has_noloop { TrackingModes::NOLOOP } else { 0 };
        self.redirect.store(redirect, Ordering::Relaxed);
        self.tracking_modes.store(modes, Ordering::Relaxed);
    }

    /// It tracks one more prefix.
    pub fn count_prefix(&self, prefix: &[u8]) {
        let bytes = PREFIX_BYTES + allocated_bytes(prefix.len()) as u64 * NAME_COPIES;
        self.prefix_bytes.fetch_add(bytes, Ordering::Relaxed);
        self.mark_uncounted();
    }

    /// It tracks no prefixes any more.
    pub fn forget_prefixes(&self) {
        self.prefix_bytes.store(0, Ordering::Relaxed);
        self.mark_uncounted();
    }

    fn has_mode(&self, mode: u8) -> bool {
        self.tracking_modes.load(Ordering::Relaxed) & mode != 0
    }

    pub fn is_broadcast(&self) -> bool {
        self.has_mode(TrackingModes::BROADCAST)
    }

    pub fn has_noloop(&self) -> bool {
        self.has_mode(TrackingModes::NOLOOP)
    }

    pub fn is_redirect_broken(&self) -> bool {
        self.has_mode(TrackingModes::BROKEN)
    }

    pub fn set_redirect_broken(&self) {
        self.tracking_modes.fetch_or(TrackingModes::BROKEN, Ordering::Relaxed);
    }

    /// The client that gets its invalidations instead of it, or 0.
    pub fn redirect(&self) -> u64 {
        self.redirect.load(Ordering::Relaxed)
    }

    /// As CLIENT LIST shows it: -1 without tracking.
    pub fn shown_redirect(&self) -> i64 {
        if self.has_flag(ClientFlags::TRACKING) { self.redirect() as i64 } else { -1 }
    }

    pub fn set_redirect_target(&self) {
        self.is_redirect_target.store(true, Ordering::Release);
    }

    pub fn is_redirect_target(&self) -> bool {
        self.is_redirect_target.load(Ordering::Acquire)
    }

    pub fn new(id: u64, address: String, local_address: String, fd: i32, now_ms: i64) -> Self {
        let names = ClientNames { user: b"default".to_vec(), ..ClientNames::default() };
        ClientCard {
            id,
            address,
            local_address,
            fd,
            connected_ms: now_ms,
            last_ms: AtomicI64::new(now_ms),
            db: AtomicU32::new(0),
            subscriptions: AtomicU32::new(0),
            patterns: AtomicU32::new(0),
            shard_subscriptions: AtomicU32::new(0),
            queued: AtomicI64::new(-1),
            watching: AtomicU32::new(0),
            query_bytes: AtomicU64::new(0),
            query_free_bytes: AtomicU64::new(0),
            queued_bytes: AtomicU64::new(0),
            output_bytes: AtomicU64::new(0),
            output_capacity_bytes: AtomicU64::new(0),
            argument_bytes: AtomicU64::new(0),
            awaited_bytes: AtomicU64::new(0),
            channel_bytes: AtomicU64::new(0),
            watched_bytes: AtomicU64::new(0),
            counted_bytes: AtomicU64::new(0),
            is_uncounted: AtomicBool::new(true),
            resp: AtomicU8::new(2),
            flags: AtomicU16::new(0),
            last_command: AtomicU16::new(0),
            commands: AtomicU64::new(0),
            input_bytes_total: AtomicU64::new(0),
            output_bytes_total: AtomicU64::new(0),
            is_killed: AtomicBool::new(false),
            tracking_modes: AtomicU8::new(0),
            redirect: AtomicU64::new(0),
            prefix_bytes: AtomicU64::new(0),
            is_redirect_target: AtomicBool::new(false),
            names: Mutex::new(names),
            mailbox: Mutex::new(None),
            waiter: Mutex::default(),
        }
    }

    /// What it takes besides its buffers, whatever it does.
    pub fn fixed_bytes(&self) -> u64 {
        CLIENT_BYTES + if self.has_flag(ClientFlags::TLS) { TLS_BYTES } else { 0 }
    }

    /// Bytes of the client and its buffers.
    pub fn memory_bytes(&self) -> u64 {
        let of = |bytes: &AtomicU64| bytes.load(Ordering::Relaxed);
        let count = |count: &AtomicU32| u64::from(count.load(Ordering::Relaxed));
        let listens = [&self.subscriptions, &self.patterns, &self.shard_subscriptions];
        let blocked_bytes = match self.has_flag(ClientFlags::BLOCKED) {
            true => of(&self.argument_bytes) + of(&self.awaited_bytes),
            false => 0,
        };
        self.fixed_bytes()
            + of(&self.query_bytes)
            + of(&self.query_free_bytes)
            + of(&self.output_capacity_bytes)
            + of(&self.queued_bytes)
            + blocked_bytes
            + listens.map(count).iter().sum::<u64>() * SUBSCRIPTION_BYTES
            + of(&self.channel_bytes) * NAME_COPIES
            + count(&self.watching) * WATCHED_KEY_BYTES
            + of(&self.watched_bytes) * NAME_COPIES
            + of(&self.prefix_bytes)
    }

    /// Notes the args of the call that it is about to be blocked in, and the keys.
    pub fn note_blocked(&self, argument_bytes: usize, keys: &[Box<[u8]>]) {
        self.argument_bytes.store(argument_bytes as u64, Ordering::Relaxed);
        let names = keys.iter().map(|key| allocated_bytes(key.len()) as u64 * NAME_COPIES);
        let bytes = names.sum::<u64>() + keys.len() as u64 * AWAITED_KEY_BYTES;
        self.awaited_bytes.store(bytes, Ordering::Relaxed);
        self.mark_uncounted();
    }

    /// What the client holds besides its buffers has changed.
    pub fn mark_uncounted(&self) {
        self.is_uncounted.store(true, Ordering::Relaxed);
    }

    #[inline]
    pub fn is_uncounted(&self) -> bool {
        self.is_uncounted.load(Ordering::Relaxed)
    }

    /// What of it is part of the memory in use.
    pub fn counted_bytes(&self) -> u64 {
        self.counted_bytes.load(Ordering::Relaxed)
    }

    pub fn names(&self) -> MutexGuard<'_, ClientNames> {
        self.names.lock().unwrap_or_else(|poison| poison.into_inner())
    }

    /// Held by the owner while it tries a blocked call again: whoever claims a wait without the
    /// locks of its keys must hold it too. Taken after shards, never before.
    pub fn waiter(&self) -> MutexGuard<'_, Weak<Waiter>> {
        self.waiter.lock().unwrap_or_else(|poison| poison.into_inner())
    }

    pub fn set_flag(&self, flag: u16, on: bool) {
        if on {
            self.flags.fetch_or(flag, Ordering::Relaxed);
        } else {
            self.flags.fetch_and(!flag, Ordering::Relaxed);
        }
        if flag & ClientFlags::BLOCKED != 0 {
            // A blocked client holds the args of its call.
            self.mark_uncounted();
        }
    }

    pub fn has_flag(&self, flag: u16) -> bool {
        self.flags.load(Ordering::Relaxed) & flag != 0
    }

    /// The flags to show: what the counts imply together with what was set.
    pub fn shown_flags(&self) -> u16 {
        let listens = [&self.subscriptions, &self.patterns, &self.shard_subscriptions];
        let is_pubsub = listens.iter().any(|count| count.load(Ordering::Relaxed) > 0);
        let is_multi = self.queued.load(Ordering::Relaxed) >= 0;
        let is_paused = self.has_flag(ClientFlags::PAUSED);
        let implied = if is_pubsub { ClientFlags::PUBSUB } else { 0 }
            | if is_multi { ClientFlags::MULTI } else { 0 }
            | if is_paused { ClientFlags::BLOCKED } else { 0 };
        self.flags.load(Ordering::Relaxed) | implied
    }

    /// Gives the card the way to its owner; done once, when the connection is placed on a loop.
    pub fn attach(&self, mailbox: Arc<dyn Mailbox>) {
        *self.mailbox.lock().unwrap_or_else(|poison| poison.into_inner()) = Some(mailbox);
    }

    /// Where letters to it go.
    pub fn mailbox(&self) -> Option<Arc<dyn Mailbox>> {
        self.mailbox.lock().unwrap_or_else(|poison| poison.into_inner()).clone()
    }

    pub fn post(&self, letter: Letter) {
        if let Some(mailbox) = self.mailbox() {
            mailbox.post(letter);
        }
    }

    /// Ends the client; whoever has the receipt's sender waits until it is gone.
    pub fn kill(&self, receipt: Option<Receipt>) {
        self.is_killed.store(true, Ordering::Relaxed);
        self.set_flag(ClientFlags::CLOSE_ASAP, true);
        self.post(Letter::Kill(receipt));
    }

    pub fn is_killed(&self) -> bool {
        self.is_killed.load(Ordering::Relaxed)
    }
}

/// Every connected client, in the order of their ids.
#[derive(Default)]
pub struct Clients {
    next_id: AtomicU64,
    cards: RwLock<BTreeMap<u64, Arc<ClientCard>>>,
    /// What is counted of all of them.
    memory_bytes: AtomicU64,
}

impl Clients {
    pub fn next_id(&self) -> u64 {
        self.next_id.fetch_add(1, Ordering::Relaxed) + 1
    }

    pub fn add(&self, card: Arc<ClientCard>) {
        self.cards.write().unwrap_or_else(|poison| poison.into_inner()).insert(card.id, card);
    }

    /// Forgets a client, whose memory is in use no longer.
    pub fn remove(&self, id: u64, used: &UsedMemory) {
        let mut cards = self.cards.write().unwrap_or_else(|poison| poison.into_inner());
        if let Some(card) = cards.remove(&id) {
            self.set_counted(&card, used, 0);
        }
    }

    /// What all clients hold, as far as it was counted.
    #[inline]
    pub fn memory_bytes(&self) -> u64 {
        self.memory_bytes.load(Ordering::Relaxed)
    }

    /// Adds what has changed since the last time to the memory in use. For the owner of the card.
    pub fn count_memory(&self, card: &ClientCard, used: &UsedMemory) {
        card.is_uncounted.store(false, Ordering::Relaxed);
        self.set_counted(card, used, card.memory_bytes());
    }

    fn set_counted(&self, card: &ClientCard, used: &UsedMemory, bytes: u64) {
        let before = card.counted_bytes.swap(bytes, Ordering::Relaxed);
        let difference = bytes.wrapping_sub(before);
        self.memory_bytes.fetch_add(difference, Ordering::Relaxed);
        used.add(card.id as usize, difference as isize);
    }

    pub fn find(&self, id: u64) -> Option<Arc<ClientCard>> {
        self.cards.read().unwrap_or_else(|poison| poison.into_inner()).get(&id).cloned()
    }

    /// Looks at each of them. Nobody comes or goes meanwhile: nothing is to be asked of a client
    /// that takes a lock.
    pub fn for_each(&self, mut look: impl FnMut(&ClientCard)) {
        let cards = self.cards.read().unwrap_or_else(|poison| poison.into_inner());
        cards.values().for_each(|card| look(card));
    }

    pub fn all(&self) -> Vec<Arc<ClientCard>> {
        let cards = self.cards.read().unwrap_or_else(|poison| poison.into_inner());
        cards.values().cloned().collect()
    }

    pub fn len(&self) -> usize {
        self.cards.read().unwrap_or_else(|poison| poison.into_inner()).len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
