//! Redis's listpack: elements one behind the other, each with its length once more behind it.
//!
//! | bytes | what |
//! |---|---|
//! | 0..4 | how many bytes it has, little-endian |
//! | 4..6 | how many elements; 65535 if they are to be counted |
//! | 6.. | elements in the form of the engine's `element.rs`, each followed by the length of that |
//! | last | 0xff |

use super::error::Malformed;
use russet_engine::types::element::{self, Element, Stored};

const HEADER_BYTES: usize = 6;
const END: u8 = 0xff;
/// The count of a listpack whose elements are to be counted.
const UNCOUNTED: u16 = u16::MAX;

/// The elements of a listpack, each checked before it is shown. Its frame has been.
pub struct Listpack<'a> {
    rest: &'a [u8],
    /// How many are to come, if that was said.
    left: Option<u16>,
}

impl<'a> Listpack<'a> {
    pub fn new(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let [a, b, c, d, low, high, run @ .., END] = bytes else {
            return Err(Malformed("a listpack without header or end"));
        };
        if u32::from_le_bytes([*a, *b, *c, *d]) as usize != bytes.len() {
            return Err(Malformed("a listpack of another length than it says"));
        }
        let count = u16::from_le_bytes([*low, *high]);
        Ok(Listpack { rest: run, left: (count != UNCOUNTED).then_some(count) })
    }

    fn take(&mut self) -> Result<Element<'a>, Malformed> {
        let (element, stored) = element::decode_checked(self.rest)
            .ok_or(Malformed("an element of a listpack is cut off"))?;
        let groups = back_bytes(stored);
        let back = self.rest.get(stored..stored + groups);
        if !back.is_some_and(|back| is_back_length(back, stored)) {
            return Err(Malformed("an element of a listpack has a wrong length behind it"));
        }
        match &mut self.left {
            Some(0) => return Err(Malformed("a listpack has more elements than it says")),
            Some(left) => *left -= 1,
            None => {}
        }
        self.rest = &self.rest[stored + groups..];
        Ok(match element {
            // Digits that were kept as text are the number all the same.
            Element::Bytes(text) => Element::parse(text),
            element => element,
        })
    }

    /// The next element; an error if there is none.
    pub fn expect(&mut self) -> Result<Element<'a>, Malformed> {
        self.next().unwrap_or(Err(Malformed("a listpack ends too early")))
    }

    /// The next element, which is a number.
    pub fn expect_int(&mut self) -> Result<i64, Malformed> {
        match self.expect()? {
            Element::Int(value) => Ok(value),
            Element::Bytes(_) => Err(Malformed("text where a number is due")),
        }
    }
}

impl<'a> Iterator for Listpack<'a> {
    type Item = Result<Element<'a>, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            let missing = self.left.is_some_and(|left| left > 0);
            self.left = None;
            return missing.then_some(Err(Malformed("a listpack has fewer elements than it says")));
        }
        let element = self.take();
        if element.is_err() {
            (self.rest, self.left) = (&[], None);
        }
        Some(element)
    }
}

/// Bytes of the length behind an element. The longest that would fit takes a byte more.
fn back_bytes(len: usize) -> usize {
    match len {
        0..128 => 1,
        128..16_383 => 2,
        16_383..2_097_151 => 3,
        2_097_151..268_435_455 => 4,
        _ => 5,
    }
}

/// Groups of seven bits, the lowest last; all but the first have their high bit set.
fn is_back_length(back: &[u8], len: usize) -> bool {
    let mut value = 0;
    for (at, byte) in back.iter().enumerate() {
        if (at > 0) != (byte & 0x80 != 0) {
            return false;
        }
        value = value << 7 | usize::from(byte & 0x7f);
    }
    value == len
}

/// A listpack that is written.
pub struct ListpackWriter {
    bytes: Vec<u8>,
    count: usize,
}

impl Default for ListpackWriter {
    fn default() -> Self {
        ListpackWriter { bytes: vec![0; HEADER_BYTES], count: 0 }
    }
}

impl ListpackWriter {
    pub fn new() -> Self {
        Self::default()
    }

    /// Bytes so far, the end not included.
    pub fn bytes_len(&self) -> usize {
        self.bytes.len()
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub fn push(&mut self, element: Element<'_>) {
        let stored = Stored::new(element);
        stored.pieces().iter().for_each(|piece| self.bytes.extend_from_slice(piece));
        let len = stored.bytes();
        let groups = back_bytes(len);
        for at in (0..groups).rev() {
            let high = if at + 1 < groups { 0x80 } else { 0 };
            // The first group is the highest.
            self.bytes.push((len >> (7 * at)) as u8 & 0x7f | high);
        }
        self.count += 1;
    }

    pub fn push_int(&mut self, value: i64) {
        self.push(Element::Int(value));
    }

    /// The listpack; the writer begins another.
    pub fn finish(&mut self) -> Vec<u8> {
        let mut bytes = std::mem::take(self).bytes_with_count();
        bytes.push(END);
        let len = u32::try_from(bytes.len()).expect("what is packed is far below 4 GiB");
        bytes[..4].copy_from_slice(&len.to_le_bytes());
        bytes
    }

    fn bytes_with_count(mut self) -> Vec<u8> {
        let count = u16::try_from(self.count).unwrap_or(UNCOUNTED);
        self.bytes[4..HEADER_BYTES].copy_from_slice(&count.to_le_bytes());
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts() -> Vec<Vec<u8>> {
        let numbers = [0i64, 127, 128, -1, 4095, -4097, 40_000, -9_000_000, 1 << 40, i64::MIN];
        let lengths = [0, 1, 63, 64, 126, 127, 4095, 4096, 20_000, 3_000_000];
        let numbers = numbers.map(|number| number.to_string().into_bytes());
        numbers.into_iter().chain(lengths.map(|len| vec![b'q'; len])).collect()
    }

    fn packed(texts: &[Vec<u8>]) -> Vec<u8> {
        let mut writer = ListpackWriter::new();
        texts.iter().for_each(|text| writer.push(Element::parse(text)));
        writer.finish()
    }

    fn read(bytes: &[u8]) -> Result<Vec<Vec<u8>>, Malformed> {
        Listpack::new(bytes)?.map(|element| element.map(Element::to_vec)).collect()
    }

    #[test]
    fn what_was_packed_comes_out() {
        assert_eq!(read(&packed(&texts())).unwrap(), texts());
        assert_eq!(read(&packed(&[])).unwrap(), Vec::<Vec<u8>>::new());
        let many = vec![b"x".to_vec(); 70_000];
        assert_eq!(read(&packed(&many)).unwrap(), many);
    }

    /// One that a real server wrote: DUMP of a list of "a" and 1024.
    #[test]
    fn a_listpack_of_a_real_server() {
        let bytes = [13, 0, 0, 0, 2, 0, 0x81, b'a', 2, 0xc4, 0, 2, 0xff];
        assert_eq!(read(&bytes).unwrap(), [b"a".to_vec(), b"1024".to_vec()]);
        assert_eq!(packed(&[b"a".to_vec(), b"1024".to_vec()]), bytes);
    }

    /// No byte of a listpack can be changed so that reading panics; most changes are noticed.
    #[test]
    fn changed_bytes_are_noticed_or_harmless() {
        let few = [b"abc".to_vec(), b"77".to_vec(), vec![b'x'; 70], b"100000".to_vec()];
        let bytes = packed(&few);
        for at in 0..bytes.len() {
            for bit in 0..8 {
                let mut changed = bytes.clone();
                changed[at] ^= 1 << bit;
                if let Ok(found) = read(&changed) {
                    assert_eq!(found.len(), few.len());
                }
            }
            read(&bytes[..at]).unwrap_err();
        }
    }
}
