//! A command's wait for busy shards: first in the queue of one of them, then, if it takes long, by
//! reservation.
//!
//! In the queue a waiter may be passed by, and one that needs several shards may find another of
//! them busy each time that it is woken. That is how busy keys are used best, but with calls that
//! hold shards for milliseconds it can go on for seconds. So a waiter that has waited for long
//! reserves those of its shards that are busy. Nobody else takes a reserved shard: the calls that
//! run on it now are the last. What is not busy is not reserved, so a call that needs many shards
//! and waits for a slow one keeps only that one's keys waiting. Where reservations overlap the
//! oldest comes first.
//!
//! A wait holds no lock. Dropping it leaves the queue and gives up what it has reserved.

use super::super::sync::{self, Moment, Mutex, Ordering};
use super::{HELD, Locked, Locks, QUEUED, RESERVED, Waiter, Wake};
use crate::store::shard_set::ShardSet;
use std::sync::Arc;

/// How long a waiter for one shard may be passed by.
const RESERVE_ONE_AFTER_MICROS: u64 = 1_000;
/// How long a waiter for several shards tries to find all of them free. A reservation keeps others
/// waiting for calls on keys that they don't name, so it is a later resort.
const RESERVE_SEVERAL_AFTER_MICROS: u64 = 20_000;

/// The shards that one waiter has reserved.
struct Reservation {
    waiter: Waiter,
    shards: ShardSet,
    /// It was woken and has not looked yet.
    is_woken: bool,
}

/// All reservations, the oldest first. RESERVED is set and cleared under this lock only.
pub(super) struct Reservations(Mutex<Vec<Reservation>>);

impl Default for Reservations {
    fn default() -> Self {
        Reservations(Mutex::new(Vec::new()))
    }
}

impl Reservations {
    fn list(&self) -> sync::MutexGuard<'_, Vec<Reservation>> {
        self.0.lock().unwrap_or_else(|poison| poison.into_inner())
    }

    /// Wakes the oldest who has reserved a shard, once until it looks.
    pub fn wake_oldest(&self, index: usize) {
        let mut list = self.list();
        let oldest = list.iter_mut().find(|other| other.shards.contains(index));
        let waiter = oldest.filter(|oldest| !oldest.is_woken).map(|oldest| {
            oldest.is_woken = true;
            oldest.waiter.clone()
        });
        drop(list);
        if let Some(waiter) = waiter {
            waiter.wake();
        }
    }

    /// All who have reserved a shard.
    pub fn all_of(&self, index: usize) -> Vec<Waiter> {
        let list = self.list();
        let of_shard = list.iter().filter(|other| other.shards.contains(index));
        of_shard.map(|other| other.waiter.clone()).collect()
    }
}

/// A command's wait for its shards.
pub struct Wait<T> {
    locks: Arc<Locks<T>>,
    waiter: Waiter,
    since: Option<Moment>,
    /// The shard in whose queue it is.
    queued: Option<usize>,
    has_reserved: bool,
}

#[cfg(test)]
impl<T> Wait<T> {
    pub fn has_reserved(&self) -> bool {
        self.has_reserved
    }

    /// How many waiters have reserved shards, this one included.
    pub fn reservations(&self) -> usize {
        self.locks.reservations.list().len()
    }
}

impl<T> Wait<T> {
    pub fn new(locks: Arc<Locks<T>>, wake: Arc<dyn Wake>) -> Self {
        Wait { locks, waiter: wake, since: None, queued: None, has_reserved: false }
    }

    /// Tries to lock all of `wanted`; on failure it will be woken when that is worth another try.
    /// Spurious calls are harmless: a place in a queue is kept. Without `may_reserve` it stays in
    /// the queue however long it waits: what it waits for may take very long.
    pub fn poll<'a>(
        &mut self,
        locks: &'a Locks<T>,
        wanted: &ShardSet,
        may_reserve: bool,
    ) -> Option<Locked<'a, T>> {
        assert!(std::ptr::eq(locks, &*self.locks), "a wait belongs to one keyspace");
        if may_reserve && (self.has_reserved || self.is_old(wanted)) {
            self.leave_queue();
            return self.poll_reserving(locks, wanted);
        }
        self.give_up_reserved();
        self.poll_queued(locks, wanted)
    }

    fn is_old(&mut self, wanted: &ShardSet) -> bool {
        let since = *self.since.get_or_insert_with(sync::now);
        let after_micros = match wanted.count() {
            0 | 1 => RESERVE_ONE_AFTER_MICROS,
            _ => RESERVE_SEVERAL_AFTER_MICROS,
        };
        sync::micros_since(since) >= after_micros
    }

    fn poll_queued<'a>(&mut self, locks: &'a Locks<T>, wanted: &ShardSet) -> Option<Locked<'a, T>> {
        let is_still_busy = |index| wanted.contains(index) && !locks.locks[index].is_free();
        if self.queued.is_some_and(is_still_busy) {
            return None;
        }
        loop {
            let busy = match locks.try_lock(wanted) {
                Ok(locked) => {
                    self.leave_queue();
                    return Some(locked);
                }
                Err(busy) => busy,
            };
            if self.queued == Some(busy) {
                return None;
            }
            self.leave_queue();
            if locks.locks[busy].enqueue_unless_free(&self.waiter) {
                self.queued = Some(busy);
                return None;
            }
        }
    }

    /// Takes its shards if none is held, or reserved by someone older; else reserves those that
    /// are. Whoever unlocks one of them from then on wakes it.
    fn poll_reserving<'a>(
        &mut self,
        locks: &'a Locks<T>,
        wanted: &ShardSet,
    ) -> Option<Locked<'a, T>> {
        let mut list = locks.reservations.list();
        let own = |other: &Reservation| Arc::ptr_eq(&other.waiter, &self.waiter);
        let at = list.iter().position(own).unwrap_or_else(|| {
            let (waiter, shards) = (self.waiter.clone(), ShardSet::EMPTY);
            list.push(Reservation { waiter, shards, is_woken: false });
            list.len() - 1
        });
        self.has_reserved = true;
        if !list[at].shards.is_subset(wanted) {
            // The call needs other shards than it did.
            drop(list);
            self.give_up_reserved();
            return self.poll_reserving(locks, wanted);
        }
        list[at].is_woken = false;
        let (older, rest) = list.split_at_mut(at);
        let of_older = older.iter().fold(ShardSet::EMPTY, |all, other| all.union(&other.shards));
        let mut wakes = Vec::new();
        let locked = loop {
            if reserve_busy(locks, wanted, &of_older, &mut rest[0].shards) {
                break None;
            }
            // None was busy, but one may be taken before we come to it: then look once more.
            let locked = lock_all_or_none(locks, wanted, &rest[1..], &mut wakes);
            if locked.is_some() {
                break locked;
            }
        };
        if locked.is_some() {
            let taken = list.remove(at);
            self.has_reserved = false;
            wakes.extend(clear_reserved(locks, &list, &taken.shards));
        }
        drop(list);
        wakes.iter().for_each(|wake| wake.wake());
        locked
    }

    fn leave_queue(&mut self) {
        if let Some(index) = self.queued.take() {
            let lock = &self.locks.locks[index];
            lock.leave_queue(&self.waiter);
            // A wake-up meant for us may have been the only one: pass it on.
            if lock.is_free()
                && let Some(next) = lock.first_in_queue()
            {
                next.wake();
            }
        }
    }

    fn give_up_reserved(&mut self) {
        if !std::mem::take(&mut self.has_reserved) {
            return;
        }
        let mut list = self.locks.reservations.list();
        let at = list.iter().position(|other| Arc::ptr_eq(&other.waiter, &self.waiter));
        let Some(given_up) = at.map(|at| list.remove(at)) else { return };
        let wakes = clear_reserved(&self.locks, &list, &given_up.shards);
        drop(list);
        wakes.iter().for_each(|wake| wake.wake());
    }
}

/// Reserves the shards that are held, or an older waiter's. False if there is none, now.
fn reserve_busy<T>(
    locks: &Locks<T>,
    wanted: &ShardSet,
    of_older: &ShardSet,
    reserved: &mut ShardSet,
) -> bool {
    let mut has_busy = false;
    for index in wanted.iter() {
        let lock = &locks.locks[index];
        let is_busy = || of_older.contains(index) || lock.state.load(Ordering::Acquire) & HELD != 0;
        if is_busy() && !reserved.contains(index) {
            lock.state.fetch_or(RESERVED, Ordering::AcqRel);
            reserved.insert(index);
        }
        // Asked once more: if it is busy still, then whoever unlocks it sees the reservation.
        has_busy |= reserved.contains(index) && is_busy();
    }
    has_busy
}

/// Locks all of `wanted`, reserved or not. On failure nothing stays locked, and those who must be
/// woken for that are added to `wakes`; `younger` are the reservations behind the caller's.
fn lock_all_or_none<'a, T>(
    locks: &'a Locks<T>,
    wanted: &ShardSet,
    younger: &[Reservation],
    wakes: &mut Vec<Waiter>,
) -> Option<Locked<'a, T>> {
    let mut held = ShardSet::EMPTY;
    let all = wanted.try_each(|index| {
        let is_locked = locks.locks[index].try_lock_unless(HELD);
        if is_locked {
            held.insert(index);
        }
        is_locked
    });
    if all.is_ok() {
        return Some(Locked { locks, held });
    }
    for index in held.iter() {
        let lock = &locks.locks[index];
        let before = lock.state.fetch_and(!HELD, Ordering::Release);
        match younger.iter().find(|other| other.shards.contains(index)) {
            Some(next) => wakes.push(next.waiter.clone()),
            None if before & QUEUED != 0 => wakes.extend(lock.first_in_queue()),
            None => {}
        }
    }
    None
}

/// Takes a reservation that is no longer in `list` off its shards. Who may take one of them now and
/// would not hear of it otherwise.
fn clear_reserved<T>(locks: &Locks<T>, list: &[Reservation], shards: &ShardSet) -> Vec<Waiter> {
    let mut wakes = Vec::new();
    for index in shards.iter() {
        let lock = &locks.locks[index];
        let next = list.iter().find(|other| other.shards.contains(index));
        let before = match next {
            Some(_) => lock.state.load(Ordering::Acquire),
            None => lock.state.fetch_and(!RESERVED, Ordering::AcqRel),
        };
        if before & HELD != 0 {
            continue;
        }
        match next {
            Some(next) => wakes.push(next.waiter.clone()),
            None if before & QUEUED != 0 => wakes.extend(lock.first_in_queue()),
            None => {}
        }
    }
    wakes
}

impl<T> Drop for Wait<T> {
    fn drop(&mut self) {
        self.leave_queue();
        self.give_up_reserved();
    }
}
