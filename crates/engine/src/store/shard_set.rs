//! A set of shards, in ascending order.

use russet_base::limits::SHARDS_MAX;

const WORDS: usize = SHARDS_MAX / 64;

const _: () = assert!(SHARDS_MAX.is_multiple_of(64));

/// Which shards a command needs or holds: one bit each. It is made, moved and dropped with every
/// command and nearly always of one shard, so one word is at hand; a box has all of them for those
/// that need more.
#[derive(Default, Clone, Debug)]
pub struct ShardSet {
    /// The only word that is not zero, and which it is; zero if there is a box.
    word: u64,
    at: usize,
    all: Option<Box<[u64; WORDS]>>,
}

impl ShardSet {
    pub const EMPTY: ShardSet = ShardSet { word: 0, at: 0, all: None };

    #[inline]
    pub fn one(index: usize) -> Self {
        assert!(index < SHARDS_MAX, "there are fewer shards");
        ShardSet { word: 1 << (index % 64), at: index / 64, all: None }
    }

    /// The first `count` shards.
    pub fn first(count: usize) -> Self {
        let bits = |at: usize| count.saturating_sub(at * 64).min(64);
        let words = std::array::from_fn(|at| u64::MAX.checked_shr(64 - bits(at) as u32));
        ShardSet { all: Some(Box::new(words.map(|word| word.unwrap_or(0)))), ..Self::EMPTY }
    }

    #[inline]
    pub fn insert(&mut self, index: usize) {
        assert!(index < SHARDS_MAX, "there are fewer shards");
        if let Some(all) = &mut self.all {
            all[index / 64] |= 1 << (index % 64);
        } else if self.word == 0 || self.at == index / 64 {
            self.word |= 1 << (index % 64);
            self.at = index / 64;
        } else {
            self.spread();
            self.insert(index);
        }
    }

    /// From one word to all of them.
    #[cold]
    fn spread(&mut self) {
        let mut all = Box::new([0; WORDS]);
        all[self.at] = std::mem::take(&mut self.word);
        self.all = Some(all);
    }

    #[inline]
    pub fn remove(&mut self, index: usize) {
        match &mut self.all {
            Some(all) => all[index / 64] &= !(1 << (index % 64)),
            None if self.at == index / 64 => self.word &= !(1 << (index % 64)),
            None => {}
        }
    }

    #[inline]
    pub fn contains(&self, index: usize) -> bool {
        let word = match &self.all {
            Some(all) => all[index / 64],
            None if self.at == index / 64 => self.word,
            None => 0,
        };
        word >> (index % 64) & 1 == 1
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.word == 0 && self.all.as_ref().is_none_or(|all| **all == [0; WORDS])
    }

    pub fn count(&self) -> usize {
        self.words().map(|(_, word)| word.count_ones() as usize).sum()
    }

    #[must_use]
    pub fn union(mut self, other: &ShardSet) -> Self {
        other.iter().for_each(|index| self.insert(index));
        self
    }

    pub fn intersects(&self, other: &ShardSet) -> bool {
        self.words().any(|(at, word)| word & other.word(at) != 0)
    }

    pub fn is_subset(&self, other: &ShardSet) -> bool {
        self.words().all(|(at, word)| word & !other.word(at) == 0)
    }

    fn word(&self, at: usize) -> u64 {
        match &self.all {
            Some(all) => all[at],
            None if self.at == at => self.word,
            None => 0,
        }
    }

    /// All words that may not be zero, with their places, in ascending order.
    #[inline]
    fn words(&self) -> impl Iterator<Item = (usize, u64)> {
        let all = self.all.as_ref().map_or(&[][..], |all| &all[..]);
        // Zero beside a box, and then skipped as any zero is.
        std::iter::once((self.at, self.word)).chain(all.iter().copied().enumerate())
    }

    /// Calls `action` for each, in ascending order: the order in which shards are locked. Stops at
    /// the first that it refuses, and says which.
    #[inline]
    pub fn try_each(&self, mut action: impl FnMut(usize) -> bool) -> Result<(), usize> {
        for_bits(self.at, self.word, &mut action)?;
        match &self.all {
            Some(all) => try_all(all, &mut action),
            None => Ok(()),
        }
    }

    /// Empties the set, and calls `action` for each that was in it, in ascending order.
    #[inline]
    pub fn drain_each(&mut self, mut action: impl FnMut(usize)) {
        let _always = std::mem::take(self).try_each(|index| {
            action(index);
            true
        });
    }

    /// In ascending order.
    pub fn iter(&self) -> impl Iterator<Item = usize> {
        self.words().flat_map(|(at, word)| {
            let rest = std::iter::successors(Some(word), |left| Some(left & left.wrapping_sub(1)));
            let bits = rest.take_while(|&left| left != 0);
            bits.map(move |left| at * 64 + left.trailing_zeros() as usize)
        })
    }
}

impl PartialEq for ShardSet {
    fn eq(&self, other: &ShardSet) -> bool {
        self.is_subset(other) && other.is_subset(self)
    }
}

impl Eq for ShardSet {}

#[inline]
fn for_bits(at: usize, word: u64, action: &mut impl FnMut(usize) -> bool) -> Result<(), usize> {
    let mut left = word;
    while left != 0 {
        let index = at * 64 + left.trailing_zeros() as usize;
        if !action(index) {
            return Err(index);
        }
        left &= left - 1;
    }
    Ok(())
}

/// Not inlined: sets of one word, nearly all of them, need no second copy of the action.
#[cold]
#[inline(never)]
fn try_all(all: &[u64; WORDS], action: &mut impl FnMut(usize) -> bool) -> Result<(), usize> {
    all.iter().enumerate().try_for_each(|(at, &word)| for_bits(at, word, action))
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
            if index % 64 == 0 {
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
        assert!(drained == ShardSet::EMPTY && order.into_iter().eq(model.iter().copied()));
    }
}
