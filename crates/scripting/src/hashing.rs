//! The hasher of maps inside the compiler and the heap. Their keys are short and come from scripts:
//! it is keyed, as the standard library's is, and takes a fraction of the time.

use russet_base::Random;
use russet_base::hash::KeyHasher;
use std::hash::{BuildHasher, Hasher};
use std::sync::LazyLock;

/// Odd, and half of its bits are set.
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Keyed {
    seed: u64,
}

impl Keyed {
    pub(crate) fn with_seed(seed: u64) -> Self {
        Keyed { seed }
    }
}

impl Default for Keyed {
    /// With a secret of this process.
    fn default() -> Self {
        static SEED: LazyLock<u64> = LazyLock::new(|| Random::from_entropy().next_u64());
        Keyed { seed: *SEED }
    }
}

impl BuildHasher for Keyed {
    type Hasher = KeyedHasher;

    fn build_hasher(&self) -> KeyedHasher {
        KeyedHasher(self.seed)
    }
}

pub(crate) struct KeyedHasher(u64);

impl Hasher for KeyedHasher {
    fn write(&mut self, bytes: &[u8]) {
        self.0 = KeyHasher::with_seed(self.0).hash(bytes);
    }

    fn write_u64(&mut self, number: u64) {
        let product = u128::from(self.0 ^ number) * u128::from(FACTOR);
        self.0 = product as u64 ^ (product >> 64) as u64;
    }

    fn write_u8(&mut self, number: u8) {
        self.write_u64(u64::from(number));
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(u64::from(number));
    }

    fn write_usize(&mut self, number: usize) {
        self.write_u64(number as u64);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::Keyed;
    use std::hash::BuildHasher;

    #[test]
    fn equal_keys_have_one_hash_and_the_seed_changes_it() {
        let (one, two) = (Keyed::with_seed(1), Keyed::with_seed(2));
        assert_eq!(one.hash_one(b"name".as_slice()), one.hash_one(b"name".to_vec()));
        assert_ne!(one.hash_one("name"), two.hash_one("name"));
        assert_ne!(one.hash_one(7_u32), two.hash_one(7_u32));
        assert_ne!(one.hash_one((1_u32, 2_u32)), one.hash_one((2_u32, 1_u32)));
    }
}
