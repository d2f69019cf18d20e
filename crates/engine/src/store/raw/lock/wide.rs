//! All shards at once, without locking each of them: what is done to the whole keyspace, and most
//! of all scripts whose keys are not known, would spend most of their time on 512 locks.
//!
//! Each thread has a line of memory that says how many holders of shards it has. Who wants all
//! shards takes the one wide lock and then looks at the lines: if no thread has a holder, all is
//! its own. Whoever locks a shard first counts itself in, locks, and then looks at the wide lock:
//! if that is taken it lets go. So of two who come at once at least one sees the other: each
//! writes first, then reads, with a full fence between. The fence of the many is the
//! read-modify-write of the shard's own lock, so that they pay for a store and a load.
//!
//! Who finds the wide lock taken has to wait for a shard like anybody else. So it leaves the shard
//! locked, in the name of the wide holder, and queues there; the wide holder unlocks what was left
//! to it once it has let go of the wide lock.
//!
//! If a thread has a holder that does not end soon the wide lock is let go of, and the shards are
//! locked one by one to find the busy one.

use super::super::sync::{
    AtomicU8, AtomicU32, AtomicU64, Ordering, SHARED_SLOT, SPINS_MAX, full_fence_after_rmw,
    known_slot, slots_end, spin_hint, thread_slot,
};
use std::sync::atomic::compiler_fence;

const FREE: u8 = 0;
const TAKEN: u8 = 1;

const WORD_BITS: usize = u64::BITS as usize;

/// The holders of one thread. Alone on its cache lines: one thread writes it all the time.
#[repr(align(128))]
struct Line(AtomicU32);

pub(super) struct WideLock {
    state: AtomicU8,
    /// By the slots of threads.
    lines: Box<[Line]>,
    /// The holders of all threads that have no slot of their own.
    shared: Line,
    /// The shards that were left locked for the wide holder to unlock: one bit each.
    left: Box<[AtomicU64]>,
}

/// What became of a try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taking {
    Taken,
    /// Somebody has all shards.
    Busy,
    /// Somebody has some.
    HasHolders,
}

impl WideLock {
    pub fn new(shards: usize) -> Self {
        WideLock {
            state: AtomicU8::new(FREE),
            lines: (0..SHARED_SLOT).map(|_| Line(AtomicU32::new(0))).collect(),
            shared: Line(AtomicU32::new(0)),
            left: (0..shards.div_ceil(WORD_BITS)).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    /// Counts a holder of this thread in, before it locks its first shard; the line it is on.
    #[inline(always)]
    pub fn enter(&self) -> u32 {
        let mut slot = known_slot();
        match self.lines.get(slot) {
            // Nobody else writes it.
            Some(Line(own)) => own.store(own.load(Ordering::Relaxed) + 1, Ordering::Relaxed),
            None => slot = self.enter_slowly(),
        }
        // It stays before the read-modify-write that follows; `is_open` has the fence.
        compiler_fence(Ordering::SeqCst);
        slot as u32
    }

    /// The first time that a thread comes, and always for one that has no line of its own.
    #[cold]
    fn enter_slowly(&self) -> usize {
        let slot = thread_slot();
        match self.lines.get(slot) {
            Some(Line(own)) => own.store(own.load(Ordering::Relaxed) + 1, Ordering::Relaxed),
            None => _ = self.shared.0.fetch_add(1, Ordering::Relaxed),
        }
        slot
    }

    /// Counts a holder out. It has unlocked its shards, or touches none of them any more.
    #[inline(always)]
    pub fn leave(&self, line: u32) {
        match self.lines.get(line as usize) {
            Some(Line(own)) => own.store(own.load(Ordering::Relaxed) - 1, Ordering::Release),
            None => _ = self.shared.0.fetch_sub(1, Ordering::Release),
        }
    }

    /// Whether who was counted in and has locked a shard since may go on. If not, it has to leave.
    #[inline]
    pub fn is_open(&self) -> bool {
        full_fence_after_rmw();
        self.state.load(Ordering::Acquire) == FREE
    }

    /// Waits a short while for the wide lock to be free.
    pub fn spin_until_free(&self) -> bool {
        (0..SPINS_MAX).any(|_| {
            let is_free = self.state.load(Ordering::Relaxed) == FREE;
            if !is_free {
                spin_hint();
            }
            is_free
        })
    }

    #[cfg(test)]
    pub fn has_left(&self) -> bool {
        self.left.iter().any(|word| word.load(Ordering::Relaxed) != 0)
    }

    fn has_holders(&self) -> bool {
        let has_holders = |line: &Line| line.0.load(Ordering::Acquire) != 0;
        self.lines[..slots_end()].iter().any(has_holders) || has_holders(&self.shared)
    }

    /// Tries to take all shards. What is not [`Taking::Taken`] but [`Taking::HasHolders`] has the
    /// wide lock still, and lets go of it.
    pub fn try_take(&self) -> Taking {
        let take = || {
            let (acquire, relaxed) = (Ordering::Acquire, Ordering::Relaxed);
            self.state.compare_exchange(FREE, TAKEN, acquire, relaxed).is_ok()
        };
        let is_taken = take() || (self.spin_until_free() && take());
        if !is_taken {
            return Taking::Busy;
        }
        full_fence_after_rmw();
        for _ in 0..SPINS_MAX {
            if !self.has_holders() {
                return Taking::Taken;
            }
            spin_hint();
        }
        Taking::HasHolders
    }

    /// Lets go of the wide lock, and says which shards are to be unlocked for that.
    #[inline]
    pub fn let_go(&self, mut unlock: impl FnMut(usize)) {
        self.state.swap(FREE, Ordering::AcqRel);
        full_fence_after_rmw();
        for (at, word) in self.left.iter().enumerate() {
            if word.load(Ordering::Relaxed) == 0 {
                continue;
            }
            let mut shards = word.swap(0, Ordering::AcqRel);
            while shards != 0 {
                unlock(at * WORD_BITS + shards.trailing_zeros() as usize);
                shards &= shards - 1;
            }
        }
    }

    /// Leaves a shard, which the caller has locked, to the wide holder. False if there is none any
    /// more: then the caller unlocks it.
    pub fn leave_locked(&self, index: usize) -> bool {
        let (word, bit) = (&self.left[index / WORD_BITS], 1 << (index % WORD_BITS));
        word.fetch_or(bit, Ordering::AcqRel);
        full_fence_after_rmw();
        if self.state.load(Ordering::Relaxed) != FREE {
            return true;
        }
        // The holder may have seen the shard or not: who takes the bit away unlocks it.
        word.fetch_and(!bit, Ordering::AcqRel) & bit == 0
    }
}
