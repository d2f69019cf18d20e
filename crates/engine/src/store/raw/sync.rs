//! The primitives that the lock is made of. The model checker compiles the lock a second time
//! against its own.

pub(super) use std::hint::spin_loop as spin_hint;
pub(super) use std::sync::Mutex;
pub(super) use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering};
