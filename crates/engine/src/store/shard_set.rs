//! A set of shards, in ascending order.

use russet_base::limits::SHARDS_MAX;

/// Which shards a command needs or holds: one bit each.
#[derive(Default, Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShardSet(u128);

const _: () = assert!(SHARDS_MAX <= u128::BITS as usize, "a shard has a bit");

impl ShardSet {
    pub const EMPTY: ShardSet = ShardSet(0);

    #[inline]
    pub fn one(index: usize) -> Self {
        ShardSet(1 << index)
    }

    /// The first `count` shards.
    pub fn first(count: usize) -> Self {
        let mut set = Self::EMPTY;
        (0..count).for_each(|index| set.insert(index));
        set
    }

    #[inline]
    pub fn insert(&mut self, index: usize) {
        self.0 |= 1 << index;
    }

    #[inline]
    pub fn remove(&mut self, index: usize) {
        self.0 &= !(1 << index);
    }

    #[inline]
    pub fn contains(&self, index: usize) -> bool {
        self.0 >> index & 1 == 1
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0 == 0
    }

    pub fn count(&self) -> usize {
        self.0.count_ones() as usize
    }

    #[must_use]
    pub fn union(self, other: ShardSet) -> Self {
        ShardSet(self.0 | other.0)
    }

    pub fn is_subset(&self, other: &ShardSet) -> bool {
        self.0 & !other.0 == 0
    }

    /// In ascending order: the order in which shards are locked.
    #[inline]
    pub fn iter(self) -> impl Iterator<Item = usize> {
        let mut left = self.0;
        std::iter::from_fn(move || {
            (left != 0).then(|| {
                let index = left.trailing_zeros() as usize;
                left &= left - 1;
                index
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_come_in_ascending_order() {
        let mut set = ShardSet::one(100);
        set.insert(3);
        set.insert(64);
        assert_eq!(set.iter().collect::<Vec<_>>(), [3, 64, 100]);
        assert_eq!(set.count(), 3);
        set.remove(64);
        assert!(!set.contains(64) && set.contains(3));
        assert!(set.is_subset(&ShardSet::first(SHARDS_MAX)));
        assert!(!ShardSet::first(100).is_subset(&set));
        assert_eq!(ShardSet::first(5).iter().count(), 5);
        assert!(ShardSet::EMPTY.is_empty());
    }
}
