//! Keys that are on their way to another server (MIGRATE). They are still here, and nobody may use
//! them before it is known whether they arrived: then they are deleted, or stay. Their shards are
//! free meanwhile; a call that names such a key, once it has its shards, gives them back and waits.
//!
//! Keys are marked, and looked for, by those who hold their shards. The barrier spares all others
//! the look.

use crate::barrier::{Barrier, Barriers};
use crate::keys::Keys;
use crate::store::raw::lock::Wake;
use smallvec::SmallVec;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

/// The marked keys, and the databases in which each is.
#[derive(Default)]
pub struct Marks {
    databases: HashMap<Box<[u8]>, SmallVec<[usize; 1]>>,
    /// Transfers that are under way.
    transfers: usize,
}

impl Marks {
    /// Whether a key is marked: in this database, or in any.
    pub fn has(&self, db: Option<usize>, key: &[u8]) -> bool {
        let found = self.databases.get(key);
        found.is_some_and(|marked| db.is_none_or(|db| marked.contains(&db)))
    }

    pub fn is_empty(&self) -> bool {
        self.databases.is_empty()
    }

    pub fn transfers(&self) -> usize {
        self.transfers
    }
}

#[derive(Default)]
struct State {
    marks: Marks,
    /// Calls that wait until some transfer is over.
    waiting: Vec<Arc<dyn Wake>>,
}

pub struct MovingKeys {
    barriers: Arc<Barriers>,
    state: Mutex<State>,
}

impl MovingKeys {
    pub(crate) fn new(barriers: Arc<Barriers>) -> Self {
        MovingKeys { barriers, state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poison| poison.into_inner())
    }

    /// Marks keys until the result is dropped. Their shards are held, and none of them is marked.
    pub fn mark(self: &Arc<Self>, db: usize, keys: Vec<Box<[u8]>>) -> Moving {
        let mut state = self.state();
        state.marks.transfers += 1;
        for key in &keys {
            state.marks.databases.entry(key.clone()).or_default().push(db);
        }
        self.barriers.set(Barrier::Moving, true);
        drop(state);
        Moving { all: self.clone(), db, keys }
    }

    /// Whether a key is marked; its shard is held.
    pub(crate) fn has(&self, db: usize, key: &[u8]) -> bool {
        self.barriers.is_up(Barrier::Moving) && self.state().marks.has(Some(db), key)
    }

    /// Has a call wait for the end of a transfer, if one is in its way; false if none is.
    pub fn delay(&self, call: Arc<dyn Wake>, is_blocking: impl FnOnce(&Marks) -> bool) -> bool {
        let mut state = self.state();
        let must_wait = is_blocking(&state.marks);
        if must_wait {
            state.waiting.push(call);
        }
        must_wait
    }
}

impl Keys<'_> {
    /// Whether a key is on its way to another server, so that nobody may use it. Its shard is held.
    pub fn is_moving(&self, key: &[u8]) -> bool {
        self.keyspace().moving().has(self.db, key)
    }
}

/// Marked keys.
pub struct Moving {
    all: Arc<MovingKeys>,
    db: usize,
    keys: Vec<Box<[u8]>>,
}

impl Drop for Moving {
    fn drop(&mut self) {
        let mut state = self.all.state();
        state.marks.transfers -= 1;
        for key in &self.keys {
            if let Some(marked) = state.marks.databases.get_mut(key) {
                marked.retain(|db| *db != self.db);
                if marked.is_empty() {
                    state.marks.databases.remove(key);
                }
            }
        }
        if state.marks.is_empty() {
            self.all.barriers.set(Barrier::Moving, false);
        }
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        waiting.iter().for_each(|call| call.wake());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[derive(Default)]
    struct Woken(AtomicUsize);

    impl Wake for Woken {
        fn wake(&self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn calls_wait_for_marked_keys_only() {
        let barriers = Arc::<Barriers>::default();
        let all = Arc::new(MovingKeys::new(barriers.clone()));
        let woken = Arc::new(Woken::default());
        let waits = |db, key: &[u8]| all.delay(woken.clone(), |marks| marks.has(db, key));
        let one = all.mark(0, vec![b"a"[..].into(), b"b"[..].into()]);
        let other = all.mark(1, vec![b"a"[..].into()]);
        assert!(waits(Some(0), b"a") && waits(Some(1), b"a") && waits(None, b"b"));
        assert!(!waits(Some(1), b"b") && !waits(Some(0), b"c") && !waits(None, b"c"));
        drop(one);
        assert_eq!(woken.0.load(Ordering::Relaxed), 3, "all look again");
        assert!(!all.has(0, b"a") && all.has(1, b"a") && !barriers.are_down());
        drop(other);
        assert!(barriers.are_down() && !waits(None, b"a"));
        assert_eq!(woken.0.load(Ordering::Relaxed), 3);
    }
}
