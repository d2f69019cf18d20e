//! Redis's ziplist, which listpacks have replaced: elements one behind the other, each with the
//! length of the one before it.
//!
//! | bytes | what |
//! |---|---|
//! | 0..4 | how many bytes it has, little-endian |
//! | 4..8 | where the last element begins |
//! | 8..10 | how many elements; 65535 if they are to be counted |
//! | 10.. | for each: the length of the one before (one byte, or 0xfe and four), head, payload |
//! | last | 0xff |

use super::error::Malformed;
use russet_engine::types::element::Element;

const HEADER_BYTES: usize = 10;
const END: u8 = 0xff;
const LONG_PREVIOUS: u8 = 0xfe;
const UNCOUNTED: u16 = u16::MAX;

/// The elements of a ziplist, each checked before it is shown. Its frame has been.
pub struct Ziplist<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Where the end mark is.
    end: usize,
    previous_bytes: usize,
    last_at: usize,
    left: Option<u16>,
}

impl<'a> Ziplist<'a> {
    pub fn new(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let [a, b, c, d, e, f, g, h, low, high, .., END] = bytes else {
            return Err(Malformed("a ziplist without header or end"));
        };
        if u32::from_le_bytes([*a, *b, *c, *d]) as usize != bytes.len() {
            return Err(Malformed("a ziplist of another length than it says"));
        }
        let count = u16::from_le_bytes([*low, *high]);
        Ok(Ziplist {
            bytes,
            at: HEADER_BYTES,
            end: bytes.len() - 1,
            previous_bytes: 0,
            last_at: u32::from_le_bytes([*e, *f, *g, *h]) as usize,
            left: (count != UNCOUNTED).then_some(count),
        })
    }

    fn take(&mut self) -> Result<Element<'a>, Malformed> {
        const CUT: Malformed = Malformed("an element of a ziplist is cut off");
        let run = &self.bytes[self.at..self.end];
        let (previous, head) = match run {
            [LONG_PREVIOUS, a, b, c, d, head @ ..] => {
                (u32::from_le_bytes([*a, *b, *c, *d]) as usize, head)
            }
            [END | LONG_PREVIOUS, ..] | [] => return Err(CUT),
            [short, head @ ..] => (usize::from(*short), head),
        };
        if previous != self.previous_bytes {
            return Err(Malformed("an element of a ziplist has a wrong length before it"));
        }
        let (element, rest) = decode(head).ok_or(CUT)?;
        match &mut self.left {
            Some(0) => return Err(Malformed("a ziplist has more elements than it says")),
            Some(left) => *left -= 1,
            None => {}
        }
        let next = self.end - rest.len();
        if next == self.end && self.at != self.last_at {
            return Err(Malformed("the last element of a ziplist is not where it says"));
        }
        self.previous_bytes = next - self.at;
        self.at = next;
        Ok(element)
    }

    /// The next element; an error if there is none.
    pub fn expect(&mut self) -> Result<Element<'a>, Malformed> {
        self.next().unwrap_or(Err(Malformed("a ziplist ends too early")))
    }
}

impl<'a> Iterator for Ziplist<'a> {
    type Item = Result<Element<'a>, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.at == self.end {
            let missing = self.left.is_some_and(|left| left > 0);
            self.left = None;
            return missing.then_some(Err(Malformed("a ziplist has fewer elements than it says")));
        }
        let element = self.take();
        if element.is_err() {
            (self.at, self.left) = (self.end, None);
        }
        Some(element)
    }
}

/// The element that starts `run`, and what follows it.
fn decode(run: &[u8]) -> Option<(Element<'_>, &[u8])> {
    let (&tag, rest) = run.split_first()?;
    if tag < 0xc0 {
        let (len, rest) = match tag >> 6 {
            0 => (usize::from(tag), rest),
            1 => {
                let (&low, rest) = rest.split_first()?;
                (usize::from(u16::from_be_bytes([tag & 0x3f, low])), rest)
            }
            _ => {
                let (len, rest) = rest.split_first_chunk()?;
                // The other bits of the tag mean nothing, and are never set.
                ((tag == 0x80).then_some(u32::from_be_bytes(*len) as usize)?, rest)
            }
        };
        let (text, rest) = rest.split_at_checked(len)?;
        // Digits that were kept as text are the number all the same.
        return Some((Element::parse(text), rest));
    }
    let bytes = match tag {
        0xc0 => 2,
        0xd0 => 4,
        0xe0 => 8,
        0xf0 => 3,
        0xfe => 1,
        0xf1..=0xfd => return Some((Element::Int(i64::from(tag & 0x0f) - 1), rest)),
        _ => return None,
    };
    let (number, rest) = rest.split_at_checked(bytes)?;
    let mut wide = [0; 8];
    wide[8 - bytes..].copy_from_slice(number);
    Some((Element::Int(i64::from_le_bytes(wide) >> (64 - 8 * bytes)), rest))
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// A ziplist of these texts, as Redis up to 6.2 made it.
    pub fn packed(texts: &[&[u8]]) -> Vec<u8> {
        let mut out = vec![0; HEADER_BYTES];
        let (mut previous, mut last_at) = (0usize, HEADER_BYTES);
        for text in texts {
            last_at = out.len();
            match previous {
                0..254 => out.push(previous as u8),
                _ => {
                    out.push(LONG_PREVIOUS);
                    out.extend_from_slice(&(previous as u32).to_le_bytes());
                }
            }
            put(&mut out, Element::parse(text));
            previous = out.len() - last_at;
        }
        out.push(END);
        let len = out.len() as u32;
        out[..4].copy_from_slice(&len.to_le_bytes());
        out[4..8].copy_from_slice(&(last_at as u32).to_le_bytes());
        out[8..10].copy_from_slice(&(texts.len() as u16).to_le_bytes());
        out
    }

    fn put(out: &mut Vec<u8>, element: Element<'_>) {
        match element {
            Element::Bytes(text) => {
                match text.len() {
                    len @ 0..64 => out.push(len as u8),
                    len @ 64..16_384 => {
                        out.extend_from_slice(&(0x4000 | len as u16).to_be_bytes());
                    }
                    len => {
                        out.push(0x80);
                        out.extend_from_slice(&(len as u32).to_be_bytes());
                    }
                }
                out.extend_from_slice(text);
            }
            Element::Int(value) => {
                let (tag, bytes) = match value {
                    0..=12 => (0xf1 + value as u8, 0),
                    -0x80..=0x7f => (0xfe, 1),
                    -0x8000..=0x7fff => (0xc0, 2),
                    -0x80_0000..=0x7f_ffff => (0xf0, 3),
                    -0x8000_0000..=0x7fff_ffff => (0xd0, 4),
                    _ => (0xe0, 8),
                };
                out.push(tag);
                out.extend_from_slice(&value.to_le_bytes()[..bytes]);
            }
        }
    }

    fn read(bytes: &[u8]) -> Result<Vec<Vec<u8>>, Malformed> {
        Ziplist::new(bytes)?.map(|element| element.map(Element::to_vec)).collect()
    }

    #[test]
    fn elements_of_every_form() {
        let long = [vec![b'a'; 63], vec![b'b'; 64], vec![b'c'; 300], vec![b'd'; 20_000]];
        let mut texts: Vec<&[u8]> = vec![b"", b"x", b"0", b"12", b"13", b"-1", b"-128", b"1000"];
        texts.extend([&b"-40000"[..], b"9000000", b"-8000000000", b"text"]);
        texts.extend(long.iter().map(Vec::as_slice));
        assert_eq!(read(&packed(&texts)).unwrap(), texts);
        assert!(read(&packed(&[])).unwrap().is_empty());
    }

    #[test]
    fn changed_bytes_are_noticed_or_harmless() {
        let long = vec![b'y'; 260];
        let texts: [&[u8]; 5] = [b"abc", b"7", &long, b"100000", b"z"];
        let bytes = packed(&texts);
        for at in 0..bytes.len() {
            for bit in 0..8 {
                let mut changed = bytes.clone();
                changed[at] ^= 1 << bit;
                if let Ok(found) = read(&changed) {
                    assert_eq!(found.len(), texts.len());
                }
            }
            read(&bytes[..at]).unwrap_err();
        }
    }
}
