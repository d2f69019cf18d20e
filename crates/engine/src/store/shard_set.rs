//! A set of shards, in ascending order.

use russet_base::limits::SHARDS_MAX;

const WORDS: usize = SHARDS_MAX / 64;

const _: () = assert!(SHARDS_MAX.is_multiple_of(64) && WORDS <= u32::BITS as usize);

/// Which shards a command needs or holds: one bit each. It is made, moved and dropped with every
/// command and nearly always of one shard, so one word tells which of the others are worth a look.
#[derive(Default, Clone, Debug)]
pub struct ShardSet {
    /// A bit for each word that is not zero.
    used: u32,
    /// What a holder of the shards keeps with them, in room that is there anyway: in a field of its
    /// own it would make each move longer. No part of the set.
    pub(super) note: u32,
    words: [u64; WORDS],
}

impl PartialEq for ShardSet {
    #[inline]
    fn eq(&self, other: &ShardSet) -> bool {
        self.used == other.used && self.words == other.words
    }
}

impl Eq for ShardSet {}

impl ShardSet {
    pub const EMPTY: ShardSet = ShardSet { used: 0, note: 0, words: [0; WORDS] };

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

    /// Whether it has shards wherever `other` has some: one look, before they are compared.
    #[inline]
    pub fn has_all_words_of(&self, other: &ShardSet) -> bool {
        self.used == other.used
    }

    #[inline]
    pub fn insert(&mut self, index: usize) {
        self.words[index / 64] |= 1 << (index % 64);
        self.used |= 1 << (index / 64);
    }

    #[inline]
    pub fn clear(&mut self) {
        while self.used != 0 {
            self.words[self.used.trailing_zeros() as usize] = 0;
            self.used &= self.used - 1;
        }
    }

    #[inline]
    pub fn remove(&mut self, index: usize) {
        self.words[index / 64] &= !(1 << (index % 64));
        if self.words[index / 64] == 0 {
            self.used &= !(1 << (index / 64));
        }
    }

    #[inline]
    pub fn contains(&self, index: usize) -> bool {
        self.words[index / 64] >> (index % 64) & 1 == 1
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.used == 0
    }

    pub fn count(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    #[must_use]
    pub fn union(mut self, other: &ShardSet) -> Self {
        self.used |= other.used;
        self.words.iter_mut().zip(&other.words).for_each(|(word, more)| *word |= more);
        self
    }

    pub fn intersects(&self, other: &ShardSet) -> bool {
        self.words.iter().zip(&other.words).any(|(word, also)| word & also != 0)
    }

    pub fn is_subset(&self, other: &ShardSet) -> bool {
        self.words.iter().zip(&other.words).all(|(word, within)| word & !within == 0)
    }

    /// Calls `action` for each, in ascending order: the order in which shards are locked. Stops at
    /// the first that it refuses, and says which.
    #[inline]
    pub fn try_each(&self, mut action: impl FnMut(usize) -> bool) -> Result<(), usize> {
        let mut used = self.used;
        while used != 0 {
            let at = used.trailing_zeros() as usize;
            let mut left = self.words[at];
            while left != 0 {
                let index = at * 64 + left.trailing_zeros() as usize;
                if !action(index) {
                    return Err(index);
                }
                left &= left - 1;
            }
            used &= used - 1;
        }
        Ok(())
    }

    /// Empties the set, and calls `action` for each that was in it, in ascending order.
    #[inline(always)]
    pub fn drain_each(&mut self, mut action: impl FnMut(usize)) {
        while self.used != 0 {
            let at = self.used.trailing_zeros() as usize;
            let mut left = std::mem::take(&mut self.words[at]);
            while left != 0 {
                action(at * 64 + left.trailing_zeros() as usize);
                left &= left - 1;
            }
            self.used &= self.used - 1;
        }
    }

    /// In ascending order. For many shards: one or two are cheaper with [`ShardSet::try_each`].
    pub fn iter(&self) -> impl Iterator<Item = usize> + use<> {
        let mut left = self.clone();
        std::iter::from_fn(move || {
            if left.used == 0 {
                return None;
            }
            let at = left.used.trailing_zeros() as usize;
            let index = at * 64 + left.words[at].trailing_zeros() as usize;
            left.remove(index);
            Some(index)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

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

    #[test]
    fn any_set_is_what_a_tree_of_numbers_is() {
        let (mut set, mut model) = (ShardSet::EMPTY, BTreeSet::new());
        let mut state = 1usize;
        for _ in 0..20_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let index = (state >> 33) % SHARDS_MAX;
            // Removals prevail, so that words often become empty.
            if state >> 62 == 0 {
                set.insert(index);
                model.insert(index);
            } else {
                set.remove(index);
                model.remove(&index);
            }
            assert_eq!(set.contains(index), model.contains(&index));
            assert_eq!(set.is_empty(), model.is_empty());
            if index.is_multiple_of(64) {
                check(&set, &model);
            }
        }
        check(&ShardSet::first(SHARDS_MAX), &(0..SHARDS_MAX).collect());
    }

    fn check(set: &ShardSet, model: &BTreeSet<usize>) {
        assert_eq!(set.count(), model.len());
        assert!(set.iter().eq(model.iter().copied()));
        let mut rebuilt = ShardSet::EMPTY;
        assert_eq!(
            set.try_each(|index| {
                rebuilt.insert(index);
                true
            }),
            Ok(())
        );
        assert_eq!(*set, rebuilt);
        let half = (SHARDS_MAX / 2..SHARDS_MAX).fold(ShardSet::EMPTY, |half, index| {
            if set.contains(index) { half.union(&ShardSet::one(index)) } else { half }
        });
        assert_eq!(set.intersects(&half), !half.is_empty());
        assert!(half.is_subset(set) && set.clone().union(&half) == *set);
        if let Some(&last) = model.last() {
            assert_eq!(set.try_each(|index| index != last), Err(last));
        }
        let (mut drained, mut order) = (set.clone(), Vec::new());
        drained.drain_each(|index| order.push(index));
        let mut cleared = set.clone();
        cleared.clear();
        assert_eq!(cleared, ShardSet::EMPTY);
        assert!(drained == ShardSet::EMPTY && order.into_iter().eq(model.iter().copied()));
    }
}
