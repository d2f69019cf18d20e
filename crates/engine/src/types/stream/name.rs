//! The names of groups and consumers. Short ones, which most are, lie where they are listed: who
//! looks for one need not follow a pointer for each that it is compared with.

use crate::types::capacity::allocated_bytes;
use smallvec::SmallVec;

/// Bytes of a name that takes no memory of its own: as many as its pointer and length would.
const SHORT_BYTES_MAX: usize = 16;

pub type Name = SmallVec<[u8; SHORT_BYTES_MAX]>;

/// What a name takes on the heap.
pub fn name_bytes(name: &[u8]) -> usize {
    if name.len() <= SHORT_BYTES_MAX { 0 } else { allocated_bytes(name.len()) }
}
