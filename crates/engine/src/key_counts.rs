//! How many keys each shard has in each database, and what their slots take up, readable without
//! locks. The counts of a database lie side by side: their sum is read from few lines of memory.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Only the holder of a shard's lock writes its counts, so plain stores are enough.
pub struct KeyCounts {
    shards: usize,
    counts: Box<[AtomicU64]>,
    /// Bytes of slots, without the entries, in the same order.
    slot_bytes: Box<[AtomicU64]>,
    /// By database: whether it may have a key. Most have never had one, and then no count need be
    /// looked at.
    used: Box<[AtomicBool]>,
}

impl KeyCounts {
    pub(crate) fn new(shards: usize, databases: usize) -> Self {
        let zeros = || (0..shards * databases).map(|_| AtomicU64::new(0)).collect();
        let (counts, slot_bytes) = (zeros(), zeros());
        let used = (0..databases).map(|_| AtomicBool::new(false)).collect();
        KeyCounts { shards, counts, slot_bytes, used }
    }

    fn of(&self, db: usize) -> &[AtomicU64] {
        &self.counts[db * self.shards..(db + 1) * self.shards]
    }

    pub(crate) fn set(&self, db: usize, shard: usize, count: u64) {
        let kept = &self.of(db)[shard];
        // Most writes change no count, and others may be reading the line.
        if kept.load(Ordering::Relaxed) != count {
            kept.store(count, Ordering::Relaxed);
            if !self.is_used(db) {
                self.used[db].store(true, Ordering::Relaxed);
            }
        }
    }

    pub(crate) fn set_slot_bytes(&self, db: usize, shard: usize, bytes: u64) {
        let kept = &self.slot_bytes[db * self.shards + shard];
        if kept.load(Ordering::Relaxed) != bytes {
            kept.store(bytes, Ordering::Relaxed);
        }
    }

    /// Bytes of a database's slots, if it has keys.
    pub(crate) fn slot_bytes(&self, db: usize) -> u64 {
        if self.total(db) == 0 {
            return 0;
        }
        let of_db = &self.slot_bytes[db * self.shards..(db + 1) * self.shards];
        of_db.iter().map(|bytes| bytes.load(Ordering::Relaxed)).sum()
    }

    /// Whether a database may have a key, as of the last call that ended in each shard.
    #[inline]
    pub(crate) fn is_used(&self, db: usize) -> bool {
        self.used[db].load(Ordering::Relaxed)
    }

    /// A database was emptied by one who holds all shards, and may have keys again.
    pub(crate) fn emptied(&self, db: usize) {
        self.used[db].store(self.total(db) > 0, Ordering::Relaxed);
    }

    /// The keys of a database, as of the last call that ended in each shard.
    pub fn total(&self, db: usize) -> u64 {
        if !self.is_used(db) {
            return 0;
        }
        self.of(db).iter().map(|count| count.load(Ordering::Relaxed)).sum()
    }

    /// The keys of a shard in one database.
    pub(crate) fn of_shard(&self, db: usize, shard: usize) -> u64 {
        self.of(db)[shard].load(Ordering::Relaxed)
    }

    /// The shard that holds the key of number `at`, were they all in one row.
    pub fn shard_of_nth(&self, db: usize, mut at: u64) -> Option<usize> {
        self.of(db).iter().position(|count| {
            let count = count.load(Ordering::Relaxed);
            let is_here = at < count;
            at = at.saturating_sub(count);
            is_here
        })
    }

    /// The keys of a shard in all databases.
    pub(crate) fn in_shard(&self, shard: usize) -> u64 {
        let counts = self.counts.iter().skip(shard).step_by(self.shards);
        counts.map(|count| count.load(Ordering::Relaxed)).sum()
    }

    /// Whether there is a key in any database.
    pub fn is_any(&self) -> bool {
        self.counts.iter().any(|count| count.load(Ordering::Relaxed) > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_summed_and_found_by_database() {
        let counts = KeyCounts::new(4, 2);
        assert!(!counts.is_any());
        counts.set(1, 1, 3);
        counts.set(1, 3, 2);
        counts.set(0, 2, 7);
        assert_eq!((counts.total(0), counts.total(1)), (7, 5));
        let shards: Vec<_> = (0..6).map(|at| counts.shard_of_nth(1, at)).collect();
        assert_eq!(shards, [Some(1), Some(1), Some(1), Some(3), Some(3), None]);
        counts.set(1, 1, 0);
        assert_eq!(counts.total(1), 2);
        counts.set(1, 3, 0);
        assert!(counts.is_used(1) && counts.total(1) == 0);
        counts.emptied(0);
        counts.emptied(1);
        counts.set(1, 0, 0);
        assert!(!counts.is_used(1) && counts.is_used(0));
        counts.set(1, 0, 4);
        assert_eq!(counts.total(1), 4);
    }
}
