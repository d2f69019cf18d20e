//! The entry of a list: an element's stored form and its length once more, so that a run of entries
//! can be walked from either end. It is the entry of Redis's listpack byte for byte, so that a run
//! goes into an RDB file, and comes out of one, as it is, and so that its size is the size Redis
//! compares with `list-max-listpack-size`.
//!
//! The length is in 7-bit groups, lowest group last; every byte but the first has its high bit set.

use crate::types::element::{self, Element, Stored};

/// An element encoded, in up to three pieces so that the payload is not copied to build it.
pub struct Entry<'a> {
    stored: Stored<'a>,
    back_len: u8,
    back: [u8; 5],
}

impl<'a> Entry<'a> {
    #[inline]
    pub fn new(element: Element<'a>) -> Self {
        let stored = Stored::new(element);
        let length = stored.bytes();
        let mut entry = Entry { stored, back_len: 1, back: [length as u8, 0, 0, 0, 0] };
        if length >= 128 {
            entry.set_back(length);
        }
        entry
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
        self.stored.bytes() + usize::from(self.back_len)
    }

    pub fn pieces(&self) -> [&[u8]; 3] {
        let [head, payload] = self.stored.pieces();
        [head, payload, &self.back[..usize::from(self.back_len)]]
    }

    /// Writes the entry over all of `out`, which must be `bytes()` long.
    #[inline]
    pub fn write(&self, out: &mut [u8]) {
        let (stored, back) = out.split_at_mut(out.len() - usize::from(self.back_len));
        self.stored.write(stored);
        match back {
            [only] => *only = self.back[0],
            _ => back.copy_from_slice(&self.back[..usize::from(self.back_len)]),
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

/// Bytes of the entry that starts `run`.
#[inline]
pub fn entry_bytes(run: &[u8]) -> usize {
    let stored = element::stored_bytes(run);
    stored + back_bytes(stored)
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
    let (element, stored) = element::decode(run);
    (element, stored + back_bytes(stored))
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
}
