//! The primitives that the ring is made of. The model checker compiles the ring again, against its
//! own.

pub(super) use std::sync::Mutex;
pub(super) use std::sync::atomic::{AtomicU64, Ordering};

/// Lets others run, where one has to wait for them.
pub(super) fn pass() {
    std::thread::yield_now();
}
