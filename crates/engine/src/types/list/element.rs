//! One element of a list and its encoded form, the entry, which packed lists and the chunks of
//! large lists share. Whole runs of entries are the business of `entries.rs`.
//!
//! An entry is `head payload back`. It is the entry of Redis's listpack byte for byte, so that a
//! run of entries goes into an RDB file, and comes out of one, as it is, and so that its size is
//! the size Redis compares with `list-max-listpack-size`:
//!
//! | head | meaning |
//! |---|---|
//! | `0vvvvvvv` | the integer v, 0..=127 |
//! | `10nnnnnn` | n bytes of payload, n < 64 |
//! | `110vvvvv` + 1 byte | 13-bit signed integer, high bits first |
//! | `1110nnnn` + 1 byte | n bytes of payload, n < 4096, high bits first |
//! | `0xf0` + 4 bytes | n bytes of payload, n little-endian |
//! | `0xf1`..`0xf4` + 2, 3, 4, 8 bytes | little-endian signed integer |
//!
//! `back` is the length of head and payload, in 7-bit groups, lowest group last; every byte but the
//! first has its high bit set, so it can be read from its end.

use russet_base::num;

/// An element as it is stored: text that is the canonical form of an `i64` is held as the number.
/// Make one from text with [`Element::parse`] only, or equal elements may compare unequal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Element<'a> {
    Bytes(&'a [u8]),
    Int(i64),
}

impl<'a> Element<'a> {
    pub fn parse(text: &'a [u8]) -> Self {
        match num::parse_i64(text) {
            Some(value) => Element::Int(value),
            None => Element::Bytes(text),
        }
    }

    /// Calls `f` with the element's text.
    #[inline]
    pub fn with_bytes<R>(self, f: impl FnOnce(&[u8]) -> R) -> R {
        match self {
            Element::Bytes(bytes) => f(bytes),
            Element::Int(value) => f(IntText::new(value).as_bytes()),
        }
    }

    /// Appends the element's text.
    pub fn write_to(self, out: &mut Vec<u8>) {
        self.with_bytes(|bytes| out.extend_from_slice(bytes));
    }

    pub fn to_vec(self) -> Vec<u8> {
        self.with_bytes(<[u8]>::to_vec)
    }
}

/// An integer's decimal text without an allocation.
pub struct IntText {
    digits: [u8; num::I64_TEXT_BYTES_MAX],
    start: usize,
}

impl IntText {
    #[inline]
    pub fn new(value: i64) -> Self {
        let mut digits = [0; num::I64_TEXT_BYTES_MAX];
        let start = digits.len() - num::i64_bytes(value, &mut digits).len();
        IntText { digits, start }
    }

    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        &self.digits[self.start..]
    }
}

/// Most bytes that head and back together add to a payload.
pub const ENTRY_OVERHEAD_BYTES_MAX: usize = 10;

const STRING_32: u8 = 0xf0;
const INT_16: u8 = 0xf1;
const INT_24: u8 = 0xf2;
const INT_32: u8 = 0xf3;
const INT_64: u8 = 0xf4;

/// An element encoded, in up to three pieces so that the payload is not copied to build it.
pub struct Entry<'a> {
    head: [u8; 9],
    head_len: u8,
    back_len: u8,
    back: [u8; 5],
    payload: &'a [u8],
}

impl<'a> Entry<'a> {
    #[inline]
    pub fn new(element: Element<'a>) -> Self {
        let mut entry =
            Entry { head: [0; 9], head_len: 1, back_len: 1, back: [0; 5], payload: &[] };
        match element {
            Element::Bytes(bytes) => entry.set_string(bytes),
            Element::Int(value) => entry.set_int(value),
        }
        let length = usize::from(entry.head_len) + entry.payload.len();
        if length < 128 {
            entry.back[0] = length as u8;
        } else {
            entry.set_back(length);
        }
        entry
    }

    #[inline]
    fn set_string(&mut self, bytes: &'a [u8]) {
        self.payload = bytes;
        let len = bytes.len();
        if len < 64 {
            self.head[0] = 0x80 | len as u8;
        } else if len < 4096 {
            self.head[..2].copy_from_slice(&(0xe000 | len as u16).to_be_bytes());
            self.head_len = 2;
        } else {
            let len = u32::try_from(len).expect("arguments are spans of 32-bit length");
            self.head[0] = STRING_32;
            self.head[1..5].copy_from_slice(&len.to_le_bytes());
            self.head_len = 5;
        }
    }

    fn set_int(&mut self, value: i64) {
        let little = value.to_le_bytes();
        let mut put = |tag: u8, bytes: usize| {
            self.head[0] = tag;
            self.head[1..1 + bytes].copy_from_slice(&little[..bytes]);
            self.head_len = 1 + bytes as u8;
        };
        match value {
            0..=127 => put(value as u8, 0),
            -4096..=4095 => {
                let bits = 0xc000 | (value as u16 & 0x1fff);
                self.head[..2].copy_from_slice(&bits.to_be_bytes());
                self.head_len = 2;
            }
            -0x8000..=0x7fff => put(INT_16, 2),
            -0x80_0000..=0x7f_ffff => put(INT_24, 3),
            -0x8000_0000..=0x7fff_ffff => put(INT_32, 4),
            _ => put(INT_64, 8),
        }
    }

    fn set_back(&mut self, length: usize) {
        let groups = back_bytes(length);
        self.back_len = groups as u8;
        let mut rest = length;
        for at in (0..groups).rev() {
            let continues = if at > 0 { 0x80 } else { 0 };
            self.back[at] = (rest & 0x7f) as u8 | continues;
            rest >>= 7;
        }
    }

    pub fn bytes(&self) -> usize {
        usize::from(self.head_len) + self.payload.len() + usize::from(self.back_len)
    }

    pub fn pieces(&self) -> [&[u8]; 3] {
        [
            &self.head[..usize::from(self.head_len)],
            self.payload,
            &self.back[..usize::from(self.back_len)],
        ]
    }

    /// Writes the entry over all of `out`, which must be `bytes()` long.
    #[inline]
    pub fn write(&self, out: &mut [u8]) {
        if self.head_len == 1 && self.back_len == 1 {
            let last = out.len() - 1;
            out[0] = self.head[0];
            out[1..last].copy_from_slice(self.payload);
            out[last] = self.back[0];
            return;
        }
        let mut rest = out;
        for piece in self.pieces() {
            let (now, later) = rest.split_at_mut(piece.len());
            now.copy_from_slice(piece);
            rest = later;
        }
    }
}

/// Bytes that `back` takes for a length of head and payload.
#[inline]
fn back_bytes(length: usize) -> usize {
    // COMPAT: the bounds are one less than seven-bit groups allow from the second on; a listpack of
    // Redis has them so. Test `entries_survive_at_every_width`.
    match length {
        0..=127 => 1,
        128..16_383 => 2,
        16_383..2_097_151 => 3,
        2_097_151..268_435_455 => 4,
        _ => 5,
    }
}

/// The lengths of head and payload of the entry that starts `run`.
#[inline]
fn lengths(run: &[u8]) -> (usize, usize) {
    let tag = run[0];
    match tag {
        0..0x80 => (1, 0),
        0x80..0xc0 => (1, usize::from(tag & 0x3f)),
        0xc0..0xe0 => (2, 0),
        0xe0..0xf0 => (2, usize::from(u16::from_be_bytes([tag & 0x0f, run[1]]))),
        STRING_32 => (5, u32::from_le_bytes([run[1], run[2], run[3], run[4]]) as usize),
        INT_16 => (3, 0),
        INT_24 => (4, 0),
        INT_32 => (5, 0),
        _ => (9, 0),
    }
}

/// Bytes of the entry that starts `run`.
#[inline]
pub fn entry_bytes(run: &[u8]) -> usize {
    let (head, payload) = lengths(run);
    head + payload + back_bytes(head + payload)
}

/// Bytes of the entry that ends `run`.
#[inline]
pub fn last_entry_bytes(run: &[u8]) -> usize {
    let mut at = run.len() - 1;
    let mut length = usize::from(run[at] & 0x7f);
    let mut shift = 0;
    while run[at] & 0x80 != 0 {
        at -= 1;
        shift += 7;
        length |= usize::from(run[at] & 0x7f) << shift;
    }
    length + run.len() - at
}

/// The element that starts `run` and the bytes of its entry.
#[inline]
pub fn decode(run: &[u8]) -> (Element<'_>, usize) {
    let tag = run[0];
    // Short strings are most of what lists hold.
    if tag & 0xc0 == 0x80 {
        let end = 1 + usize::from(tag & 0x3f);
        return (Element::Bytes(&run[1..end]), end + 1);
    }
    let (head, payload) = lengths(run);
    let element = match tag {
        0..0x80 => Element::Int(i64::from(tag)),
        0xc0..0xe0 => {
            let bits = u16::from_be_bytes([tag, run[1]]) << 3;
            Element::Int(i64::from(bits as i16 >> 3))
        }
        0xe0..=STRING_32 => Element::Bytes(&run[head..head + payload]),
        _ => Element::Int(little_endian(&run[1..head])),
    };
    (element, head + payload + back_bytes(head + payload))
}

/// A little-endian signed integer of up to eight bytes.
fn little_endian(bytes: &[u8]) -> i64 {
    let mut wide = [0; 8];
    wide[8 - bytes.len()..].copy_from_slice(bytes);
    i64::from_le_bytes(wide) >> (64 - 8 * bytes.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip(text: &[u8]) -> usize {
        let entry = Entry::new(Element::parse(text));
        let mut out = vec![0; entry.bytes()];
        entry.write(&mut out);
        assert_eq!(entry.pieces().concat(), out);
        let (element, bytes) = decode(&out);
        assert_eq!(element.to_vec(), text);
        assert_eq!(
            (bytes, entry_bytes(&out), last_entry_bytes(&out)),
            (out.len(), out.len(), out.len())
        );
        bytes
    }

    #[test]
    fn entries_survive_at_every_width() {
        assert_eq!(round_trip(&[b'x'; 16]), 18);
        for (text, bytes) in [("0", 2), ("127", 2), ("128", 3), ("-1", 3), ("-4096", 3)] {
            assert_eq!(round_trip(text.as_bytes()), bytes, "{text}");
        }
        for shift in 0..64 {
            for value in [1i64 << shift, (1i64 << shift).wrapping_sub(1), (-1i64) << shift] {
                round_trip(value.to_string().as_bytes());
                round_trip(value.wrapping_sub(1).to_string().as_bytes());
            }
        }
        for len in [0, 1, 63, 64, 125, 126, 127, 4095, 4096, 16_377, 16_378, 16_379, 2_097_150] {
            round_trip(&vec![b'y'; len]);
        }
    }

    #[test]
    fn only_canonical_text_is_a_number() {
        for text in ["0", "7", "-7", "9223372036854775807", "-9223372036854775808"] {
            assert_eq!(num::parse_i64(text.as_bytes()), text.parse().ok(), "{text}");
        }
        for text in
            ["", "-", "-0", "00", "+1", "01", " 1", "1 ", "9223372036854775808", "1e3", "0x1"]
        {
            assert_eq!(num::parse_i64(text.as_bytes()), None, "{text}");
        }
        assert_eq!(num::parse_i64(b"-9223372036854775809"), None);
        assert_eq!(num::parse_i64(b"99999999999999999999"), None);
    }
}
