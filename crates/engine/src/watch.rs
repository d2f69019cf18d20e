//! WATCH: who is to be told that a key was touched. One per shard, under the shard's lock.
//!
//! A client stops watching by dropping its flag, which needs no lock; the shard forgets it when the
//! key is next touched or at the next sweep.

use russet_base::shared::shrink_table_beyond;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

/// Places for keys that a table with few of them keeps.
const KEYS_KEPT_MAX: usize = 16;

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

/// One who watches a key.
#[derive(Debug)]
struct Watcher {
    flag: Weak<WatchFlag>,
    /// It found no key, or an expired one, so it does not mind if one expires.
    saw_none: bool,
}

type Watchers = Vec<Watcher>;

/// The watched keys of one shard.
#[derive(Debug, Default)]
pub struct Watched {
    /// By database, then by key.
    by_db: HashMap<usize, HashMap<Box<[u8]>, Watchers>>,
}

impl Watched {
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.by_db.is_empty()
    }

    /// `exists` says whether the watcher has seen a key that is not expired.
    pub fn add(&mut self, db: usize, key: &[u8], flag: &Arc<WatchFlag>, exists: bool) {
        let watchers = self.by_db.entry(db).or_default().entry(key.into()).or_default();
        watchers.retain(|known| known.flag.strong_count() > 0);
        if !watchers.iter().any(|known| std::ptr::eq(known.flag.as_ptr(), Arc::as_ptr(flag))) {
            watchers.push(Watcher { flag: Arc::downgrade(flag), saw_none: !exists });
        }
    }

    /// The key has expired: sets the flags of all who have seen it before.
    pub fn expire(&mut self, db: usize, key: &[u8]) {
        if let Some(watchers) = self.by_db.get_mut(&db).and_then(|keys| keys.get_mut(key)) {
            let seen = watchers.extract_if(.., |watcher| !watcher.saw_none);
            seen.filter_map(|watcher| watcher.flag.upgrade()).for_each(|flag| flag.touch());
        }
    }

    /// Sets the flags of all who watch the key. A touched transaction fails whatever comes, so it
    /// need not be told again.
    pub fn touch(&mut self, db: usize, key: &[u8]) {
        if let Some(keys) = self.by_db.get_mut(&db)
            && let Some(watchers) = keys.remove(key)
        {
            touch_each(&watchers);
            shrink_table_beyond(keys, KEYS_KEPT_MAX);
            if keys.is_empty() {
                self.by_db.remove(&db);
            }
        }
    }

    /// Touches every watched key of a database that `is_affected`.
    pub fn touch_all(&mut self, db: usize, mut is_affected: impl FnMut(&[u8]) -> bool) {
        for (key, watchers) in self.by_db.get(&db).into_iter().flatten() {
            if is_affected(key) {
                touch_each(watchers);
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
            keys.retain(|_, all| all.iter().any(|watcher| watcher.flag.strong_count() > 0));
            shrink_table_beyond(keys, KEYS_KEPT_MAX);
            !keys.is_empty()
        });
    }
}

fn touch_each(watchers: &[Watcher]) {
    watchers.iter().filter_map(|watcher| watcher.flag.upgrade()).for_each(|flag| flag.touch());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_touch_reaches_the_watchers_of_that_key_only() {
        let (mine, other) = (Arc::new(WatchFlag::default()), Arc::new(WatchFlag::default()));
        let mut watched = Watched::default();
        watched.add(0, b"k", &mine, true);
        watched.add(0, b"k", &mine, true);
        watched.add(1, b"k", &other, true);
        watched.touch(0, b"absent");
        assert!(!mine.is_touched());
        watched.touch(0, b"k");
        assert!(mine.is_touched() && !other.is_touched());
        drop(other);
        watched.sweep();
        assert!(watched.is_empty());
    }

    #[test]
    fn expiry_is_no_change_for_who_saw_no_key() {
        let (early, late) = (Arc::new(WatchFlag::default()), Arc::new(WatchFlag::default()));
        let mut watched = Watched::default();
        watched.add(0, b"k", &early, true);
        watched.add(0, b"k", &late, false);
        watched.expire(0, b"k");
        assert!(early.is_touched() && !late.is_touched());
        watched.touch(0, b"k");
        assert!(late.is_touched());
    }
}
