//! The locks of the shards: tried, never slept on.
//!
//! A command asks for all its shards at once and gets all or none, trying them in ascending order.
//! Whoever finds a shard busy queues on that one shard, holding nothing, and is woken when it is
//! free; so a command that waits for a slow one keeps no other key waiting. A shard that has
//! waiters may still be taken by someone who happens to come by: a lock that is always handed over
//! in turn makes every holder wait for a thread that sleeps.
//!
//! A waiter that has waited for long reserves those of its shards that are busy ([`wait`]): they
//! are taken by nobody else, and become its own when the calls that run on them now have ended.
//!
//! Why there is no deadlock: nobody waits while holding, and reservations are served by age, so
//! that the oldest waits for running calls only. Why nobody starves: every waiter becomes the
//! oldest.

#[path = "lock/wait.rs"]
mod wait;

pub use wait::Wait;

use super::sync::{self, AtomicU8, Mutex, Ordering, SPINS_MAX, spin_hint};
use crate::store::raw::prefetch::prefetch_to_write;
use crate::store::shard_set::ShardSet;
use std::cell::UnsafeCell;
use std::collections::VecDeque;
use std::sync::Arc;
use wait::Reservations;

const HELD: u8 = 1;
/// Somebody is in the queue: the holder must look there when it unlocks.
const QUEUED: u8 = 2;
/// Somebody has waited for long: only the oldest who has reserved the shard may take it.
const RESERVED: u8 = 4;

/// Told that a shard it queued for may be free now. It may be told more often than needed.
pub trait Wake: Send + Sync {
    fn wake(&self);
}

/// One who waits in a shard's queue.
type Waiter = Arc<dyn Wake>;

/// Alone on its cache lines (the processor fetches them in pairs): neighbours are taken by other
/// threads.
#[repr(C, align(128))]
struct Lock<T> {
    state: AtomicU8,
    /// Right behind, so that whoever takes the lock has the value's first line of memory as well.
    value: UnsafeCell<T>,
    queue: Mutex<VecDeque<Waiter>>,
}

/// All the shards of a keyspace, each behind its lock.
pub struct Locks<T> {
    locks: Box<[Lock<T>]>,
    reservations: Reservations,
}

// SAFETY: 1. A `T` is reached only through `Locked` and `LockedOne`, which hold that shard's lock
// exclusively, so sharing `Locks` between threads only ever moves access to each `T` from thread to
// thread.
unsafe impl<T: Send> Sync for Locks<T> {}

impl<T> Lock<T> {
    /// Sets HELD if none of `blocking` is set.
    fn try_lock_unless(&self, blocking: u8) -> bool {
        let mut state = self.state.load(Ordering::Relaxed);
        while state & blocking == 0 {
            match self.state.compare_exchange_weak(
                state,
                state | HELD,
                Ordering::Acquire,
                Ordering::Relaxed,
            ) {
                Ok(_) => return true,
                Err(now) => state = now,
            }
        }
        false
    }

    fn try_lock(&self) -> bool {
        self.try_lock_unless(HELD | RESERVED)
    }

    #[inline]
    fn try_lock_spinning(&self) -> bool {
        self.state.compare_exchange(0, HELD, Ordering::Acquire, Ordering::Relaxed).is_ok()
            || self.spin()
    }

    #[cold]
    fn spin(&self) -> bool {
        for _ in 0..SPINS_MAX {
            if self.try_lock() {
                return true;
            }
            spin_hint();
        }
        false
    }

    fn is_free(&self) -> bool {
        self.state.load(Ordering::Acquire) & (HELD | RESERVED) == 0
    }

    fn queue(&self) -> sync::MutexGuard<'_, VecDeque<Waiter>> {
        self.queue.lock().unwrap_or_else(|poison| poison.into_inner())
    }

    /// Queues `waiter`, unless the lock is free by now: false.
    fn enqueue_unless_free(&self, waiter: &Waiter) -> bool {
        let mut queue = self.queue();
        let before = self.state.fetch_or(QUEUED, Ordering::Acquire);
        let is_free = before & (HELD | RESERVED) == 0;
        if !is_free {
            queue.push_back(waiter.clone());
        } else if queue.is_empty() {
            self.state.fetch_and(!QUEUED, Ordering::Relaxed);
        }
        !is_free
    }

    /// Takes `waiter` out of the queue.
    fn leave_queue(&self, waiter: &Waiter) {
        let mut queue = self.queue();
        let at = queue.iter().position(|other| Arc::ptr_eq(other, waiter));
        at.and_then(|at| queue.remove(at));
    }

    fn first_in_queue(&self) -> Option<Waiter> {
        self.queue().front().cloned()
    }
}

impl<T> Locks<T> {
    pub fn new(values: impl IntoIterator<Item = T>) -> Self {
        let locks: Box<[Lock<T>]> = values
            .into_iter()
            .map(|value| Lock {
                state: AtomicU8::new(0),
                queue: Mutex::new(VecDeque::new()),
                value: UnsafeCell::new(value),
            })
            .collect();
        Locks { locks, reservations: Reservations::default() }
    }

    pub fn len(&self) -> usize {
        self.locks.len()
    }

    pub fn is_empty(&self) -> bool {
        self.locks.is_empty()
    }

    /// Locks all of `wanted`, or none of it and says which shard was busy.
    #[inline(always)]
    pub fn try_lock(&self, wanted: &ShardSet) -> Result<Locked<'_, T>, usize> {
        let mut locked = Locked { locks: self, held: ShardSet::EMPTY };
        wanted.try_each(|index| {
            let is_locked = self.locks[index].try_lock_spinning();
            if is_locked {
                locked.held.insert(index);
            }
            is_locked
        })?;
        Ok(locked)
    }

    #[inline]
    fn unlock(&self, index: usize) {
        let state = &self.locks[index].state;
        if state.compare_exchange(HELD, 0, Ordering::Release, Ordering::Relaxed).is_err() {
            self.unlock_and_wake(index);
        }
    }

    /// Wakes the oldest who has reserved the shard, and the first in its queue: it may have grown
    /// old meanwhile, and has its turn among the reservations only once it looks.
    #[cold]
    fn unlock_and_wake(&self, index: usize) {
        let lock = &self.locks[index];
        let queue = lock.queue();
        // QUEUED is only ever cleared under the queue's lock.
        let cleared = if queue.is_empty() { HELD | QUEUED } else { HELD };
        let before = lock.state.fetch_and(!cleared, Ordering::Release);
        let first = queue.front().cloned();
        drop(queue);
        if before & RESERVED != 0 {
            self.reservations.wake_oldest(index);
        }
        if let Some(first) = first {
            first.wake();
        }
    }

    /// Wakes all who wait for a shard, though it is still held: to be told why.
    pub fn wake_waiters(&self, index: usize) {
        let mut wakes: Vec<Waiter> = self.locks[index].queue().iter().cloned().collect();
        wakes.extend(self.reservations.all_of(index));
        wakes.iter().for_each(|wake| wake.wake());
    }

    pub fn lock_none(&self) -> Locked<'_, T> {
        Locked { locks: self, held: ShardSet::EMPTY }
    }

    /// Hints that a shard will be locked soon: another processor may have used it last.
    #[inline]
    pub fn prefetch(&self, index: usize) {
        prefetch_to_write((&raw const self.locks[index]).cast());
    }

    /// Locks one shard if that takes no waiting at all: for housekeeping.
    #[inline]
    pub fn try_lock_now(&self, index: usize) -> Option<LockedOne<'_, T>> {
        self.locks[index].try_lock().then(|| LockedOne { locks: self, index })
    }
}

/// One locked shard, to which no other is added. Dropping it unlocks it.
pub struct LockedOne<'a, T> {
    locks: &'a Locks<T>,
    index: usize,
}

impl<T> LockedOne<'_, T> {
    #[inline]
    pub fn shard(&mut self) -> &mut T {
        // SAFETY: 1. `self` holds the lock, so that nothing else gives access to the value. 2. The
        // returned borrow is of `&mut self`, so that there is only one at a time.
        unsafe { &mut *self.locks.locks[self.index].value.get() }
    }
}

impl<T> Drop for LockedOne<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.locks.unlock(self.index);
    }
}

/// Locked shards. Dropping it unlocks them.
pub struct Locked<'a, T> {
    locks: &'a Locks<T>,
    held: ShardSet,
}

impl<T> Locked<'_, T> {
    pub fn held(&self) -> &ShardSet {
        &self.held
    }

    #[inline]
    pub fn shard(&mut self, index: usize) -> &mut T {
        assert!(self.held.contains(index), "shard {index} is not locked by this command");
        // SAFETY: 1. `self` holds the lock of `index`, so no other `Locked` gives access to it.
        // 2. The returned borrow is of `&mut self`, so this `Locked` gives only one at a time.
        unsafe { &mut *self.locks.locks[index].value.get() }
    }

    /// Locks one more shard if it is free. Out of order, but without waiting, so it can't deadlock.
    pub fn try_add(&mut self, index: usize) -> bool {
        if !self.held.contains(index) {
            if !self.locks.locks[index].try_lock_spinning() {
                return false;
            }
            self.held.insert(index);
        }
        true
    }

    /// As [`Locked::try_add`], without even a short wait; gives the shard.
    #[inline]
    pub fn try_add_now(&mut self, index: usize) -> Option<&mut T> {
        let lock = &self.locks.locks[index];
        if !self.held.contains(index) {
            let change = (0, HELD);
            let (acquire, relaxed) = (Ordering::Acquire, Ordering::Relaxed);
            lock.state.compare_exchange(change.0, change.1, acquire, relaxed).ok()?;
            self.held.insert(index);
        }
        // SAFETY: 1. and 2. as in `shard`: its lock is held by now.
        Some(unsafe { &mut *lock.value.get() })
    }

    /// A locked shard to read, beside others.
    #[inline]
    pub fn shared(&self, index: usize) -> &T
    where
        T: Sync,
    {
        assert!(self.held.contains(index), "shard {index} is not locked by this command");
        // SAFETY: 1. `self` holds the lock of `index`, so no other `Locked` gives access to it.
        // 2. The borrow is of `&self`, and all that writes needs `&mut self`. 3. Other threads can
        // come by the same `&self`, hence the bound.
        unsafe { &*self.locks.locks[index].value.get() }
    }

    /// Two different locked shards at once.
    pub fn pair(&mut self, first: usize, second: usize) -> (&mut T, &mut T) {
        assert!(first != second, "one shard can't be borrowed twice");
        assert!(self.held.contains(first) && self.held.contains(second), "both must be locked");
        // SAFETY: 1. Both locks are held by `self`. 2. The two values are distinct, and both
        // borrows are of `&mut self`, so nothing else reaches either while they live.
        unsafe {
            (&mut *self.locks.locks[first].value.get(), &mut *self.locks.locks[second].value.get())
        }
    }
}

impl<T> Drop for Locked<'_, T> {
    #[inline]
    fn drop(&mut self) {
        let _always = self.held.try_each(|index| {
            self.locks.unlock(index);
            true
        });
    }
}
