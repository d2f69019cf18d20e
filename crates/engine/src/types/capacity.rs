//! What trees and tables take up, and how much room to ask for: as much as the allocator gives
//! anyway ([`russet_base::capacity`]), and little more than needed.

pub use russet_base::capacity::{allocated_bytes, allocated_for, fit, fit_bytes};

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
    let buckets = match capacity {
        0 => return 0,
        1..=3 => 4,
        4..=7 => 8,
        _ => (capacity * 8 / 7).next_power_of_two(),
    };
    allocated_bytes(buckets * (size_of::<K>() + size_of::<V>() + 1) + CONTROL_GROUP_BYTES)
}
