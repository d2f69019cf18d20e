//! Counting and finding bits in a range, by the rules of BITCOUNT and BITPOS.

use std::ops::Range;

use crate::store::raw::popcount::count_ones;

/// What the bounds of a range count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    Byte,
    Bit,
}

/// `start [end [BYTE|BIT]]`: inclusive, negative from the end of the string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BitSpan {
    pub start: i64,
    pub end: Option<i64>,
    pub unit: Unit,
}

impl BitSpan {
    /// The bits meant in a string of `len` bytes, `None` if there are none.
    fn within(self, len: usize) -> Option<Range<u64>> {
        let bits_per = if self.unit == Unit::Bit { 1 } else { 8 };
        let total = i64::try_from(len).unwrap_or(i64::MAX).saturating_mul(8 / bits_per);
        // COMPAT: an end before the string's start means its first unit, not none; test
        // `ranges_have_redis_corner_cases`.
        let from_end =
            |bound: i64| if bound < 0 { bound.saturating_add(total).max(0) } else { bound };
        let start = from_end(self.start);
        let end = self.end.map_or(total - 1, from_end).min(total - 1);
        (start <= end).then(|| (start * bits_per) as u64..((end + 1) * bits_per) as u64)
    }
}

/// BITCOUNT: the set bits of the whole string or of a span.
pub fn count(bytes: &[u8], span: Option<BitSpan>) -> u64 {
    let Some(span) = span else {
        return count_ones(bytes);
    };
    // COMPAT: a reversed negative range is empty even where clamping would make it one unit.
    if let (start @ ..0, Some(end @ ..0)) = (span.start, span.end)
        && start > end
    {
        return 0;
    }
    let Some(bits) = span.within(bytes.len()) else {
        return 0;
    };
    let edges = Edges::of(bytes, &bits, 0);
    u64::from(edges.first.count_ones() + edges.last.count_ones()) + count_ones(edges.middle)
}

/// BITPOS: the first bit equal to `wanted` in the whole string or in a span. A string that is not
/// there at all is the caller's case.
pub fn position(bytes: &[u8], wanted: bool, span: Option<BitSpan>) -> Option<u64> {
    let span = span.unwrap_or(BitSpan { start: 0, end: None, unit: Unit::Byte });
    let bits = span.within(bytes.len())?;
    // Bits outside the range must not match: they read as the opposite of what is wanted.
    let edges = Edges::of(bytes, &bits, if wanted { 0 } else { 0xff });
    let base = bits.start & !7;
    let middle_base = edges.middle_start as u64 * 8;
    let found = first_in_byte(edges.first, wanted)
        .map(|at| base + at)
        .or_else(|| first_in(edges.middle, wanted).map(|at| middle_base + at))
        .or_else(|| {
            let last_base = middle_base + edges.middle.len() as u64 * 8;
            first_in_byte(edges.last, wanted).map(|at| last_base + at)
        });
    // Without an end, the string counts as followed by zeros.
    found.or_else(|| (!wanted && span.end.is_none()).then_some(bytes.len() as u64 * 8))
}

/// A bit range as a partial byte, whole bytes, and a partial byte.
struct Edges<'a> {
    first: u8,
    middle: &'a [u8],
    middle_start: usize,
    last: u8,
}

impl<'a> Edges<'a> {
    /// The partial bytes have the bits of `outside` where the range does not reach, or entirely if
    /// there is no partial byte. `bits` must lie inside `bytes`.
    fn of(bytes: &'a [u8], bits: &Range<u64>, outside: u8) -> Self {
        let blend = |at: usize, mask: u8| (bytes[at] & mask) | (outside & !mask);
        let after_start = 0xff_u8 >> (bits.start & 7);
        let before_end = !(0xff_u8 >> (bits.end & 7));
        let start_byte = (bits.start >> 3) as usize;
        let end_byte = (bits.end >> 3) as usize;
        if start_byte == end_byte {
            let first = blend(start_byte, after_start & before_end);
            return Edges { first, middle: &[], middle_start: start_byte, last: outside };
        }
        let (first, middle_start) = match bits.start & 7 {
            0 => (outside, start_byte),
            _ => (blend(start_byte, after_start), start_byte + 1),
        };
        let last = if bits.end & 7 == 0 { outside } else { blend(end_byte, before_end) };
        Edges { first, middle: &bytes[middle_start..end_byte], middle_start, last }
    }
}

fn first_in_byte(byte: u8, wanted: bool) -> Option<u64> {
    let byte = if wanted { byte } else { !byte };
    (byte != 0).then(|| u64::from(byte.leading_zeros()))
}

/// The first bit of `bytes` equal to `wanted`. Blocks without one are passed over whole, which the
/// compiler does with wide instructions.
fn first_in(bytes: &[u8], wanted: bool) -> Option<u64> {
    let boring = if wanted { 0 } else { u64::MAX };
    let (blocks, _) = bytes.as_chunks::<256>();
    let passed = blocks.iter().take_while(|block| {
        let (words, _) = block.as_chunks::<8>();
        words.iter().fold(0, |seen, word| seen | (u64::from_ne_bytes(*word) ^ boring)) == 0
    });
    let start = passed.count() * 256;
    let at = bytes[start..].iter().position(|byte| *byte != boring as u8)? + start;
    first_in_byte(bytes[at], wanted).map(|bit| at as u64 * 8 + bit)
}
