//! The locks of the shards: tried, never slept on.
//!
//! A command asks for all its shards at once and gets all or none, trying them in ascending order.
//! Whoever finds a shard busy queues on that one shard, holding nothing, and is woken when it is
//! free; so a command that waits for a slow one keeps no other key waiting. A shard that has
//! waiters may still be taken by someone who happens to come by (a lock that is always handed over
//! in turn makes every holder wait for a sleeping heir), but only [`BYPASSES_MAX`] times: then it
//! is handed to the first in the queue.
//!
//! Why there is no deadlock: nobody waits while holding. Why nobody starves: the queue is first
//! come first served and the number of bypasses is bounded.

use super::sync::{AtomicBool, AtomicU8, AtomicU32, Mutex, Ordering, spin_hint};
use crate::store::raw::prefetch::prefetch_to_write;
use crate::store::shard_set::ShardSet;
use std::cell::UnsafeCell;
use std::collections::VecDeque;
use std::sync::Arc;

/// How often a shard may be taken by a passer-by while the first of its queue waits.
pub const BYPASSES_MAX: u32 = 32;
/// How often a busy lock is looked at again before the caller queues. About two microseconds: an
/// ordinary command is done by then, a slow one is not worth waiting for.
const SPINS_MAX: u32 = 64;

const HELD: u8 = 1;
/// Somebody is in the queue: the holder must look there when it unlocks.
const QUEUED: u8 = 2;

/// Told that a shard it queued for may be free now. It may be told more often than needed.
pub trait Wake: Send + Sync {
    fn wake(&self);
}

/// A place in a shard's queue.
struct Waiter {
    wake: Arc<dyn Wake>,
    /// The lock is already this waiter's: the unlocker handed it over.
    granted: AtomicBool,
    bypassed: AtomicU32,
}

/// Alone on its cache lines (the processor fetches them in pairs): neighbours are taken by other
/// threads.
#[repr(C, align(128))]
struct Lock<T> {
    state: AtomicU8,
    /// Right behind, so that whoever takes the lock has the value's first line of memory as well.
    value: UnsafeCell<T>,
    queue: Mutex<VecDeque<Arc<Waiter>>>,
}

/// All the shards of a keyspace, each behind its lock.
pub struct Locks<T> {
    locks: Box<[Lock<T>]>,
}

// SAFETY: 1. A `T` is reached only through `Locked` and `LockedOne`, which hold that shard's lock
// exclusively, so sharing `Locks` between threads only ever moves access to each `T` from thread to
// thread.
unsafe impl<T: Send> Sync for Locks<T> {}

impl<T> Lock<T> {
    fn try_lock(&self) -> bool {
        let mut state = self.state.load(Ordering::Relaxed);
        while state & HELD == 0 {
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

    #[inline]
    fn unlock(&self) {
        if self.state.compare_exchange(HELD, 0, Ordering::Release, Ordering::Relaxed).is_err() {
            self.unlock_to_queue();
        }
    }

    /// Wakes the first in the queue, and hands it the lock if it has been passed by often enough.
    #[cold]
    fn unlock_to_queue(&self) {
        let mut queue = self.queue.lock().unwrap_or_else(|poison| poison.into_inner());
        let Some(first) = queue.front() else {
            // The last waiter gave up and left; QUEUED is only ever cleared under the queue's lock.
            self.state.store(0, Ordering::Release);
            return;
        };
        if first.bypassed.fetch_add(1, Ordering::Relaxed) < BYPASSES_MAX {
            let first = first.clone();
            self.state.store(QUEUED, Ordering::Release);
            drop(queue);
            first.wake.wake();
            return;
        }
        let heir = queue.pop_front().expect("the queue has a front: it was just looked at");
        let rest = if queue.is_empty() { 0 } else { QUEUED };
        self.state.store(HELD | rest, Ordering::Release);
        heir.granted.store(true, Ordering::Release);
        drop(queue);
        heir.wake.wake();
    }

    /// Queues `waiter` unless the lock is free by now, in which case it is taken: true.
    fn lock_or_enqueue(&self, waiter: &Arc<Waiter>) -> bool {
        let mut queue = self.queue.lock().unwrap_or_else(|poison| poison.into_inner());
        let before = self.state.fetch_or(QUEUED | HELD, Ordering::Acquire);
        if before & HELD == 0 {
            if queue.is_empty() {
                self.state.store(HELD, Ordering::Relaxed);
            }
            return true;
        }
        queue.push_back(waiter.clone());
        false
    }

    /// Takes `waiter` out of the queue. True if it was granted the lock meanwhile.
    fn leave_queue(&self, waiter: &Arc<Waiter>) -> bool {
        let mut queue = self.queue.lock().unwrap_or_else(|poison| poison.into_inner());
        queue.retain(|other| !Arc::ptr_eq(other, waiter));
        waiter.granted.load(Ordering::Acquire)
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
        Locks { locks }
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

    /// Wakes all who wait for a shard, though it is still held: to be told why.
    pub fn wake_waiters(&self, index: usize) {
        let queue = self.locks[index].queue.lock().unwrap_or_else(|poison| poison.into_inner());
        let wakes: Vec<Arc<dyn Wake>> = queue.iter().map(|waiter| waiter.wake.clone()).collect();
        drop(queue);
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
        let lock = &self.locks[index];
        lock.try_lock().then(|| LockedOne { lock })
    }
}

/// One locked shard, to which no other is added. Dropping it unlocks it.
pub struct LockedOne<'a, T> {
    lock: &'a Lock<T>,
}

impl<T> LockedOne<'_, T> {
    #[inline]
    pub fn shard(&mut self) -> &mut T {
        // SAFETY: 1. `self` holds the lock, so that nothing else gives access to the value. 2. The
        // returned borrow is of `&mut self`, so that there is only one at a time.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T> Drop for LockedOne<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.lock.unlock();
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
            self.locks.locks[index].unlock();
            true
        });
    }
}

/// A command's wait for a busy shard. It holds no lock, except one that was handed to it and that
/// it has not looked at yet. Dropping it leaves the queue.
pub struct Wait<T> {
    locks: Arc<Locks<T>>,
    wake: Arc<dyn Wake>,
    queued: Option<(usize, Arc<Waiter>)>,
}

impl<T> Wait<T> {
    pub fn new(locks: Arc<Locks<T>>, wake: Arc<dyn Wake>) -> Self {
        Wait { locks, wake, queued: None }
    }

    /// Tries to lock all of `wanted`; on failure stays queued on a shard that was busy and will be
    /// woken. Spurious calls are harmless: a place in the queue is kept.
    pub fn poll<'a>(&mut self, locks: &'a Locks<T>, wanted: &ShardSet) -> Option<Locked<'a, T>> {
        assert!(std::ptr::eq(locks, &*self.locks), "a wait belongs to one keyspace");
        let mut granted = match self.queued.take() {
            None => None,
            Some((index, waiter)) => {
                if waiter.granted.load(Ordering::Acquire) {
                    Some(Locked { locks, held: ShardSet::one(index) })
                } else if locks.locks[index].try_lock() {
                    // Taken on our own: the place in the queue is no longer needed. The grant can't
                    // come between, for only a holder grants, and the holder is us.
                    locks.locks[index].leave_queue(&waiter);
                    Some(Locked { locks, held: ShardSet::one(index) })
                } else {
                    self.queued = Some((index, waiter));
                    return None;
                }
            }
        };
        loop {
            let busy = match lock_rest(locks, wanted, granted.take()) {
                Ok(locked) => return Some(locked),
                Err(busy) => busy,
            };
            let waiter = Arc::new(Waiter {
                wake: self.wake.clone(),
                granted: AtomicBool::new(false),
                bypassed: AtomicU32::new(0),
            });
            if !locks.locks[busy].lock_or_enqueue(&waiter) {
                self.queued = Some((busy, waiter));
                return None;
            }
            granted = Some(Locked { locks, held: ShardSet::one(busy) });
        }
    }
}

/// Tries the shards of `wanted` that `first` does not hold yet. Nothing stays locked on failure.
fn lock_rest<'a, T>(
    locks: &'a Locks<T>,
    wanted: &ShardSet,
    first: Option<Locked<'a, T>>,
) -> Result<Locked<'a, T>, usize> {
    let mut locked = first.unwrap_or(Locked { locks, held: ShardSet::EMPTY });
    wanted.try_each(|index| {
        let is_locked = locked.held.contains(index) || locks.locks[index].try_lock_spinning();
        if is_locked {
            locked.held.insert(index);
        }
        is_locked
    })?;
    // What was waited for may be wanted no more (a script was reloaded, say): give it back.
    if !locked.held.is_subset(wanted) {
        for index in locked.held.iter().filter(|&index| !wanted.contains(index)) {
            locked.held.remove(index);
            locks.locks[index].unlock();
        }
    }
    Ok(locked)
}

impl<T> Drop for Wait<T> {
    fn drop(&mut self) {
        if let Some((index, waiter)) = self.queued.take() {
            let lock = &self.locks.locks[index];
            if lock.leave_queue(&waiter) {
                lock.unlock();
            } else {
                // A wake-up meant for us may have been the only one: pass it on.
                let queue = lock.queue.lock().unwrap_or_else(|poison| poison.into_inner());
                let next = queue.front().map(|next| next.wake.clone());
                drop(queue);
                if let Some(wake) = next {
                    wake.wake();
                }
            }
        }
    }
}
