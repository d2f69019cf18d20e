//! The sizes that allocators have.

/// Sizes up to here come in steps of this many bytes; from there on in quarters of a power of two.
const STEP_BYTES: usize = 16;
const STEPPED_BYTES_MAX: usize = 128;
const SMALLEST_BYTES: usize = 8;

/// The number of `T`s, at least `count`, that an allocation for `count` has room for.
pub fn fit<T>(count: usize) -> usize {
    fit_bytes(count * size_of::<T>()) / size_of::<T>()
}

pub fn fit_bytes(bytes: usize) -> usize {
    if bytes <= STEPPED_BYTES_MAX {
        return bytes.next_multiple_of(STEP_BYTES);
    }
    let step = 1 << ((bytes - 1).ilog2() - 2);
    bytes.next_multiple_of(step)
}

/// What an allocation of so many bytes takes: allocators have few sizes, and the one that the
/// server brings has these. Other allocators are close to it.
#[inline]
pub fn allocated_bytes(bytes: usize) -> usize {
    match bytes {
        0 => 0,
        1..=SMALLEST_BYTES => SMALLEST_BYTES,
        _ => fit_bytes(bytes),
    }
}

/// The same for so many `T`s.
#[inline]
pub fn allocated_for<T>(count: usize) -> usize {
    allocated_bytes(count * size_of::<T>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_those_of_the_allocator() {
        for (bytes, fitted) in [
            (0, 0),
            (1, 16),
            (16, 16),
            (17, 32),
            (128, 128),
            (129, 160),
            (257, 320),
            (513, 640),
            (1024, 1024),
            (1025, 1280),
        ] {
            assert_eq!(fit_bytes(bytes), fitted, "{bytes}");
        }
        assert_eq!(fit::<u64>(17), 20);
        assert_eq!([0, 1, 8, 9, 129].map(allocated_bytes), [0, 8, 8, 16, 160]);
    }
}
