//! Blocked clients: who waits for a key to be fed, first come first served. One per shard, under
//! the shard's lock. What a waiter wants with the key is its own business (`call`).
//!
//! A waiter that was settled elsewhere stays in its queues until they are next looked at or swept:
//! leaving needs no lock.

use crate::keys::ReadyKey;
use crate::value::Type;
use russet_base::clock::UnixMillis;
use russet_base::shared::shrink_table_beyond;
use smallvec::SmallVec;
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

/// Places for keys that a table with few of them keeps.
const KEYS_KEPT_MAX: usize = 16;

/// A waiter's number in its shard: the lower, the longer it has waited.
pub type Ticket = u64;

/// Those who wait for one key to hold a value of one type, by their tickets.
#[derive(Default)]
struct Queue(VecDeque<(Ticket, Arc<Waiter>)>);

/// Settled waiters that a look at a queue steps over before they are all taken out.
const STEPS_MAX: usize = 32;

impl Queue {
    /// The first behind a ticket who still waits.
    fn next(&mut self, behind: Ticket) -> Option<(Ticket, Arc<Waiter>)> {
        while self.0.front().is_some_and(|(_, waiter)| waiter.is_settled()) {
            self.0.pop_front();
        }
        let start = self.0.partition_point(|(ticket, _)| *ticket <= behind);
        let steps = self.0.range(start..).position(|(_, waiter)| !waiter.is_settled());
        let found = steps.map(|steps| self.0[start + steps].clone());
        if steps.is_none_or(|steps| steps > STEPS_MAX) {
            self.forget_settled();
        }
        found
    }

    fn forget_settled(&mut self) {
        self.0.retain(|(_, waiter)| !waiter.is_settled());
    }
}

/// Those who wait for one key, by the type that they want: hardly ever more than one.
type Queues = SmallVec<[(Type, Queue); 1]>;

/// The blocked clients of one shard.
#[derive(Default)]
pub struct Waiting {
    /// By database, then by key.
    by_db: HashMap<usize, HashMap<Box<[u8]>, Queues>>,
    last_ticket: Ticket,
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
        let queues = self.by_db.entry(waiter.db).or_default().entry(key.into()).or_default();
        let at = queues.iter().position(|(wants, _)| *wants == waiter.wants).unwrap_or_else(|| {
            queues.push((waiter.wants, Queue::default()));
            queues.len() - 1
        });
        let queue = &mut queues[at].1.0;
        // A call that names a key twice does so under one taking of its lock, so nobody came
        // between.
        if queue.back().is_none_or(|(_, last)| !Arc::ptr_eq(last, waiter)) {
            self.last_ticket += 1;
            queue.push_back((self.last_ticket, waiter.clone()));
        }
    }

    pub fn is_awaited(&self, db: usize, key: &[u8]) -> bool {
        self.by_db.get(&db).is_some_and(|keys| keys.contains_key(key))
    }

    /// The first who still waits for this key to hold a value of this type, of those behind a
    /// ticket (0: of all), and its own ticket.
    pub fn next(
        &mut self,
        target: &ReadyKey,
        found: Type,
        behind: Ticket,
    ) -> Option<(Ticket, Arc<Waiter>)> {
        let (db, key) = (target.db, &*target.key);
        let keys = self.by_db.get_mut(&db)?;
        let queues = keys.get_mut(key)?;
        let queue = queues.iter_mut().find(|(wants, _)| *wants == found);
        let first = queue.and_then(|(_, queue)| queue.next(behind));
        if first.is_none() {
            queues.retain(|(_, queue)| !queue.0.is_empty());
            if queues.is_empty() {
                keys.remove(key);
                shrink_table_beyond(keys, KEYS_KEPT_MAX);
                if keys.is_empty() {
                    self.by_db.remove(&db);
                }
            }
        }
        first
    }

    /// Those who still wait for this key and want another type than is there, in the order they
    /// came. Without a type, all.
    pub fn others(&self, target: &ReadyKey, found: Option<Type>) -> Vec<Arc<Waiter>> {
        let queues = self.by_db.get(&target.db).and_then(|keys| keys.get(&target.key));
        let others = queues.into_iter().flatten().filter(|(wants, _)| Some(*wants) != found);
        let waiters = others.flat_map(|(_, queue)| &queue.0);
        let mut left: Vec<_> = waiters.filter(|(_, waiter)| !waiter.is_settled()).collect();
        left.sort_by_key(|(ticket, _)| *ticket);
        left.into_iter().map(|(_, waiter)| waiter.clone()).collect()
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
            keys.retain(|_, queues| {
                queues.iter_mut().for_each(|(_, queue)| queue.forget_settled());
                queues.retain(|(_, queue)| !queue.0.is_empty());
                !queues.is_empty()
            });
            shrink_table_beyond(keys, KEYS_KEPT_MAX);
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
        waiting.add(b"k", &second);
        let k = ReadyKey { db: 0, key: b"k"[..].into() };
        let (ticket, waiter) = waiting.next(&k, Type::List, 0).unwrap();
        assert_eq!(waiter.client_id, 1);
        let (ticket, waiter) = waiting.next(&k, Type::List, ticket).unwrap();
        assert_eq!(waiter.client_id, 2);
        assert!(waiting.next(&k, Type::List, ticket).is_none());
        assert!(waiting.next(&k, Type::String, 0).is_none());
        assert!(first.claim() && !first.claim());
        assert_eq!(waiting.next(&k, Type::List, 0).unwrap().1.client_id, 2);
        assert!(second.claim());
        waiting.sweep();
        assert!(waiting.is_empty() && !waiting.is_awaited(0, b"k"));
    }

    #[test]
    fn a_key_is_forgotten_with_its_last_waiter() {
        let waiters: Vec<_> = [Type::List, Type::Zset, Type::List]
            .iter()
            .zip(1..)
            .map(|(wants, id)| Arc::new(Waiter::new(id, 0, *wants, Box::new(()))))
            .collect();
        let mut waiting = Waiting::default();
        waiters.iter().for_each(|waiter| waiting.add(b"k", waiter));
        let k = ReadyKey { db: 0, key: b"k"[..].into() };
        let ids = |found| -> Vec<u64> {
            waiting.others(&k, found).iter().map(|waiter| waiter.client_id).collect()
        };
        assert_eq!((ids(None), ids(Some(Type::List))), (vec![1, 2, 3], vec![2]));
        assert!(waiters[0].claim() && waiters[2].claim());
        assert!(waiting.next(&k, Type::List, 0).is_none() && waiting.is_awaited(0, b"k"));
        assert!(waiters[1].claim());
        assert!(waiting.next(&k, Type::Zset, 0).is_none() && waiting.is_empty());
    }

    #[test]
    fn who_was_settled_between_others_is_stepped_over_and_then_forgotten() {
        let mut waiting = Waiting::default();
        let waiters: Vec<_> =
            (1..=100).map(|id| Arc::new(Waiter::new(id, 0, Type::Stream, Box::new(())))).collect();
        waiters.iter().for_each(|waiter| waiting.add(b"k", waiter));
        assert!(waiters[1..99].iter().all(|waiter| waiter.claim()));
        let k = ReadyKey { db: 0, key: b"k"[..].into() };
        let (first, _) = waiting.next(&k, Type::Stream, 0).unwrap();
        assert_eq!(waiting.next(&k, Type::Stream, first).unwrap().1.client_id, 100);
        assert_eq!(waiting.others(&k, None).len(), 2);
    }
}
