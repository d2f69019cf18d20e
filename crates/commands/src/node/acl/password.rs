//! Passwords, of which only the SHA-256 is kept.

use russet_base::random;
use sha2::{Digest, Sha256};

const DIGEST_BYTES: usize = 32;
/// Hexadecimal digits of a digest.
pub const DIGEST_DIGITS: usize = DIGEST_BYTES * 2;

#[derive(Clone, Copy, PartialEq, Eq)]
pub struct PasswordDigest([u8; DIGEST_BYTES]);

impl PasswordDigest {
    pub fn of(password: &[u8]) -> Self {
        PasswordDigest(Sha256::digest(password).into())
    }

    /// From 64 hexadecimal digits in lower case.
    pub fn parse(text: &[u8]) -> Option<Self> {
        let digit = |byte: u8| match byte {
            b'0'..=b'9' => Some(byte - b'0'),
            b'a'..=b'f' => Some(byte - b'a' + 10),
            _ => None,
        };
        if text.len() != DIGEST_DIGITS {
            return None;
        }
        let mut bytes = [0; DIGEST_BYTES];
        for (byte, pair) in bytes.iter_mut().zip(text.chunks_exact(2)) {
            *byte = digit(pair[0])? << 4 | digit(pair[1])?;
        }
        Some(PasswordDigest(bytes))
    }

    pub fn text(&self) -> String {
        hexadecimal(&self.0)
    }

    /// Takes the same time wherever they differ.
    pub fn is_same(&self, other: &PasswordDigest) -> bool {
        let differing = self.0.iter().zip(&other.0).fold(0, |sum, (a, b)| sum | (a ^ b));
        std::hint::black_box(differing) == 0
    }
}

/// A digest shows nothing of the password, but it can be guessed at: no log needs it.
impl std::fmt::Debug for PasswordDigest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PasswordDigest(..)")
    }
}

pub fn hexadecimal(bytes: &[u8]) -> String {
    random::hex(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_read_as_it_is_written() {
        let digest = PasswordDigest::of(b"foo");
        let text = "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae";
        assert_eq!(digest.text(), text);
        let read = PasswordDigest::parse(text.as_bytes()).unwrap();
        assert!(read.is_same(&digest) && !read.is_same(&PasswordDigest::of(b"fop")));
        for bad in ["", "2c", &text.to_uppercase(), &text[1..], &text.replace('2', "g")] {
            assert!(PasswordDigest::parse(bad.as_bytes()).is_none(), "{bad}");
        }
        assert!(!format!("{digest:?}").contains("2c26"));
    }
}
