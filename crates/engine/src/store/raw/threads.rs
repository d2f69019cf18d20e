//! A small number for each thread, which no other has while it runs: the place of what a thread
//! writes and others only read. Threads come and go, so numbers are given again.
//!
//! Which thread has which is known to `sync.rs`, and to each model in its own way.

use super::sync::{AtomicUsize, Mutex, MutexGuard, Ordering, SHARED_SLOT};
use std::collections::BTreeSet;

/// The numbers below [`SHARED_SLOT`]: which are taken. Threads beyond these share that one.
pub struct Slots {
    /// One more than the largest number that any thread has had.
    end: AtomicUsize,
    /// Those below `end` that no thread has.
    free: Mutex<BTreeSet<usize>>,
}

impl Slots {
    pub const fn new() -> Self {
        Slots { end: AtomicUsize::new(0), free: Mutex::new(BTreeSet::new()) }
    }

    fn free(&self) -> MutexGuard<'_, BTreeSet<usize>> {
        self.free.lock().unwrap_or_else(|poison| poison.into_inner())
    }

    /// No thread has a number of its own that is not below this.
    ///
    /// Relaxed is enough for who looks for holders in [`super::lock`]: a thread that has raised it
    /// did so before it counted itself in on its line, and the fences that show the one show the
    /// other.
    #[inline]
    pub fn end(&self) -> usize {
        self.end.load(Ordering::Relaxed)
    }

    /// A number for a thread, the smallest there is.
    pub fn take(&self) -> usize {
        let mut free = self.free();
        let end = self.end();
        let slot = free.pop_first().unwrap_or(end.min(SHARED_SLOT));
        if slot == end && slot != SHARED_SLOT {
            self.end.store(end + 1, Ordering::Relaxed);
        }
        slot
    }

    /// Gives the number of a thread back. It writes nothing in its place from then on.
    pub fn give_back(&self, slot: usize) {
        if slot != SHARED_SLOT {
            self.free().insert(slot);
        }
    }
}
