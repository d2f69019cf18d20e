//! The dense layout: 6 bits for each register, from the low bits of each byte up. Eight registers
//! are six bytes, which as one word are spread to a byte each by three shifts.

use super::hash::Mark;
use super::registers::Registers;
use super::{DENSE_REGISTER_BYTES, REGISTERS};
use crate::store::raw::wide::{Work, widely};
use crate::types::blob::Blob;

const GROUP_REGISTERS: usize = 8;
const GROUP_BYTES: usize = 6;
/// Groups that are worked on together, so that each step is a loop over words side by side.
const LANES: usize = 16;
const BLOCK_BYTES: usize = LANES * GROUP_BYTES;
const BLOCK_REGISTERS: usize = LANES * GROUP_REGISTERS;
/// How much a word is longer than a group.
const SPARE_BYTES: usize = 8 - GROUP_BYTES;

const _: () = assert!(DENSE_REGISTER_BYTES.is_multiple_of(BLOCK_BYTES));
const _: () = assert!(REGISTERS.is_multiple_of(BLOCK_REGISTERS));

/// From eight fields of 6 bits to eight bytes: halves, quarters, eighths move apart.
#[inline(always)]
fn spread(word: u64) -> u64 {
    let word = (word & 0x0000_0000_00ff_ffff) | (word & 0x0000_ffff_ff00_0000) << 8;
    let word = (word & 0x0000_0fff_0000_0fff) | (word & 0x00ff_f000_00ff_f000) << 4;
    (word & 0x003f_003f_003f_003f) | (word & 0x0fc0_0fc0_0fc0_0fc0) << 2
}

/// The inverse of [`spread`].
#[inline(always)]
fn gather(word: u64) -> u64 {
    let word = (word & 0x003f_003f_003f_003f) | (word & 0x3f00_3f00_3f00_3f00) >> 2;
    let word = (word & 0x0000_0fff_0000_0fff) | (word & 0x0fff_0000_0fff_0000) >> 4;
    (word & 0x0000_0000_00ff_ffff) | (word & 0x00ff_ffff_0000_0000) >> 8
}

/// Raises registers to those of a dense value.
pub(super) fn merge_into(registers: &mut Registers, dense: &[u8]) {
    widely(Merge { registers, dense });
}

struct Merge<'a> {
    registers: &'a mut Registers,
    dense: &'a [u8],
}

impl Work for Merge<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let targets = self.registers.0.as_chunks_mut::<BLOCK_REGISTERS>().0;
        for (index, target) in targets.iter_mut().enumerate() {
            let rest = &self.dense[index * BLOCK_BYTES..];
            match rest.first_chunk() {
                Some(block) => merge_block(target, block),
                None => {
                    let mut last = [0; BLOCK_BYTES + SPARE_BYTES];
                    last[..BLOCK_BYTES].copy_from_slice(rest);
                    merge_block(target, &last);
                }
            }
        }
    }
}

/// Each group is read as eight bytes, of which the last two belong to the next one.
#[inline(always)]
fn merge_block(target: &mut [u8; BLOCK_REGISTERS], block: &[u8; BLOCK_BYTES + SPARE_BYTES]) {
    let mut bytes = [0; BLOCK_REGISTERS];
    for (lane, spaced) in bytes.as_chunks_mut::<GROUP_REGISTERS>().0.iter_mut().enumerate() {
        let at = lane * GROUP_BYTES;
        let group = block[at..].first_chunk().expect("a block has bytes to spare at its end");
        *spaced = spread(u64::from_le_bytes(*group)).to_le_bytes();
    }
    for (register, other) in target.iter_mut().zip(bytes) {
        *register = other.max(*register);
    }
}

/// Packs registers into the dense layout.
pub(super) fn pack(registers: &Registers, dense: &mut [u8]) {
    widely(Pack { registers, dense });
}

struct Pack<'a> {
    registers: &'a Registers,
    dense: &'a mut [u8],
}

/// Groups that fill a whole number of words.
const PACKED_GROUPS: usize = 4;

impl Work for Pack<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let targets = self.dense.as_chunks_mut::<{ PACKED_GROUPS * GROUP_BYTES }>().0;
        let sources = self.registers.0.as_chunks::<{ PACKED_GROUPS * GROUP_REGISTERS }>().0;
        for (target, source) in targets.iter_mut().zip(sources) {
            let mut words = [0; PACKED_GROUPS];
            for (word, group) in words.iter_mut().zip(source.as_chunks::<GROUP_REGISTERS>().0) {
                *word = gather(u64::from_le_bytes(*group));
            }
            // Four times 48 bits are three times 64.
            let [a, b, c, d] = words;
            let joined = [a | b << 48, b >> 16 | c << 32, c >> 32 | d << 16];
            for (bytes, word) in target.as_chunks_mut::<8>().0.iter_mut().zip(joined) {
                *bytes = word.to_le_bytes();
            }
        }
    }
}

/// One register.
#[inline(always)]
pub(super) fn register(dense: &[u8; DENSE_REGISTER_BYTES], index: usize) -> u8 {
    let bit = index * 6;
    // The last register ends with the last byte, and is read from the byte before.
    let at = (bit / 8).min(DENSE_REGISTER_BYTES - 2);
    let pair = u16::from_le_bytes([dense[at], dense[at + 1]]);
    (pair >> (bit - at * 8)) as u8 & 63
}

/// Raises one register of a dense value whose registers begin at `start`; whether it rose.
pub(super) fn set(blob: &mut impl Blob, start: usize, mark: Mark) -> bool {
    let bit = mark.register * 6;
    let (at, shift) = (start + bit / 8, bit % 8);
    let bytes = blob.bytes();
    // The last register ends with its byte.
    let (low, high) = (bytes[at], bytes.get(at + 1).copied().unwrap_or(0));
    let pair = u16::from_le_bytes([low, high]);
    if (pair >> shift) as u8 & 63 >= mark.run {
        return false;
    }
    let raised = pair & !(63 << shift) | u16::from(mark.run) << shift;
    let width = if shift > 2 { 2 } else { 1 };
    blob.overwrite(at, &raised.to_le_bytes()[..width]);
    true
}
