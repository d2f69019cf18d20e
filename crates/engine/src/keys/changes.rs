//! How a change is reported: once for each key. From that one call follow the dirty counter, WATCH,
//! keyspace notifications, records and the service of blocked clients.

use super::{Keys, ReadyKey};
use crate::event::Event;
use crate::tracked::Cause;

impl Keys<'_> {
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

    /// As [`Keys::wrote`], for a call that counts as several changes.
    #[inline]
    pub fn wrote_many(&mut self, key: &[u8], event: Event, changes: u64) {
        self.effects.dirty += changes;
        self.touch(key);
        self.notice(key, event);
    }

    /// As [`Keys::wrote`], for a key that went because its deadline was set in the past.
    pub fn wrote_expired(&mut self, key: &[u8]) {
        let location = self.location(key);
        self.keyspace.count_expired(location.shard as usize);
        self.wrote(key, Event::EXPIRED);
    }

    /// As [`Keys::wrote`], for a change that has no event of its own.
    #[inline]
    pub fn changed(&mut self, key: &[u8]) {
        self.effects.dirty += 1;
        self.touch(key);
    }

    /// As [`Keys::wrote`], for a change to what is no key: the functions.
    pub fn wrote_no_key(&mut self) {
        self.effects.dirty += 1;
    }

    /// As [`Keys::wrote`], for changes beside the data, such as who has read what of a stream:
    /// Neither watchers nor waiters are notified of them.
    /// DIFFERS: clients that track the key are, for replies that they may keep show these.
    pub fn wrote_beside(&mut self, key: &[u8], changes: u64, event: Option<Event>) {
        let index = usize::from(self.location(key).shard);
        self.effects.touched.insert(index);
        let cause = Cause::ChangedBy(self.effects.caller.author);
        self.effects.note_change(&mut self.locked.shard(index).tracked, key, cause);
        self.effects.dirty += changes;
        if let Some(event) = event {
            self.notice(key, event);
        }
    }

    /// As [`Keys::wrote`], for a further key of a change that was reported already and counts as
    /// one.
    pub fn wrote_too(&mut self, key: &[u8], event: Event) {
        self.touch(key);
        self.notice(key, event);
    }

    #[inline]
    fn touch(&mut self, key: &[u8]) {
        let shard = self.location(key).shard as usize;
        let has_listeners = self.locked.shard(shard).has_listeners();
        self.effects.touched.insert(shard);
        if has_listeners || self.effects.wants_all_keys {
            self.touch_listeners(key);
        }
    }

    #[inline(never)]
    fn touch_listeners(&mut self, key: &[u8]) {
        let (db, index) = (self.db, usize::from(self.location(key).shard));
        let shard = self.locked.shard(index);
        shard.watched.touch(db, key);
        let cause = Cause::ChangedBy(self.effects.caller.author);
        self.effects.note_change(&mut shard.tracked, key, cause);
        if shard.waiting.is_awaited(db, key) {
            self.effects.ready.push(ReadyKey { db, key: key.into() });
        }
    }

    /// Adds a command to the record of the call under way, if anybody listens.
    #[inline]
    pub fn record<A: AsRef<[u8]>>(&mut self, args: impl IntoIterator<Item = A>) {
        if self.effects.records.is_on() {
            self.effects.records.push(self.db, args);
        }
    }

    /// As [`Keys::record`], for a command that ends with a list of any length.
    pub fn record_list<A: AsRef<[u8]>>(
        &mut self,
        head: &[&[u8]],
        list: impl IntoIterator<Item = A>,
    ) {
        self.effects.records.push_list(self.db, head, list);
    }

    /// Whether anybody listens to records: if not, none need be made.
    #[inline]
    pub fn is_recording(&self) -> bool {
        self.effects.records.is_on()
    }

    /// A further event of a change that was reported already.
    #[inline]
    pub fn also(&mut self, key: &[u8], event: Event) {
        self.notice(key, event);
    }
}
