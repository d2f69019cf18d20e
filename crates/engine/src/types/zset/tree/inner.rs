//! The inner nodes: for each child how many entries lie below it and where it begins, each fact in
//! an array of its own so that a search touches few cache lines.

use super::super::range::Probe;
use super::NONE;
use crate::types::capacity::{allocated_bytes, allocated_for};
use crate::types::cow_vec::{self, ARC_COUNTS_BYTES, Part};
use crate::types::element::Element;
use std::cmp::Ordering;
use std::sync::Arc;

pub const FANOUT: usize = 64;
/// A node with fewer children looks for a neighbour to join.
pub const FANOUT_MIN: usize = FANOUT / 4;
/// The most children that joining may leave.
pub const FANOUT_JOINED_MAX: usize = FANOUT * 3 / 4;
/// Bulk building leaves some room.
pub const FANOUT_BUILT: usize = FANOUT * 15 / 16;

/// What a node knows of one child.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Child {
    /// A leaf below level 1, another node above.
    pub id: u32,
    pub count: u64,
    pub start: Start,
}

/// Where a subtree begins: the first entry of its first leaf, by its score and the first bytes of
/// its member.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Start {
    pub leaf: u32,
    pub score: f64,
    pub prefix: u64,
}

#[derive(Clone)]
pub struct Inner {
    pub parent: u32,
    /// 1 for a node of leaves.
    pub level: u8,
    len: u8,
    scores: [f64; FANOUT],
    prefixes: [u64; FANOUT],
    counts: [u64; FANOUT],
    ids: [u32; FANOUT],
    leaves: [u32; FANOUT],
}

impl Part for Inner {
    fn elements(&self) -> usize {
        self.len()
    }
}

impl Inner {
    pub fn new(level: u8) -> Self {
        Inner {
            parent: NONE,
            level,
            len: 0,
            scores: [0.0; FANOUT],
            prefixes: [0; FANOUT],
            counts: [0; FANOUT],
            ids: [NONE; FANOUT],
            leaves: [NONE; FANOUT],
        }
    }

    #[inline]
    pub fn len(&self) -> usize {
        usize::from(self.len)
    }

    #[inline]
    pub fn id(&self, at: usize) -> u32 {
        self.ids[at]
    }

    #[inline]
    pub fn start(&self, at: usize) -> Start {
        Start { leaf: self.leaves[at], score: self.scores[at], prefix: self.prefixes[at] }
    }

    pub fn child(&self, at: usize) -> Child {
        Child { id: self.ids[at], count: self.counts[at], start: self.start(at) }
    }

    #[inline]
    pub fn position(&self, id: u32) -> usize {
        let own = &self.ids[..self.len()];
        own.iter().position(|child| *child == id).expect("a child is known to its parent")
    }

    /// How many entries lie below the first `at` children.
    #[inline]
    pub fn count_before(&self, at: usize) -> u64 {
        self.counts[..at].iter().sum()
    }

    pub fn count(&self) -> u64 {
        self.count_before(self.len())
    }

    #[inline]
    pub fn change_count(&mut self, at: usize, by: i64) {
        self.counts[at] = self.counts[at].wrapping_add_signed(by);
    }

    pub fn set_count(&mut self, at: usize, count: u64) {
        self.counts[at] = count;
    }

    pub fn set_start(&mut self, at: usize, start: Start) {
        (self.leaves[at], self.scores[at], self.prefixes[at]) =
            (start.leaf, start.score, start.prefix);
    }

    /// The last child that begins before a point; the first if there is none. `first` reads the
    /// first member of a leaf, for starts that are much alike.
    #[inline]
    pub fn descend<'t>(&self, probe: &Probe<'_>, first: impl Fn(u32) -> Element<'t>) -> usize {
        let scores = &self.scores[1..self.len().max(1)];
        // To look at all is no more than a few vectors, and asks for all their lines at once.
        let (below, not_above) = match probe {
            Probe::Pair(pair) => (
                scores.iter().filter(|score| **score < pair.score).count(),
                scores.iter().filter(|score| **score <= pair.score).count(),
            ),
            Probe::Below(value) => return scores.iter().filter(|score| **score < *value).count(),
            Probe::NotAbove(value) => {
                return scores.iter().filter(|score| **score <= *value).count();
            }
            Probe::LexMin(_) | Probe::LexMax(_) => (0, scores.len()),
        };
        let (mut low, mut high) = (below + 1, not_above + 1);
        if low < high {
            let prefix = probe.prefix();
            let is_past = |at: usize| match self.prefixes[at].cmp(&prefix) {
                Ordering::Less if prefix != 0 => true,
                Ordering::Greater if prefix != 0 => false,
                _ => probe.is_past_score(self.scores[at], || first(self.leaves[at])),
            };
            while low < high {
                let middle = (low + high) / 2;
                if is_past(middle) {
                    low = middle + 1;
                } else {
                    high = middle;
                }
            }
        }
        low - 1
    }

    /// The child that holds the entry `rank` of this subtree, and its rank there.
    #[inline]
    pub fn select(&self, mut rank: u64) -> (usize, u64) {
        for (at, count) in self.counts[..self.len() - 1].iter().enumerate() {
            if rank < *count {
                return (at, rank);
            }
            rank -= count;
        }
        (self.len() - 1, rank)
    }

    /// There must be room.
    pub fn insert(&mut self, at: usize, child: Child) {
        let len = self.len();
        self.scores.copy_within(at..len, at + 1);
        self.prefixes.copy_within(at..len, at + 1);
        self.counts.copy_within(at..len, at + 1);
        self.ids.copy_within(at..len, at + 1);
        self.leaves.copy_within(at..len, at + 1);
        self.len += 1;
        self.ids[at] = child.id;
        self.counts[at] = child.count;
        self.set_start(at, child.start);
    }

    pub fn push(&mut self, child: Child) {
        self.insert(self.len(), child);
    }

    pub fn remove(&mut self, at: usize) {
        let len = self.len();
        self.scores.copy_within(at + 1..len, at);
        self.prefixes.copy_within(at + 1..len, at);
        self.counts.copy_within(at + 1..len, at);
        self.ids.copy_within(at + 1..len, at);
        self.leaves.copy_within(at + 1..len, at);
        self.len -= 1;
    }

    /// Moves the children from `at` on into a new node.
    pub fn cut(&mut self, at: usize) -> Inner {
        let mut right = Inner::new(self.level);
        (at..self.len()).for_each(|child| right.push(self.child(child)));
        self.len = at as u8;
        right
    }
}

/// All inner nodes of a tree, by number.
#[derive(Clone, Default)]
pub struct Inners {
    /// Shared with clones of the tree until one changes them.
    nodes: Vec<Arc<Inner>>,
    free: Vec<u32>,
}

impl Inners {
    #[inline]
    pub fn at(&self, id: u32) -> &Inner {
        &self.nodes[id as usize]
    }

    #[inline]
    pub fn at_mut(&mut self, id: u32) -> &mut Inner {
        cow_vec::to_change(&mut self.nodes[id as usize])
    }

    pub fn add(&mut self, node: Inner) -> u32 {
        let node = Arc::new(node);
        if let Some(id) = self.free.pop() {
            self.nodes[id as usize] = node;
            return id;
        }
        self.nodes.push(node);
        (self.nodes.len() - 1) as u32
    }

    pub fn free(&mut self, id: u32) {
        self.free.push(id);
    }

    pub fn memory_bytes(&self) -> usize {
        self.nodes.len() * allocated_bytes(ARC_COUNTS_BYTES + size_of::<Inner>())
            + allocated_for::<Arc<Inner>>(self.nodes.capacity())
            + allocated_for::<u32>(self.free.capacity())
    }
}
