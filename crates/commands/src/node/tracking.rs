//! Client-side caching: which clients are notified that a key has changed, and how. What clients
//! have read is remembered in the shard of the key (`russet_engine::tracked`), which prefixes they
//! track is remembered here.
//!
//! An invalidation reaches a client behind the replies that it was given before, since both pass
//! through its own loop; one that its own command has caused comes right behind the reply of that
//! command. So an old value never arrives behind the invalidation that is about it.

#[cfg(test)]
mod tests;

use crate::call::ctx::Ctx;
use crate::call::invoke::publish_effects;
use crate::call::mail::Posting;
use crate::call::session::Session;
use crate::groups::scripting::code;
use crate::node::Node;
use crate::node::clients::{ClientCard, ClientFlags};
use crate::node::config::Directive;
use russet_base::{Args, SharedBytes, UnixMillis};
use russet_catalog::spec::Flags;
use russet_catalog::{Command, has_keys, is_first_arg_only_key, keys as key_positions};
use russet_engine::keys::{Effects, Keys};
use russet_engine::keyspace::Keyspace;
use russet_engine::store::shard_set::ShardSet;
use russet_engine::tracked::{Cause, ChangedKey, Gone, Reader, SlotSet};
use russet_protocol::{Resp, RespWriter, Sink};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockWriteGuard};

/// Where a RESP2 client gets the invalidations that others redirect to it.
const CHANNEL: &[u8] = b"__redis__:invalidate";
/// Keys that are forgotten for one that is read when there are too many.
const FORGOTTEN_PER_READ_MAX: usize = 2;
/// Keys of one shard that housekeeping forgets at once.
const FORGOTTEN_PER_SWEEP_MAX: u64 = 1000;

/// Which of the keys that a client reads are remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// All of them.
    Reads,
    /// Those of the command behind CLIENT CACHING YES.
    OptIn,
    /// All but those of the command behind CLIENT CACHING NO.
    OptOut,
    /// None: it is notified of all that begin with its prefixes.
    Broadcast,
}

/// CLIENT TRACKING, as its client has it.
#[derive(Clone, Debug)]
pub struct Tracked {
    pub mode: Mode,
    pub has_noloop: bool,
    /// The client that gets its invalidations.
    pub redirect: Option<u64>,
    pub prefixes: BTreeSet<Box<[u8]>>,
    /// CLIENT CACHING was called for the next command.
    pub is_next_marked: bool,
    /// As whom the keys' shards know it; none if it tracks prefixes.
    pub reader: Option<Reader>,
}

impl Tracked {
    pub(crate) fn remembers_reads(&self) -> bool {
        match self.mode {
            Mode::Reads => true,
            Mode::OptIn => self.is_next_marked,
            Mode::OptOut => !self.is_next_marked,
            Mode::Broadcast => false,
        }
    }
}

/// By prefix: the clients that track it.
type Prefixes = BTreeMap<Box<[u8]>, BTreeSet<u64>>;

/// What all clients share of it.
#[derive(Debug, Default)]
pub struct Tracking {
    prefixes: RwLock<Prefixes>,
    clients: AtomicUsize,
    /// A client has ended whose reads are still remembered.
    has_left: AtomicBool,
    forgetting: Mutex<Forgetting>,
}

/// Which readers are being forgotten, and in which shards they are yet to be.
#[derive(Debug, Default)]
struct Forgetting {
    slots: SlotSet,
    shards: ShardSet,
}

impl Tracking {
    fn prefixes_mut(&self) -> RwLockWriteGuard<'_, Prefixes> {
        self.prefixes.write().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn prefixes_len(&self) -> usize {
        self.prefixes.read().unwrap_or_else(PoisonError::into_inner).len()
    }

    fn add_prefixes(&self, keyspace: &Keyspace, prefixes: &[Box<[u8]>], card: &ClientCard) {
        let mut tracked = self.prefixes_mut();
        for prefix in prefixes {
            if tracked.entry(prefix.clone()).or_default().insert(card.id) {
                card.count_prefix(prefix);
            }
        }
        keyspace.set_wants_all_keys(!tracked.is_empty());
    }

    fn remove_prefixes(&self, keyspace: &Keyspace, prefixes: &BTreeSet<Box<[u8]>>, id: u64) {
        let mut tracked = self.prefixes_mut();
        for prefix in prefixes {
            if let Some(clients) = tracked.get_mut(prefix) {
                clients.remove(&id);
                if clients.is_empty() {
                    tracked.remove(prefix);
                }
            }
        }
        keyspace.set_wants_all_keys(!tracked.is_empty());
    }
}

/// CLIENT TRACKING ON, with further prefixes. A client that had it on keeps those that it has.
pub(crate) fn begin(
    node: &Node,
    session: &mut Session,
    (mut tracked, added): (Tracked, Vec<Box<[u8]>>),
) {
    let (tracking, card) = (&node.tracking, &session.card);
    match session.tracking.take() {
        Some(before) => {
            tracked.prefixes = before.prefixes;
            tracked.reader = before.reader;
            // CLIENT CACHING counts for the next command that reads.
            tracked.is_next_marked |= before.is_next_marked && before.mode == tracked.mode;
        }
        None => {
            tracking.clients.fetch_add(1, Ordering::Relaxed);
        }
    }
    let is_broadcast = tracked.mode == Mode::Broadcast;
    if !is_broadcast && tracked.reader.is_none() {
        tracked.reader = Some(node.keyspace.tracked_totals().slots.join(card.id));
    }
    if let Some(target) = tracked.redirect.and_then(|id| node.clients.find(id)) {
        target.set_redirect_target();
    }
    card.set_tracking(tracked.redirect.unwrap_or(0), is_broadcast, tracked.has_noloop);
    card.set_flag(ClientFlags::TRACKING, true);
    if is_broadcast {
        tracking.add_prefixes(&node.keyspace, &added, card);
        tracked.prefixes.extend(added);
    }
    session.tracking = Some(Box::new(tracked));
}

/// CLIENT TRACKING OFF, RESET, and disconnection.
pub(crate) fn end(node: &Node, session: &mut Session) {
    let Some(tracked) = session.tracking.take() else { return };
    let tracking = &node.tracking;
    tracking.clients.fetch_sub(1, Ordering::Relaxed);
    tracking.remove_prefixes(&node.keyspace, &tracked.prefixes, session.id());
    session.card.forget_prefixes();
    session.card.set_flag(ClientFlags::TRACKING, false);
    session.card.set_tracking(0, false, false);
    // Of who tracks prefixes no reads are remembered.
    if let Some(reader) = tracked.reader {
        node.keyspace.tracked_totals().slots.leave(reader);
        tracking.has_left.store(true, Ordering::Release);
    }
}

/// Forgets what clients have read that track no more, and what is beyond the limit. For
/// housekeeping.
pub(crate) fn sweep(node: &Node, effects: &mut Effects, now: UnixMillis) {
    forget_readers(node);
    trim(node, effects, now);
}

/// Forgets those who have left, in each shard once. A busy one is visited again next time; who
/// leaves meanwhile has to wait until all were visited.
fn forget_readers(node: &Node) {
    let (tracking, totals) = (&node.tracking, node.keyspace.tracked_totals());
    let mut forgetting = tracking.forgetting.lock().unwrap_or_else(PoisonError::into_inner);
    let Forgetting { slots, shards } = &mut *forgetting;
    if shards.is_empty() {
        if !tracking.has_left.swap(false, Ordering::Acquire) {
            return;
        }
        (*slots, *shards) = (totals.slots.take_left(), node.keyspace.all_shards());
    }
    let is_gone = |id| node.clients.find(id).is_none_or(|card| !remembers_reads(&card));
    let gone = Gone { slots: *slots, is_gone: &is_gone };
    for index in shards.clone().iter() {
        if node.keyspace.forget_readers(index, &gone) {
            shards.remove(index);
        }
    }
    if shards.is_empty() {
        totals.slots.free(std::mem::take(slots));
    }
}

/// Forgets keys beyond the limit, which may have been lowered. No shard is locked.
pub(crate) fn trim(node: &Node, effects: &mut Effects, now: UnixMillis) {
    let keys_max = keys_max(node);
    let totals = node.keyspace.tracked_totals();
    for index in 0..node.keyspace.shards() {
        if totals.keys() <= keys_max {
            return;
        }
        let Ok(locked) = node.keyspace.try_lock(&ShardSet::one(index)) else { continue };
        let mut keys = node.keyspace.keys(locked, effects, (0, now));
        for _ in 0..totals.keys().saturating_sub(keys_max).min(FORGOTTEN_PER_SWEEP_MAX) {
            let Some(forgotten) = keys.shard(index).tracked.take_other_than(b"") else { break };
            keys.effects.changed.push(forgotten);
        }
        publish_effects(&mut keys, node);
    }
}

/// `tracking-table-max-keys`; 0 is no limit.
fn keys_max(node: &Node) -> u64 {
    match node.config.int(Directive::TrackingTableMaxKeys).unsigned_abs() {
        0 => u64::MAX,
        limit => limit,
    }
}

fn remembers_reads(card: &ClientCard) -> bool {
    card.has_flag(ClientFlags::TRACKING) && !card.is_broadcast()
}

/// Whose reads the keys of a client's command are to be remembered as, if they are.
pub(crate) fn reader_of(session: &Session, command: Command) -> Option<Reader> {
    let tracked = session.tracking.as_ref().filter(|tracked| tracked.remembers_reads())?;
    let is_read = command.spec().flags.has(Flags::READONLY)
        && has_keys(command)
        // Its commands count, not the keys that it was given.
        && !code::runs_code(command);
    tracked.reader.filter(|_| is_read)
}

/// A client that tracks keys has run a command, whose shards are still locked.
#[inline(never)]
pub(crate) fn note_call(ctx: &mut Ctx, args: Args) {
    let Some(reader) = reader_of(ctx.session, ctx.command) else { return };
    let (node, keys) = (ctx.node, &mut *ctx.keys);
    if is_first_arg_only_key(ctx.command)
        && let Some(key) = args.get(1)
    {
        return note_key(keys, (node, reader), key);
    }
    let _has_none = key_positions(ctx.command, args, &mut |key| {
        note_key(keys, (node, reader), args.at(key.index));
    });
}

/// A client has read this key, if its shard is locked: else it was refused.
pub(crate) fn note_key(keys: &mut Keys, (node, reader): (&Node, Reader), key: &[u8]) {
    if keys.note_reader(key, reader) {
        forget_beyond(keys, key, keys_max(node));
    }
}

/// `tracking-table-max-keys`: other keys of the same shard are forgotten, for its lock is held, and
/// their readers notified.
fn forget_beyond(keys: &mut Keys, key: &[u8], keys_max: u64) {
    let totals = keys.keyspace().tracked_totals();
    for _ in 0..FORGOTTEN_PER_READ_MAX {
        if totals.keys() <= keys_max {
            return;
        }
        if let Some(forgotten) = keys.shard_of(key).tracked.take_other_than(key) {
            keys.effects.changed.push(forgotten);
        }
    }
}

/// Notifies those who may have copies of keys that a call has changed, before its shards are
/// unlocked.
#[cold]
pub(crate) fn publish_changes(keys: &mut Keys, node: &Node) {
    let are_all_changed = std::mem::take(&mut keys.effects.are_all_changed);
    let mut changed = std::mem::take(&mut keys.effects.changed);
    if node.tracking.clients.load(Ordering::Relaxed) > 0 {
        let mut sender = Sender { node, posting: Posting::of(keys) };
        if are_all_changed {
            sender.invalidate_all();
        }
        changed.iter().for_each(|changed| sender.notify_readers(changed));
        sender.notify_prefixes(&changed);
    }
    changed.clear();
    keys.effects.changed = changed;
}

/// Notifies those who have read what was changed so far, before a client tracks otherwise.
/// COMPAT: who tracks prefixes hears of all that a transaction has changed at its end, as it tracks
/// then (tests/wire/connection/tracking.wire).
pub(crate) fn notify_readers(keys: &mut Keys, node: &Node) {
    let are_all_changed = std::mem::take(&mut keys.effects.are_all_changed);
    let mut changed = std::mem::take(&mut keys.effects.changed);
    if are_all_changed || !changed.is_empty() {
        let mut sender = Sender { node, posting: Posting::of(keys) };
        if are_all_changed {
            sender.invalidate_all();
        }
        for key in &mut changed {
            sender.notify_readers(key);
            key.readers.clear();
        }
    }
    keys.effects.changed = changed;
}

/// Sends invalidations.
struct Sender<'s, 'e> {
    node: &'s Node,
    posting: Posting<'e>,
}

impl Sender<'_, '_> {
    fn invalidate_all(&mut self) {
        let mut all = Invalidation::of(None);
        let cards = self.node.clients.all();
        let tracking = cards.iter().filter(|card| card.has_flag(ClientFlags::TRACKING));
        tracking.for_each(|card| self.send(card, &mut all));
    }

    fn notify_readers(&mut self, ChangedKey { key, readers, cause }: &ChangedKey) {
        let keys = [&**key];
        let mut invalidation = Invalidation::of(Some(&keys));
        for id in readers {
            let card = self.node.clients.find(*id);
            if let Some(card) = card.filter(|card| remembers_reads(card) && !spares(card, *cause)) {
                self.send(&card, &mut invalidation);
            }
        }
    }

    /// A client gets one message for each of its prefixes, with all keys that a call has changed.
    fn notify_prefixes(&mut self, changed: &[ChangedKey]) {
        let node = self.node;
        let prefixes = node.tracking.prefixes.read().unwrap_or_else(PoisonError::into_inner);
        let mut changed_by_prefix = BTreeMap::new();
        for ChangedKey { key, cause, .. } in changed {
            if *cause != Cause::TableFull {
                for_each_prefix(&prefixes, key, &mut |prefix, clients| {
                    let (_, keys) =
                        changed_by_prefix.entry(prefix).or_insert_with(|| (clients, Vec::new()));
                    keys.push((&**key, *cause));
                });
            }
        }
        for (clients, changed) in changed_by_prefix.into_values() {
            let all = keys_of(changed.iter());
            let mut invalidation = Invalidation::of(Some(&all));
            for card in clients.iter().filter_map(|id| node.clients.find(*id)) {
                if changed.iter().any(|(_, cause)| spares(&card, *cause)) {
                    let others = changed.iter().filter(|(_, cause)| !spares(&card, *cause));
                    let others = keys_of(others);
                    if !others.is_empty() {
                        self.send(&card, &mut Invalidation::of(Some(&others)));
                    }
                } else {
                    self.send(&card, &mut invalidation);
                }
            }
        }
    }

    fn send(&mut self, card: &Arc<ClientCard>, invalidation: &mut Invalidation) {
        let redirect = card.redirect();
        let target = match redirect {
            0 => Some(card.clone()),
            id => self.node.clients.find(id),
        };
        let Some(target) = target else { return self.send_broken(card, redirect) };
        let is_subscribed = || target.shown_flags() & ClientFlags::PUBSUB != 0;
        if target.resp.load(Ordering::Relaxed) == 3 {
            self.posting.push(&target, invalidation.encoded(Resp::V3));
        } else if redirect != 0 && is_subscribed() {
            self.posting.push(&target, invalidation.encoded(Resp::V2));
        }
    }

    /// The client that was to get the invalidations is gone.
    fn send_broken(&mut self, card: &Arc<ClientCard>, redirect: u64) {
        card.set_redirect_broken();
        if card.resp.load(Ordering::Relaxed) == 3 {
            let bytes = encode(Resp::V3, |sink| {
                sink.push(2);
                sink.bulk(b"tracking-redir-broken");
                sink.int(redirect as i64);
            });
            self.posting.push(card, bytes);
        }
    }
}

/// Each key once, in order.
fn keys_of<'c, 'k: 'c>(changed: impl Iterator<Item = &'c (&'k [u8], Cause)>) -> Vec<&'k [u8]> {
    let keys: BTreeSet<&[u8]> = changed.map(|(key, _)| *key).collect();
    keys.into_iter().collect()
}

/// NOLOOP: a client gets no invalidations of what it has changed itself.
fn spares(card: &ClientCard, cause: Cause) -> bool {
    cause == Cause::ChangedBy(card.id) && card.has_noloop()
}

/// Visits each prefix that a key begins with, the longest first. All of these are in the order of
/// keys at the key or before it, longer ones behind shorter ones; any other that is met on the way
/// back shows how long the next can be at most.
fn for_each_prefix<'p>(
    prefixes: &'p Prefixes,
    key: &[u8],
    visit: &mut dyn FnMut(&'p [u8], &'p BTreeSet<u64>),
) {
    let mut range = (Bound::Unbounded, Bound::Included(key));
    while let Some((prefix, clients)) = prefixes.range::<[u8], _>(range).next_back() {
        let shared = prefix.iter().zip(key).take_while(|(one, other)| one == other).count();
        range.1 = match shared == prefix.len() {
            true => {
                visit(prefix, clients);
                Bound::Excluded(&key[..shared])
            }
            false => Bound::Included(&key[..shared]),
        };
    }
}

/// What clients get: the keys, or none if they are to drop all. Encoded once for all of them.
struct Invalidation<'k> {
    keys: Option<&'k [&'k [u8]]>,
    resp2: Option<SharedBytes>,
    resp3: Option<SharedBytes>,
}

impl<'k> Invalidation<'k> {
    fn of(keys: Option<&'k [&'k [u8]]>) -> Self {
        Invalidation { keys, resp2: None, resp3: None }
    }

    fn encoded(&mut self, resp: Resp) -> SharedBytes {
        let encoded = match resp {
            Resp::V2 => &mut self.resp2,
            Resp::V3 => &mut self.resp3,
        };
        encoded.get_or_insert_with(|| invalidation(resp, self.keys)).clone()
    }
}

/// The bytes of an invalidation of these keys, or of all.
pub(crate) fn invalidation(resp: Resp, keys: Option<&[&[u8]]>) -> SharedBytes {
    encode(resp, |sink| {
        match resp {
            Resp::V3 => {
                sink.push(2);
                sink.bulk(b"invalidate");
            }
            Resp::V2 => {
                sink.push(3);
                sink.bulk(b"message");
                sink.bulk(CHANNEL);
            }
        }
        match keys {
            Some(keys) => {
                sink.array(keys.len());
                keys.iter().for_each(|key| sink.bulk(key));
            }
            None => sink.null(),
        }
    })
}

fn encode(resp: Resp, write: impl FnOnce(&mut dyn Sink)) -> SharedBytes {
    let mut bytes = Vec::new();
    write(&mut RespWriter::new(&mut bytes, resp));
    SharedBytes::new(bytes)
}
