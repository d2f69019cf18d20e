//! How much room to ask for: as much as the allocator gives anyway, and little more than needed.

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

/// About what the nodes of a `BTreeMap` of so many entries take, if most came in ascending order,
/// as deadlines and identifiers do: that leaves six entries in a node of eleven, and one above it.
pub fn tree_bytes<K, V>(len: usize) -> usize {
    const NODE_ENTRIES_MAX: usize = 11;
    const NODE_LINKS_BYTES: usize = 12;
    let entries = NODE_ENTRIES_MAX * (size_of::<K>() + size_of::<V>());
    let leaf = (entries + NODE_LINKS_BYTES).next_multiple_of(8);
    let inner = leaf + (NODE_ENTRIES_MAX + 1) * size_of::<usize>();
    let (leaves, inners) = match len {
        0 => (0, 0),
        1..=NODE_ENTRIES_MAX => (1, 0),
        _ => (len.div_ceil(7), len.div_ceil(7 * 6)),
    };
    leaves * allocated_bytes(leaf) + inners * allocated_bytes(inner)
}

/// What a `HashMap` with room for so many entries takes: eight places for each seven, a power of
/// two, a byte of control for each and a group of those more.
pub fn table_bytes<K, V>(capacity: usize) -> usize {
    const CONTROL_GROUP_BYTES: usize = 16;
    let places = match capacity {
        0 => return 0,
        1..=3 => 4,
        4..=7 => 8,
        _ => (capacity * 8 / 7).next_power_of_two(),
    };
    allocated_bytes(places * (size_of::<K>() + size_of::<V>() + 1) + CONTROL_GROUP_BYTES)
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
