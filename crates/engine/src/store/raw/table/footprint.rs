//! How much memory something of a table takes, and whose memory that is: pages and groups come from
//! the pool, which nobody else counts; the rest comes from the global allocator, which does.

use super::slab::SLAB_BLOCK_MAX;
use std::ops::{AddAssign, SubAssign};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Footprint {
    pub(super) bytes: usize,
    /// Those of them that lie in the pool.
    pub(super) pooled_bytes: usize,
}

impl Footprint {
    /// Of a block of this block size: see `Blocks::allocate`.
    #[inline]
    pub(super) fn of_block(bytes: usize) -> Footprint {
        Footprint { bytes, pooled_bytes: if bytes <= SLAB_BLOCK_MAX { bytes } else { 0 } }
    }
}

impl AddAssign for Footprint {
    #[inline]
    fn add_assign(&mut self, other: Footprint) {
        self.bytes += other.bytes;
        self.pooled_bytes += other.pooled_bytes;
    }
}

impl SubAssign for Footprint {
    #[inline]
    fn sub_assign(&mut self, other: Footprint) {
        self.bytes -= other.bytes;
        self.pooled_bytes -= other.pooled_bytes;
    }
}
