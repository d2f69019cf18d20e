//! The leaves of the tree: runs of entries, chained in order, each knowing its parent. They live in
//! an arena of chunks, which a tree shares with its clones until one changes them.

use super::super::entry::{self, Pair};
use super::{Inners, NONE};
use crate::types::blob::Blob;
use crate::types::capacity::{allocated_bytes, allocated_for, fit_bytes};
use crate::types::cow_vec::{CowVec, Part};

/// A leaf is cut when it is longer than this and holds more than one entry; the last one earlier,
/// for it is filled in order more often than not.
pub const LEAF_BYTES_MAX: usize = 512;
/// A leaf shorter than this looks for a neighbour to join.
pub const LEAF_BYTES_MIN: usize = LEAF_BYTES_MAX / 4;
/// The longest leaf that joining may make.
pub const JOINED_BYTES_MAX: usize = LEAF_BYTES_MAX * 3 / 4;
/// Building in order leaves some room, so that the first insertions elsewhere cut nothing.
pub const BUILT_BYTES_MAX: usize = LEAF_BYTES_MAX * 7 / 8;

pub struct Leaf {
    pub run: Vec<u8>,
    pub parent: u32,
    pub prev: u32,
    pub next: u32,
    pub count: u32,
}

impl Clone for Leaf {
    /// With the same room, so that what was counted of the one is right for the other.
    fn clone(&self) -> Self {
        let mut run = Vec::with_capacity(self.run.capacity());
        run.extend_from_slice(&self.run);
        Leaf { run, ..*self }
    }
}

/// Stands where a leaf was taken away.
impl Default for Leaf {
    fn default() -> Self {
        Leaf::new()
    }
}

impl Part for Leaf {
    fn elements(&self) -> usize {
        self.count as usize
    }
}

impl Leaf {
    pub fn new() -> Self {
        Leaf { run: Vec::new(), parent: NONE, prev: NONE, next: NONE, count: 0 }
    }

    pub fn first(&self) -> Pair<'_> {
        entry::decode(&self.run).0
    }

    pub fn is_overfull(&self) -> bool {
        let bytes_max = if self.next == NONE { BUILT_BYTES_MAX } else { LEAF_BYTES_MAX };
        self.run.len() > bytes_max && self.count > 1
    }

    /// The entry boundary nearest to the middle that leaves neither side empty.
    pub fn middle(&self) -> entry::Spot {
        let half = self.run.len() / 2;
        let mut spot = entry::Spot { at: entry::entry_bytes(&self.run), index: 1 };
        while spot.index + 1 < self.count as usize {
            let next = spot.at + entry::entry_bytes(&self.run[spot.at..]);
            if next.abs_diff(half) >= spot.at.abs_diff(half) {
                break;
            }
            spot = entry::Spot { at: next, index: spot.index + 1 };
        }
        spot
    }

    /// The boundary before the last entry.
    pub fn before_last(&self) -> entry::Spot {
        let index = self.count as usize - 1;
        entry::Spot { at: entry::offset(&self.run, index), index }
    }
}

/// Leaves that are copied at once if they are shared: some tens of kilobytes.
const CHUNK_LEAVES: usize = 32;

/// All leaves of a tree, by number.
#[derive(Clone, Default)]
pub struct Leaves {
    leaves: CowVec<Leaf, CHUNK_LEAVES>,
    free: Vec<u32>,
    /// Room for entries in all leaves.
    run_bytes: usize,
}

impl Leaves {
    #[inline]
    pub fn at(&self, id: u32) -> &Leaf {
        &self.leaves[id as usize]
    }

    #[inline]
    pub fn at_mut(&mut self, id: u32) -> &mut Leaf {
        self.leaves.at_mut(id as usize)
    }

    pub fn add(&mut self, leaf: Leaf) -> u32 {
        self.run_bytes += allocated_bytes(leaf.run.capacity());
        if let Some(id) = self.free.pop() {
            *self.at_mut(id) = leaf;
            return id;
        }
        self.leaves.push(leaf);
        u32::try_from(self.leaves.len() - 1).expect("2^32 leaves are beyond any memory")
    }

    /// Empties a leaf, whose number may be given to another.
    pub fn free(&mut self, id: u32) {
        self.run_bytes -= allocated_bytes(self.at(id).run.capacity());
        *self.at_mut(id) = Leaf::new();
        self.free.push(id);
    }

    /// Replaces a part of a leaf's run and changes its count by as much.
    pub fn splice(&mut self, id: u32, (at, remove): (usize, usize), insert: &[&[u8]]) {
        let leaf = self.at_mut(id);
        let added: usize = insert.iter().map(|piece| piece.len()).sum();
        let before = leaf.run.capacity();
        let len = leaf.run.len() + added - remove;
        if len > before {
            leaf.run.reserve_exact(fit_bytes(len) - leaf.run.len());
        }
        Blob::splice(&mut leaf.run, at, remove, insert);
        if len < before / 2 {
            leaf.run.shrink_to(fit_bytes(len));
        }
        let after = leaf.run.capacity();
        self.run_bytes = self.run_bytes + allocated_bytes(after) - allocated_bytes(before);
    }

    /// Cuts a leaf's entries from `spot` on into a new run.
    pub fn cut(&mut self, id: u32, spot: entry::Spot) -> Leaf {
        let leaf = self.at_mut(id);
        let before = leaf.run.capacity();
        let tail = &leaf.run[spot.at..];
        let mut run = Vec::with_capacity(fit_bytes(tail.len()));
        run.extend_from_slice(tail);
        let count = leaf.count - spot.index as u32;
        leaf.run.truncate(spot.at);
        leaf.run.shrink_to(fit_bytes(spot.at));
        leaf.count = spot.index as u32;
        let after = leaf.run.capacity();
        self.run_bytes = self.run_bytes + allocated_bytes(after) - allocated_bytes(before);
        Leaf { run, count, ..Leaf::new() }
    }

    pub fn memory_bytes(&self, inners: &Inners) -> usize {
        self.run_bytes
            + self.leaves.memory_bytes()
            + allocated_for::<u32>(self.free.capacity())
            + inners.memory_bytes()
    }

    #[cfg(test)]
    pub fn check_bytes(&self) {
        let runs = self.leaves.iter().map(|leaf| allocated_bytes(leaf.run.capacity()));
        assert_eq!(self.run_bytes, runs.sum::<usize>());
    }
}
