//! LZF, the compression of strings in dumps and RDB files: reading only.
//!
//! A byte below 32 is followed by that many bytes and one more, as they are. Any other begins a
//! copy of what was written before: its upper three bits are the length less two (seven means that
//! another byte adds to it), its lower five and one more byte the distance less one.

/// The bytes that `packed` stands for, which must be exactly `len`.
pub fn decompress(packed: &[u8], len: usize) -> Option<Vec<u8>> {
    // What a broken length asks for is bounded by what the input can make of it.
    let mut out = Vec::with_capacity(len.min(packed.len().saturating_mul(264)));
    let mut rest = packed.iter().copied();
    while let Some(control) = rest.next() {
        if control < 32 {
            for _ in 0..=control {
                out.push(rest.next()?);
            }
        } else {
            let mut copied = usize::from(control >> 5);
            if copied == 7 {
                copied += usize::from(rest.next()?);
            }
            let distance = usize::from(control & 31) << 8 | usize::from(rest.next()?);
            let start = out.len().checked_sub(distance + 1)?;
            // One by one: the copy may reach into what it writes.
            for from in start..start + copied + 2 {
                out.push(out[from]);
            }
        }
        if out.len() > len {
            return None;
        }
    }
    (out.len() == len).then_some(out)
}

#[cfg(test)]
mod tests {
    use super::decompress;

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
