//! What a shard keeps by database and key beside the data: who watches, who waits. A client can
//! make it as long as it likes, so it is swept step by step: each call goes on where the last one
//! stopped, and nobody holds the shard's lock for all of it.

use std::collections::BTreeMap;
use std::ops::Bound;

/// A sweep goes on at once if of so many steps at least one found something to forget.
const WORTH_STEPS: usize = 8;

/// What a sweep did with the value of one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Swept {
    /// How much there was to look at.
    pub steps: usize,
    /// How much of it went.
    pub gone: usize,
    /// Nothing is left: the key can go.
    pub is_empty: bool,
}

/// Values by database, then by key; in order, so that a sweep can go on behind a key.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct ByKey<V> {
    by_db: BTreeMap<usize, BTreeMap<Box<[u8]>, V>>,
    /// Where the sweep under way stopped; None if the next one begins at the first key.
    swept: Option<(usize, Box<[u8]>)>,
}

impl<V> Default for ByKey<V> {
    fn default() -> Self {
        ByKey { by_db: BTreeMap::new(), swept: None }
    }
}

impl<V> ByKey<V> {
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.by_db.is_empty()
    }

    /// How many keys there are.
    pub fn len(&self) -> usize {
        self.by_db.values().map(BTreeMap::len).sum()
    }

    pub fn find(&self, db: usize, key: &[u8]) -> Option<&V> {
        self.by_db.get(&db)?.get(key)
    }

    pub fn find_mut(&mut self, db: usize, key: &[u8]) -> Option<&mut V> {
        self.by_db.get_mut(&db)?.get_mut(key)
    }

    pub fn entry(&mut self, db: usize, key: &[u8]) -> &mut V
    where
        V: Default,
    {
        self.by_db.entry(db).or_default().entry(key.into()).or_default()
    }

    pub fn remove(&mut self, db: usize, key: &[u8]) -> Option<V> {
        let keys = self.by_db.get_mut(&db)?;
        let removed = keys.remove(key);
        if keys.is_empty() {
            self.by_db.remove(&db);
        }
        removed
    }

    /// Drops the first and the last key of a database if they are over. Some key must not be.
    pub fn trim_ends(&mut self, db: usize, mut is_over: impl FnMut(&V) -> bool) {
        let Some(keys) = self.by_db.get_mut(&db) else { return };
        if let Some(first) = keys.first_entry()
            && is_over(first.get())
        {
            first.remove();
        }
        if let Some(last) = keys.last_entry()
            && is_over(last.get())
        {
            last.remove();
        }
        debug_assert!(!keys.is_empty(), "a database without keys is not listed");
    }

    pub fn of_db(&self, db: usize) -> impl Iterator<Item = (&[u8], &V)> {
        self.by_db.get(&db).into_iter().flatten().map(|(key, value)| (&**key, value))
    }

    pub fn keys_of_db(&self, db: usize) -> Vec<Box<[u8]>> {
        self.of_db(db).map(|(key, _)| key.into()).collect()
    }

    /// Goes through the next keys until about `budget` steps are taken or the last key is reached,
    /// and drops those of which nothing is left. Says whether it is worth going on at once: more
    /// keys are to come, and many steps were not in vain.
    pub fn sweep(&mut self, budget: usize, mut sweep: impl FnMut(&mut V) -> Swept) -> bool {
        let (mut steps, mut gone) = (0, 0);
        let from = self.swept.take();
        let mut db = from.as_ref().map_or(0, |(db, _)| *db);
        let mut behind = from.map_or(Bound::Unbounded, |(_, key)| Bound::Excluded(key));
        while let Some((&found, keys)) = self.by_db.range_mut(db..).next() {
            if found != db {
                (db, behind) = (found, Bound::Unbounded);
            }
            let (mut emptied, mut last) = (Vec::new(), None);
            for (key, value) in keys.range_mut((behind, Bound::Unbounded)) {
                if steps >= budget {
                    break;
                }
                let swept = sweep(value);
                steps += swept.steps.max(1);
                gone += swept.gone;
                if swept.is_empty {
                    emptied.push(key.clone());
                }
                last = Some(key);
            }
            // One copy, and only if the next sweep is to go on behind it.
            let last = last.filter(|_| steps >= budget).cloned();
            emptied.iter().for_each(|key| drop(keys.remove(key)));
            if keys.is_empty() {
                self.by_db.remove(&db);
            }
            if steps >= budget {
                // Without a key behind it, the next database is begun from its first.
                self.swept = last.map(|key| (db, key));
                return gone * WORTH_STEPS >= steps;
            }
            (db, behind) = (db + 1, Bound::Unbounded);
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(dbs: &[usize], keys: usize) -> ByKey<bool> {
        let mut by_key = ByKey::default();
        for &db in dbs {
            for key in 0..keys {
                *by_key.entry(db, format!("{key:03}").as_bytes()) = key % 2 == 0;
            }
        }
        by_key
    }

    /// A sweep of all keys at once held a shard's lock for as long as a client liked.
    #[test]
    fn a_sweep_takes_a_bounded_number_of_steps_and_reaches_every_key() {
        let mut by_key = filled(&[0, 3, 7], 100);
        let mut seen = 0;
        for _ in 0..30 {
            let before = seen;
            by_key.sweep(10, |is_over| {
                seen += 1;
                Swept { steps: 1, gone: 0, is_empty: *is_over }
            });
            assert!(seen - before <= 10);
        }
        assert_eq!((seen, by_key.len()), (300, 150));
        // One that finds the end does nothing; the next begins at the first key again.
        let mut forget = |budget| {
            by_key.sweep(budget, |_| Swept { steps: 1, gone: 1, is_empty: true });
            by_key.len()
        };
        assert_eq!((forget(1), forget(1), forget(1000)), (150, 149, 0));
        assert!(by_key.is_empty());
    }

    #[test]
    fn a_sweep_that_finds_much_goes_on_at_once() {
        let mut by_key = filled(&[0], 20);
        assert!(!by_key.sweep(10, |_| Swept { steps: 1, gone: 0, is_empty: false }));
        assert!(!by_key.sweep(100, |_| Swept { steps: 1, gone: 1, is_empty: true }));
        assert!(by_key.sweep(5, |_| Swept { steps: 1, gone: 1, is_empty: true }));
    }

    #[test]
    fn a_long_value_ends_a_step_and_keys_may_come_and_go_meanwhile() {
        let mut by_key = filled(&[1], 4);
        let mut seen = 0;
        let mut step = |by_key: &mut ByKey<bool>| {
            by_key.sweep(5, |_| {
                seen += 1;
                Swept { steps: 1000, gone: 0, is_empty: false }
            });
            seen
        };
        assert_eq!(step(&mut by_key), 1);
        assert_eq!(by_key.remove(1, b"000"), Some(true));
        assert_eq!(by_key.remove(1, b"001"), Some(false));
        assert_eq!((step(&mut by_key), step(&mut by_key)), (2, 3));
        by_key.entry(0, b"early");
        assert_eq!(by_key.keys_of_db(1).len(), 2);
        assert_eq!((step(&mut by_key), step(&mut by_key)), (3, 4));
    }
}
