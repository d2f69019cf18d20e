//! The primitives that the lock is made of. The model checker compiles the lock a second time
//! against its own.

pub(super) use std::hint::spin_loop as spin_hint;
pub(super) use std::sync::atomic::{AtomicU8, Ordering};
pub(super) use std::sync::{Mutex, MutexGuard};
use std::time::Instant;

/// A moment of the monotonic clock.
pub(super) type Moment = Instant;

pub(super) fn now() -> Moment {
    Instant::now()
}

pub(super) fn micros_since(moment: Moment) -> u64 {
    moment.elapsed().as_micros() as u64
}
