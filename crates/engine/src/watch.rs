//! WATCH: who is to be notified that a key was touched. One per shard, under the shard's lock.
//!
//! A client stops watching by dropping its flag, which needs no lock; the shard forgets it when the
//! key is next touched or when a sweep comes by. Neither the keys nor the watchers of one key are
//! bounded, so nothing here goes through all of them for one call: a sweep goes step by step.

use crate::by_key::{ByKey, Swept};
use smallvec::SmallVec;
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

/// One who watches a key.
#[derive(Debug)]
struct Watcher {
    flag: Weak<WatchFlag>,
    /// It found no key, or an expired one, so it does not mind if one expires.
    saw_none: bool,
}

impl Watcher {
    fn is_gone(&self) -> bool {
        self.flag.strong_count() == 0
    }
}

/// Those who watch one key: mostly one does.
#[derive(Debug, Default)]
struct Watchers(SmallVec<[Watcher; 1]>);

impl Watchers {
    /// Before the list grows, those who are gone are taken out. If that makes little room the list
    /// doubles, so each addition costs a few steps in the mean.
    fn push(&mut self, watcher: Watcher) {
        if self.0.len() == self.0.capacity() {
            self.0.retain(|known| !known.is_gone());
            if self.0.len() * 2 > self.0.capacity() {
                self.0.reserve(self.0.len());
            }
        }
        self.0.push(watcher);
    }

    fn touch_each(&self) {
        let flags = self.0.iter().filter_map(|watcher| watcher.flag.upgrade());
        flags.for_each(|flag| flag.touch());
    }
}

/// The watched keys of one shard.
#[derive(Debug, Default)]
pub struct Watched(ByKey<Watchers>);

impl Watched {
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds a client that does not watch this key yet. `exists` says whether it has seen a key that
    /// is not expired, and may be true of any key in a shard where none has a deadline: before one
    /// expires there it is written, which is a touch.
    pub fn add(&mut self, db: usize, key: &[u8], flag: &Arc<WatchFlag>, exists: bool) {
        let watcher = Watcher { flag: Arc::downgrade(flag), saw_none: !exists };
        self.0.entry(db, key).push(watcher);
        // Clients that watch and stop, one key after the other, leave nothing behind.
        self.0.trim_ends(db, |Watchers(few)| few.len() <= 1 && few.iter().all(Watcher::is_gone));
    }

    /// The key has expired: sets the flags of all who have seen it before.
    pub fn expire(&mut self, db: usize, key: &[u8]) {
        if let Some(watchers) = self.0.find_mut(db, key) {
            watchers.0.retain(|watcher| {
                if !watcher.saw_none
                    && let Some(flag) = watcher.flag.upgrade()
                {
                    flag.touch();
                }
                watcher.saw_none
            });
        }
    }

    /// Sets the flags of all who watch the key. A touched transaction fails whatever comes, so it
    /// need not be notified again.
    pub fn touch(&mut self, db: usize, key: &[u8]) {
        if let Some(watchers) = self.0.remove(db, key) {
            watchers.touch_each();
        }
    }

    /// Touches every watched key of a database that `is_affected`.
    pub fn touch_all(&mut self, db: usize, mut is_affected: impl FnMut(&[u8]) -> bool) {
        let affected = self.0.of_db(db).filter(|(key, _)| is_affected(key));
        affected.for_each(|(_, watchers)| watchers.touch_each());
    }

    /// The keys of a database that somebody watches.
    pub fn keys_of_db(&self, db: usize) -> Vec<Box<[u8]>> {
        self.0.keys_of_db(db)
    }

    /// Forgets those who no longer watch some of the keys: about `budget` watchers are looked at,
    /// the next call goes on behind them. Whether it is worth making at once.
    pub fn sweep(&mut self, budget: usize) -> bool {
        self.0.sweep(budget, |watchers| {
            let steps = watchers.0.len();
            watchers.0.retain(|watcher| !watcher.is_gone());
            let left = watchers.0.len();
            Swept { steps, gone: steps - left, is_empty: left == 0 }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_touch_reaches_the_watchers_of_that_key_only() {
        let (mine, other) = (Arc::new(WatchFlag::default()), Arc::new(WatchFlag::default()));
        let mut watched = Watched::default();
        watched.add(0, b"k", &mine, true);
        watched.add(1, b"k", &other, true);
        watched.touch(0, b"absent");
        assert!(!mine.is_touched());
        watched.touch(0, b"k");
        assert!(mine.is_touched() && !other.is_touched());
        drop(other);
        watched.sweep(100);
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

    /// What they left was swept by the clock only: memory that was no longer in the cache.
    #[test]
    fn who_watches_one_key_after_the_other_leaves_little_behind() {
        let mut watched = Watched::default();
        for key in 0..1000u32 {
            watched.add(0, &key.to_be_bytes(), &Arc::default(), true);
            assert!(watched.0.len() <= 2);
        }
    }

    /// Each client that began to watch a key looked at all who did already: for many clients of one
    /// key that was more work than this test would ever end.
    #[test]
    fn many_watch_one_key_and_those_who_stopped_do_not_pile_up() {
        const CLIENTS: usize = 300_000;
        let flags: Vec<_> = (0..CLIENTS).map(|_| Arc::new(WatchFlag::default())).collect();
        let mut watched = Watched::default();
        flags.iter().for_each(|flag| watched.add(0, b"k", flag, true));
        for _ in 0..CLIENTS {
            watched.add(0, b"other", &Arc::default(), true);
        }
        assert!(watched.0.find(0, b"other").is_some_and(|others| others.0.len() < 100));
        watched.touch(0, b"k");
        assert!(flags.iter().all(|flag| flag.is_touched()));
    }
}
