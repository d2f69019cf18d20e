//! The primitives that the lock is made of. The model checkers compile the lock again, each against
//! its own.

use super::threads::Slots;
use std::cell::Cell;
pub(super) use std::hint::spin_loop as spin_hint;
pub(super) use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering};
pub(super) use std::sync::{Mutex, MutexGuard};
use std::time::Instant;

/// Threads that have a slot of their own at a time.
const OWN_SLOTS_MAX: usize = 128;
/// The slot of all threads that have none of their own.
pub(super) const SHARED_SLOT: usize = OWN_SLOTS_MAX;
/// Not asked for yet.
const UNKNOWN_SLOT: usize = usize::MAX;

/// How often a busy lock is looked at again before the caller queues. About two microseconds: an
/// ordinary command is done by then, a slow one is not worth waiting for.
pub(super) const SPINS_MAX: u32 = 64;

/// A moment of the monotonic clock.
pub(super) type Moment = Instant;

pub(super) fn now() -> Moment {
    Instant::now()
}

pub(super) fn micros_between(earlier: Moment, later: Moment) -> u64 {
    later.saturating_duration_since(earlier).as_micros() as u64
}

/// Stands right after a read-modify-write: what was written before that is seen by all before what
/// is read from here on.
///
/// An x86 processor sees to that itself at each such instruction, so that only the compiler has to
/// be told. Others need a fence, as does Miri, which follows the letter.
#[inline(always)]
pub(super) fn full_fence_after_rmw() {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    std::sync::atomic::compiler_fence(Ordering::SeqCst);
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    std::sync::atomic::fence(Ordering::SeqCst);
}

static SLOTS: Slots = Slots::new();

std::thread_local! {
    /// Without a destructor, so that to read it is one load.
    static SLOT: Cell<usize> = const { Cell::new(UNKNOWN_SLOT) };
    static LEASE: Lease = Lease(SLOTS.take());
}

/// This thread's slot if it was asked for before; else one that nobody has.
#[inline(always)]
pub(super) fn known_slot() -> usize {
    SLOT.get()
}

/// This thread's slot.
pub(super) fn thread_slot() -> usize {
    match SLOT.get() {
        UNKNOWN_SLOT => assign_slot(),
        slot => slot,
    }
}

/// No thread has a slot of its own that is not below this.
#[inline]
pub(super) fn slots_end() -> usize {
    SLOTS.end()
}

#[cold]
fn assign_slot() -> usize {
    // A thread that is ending has given its own back.
    let slot = LEASE.try_with(|lease| lease.0).unwrap_or(SHARED_SLOT);
    SLOT.set(slot);
    slot
}

/// A slot while its thread runs.
struct Lease(usize);

impl Drop for Lease {
    fn drop(&mut self) {
        // What the thread's other destructors lock is counted on the shared line.
        SLOT.set(SHARED_SLOT);
        SLOTS.give_back(self.0);
    }
}
