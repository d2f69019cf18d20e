//! A small set of integers, packed: a byte that says how wide they are, then the integers in
//! ascending order, little-endian, each of that many bytes. No bytes at all are the empty set.

use crate::types::blob::Blob;
use smallvec::SmallVec;

const HEADER_BYTES: usize = 1;

/// Bytes that the integer needs.
fn width_of(value: i64) -> usize {
    let magnitude = value ^ (value >> 63);
    (64 - magnitude.leading_zeros() as usize + 1).div_ceil(8)
}

#[inline]
fn width(bytes: &[u8]) -> usize {
    bytes.first().map_or(1, |width| usize::from(*width))
}

#[inline]
pub fn len(bytes: &[u8]) -> usize {
    bytes.len().saturating_sub(HEADER_BYTES) / width(bytes)
}

/// Calls `$function::<W>` with the width as a constant, so that an integer is read in one go.
macro_rules! by_width {
    ($width:expr, $function:ident, $($argument:expr),*) => {
        match $width {
            1 => $function::<1>($($argument),*),
            2 => $function::<2>($($argument),*),
            3 => $function::<3>($($argument),*),
            4 => $function::<4>($($argument),*),
            5 => $function::<5>($($argument),*),
            6 => $function::<6>($($argument),*),
            7 => $function::<7>($($argument),*),
            _ => $function::<8>($($argument),*),
        }
    };
}

#[inline]
fn load<const W: usize>(bytes: &[u8; W]) -> i64 {
    let mut wide = [0; 8];
    wide[8 - W..].copy_from_slice(bytes);
    i64::from_le_bytes(wide) >> (64 - 8 * W)
}

fn search_in<const W: usize>(run: &[u8], value: i64) -> Result<usize, usize> {
    run.as_chunks::<W>().0.binary_search_by(|chunk| load(chunk).cmp(&value))
}

fn load_at<const W: usize>(run: &[u8], index: usize) -> i64 {
    load(&run.as_chunks::<W>().0[index])
}

fn append_all<const W: usize>(run: &[u8], out: &mut SmallVec<[i64; 64]>) {
    out.extend(run.as_chunks::<W>().0.iter().map(load));
}

/// The integers without their header.
#[inline]
fn run(bytes: &[u8]) -> &[u8] {
    bytes.get(HEADER_BYTES..).unwrap_or(&[])
}

/// The index of an integer, or the one where it would be.
#[inline]
pub fn search(bytes: &[u8], value: i64) -> Result<usize, usize> {
    by_width!(width(bytes), search_in, run(bytes), value)
}

/// The integer at an index, which must be below the length.
#[inline]
pub fn index(bytes: &[u8], index: usize) -> i64 {
    by_width!(width(bytes), load_at, run(bytes), index)
}

pub fn iter(bytes: &[u8]) -> impl Iterator<Item = i64> {
    (0..len(bytes)).map(|at| index(bytes, at))
}

/// Bytes of the set once this integer is in it.
pub fn bytes_with(bytes: &[u8], value: i64) -> usize {
    HEADER_BYTES + (len(bytes) + 1) * width(bytes).max(width_of(value))
}

/// Puts an integer where [`search`] said it would be.
pub fn insert(blob: &mut impl Blob, at: usize, value: i64) {
    let needed = width_of(value);
    if blob.bytes().is_empty() {
        return blob.splice(0, 0, &[&[needed as u8], &value.to_le_bytes()[..needed]]);
    }
    let width = width(blob.bytes());
    if needed <= width {
        let offset = HEADER_BYTES + at * width;
        return blob.splice(offset, 0, &[&value.to_le_bytes()[..width]]);
    }
    let mut all = SmallVec::new();
    by_width!(width, append_all, run(blob.bytes()), &mut all);
    all.insert(at, value);
    let total = blob.bytes().len();
    blob.splice(0, total, &[&built(&all)]);
}

/// Removes the integer at an index.
pub fn remove_at(blob: &mut impl Blob, at: usize) {
    let width = width(blob.bytes());
    match len(blob.bytes()) {
        1 => {
            let total = blob.bytes().len();
            blob.splice(0, total, &[]);
        }
        _ => blob.splice(HEADER_BYTES + at * width, width, &[]),
    }
}

/// The set of these integers, which ascend.
pub fn built(ascending: &[i64]) -> SmallVec<[u8; 256]> {
    let (Some(&first), Some(&last)) = (ascending.first(), ascending.last()) else {
        return SmallVec::new();
    };
    let width = width_of(first).max(width_of(last));
    let mut bytes = SmallVec::with_capacity(HEADER_BYTES + ascending.len() * width);
    bytes.push(width as u8);
    for value in ascending {
        bytes.extend_from_slice(&value.to_le_bytes()[..width]);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widths_at_their_ends() {
        for shift in 0..63usize {
            let power = 1i64 << shift;
            for value in [power - 1, -power] {
                assert_eq!(width_of(value), (shift + 1).div_ceil(8).max(1), "{value}");
            }
        }
        assert_eq!((width_of(i64::MIN), width_of(i64::MAX)), (8, 8));
    }

    #[test]
    fn every_width_keeps_the_order() {
        for shift in [0, 7, 8, 15, 16, 23, 24, 31, 32, 39, 40, 47, 48, 55, 56, 63] {
            let mut bytes = Vec::new();
            for value in [0, 5, -3, 1i64 << shift, (-1i64) << shift, 100, i64::from(i8::MIN)] {
                if let Err(at) = search(&bytes, value) {
                    assert_eq!(bytes_with(&bytes, value), {
                        insert(&mut bytes, at, value);
                        bytes.len()
                    });
                }
                assert_eq!(search(&bytes, value).map(|at| index(&bytes, at)), Ok(value));
            }
            let all: Vec<i64> = iter(&bytes).collect();
            assert!(all.is_sorted());
            while len(&bytes) > 0 {
                let middle = len(&bytes) / 2;
                remove_at(&mut bytes, middle);
            }
            assert!(bytes.is_empty());
        }
    }
}
