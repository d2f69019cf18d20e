//! Reading entries in order, from either end.

use super::super::entry::{self, Entries, Pair};
use super::super::range::Probe;
use super::{NONE, Tree};
use crate::store::raw::prefetch::prefetch_bytes;
use smallvec::SmallVec;
use std::ops::{ControlFlow, Range};

impl Tree {
    /// Asks for a leaf that is read next: it is on its way while this one is read.
    #[inline]
    fn prefetch(&self, leaf: u32) {
        if leaf != NONE {
            prefetch_bytes(self.run(leaf));
        }
    }

    /// Visits the entries of a range of ranks in order, until told to stop. The range lies inside
    /// the tree.
    pub fn each_in<'t>(
        &'t self,
        ranks: Range<usize>,
        mut visit: impl FnMut(Pair<'t>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        if ranks.is_empty() {
            return ControlFlow::Continue(());
        }
        let (mut leaf, mut index) =
            if ranks.start == 0 { (self.first, 0) } else { self.select(ranks.start) };
        let mut left = ranks.len();
        while left > 0 && leaf != NONE {
            let next = self.leaves.at(leaf).next;
            if self.count_in(leaf) - index < left {
                self.prefetch(next);
            }
            for pair in self.entries(leaf).skip_entries(index).take(left) {
                visit(pair)?;
                left -= 1;
            }
            (leaf, index) = (next, 0);
        }
        ControlFlow::Continue(())
    }

    /// Visits the entries from a point on in order, until told to stop.
    pub fn each_from<'t>(
        &'t self,
        start: &Probe<'_>,
        mut visit: impl FnMut(Pair<'t>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let mut leaf = self.descend(start, |_, _| {});
        let mut rest = &self.run(leaf)[entry::spot(self.run(leaf), start).at..];
        loop {
            leaf = self.leaves.at(leaf).next;
            self.prefetch(leaf);
            Entries::new(rest).try_for_each(&mut visit)?;
            if leaf == NONE {
                return ControlFlow::Continue(());
            }
            rest = self.run(leaf);
        }
    }

    /// As [`Tree::each_in`], from the end of the range to its start.
    pub fn each_in_reverse<'t>(
        &'t self,
        ranks: Range<usize>,
        mut visit: impl FnMut(Pair<'t>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        if ranks.is_empty() {
            return ControlFlow::Continue(());
        }
        let (mut leaf, last) = self.select(ranks.end - 1);
        let mut end = last + 1;
        let mut left = ranks.len();
        loop {
            let (run, before) = (self.run(leaf), self.leaves.at(leaf).prev);
            if end < left {
                self.prefetch(before);
            }
            // Entries are read forwards only.
            let mut offsets = SmallVec::<[u32; 128]>::new();
            let mut at = 0;
            for _ in 0..end {
                offsets.push(at as u32);
                at += entry::entry_bytes(&run[at..]);
            }
            for at in offsets.iter().rev().take(left) {
                visit(entry::decode(&run[*at as usize..]).0)?;
            }
            left -= left.min(end);
            leaf = before;
            if left == 0 || leaf == NONE {
                return ControlFlow::Continue(());
            }
            end = self.leaves.at(leaf).count as usize;
        }
    }
}
