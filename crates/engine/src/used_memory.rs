//! The bytes in use, as one number that anyone may read before each write: no walk, no lock, no
//! call of the system or of the allocator, which in a program that embeds the engine is not ours.
//!
//! Whoever owns memory counts it and adds the difference when it changes. Sizes are those that an
//! allocator would give ([`allocated_bytes`]). What leaves the keyspace is subtracted at once, even
//! if another thread has yet to free it: what waits for that is as good as free, and an eviction
//! that waited for it would evict too much.
//!
//! [`allocated_bytes`]: crate::types::capacity::allocated_bytes

use std::sync::atomic::{AtomicI64, Ordering};

/// Parts of the number, so that threads which add at the same time seldom meet.
const LANES: usize = 8;

#[derive(Debug, Default)]
#[repr(align(128))]
struct Lane(AtomicI64);

#[derive(Debug, Default)]
pub struct UsedMemory {
    lanes: [Lane; LANES],
}

impl UsedMemory {
    /// Adds a difference. Any lane will do; those who pass different ones do not disturb each
    /// other.
    #[inline]
    pub fn add(&self, lane: usize, bytes: isize) {
        self.lanes[lane % LANES].0.fetch_add(bytes as i64, Ordering::Relaxed);
    }

    #[inline]
    pub fn bytes(&self) -> u64 {
        let sum: i64 = self.lanes.iter().map(|lane| lane.0.load(Ordering::Relaxed)).sum();
        // A difference may be seen before the one that it follows.
        u64::try_from(sum).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_of_all_lanes_add_up() {
        let used = UsedMemory::default();
        (0..20).for_each(|lane| used.add(lane, 1000));
        used.add(3, -19_999);
        assert_eq!(used.bytes(), 1);
        used.add(4, -2);
        assert_eq!(used.bytes(), 0);
    }
}
