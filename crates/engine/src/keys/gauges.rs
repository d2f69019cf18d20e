//! Counts and bytes that others see without a lock, and the database that they belong to. They are
//! published behind the records of what they count, so that who is shown them can wait for these.

use super::Keys;
use crate::keyspace::Keyspace;
use crate::store::raw::table::Changed;
use std::sync::atomic::Ordering;

/// What INFO says of one database.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DbCounts {
    pub keys: u64,
    /// Keys that expire.
    pub expires: u64,
    /// Hashes with fields that expire.
    pub volatile: u64,
}

impl Keyspace {
    /// As of the last call that ended in each shard.
    pub fn counts(&self, db: usize) -> DbCounts {
        let mut counts = DbCounts { keys: self.key_counts().total(db), ..DbCounts::default() };
        if counts.keys > 0 {
            for gauges in self.gauges() {
                counts.expires += gauges.expires[db].load(Ordering::Relaxed);
                counts.volatile += gauges.volatile[db].load(Ordering::Relaxed);
            }
        }
        counts
    }
}

impl Keys<'_> {
    /// The same with what this call has changed, which nobody else is shown yet.
    pub fn counts(&mut self, db: usize) -> DbCounts {
        let keyspace = self.keyspace;
        let mut counts = keyspace.counts(db);
        if self.effects.touched.is_empty() && self.effects.left.is_empty() {
            return counts;
        }
        let put = |sum: &mut u64, (now, before): (usize, u64)| {
            *sum = sum.saturating_sub(before) + now as u64;
        };
        for index in self.held().clone().iter() {
            let gauges = &keyspace.gauges()[index];
            let shard = self.locked.shard(index);
            let table = &shard.tables[db];
            let (expires, volatile) = (&gauges.expires[db], &gauges.volatile[db]);
            put(&mut counts.keys, (table.len(), keyspace.key_counts().of_shard(db, index)));
            put(&mut counts.expires, (table.expires_len(), expires.load(Ordering::Relaxed)));
            put(&mut counts.volatile, (shard.fields[db].len(), volatile.load(Ordering::Relaxed)));
        }
        counts
    }

    /// Goes on in another database. What has changed in this one is published with the rest.
    pub fn select(&mut self, db: usize) {
        if db != self.db && !self.effects.touched.is_empty() {
            let touched = std::mem::take(&mut self.effects.touched);
            self.effects.leave(self.db, &touched);
        }
        self.db = db;
    }

    /// Runs `action` with another database selected: COPY, MOVE.
    pub fn in_db<R>(&mut self, db: usize, action: impl FnOnce(&mut Self) -> R) -> R {
        let own = self.db;
        self.select(db);
        let result = action(self);
        self.select(own);
        result
    }

    /// Makes the counts and bytes of the changed shards visible to those without their locks.
    #[inline(always)]
    pub fn publish(&mut self) {
        if !self.effects.left.is_empty() {
            self.publish_left();
        }
        self.publish_selected();
    }

    #[cold]
    fn publish_left(&mut self) {
        let selected = self.db;
        let current = std::mem::take(&mut self.effects.touched);
        for (db, touched) in std::mem::take(&mut self.effects.left) {
            (self.db, self.effects.touched) = (db, touched);
            self.publish_selected();
        }
        (self.db, self.effects.touched) = (selected, current);
        for db in self.effects.emptied.drain(..) {
            self.keyspace.key_counts().emptied(db);
        }
    }

    #[inline(always)]
    fn publish_selected(&mut self) {
        let (db, mut bytes, mut lane) = (self.db, 0, 0);
        self.effects.touched.drain_each(|index| {
            let shard = self.locked.shard(index);
            let changed = shard.tables[db].take_changed();
            if changed == Changed::Counts {
                self.keyspace.publish_gauges(index, shard, db);
            }
            if changed != Changed::Nothing {
                bytes += shard.tables[db].take_unpublished();
                lane = index;
            }
        });
        if bytes != 0 {
            self.keyspace.used_memory().add(lane, bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::event::Event;
    use crate::keys::{Effects, Keys};
    use crate::keyspace::Keyspace;
    use crate::store::raw::table::NewValue;
    use russet_base::clock::UnixMillis;
    use russet_base::hash::KeyHasher;

    /// A script that went on in another database had its keys counted before its records were in
    /// the journal: with `appendfsync always` INFO showed what was not durable.
    #[test]
    fn what_is_in_other_databases_is_counted_at_the_end_as_well() {
        let keyspace = Keyspace::new(2, 3, KeyHasher::with_seed(1));
        let mut effects = Effects::default();
        let used = keyspace.used_memory().bytes();
        let locked = keyspace.try_lock(&keyspace.all_shards()).ok().unwrap();
        let mut keys = keyspace.keys(locked, &mut effects, (0, UnixMillis(1)));
        let put = |keys: &mut Keys, key: &str| {
            keys.put(key.as_bytes(), NewValue::Int(1), None);
            keys.wrote(key.as_bytes(), Event::string("set"));
        };
        put(&mut keys, "a");
        keys.select(1);
        put(&mut keys, "a");
        keys.in_db(2, |keys| put(keys, "a"));
        keys.select(0);
        put(&mut keys, "b");
        let counts = || [0, 1, 2].map(|db| keyspace.key_counts().total(db));
        assert_eq!(counts(), [0, 0, 0]);
        keys.publish();
        assert_eq!(counts(), [2, 1, 1]);
        assert!(keys.effects.left.is_empty() && keyspace.used_memory().bytes() > used);
    }

    /// FLUSHALL and SWAPDB showed their counts before their records were in the journal.
    #[test]
    fn what_is_flushed_or_swapped_is_counted_at_the_end() {
        let keyspace = Keyspace::new(2, 3, KeyHasher::with_seed(1));
        let mut effects = Effects::default();
        let locked = keyspace.try_lock(&keyspace.all_shards()).ok().unwrap();
        let mut keys = keyspace.keys(locked, &mut effects, (0, UnixMillis(1)));
        let put = |keys: &mut Keys, key: &str| {
            keys.put(key.as_bytes(), NewValue::Int(1), None);
            keys.wrote(key.as_bytes(), Event::string("set"));
        };
        ["a", "b", "c"].iter().for_each(|key| put(&mut keys, key));
        keys.publish();
        let counts = || [0, 1, 2].map(|db| keyspace.key_counts().total(db));
        let used = keyspace.used_memory().bytes();
        keys.swap((0, 1));
        assert_eq!(counts(), [3, 0, 0]);
        keys.publish();
        assert_eq!(counts(), [0, 3, 0]);
        keys.flush(0..3);
        put(&mut keys, "d");
        assert_eq!([0, 1].map(|db| keys.counts(db).keys), [1, 0]);
        assert_eq!((counts(), keyspace.used_memory().bytes()), ([0, 3, 0], used));
        keys.publish();
        assert_eq!(counts(), [1, 0, 0]);
        assert!(keyspace.used_memory().bytes() < used && !keyspace.key_counts().is_used(1));
    }
}
