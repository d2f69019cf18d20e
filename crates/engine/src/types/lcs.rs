//! LCS: the longest common subsequence of two strings, as text, as length, or as matching ranges.
//!
//! The table of the textbook is kept as one bit per cell (does the length grow from the column
//! before?), a row computed 64 cells at a time. That bit is also all that the walk back needs:
//! where the bytes differ, the length comes from the row above if and only if the cell's bit is
//! set.

/// Most cells of the table times the four bytes that Redis has for each; it is `proto-max-bulk-len`
/// there, which callers may pass instead.
pub const TABLE_BYTES_MAX: u64 = 512 * 1024 * 1024;
/// What a cell counts towards the limit. COMPAT: Redis's cell, not ours; test
/// `refuses_what_redis_refuses`.
const CELL_BYTES: u64 = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LcsError {
    /// "String too long for LCS"
    StringTooLong,
    /// "Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len"
    TableTooLarge,
}

/// The two strings.
#[derive(Clone, Copy)]
pub struct Pair<'a> {
    pub first: &'a [u8],
    pub second: &'a [u8],
}

/// A stretch that both strings have, by where it starts in each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Match {
    pub first_start: usize,
    pub second_start: usize,
    pub len: usize,
}

impl Pair<'_> {
    /// Whether the computation is allowed; `bytes_max` is `proto-max-bulk-len`.
    pub fn check(self, bytes_max: u64) -> Result<(), LcsError> {
        let long = |text: &[u8]| text.len() as u64 >= u64::from(u32::MAX) - 1;
        if long(self.first) || long(self.second) {
            return Err(LcsError::StringTooLong);
        }
        let cells = (self.first.len() as u128 + 1) * (self.second.len() as u128 + 1);
        if cells * u128::from(CELL_BYTES) > u128::from(bytes_max) {
            return Err(LcsError::TableTooLarge);
        }
        Ok(())
    }
}

/// The length of the longest common subsequence.
pub fn length(pair: Pair<'_>, bytes_max: u64) -> Result<usize, LcsError> {
    pair.check(bytes_max)?;
    let masks = Masks::of(pair);
    let mut row = vec![0; masks.words];
    pair.first.iter().for_each(|byte| masks.advance(&mut row, *byte));
    Ok(row.iter().map(|word| word.count_ones() as usize).sum())
}

/// The longest common subsequence itself, the one that Redis chooses.
pub fn text(pair: Pair<'_>, bytes_max: u64) -> Result<Vec<u8>, LcsError> {
    let mut text = Vec::new();
    walk(pair, bytes_max, |at| text.push(pair.first[at.first_start]))?;
    text.reverse();
    Ok(text)
}

/// The ranges that make up the longest common subsequence, last one first, without those shorter
/// than `len_min`, and its length, to which all count.
pub fn matches(
    pair: Pair<'_>,
    len_min: usize,
    bytes_max: u64,
) -> Result<(Vec<Match>, usize), LcsError> {
    let mut found: Vec<Match> = Vec::new();
    let mut total = 0;
    walk(pair, bytes_max, |at| {
        total += 1;
        match found.last_mut() {
            Some(last)
                if last.first_start == at.first_start + 1
                    && last.second_start == at.second_start + 1 =>
            {
                *last = Match { len: last.len + 1, ..at };
            }
            _ => {
                if found.last().is_some_and(|last| last.len < len_min) {
                    found.pop();
                }
                found.push(at);
            }
        }
    })?;
    if found.last().is_some_and(|last| last.len < len_min) {
        found.pop();
    }
    Ok((found, total))
}

/// Shows each matched byte, from the last to the first.
fn walk(pair: Pair<'_>, bytes_max: u64, mut visit: impl FnMut(Match)) -> Result<(), LcsError> {
    pair.check(bytes_max)?;
    let masks = Masks::of(pair);
    let mut table = vec![0; masks.words * (pair.first.len() + 1)];
    for (index, byte) in pair.first.iter().enumerate() {
        let (above, below) = table.split_at_mut((index + 1) * masks.words);
        let row = &mut below[..masks.words];
        row.copy_from_slice(&above[index * masks.words..]);
        masks.advance(row, *byte);
    }
    let (mut i, mut j) = (pair.first.len(), pair.second.len());
    while i > 0 && j > 0 {
        if pair.first[i - 1] == pair.second[j - 1] {
            i -= 1;
            j -= 1;
            visit(Match { first_start: i, second_start: j, len: 1 });
        } else if table[i * masks.words + (j - 1) / 64] >> ((j - 1) % 64) & 1 == 1 {
            i -= 1;
        } else {
            j -= 1;
        }
    }
    Ok(())
}

/// For each byte value that the first string has: where the second string has it, a bit per place.
struct Masks {
    /// Which mask a byte value has; `ABSENT` if the first string lacks it.
    slots: [u16; 256],
    bits: Vec<u64>,
    words: usize,
}

const ABSENT: u16 = u16::MAX;

impl Masks {
    fn of(pair: Pair<'_>) -> Self {
        let mut slots = [ABSENT; 256];
        let mut used = 0u16;
        for byte in pair.first {
            let slot = &mut slots[usize::from(*byte)];
            if *slot == ABSENT {
                *slot = used;
                used += 1;
            }
        }
        let words = pair.second.len().div_ceil(64);
        let mut bits = vec![0; words * usize::from(used)];
        for (at, byte) in pair.second.iter().enumerate() {
            let slot = slots[usize::from(*byte)];
            if slot != ABSENT {
                bits[usize::from(slot) * words + at / 64] |= 1 << (at % 64);
            }
        }
        Masks { slots, bits, words }
    }

    /// Turns the row of the table above `byte` into the row of `byte`. A set bit is a column where
    /// the length grows. Between two growths, the new row grows at the first place where the second
    /// string has `byte`, or else where the old row did: that is what a subtraction's borrow finds.
    fn advance(&self, row: &mut [u64], byte: u8) {
        let start = usize::from(self.slots[usize::from(byte)]) * self.words;
        let mask = &self.bits[start..start + self.words];
        let mut borrow = false;
        let mut carry = 1;
        for (row, mask) in row.iter_mut().zip(mask) {
            let either = *row | mask;
            let shifted = *row << 1 | carry;
            carry = *row >> 63;
            let (less, first) = either.overflowing_sub(shifted);
            let (less, second) = less.overflowing_sub(u64::from(borrow));
            borrow = first || second;
            *row = either & !less;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The textbook's table and the walk back over it.
    fn naive(pair: Pair<'_>) -> (Vec<Match>, usize) {
        let (a, b) = (pair.first, pair.second);
        let mut table = vec![vec![0usize; b.len() + 1]; a.len() + 1];
        for i in 1..=a.len() {
            for j in 1..=b.len() {
                table[i][j] = if a[i - 1] == b[j - 1] {
                    table[i - 1][j - 1] + 1
                } else {
                    table[i - 1][j].max(table[i][j - 1])
                };
            }
        }
        let mut found: Vec<Match> = Vec::new();
        let (mut i, mut j, mut open) = (a.len(), b.len(), false);
        while i > 0 && j > 0 {
            if a[i - 1] == b[j - 1] {
                i -= 1;
                j -= 1;
                let len = if open { found.pop().map_or(1, |last| last.len + 1) } else { 1 };
                found.push(Match { first_start: i, second_start: j, len });
                open = true;
            } else {
                open = false;
                if table[i - 1][j] > table[i][j - 1] { i -= 1 } else { j -= 1 }
            }
        }
        (found, table[a.len()][b.len()])
    }

    #[test]
    fn agrees_with_the_textbook() {
        let mut state = 12_345u64;
        let mut roll = |sides: u64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state % sides
        };
        for _ in 0..400 {
            let letters = 1 + roll(5);
            let mut string = || {
                let len = roll(200);
                (0..len).map(|_| b'a' + roll(letters) as u8).collect::<Vec<u8>>()
            };
            let (first, second) = (string(), string());
            let pair = Pair { first: &first, second: &second };
            let (expected, total) = naive(pair);
            assert_eq!(length(pair, TABLE_BYTES_MAX), Ok(total));
            assert_eq!(matches(pair, 0, TABLE_BYTES_MAX), Ok((expected.clone(), total)));
            let long: Vec<Match> =
                expected.iter().filter(|found| found.len >= 3).copied().collect();
            assert_eq!(matches(pair, 3, TABLE_BYTES_MAX), Ok((long, total)));
            let text = text(pair, TABLE_BYTES_MAX).unwrap();
            let parts = expected
                .iter()
                .rev()
                .map(|found| &first[found.first_start..found.first_start + found.len]);
            assert_eq!(text, parts.collect::<Vec<_>>().concat());
        }
    }

    #[test]
    fn gives_the_example_of_the_documentation() {
        let pair = Pair { first: b"ohmytext", second: b"mynewtext" };
        assert_eq!(text(pair, TABLE_BYTES_MAX).unwrap(), b"mytext");
        let expected = vec![
            Match { first_start: 4, second_start: 5, len: 4 },
            Match { first_start: 2, second_start: 0, len: 2 },
        ];
        assert_eq!(matches(pair, 0, TABLE_BYTES_MAX), Ok((expected, 6)));
        let nothing = Pair { first: b"", second: b"abc" };
        assert_eq!(text(nothing, TABLE_BYTES_MAX).unwrap(), b"");
        assert_eq!(matches(nothing, 0, TABLE_BYTES_MAX), Ok((vec![], 0)));
    }

    #[test]
    fn refuses_what_redis_refuses() {
        let (first, second) = (vec![b'a'; 99], vec![b'b'; 99]);
        let pair = Pair { first: &first, second: &second };
        assert_eq!(length(pair, 40_000), Ok(0));
        assert_eq!(length(pair, 39_999), Err(LcsError::TableTooLarge));
        assert_eq!(text(pair, 39_999), Err(LcsError::TableTooLarge));
    }
}
