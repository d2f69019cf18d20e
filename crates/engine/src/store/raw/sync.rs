//! The primitives that the lock is made of. The model checkers compile the lock again, each against
//! its own.

pub(super) use std::hint::spin_loop as spin_hint;
pub(super) use std::sync::atomic::{AtomicU8, Ordering};
pub(super) use std::sync::{Mutex, MutexGuard};
use std::time::Instant;

/// How often a busy lock is looked at again before the caller queues. About two microseconds: an
/// ordinary command is done by then, a slow one is not worth waiting for.
pub(super) const SPINS_MAX: u32 = 64;

/// A moment of the monotonic clock.
pub(super) type Moment = Instant;

pub(super) fn now() -> Moment {
    Instant::now()
}

pub(super) fn micros_since(moment: Moment) -> u64 {
    moment.elapsed().as_micros() as u64
}
