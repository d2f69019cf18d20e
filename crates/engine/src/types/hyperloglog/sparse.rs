//! The sparse layout: the registers in order, as runs of equal ones. Three opcodes:
//!
//! | bits | meaning |
//! |---|---|
//! | `00llllll` | `l + 1` registers are zero |
//! | `01llllll llllllll` | the same with 14 bits of length |
//! | `1vvvvvll` | `l + 1` registers, 1 to 4, hold `v + 1`, 1 to 32 |

use super::hash::Mark;
use super::header::HEADER_BYTES;
use super::registers::Registers;
use super::{DENSE_REGISTER_BYTES, Fault, REGISTERS, dense};
use crate::types::blob::Blob;

/// Highest register that an opcode can hold.
const VALUE_MAX: u8 = 32;
/// Most registers that one opcode with a value covers.
const VALUE_RUN_MAX: u16 = 4;
/// Most zeros of the short opcode.
const SHORT_ZEROS_MAX: u16 = 64;
const LONG_ZEROS: u8 = 0x40;
const VALUE: u8 = 0x80;

/// Bytes that one change can reach: the opcode before, what replaces the changed one (5 at most),
/// and those that merging may look at behind it.
const WINDOW_BYTES: usize = 24;
/// COMPAT: merging looks at this many opcodes, a merge counted as one; more would make other bytes
/// than the peers' (test `hyperloglog/pfadd.wire`).
const MERGE_STEPS: usize = 5;

/// Equal registers, as one opcode says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// What each of them holds; 0 for zeros.
    pub value: u8,
    pub len: u16,
    /// Bytes of the opcode.
    size: u8,
}

impl Run {
    /// The run that begins at `at`; none if there are no bytes left for it.
    #[inline]
    fn at(bytes: &[u8], at: usize) -> Option<Run> {
        let opcode = *bytes.get(at)?;
        Some(if opcode & VALUE != 0 {
            Run { value: (opcode >> 2 & 0x1f) + 1, len: u16::from(opcode & 3) + 1, size: 1 }
        } else if opcode & LONG_ZEROS != 0 {
            let low = *bytes.get(at + 1)?;
            Run { value: 0, len: u16::from_be_bytes([opcode & 0x3f, low]) + 1, size: 2 }
        } else {
            Run { value: 0, len: u16::from(opcode) + 1, size: 1 }
        })
    }

    pub fn is_long_zeros(self) -> bool {
        self.size == 2
    }
}

/// The runs of a sparse value's registers, header left out; an error for an opcode that is cut off.
pub fn runs(registers: &[u8]) -> impl Iterator<Item = Result<Run, Fault>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        if at >= registers.len() {
            return None;
        }
        let run = Run::at(registers, at).ok_or(Fault::Corrupt);
        at += run.map_or(registers.len(), |run| usize::from(run.size));
        Some(run)
    })
}

/// No element yet: one run of zeros.
pub(super) fn empty_registers() -> [u8; 2] {
    let [high, low] = (REGISTERS as u16 - 1).to_be_bytes();
    [high | LONG_ZEROS, low]
}

/// Registers that follow each other and hold the same, which is not zero.
#[derive(Clone, Copy)]
pub(super) struct Span {
    pub first: usize,
    pub len: usize,
    pub value: u8,
}

/// Who looks at spans. What it does is compiled into the walk.
pub(super) trait Visitor {
    fn see(&mut self, span: Span);
}

impl<F: FnMut(Span)> Visitor for F {
    #[inline(always)]
    fn see(&mut self, span: Span) {
        self(span);
    }
}

/// A walk through the opcodes. Its work is bounded by the registers, however long the bytes are.
struct Walk<'a> {
    bytes: &'a [u8],
    at: usize,
    /// The register that the next opcode begins at; past the last one if they are too many.
    first: usize,
}

impl<'a> Walk<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        Walk { bytes, at: 0, first: 0 }
    }

    /// Whether [`Walk::step`] has all that it may read.
    #[inline(always)]
    fn is_far_from_end(&self) -> bool {
        self.at + 2 < self.bytes.len() && self.first < REGISTERS
    }

    /// Zeros if there are some, then a value if there is one: most steps are both. The two opcodes
    /// for zeros are told apart without a branch, which would often be foreseen wrongly.
    #[inline(always)]
    fn step(&mut self, visitor: &mut impl Visitor) {
        let opcode = self.bytes[self.at];
        if opcode & VALUE == 0 {
            let is_long = opcode & LONG_ZEROS != 0;
            let long = u16::from_be_bytes([opcode & 0x3f, self.bytes[self.at + 1]]);
            self.first += usize::from(if is_long { long } else { u16::from(opcode) }) + 1;
            self.at += 1 + usize::from(is_long);
        }
        let opcode = self.bytes[self.at];
        if opcode & VALUE != 0 {
            self.value(opcode, visitor);
        }
    }

    #[inline(always)]
    fn value(&mut self, opcode: u8, visitor: &mut impl Visitor) {
        let (value, len) = ((opcode >> 2 & 0x1f) + 1, usize::from(opcode & 3) + 1);
        if self.first + len <= REGISTERS {
            visitor.see(Span { first: self.first, len, value });
        }
        (self.first, self.at) = (self.first + len, self.at + 1);
    }

    /// Goes on to the end; an error unless the opcodes cover exactly all the registers.
    #[inline(always)]
    fn finish(mut self, visitor: &mut impl Visitor) -> Result<(), Fault> {
        while self.is_far_from_end() {
            self.step(visitor);
        }
        while self.first <= REGISTERS
            && let Some(&opcode) = self.bytes.get(self.at)
        {
            if opcode & VALUE != 0 {
                self.value(opcode, visitor);
                continue;
            }
            let run = Run::at(self.bytes, self.at).ok_or(Fault::Corrupt)?;
            self.first += usize::from(run.len);
            self.at += usize::from(run.size);
        }
        if self.first == REGISTERS { Ok(()) } else { Err(Fault::Corrupt) }
    }
}

/// Gives the registers that are not zero, span by span, of all these values; an error unless the
/// opcodes of each cover exactly all the registers.
#[inline]
pub(super) fn walk(values: &[&[u8]], mut visitor: impl Visitor) -> Result<(), Fault> {
    let (pairs, last) = values.as_chunks::<2>();
    for pair in pairs {
        let [mut one, mut other] = pair.map(Walk::new);
        // Each step waits for the one before it, but not for those of the other value.
        while one.is_far_from_end() && other.is_far_from_end() {
            one.step(&mut visitor);
            other.step(&mut visitor);
        }
        one.finish(&mut visitor)?;
        other.finish(&mut visitor)?;
    }
    last.iter().try_for_each(|value| Walk::new(value).finish(&mut visitor))
}

struct Raise<'a>(&'a mut Registers);

impl Visitor for Raise<'_> {
    #[inline(always)]
    fn see(&mut self, Span { first, len, value }: Span) {
        // Most spans are of one register.
        let register = &mut self.0.0[first];
        *register = value.max(*register);
        if len > 1 {
            let rest = &mut self.0.0[first + 1..first + len];
            rest.iter_mut().for_each(|register| *register = value.max(*register));
        }
    }
}

/// Raises registers to those of sparse values.
pub(super) fn merge_into(registers: &mut Registers, values: &[&[u8]]) -> Result<(), Fault> {
    walk(values, Raise(registers))
}

struct Compare<'a, F> {
    dense: &'a [u8; DENSE_REGISTER_BYTES],
    visit: F,
}

impl<F: FnMut(Mark)> Visitor for Compare<'_, F> {
    #[inline(always)]
    fn see(&mut self, Span { first, len, value }: Span) {
        if dense::register(self.dense, first) < value {
            (self.visit)(Mark { register: first, run: value });
        }
        if len > 1 {
            for register in first + 1..first + len {
                if dense::register(self.dense, register) < value {
                    (self.visit)(Mark { register, run: value });
                }
            }
        }
    }
}

/// The marks by which a dense value's registers fall short of those of sparse ones.
pub(super) fn marks_above(
    dense: &[u8; DENSE_REGISTER_BYTES],
    values: &[&[u8]],
    visit: impl FnMut(Mark),
) -> Result<(), Fault> {
    walk(values, Compare { dense, visit })
}

/// What became of a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Set {
    Unchanged,
    Changed,
    /// The value or the whole would be too large for this layout. Nothing was changed.
    NeedsDense,
}

/// Where to begin looking: an opcode and the register that it begins at. Marks in ascending order
/// find their place from where the last one was.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor {
    at: usize,
    register: usize,
}

impl Cursor {
    pub const START: Cursor = Cursor { at: HEADER_BYTES, register: 0 };
}

/// The opcode that covers a register.
struct Found {
    /// Where the opcode before it begins, if there is one.
    before: Option<Cursor>,
    here: Cursor,
    run: Run,
}

fn find(bytes: &[u8], register: usize, from: Cursor) -> Option<Found> {
    let (mut before, mut here) = (None, skip(bytes, register, from));
    let start = here;
    loop {
        let run = Run::at(bytes, here.at)?;
        let next = here.register + usize::from(run.len);
        if register < next {
            if before.is_none() && start.at > Cursor::START.at {
                return find(bytes, register, Cursor::START);
            }
            return Some(Found { before, here, run });
        }
        before = Some(here);
        here = Cursor { at: here.at + usize::from(run.size), register: next };
    }
}

/// Every other byte of a word.
const EVEN_BYTES: u64 = 0x00ff_00ff_00ff_00ff;

/// The same number in each byte of a word.
const fn each(byte: u8) -> u64 {
    u64::from_le_bytes([byte; 8])
}

/// An opcode before the one that covers `register`, or `from`. Counts the registers of eight bytes
/// at a time: opcode by opcode this would be most of the work of an addition.
fn skip(bytes: &[u8], register: usize, from: Cursor) -> Cursor {
    let whole = |marks: u64| marks | (marks - (marks >> 7));
    let words = bytes.get(from.at..).unwrap_or_default().as_chunks::<8>().0;
    // Whether the first byte is the second of an opcode for zeros, of which the word before has
    // the first.
    let (mut back, mut here) = ((from, 0), (from, 0));
    for word in words {
        let (Cursor { at, register: first }, is_second) = here;
        let word = u64::from_le_bytes(*word);
        // Marks are the highest bits of bytes. A second byte may look like the first of a long run.
        let like_long = word << 1 & !word & each(0x80) & !(is_second << 7);
        let long = like_long & !(like_long << 8);
        let second = long << 8 | is_second << 7;
        if like_long & like_long << 8 & like_long << 16 != 0 {
            // Which of these are first bytes is not clear from their neighbours.
            break;
        }
        let value = word & each(0x80) & !second;
        let kept = each(0x3f) & !whole(long) & !(whole(value) & each(0x3c)) | whole(second);
        // All but the upper half of long runs; one more for each opcode.
        let lens = (word & kept) + (each(1) & !(second >> 7));
        let lens = (lens & EVEN_BYTES) + (lens >> 8 & EVEN_BYTES);
        let upper = (word & whole(long) & each(0x3f)).wrapping_mul(each(1)) >> 56;
        let lower = lens.wrapping_mul(EVEN_BYTES / 0xff) >> 48;
        let next = first + (lower + (upper << 8)) as usize;
        if register < next {
            break;
        }
        (back, here) = (here, (Cursor { at: at + 8, register: next }, long >> 63));
    }
    let (mut start, is_second) = back;
    if is_second == 1 {
        start.at -= 1;
        start.register -= (usize::from(bytes[start.at] & 0x3f) << 8) + 1;
    }
    start
}

/// Raises one register of a sparse value, header included in `blob`. The mark's register must not
/// lie before `cursor`, which moves on.
pub(super) fn set(
    blob: &mut impl Blob,
    mark: Mark,
    bytes_max: usize,
    cursor: &mut Cursor,
) -> Result<Set, Fault> {
    if mark.run > VALUE_MAX {
        return Ok(Set::NeedsDense);
    }
    let bytes = blob.bytes();
    let found = find(bytes, mark.register, *cursor).ok_or(Fault::Corrupt)?;
    *cursor = found.before.unwrap_or(found.here);
    if found.run.value >= mark.run {
        return Ok(Set::Unchanged);
    }
    let mut window = Window::default();
    let (start, here) = (cursor.at, found.here.at);
    window.extend(&bytes[start..here]);
    window.split(&found, mark);
    let old_size = usize::from(found.run.size);
    let grown = bytes.len() - old_size + (window.len - (here - start));
    if grown > bytes.len() && grown > bytes_max {
        return Ok(Set::NeedsDense);
    }
    let behind = here + old_size;
    let end = bytes.len().min(behind + WINDOW_BYTES - window.len);
    window.extend(&bytes[behind..end]);
    window.merge();
    let old_len = end - start;
    if window.len == old_len {
        blob.overwrite(start, window.as_slice());
    } else {
        blob.splice(start, old_len, &[window.as_slice()]);
    }
    Ok(Set::Changed)
}

/// The bytes around a change, while it is made.
#[derive(Default)]
struct Window {
    bytes: [u8; WINDOW_BYTES],
    len: usize,
}

impl Window {
    fn as_slice(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    fn extend(&mut self, bytes: &[u8]) {
        self.bytes[self.len..self.len + bytes.len()].copy_from_slice(bytes);
        self.len += bytes.len();
    }

    /// Writes what comes in place of a run one of whose registers rises: what is before it, itself,
    /// and what is behind it.
    fn split(&mut self, found: &Found, mark: Mark) {
        let offset = (mark.register - found.here.register) as u16;
        self.push_run(found.run.value, offset);
        self.push_run(mark.run, 1);
        self.push_run(found.run.value, found.run.len - offset - 1);
    }

    fn push_run(&mut self, value: u8, len: u16) {
        if len == 0 {
            return;
        }
        if value > 0 {
            self.extend(&[value_opcode(value, len)]);
        } else if len <= SHORT_ZEROS_MAX {
            self.extend(&[len as u8 - 1]);
        } else {
            let [high, low] = (len - 1).to_be_bytes();
            self.extend(&[high | LONG_ZEROS, low]);
        }
    }

    /// Joins neighbours of equal value as far as one opcode can hold them.
    fn merge(&mut self) {
        let mut at = 0;
        for _ in 0..MERGE_STEPS {
            let Some(run) = Run::at(self.as_slice(), at) else { break };
            let next = Run::at(self.as_slice(), at + 1);
            match next {
                Some(next)
                    if run.value > 0
                        && next.value == run.value
                        && run.len + next.len <= VALUE_RUN_MAX =>
                {
                    self.bytes.copy_within(at + 1..self.len, at);
                    self.bytes[at] = value_opcode(run.value, run.len + next.len);
                    self.len -= 1;
                }
                _ => at += usize::from(run.size),
            }
        }
    }
}

fn value_opcode(value: u8, len: u16) -> u8 {
    VALUE | (value - 1) << 2 | (len as u8 - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use russet_base::random::Random;

    /// Any opcodes that cover all registers, runs of zeros one behind the other among them, which
    /// no server writes.
    fn any_value(random: &mut Random) -> Vec<u8> {
        let mut bytes = vec![0; HEADER_BYTES];
        let long_of_ten = random.below(11);
        let mut left = REGISTERS;
        while left > 0 {
            let run = match random.below(10) {
                kind if kind < long_of_ten => random.index(left.min(1000)) + 1,
                _ => random.index(left.min(64)) + 1,
            };
            if random.below(2) == 0 && run <= 4 {
                bytes.push(value_opcode(random.below(32) as u8 + 1, run as u16));
            } else if run <= 64 && random.below(50) > 0 {
                bytes.push(run as u8 - 1);
            } else {
                let [high, low] = (run as u16 - 1).to_be_bytes();
                bytes.extend([high | LONG_ZEROS, low]);
            }
            left -= run;
        }
        bytes
    }

    #[test]
    fn opcodes_are_found_where_one_by_one_finds_them() {
        let mut random = Random::from_seed(1);
        for _ in 0..300 {
            let bytes = any_value(&mut random);
            let (mut before, mut here) = (None, Cursor::START);
            for run in runs(&bytes[HEADER_BYTES..]).map(|run| run.expect("it is whole")) {
                let last = here.register + usize::from(run.len) - 1;
                for register in [here.register, last] {
                    let found = find(&bytes, register, Cursor::START).expect("all are covered");
                    let at = |cursor: Cursor| (cursor.at, cursor.register);
                    assert_eq!(found.run, run);
                    assert_eq!(at(found.here), at(here));
                    assert_eq!(found.before.map(at), before.map(at));
                }
                before = Some(here);
                here = Cursor { at: here.at + usize::from(run.size), register: last + 1 };
            }
            assert!(find(&bytes, REGISTERS, Cursor::START).is_none());
        }
    }
}
