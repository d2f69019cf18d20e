//! Which register an element goes to, and what it leaves there.

use super::{REGISTER_BITS, REGISTERS, RUN_BITS};
use crate::types::murmur::murmur64a;

/// The seed that every Redis uses.
const SEED: u64 = 0xadc8_3b19;

/// What one element means for the registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    pub register: usize,
    /// Zeros at the low end of the rest of the hash, and one: 1 to 51.
    pub run: u8,
}

impl Mark {
    #[inline]
    pub fn of(element: &[u8]) -> Mark {
        let hash = murmur64a(element, SEED);
        // A bit above the last one that counts ends the longest run.
        let rest = (hash >> REGISTER_BITS) | 1 << RUN_BITS;
        let register = hash as usize & (REGISTERS - 1);
        Mark { register, run: rest.trailing_zeros() as u8 + 1 }
    }
}
