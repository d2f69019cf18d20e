//! LZF, the compression of strings in dumps and RDB files.
//!
//! A byte below 32 is followed by that many bytes and one more, as they are. Any other begins a
//! copy of what was written before: its upper three bits are the length less two (seven means that
//! another byte adds to it), its lower five and one more byte the distance less one.

/// Bytes that a copy reaches back at most.
const DISTANCE_MAX: usize = 1 << 13;
/// The longest copy: seven, another byte's worth, and two.
const COPY_MAX: usize = 7 + 255 + 2;
/// The shortest that takes less room than what it stands for.
const COPY_MIN: usize = 3;
const LITERALS_MAX: usize = 32;
/// Positions that are remembered, by a hash of the three bytes there: no more than there are.
const TABLE_BITS_MIN: u32 = 6;
const TABLE_BITS_MAX: u32 = 13;

/// After so many bytes without a copy every other position is looked at, after as many more every
/// third, and so on: what can't be compressed is soon known.
const LITERALS_PER_SKIP: usize = 16;
const SKIP_MAX: usize = 15;
/// Room that is asked for before it is known how much there will be.
const ROOM_BYTES_MAX: usize = 4096;

/// Compresses bytes so that they take at most `len_max`; `None` if they don't.
pub fn compress(bytes: &[u8], len_max: usize) -> Option<Vec<u8>> {
    Compressor::default().compress(bytes, len_max).map(<[u8]>::to_vec)
}

/// Compresses one text after the other, with room of its own, which is neither allocated nor
/// cleared for each: most are short.
#[derive(Clone, Debug, Default)]
pub struct Compressor {
    /// Where three bytes of this hash were last seen, one more than that, counted on from text to
    /// text.
    table: Vec<u32>,
    /// Where the text begins: what is not beyond it is of those before.
    start: u32,
    out: Vec<u8>,
}

impl Compressor {
    /// As [`compress`]. The bytes are there until the next call.
    pub fn compress(&mut self, bytes: &[u8], len_max: usize) -> Option<&[u8]> {
        let len = u32::try_from(bytes.len()).ok()?;
        let Some(next_start) = self.start.checked_add(len) else {
            self.table.fill(0);
            self.start = 0;
            return self.compress(bytes, len_max);
        };
        let bits = (bytes.len().max(1).ilog2() + 1).clamp(TABLE_BITS_MIN, TABLE_BITS_MAX);
        if self.table.len() < 1 << bits {
            self.table.resize(1 << bits, 0);
        }
        let (table, start, out) = (&mut self.table, self.start, &mut self.out);
        self.start = next_start;
        out.clear();
        out.reserve(bytes.len().min(ROOM_BYTES_MAX));
        let (mut at, mut literals) = (0, 0);
        while let Some(word) = word_at(bytes, at) {
            let slot = &mut table[(word.wrapping_mul(0x9e37_79b1) >> (32 - bits)) as usize];
            let before = slot.checked_sub(start + 1).map(|before| before as usize);
            *slot = start + 1 + at as u32;
            let copied = match before {
                Some(before) if at - before <= DISTANCE_MAX => same_bytes(bytes, before, at),
                _ => 0,
            };
            if copied < COPY_MIN {
                at += 1 + ((at - literals) / LITERALS_PER_SKIP).min(SKIP_MAX);
                continue;
            }
            put_literals(out, &bytes[literals..at]);
            put_copy(out, at - before.unwrap_or(0) - 1, copied - 2);
            at += copied;
            literals = at;
            if out.len() > len_max {
                return None;
            }
        }
        if out.len() + (bytes.len() - literals) > len_max {
            return None;
        }
        put_literals(out, &bytes[literals..]);
        (out.len() <= len_max).then_some(out)
    }
}

/// The three bytes at a position.
#[inline]
fn word_at(bytes: &[u8], at: usize) -> Option<u32> {
    match bytes.get(at..at + 4) {
        Some(&[a, b, c, _]) => Some(u32::from_le_bytes([a, b, c, 0])),
        _ => match bytes.get(at..)? {
            &[a, b, c] => Some(u32::from_le_bytes([a, b, c, 0])),
            _ => None,
        },
    }
}

/// How many bytes at two positions are the same.
fn same_bytes(bytes: &[u8], one: usize, other: usize) -> usize {
    let pairs = bytes[one..].iter().zip(&bytes[other..]);
    pairs.take(COPY_MAX).take_while(|(one, other)| one == other).count()
}

fn put_literals(out: &mut Vec<u8>, literals: &[u8]) {
    for run in literals.chunks(LITERALS_MAX) {
        out.push((run.len() - 1) as u8);
        out.extend_from_slice(run);
    }
}

/// `distance` is one less than it is, `len` two less.
fn put_copy(out: &mut Vec<u8>, distance: usize, len: usize) {
    let high = (distance >> 8) as u8;
    if len < 7 {
        out.push((len as u8) << 5 | high);
    } else {
        out.extend_from_slice(&[7 << 5 | high, (len - 7) as u8]);
    }
    out.push(distance as u8);
}

/// The bytes that `packed` stands for, which must be exactly `len`.
pub fn decompress(packed: &[u8], len: usize) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    decompress_into(packed, len, &mut out).then_some(out)
}

/// As [`decompress`], in place of what is in `out`; false if it can't be done.
pub fn decompress_into(packed: &[u8], len: usize, out: &mut Vec<u8>) -> bool {
    out.clear();
    // What a broken length asks for is bounded by what the input can make of it.
    out.reserve(len.min(packed.len().saturating_mul(COPY_MAX)));
    let mut rest = packed;
    while !rest.is_empty() {
        let Some(after) = step(rest, out) else { return false };
        rest = after;
        if out.len() > len {
            return false;
        }
    }
    out.len() == len
}

/// Does what the next byte says, and gives what comes after it.
fn step<'p>(packed: &'p [u8], out: &mut Vec<u8>) -> Option<&'p [u8]> {
    let (&control, rest) = packed.split_first()?;
    if control < 32 {
        let (literals, rest) = rest.split_at_checked(usize::from(control) + 1)?;
        out.extend_from_slice(literals);
        return Some(rest);
    }
    let (more, rest) = if control >> 5 == 7 { rest.split_first()? } else { (&0, rest) };
    let (low, rest) = rest.split_first()?;
    let mut left = usize::from(control >> 5) + usize::from(*more) + 2;
    let distance = usize::from(control & 31) << 8 | usize::from(*low);
    let start = out.len().checked_sub(distance + 1)?;
    // The copy may reach into what it writes, which repeats what lies between.
    while left > 0 {
        let copied = left.min(out.len() - start);
        out.extend_from_within(start..start + copied);
        left -= copied;
    }
    Some(rest)
}

#[cfg(test)]
mod tests {
    use super::{Compressor, compress, decompress};

    #[test]
    fn what_was_compressed_comes_back() {
        let mut state = 1u32;
        let mut noise = |len: usize, letters: u32| -> Vec<u8> {
            let mut next = || {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                ((state >> 16) % letters) as u8
            };
            (0..len).map(|_| next()).collect()
        };
        let mut texts: Vec<Vec<u8>> = (0..70).map(|len| vec![b'x'; len]).collect();
        texts.extend([264, 265, 8191, 8192, 8193, 100_000].map(|len| vec![7; len]));
        texts.extend((1..40).map(|len| noise(len * 517, 2 + len as u32 % 5)));
        let far = noise(8200, 200);
        texts.push([far.clone(), far].concat());
        for text in &texts {
            if let Some(packed) = compress(text, text.len()) {
                assert_eq!(decompress(&packed, text.len()).as_ref(), Some(text));
            }
        }
        // What one text leaves behind is not found by the next, nor where the counting starts anew.
        let mut compressor = Compressor { start: u32::MAX - 1000, ..Compressor::default() };
        for text in texts.iter().chain(&texts) {
            if let Some(packed) = compressor.compress(text, text.len()) {
                assert_eq!(decompress(packed, text.len()).as_ref(), Some(text));
            }
        }
        assert!(compress(&vec![7; 100_000], 2000).is_some());
        assert_eq!(compress(&noise(1000, 256), 990), None);
        assert_eq!(compress(b"", 0), Some(Vec::new()));
    }

    #[test]
    fn literals_and_copies() {
        assert_eq!(decompress(&[2, b'a', b'b', b'c'], 3).unwrap(), b"abc");
        assert_eq!(decompress(&[0, b'a', 0x60, 0], 6).unwrap(), b"aaaaaa");
        assert_eq!(decompress(&[0, b'a', 0xe0, 10, 0], 20).unwrap(), [b'a'; 20]);
    }

    #[test]
    fn broken_input_is_refused() {
        for packed in [&[5u8, 1][..], &[0x20], &[0x20, 9], &[0xe0], &[0xff, 0xff, 0xff]] {
            assert_eq!(decompress(packed, 5), None, "{packed:?}");
        }
        assert_eq!(decompress(&[0, b'a'], 2), None);
        assert_eq!(decompress(&[1, b'a', b'b'], 1), None);
    }
}
