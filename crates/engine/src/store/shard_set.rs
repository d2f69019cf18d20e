//! A set of shards, in ascending order.

use russet_base::limits::SHARDS_MAX;

const WORDS: usize = SHARDS_MAX / 64;

/// Which shards a command needs or holds: one bit each.
#[derive(Default, Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShardSet([u64; WORDS]);

impl ShardSet {
    pub const EMPTY: ShardSet = ShardSet([0; WORDS]);

    #[inline]
    pub fn one(index: usize) -> Self {
        let mut set = Self::EMPTY;
        set.insert(index);
        set
    }

    /// The first `count` shards.
    pub fn first(count: usize) -> Self {
        let mut set = Self::EMPTY;
        (0..count).for_each(|index| set.insert(index));
        set
    }

    #[inline]
    pub fn insert(&mut self, index: usize) {
        self.0[index / 64] |= 1 << (index % 64);
    }

    #[inline]
    pub fn remove(&mut self, index: usize) {
        self.0[index / 64] &= !(1 << (index % 64));
    }

    #[inline]
    pub fn contains(&self, index: usize) -> bool {
        self.0[index / 64] >> (index % 64) & 1 == 1
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0 == [0; WORDS]
    }

    pub fn count(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    #[must_use]
    pub fn union(mut self, other: ShardSet) -> Self {
        self.0.iter_mut().zip(other.0).for_each(|(word, more)| *word |= more);
        self
    }

    pub fn intersects(&self, other: &ShardSet) -> bool {
        self.0.iter().zip(other.0).any(|(&word, also)| word & also != 0)
    }

    pub fn is_subset(&self, other: &ShardSet) -> bool {
        self.0.iter().zip(other.0).all(|(&word, within)| word & !within == 0)
    }

    /// Calls `action` for each, in ascending order: the order in which shards are locked. Stops at
    /// the first that it refuses, and says which.
    #[inline]
    pub fn try_each(&self, mut action: impl FnMut(usize) -> bool) -> Result<(), usize> {
        for (at, &word) in self.0.iter().enumerate() {
            let mut left = word;
            while left != 0 {
                let index = at * 64 + left.trailing_zeros() as usize;
                if !action(index) {
                    return Err(index);
                }
                left &= left - 1;
            }
        }
        Ok(())
    }

    /// In ascending order. For many shards: one or two are cheaper with [`ShardSet::try_each`].
    pub fn iter(self) -> impl Iterator<Item = usize> {
        (0..SHARDS_MAX).filter(move |&index| self.contains(index))
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
