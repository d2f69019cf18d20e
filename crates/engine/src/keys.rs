//! What a handler sees of the keyspace: the keys of its own locked shards, never an expired one.
//! Every write is told once, through [`Keys::wrote`]; all that follows from a write starts there.

mod changes;
mod known;

pub use crate::effects::{Effects, ReadyKey};
pub use known::KnownKey;

use known::{LastKey, is_same};

use crate::access::AccessClock;
use crate::event::Event;
use crate::field_expiry::{FieldSchedule, bound_of_entry, bound_of_new};
use crate::keyspace::{Keyspace, Location};
use crate::shard::Shard;
use crate::store::raw::lock::Locked;
use crate::store::raw::table::{Deleted, EntryMut, EntryRef, NewValue, Removed, Slot, Table};
use crate::store::shard_set::ShardSet;
use crate::types::hash::stored::is_over;
use crate::types::string;
use crate::value::Object;
use crate::waiting::Waiting;
use crate::watch::Watched;
use russet_base::Args;
use russet_base::clock::UnixMillis;
use smallvec::SmallVec;
use std::ops::Range;

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
    waiting: &'s Waiting,
    fields: &'s mut FieldSchedule,
    effects: &'s mut Effects,
}

impl ExpiryScope<'_> {
    /// Deletes an expired entry, with its event, or leaves it where it is for now: see
    /// [`Keyspace::may_expire`].
    #[cold]
    #[inline(never)]
    fn expire_entry(self, key: &[u8], (db, shard): (usize, usize), entry: EntryMut<'_, Object>) {
        self.watched.expire(db, key);
        if !self.may_expire {
            return;
        }
        self.fields.forget(key, bound_of_entry(&entry));
        if self.waiting.is_awaited(db, key) {
            self.effects.ready.push(ReadyKey { db, key: key.into() });
        }
        self.effects.touched.insert(shard);
        self.effects.expired(db, key);
        self.keyspace.reclaim_expired(shard, entry.delete().into_object());
    }
}

pub struct Keys<'a> {
    pub(crate) keyspace: &'a Keyspace,
    pub(crate) locked: Locked<'a, Shard>,
    pub db: usize,
    pub now: UnixMillis,
    /// The time that TIME told to a transaction or a script, which is to hear no other.
    pub fixed_micros: Option<i64>,
    /// What entries that are used are stamped with.
    clock: AccessClock,
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
    last: LastKey,
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
        Keys {
            keyspace,
            locked,
            db,
            now,
            fixed_micros: None,
            clock: keyspace.access_clock(now),
            may_expire: keyspace.may_expire(),
            is_silent: false,
            known: &[],
            next_known: 0,
            asked: None,
            last: LastKey::NONE,
            effects,
        }
    }

    /// Gives the keys that planning has hashed already, in the order in which the calls name them.
    #[inline]
    pub fn know(&mut self, known: &'a [KnownKey<'a>]) {
        self.known = known;
    }

    /// Hints that all the known keys will be needed soon: a command of many keys waits for memory
    /// once, not once for each.
    pub fn prefetch_known(&mut self) {
        for &KnownKey { location, .. } in self.known {
            self.table(location.shard).prefetch_bucket(location.hash);
        }
        for &KnownKey { location, .. } in self.known {
            self.table(location.shard).prefetch_entry(location.hash);
        }
    }

    /// Locks the shards of some of the known keys if that takes no waiting, and hints at the keys'
    /// places in their tables.
    #[inline]
    pub fn hold_known_now(&mut self, range: Range<usize>) -> bool {
        let db = self.db;
        self.known[range].iter().all(|&KnownKey { location, .. }| {
            let shard = self.locked.try_add_now(location.shard as usize);
            shard.map(|shard| shard.tables[db].prefetch_bucket(location.hash)).is_some()
        })
    }

    /// Hints that the first of the known keys, whose shards are locked, will be needed soon. Says
    /// whether their shards hold anything large at all: see [`Keys::weigh`].
    #[inline]
    pub fn prefetch_held(&mut self, count: usize) -> bool {
        let mut has_objects = false;
        for &KnownKey { location, .. } in &self.known[..count] {
            let table = self.table(location.shard);
            table.prefetch_entry(location.hash);
            has_objects |= table.has_objects();
        }
        has_objects
    }

    /// The next command's keys begin at this one of the known places.
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
        self.held().count() == self.keyspace.shards()
    }

    /// Where a key is. Planning has hashed the call's keys already, and handlers ask for them in
    /// that order, most of them several times in a row.
    #[inline]
    pub(crate) fn location(&mut self, key: &[u8]) -> Location {
        if let Some(known) = self.asked
            && is_same(known.key, key)
        {
            return known.location;
        }
        if let Some(known) = self.known.get(self.next_known)
            && is_same(known.key, key)
        {
            self.next_known += 1;
            self.asked = Some(known);
            return known.location;
        }
        self.other_location(key)
    }

    /// Where a key is that planning has not found.
    #[inline(never)]
    fn other_location(&mut self, key: &[u8]) -> Location {
        self.last.find(key).unwrap_or_else(|| self.keyspace.locate(key))
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
        let (db, now, shard) = (self.db, self.now, location.shard as usize);
        if self.locked.shard(shard).fields[db].is_due(now)
            && self.expire_fields(key, location, look)
        {
            return (None, self.effects);
        }
        let (keyspace, may_expire) = (self.keyspace, self.may_expire);
        let effects = &mut *self.effects;
        let Shard { tables, watched, waiting, fields, .. } = self.locked.shard(shard);
        let Some(entry) = tables[db].find_mut(key, location.hash) else { return (None, effects) };
        if entry.expiry().is_some_and(|at| at <= now.0) {
            let fields = &mut fields[db];
            let effects = &mut *effects;
            let scope = ExpiryScope { keyspace, may_expire, watched, waiting, fields, effects };
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
    #[inline]
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
        if !is_silent && !clock.is_stamped(entry.access()) {
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

    /// The key's entry for a command that changes it. Say what was done with [`Keys::wrote`].
    #[inline]
    pub fn write(&mut self, key: &[u8]) -> Option<EntryMut<'_, Object>> {
        let (location, clock, keyspace) = (self.location(key), self.clock, self.keyspace);
        let (entry, effects) = self.live(key, location, Use::Write);
        let mut entry = entry?;
        // Even a call that changes nothing may leave the value in a form of another size.
        effects.mark_touched(location.shard as usize);
        entry.set_access(keyspace.next_stamp(clock, entry.access()));
        Some(entry)
    }

    /// Deletes a key, without telling; the caller says why with [`Keys::wrote`].
    pub fn remove(&mut self, key: &[u8]) -> bool {
        let Some(entry) = self.live_apart(key, Use::Write).0 else { return false };
        let bound = bound_of_entry(&entry);
        let removed = entry.delete();
        self.reschedule(key, (bound, None));
        self.free(removed);
        true
    }

    /// Deletes a key and gives its value to the caller: RENAME, MOVE, GETDEL.
    pub fn take(&mut self, key: &[u8]) -> Option<Removed<Object>> {
        let entry = self.live_apart(key, Use::Write).0?;
        let bound = bound_of_entry(&entry);
        let removed = entry.remove();
        self.reschedule(key, (bound, None));
        Some(removed)
    }

    /// Puts a value under a key, whatever was there before: the old value is gone, and so is its
    /// expiry, unless it is given again.
    #[inline]
    pub fn put(&mut self, key: &[u8], value: NewValue<'_, Object>, expiry: Option<UnixMillis>) {
        let (location, clock, keyspace) = (self.location(key), self.clock, self.keyspace);
        let expiry = expiry.map(|at| at.0);
        let now = self.now.0;
        let (mut replaced, mut has_expired) = (None, false);
        let (mut bound, new_bound) = (None, bound_of_new(&value));
        if self.locked.shard(location.shard as usize).fields[self.db].is_due(self.now) {
            self.expire_fields(key, location, Use::Write);
        }
        match self.table(location.shard).entry(key, location.hash) {
            Slot::Occupied(mut entry) => {
                has_expired = entry.expiry().is_some_and(|at| at <= now);
                bound = bound_of_entry(&entry);
                replaced = entry.take_object();
                let access = keyspace.next_stamp(clock, entry.access());
                entry.set_with_expiry(value, expiry);
                entry.set_access(access);
            }
            Slot::Vacant(vacant) => {
                vacant.insert(key, value, expiry).set_access(clock.new_stamp());
                self.notice(key, Event::NEW);
            }
        }
        self.reschedule(key, (bound, new_bound));
        if has_expired {
            // Nobody saw the old value any more, so it went before the new one came.
            self.keyspace.count_expired(location.shard as usize);
            self.effects.expired(self.db, key);
            self.notice(key, Event::NEW);
        }
        if let Some(object) = replaced {
            self.keyspace.reclaimer().reclaim(object);
        }
    }

    /// Puts a string under a key; see [`Keys::put`].
    #[inline]
    pub fn put_string(&mut self, key: &[u8], bytes: &[u8], expiry: Option<UnixMillis>) {
        self.put(key, string::encode(bytes), expiry);
    }

    /// As [`Keys::put_string`], for an argument of the call: a long one becomes the value as it is.
    #[inline]
    pub fn put_arg(&mut self, key: &[u8], (args, at): (Args, usize), expiry: Option<UnixMillis>) {
        self.put(key, string::encode_arg(args, at), expiry);
    }

    /// Puts a removed or copied value under a key, with its expiry and access clock. What was there
    /// before is gone; the new key counts as new even so, as Redis has it.
    pub fn put_back(&mut self, key: &[u8], mut value: Removed<Object>) {
        self.remove(key);
        let (expiry, access) = (value.expiry().map(UnixMillis), value.access());
        self.put(key, value.to_new_value(), expiry);
        let location = self.location(key);
        if let Some(mut entry) = self.table(location.shard).find_mut(key, location.hash) {
            entry.set_access(access);
        }
    }

    /// Whether the shard of this key is locked.
    pub fn holds(&mut self, key: &[u8]) -> bool {
        let location = self.location(key);
        self.last.set(key, location);
        self.locked.held().contains(location.shard as usize)
    }

    /// Whether the shard of this key is locked, or could be now without waiting.
    pub fn try_hold(&mut self, key: &[u8]) -> bool {
        let location = self.location(key);
        self.locked.try_add(location.shard as usize)
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

    /// Runs `action` with another database selected: COPY, MOVE.
    pub fn in_db<R>(&mut self, db: usize, action: impl FnOnce(&mut Self) -> R) -> R {
        self.publish();
        let own = std::mem::replace(&mut self.db, db);
        let result = action(self);
        self.publish();
        self.db = own;
        result
    }

    /// Makes the counts and bytes of the changed shards visible to those without their locks.
    pub fn publish(&mut self) {
        let (db, mut bytes, mut lane) = (self.db, 0, 0);
        self.effects.touched.drain_each(|index| {
            let shard = self.locked.shard(index);
            if shard.tables[db].take_changed() {
                self.keyspace.gauges()[index].publish(shard, db);
                bytes += shard.tables[db].take_unpublished();
                lane = index;
            }
        });
        if bytes != 0 {
            self.keyspace.used_memory().add(lane, bytes);
        }
    }
}
