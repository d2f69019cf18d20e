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
//!
//! Who needs all shards takes one lock instead of all of them ([`wide`]).

#[path = "lock/queue.rs"]
mod queue;
#[path = "lock/wait.rs"]
mod wait;
#[path = "lock/wide.rs"]
mod wide;

pub use wait::Wait;

use super::sync::{AtomicU8, Mutex, Ordering, SPINS_MAX, spin_hint};
use crate::store::raw::prefetch::{prefetch, prefetch_to_write};
use crate::store::shard_set::ShardSet;
use queue::Queue;
use std::cell::UnsafeCell;
use std::marker::PhantomData;
// Figures, no part of the protocol that the models check.
use std::sync::atomic::{AtomicU32, AtomicU64};
use wait::Reservations;
use wide::{Taking, WideLock};

const HELD: u8 = 1;
/// Somebody is in the queue: the holder must look there when it unlocks.
const QUEUED: u8 = 2;
/// Somebody has waited for long: only the oldest who has reserved the shard may take it.
const RESERVED: u8 = 4;

/// Lines of memory that come together.
const LINE_PAIR_BYTES: usize = 128;
/// So much of a value, from its first byte on, [`Locks::prefetch`] asks for.
pub const PREFETCHED_BYTES: usize = 3 * LINE_PAIR_BYTES - size_of::<u64>();

/// How often one who needs some shards tries to come in between two who take all of them.
const TRIES_BEHIND_MAX: usize = 4;

/// Woken when a shard it queued for may be free now. It may be woken more often than needed.
pub trait Wake: Send + Sync {
    fn wake(&self);
}

/// Alone on its cache lines (the processor fetches them in pairs): neighbours are taken by other
/// threads.
#[repr(C, align(128))]
struct Lock<T> {
    state: AtomicU8,
    /// Right behind, so that whoever takes the lock has the value's first line of memory as well.
    value: UnsafeCell<T>,
    queue: Mutex<Queue>,
    /// How often somebody had to queue. Written under the queue's lock, read by anyone.
    waits: AtomicU64,
    /// The mark of who held it last while somebody waited. Written by who unlocks it.
    awaited: AtomicU32,
}

/// All the shards of a keyspace, each behind its lock.
pub struct Locks<T> {
    locks: Box<[Lock<T>]>,
    all: ShardSet,
    wide: WideLock,
    reservations: Reservations,
}

// SAFETY: 1. A `T` is reached only through `Locked` and `LockedOne`, which hold that shard's lock
// or the wide lock exclusively, so sharing `Locks` between threads only ever moves access to each
// `T` from thread to thread.
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
        self.try_lock_at_once() || self.spin()
    }

    #[inline]
    fn try_lock_at_once(&self) -> bool {
        self.state.compare_exchange(0, HELD, Ordering::Acquire, Ordering::Relaxed).is_ok()
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
}

impl<T> Locks<T> {
    pub fn new(values: impl IntoIterator<Item = T>) -> Self {
        let locks: Box<[Lock<T>]> = values
            .into_iter()
            .map(|value| Lock {
                state: AtomicU8::new(0),
                queue: Mutex::new(Queue::default()),
                waits: AtomicU64::new(0),
                awaited: AtomicU32::new(0),
                value: UnsafeCell::new(value),
            })
            .collect();
        Locks {
            all: ShardSet::first(locks.len()),
            wide: WideLock::new(locks.len()),
            locks,
            reservations: Reservations::default(),
        }
    }

    /// The set of all shards.
    pub fn all(&self) -> &ShardSet {
        &self.all
    }

    /// How often somebody had to queue for each shard.
    pub fn waits(&self) -> impl Iterator<Item = u64> {
        self.locks.iter().map(|lock| lock.waits.load(Ordering::Relaxed))
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
        let mut locked = self.lock_none();
        if wanted.is_empty() {
            return Ok(locked);
        }
        if wanted.has_all_words_of(&self.all) && self.len() > 1 && *wanted == self.all {
            return self.try_lock_all();
        }
        locked.lock_each(wanted)?;
        if !self.wide.is_open() {
            return self.try_lock_behind(wanted, locked);
        }
        Ok(locked)
    }

    /// Locks one shard after the other. What comes of it is not held before the wide lock was
    /// looked at.
    fn lock_each(&self, wanted: &ShardSet) -> Result<Locked<'_, T>, usize> {
        let mut locked = self.lock_none();
        locked.lock_each(wanted)?;
        Ok(locked)
    }

    /// Tries to lock shards that the wide lock was found to be in the way of.
    #[cold]
    fn try_lock_behind<'a>(
        &'a self,
        wanted: &ShardSet,
        mut locked: Locked<'a, T>,
    ) -> Result<Locked<'a, T>, usize> {
        for _ in 0..TRIES_BEHIND_MAX {
            drop(locked);
            let is_free = self.wide.spin_until_free();
            locked = self.lock_each(wanted)?;
            if self.wide.is_open() {
                return Ok(locked);
            }
            if !is_free {
                break;
            }
        }
        Err(self.leave_one(locked))
    }

    /// The wide lock is taken: unlocks all shards but one, which is left to the wide holder, so
    /// that one can queue there. Says which.
    #[cold]
    fn leave_one(&self, mut locked: Locked<'_, T>) -> usize {
        let index = locked.held.iter().next().expect("a holder of nothing is never turned away");
        locked.held.remove(index);
        drop(locked);
        if !self.wide.leave_locked(index) {
            self.unlock(index, 0);
        }
        index
    }

    /// Takes the wide lock, or locks all shards one by one if somebody holds one for longer.
    fn try_lock_all(&self) -> Result<Locked<'_, T>, usize> {
        let mut held = self.all.clone();
        // Reserved shards are passed over only one by one.
        if self.reservations.are_none() {
            match self.wide.try_take() {
                Taking::Taken => {
                    held.note = Admission::WIDE.0;
                    return Ok(Locked { locks: self, held, mark: 0, unsend: PhantomData });
                }
                Taking::HasHolders => self.unlock_all(0),
                Taking::Busy => {
                    let first = ShardSet::one(held.iter().next().unwrap_or_default());
                    let locked = self.lock_each(&first)?;
                    if !self.wide.is_open() {
                        return Err(self.leave_one(locked));
                    }
                }
            }
        }
        let locked = self.lock_each(&held)?;
        if self.wide.is_open() { Ok(locked) } else { Err(self.leave_one(locked)) }
    }

    /// Whether a shard is left to a wide holder.
    #[cfg(test)]
    pub fn has_left(&self) -> bool {
        self.wide.has_left()
    }

    /// Lets go of the wide lock.
    #[inline(never)]
    fn unlock_all(&self, mark: u32) {
        self.wide.let_go(|index| self.unlock(index, mark));
    }

    #[inline]
    fn unlock(&self, index: usize, mark: u32) {
        if !self.try_unlock(index) {
            self.unlock_and_wake(index, mark);
        }
    }

    /// Unlocks a shard unless somebody waits for it.
    #[inline(always)]
    fn try_unlock(&self, index: usize) -> bool {
        let state = &self.locks[index].state;
        state.compare_exchange(HELD, 0, Ordering::Release, Ordering::Relaxed).is_ok()
    }

    pub fn lock_none(&self) -> Locked<'_, T> {
        Locked { locks: self, held: ShardSet::EMPTY, mark: 0, unsend: PhantomData }
    }

    /// Hints that a shard will be locked soon: another processor may have used it last. Asks for
    /// the first [`PREFETCHED_BYTES`] of its value as well; the processor fetches lines in pairs.
    #[inline]
    pub fn prefetch(&self, index: usize) {
        let lock = (&raw const self.locks[index]).cast::<u8>();
        prefetch_to_write(lock);
        for at in (LINE_PAIR_BYTES..=PREFETCHED_BYTES).step_by(LINE_PAIR_BYTES) {
            prefetch(lock.wrapping_add(at));
        }
    }

    /// Locks one shard if that takes no waiting at all: for housekeeping.
    #[inline]
    pub fn try_lock_now(&self, index: usize) -> Option<LockedOne<'_, T>> {
        let line = self.wide.enter();
        if self.locks[index].try_lock() {
            let locked = LockedOne { locks: self, index, line, unsend: PhantomData };
            return self.wide.is_open().then_some(locked);
        }
        self.wide.leave(line);
        None
    }
}

/// For what has to be dropped by the thread that made it.
type Unsend = PhantomData<*const ()>;

/// One locked shard, to which no other is added. Dropping it unlocks it.
pub struct LockedOne<'a, T> {
    locks: &'a Locks<T>,
    index: usize,
    line: u32,
    unsend: Unsend,
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
        self.locks.unlock(self.index, 0);
        self.locks.wide.leave(self.line);
    }
}

/// How a holder of shards was let in: not yet (0, as in an empty set), with the wide lock, or by
/// the line that it is counted on. It is the note of the set of shards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Admission(u32);

impl Admission {
    /// It has the wide lock.
    const WIDE: Admission = Admission(1);
    /// The first line.
    const COUNTED: Admission = Admission(2);

    #[inline(always)]
    fn counted(line: u32) -> Admission {
        Admission(line + Admission::COUNTED.0)
    }

    /// The line that it is counted on.
    #[inline(always)]
    fn line(self) -> Option<u32> {
        self.0.checked_sub(Admission::COUNTED.0)
    }
}

/// Locked shards. Dropping it unlocks them.
pub struct Locked<'a, T> {
    locks: &'a Locks<T>,
    /// With its [`Admission`] as its note.
    held: ShardSet,
    /// What those who had to wait for it see of the holder; 0: nothing.
    mark: u32,
    unsend: Unsend,
}

impl<T> Locked<'_, T> {
    #[inline(always)]
    fn admission(&self) -> Admission {
        Admission(self.held.note)
    }

    /// Counts the holder in; the wide lock is to be looked at once it has locked a shard.
    #[inline(always)]
    fn enter(&mut self) {
        self.held.note = Admission::counted(self.locks.wide.enter()).0;
    }

    /// Counts the holder in and locks one shard after the other, up to the first that is busy.
    #[inline(always)]
    fn lock_each(&mut self, wanted: &ShardSet) -> Result<(), usize> {
        self.enter();
        wanted.try_each(|index| {
            let is_locked = self.locks.locks[index].try_lock_spinning();
            if is_locked {
                self.held.insert(index);
            }
            is_locked
        })
    }

    #[inline]
    pub fn is_wide(&self) -> bool {
        self.admission() == Admission::WIDE
    }

    pub fn holds_all(&self) -> bool {
        self.is_wide() || self.held == self.locks.all
    }

    /// Says who holds the shards, for those who have to wait meanwhile; see [`Wait::holder`].
    #[inline]
    pub fn set_mark(&mut self, mark: u32) {
        self.mark = mark;
    }

    pub(crate) fn mark(&self) -> u32 {
        self.mark
    }

    pub fn held(&self) -> &ShardSet {
        &self.held
    }

    #[inline]
    pub fn shard(&mut self, index: usize) -> &mut T {
        assert!(self.held.contains(index), "shard {index} is not locked by this command");
        // SAFETY: 1. `self` holds the lock of `index` or the wide lock, so no other `Locked` gives
        // access to it. 2. The returned borrow is of `&mut self`, so this `Locked` gives only one
        // at a time.
        unsafe { &mut *self.locks.locks[index].value.get() }
    }

    /// Locks one more shard if it is free. Out of order, but without waiting, so it can't deadlock.
    pub fn try_add(&mut self, index: usize) -> bool {
        if !self.held.contains(index) {
            let is_locked = match self.admission().line().is_some() {
                true => self.locks.locks[index].try_lock_spinning(),
                false => self.lock_first(index, Lock::try_lock_spinning),
            };
            if !is_locked {
                return false;
            }
            self.held.insert(index);
        }
        true
    }

    /// Unlocks one of the shards.
    pub fn release(&mut self, index: usize) {
        assert!(self.held.contains(index), "shard {index} is not locked by this command");
        self.held.remove(index);
        // The wide lock is not let go of in parts.
        if !self.is_wide() {
            self.locks.unlock(index, self.mark);
        }
    }

    /// As [`Locked::try_add`], without even a short wait; gives the shard.
    #[inline(always)]
    pub fn try_add_now(&mut self, index: usize) -> Option<&mut T> {
        let lock = &self.locks.locks[index];
        if !self.held.contains(index) {
            let is_locked = match self.admission().line().is_some() {
                // Nobody gets the wide lock while this holder is counted in.
                true => lock.try_lock_at_once(),
                false => self.lock_first(index, Lock::try_lock_at_once),
            };
            if !is_locked {
                return None;
            }
            self.held.insert(index);
        }
        // SAFETY: 1. and 2. as in `shard`: its lock is held by now.
        Some(unsafe { &mut *lock.value.get() })
    }

    /// Locks the first shard of a holder that is not counted in yet, and counts it in.
    #[inline(never)]
    fn lock_first(&mut self, index: usize, try_lock: impl Fn(&Lock<T>) -> bool) -> bool {
        let locks = self.locks;
        // Who has the wide lock has no shard to add.
        if self.is_wide() {
            return false;
        }
        let line = locks.wide.enter();
        let is_locked = try_lock(&locks.locks[index]);
        if is_locked && locks.wide.is_open() {
            self.held.note = Admission::counted(line).0;
            return true;
        }
        if is_locked {
            locks.unlock(index, 0);
        }
        locks.wide.leave(line);
        false
    }

    /// Unlocks the shards from this one on, for which somebody waits, and counts the holder out.
    /// Apart, and the last thing that is done: so whoever has nobody waiting saves no registers.
    #[cold]
    #[inline(never)]
    fn unlock_and_wake_from(&self, first: usize, line: u32) {
        self.locks.unlock_and_wake(first, self.mark);
        let behind = self.held.iter().filter(|&index| index > first);
        behind.for_each(|index| self.locks.unlock(index, self.mark));
        self.locks.wide.leave(line);
    }

    /// A locked shard to read, beside others.
    #[inline]
    pub fn shared(&self, index: usize) -> &T
    where
        T: Sync,
    {
        assert!(self.held.contains(index), "shard {index} is not locked by this command");
        // SAFETY: 1. `self` holds the lock of `index` or the wide lock, as in `shard`.
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
    #[inline(always)]
    fn drop(&mut self) {
        let Some(line) = self.admission().line() else {
            if self.is_wide() {
                self.locks.unlock_all(self.mark);
            }
            return;
        };
        match self.held.try_each(|index| self.locks.try_unlock(index)) {
            Ok(()) => self.locks.wide.leave(line),
            Err(first) => self.unlock_and_wake_from(first, line),
        }
    }
}
