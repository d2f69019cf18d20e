//! Bytes inside texts: an error that repeats what a client wrote gives it back byte by byte, though
//! errors are texts here and a client may write anything.
//!
//! A byte that is not part of UTF-8 is written as a character of its own, one of the last 256 that
//! there are, which are nobody's letters. Whoever sends the text turns them into bytes again.

use std::borrow::Cow;

/// The character that stands for the byte 0.
const FIRST: u32 = 0x10_FF00;
/// How all of these characters begin in UTF-8.
const LEAD: u8 = 0xF4;

/// Bytes as text, from which [`unescape`] gets them back.
pub fn escape(bytes: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = std::str::from_utf8(bytes)
        && memchr::memchr(LEAD, bytes).is_none()
    {
        return Cow::Borrowed(text);
    }
    let mut text = String::with_capacity(bytes.len());
    let push_escaped = |text: &mut String, bytes: &[u8]| {
        text.extend(bytes.iter().filter_map(|byte| char::from_u32(FIRST + u32::from(*byte))));
    };
    for chunk in bytes.utf8_chunks() {
        for char in chunk.valid().chars() {
            match u32::from(char) >= FIRST {
                true => push_escaped(&mut text, char.encode_utf8(&mut [0; 4]).as_bytes()),
                false => text.push(char),
            }
        }
        push_escaped(&mut text, chunk.invalid());
    }
    Cow::Owned(text)
}

/// The bytes of a text in which some may have been escaped by [`escape`].
#[inline]
pub fn unescape(text: &str) -> Cow<'_, [u8]> {
    // Most are a word or two: to set up a general search would cost more than this.
    const SHORT_BYTES: usize = 16;
    let bytes = text.as_bytes();
    let may_be_escaped = match bytes.len() {
        0..SHORT_BYTES => bytes.contains(&LEAD),
        _ => memchr::memchr(LEAD, bytes).is_some(),
    };
    if may_be_escaped { Cow::Owned(unescape_slow(text)) } else { Cow::Borrowed(bytes) }
}

#[cold]
fn unescape_slow(text: &str) -> Vec<u8> {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    for char in text.chars() {
        match u32::from(char).checked_sub(FIRST).map(u8::try_from) {
            Some(Ok(byte)) => out.push(byte),
            _ => out.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{escape, unescape};
    use crate::Random;

    #[test]
    fn every_byte_comes_back() {
        let all: Vec<u8> = (0..=255).collect();
        let chars = "aé\u{10FEFF}\u{10FF00}\u{10FFFF}".as_bytes();
        for bytes in [&all[..], b"", b"plain", chars, b"\xF4", b"\xF4\x8F", b"\xF4\x8F\xBF"] {
            assert_eq!(unescape(&escape(bytes)), bytes);
        }
        assert_eq!(escape(b"plain \xC3\xA9"), "plain é");
        assert_eq!(escape(b"\xFF"), "\u{10FFFF}");
    }

    #[test]
    fn so_does_what_is_random() {
        let mut random = Random::from_seed(7);
        for _ in 0..2000 {
            let mut bytes = vec![0; random.index(12)];
            random.fill(&mut bytes);
            // Often among those that matter.
            for byte in &mut bytes {
                if *byte < 128 {
                    *byte =
                        [0xF4, 0x8F, 0xBC, 0xBF, 0x80, 0xFF, b'a', 0xC3][usize::from(*byte) % 8];
                }
            }
            assert_eq!(unescape(&escape(&bytes)), bytes);
        }
    }
}
