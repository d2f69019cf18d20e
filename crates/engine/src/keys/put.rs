//! Values that are put under keys, whatever was there before.

use super::Keys;
use crate::access::NotedUse;
use crate::event::Event;
use crate::field_expiry::{bound_of_entry, bound_of_new};
use crate::keys::Use;
use crate::keyspace::Location;
use crate::store::raw::table::{NewValue, Removed, Slot};
use crate::types::string;
use crate::value::Object;
use russet_base::Args;
use russet_base::clock::UnixMillis;

impl Keys<'_> {
    /// Puts a value under a key, whatever was there before: the old value is gone, and so is its
    /// expiry, unless it is given again.
    #[inline]
    pub fn put(&mut self, key: &[u8], value: NewValue<'_, Object>, expiry: Option<UnixMillis>) {
        let location = self.location(key);
        if self.has_due_fields(location) {
            return self.put_beside_due(key, value, expiry);
        }
        self.put_at((key, location), value, expiry);
    }

    #[inline(never)]
    fn put_beside_due(
        &mut self,
        key: &[u8],
        value: NewValue<'_, Object>,
        expiry: Option<UnixMillis>,
    ) {
        let location = self.location(key);
        self.expire_fields(key, location, Use::Write);
        self.put_at((key, location), value, expiry);
    }

    /// As [`Keys::put`], where no field of the key's hash can be due.
    #[inline(always)]
    fn put_at(
        &mut self,
        (key, location): (&[u8], Location),
        value: NewValue<'_, Object>,
        expiry: Option<UnixMillis>,
    ) {
        let (clock, keyspace) = (self.clock, self.keyspace);
        let expiry = expiry.map(|at| at.0);
        let now = self.now.0;
        let (mut replaced, mut has_expired) = (None, false);
        let moved = match self.epoch.is_running() {
            true => self.save_before_replacing(key, location),
            false => None,
        };
        let (mut bound, new_bound) = (None, bound_of_new(&value));
        match self.table(location.shard).entry(key, location.hash) {
            Slot::Occupied(mut entry) => {
                has_expired = entry.expiry().is_some_and(|at| at <= now);
                bound = bound_of_entry(&entry).or(moved);
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

    /// Puts a value under a key that must not be there, not even with its time over; whether it was
    /// so. One look-up, for a load of millions.
    pub fn put_new(
        &mut self,
        key: &[u8],
        value: NewValue<'_, Object>,
        expiry: Option<UnixMillis>,
    ) -> bool {
        let (location, clock) = (self.location(key), self.clock);
        let new_bound = bound_of_new(&value);
        let expiry = expiry.map(|at| at.0);
        match self.table(location.shard).entry(key, location.hash) {
            Slot::Occupied(_) => return false,
            Slot::Vacant(vacant) => {
                vacant.insert(key, value, expiry).set_access(clock.new_stamp());
            }
        }
        self.notice(key, Event::NEW);
        self.reschedule(key, (None, new_bound));
        true
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

    /// Marks a key that was just put as used when a file or a call says.
    pub fn set_noted_use(&mut self, key: &[u8], noted: NotedUse) {
        let (location, now) = (self.location(key), self.real_now());
        let Some(stamp) = self.keyspace.stamp_of(noted, now) else { return };
        if let Some(mut entry) = self.table(location.shard).find_mut(key, location.hash) {
            entry.set_access(stamp);
        }
    }
}
