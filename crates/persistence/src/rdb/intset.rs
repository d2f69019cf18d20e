//! Redis's intset: the width of an integer (2, 4 or 8) and their number, four bytes each, then the
//! integers in ascending order, all little-endian.

use super::error::Malformed;

const HEADER_BYTES: usize = 8;

/// The integers of an intset, which are found to be in order, each once.
pub fn read(bytes: &[u8]) -> Result<impl ExactSizeIterator<Item = i64> + '_, Malformed> {
    let [a, b, c, d, e, f, g, h, run @ ..] = bytes else {
        return Err(Malformed("an intset without a header"));
    };
    let width = u32::from_le_bytes([*a, *b, *c, *d]) as usize;
    let count = u32::from_le_bytes([*e, *f, *g, *h]) as usize;
    if !matches!(width, 2 | 4 | 8) {
        return Err(Malformed("an intset of integers of unknown width"));
    }
    if count.checked_mul(width) != Some(run.len()) {
        return Err(Malformed("an intset of another length than it says"));
    }
    let numbers = run.chunks_exact(width).map(move |number| {
        let mut wide = [0; 8];
        wide[8 - width..].copy_from_slice(number);
        i64::from_le_bytes(wide) >> (64 - 8 * width)
    });
    if !numbers.clone().is_sorted_by(|one, other| one < other) {
        return Err(Malformed("an intset that is not in order"));
    }
    Ok(numbers)
}

/// An intset of integers in ascending order.
pub fn write(numbers: &[i64]) -> Vec<u8> {
    let has_all = |min: i64, max: i64| numbers.iter().all(|number| (min..=max).contains(number));
    let width = match () {
        () if has_all(i16::MIN.into(), i16::MAX.into()) => 2,
        () if has_all(i32::MIN.into(), i32::MAX.into()) => 4,
        () => 8,
    };
    let mut out = Vec::with_capacity(HEADER_BYTES + width * numbers.len());
    out.extend_from_slice(&(width as u32).to_le_bytes());
    out.extend_from_slice(&(numbers.len() as u32).to_le_bytes());
    for number in numbers {
        out.extend_from_slice(&number.to_le_bytes()[..width]);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_of_every_width() {
        for numbers in [&[][..], &[-3, 7], &[-40_000, 1], &[-1, 0, 1 << 40], &[i64::MIN, i64::MAX]]
        {
            let bytes = write(numbers);
            assert_eq!(read(&bytes).unwrap().collect::<Vec<_>>(), numbers);
            for len in 0..bytes.len() {
                assert!(read(&bytes[..len]).is_err());
            }
        }
        assert!(read(&write(&[2, 1])).is_err() && read(&write(&[1, 1])).is_err());
        assert!(read(&[3, 0, 0, 0, 0, 0, 0, 0]).is_err());
    }
}
