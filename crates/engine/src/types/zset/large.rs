//! A sorted set of its own: the tree keeps the order, the index finds the leaf of a member.

use super::entry::{self, Found, Pair};
use super::index::Index;
use super::range::Probe;
use super::tree::{Builder, Moved, Tree};
use crate::store::raw::prefetch::prefetch_bytes;
use crate::types::element::{Element, Stored};
use russet_base::hash::KeyHasher;
use russet_base::random::Random;
use smallvec::SmallVec;
use std::ops::{ControlFlow, Range};
use std::sync::OnceLock;

/// Hashes members under a seed of this process, so that no one can prepare members that collide.
pub fn hash(member: Element<'_>) -> u64 {
    static HASHER: OnceLock<KeyHasher> = OnceLock::new();
    let hasher = HASHER.get_or_init(|| KeyHasher::with_seed(Random::from_entropy().next_u64()));
    match member {
        Element::Bytes(text) => hasher.hash(text),
        Element::Int(value) => hasher.hash(&value.to_le_bytes()),
    }
}

/// What the index keeps of a hash.
fn short(hash: u64) -> u32 {
    (hash >> 32) as u32
}

#[derive(Clone, Default)]
pub struct LargeZset {
    tree: Tree,
    index: Index,
    /// To Redis it is still a listpack.
    pub(super) is_listpack: bool,
}

/// A member that was found.
#[derive(Clone, Copy, Debug)]
pub struct Holding {
    leaf: u32,
    found: Found,
    hash: u32,
}

impl Holding {
    pub fn score(&self) -> f64 {
        self.found.score
    }
}

impl LargeZset {
    pub fn len(&self) -> usize {
        self.tree.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn memory_bytes(&self) -> usize {
        self.tree.memory_bytes() + self.index.memory_bytes()
    }

    /// A sorted set of pairs that come in order, each member once, with their [`hash`].
    pub fn build<'p>(pairs: impl Iterator<Item = (Pair<'p>, u64)>, is_listpack: bool) -> Self {
        let mut builder = Builder::new();
        let links: Vec<(u32, u32)> =
            pairs.map(|(pair, hash)| (short(hash), builder.push(pair))).collect();
        let index = Index::build(links.into_iter());
        LargeZset { tree: builder.finish(), index, is_listpack }
    }

    #[inline]
    pub fn find(&self, member: Element<'_>) -> Option<Holding> {
        self.find_hashed(member, hash(member))
    }

    /// As [`LargeZset::find`], for a member whose [`hash`] is at hand.
    pub fn find_hashed(&self, member: Element<'_>, hash: u64) -> Option<Holding> {
        let (hash, wanted) = (short(hash), Stored::new(member));
        self.index.leaves(hash).find_map(|leaf| {
            let run = self.tree.run(leaf);
            prefetch_bytes(run);
            let found = entry::find(run, &wanted)?;
            Some(Holding { leaf, found, hash })
        })
    }

    pub fn rank_of(&self, holding: &Holding) -> usize {
        self.tree.rank_in(holding.leaf, holding.found.index)
    }

    /// How many members stand before a point.
    pub fn rank(&self, probe: &Probe<'_>) -> usize {
        self.tree.rank(probe)
    }

    /// Adds a pair whose member is not there yet.
    pub fn insert(&mut self, pair: Pair<'_>) {
        let pair = self.normal(pair);
        let hash = short(hash(pair.member));
        let leaf = self.tree.insert(pair);
        self.index.add(hash, leaf);
        self.split(leaf);
    }

    /// Gives a member another score.
    pub fn rescore(&mut self, holding: Holding, pair: Pair<'_>) {
        let pair = self.normal(pair);
        let Holding { leaf, found, hash } = holding;
        let target = self.tree.rescore(leaf, found, pair);
        if target != leaf {
            self.index.relocate(hash, leaf, target);
            if self.tree.count_in(leaf) == 0 {
                // It goes first: a split may ask every leaf for its first entry.
                self.rebalance(leaf);
                return self.split(target);
            }
            self.split(target);
            return self.rebalance(leaf);
        }
        self.split(leaf);
    }

    fn normal<'p>(&self, pair: Pair<'p>) -> Pair<'p> {
        if self.is_listpack { pair.as_in_listpack() } else { pair }
    }

    pub fn remove(&mut self, holding: Holding) {
        let Holding { leaf, found, hash } = holding;
        self.tree.remove(leaf, found);
        self.index.remove(hash, leaf);
        self.rebalance(leaf);
    }

    /// Removes a range of ranks, which lies inside the set.
    pub fn remove_range(&mut self, ranks: Range<usize>) {
        let mut left = ranks.len();
        while left > 0 {
            let ranks = ranks.start..ranks.start + left;
            let LargeZset { tree, index, .. } = self;
            let (leaf, count) =
                tree.remove_some(ranks, |leaf, pair| index.remove(short(hash(pair.member)), leaf));
            left -= count;
            self.rebalance(leaf);
        }
    }

    /// Cuts a leaf that is too long, and its parts, until none is.
    fn split(&mut self, leaf: u32) {
        if let Some(moved) = self.tree.split(leaf) {
            self.follow(moved);
            self.split(moved.from);
            self.split(moved.to);
        }
    }

    fn rebalance(&mut self, leaf: u32) {
        if let Some(moved) = self.tree.rebalance(leaf) {
            self.follow(moved);
        }
    }

    /// Lets the index know where entries have gone.
    fn follow(&mut self, moved: Moved) {
        let Moved { from, to, count } = moved;
        let before = self.tree.count_in(to) - count;
        let moved = self.tree.entries(to).skip_entries(before);
        let hashes: SmallVec<[u32; 64]> = moved.map(|pair| short(hash(pair.member))).collect();
        // Each is somewhere else in memory: it is asked for before any is waited for.
        hashes.iter().for_each(|hash| self.index.prefetch(*hash));
        hashes.iter().for_each(|hash| self.index.relocate(*hash, from, to));
    }

    pub fn each_in<'z>(
        &'z self,
        ranks: Range<usize>,
        visit: impl FnMut(Pair<'z>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        self.tree.each_in(ranks, visit)
    }

    pub fn each_from<'z>(
        &'z self,
        start: &Probe<'_>,
        visit: impl FnMut(Pair<'z>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        self.tree.each_from(start, visit)
    }

    pub fn each_in_reverse<'z>(
        &'z self,
        ranks: Range<usize>,
        visit: impl FnMut(Pair<'z>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        self.tree.each_in_reverse(ranks, visit)
    }

    /// One step of ZSCAN: visits about `count` members from the cursor on, in the order of their
    /// hashes. The next cursor; 0 at the end.
    pub fn scan(&self, cursor: u64, count: usize, mut visit: impl FnMut(Pair<'_>)) -> u64 {
        let Ok(from) = u32::try_from(cursor) else { return 0 };
        // Members of one hash in one leaf have a link each, but are met at once.
        let mut last = None;
        let next = self.index.walk(from, count, |hash_met, leaf| {
            if last == Some((hash_met, leaf)) {
                return;
            }
            last = Some((hash_met, leaf));
            let own = self.tree.entries(leaf);
            own.filter(|pair| short(hash(pair.member)) == hash_met).for_each(&mut visit);
        });
        next.map_or(0, u64::from)
    }

    /// Panics unless tree and index agree and the tree is in shape.
    #[cfg(test)]
    pub(super) fn check(&self) {
        self.tree.check();
        self.index.check();
        assert_eq!(self.index.len(), self.len());
        let _ = self.each_in(0..self.len(), |pair| {
            let holding = self.find(pair.member).expect("every member is found");
            assert_eq!(holding.score().to_bits(), pair.score.to_bits());
            ControlFlow::Continue(())
        });
    }
}
