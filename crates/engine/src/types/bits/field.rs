//! BITFIELD: integers of 1 to 64 bits at any bit offset, high bit first.

use crate::types::blob::Blob;

/// The type of a field: `i1`..`i64` or `u1`..`u63`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    signed: bool,
    bits: u8,
}

/// What happens to a value that its field can't hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Overflow {
    #[default]
    Wrap,
    Sat,
    Fail,
}

impl Overflow {
    pub fn parse(name: &[u8]) -> Option<Self> {
        match name.to_ascii_lowercase().as_slice() {
            b"wrap" => Some(Overflow::Wrap),
            b"sat" => Some(Overflow::Sat),
            b"fail" => Some(Overflow::Fail),
            _ => None,
        }
    }
}

/// Bytes that a field of 64 bits can touch.
const WINDOW_BYTES: usize = 9;

impl Field {
    /// `i` or `u`, in lower case only, and the width.
    pub fn parse(text: &[u8]) -> Option<Self> {
        let (signed, width) = match text {
            [b'i', width @ ..] => (true, width),
            [b'u', width @ ..] => (false, width),
            _ => return None,
        };
        let bits = u8::try_from(russet_base::num::parse_i64(width)?).ok()?;
        let bits_max = if signed { 64 } else { 63 };
        (1..=bits_max).contains(&bits).then_some(Field { signed, bits })
    }

    pub fn bits(self) -> u8 {
        self.bits
    }

    /// How long a string must be to hold the field at `offset`.
    pub fn bytes_needed(self, offset: u64) -> usize {
        super::bytes_for_bit(offset.saturating_add(u64::from(self.bits) - 1))
    }

    /// The value at `offset`; what lies past the end is zero.
    pub fn read(self, bytes: &[u8], offset: u64) -> i64 {
        let mut window = [0; WINDOW_BYTES];
        if let Some(source) = usize::try_from(offset >> 3).ok().and_then(|at| bytes.get(at..)) {
            let len = source.len().min(WINDOW_BYTES);
            window[..len].copy_from_slice(&source[..len]);
        }
        self.extract(wide(window), offset)
    }

    fn extract(self, wide: u128, offset: u64) -> i64 {
        // The field's bits go to the top, then down again with or without their sign.
        let top = ((wide << (offset & 7)) >> 64) as u64;
        let unused = 64 - u32::from(self.bits);
        match self.signed {
            true => top as i64 >> unused,
            false => (top >> unused) as i64,
        }
    }

    /// Writes the low bits of `value` at `offset`, growing the string with zeros up to its end.
    pub fn write(self, blob: &mut impl Blob, offset: u64, value: i64) {
        let end = self.bytes_needed(offset);
        super::grow(blob, end);
        let start = (offset >> 3) as usize;
        let len = end - start;
        let mut window = [0; WINDOW_BYTES];
        window[..len].copy_from_slice(&blob.bytes()[start..end]);
        let unused = 64 - u32::from(self.bits);
        let shift = u32::from(offset as u8 & 7);
        let mask = (u128::from(u64::MAX << unused) << 64) >> shift;
        let bits = (u128::from((value as u64) << unused) << 64) >> shift;
        let wide = (wide(window) & !mask) | bits;
        blob.overwrite(start, &wide.to_be_bytes()[..len]);
    }

    fn min(self) -> i128 {
        if self.signed { -(1 << (self.bits - 1)) } else { 0 }
    }

    fn max(self) -> i128 {
        (1 << (self.bits - u8::from(self.signed))) - 1
    }

    /// What SET stores for `value`; `None` if it is refused.
    pub fn fitted(self, value: i64, overflow: Overflow) -> Option<i64> {
        // COMPAT: to an unsigned field a negative number is a very large one, so SAT stores the
        // most; test `set_and_increment_overflow_as_told`.
        let value = if self.signed { i128::from(value) } else { i128::from(value as u64) };
        self.resolve_overflow(value, overflow)
    }

    /// What INCRBY makes of `old`; `None` if it is refused.
    pub fn increased(self, old: i64, by: i64, overflow: Overflow) -> Option<i64> {
        self.resolve_overflow(i128::from(old) + i128::from(by), overflow)
    }

    fn resolve_overflow(self, value: i128, overflow: Overflow) -> Option<i64> {
        if (self.min()..=self.max()).contains(&value) {
            return Some(value as i64);
        }
        match overflow {
            Overflow::Fail => None,
            Overflow::Sat => Some(value.clamp(self.min(), self.max()) as i64),
            Overflow::Wrap => {
                let unused = 64 - u32::from(self.bits);
                let top = (value as u64) << unused;
                Some(if self.signed { top as i64 >> unused } else { (top >> unused) as i64 })
            }
        }
    }
}

/// A window as a number whose highest byte is the window's first.
fn wide(window: [u8; WINDOW_BYTES]) -> u128 {
    let mut bytes = [0; 16];
    bytes[..WINDOW_BYTES].copy_from_slice(&window);
    u128::from_be_bytes(bytes)
}
