//! Strings as bits: one bit, counting and finding in ranges, combining several, and integer fields
//! of any width at any offset. Bit 0 is the high bit of byte 0. Functions on bytes; which strings
//! they are and where they live is for the string's room.

mod field;
mod operation;
mod range;
#[cfg(test)]
mod tests;

use crate::types::blob::Blob;

pub use field::{Field, Overflow};
pub use operation::{BitOperation, combine};
pub use range::{BitSpan, Unit, count, position};

/// Most zeros handed to a blob in one edit.
const ZEROS: [u8; 4096] = [0; 4096];
const ZERO_PIECES_MAX: usize = 64;

/// The bit at `offset`; what lies past the end is zero.
pub fn bit(bytes: &[u8], offset: u64) -> bool {
    let byte = usize::try_from(offset >> 3).ok().and_then(|at| bytes.get(at));
    byte.is_some_and(|byte| byte & mask(offset) != 0)
}

/// How long a string must be to have the bit at `offset`.
pub fn bytes_for_bit(offset: u64) -> usize {
    usize::try_from(offset >> 3).unwrap_or(usize::MAX).saturating_add(1)
}

/// Sets the bit at `offset`, growing the string with zeros up to it; the bit that was there.
pub fn set_bit(blob: &mut impl Blob, offset: u64, on: bool) -> bool {
    let needed = bytes_for_bit(offset);
    grow(blob, needed);
    let old = blob.bytes()[needed - 1];
    let new = if on { old | mask(offset) } else { old & !mask(offset) };
    if new != old {
        blob.overwrite(needed - 1, &[new]);
    }
    old & mask(offset) != 0
}

/// Appends zeros until the string has at least `bytes`.
pub fn grow(blob: &mut impl Blob, bytes: usize) {
    loop {
        let len = blob.bytes().len();
        let missing = bytes.saturating_sub(len);
        if missing == 0 {
            return;
        }
        let mut pieces = [&ZEROS[..0]; ZERO_PIECES_MAX];
        let mut left = missing;
        for piece in &mut pieces {
            *piece = &ZEROS[..left.min(ZEROS.len())];
            left -= piece.len();
        }
        blob.splice(len, 0, &pieces);
    }
}

fn mask(offset: u64) -> u8 {
    0x80 >> (offset & 7)
}

/// The bit offset that `text` gives: a number, or `#` and an index of fields of `field`'s width.
/// `None` if it is neither or reaches past `bytes_max` bytes.
pub fn parse_offset(text: &[u8], field: Option<Field>, bytes_max: u64) -> Option<u64> {
    let (digits, width) = match (text, field) {
        ([b'#', digits @ ..], Some(field)) => (digits, u64::from(field.bits())),
        _ => (text, 1),
    };
    let number = russet_base::num::parse_i64(digits)?;
    let offset = u64::try_from(number).ok()?.checked_mul(width)?;
    (offset >> 3 < bytes_max).then_some(offset)
}
