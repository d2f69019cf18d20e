//! The sorted set's room: what a command can do with one, whichever form it has. A small one is
//! packed into its table entry, a large one is a tree and an index of its own.

pub mod combine;
mod entry;
mod index;
mod large;
mod limits;
mod packed;
mod range;
mod score;
pub mod stored;
#[cfg(test)]
mod tests;
mod tree;

use crate::types::blob::Blob;
use crate::types::element::Stored;
use std::ops::{ControlFlow, Range};

pub use crate::types::element::Element;
use entry::Entries;
pub use entry::Pair;
pub use large::LargeZset;
pub use limits::{Extent, PACKED_BYTES_MAX, ZsetLimits, fits_packed};
pub use range::{LexBound, LexRange, ScoreBound, ScoreRange};

use range::Probe;

/// From the lowest score up, or from the highest down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    Forward,
    Reverse,
}

/// Where a member stands, from the lowest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ranked {
    pub rank: usize,
    pub score: f64,
}

/// A sorted set to read.
#[derive(Clone, Copy)]
pub enum ZsetRef<'a> {
    Packed(&'a [u8]),
    Large(&'a LargeZset),
}

impl<'a> ZsetRef<'a> {
    /// Where it lies: the same for the sorted set of the same key, and for no other while it lives.
    pub(crate) fn address(self) -> usize {
        match self {
            ZsetRef::Packed(bytes) => bytes.as_ptr().addr(),
            ZsetRef::Large(zset) => std::ptr::from_ref(zset).addr(),
        }
    }

    pub fn len(self) -> usize {
        match self {
            ZsetRef::Packed(bytes) => packed::len(bytes),
            ZsetRef::Large(zset) => zset.len(),
        }
    }

    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Whether Redis would keep it as a listpack.
    pub fn is_listpack(self) -> bool {
        match self {
            ZsetRef::Packed(_) => true,
            ZsetRef::Large(zset) => zset.is_listpack,
        }
    }

    pub fn encoding(self) -> &'static str {
        if self.is_listpack() { "listpack" } else { "skiplist" }
    }

    /// About how many bytes its members and scores take.
    pub fn size_bytes(self) -> usize {
        match self {
            ZsetRef::Packed(bytes) => bytes.len(),
            ZsetRef::Large(zset) => zset.memory_bytes(),
        }
    }

    #[inline]
    pub fn score(self, member: &[u8]) -> Option<f64> {
        self.score_of(Element::parse(member))
    }

    #[inline]
    pub fn score_of(self, member: Element<'_>) -> Option<f64> {
        match self {
            ZsetRef::Packed(bytes) => {
                packed::find(bytes, &Stored::new(member)).map(|found| found.score)
            }
            ZsetRef::Large(zset) => zset.find(member).map(|holding| holding.score()),
        }
    }

    /// As [`ZsetRef::score_of`], for a member whose hash may be at hand.
    fn score_hashed(self, member: Element<'_>, hash: u64) -> Option<f64> {
        match self {
            ZsetRef::Packed(_) => self.score_of(member),
            ZsetRef::Large(zset) => zset.find_hashed(member, hash).map(|found| found.score()),
        }
    }

    pub fn ranked(self, member: &[u8]) -> Option<Ranked> {
        let member = Element::parse(member);
        match self {
            ZsetRef::Packed(bytes) => {
                let found = packed::find(bytes, &Stored::new(member))?;
                Some(Ranked { rank: found.index, score: found.score })
            }
            ZsetRef::Large(zset) => {
                let holding = zset.find(member)?;
                Some(Ranked { rank: zset.rank_of(&holding), score: holding.score() })
            }
        }
    }

    fn rank(self, probe: &Probe<'_>) -> usize {
        match self {
            ZsetRef::Packed(bytes) => entry::spot(packed::run(bytes), probe).index,
            ZsetRef::Large(zset) => zset.rank(probe),
        }
    }

    fn ranks(self, [start, end]: [Probe<'_>; 2]) -> Range<usize> {
        let (start, end) = (self.rank(&start), self.rank(&end));
        start..end.max(start)
    }

    /// The ranks of the members whose scores lie in a range.
    pub fn by_score(self, range: &ScoreRange) -> Range<usize> {
        self.ranks(Probe::scores(range))
    }

    /// The ranks of the members that lie in a range, if all have one score. If not, there is no
    /// right answer.
    /// COMPAT: a small one is walked from the end that the direction begins with; test
    /// `ranges_of_members_with_several_scores`.
    pub fn by_lex(self, range: &LexRange<'_>, direction: Direction) -> Range<usize> {
        if range.is_void() || self.is_empty() {
            return 0..0;
        }
        if !self.is_listpack() {
            return self.ranks([Probe::LexMin(range.min), Probe::LexMax(range.max)]);
        }
        let len = self.len();
        let (first, last) = (self.at(0).member, self.at(len - 1).member);
        if range.min.is_behind(last) || !range.max.is_ahead(first) {
            return 0..0;
        }
        let (mut start, mut count) = (0, 0);
        let _ = self.each(0..len, direction, |pair| {
            let (behind, ahead) =
                (range.min.is_behind(pair.member), range.max.is_ahead(pair.member));
            // Once inside, only the far end is looked at.
            let (is_before, is_behind) = match direction {
                Direction::Forward => (behind, !ahead),
                Direction::Reverse => (!ahead, behind),
            };
            if count == 0 && is_before {
                start += 1;
                return ControlFlow::Continue(());
            }
            if is_behind {
                return ControlFlow::Break(());
            }
            count += 1;
            ControlFlow::Continue(())
        });
        match direction {
            Direction::Forward => start..start + count,
            Direction::Reverse => len - start - count..len - start,
        }
    }

    /// The pair of this rank, which exists.
    pub fn at(self, rank: usize) -> Pair<'a> {
        let mut found = None;
        let _ = self.each(rank..rank + 1, Direction::Forward, |pair| {
            found = Some(pair);
            ControlFlow::Break(())
        });
        found.expect("the caller vouches for the rank")
    }

    /// Visits a range of ranks, which is counted from the lowest and lies inside the set, in
    /// either direction, until told to stop.
    #[inline]
    pub fn each(
        self,
        ranks: Range<usize>,
        direction: Direction,
        mut visit: impl FnMut(Pair<'a>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        match (self, direction) {
            (ZsetRef::Packed(bytes), Direction::Forward) => {
                let entries = packed::entries(bytes).skip_entries(ranks.start);
                entries.take(ranks.len()).try_for_each(visit)
            }
            (ZsetRef::Packed(bytes), Direction::Reverse) => {
                let entries = packed::entries(bytes).skip_entries(ranks.start);
                let pairs: smallvec::SmallVec<[Pair<'a>; 32]> = entries.take(ranks.len()).collect();
                pairs.into_iter().rev().try_for_each(&mut visit)
            }
            (ZsetRef::Large(zset), Direction::Forward) => zset.each_in(ranks, visit),
            (ZsetRef::Large(zset), Direction::Reverse) => zset.each_in_reverse(ranks, visit),
        }
    }

    /// Visits the members whose scores lie in a range, from the lowest up, until told to stop.
    #[inline]
    pub fn each_scored(
        self,
        range: &ScoreRange,
        mut visit: impl FnMut(Pair<'a>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let [start, end] = Probe::scores(range);
        let mut is_over = false;
        let within = |pair: Pair<'a>| {
            is_over = !end.is_past_score(pair.score, || pair.member);
            if is_over { ControlFlow::Break(()) } else { visit(pair) }
        };
        let walked = match self {
            ZsetRef::Packed(bytes) => {
                let run = packed::run(bytes);
                Entries::new(&run[entry::spot(run, &start).at..]).try_for_each(within)
            }
            ZsetRef::Large(zset) => zset.each_from(&start, within),
        };
        if is_over { ControlFlow::Continue(()) } else { walked }
    }

    /// As [`ZsetRef::each`], without a stop.
    #[inline]
    pub fn for_each(
        self,
        ranks: Range<usize>,
        direction: Direction,
        mut visit: impl FnMut(Pair<'a>),
    ) {
        let _ = self.each(ranks, direction, |pair| {
            visit(pair);
            ControlFlow::Continue(())
        });
    }

    /// One step of ZSCAN: about `count` members from the cursor on. The next cursor; 0 at the end.
    /// What Redis keeps as a listpack is shown whole, so that its members can't be missed when it
    /// becomes something else.
    pub fn scan(self, cursor: u64, count: usize, mut visit: impl FnMut(Pair<'_>)) -> u64 {
        match self {
            ZsetRef::Large(zset) if !zset.is_listpack => zset.scan(cursor, count, visit),
            _ => {
                self.for_each(0..self.len(), Direction::Forward, &mut visit);
                0
            }
        }
    }
}

/// A sorted set from which is removed. What adds may need another form: see [`stored`].
pub enum ZsetMut<'b, B: Blob> {
    Packed(&'b mut B),
    Large(&'b mut LargeZset),
}

impl<B: Blob> ZsetMut<'_, B> {
    pub fn as_ref(&self) -> ZsetRef<'_> {
        match self {
            ZsetMut::Packed(blob) => ZsetRef::Packed(blob.bytes()),
            ZsetMut::Large(zset) => ZsetRef::Large(zset),
        }
    }

    pub fn len(&self) -> usize {
        self.as_ref().len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn remove(&mut self, member: &[u8]) -> bool {
        let member = Element::parse(member);
        match self {
            ZsetMut::Packed(blob) => {
                let found = packed::find(blob.bytes(), &Stored::new(member));
                found.map(|found| packed::remove(*blob, found)).is_some()
            }
            ZsetMut::Large(zset) => {
                let holding = zset.find(member);
                holding.map(|holding| zset.remove(holding)).is_some()
            }
        }
    }

    /// Removes a range of ranks, which lies inside the set.
    pub fn remove_range(&mut self, ranks: Range<usize>) {
        if ranks.is_empty() {
            return;
        }
        match self {
            ZsetMut::Packed(blob) => packed::remove_range(*blob, ranks),
            ZsetMut::Large(zset) => zset.remove_range(ranks),
        }
    }
}

/// What became of a member that was to be added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Upsert {
    /// It is as it was.
    Left,
    Added,
    /// It has another score.
    Moved,
}
