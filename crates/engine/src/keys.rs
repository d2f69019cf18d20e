//! What a handler sees of the keyspace: the keys of its own locked shards, never an expired one.
//! Every write is reported once, through [`Keys::wrote`]; all that follows from a write starts
//! there.

mod changes;
mod gauges;
mod known;
mod prefetch;
mod put;
mod readers;
mod saved;
mod time;

pub use crate::effects::{Caller, Effects, ReadyKey};
pub use gauges::DbCounts;
pub use known::KnownKey;
pub use prefetch::Fetch;

use known::LastKey;

use crate::access::AccessClock;
use crate::event::Event;
use crate::field_expiry::{FieldSchedule, bound_of_entry};
use crate::keyspace::{Keyspace, Location};
use crate::shard::Shard;
use crate::snapshot::{Epoch, ShardSnapshot};
use crate::store::raw::lock::Locked;
use crate::store::raw::table::{Deleted, EntryMut, EntryRef, Removed, Table};
use crate::store::shard_set::ShardSet;
use crate::tracked::{Cause, TrackedKeys};
use crate::types::hash::stored::is_over;
use crate::value::Object;
use crate::waiting::Waiting;
use crate::watch::Watched;
use russet_base::clock::UnixMillis;
use smallvec::SmallVec;
use std::sync::atomic::{Ordering, fence};

/// What a look at a key is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    Read,
    Write,
}

/// What a key seems to hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weight {
    /// Nothing, or what lies inside its entry.
    Small,
    /// A collection of any size.
    Collection,
    LongString,
}

/// What changes with the expiry of a key.
struct ExpiryScope<'s> {
    keyspace: &'s Keyspace,
    may_expire: bool,
    watched: &'s mut Watched,
    tracked: &'s mut TrackedKeys,
    waiting: &'s Waiting,
    fields: &'s mut FieldSchedule,
    snapshot: &'s mut ShardSnapshot,
    effects: &'s mut Effects,
}

impl ExpiryScope<'_> {
    /// Deletes an expired entry, with its event, or leaves it where it is for now: see
    /// [`Keyspace::may_expire`].
    #[cold]
    #[inline(never)]
    fn expire_entry(
        self,
        key: &[u8],
        (db, shard): (usize, usize),
        mut entry: EntryMut<'_, Object>,
    ) {
        self.watched.expire(db, key);
        if !self.may_expire {
            return;
        }
        self.effects.note_change(self.tracked, key, Cause::GONE);
        self.fields.forget(key, bound_of_entry(&entry));
        if self.waiting.is_awaited(db, key) {
            self.effects.ready.push(ReadyKey { db, key: key.into() });
        }
        self.effects.touched.insert(shard);
        self.effects.expired(db, key);
        let object = match entry.is_unsaved() {
            true => self.snapshot.keep((db, key), entry.take_unsaved()),
            false => entry.take_object(),
        };
        drop(entry.delete());
        self.keyspace.reclaim_expired(shard, object);
    }
}

/// The offset of the journal that is durable if all is that was written to locked shards.
pub fn last_write(keyspace: &Keyspace, locked: &Locked<Shard>) -> u64 {
    let last = locked.held().iter().map(|index| locked.shared(index).last_write).max();
    last.unwrap_or(0).max(keyspace.journal().strict_since())
}

pub struct Keys<'a> {
    pub(crate) keyspace: &'a Keyspace,
    pub(crate) locked: Locked<'a, Shard>,
    pub db: usize,
    pub now: UnixMillis,
    /// While recorded commands are run again, at a `now` before all deadlines: the real time.
    pub real_time: Option<UnixMillis>,
    /// The time that TIME gave a transaction or a script, which gets no other.
    pub fixed_micros: Option<i64>,
    /// What entries that are used are stamped with.
    clock: AccessClock,
    /// The snapshot that there was when the shards were locked: the same for the whole call.
    pub(crate) epoch: Epoch,
    /// See [`Keyspace::may_expire`]: the same for the whole command.
    may_expire: bool,
    /// Reads leave no trace in the access clock (CLIENT NO-TOUCH, OBJECT, ...).
    pub is_silent: bool,
    /// The keys of the call, as planning has found them; those before `next_known` were asked for.
    known: &'a [KnownKey<'a>],
    next_known: usize,
    /// The one that was asked for last.
    asked: Option<&'a KnownKey<'a>>,
    /// The key that was looked at last, if it is none of those.
    last: Option<LastKey>,
    pub effects: &'a mut Effects,
}

impl<'a> Keys<'a> {
    #[inline]
    pub(crate) fn new(
        keyspace: &'a Keyspace,
        locked: Locked<'a, Shard>,
        effects: &'a mut Effects,
        (db, now): (usize, UnixMillis),
    ) -> Self {
        effects.wanted = keyspace.notify_classes();
        effects.records.set_on(keyspace.is_recording());
        let mut keys = Keys {
            keyspace,
            locked,
            epoch: Epoch::default(),
            db,
            now,
            real_time: None,
            fixed_micros: None,
            clock: keyspace.access_clock(now),
            may_expire: keyspace.may_expire(),
            is_silent: false,
            known: &[],
            next_known: 0,
            asked: None,
            last: None,
            effects,
        };
        keys.enter_epoch();
        keys
    }

    /// Gives the keys that planning has hashed already, in the order in which the calls name them.
    #[inline]
    pub fn know(&mut self, known: &'a [KnownKey<'a>]) {
        self.known = known;
    }

    /// The next command's keys begin at this one of the known locations.
    #[inline]
    pub fn skip_to(&mut self, known: usize) {
        self.next_known = known;
        self.asked = None;
    }

    /// How much work a command on a key may be, without looking closely: what is weighed may be
    /// another key of the same fingerprint.
    #[inline]
    pub fn weigh(&mut self, location: Location) -> Weight {
        match self.table(location.shard).likely_object(location.hash) {
            None => Weight::Small,
            Some(Object::String(_)) => Weight::LongString,
            Some(_) => Weight::Collection,
        }
    }

    pub(crate) fn may_expire(&self) -> bool {
        self.may_expire
    }

    pub fn keyspace(&self) -> &'a Keyspace {
        self.keyspace
    }

    pub fn held(&self) -> &ShardSet {
        self.locked.held()
    }

    /// Whether every shard is held.
    pub fn holds_all(&self) -> bool {
        self.locked.holds_all()
    }

    /// Where a key is. Planning has hashed the call's keys already, and handlers ask for them in
    /// that order, most of them several times in a row. As a rule a key is the very argument that
    /// planning saw, so that its bytes need not be compared.
    #[inline]
    pub(crate) fn location(&mut self, key: &[u8]) -> Location {
        if let Some(known) = self.asked
            && std::ptr::eq(known.key, key)
        {
            return known.location;
        }
        if let Some(known) = self.known.get(self.next_known)
            && std::ptr::eq(known.key, key)
        {
            return self.ask(known);
        }
        self.other_location(key)
    }

    #[inline]
    fn ask(&mut self, known: &'a KnownKey<'a>) -> Location {
        self.next_known += 1;
        self.asked = Some(known);
        known.location
    }

    /// Where a key is that is no argument which planning saw, though it may be a copy of one.
    #[inline(never)]
    fn other_location(&mut self, key: &[u8]) -> Location {
        if let Some(known) = self.asked.filter(|known| known.key == key) {
            return known.location;
        }
        if let Some(known) = self.known.get(self.next_known).filter(|known| known.key == key) {
            return self.ask(known);
        }
        let last = self.last.as_ref().and_then(|last| last.location_of(key));
        last.unwrap_or_else(|| self.keyspace.locate(key))
    }

    #[inline]
    fn table(&mut self, shard: u16) -> &mut Table<Object> {
        &mut self.locked.shard(shard as usize).tables[self.db]
    }

    /// The key's entry, and beside it what there is to tell of the look-up. An expired entry is
    /// deleted, with its event, or at least not shown.
    #[inline(always)]
    fn live(
        &mut self,
        key: &[u8],
        location: Location,
        look: Use,
    ) -> (Option<EntryMut<'_, Object>>, &mut Effects) {
        if self.has_due_fields(location) {
            return self.live_beside_due(key, location, look);
        }
        self.unexpired(key, location)
    }

    /// Whether a shard has fields of hashes to remove first. It only reads, so that the compiler
    /// knows what it has checked when the shard is looked at next.
    #[inline]
    fn has_due_fields(&self, location: Location) -> bool {
        self.locked.shared(location.shard as usize).fields[self.db].is_due(self.now)
    }

    #[inline(never)]
    fn live_beside_due(
        &mut self,
        key: &[u8],
        location: Location,
        look: Use,
    ) -> (Option<EntryMut<'_, Object>>, &mut Effects) {
        if self.expire_fields(key, location, look) {
            return (None, self.effects);
        }
        self.unexpired(key, location)
    }

    /// As [`Keys::live`], where no field of the key's hash can be due.
    #[inline(always)]
    fn unexpired(
        &mut self,
        key: &[u8],
        location: Location,
    ) -> (Option<EntryMut<'_, Object>>, &mut Effects) {
        let (db, now, shard) = (self.db, self.now, location.shard as usize);
        let (keyspace, may_expire) = (self.keyspace, self.may_expire);
        let effects = &mut *self.effects;
        let Shard { tables, watched, tracked, waiting, fields, snapshot, .. } =
            self.locked.shard(shard);
        let Some(entry) = tables[db].find_mut(key, location.hash) else { return (None, effects) };
        if entry.expiry().is_some_and(|at| at <= now.0) {
            let fields = &mut fields[db];
            let effects = &mut *effects;
            let scope = ExpiryScope {
                keyspace,
                may_expire,
                watched,
                tracked,
                waiting,
                fields,
                snapshot,
                effects,
            };
            scope.expire_entry(key, (db, shard), entry);
            return (None, effects);
        }
        (Some(entry), effects)
    }

    /// As [`Keys::live`], apart from the path of most commands.
    #[inline(never)]
    fn live_apart(
        &mut self,
        key: &[u8],
        look: Use,
    ) -> (Option<EntryMut<'_, Object>>, &mut Effects) {
        let location = self.location(key);
        self.live(key, location, look)
    }

    fn free(&mut self, removed: Deleted<Object>) {
        if let Some(object) = removed.into_object() {
            self.keyspace.reclaimer().reclaim(object);
        }
    }

    #[inline]
    fn notice(&mut self, key: &[u8], event: Event) {
        self.effects.notice(self.db, key, event);
    }

    /// The key's entry for a command that reads it: counts as a hit or a miss, marks the access.
    /// Part of its callers: to hand back what was found would be a good part of its cost.
    #[inline(always)]
    pub fn read(&mut self, key: &[u8]) -> Option<EntryRef<'_, Object>> {
        let (location, clock, keyspace) = (self.location(key), self.clock, self.keyspace);
        let (db, is_silent) = (self.db, self.is_silent);
        let (entry, effects) = self.live(key, location, Use::Read);
        let Some(mut entry) = entry else {
            effects.misses += 1;
            effects.notice(db, key, Event::KEY_MISS);
            return None;
        };
        effects.hits += 1;
        if !is_silent && !clock.is_stamped(entry.access()) && !keyspace.ignores_reads() {
            entry.set_access(keyspace.next_stamp(clock, entry.access()));
        }
        Some(entry.into_ref())
    }

    /// Several keys to read at once, each as by [`Keys::read`]. Nothing is copied.
    pub fn read_all<'k>(
        &mut self,
        keys: impl Iterator<Item = &'k [u8]> + Clone,
    ) -> SmallVec<[Option<EntryRef<'_, Object>>; 8]> {
        for key in keys.clone() {
            self.read(key);
        }
        let (locked, keyspace, db) = (&self.locked, self.keyspace, self.db);
        let (now_ms, hides_ms) = (self.now.0, self.hides_fields_ms());
        let find = |key| {
            let location = keyspace.locate(key);
            let found = locked.shared(location.shard as usize).tables[db].find(key, location.hash);
            let is_shown = |entry: &EntryRef<'_, Object>| {
                entry.expiry().is_none_or(|at| at > now_ms) && !is_over(&entry.value(), hides_ms)
            };
            found.filter(is_shown)
        };
        keys.map(find).collect()
    }

    /// As [`Keys::read`], for a command that asks about the key and not for its value: the access
    /// clock stays.
    pub fn inspect(&mut self, key: &[u8]) -> Option<EntryRef<'_, Object>> {
        let db = self.db;
        let (entry, effects) = self.live_apart(key, Use::Read);
        if entry.is_some() {
            effects.hits += 1;
        } else {
            effects.misses += 1;
            effects.notice(db, key, Event::KEY_MISS);
        }
        entry.map(EntryMut::into_ref)
    }

    /// The key's entry without any trace of having looked.
    pub fn peek(&mut self, key: &[u8]) -> Option<EntryRef<'_, Object>> {
        self.live_apart(key, Use::Read).0.map(EntryMut::into_ref)
    }

    /// The key's entry as it is stored, even if its time is over.
    pub fn peek_stored(&mut self, key: &[u8]) -> Option<EntryRef<'_, Object>> {
        let (db, hash) = (self.db, self.location(key).hash);
        self.shard_of(key).table(db).find(key, hash)
    }

    pub fn exists(&mut self, key: &[u8]) -> bool {
        self.peek(key).is_some()
    }

    /// Whether no key of this one's shard has a deadline and no field is due: known without a look
    /// at any entry.
    pub fn none_expires(&mut self, key: &[u8]) -> bool {
        let location = self.location(key);
        let table = self.locked.shared(location.shard as usize).table(self.db);
        table.expires_len() == 0 && !self.has_due_fields(location)
    }

    /// The key's entry for a command that changes it. Say what was done with [`Keys::wrote`]. Part
    /// of its callers, as [`Keys::read`].
    #[inline(always)]
    pub fn write(&mut self, key: &[u8]) -> Option<EntryMut<'_, Object>> {
        let (location, clock, keyspace) = (self.location(key), self.clock, self.keyspace);
        if self.epoch.is_running() {
            self.save_before_change(key, location);
        }
        let (entry, effects) = self.live(key, location, Use::Write);
        let mut entry = entry?;
        // Even a call that changes nothing may leave the value in a form of another size.
        effects.mark_touched(location.shard as usize);
        entry.set_access(keyspace.next_stamp(clock, entry.access()));
        Some(entry)
    }

    /// Deletes a key, without telling; the caller says why with [`Keys::wrote`].
    pub fn remove(&mut self, key: &[u8]) -> bool {
        let Some(mut entry) = self.live_apart(key, Use::Write).0 else { return false };
        let bound = bound_of_entry(&entry);
        let unsaved = entry.is_unsaved().then(|| entry.take_unsaved());
        let removed = entry.delete();
        self.reschedule(key, (bound, None));
        match unsaved {
            Some(unsaved) => self.keep_unsaved(key, unsaved),
            None => self.free(removed),
        }
        true
    }

    /// Deletes a key and gives its value to the caller: RENAME, MOVE, GETDEL.
    pub fn take(&mut self, key: &[u8]) -> Option<Removed<Object>> {
        if self.epoch.is_running() {
            let location = self.location(key);
            self.save_before_change(key, location);
        }
        let entry = self.live_apart(key, Use::Write).0?;
        let bound = bound_of_entry(&entry);
        let removed = entry.remove();
        self.reschedule(key, (bound, None));
        Some(removed)
    }

    /// Whether the shard of this key is locked.
    ///
    /// For scripts, which ask for copies of their keys in any order: the handler that asks for the
    /// same key next finds it at once.
    pub fn holds(&mut self, key: &[u8]) -> bool {
        if let Some(known) = self.known.iter().find(|known| known.key == key) {
            self.asked = Some(known);
            return self.locked.held().contains(known.location.shard as usize);
        }
        let location = self.location(key);
        self.last = LastKey::new(key, location);
        self.locked.held().contains(location.shard as usize)
    }

    /// Whether this key may be used: its shard is locked, or could be now without waiting.
    pub fn try_hold(&mut self, key: &[u8]) -> bool {
        let location = self.location(key);
        let shard = location.shard as usize;
        let is_held = self.locked.try_add(shard) && self.may_hold(shard) && !self.is_moving(key);
        // Someone may have begun to track all keys, and read there, since the others were locked.
        self.effects.wants_all_keys |= self.keyspace.wants_all_keys();
        is_held
    }

    /// Who wants to hear of changes was changed by the call itself: what it does from now on is
    /// recorded for those who do now.
    pub fn refresh_listeners(&mut self) {
        self.effects.wanted = self.keyspace.notify_classes();
        self.effects.wants_all_keys = self.keyspace.wants_all_keys();
    }

    /// Where a key belongs; see [`Keys::shard`].
    pub fn locate(&mut self, key: &[u8]) -> Location {
        self.location(key)
    }

    /// The shard of a key, for those who watch it or wait for it.
    pub fn shard_of(&mut self, key: &[u8]) -> &mut Shard {
        let location = self.location(key);
        self.locked.shard(location.shard as usize)
    }

    pub fn shard(&mut self, index: usize) -> &mut Shard {
        self.locked.shard(index)
    }

    /// A shard has room for so many keys of this database at once, if it has never held any.
    pub fn reserve(&mut self, shard: usize, keys: usize) {
        self.locked.shard(shard).tables[self.db].reserve(keys);
        self.effects.touched.insert(shard);
    }

    /// The held shards were changed by what was appended before this offset of the journal.
    pub fn set_last_write(&mut self, offset: u64) {
        for index in self.locked.held().iter() {
            self.locked.shard(index).last_write = offset;
        }
    }

    /// The offset of the journal that is durable if all is that was written to the held shards.
    pub fn last_write(&self) -> u64 {
        last_write(self.keyspace, &self.locked)
    }

    /// What the call answers shows changes beside the held shards, up to an offset of the journal.
    pub fn shows(&mut self, offset: u64) {
        let journal = self.keyspace.journal();
        if journal.is_strict() {
            self.effects.shown = self.effects.shown.max(offset).max(journal.strict_since());
        }
    }

    /// It shows something of the whole keyspace, which it has looked at before.
    pub fn shows_all(&mut self) {
        // Counts are published behind the records of what they count.
        fence(Ordering::Acquire);
        self.shows(self.keyspace.journal().offset());
    }
}
