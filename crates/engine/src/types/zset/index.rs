//! Which leaf of the tree holds a member: pairs of a hash and a leaf, eight bytes for each member,
//! and nothing of the member itself. A leaf is a few cache lines, so that looking through it for
//! the member costs less than storing the member twice.
//!
//! The pairs lie in segments, each sorted by hash and chosen by the first bits of it. A full
//! segment is cut in two, and the directory doubles when a segment has no bit left: no step is
//! larger than one segment and the directory, whatever the size. The order of hashes is the order
//! of ZSCAN, which no split disturbs.

use crate::store::raw::prefetch::prefetch_value;
use crate::types::capacity::{allocated_for, fit};
use crate::types::cow_vec::{CowVec, Part};

/// Most pairs of a segment.
const SEGMENT_PAIRS_MAX: usize = 256;
/// Segments that are copied at once if they are shared: a leaf that is cut changes dozens.
const CHUNK_SEGMENTS: usize = 4;
/// How far from the guessed place a pair is looked for, one by one, before a general search.
const GUESS_WINDOW: usize = 32;
/// The directory has a slot for this many members at most: hashes that are all alike would have it
/// grow in vain.
const SLOT_MEMBERS_MIN: usize = 8;

/// A hash above, a leaf below.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Link(u64);

impl Link {
    fn new(hash: u32, leaf: u32) -> Self {
        Link(u64::from(hash) << 32 | u64::from(leaf))
    }

    #[inline]
    fn hash(self) -> u32 {
        (self.0 >> 32) as u32
    }

    #[inline]
    fn leaf(self) -> u32 {
        self.0 as u32
    }
}

#[derive(Default)]
struct Segment {
    links: Vec<Link>,
    /// How many first bits its hashes have in common.
    depth: u32,
}

impl Clone for Segment {
    /// With the same room, so that what was counted of the one is right for the other.
    fn clone(&self) -> Self {
        let mut links = Vec::with_capacity(self.links.capacity());
        links.extend_from_slice(&self.links);
        Segment { links, depth: self.depth }
    }
}

impl Part for Segment {
    fn elements(&self) -> usize {
        self.links.len()
    }
}

impl Segment {
    /// About where the links of this hash are. Hashes are spread evenly, so the place follows from
    /// the bits that choose no segment.
    #[inline]
    fn guess(&self, hash: u32) -> usize {
        let rest = u64::from(hash) << self.depth & 0xffff_ffff;
        ((rest * self.links.len() as u64) >> 32) as usize
    }

    /// Where the first link of this hash is, or would be.
    #[inline]
    fn lower_bound(&self, hash: u32) -> usize {
        let links = &self.links[..];
        let guess = self.guess(hash);
        // The guess is a line or so off: one step after the other touches fewer lines than halving.
        if links.get(guess).is_some_and(|link| link.hash() < hash) {
            let ahead = &links[guess + 1..links.len().min(guess + GUESS_WINDOW)];
            if let Some(steps) = ahead.iter().position(|link| link.hash() >= hash) {
                return guess + 1 + steps;
            }
        } else {
            let behind = &links[guess.saturating_sub(GUESS_WINDOW)..guess.min(links.len())];
            if let Some(steps) = behind.iter().rev().position(|link| link.hash() < hash) {
                return guess - steps;
            }
        }
        links.partition_point(|link| link.hash() < hash)
    }

    fn position(&self, wanted: Link) -> Option<usize> {
        let start = self.lower_bound(wanted.hash());
        let alike = self.links[start..].iter().take_while(|link| link.hash() == wanted.hash());
        alike.clone().position(|link| *link == wanted).map(|at| start + at)
    }
}

#[derive(Clone)]
pub struct Index {
    /// Segments by the first `bits` bits of a hash.
    directory: Vec<u32>,
    bits: u32,
    /// Shared with clones until one changes them.
    segments: CowVec<Segment, CHUNK_SEGMENTS>,
    len: usize,
    /// Room for links in all segments.
    capacity: usize,
}

impl Default for Index {
    fn default() -> Self {
        let mut segments = CowVec::default();
        segments.push(Segment::default());
        Index { directory: vec![0], bits: 0, segments, len: 0, capacity: 0 }
    }
}

impl Index {
    /// An index of members with these hashes in these leaves.
    pub fn build(pairs: impl ExactSizeIterator<Item = (u32, u32)>) -> Self {
        let mut links: Vec<Link> = pairs.map(|(hash, leaf)| Link::new(hash, leaf)).collect();
        links.sort_unstable_by_key(|link| link.0);
        let len = links.len();
        // Three quarters full, give or take the spread of the hashes.
        let bits = (len / (SEGMENT_PAIRS_MAX * 3 / 4)).next_power_of_two().trailing_zeros();
        let mut index = Index { bits, len, ..Index::default() };
        index.segments = CowVec::default();
        let mut rest = &links[..];
        for slot in 0..1u64 << bits {
            let count = rest.partition_point(|link| index.slot(link.hash()) as u64 <= slot);
            let (own, others) = rest.split_at(count);
            let mut links = Vec::with_capacity(fit::<Link>(count));
            links.extend_from_slice(own);
            index.capacity += links.capacity();
            index.segments.push(Segment { links, depth: bits });
            rest = others;
        }
        index.directory = (0..index.segments.len() as u32).collect();
        index
    }

    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn memory_bytes(&self) -> usize {
        self.capacity * size_of::<Link>()
            + self.segments.memory_bytes()
            + allocated_for::<u32>(self.directory.capacity())
    }

    #[inline]
    fn slot(&self, hash: u32) -> usize {
        (u64::from(hash) << self.bits >> 32) as usize
    }

    #[inline]
    fn segment(&self, hash: u32) -> &Segment {
        &self.segments[self.directory[self.slot(hash)] as usize]
    }

    /// Asks for the memory that a look-up of this hash will need.
    #[inline]
    pub fn prefetch(&self, hash: u32) {
        let segment = self.segment(hash);
        if let Some(link) = segment.links.get(segment.guess(hash)) {
            prefetch_value(link);
        }
    }

    /// The leaves that may hold a member of this hash.
    #[inline]
    pub fn leaves(&self, hash: u32) -> impl Iterator<Item = u32> {
        let segment = self.segment(hash);
        let alike = &segment.links[segment.lower_bound(hash)..];
        alike.iter().take_while(move |link| link.hash() == hash).map(|link| link.leaf())
    }

    pub fn add(&mut self, hash: u32, leaf: u32) {
        self.len += 1;
        self.make_room(hash);
        let at = self.directory[self.slot(hash)] as usize;
        let segment = self.segments.at_mut(at);
        let before = segment.links.capacity();
        if segment.links.len() == before {
            segment.links.reserve_exact(fit::<Link>(before + 1) - before);
            self.capacity += segment.links.capacity() - before;
        }
        let link_at = segment.lower_bound(hash);
        segment.links.insert(link_at, Link::new(hash, leaf));
    }

    pub fn remove(&mut self, hash: u32, leaf: u32) {
        let at = self.directory[self.slot(hash)] as usize;
        let segment = self.segments.at_mut(at);
        let Some(link_at) = segment.position(Link::new(hash, leaf)) else {
            debug_assert!(false, "every member is in the index");
            return;
        };
        segment.links.remove(link_at);
        self.len -= 1;
        let before = segment.links.capacity();
        if segment.links.len() < before / 2 {
            segment.links.shrink_to(fit::<Link>(segment.links.len() + 1));
            self.capacity -= before - segment.links.capacity();
        }
    }

    /// A member of this hash has moved from one leaf to another.
    pub fn relocate(&mut self, hash: u32, from: u32, to: u32) {
        let at = self.directory[self.slot(hash)] as usize;
        let segment = self.segments.at_mut(at);
        match segment.position(Link::new(hash, from)) {
            Some(link_at) => segment.links[link_at] = Link::new(hash, to),
            None => debug_assert!(false, "every member is in the index"),
        }
    }

    /// Cuts the segment of this hash in two while it is full.
    fn make_room(&mut self, hash: u32) {
        loop {
            let id = self.directory[self.slot(hash)] as usize;
            let Segment { links, depth } = &self.segments[id];
            let depth_max = (self.len / SLOT_MEMBERS_MIN).checked_ilog2().unwrap_or(0).min(31);
            if links.len() < SEGMENT_PAIRS_MAX || *depth >= depth_max {
                return;
            }
            self.split(id);
        }
    }

    fn split(&mut self, id: usize) {
        let new_id = self.segments.len() as u32;
        let segment = self.segments.at_mut(id);
        let bit = 31 - segment.depth;
        segment.depth += 1;
        let depth = segment.depth;
        let first_hash = segment.links[0].hash();
        let before = segment.links.capacity();
        let cut = segment.links.partition_point(|link| link.hash() >> bit & 1 == 0);
        let mut upper = Vec::with_capacity(fit::<Link>(segment.links.len() - cut + 1));
        upper.extend_from_slice(&segment.links[cut..]);
        segment.links.truncate(cut);
        segment.links.shrink_to(fit::<Link>(cut + 1));
        self.capacity = self.capacity - before + segment.links.capacity() + upper.capacity();
        self.segments.push(Segment { links: upper, depth });
        if depth > self.bits {
            self.directory = self.directory.iter().flat_map(|id| [*id, *id]).collect();
            self.bits += 1;
        }
        // The slots of hashes that begin as these do, with the next bit set.
        let prefix = u64::from(first_hash) >> (bit + 1) << 1 | 1;
        let spare = self.bits - depth;
        let slots = (prefix << spare) as usize..((prefix + 1) << spare) as usize;
        self.directory[slots].fill(new_id);
    }

    /// Visits the links from `hash` on, in the order of hashes, until `visit` has seen `count` of
    /// them and all that have the last one's hash. The hash to go on from, if there is more.
    pub fn walk(&self, hash: u32, count: usize, mut visit: impl FnMut(u32, u32)) -> Option<u32> {
        let (mut slot, mut from) = (self.slot(hash), hash);
        let (mut seen, mut last) = (0, None);
        while slot < self.directory.len() {
            let segment = &self.segments[self.directory[slot] as usize];
            for link in &segment.links[segment.lower_bound(from)..] {
                if seen >= count && last != Some(link.hash()) {
                    return Some(link.hash());
                }
                visit(link.hash(), link.leaf());
                (seen, last) = (seen + 1, Some(link.hash()));
            }
            let spare = self.bits - segment.depth;
            slot = ((slot >> spare) + 1) << spare;
            // The first hash of that slot; behind the last slot it is not used.
            from = ((slot as u64) << 32 >> self.bits) as u32;
        }
        None
    }

    /// Panics unless every link is where it is looked for.
    #[cfg(test)]
    pub fn check(&self) {
        assert_eq!(self.directory.len(), 1 << self.bits);
        let total: usize = self.segments.iter().map(|segment| segment.links.len()).sum();
        assert_eq!(total, self.len);
        let capacity: usize = self.segments.iter().map(|segment| segment.links.capacity()).sum();
        assert_eq!(capacity, self.capacity);
        for (id, segment) in self.segments.iter().enumerate() {
            assert!(segment.links.is_sorted_by_key(|link| link.hash()));
            for link in &segment.links {
                assert_eq!(self.directory[self.slot(link.hash())] as usize, id);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use russet_base::random::Random;
    use std::collections::BTreeMap;

    fn links_of(index: &Index) -> Vec<(u32, u32)> {
        let mut links = Vec::new();
        assert_eq!(index.walk(0, usize::MAX, |hash, leaf| links.push((hash, leaf))), None);
        links
    }

    #[test]
    fn it_finds_what_a_map_finds() {
        let mut random = Random::from_seed(3);
        let mut index = Index::default();
        let mut model = BTreeMap::<u32, u32>::new();
        for step in 0..40_000u32 {
            let hash = random.next_u64() as u32;
            let hash = if random.chance(0.3) { hash & 0xff00_ffff } else { hash };
            match random.index(10) {
                0..7 if !model.contains_key(&hash) => {
                    model.insert(hash, step);
                    index.add(hash, step);
                }
                7 => {
                    if let Some((&hash, &leaf)) = model.range(hash..).next() {
                        index.relocate(hash, leaf, step);
                        model.insert(hash, step);
                    }
                }
                _ => {
                    if let Some((&hash, &leaf)) = model.range(hash..).next() {
                        index.remove(hash, leaf);
                        model.remove(&hash);
                    }
                }
            }
        }
        index.check();
        let expected: Vec<(u32, u32)> = model.iter().map(|(hash, leaf)| (*hash, *leaf)).collect();
        assert_eq!(links_of(&index), expected);
        let built = Index::build(expected.iter().copied());
        built.check();
        assert_eq!(links_of(&built), expected);
        for (hash, leaf) in expected {
            assert_eq!(index.leaves(hash).collect::<Vec<_>>(), [leaf]);
        }
    }

    #[test]
    fn hashes_that_are_all_alike_do_no_harm() {
        let mut index = Index::default();
        (0..2_000).for_each(|leaf| index.add(7, leaf));
        assert_eq!(index.leaves(7).count(), 2_000);
        (0..2_000).for_each(|leaf| index.remove(7, leaf));
        index.check();
        assert_eq!(index.len(), 0);
    }

    #[test]
    fn a_walk_in_steps_sees_everything_while_segments_split() {
        let mut index = Index::default();
        let mut random = Random::from_seed(9);
        let old: Vec<u32> = (0..3_000).map(|_| random.next_u64() as u32).collect();
        old.iter().for_each(|hash| index.add(*hash, 1));
        let mut seen = Vec::new();
        let mut at = Some(0);
        while let Some(hash) = at {
            at = index.walk(hash, 10, |hash, leaf| seen.extend((leaf == 1).then_some(hash)));
            (0..50).for_each(|_| index.add(random.next_u64() as u32, 2));
        }
        let mut old = old;
        old.sort_unstable();
        assert_eq!(seen, old);
    }
}
