//! Which register an element goes to, and what it leaves there. The hash is MurmurHash64A with the
//! seed that every Redis uses: other hashes would make registers that nobody else can merge.

use super::{REGISTERS, RUN_BITS};

const SEED: u64 = 0xadc8_3b19;
const MULTIPLIER: u64 = 0xc6a4_a793_5bd1_e995;
const SHIFT: u32 = 47;

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
        let hash = murmur64a(element);
        // A bit above the last one that counts ends the longest run.
        let rest = (hash >> super::REGISTER_BITS) | 1 << RUN_BITS;
        let register = hash as usize & (REGISTERS - 1);
        Mark { register, run: rest.trailing_zeros() as u8 + 1 }
    }
}

fn murmur64a(bytes: &[u8]) -> u64 {
    // COMPAT: the length is taken as a 32-bit integer.
    let len = bytes.len() as i32 as u64;
    let mut hash = SEED ^ len.wrapping_mul(MULTIPLIER);
    let (words, tail) = bytes.as_chunks::<8>();
    for word in words {
        let mut word = u64::from_le_bytes(*word).wrapping_mul(MULTIPLIER);
        word ^= word >> SHIFT;
        hash ^= word.wrapping_mul(MULTIPLIER);
        hash = hash.wrapping_mul(MULTIPLIER);
    }
    if !tail.is_empty() {
        let mut last = [0; 8];
        last[..tail.len()].copy_from_slice(tail);
        hash = (hash ^ u64::from_le_bytes(last)).wrapping_mul(MULTIPLIER);
    }
    hash ^= hash >> SHIFT;
    hash = hash.wrapping_mul(MULTIPLIER);
    hash ^ (hash >> SHIFT)
}
