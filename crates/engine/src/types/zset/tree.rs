//! A B+tree that counts: entries in order of score and member, packed into leaves; above them nodes
//! that know how many entries lie below each child. Rank, selection, ranges, insertion and removal
//! are each one way down or up the tree.
//!
//! Numbers stand for nodes. Who must know which leaf a member is in (`index.rs`) is notified of
//! each leaf that was cut or joined.

mod build;
#[cfg(test)]
mod check;
mod inner;
mod leaf;
mod shape;
mod walk;

pub use build::Builder;
use inner::{Inner, Inners, Start};
use leaf::{Leaf, Leaves};
pub use shape::Moved;

use super::entry::{self, Entries, Entry, Found, Pair, prefix};
use super::range::Probe;
use crate::store::raw::prefetch::prefetch_bytes;
use std::ops::Range;

/// The number of no node.
const NONE: u32 = u32::MAX;

#[derive(Clone)]
pub struct Tree {
    leaves: Leaves,
    inners: Inners,
    /// A leaf if `height` is 0, else an inner node of that level.
    root: u32,
    height: u8,
    first: u32,
    last: u32,
    len: usize,
}

impl Default for Tree {
    fn default() -> Self {
        let mut leaves = Leaves::default();
        let root = leaves.add(Leaf::new());
        let inners = Inners::default();
        Tree { leaves, inners, root, height: 0, first: root, last: root, len: 0 }
    }
}

impl Tree {
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn memory_bytes(&self) -> usize {
        self.leaves.memory_bytes(&self.inners)
    }

    /// The entries of one leaf.
    pub fn entries(&self, leaf: u32) -> Entries<'_> {
        Entries::new(&self.leaves.at(leaf).run)
    }

    /// How many entries a leaf has.
    pub fn count_in(&self, leaf: u32) -> usize {
        self.leaves.at(leaf).count as usize
    }

    pub fn run(&self, leaf: u32) -> &[u8] {
        &self.leaves.at(leaf).run
    }

    /// The leaf where a point lies. `visit` sees each node on the way, and which child was taken.
    #[inline]
    fn descend(&self, probe: &Probe<'_>, mut visit: impl FnMut(&Inner, usize)) -> u32 {
        let mut id = self.root;
        for _ in 0..self.height {
            let node = self.inners.at(id);
            let at = node.descend(probe, |leaf| self.leaves.at(leaf).first().member);
            visit(node, at);
            id = node.id(at);
        }
        id
    }

    /// How many entries stand before a point.
    pub fn rank(&self, probe: &Probe<'_>) -> usize {
        let mut rank = 0;
        let leaf = self.descend(probe, |node, at| rank += node.count_before(at) as usize);
        rank + entry::spot(self.run(leaf), probe).index
    }

    /// How many entries stand before the entry `index` of a leaf.
    pub fn rank_in(&self, leaf: u32, index: usize) -> usize {
        let (mut child, mut parent) = (leaf, self.leaves.at(leaf).parent);
        let mut rank = index;
        while parent != NONE {
            let node = self.inners.at(parent);
            rank += node.count_before(node.position(child)) as usize;
            (child, parent) = (parent, node.parent);
        }
        rank
    }

    /// The leaf of the entry `rank`, which exists, and its index there.
    fn select(&self, rank: usize) -> (u32, usize) {
        let (mut id, mut rank) = (self.root, rank as u64);
        for _ in 0..self.height {
            let node = self.inners.at(id);
            let (at, left) = node.select(rank);
            (id, rank) = (node.id(at), left);
        }
        (id, rank as usize)
    }

    /// Puts a pair that is not there yet in its place; the leaf that it went to.
    pub fn insert(&mut self, pair: Pair<'_>) -> u32 {
        let probe = Probe::Pair(pair);
        let leaf = self.descend(&probe, |_, _| {});
        self.put_in(leaf, &probe, &Entry::new(pair));
        self.len += 1;
        self.change_counts(leaf, 1);
        leaf
    }

    /// Puts an entry into a leaf; those above do not count it yet.
    fn put_in(&mut self, leaf: u32, probe: &Probe<'_>, entry: &Entry<'_>) {
        let spot = entry::spot(self.run(leaf), probe);
        self.leaves.splice(leaf, (spot.at, 0), &entry.pieces());
        self.leaves.at_mut(leaf).count += 1;
        if spot.index == 0 {
            self.start_moved(leaf);
        }
    }

    /// Gives the entry at `found` of a leaf another score; the leaf that it is in then. What the
    /// shapes of both ask for is left to [`Tree::split`] and [`Tree::rebalance`].
    pub fn rescore(&mut self, leaf: u32, found: Found, pair: Pair<'_>) -> u32 {
        let (probe, entry) = (Probe::Pair(pair), Entry::new(pair));
        let target = self.descend(&probe, |_, _| {});
        if target == leaf {
            self.rescore_within(leaf, found, (&probe, &entry));
            return leaf;
        }
        prefetch_bytes(self.run(target));
        self.leaves.splice(leaf, (found.at, found.bytes), &[]);
        self.leaves.at_mut(leaf).count -= 1;
        if found.at == 0 && self.leaves.at(leaf).count > 0 {
            self.start_moved(leaf);
        }
        self.put_in(target, &probe, &entry);
        self.move_count(leaf, target);
        target
    }

    fn rescore_within(&mut self, leaf: u32, found: Found, to: (&Probe<'_>, &Entry<'_>)) {
        let (probe, entry) = to;
        // The place is looked for with the old entry still there, on whose far side it may be.
        let spot = entry::spot(self.run(leaf), probe);
        let bytes = entry.bytes();
        self.leaves.splice(leaf, (found.at, found.bytes), &entry.pieces());
        let run = &mut self.leaves.at_mut(leaf).run;
        if spot.at < found.at {
            run[spot.at..found.at + bytes].rotate_right(bytes);
        } else if spot.at > found.end() {
            let end = spot.at - found.bytes + bytes;
            run[found.at..end].rotate_left(bytes);
        }
        if found.at == 0 || spot.at == 0 {
            self.start_moved(leaf);
        }
    }

    /// One entry has gone from a leaf to another: those above count on, up to the first that has
    /// both below it.
    fn move_count(&mut self, from: u32, to: u32) {
        let mut children = [from, to];
        let mut parents = children.map(|leaf| self.leaves.at(leaf).parent);
        while parents[0] != NONE {
            for (parent, (child, by)) in parents.iter().zip(children.iter().zip([-1, 1])) {
                let node = self.inners.at_mut(*parent);
                node.change_count(node.position(*child), by);
            }
            if parents[0] == parents[1] {
                return;
            }
            children = parents;
            parents = parents.map(|node| self.inners.at(node).parent);
        }
    }

    /// Removes entries of one leaf; the leaf may be gone afterwards.
    fn take_out(&mut self, leaf: u32, range: Range<usize>) {
        let run = &self.leaves.at(leaf).run;
        let start = entry::offset(run, range.start);
        let bytes = entry::offset(&run[start..], range.len());
        self.take_out_bytes(leaf, (start, bytes), range.len());
    }

    fn take_out_bytes(&mut self, leaf: u32, (at, bytes): (usize, usize), count: usize) {
        self.leaves.splice(leaf, (at, bytes), &[]);
        self.leaves.at_mut(leaf).count -= count as u32;
        self.len -= count;
        self.change_counts(leaf, -(count as i64));
        if at == 0 && self.leaves.at(leaf).count > 0 {
            self.start_moved(leaf);
        }
    }

    /// Removes the entry at `found` of a leaf. What the leaf's shape asks for is left to
    /// [`Tree::rebalance`].
    pub fn remove(&mut self, leaf: u32, found: Found) {
        self.take_out_bytes(leaf, (found.at, found.bytes), 1);
    }

    /// Removes as many entries from `rank` on as one leaf holds, at most `count`: which leaf that
    /// was and how many. `visit` sees them first.
    pub fn remove_some(
        &mut self,
        ranks: Range<usize>,
        visit: impl FnMut(u32, Pair<'_>),
    ) -> (u32, usize) {
        let (leaf, index) = self.select(ranks.start);
        let count = ranks.len().min(self.leaves.at(leaf).count as usize - index);
        let doomed = self.entries(leaf).skip_entries(index).take(count);
        let mut visit = visit;
        doomed.for_each(|pair| visit(leaf, pair));
        self.take_out(leaf, index..index + count);
        (leaf, count)
    }

    fn change_counts(&mut self, leaf: u32, by: i64) {
        let (mut child, mut parent) = (leaf, self.leaves.at(leaf).parent);
        while parent != NONE {
            let node = self.inners.at_mut(parent);
            let at = node.position(child);
            node.change_count(at, by);
            (child, parent) = (parent, node.parent);
        }
    }

    fn start_of(&self, leaf: u32) -> Start {
        let first = self.leaves.at(leaf).first();
        Start { leaf, score: first.score, prefix: prefix(first.member) }
    }

    /// The first entry of a leaf is another one.
    fn start_moved(&mut self, leaf: u32) {
        let start = self.start_of(leaf);
        let parent = self.leaves.at(leaf).parent;
        self.lift_start(leaf, parent, start);
    }

    /// Tells `parent`, and those above it where it matters, where `child` begins.
    fn lift_start(&mut self, child: u32, parent: u32, start: Start) {
        let (mut child, mut parent) = (child, parent);
        while parent != NONE {
            let node = self.inners.at_mut(parent);
            let at = node.position(child);
            node.set_start(at, start);
            if at > 0 {
                return;
            }
            (child, parent) = (parent, node.parent);
        }
    }
}
