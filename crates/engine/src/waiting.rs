//! Blocked clients: who waits for a key to be fed, first come first served. One per shard, under
//! the shard's lock. What a waiter wants with the key is its own business (`call`).
//!
//! A waiter that was settled elsewhere stays in its queues until they are next looked at or swept:
//! leaving needs no lock.

use crate::keys::ReadyKey;
use crate::value::Type;
use russet_base::clock::UnixMillis;
use std::any::Any;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// One blocked call of one client. It may wait in several shards at once; whoever claims it first,
/// a writer that feeds it, its timeout, CLIENT UNBLOCK or its disconnection, settles it.
pub struct Waiter {
    pub client_id: u64,
    pub db: usize,
    /// Only a key of this type can feed it.
    pub wants: Type,
    settled: AtomicBool,
    pub call: Box<dyn Any + Send + Sync>,
}

impl Waiter {
    pub fn new(client_id: u64, db: usize, wants: Type, call: Box<dyn Any + Send + Sync>) -> Self {
        Waiter { client_id, db, wants, settled: AtomicBool::new(false), call }
    }

    /// True for exactly one caller, who must then answer the client.
    pub fn claim(&self) -> bool {
        !self.settled.swap(true, Ordering::AcqRel)
    }

    pub fn is_settled(&self) -> bool {
        self.settled.load(Ordering::Acquire)
    }
}

type Queue = VecDeque<Arc<Waiter>>;

/// The blocked clients of one shard.
#[derive(Default)]
pub struct Waiting {
    /// By database, then by key.
    by_db: HashMap<usize, HashMap<Box<[u8]>, Queue>>,
    /// Keys whose first waiter was told to take its turn itself. It may be gone by then.
    owed: Vec<ReadyKey>,
    /// Keys to look at again at some moment, though nobody may write them.
    alarms: Vec<(UnixMillis, ReadyKey)>,
}

impl Waiting {
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.by_db.is_empty()
    }

    /// Queues `waiter` for a key, behind those who came before; once, however often it is asked.
    pub fn add(&mut self, key: &[u8], waiter: &Arc<Waiter>) {
        let queue = self.by_db.entry(waiter.db).or_default().entry(key.into()).or_default();
        queue.retain(|known| !known.is_settled());
        if !queue.iter().any(|known| Arc::ptr_eq(known, waiter)) {
            queue.push_back(waiter.clone());
        }
    }

    pub fn is_awaited(&self, db: usize, key: &[u8]) -> bool {
        self.by_db.get(&db).is_some_and(|keys| keys.contains_key(key))
    }

    /// The first who still waits for this key to hold a value of this type, behind the first
    /// `passed` such.
    pub fn next(&mut self, target: &ReadyKey, found: Type, passed: usize) -> Option<Arc<Waiter>> {
        let (db, key) = (target.db, &*target.key);
        let keys = self.by_db.get_mut(&db)?;
        let queue = keys.get_mut(key)?;
        queue.retain(|waiter| !waiter.is_settled());
        let first = queue.iter().filter(|waiter| waiter.wants == found).nth(passed).cloned();
        if queue.is_empty() {
            keys.remove(key);
            if keys.is_empty() {
                self.by_db.remove(&db);
            }
        }
        first
    }

    /// All who still wait for this key, in the order they came.
    pub fn of_key(&self, target: &ReadyKey) -> Vec<Arc<Waiter>> {
        self.unsettled(target).cloned().collect()
    }

    /// Those of them who want another type than is there.
    pub fn others(&self, target: &ReadyKey, found: Option<Type>) -> Vec<Arc<Waiter>> {
        self.unsettled(target).filter(|waiter| Some(waiter.wants) != found).cloned().collect()
    }

    fn unsettled(&self, target: &ReadyKey) -> impl Iterator<Item = &Arc<Waiter>> {
        let queue = self.by_db.get(&target.db).and_then(|keys| keys.get(&target.key));
        queue.into_iter().flatten().filter(|waiter| !waiter.is_settled())
    }

    /// Asks for another look at a key from this moment on.
    pub fn set_alarm(&mut self, at: UnixMillis, target: ReadyKey) {
        let known = self.alarms.iter_mut().find(|(_, known)| *known == target);
        match known {
            Some((known_at, _)) => *known_at = at.min(*known_at),
            None => self.alarms.push((at, target)),
        }
    }

    /// The keys whose moment has come; they are forgotten.
    pub fn take_alarms(&mut self, now: UnixMillis) -> Vec<ReadyKey> {
        self.alarms.extract_if(.., |(at, _)| *at <= now).map(|(_, target)| target).collect()
    }

    /// Keys of one database that someone waits for.
    pub fn keys_of_db(&self, db: usize) -> Vec<Box<[u8]>> {
        self.by_db.get(&db).map(|keys| keys.keys().cloned().collect()).unwrap_or_default()
    }

    /// Notes that the first who waits for this key was told to take its turn itself.
    pub fn owe(&mut self, target: &ReadyKey) {
        if !self.owed.contains(target) {
            self.owed.push(target.clone());
        }
    }

    /// The keys noted by [`Waiting::owe`], which are forgotten.
    pub fn take_owed(&mut self) -> Vec<ReadyKey> {
        std::mem::take(&mut self.owed)
    }

    /// How many keys are waited for.
    pub fn keys_len(&self) -> usize {
        self.by_db.values().map(HashMap::len).sum()
    }

    /// Forgets those who no longer wait.
    pub fn sweep(&mut self) {
        self.by_db.retain(|_, keys| {
            keys.retain(|_, queue| {
                queue.retain(|waiter| !waiter.is_settled());
                !queue.is_empty()
            });
            !keys.is_empty()
        });
        if self.by_db.is_empty() {
            self.alarms.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiters_are_served_in_the_order_they_came() {
        let waiter = |id| Arc::new(Waiter::new(id, 0, Type::List, Box::new(())));
        let (first, second) = (waiter(1), waiter(2));
        let mut waiting = Waiting::default();
        waiting.add(b"k", &first);
        waiting.add(b"k", &second);
        waiting.add(b"k", &first);
        let k = ReadyKey { db: 0, key: b"k"[..].into() };
        assert_eq!(waiting.next(&k, Type::List, 0).unwrap().client_id, 1);
        assert_eq!(waiting.next(&k, Type::List, 1).unwrap().client_id, 2);
        assert!(waiting.next(&k, Type::List, 2).is_none());
        assert!(waiting.next(&k, Type::String, 0).is_none());
        assert!(first.claim() && !first.claim());
        assert_eq!(waiting.next(&k, Type::List, 0).unwrap().client_id, 2);
        assert!(second.claim());
        waiting.sweep();
        assert!(waiting.is_empty() && !waiting.is_awaited(0, b"k"));
    }
}
