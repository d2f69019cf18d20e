//! Blocked clients: who waits for a key to be fed, first come first served. One per shard, under
//! the shard's lock. What a waiter wants with the key is its own business (`call`).
//!
//! A waiter that was claimed elsewhere stays in its queues until they are next looked at or swept:
//! leaving needs no lock.

use crate::by_key::{ByKey, Swept};
use crate::keys::ReadyKey;
use crate::value::Type;
use russet_base::clock::UnixMillis;
use smallvec::SmallVec;
use std::any::Any;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// One blocked call of one client. It may wait in several shards at once; whoever claims it first,
/// a writer that feeds it, its timeout, CLIENT UNBLOCK or its disconnection, ends it.
pub struct Waiter {
    pub client_id: u64,
    pub db: usize,
    /// Only a key of this type can feed it.
    pub wants: Type,
    claimed: AtomicBool,
    pub call: Box<dyn Any + Send + Sync>,
}

impl Waiter {
    pub fn new(client_id: u64, db: usize, wants: Type, call: Box<dyn Any + Send + Sync>) -> Self {
        Waiter { client_id, db, wants, claimed: AtomicBool::new(false), call }
    }

    /// True for exactly one caller, who must then answer the client.
    pub fn claim(&self) -> bool {
        !self.claimed.swap(true, Ordering::AcqRel)
    }

    pub fn is_claimed(&self) -> bool {
        self.claimed.load(Ordering::Acquire)
    }
}

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
        while self.0.front().is_some_and(|(_, waiter)| waiter.is_claimed()) {
            self.0.pop_front();
        }
        let start = self.0.partition_point(|(ticket, _)| *ticket <= behind);
        let steps = self.0.range(start..).position(|(_, waiter)| !waiter.is_claimed());
        let found = steps.map(|steps| self.0[start + steps].clone());
        if steps.is_none_or(|steps| steps > STEPS_MAX) {
            self.forget_claimed();
        }
        found
    }

    fn forget_claimed(&mut self) {
        self.0.retain(|(_, waiter)| !waiter.is_claimed());
    }
}

/// Those who wait for one key, by the type that they want: hardly ever more than one.
type Queues = SmallVec<[(Type, Queue); 1]>;

/// The blocked clients of one shard. What says whether there are any comes first; see
/// [`Shard`](crate::shard::Shard).
#[repr(C)]
#[derive(Default)]
pub struct Waiting {
    by_key: ByKey<Queues>,
    last_ticket: Ticket,
    /// Keys whose first waiter was asked to take its turn itself. It may be gone by then.
    deferred: BTreeSet<ReadyKey>,
    alarms: Alarms,
}

/// Keys to look at again at some moment, though nobody may write them: each once, and in the order
/// of the moments.
#[derive(Default)]
struct Alarms {
    by_key: BTreeMap<ReadyKey, UnixMillis>,
    by_time: BTreeSet<(UnixMillis, ReadyKey)>,
}

impl Alarms {
    /// Sets the alarm of a key, unless it has one that comes sooner.
    fn set(&mut self, at: UnixMillis, target: ReadyKey) {
        if let Some(known) = self.by_key.get(&target).copied() {
            if known <= at {
                return;
            }
            self.by_time.remove(&(known, target.clone()));
        }
        self.by_key.insert(target.clone(), at);
        self.by_time.insert((at, target));
    }

    fn take_due(&mut self, now: UnixMillis) -> Vec<ReadyKey> {
        let mut due = Vec::new();
        while self.by_time.first().is_some_and(|(at, _)| *at <= now)
            && let Some((_, target)) = self.by_time.pop_first()
        {
            self.by_key.remove(&target);
            due.push(target);
        }
        due
    }
}

impl Waiting {
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.by_key.is_empty()
    }

    /// Queues `waiter` for a key, behind those who came before; once, however often it is asked.
    pub fn add(&mut self, key: &[u8], waiter: &Arc<Waiter>) {
        let queues = self.by_key.entry(waiter.db, key);
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
        self.by_key.find(db, key).is_some()
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
        let queues = self.by_key.find_mut(db, key)?;
        let queue = queues.iter_mut().find(|(wants, _)| *wants == found);
        let first = queue.and_then(|(_, queue)| queue.next(behind));
        if first.is_none() {
            queues.retain(|(_, queue)| !queue.0.is_empty());
            if queues.is_empty() {
                self.by_key.remove(db, key);
            }
        }
        first
    }

    /// Those who still wait for this key and want another type than is there, in the order they
    /// came. Without a type, all.
    pub fn others(&self, target: &ReadyKey, found: Option<Type>) -> Vec<Arc<Waiter>> {
        let queues = self.by_key.find(target.db, &target.key);
        let others = queues.into_iter().flatten().filter(|(wants, _)| Some(*wants) != found);
        let waiters = others.flat_map(|(_, queue)| &queue.0);
        let mut left: Vec<_> = waiters.filter(|(_, waiter)| !waiter.is_claimed()).collect();
        left.sort_by_key(|(ticket, _)| *ticket);
        left.into_iter().map(|(_, waiter)| waiter.clone()).collect()
    }

    /// Asks for another look at a key from this moment on.
    pub fn set_alarm(&mut self, at: UnixMillis, target: ReadyKey) {
        self.alarms.set(at, target);
    }

    /// The keys whose moment has come; they are forgotten.
    pub fn take_alarms(&mut self, now: UnixMillis) -> Vec<ReadyKey> {
        self.alarms.take_due(now)
    }

    /// Keys of one database that someone waits for.
    pub fn keys_of_db(&self, db: usize) -> Vec<Box<[u8]>> {
        self.by_key.keys_of_db(db)
    }

    /// Notes that the first who waits for this key was asked to take its turn itself.
    pub fn defer(&mut self, target: &ReadyKey) {
        if !self.deferred.contains(target) {
            self.deferred.insert(target.clone());
        }
    }

    /// The keys noted by [`Waiting::defer`], which are forgotten.
    pub fn take_deferred(&mut self) -> Vec<ReadyKey> {
        std::mem::take(&mut self.deferred).into_iter().collect()
    }

    /// How many keys are waited for.
    pub fn keys_len(&self) -> usize {
        self.by_key.len()
    }

    /// Forgets those who no longer wait for some of the keys: about `budget` waiters are looked at,
    /// the next call goes on behind them. Whether it is worth making at once.
    pub fn sweep(&mut self, budget: usize) -> bool {
        let len = |queues: &Queues| queues.iter().map(|(_, queue)| queue.0.len()).sum::<usize>();
        let is_worth_more = self.by_key.sweep(budget, |queues| {
            let steps = len(queues);
            queues.iter_mut().for_each(|(_, queue)| queue.forget_claimed());
            queues.retain(|(_, queue)| !queue.0.is_empty());
            Swept { steps, gone: steps - len(queues), is_empty: queues.is_empty() }
        });
        if self.by_key.is_empty() {
            self.alarms = Alarms::default();
        }
        is_worth_more
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
        waiting.sweep(100);
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
    fn who_was_claimed_between_others_is_stepped_over_and_then_forgotten() {
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

    /// Each key that was noted was compared with all that were before it: with many keys at once,
    /// as when many streams expire that clients wait for, the shard stood still.
    #[test]
    fn many_keys_are_noted_once_each() {
        const KEYS: usize = 200_000;
        let mut waiting = Waiting::default();
        let keys = (0..KEYS).map(|at| ReadyKey { db: 0, key: at.to_string().as_bytes().into() });
        for (target, at) in keys.zip(0..) {
            for at in [at + 7, at, at + 9] {
                waiting.defer(&target);
                waiting.set_alarm(UnixMillis(at), target.clone());
            }
        }
        assert_eq!((waiting.take_deferred().len(), waiting.take_deferred().len()), (KEYS, 0));
        let due = waiting.take_alarms(UnixMillis(9));
        assert_eq!(due.iter().map(|it| &*it.key).collect::<Vec<_>>()[8..], [b"8", b"9"]);
        assert_eq!(waiting.take_alarms(UnixMillis(i64::MAX)).len(), KEYS - 10);
    }
}
