//! WATCH: who is to be told that a key was touched. One per shard, under the shard's lock.
//!
//! A client stops watching by dropping its flag, which needs no lock; the shard forgets it when the
//! key is next touched or at the next sweep.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

/// A client's transaction, as the shards see it: one flag that any touch of a watched key sets.
#[derive(Debug, Default)]
pub struct WatchFlag(AtomicBool);

impl WatchFlag {
    pub fn touch(&self) {
        self.0.store(true, Ordering::Release);
    }

    pub fn is_touched(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

type Flags = Vec<Weak<WatchFlag>>;

/// The watched keys of one shard.
#[derive(Debug, Default)]
pub struct Watched {
    /// By database, then by key.
    by_db: HashMap<usize, HashMap<Box<[u8]>, Flags>>,
}

impl Watched {
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.by_db.is_empty()
    }

    pub fn add(&mut self, db: usize, key: &[u8], flag: &Arc<WatchFlag>) {
        let flags = self.by_db.entry(db).or_default().entry(key.into()).or_default();
        flags.retain(|known| known.strong_count() > 0);
        if !flags.iter().any(|known| std::ptr::eq(known.as_ptr(), Arc::as_ptr(flag))) {
            flags.push(Arc::downgrade(flag));
        }
    }

    /// Sets the flags of all who watch the key. A touched transaction fails whatever comes, so it
    /// need not be told again.
    pub fn touch(&mut self, db: usize, key: &[u8]) {
        if let Some(keys) = self.by_db.get_mut(&db)
            && let Some(flags) = keys.remove(key)
        {
            flags.iter().filter_map(Weak::upgrade).for_each(|flag| flag.touch());
            if keys.is_empty() {
                self.by_db.remove(&db);
            }
        }
    }

    /// Touches every watched key of a database that `is_affected`.
    pub fn touch_all(&mut self, db: usize, mut is_affected: impl FnMut(&[u8]) -> bool) {
        for (key, flags) in self.by_db.get(&db).into_iter().flatten() {
            if is_affected(key) {
                flags.iter().filter_map(Weak::upgrade).for_each(|flag| flag.touch());
            }
        }
    }

    /// The keys of a database that somebody watches.
    pub fn keys_of_db(&self, db: usize) -> Vec<Box<[u8]>> {
        self.by_db.get(&db).into_iter().flat_map(|keys| keys.keys().cloned()).collect()
    }

    /// Forgets those who no longer watch.
    pub fn sweep(&mut self) {
        self.by_db.retain(|_, keys| {
            keys.retain(|_, flags| flags.iter().any(|flag| flag.strong_count() > 0));
            !keys.is_empty()
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_touch_reaches_the_watchers_of_that_key_only() {
        let (mine, other) = (Arc::new(WatchFlag::default()), Arc::new(WatchFlag::default()));
        let mut watched = Watched::default();
        watched.add(0, b"k", &mine);
        watched.add(0, b"k", &mine);
        watched.add(1, b"k", &other);
        watched.touch(0, b"absent");
        assert!(!mine.is_touched());
        watched.touch(0, b"k");
        assert!(mine.is_touched() && !other.is_touched());
        drop(other);
        watched.sweep();
        assert!(watched.is_empty());
    }
}
