//! The hash of a key. Which shard or slot a key belongs to is not decided here.

use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Up to this length the hash takes two words and no loop.
const SHORT_BYTES_MAX: usize = 16;

/// Hashes keys under a seed of its own, so that no one can prepare keys that collide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyHasher {
    seed: u64,
}

impl KeyHasher {
    pub const fn with_seed(seed: u64) -> Self {
        KeyHasher { seed }
    }

    /// Short keys are hashed where it is called, in some twenty instructions; what longer ones
    /// take is apart, so that its callers stay small.
    #[inline]
    pub fn hash(&self, bytes: &[u8]) -> u64 {
        match bytes.len() {
            0..=SHORT_BYTES_MAX => xxh3_64_with_seed(bytes, self.seed),
            _ => self.hash_long(bytes),
        }
    }

    #[inline(never)]
    fn hash_long(&self, bytes: &[u8]) -> u64 {
        xxh3_64_with_seed(bytes, self.seed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_seed_changes_the_hash() {
        let (one, two) = (KeyHasher::with_seed(1), KeyHasher::with_seed(2));
        assert_eq!(one.hash(b"key"), one.hash(b"key"));
        assert_ne!(one.hash(b"key"), two.hash(b"key"));
        assert_ne!(one.hash(b""), two.hash(b""));
    }
}
