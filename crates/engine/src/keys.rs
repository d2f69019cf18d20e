//! What a handler sees of the keyspace: the keys of its own locked shards, never an expired one.
//! Every write is told once, through [`Keys::wrote`]; all that follows from a write starts there.

use crate::event::{Event, EventClasses, Notice};
use crate::keyspace::{Keyspace, Place};
use crate::shard::Shard;
use crate::store::raw::lock::Locked;
use crate::store::raw::table::{Deleted, EntryMut, EntryRef, NewValue, Removed, Slot, Table};
use crate::store::shard_set::ShardSet;
use crate::types::string;
use crate::value::Object;
use russet_base::clock::UnixMillis;

/// A key that someone waits for and that was touched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadyKey {
    pub db: usize,
    pub key: Box<[u8]>,
}

/// What a command did, for those who must hear of it before the shards are unlocked.
#[derive(Debug, Default)]
pub struct Effects {
    /// Changes to the data, as `rdb_changes_since_last_save` counts them.
    pub dirty: u64,
    pub notices: Vec<Notice>,
    pub ready: Vec<ReadyKey>,
    pub hits: u32,
    pub misses: u32,
}

pub struct Keys<'a> {
    pub(crate) keyspace: &'a Keyspace,
    pub(crate) locked: Locked<'a, Shard>,
    pub db: usize,
    pub now: UnixMillis,
    /// Reads leave no trace in the access clock (CLIENT NO-TOUCH, OBJECT, ...).
    pub is_silent: bool,
    notify: EventClasses,
    known: &'a [(usize, Place)],
    next_known: usize,
    last: (usize, Place),
    touched: ShardSet,
    pub effects: Effects,
}

impl<'a> Keys<'a> {
    pub(crate) fn new(
        keyspace: &'a Keyspace,
        locked: Locked<'a, Shard>,
        db: usize,
        now: UnixMillis,
    ) -> Self {
        Keys {
            keyspace,
            locked,
            db,
            now,
            is_silent: false,
            notify: keyspace.notify_classes(),
            known: &[],
            next_known: 0,
            last: (0, Place { shard: 0, hash: 0 }),
            touched: ShardSet::EMPTY,
            effects: Effects::default(),
        }
    }

    /// Gives the places that planning already computed, by the addresses of the key's bytes.
    #[must_use]
    pub fn knowing(mut self, known: &'a [(usize, Place)]) -> Self {
        self.known = known;
        self
    }

    pub fn keyspace(&self) -> &'a Keyspace {
        self.keyspace
    }

    pub fn held(&self) -> ShardSet {
        self.locked.held()
    }

    /// The same key is asked for several times by one handler, and planning has hashed it already.
    #[inline]
    fn place(&mut self, key: &[u8]) -> Place {
        let address = key.as_ptr() as usize;
        if self.last.0 == address {
            return self.last.1;
        }
        let place = match self.known.get(self.next_known) {
            Some(&(known, place)) if known == address => {
                self.next_known += 1;
                place
            }
            _ => self.keyspace.place(key),
        };
        // An empty key has no bytes of its own, so its address says nothing.
        if !key.is_empty() {
            self.last = (address, place);
        }
        place
    }

    #[inline]
    fn table(&mut self, shard: u16) -> &mut Table<Object> {
        &mut self.locked.shard(shard as usize).tables[self.db]
    }

    /// True if the key is there and not expired. An expired one is deleted, with its event.
    #[inline]
    fn check(&mut self, key: &[u8], place: Place) -> bool {
        let now = self.now.0;
        match self.table(place.shard).find(key, place.hash) {
            None => false,
            Some(entry) if entry.expiry().is_some_and(|at| at <= now) => {
                self.expire(key, place);
                false
            }
            Some(_) => true,
        }
    }

    #[cold]
    fn expire(&mut self, key: &[u8], place: Place) {
        let removed = self.table(place.shard).delete(key, place.hash);
        self.free(removed);
        self.keyspace.count_expired(place.shard as usize);
        self.touched.insert(place.shard as usize);
        self.locked.shard(place.shard as usize).watched.touch(self.db, key);
        self.notice(key, Event::EXPIRED);
    }

    fn free(&mut self, removed: Option<Deleted<Object>>) {
        if let Some(object) = removed.and_then(Deleted::into_object) {
            self.keyspace.reclaimer().reclaim(object);
        }
    }

    fn notice(&mut self, key: &[u8], event: Event) {
        if self.notify.has_any(event.class) {
            self.effects.notices.push(Notice { db: self.db, event, key: key.into() });
        }
    }

    /// The key's entry for a command that reads it: counts as a hit or a miss, marks the access.
    #[inline]
    pub fn read(&mut self, key: &[u8]) -> Option<EntryRef<'_, Object>> {
        let place = self.place(key);
        if !self.check(key, place) {
            self.effects.misses += 1;
            self.notice(key, Event::KEY_MISS);
            return None;
        }
        self.effects.hits += 1;
        let clock = self.access_clock();
        let is_silent = self.is_silent;
        let mut entry = self.table(place.shard).find_mut(key, place.hash)?;
        if !is_silent && entry.access() != clock {
            entry.set_access(clock);
        }
        Some(entry.into_ref())
    }

    /// As [`Keys::read`], for a command that asks about the key and not for its value: the access
    /// clock stays.
    pub fn inspect(&mut self, key: &[u8]) -> Option<EntryRef<'_, Object>> {
        let place = self.place(key);
        if !self.check(key, place) {
            self.effects.misses += 1;
            self.notice(key, Event::KEY_MISS);
            return None;
        }
        self.effects.hits += 1;
        self.table(place.shard).find(key, place.hash)
    }

    /// The key's entry without any trace of having looked.
    pub fn peek(&mut self, key: &[u8]) -> Option<EntryRef<'_, Object>> {
        let place = self.place(key);
        if !self.check(key, place) {
            return None;
        }
        self.table(place.shard).find(key, place.hash)
    }

    pub fn exists(&mut self, key: &[u8]) -> bool {
        let place = self.place(key);
        self.check(key, place)
    }

    /// The key's entry for a command that changes it. Say what was done with [`Keys::wrote`].
    #[inline]
    pub fn write(&mut self, key: &[u8]) -> Option<EntryMut<'_, Object>> {
        let place = self.place(key);
        if !self.check(key, place) {
            return None;
        }
        let clock = self.access_clock();
        let mut entry = self.table(place.shard).find_mut(key, place.hash)?;
        entry.set_access(clock);
        Some(entry)
    }

    /// The key's entry or its vacant place, in one probe.
    #[inline]
    fn slot(&mut self, key: &[u8]) -> Slot<'_, Object> {
        let place = self.place(key);
        let now = self.now.0;
        if let Some(entry) = self.table(place.shard).find(key, place.hash)
            && entry.expiry().is_some_and(|at| at <= now)
        {
            self.expire(key, place);
        }
        self.table(place.shard).entry(key, place.hash)
    }

    /// Deletes a key, without telling; the caller says why with [`Keys::wrote`].
    pub fn remove(&mut self, key: &[u8]) -> bool {
        let place = self.place(key);
        if !self.check(key, place) {
            return false;
        }
        let removed = self.table(place.shard).delete(key, place.hash);
        self.free(removed);
        true
    }

    /// Deletes a key and gives its value to the caller: RENAME, MOVE, GETDEL.
    pub fn take(&mut self, key: &[u8]) -> Option<Removed<Object>> {
        let place = self.place(key);
        if !self.check(key, place) {
            return None;
        }
        self.table(place.shard).remove(key, place.hash)
    }

    /// Puts a value under a key, whatever was there before: the old value is gone, and so is its
    /// expiry, unless it is given again.
    #[inline]
    pub fn put(&mut self, key: &[u8], value: NewValue<'_, Object>, expiry: Option<UnixMillis>) {
        let clock = self.access_clock();
        let expiry = expiry.map(|at| at.0);
        let mut replaced = None;
        match self.slot(key) {
            Slot::Occupied(mut entry) => {
                replaced = entry.take_object();
                entry.set_with_expiry(value, expiry);
                entry.set_access(clock);
            }
            Slot::Vacant(vacant) => {
                vacant.insert(key, value, expiry).set_access(clock);
                self.notice(key, Event::NEW);
            }
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

    /// Puts a removed or copied value under a key, with its expiry and access clock. What was there
    /// before is gone; the new key counts as new even so, as Redis has it.
    pub fn put_back(&mut self, key: &[u8], mut value: Removed<Object>) {
        self.remove(key);
        let (expiry, access) = (value.expiry().map(UnixMillis), value.access());
        self.put(key, value.to_new_value(), expiry);
        let place = self.place(key);
        if let Some(mut entry) = self.table(place.shard).find_mut(key, place.hash) {
            entry.set_access(access);
        }
    }

    /// Whether the shard of this key is among the locked ones.
    pub fn holds(&mut self, key: &[u8]) -> bool {
        let place = self.keyspace.place(key);
        self.locked.held().contains(place.shard as usize)
    }

    /// Lets those who wait for this key have another look at it, though nothing was written.
    pub fn recheck_waiters(&mut self, key: &[u8]) {
        let db = self.db;
        if self.shard_of(key).waiting.is_awaited(db, key) {
            self.effects.ready.push(ReadyKey { db, key: key.into() });
        }
    }

    /// Tells, once, that `key` was changed, and how. From here follow the dirty counter, WATCH,
    /// keyspace notifications and the service of blocked clients.
    #[inline]
    pub fn wrote(&mut self, key: &[u8], event: Event) {
        self.changed(key);
        self.notice(key, event);
    }

    /// As [`Keys::wrote`], for a change that has no event of its own.
    #[inline]
    pub fn changed(&mut self, key: &[u8]) {
        self.effects.dirty += 1;
        self.touch(key);
    }

    /// As [`Keys::wrote`], for a further key of a change that was told already and counts as one.
    pub fn wrote_too(&mut self, key: &[u8], event: Event) {
        self.touch(key);
        self.notice(key, event);
    }

    #[inline]
    fn touch(&mut self, key: &[u8]) {
        let place = self.place(key);
        let db = self.db;
        self.touched.insert(place.shard as usize);
        let shard = self.locked.shard(place.shard as usize);
        if shard.has_listeners() {
            shard.watched.touch(db, key);
            if shard.waiting.is_awaited(db, key) {
                self.effects.ready.push(ReadyKey { db, key: key.into() });
            }
        }
    }

    /// A further event of a change that was told already.
    #[inline]
    pub fn also(&mut self, key: &[u8], event: Event) {
        self.notice(key, event);
    }

    /// The shard of a key, for those who watch it or wait for it.
    pub fn shard_of(&mut self, key: &[u8]) -> &mut Shard {
        let place = self.place(key);
        self.locked.shard(place.shard as usize)
    }

    pub fn shard(&mut self, index: usize) -> &mut Shard {
        self.locked.shard(index)
    }

    /// The clock that entries are stamped with: seconds, 24 bits, as Redis keeps it.
    #[inline]
    pub fn access_clock(&self) -> u32 {
        (self.now.0 / 1000) as u32 & 0x00ff_ffff
    }

    /// Runs `action` with another database selected: COPY, MOVE.
    pub fn in_db<R>(&mut self, db: usize, action: impl FnOnce(&mut Self) -> R) -> R {
        let own = std::mem::replace(&mut self.db, db);
        self.publish();
        let result = action(self);
        self.publish();
        self.db = own;
        result
    }

    /// Makes the counts of the changed shards visible to INFO.
    pub fn publish(&mut self) {
        let touched = std::mem::replace(&mut self.touched, ShardSet::EMPTY);
        for index in touched.iter() {
            self.keyspace.publish_gauges(index, &mut self.locked, self.db);
        }
    }
}
