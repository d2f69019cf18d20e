//! The digest by which a client can name a string's value without sending it: DIGEST, and the
//! IFDEQ and IFDNE conditions.

use xxhash_rust::xxh3::xxh3_64;

/// Hexadecimal digits of a digest.
pub const DIGEST_DIGITS: usize = 16;

/// The XXH3 hash of a value as lower-case hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digest([u8; DIGEST_DIGITS]);

impl Digest {
    pub fn of(value: &[u8]) -> Self {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let hash = xxh3_64(value);
        Digest(std::array::from_fn(|at| {
            let shift = 4 * (DIGEST_DIGITS - 1 - at);
            DIGITS[(hash >> shift) as usize & 0xf]
        }))
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// COMPAT: whether a digest that a client gave is this one; its case does not matter, and what
    /// is not hexadecimal is merely different (test `a_digest_is_known_in_either_case`).
    pub fn is(&self, given: &[u8]) -> bool {
        self.0.eq_ignore_ascii_case(given)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_known_in_either_case() {
        let digest = Digest::of(b"Hello world");
        assert_eq!(digest.as_bytes(), b"b6acb9d84a38ff74");
        assert!(digest.is(b"B6ACB9D84A38FF74") && !digest.is(b"b6acb9d84a38ff7"));
        assert!(!digest.is(b"zzzzzzzzzzzzzzzz"));
        assert_eq!(Digest::of(b"").as_bytes(), b"2d06800538d394c2");
    }
}
