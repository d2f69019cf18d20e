//! A block of entries: one run of bytes, and what is known of it without looking inside.

use super::id::StreamId;
use super::run::{Entries, Run, Scratch, listpack_int, put_entry, put_names};
use super::{BlockLimits, MEMBERS_BYTES_MAX};
use crate::types::capacity::{allocated_bytes, fit_bytes};
use crate::types::cow_vec::Part;
use smallvec::SmallVec;
use std::ops::Range;

/// Blocks grow by so much at a time up to this size, from there on by a quarter.
const GROWTH_BYTES: usize = 1024;
const GROWN_BY_STEPS_MAX: usize = 4 * GROWTH_BYTES;
/// Bytes of removed entries that a block may keep in front of the others, even if those are fewer.
const GONE_BYTES_MIN: usize = 256;

/// Where removed entries lie, behind those that were removed before.
type Gaps = SmallVec<[Range<usize>; 4]>;

#[cfg(test)]
thread_local! {
    /// Bytes that removals have moved.
    pub(super) static MOVED_BYTES: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

fn tally_moved(bytes: usize) {
    #[cfg(test)]
    MOVED_BYTES.set(MOVED_BYTES.get() + bytes);
    let _ = bytes;
}

/// What a block's size would be in Redis, which ends blocks by it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Measure {
    pub live: u32,
    /// Deleted ones, which Redis leaves in their place.
    pub dead: u32,
    pub listpack_bytes: u32,
}

impl Measure {
    /// Whether an entry with so many bytes of names and values begins a new block.
    pub fn is_full(self, pairs_bytes: usize, limits: BlockLimits) -> bool {
        let bytes_max = match limits.bytes_max {
            0 => MEMBERS_BYTES_MAX,
            bytes => bytes.min(MEMBERS_BYTES_MAX),
        };
        let entries = u64::from(self.live) + u64::from(self.dead);
        self.listpack_bytes as usize + pairs_bytes >= bytes_max
            || (limits.entries_max > 0 && entries >= limits.entries_max)
    }

    /// Counts an entry of this size more.
    pub fn add(&mut self, listpack_bytes: usize) {
        let count = i64::from(self.live);
        let growth = listpack_bytes + listpack_int(count + 1) - listpack_int(count);
        self.live += 1;
        self.listpack_bytes = self.listpack_bytes.saturating_add(growth as u32);
    }

    fn kill(&mut self) {
        let (live, dead) = (i64::from(self.live), i64::from(self.dead));
        let growth = listpack_int(live - 1) + listpack_int(dead + 1);
        let shrinkage = listpack_int(live) + listpack_int(dead);
        self.live -= 1;
        self.dead += 1;
        self.listpack_bytes = self.listpack_bytes.saturating_add(growth as u32);
        self.listpack_bytes -= shrinkage as u32;
    }
}

/// One block. The ID that it began with is its key in the stream's order, and not repeated here.
#[derive(Default)]
pub struct Block {
    /// The last entry that was added, even if it is deleted since.
    pub last: StreamId,
    pub measure: Measure,
    bytes: Vec<u8>,
    /// Bytes behind the names that entries took up which were removed since. Most are removed from
    /// the front, one after the other: to move the others each time would be quadratic.
    gone: usize,
}

impl Clone for Block {
    /// With the same room, so that what was counted of the one is right for the other.
    fn clone(&self) -> Self {
        let mut bytes = Vec::with_capacity(self.bytes.capacity());
        bytes.extend_from_slice(&self.bytes);
        Block { bytes, ..*self }
    }
}

impl Part for Block {
    fn elements(&self) -> usize {
        self.measure.live as usize
    }
}

impl Block {
    /// A block with its first entry.
    pub fn begin<'w>(id: StreamId, pairs: impl ExactSizeIterator<Item = &'w [u8]> + Clone) -> Self {
        let mut scratch = Scratch::new();
        let listpack = put_names(&mut scratch, pairs.clone());
        let bytes = scratch.to_vec();
        let measure = Measure { live: 0, dead: 0, listpack_bytes: listpack as u32 };
        let mut block = Block { last: id, measure, bytes, gone: 0 };
        block.append(id, id, pairs);
        block
    }

    /// A block made of a packed stream's parts.
    pub fn from_parts(last: StreamId, measure: Measure, bytes: &[u8]) -> Self {
        Block { last, measure, bytes: bytes.to_vec(), gone: 0 }
    }

    /// Adds an entry; `first` is the block's key, `id` lies behind its last entry.
    pub fn append<'w>(
        &mut self,
        first: StreamId,
        id: StreamId,
        pairs: impl ExactSizeIterator<Item = &'w [u8]> + Clone,
    ) {
        let mut scratch = Scratch::new();
        let listpack = put_entry(&mut scratch, self.run(first), id, pairs);
        self.make_room(scratch.len());
        self.bytes.extend_from_slice(&scratch);
        self.measure.add(listpack);
        self.last = id;
    }

    /// Makes room for so many bytes more: in few steps up to the usual size of a block, for what is
    /// given back in small ones does not fit what is asked for next.
    fn make_room(&mut self, added: usize) {
        let len = self.bytes.len() + added;
        if len > self.bytes.capacity() {
            let roomy = match len {
                ..=GROWN_BY_STEPS_MAX => len.next_multiple_of(GROWTH_BYTES),
                _ => fit_bytes(len + len / 4),
            };
            self.bytes.reserve_exact(roomy - self.bytes.len());
        }
    }

    #[inline]
    pub fn run(&self, first: StreamId) -> Run<'_> {
        Run::new(first, &self.bytes).without_front(self.gone)
    }

    pub fn entries(&self, first: StreamId) -> Entries<'_> {
        self.run(first).entries()
    }

    /// No more will be added.
    pub fn finish(&mut self) {
        self.drop_gone();
        self.bytes.shrink_to_fit();
    }

    /// Deletes those of these entries, given in ascending order, that are here, and shows them.
    /// One pass, however many they are.
    pub fn delete(&mut self, first: StreamId, ids: &[StreamId], mut visit: impl FnMut(StreamId)) {
        let mut gaps: Gaps = SmallVec::new();
        let mut removed = 0;
        let mut entries = self.entries(first);
        let (mut start, mut wanted) = (0, ids);
        while !wanted.is_empty()
            && let Some(entry) = entries.next()
        {
            let end = entries.position();
            while let [next, others @ ..] = wanted
                && *next < entry.id
            {
                wanted = others;
            }
            if wanted.first() == Some(&entry.id) {
                match gaps.last_mut() {
                    Some(gap) if gap.end == start => gap.end = end,
                    _ => gaps.push(start..end),
                }
                removed += 1;
                visit(entry.id);
            }
            start = end;
        }
        (0..removed).for_each(|_| self.measure.kill());
        self.close_gaps(&gaps);
    }

    /// Deletes the first entries, which are `count` and take up `bytes`.
    pub fn delete_front(&mut self, count: u32, bytes: usize) {
        (0..count).for_each(|_| self.measure.kill());
        self.gone += bytes;
        if self.gone >= GONE_BYTES_MIN && self.gone > self.bytes.len() / 2 {
            self.drop_gone();
        }
    }

    /// Closes the gaps that removed entries leave, given in order.
    fn close_gaps(&mut self, gaps: &[Range<usize>]) {
        let (Some(first), Some(last)) = (gaps.first(), gaps.last()) else { return };
        if first.start == 0 && gaps.len() == 1 {
            return self.delete_front(0, last.end);
        }
        let base = Run::entries_start(&self.bytes) + self.gone;
        let mut to = base + first.start;
        for (at, gap) in gaps.iter().enumerate() {
            let next = gaps.get(at + 1).map_or(self.bytes.len(), |next| base + next.start);
            let kept = base + gap.end..next;
            let kept_bytes = kept.len();
            tally_moved(kept_bytes);
            self.bytes.copy_within(kept, to);
            to += kept_bytes;
        }
        self.bytes.truncate(to);
        self.fit();
    }

    /// Moves the entries to where the first ones were.
    fn drop_gone(&mut self) {
        let base = Run::entries_start(&self.bytes);
        let gone = std::mem::take(&mut self.gone);
        tally_moved(self.bytes.len() - base - gone);
        self.bytes.drain(base..base + gone);
        self.fit();
    }

    /// Gives memory back once half of it is unused.
    fn fit(&mut self) {
        if self.bytes.len() < self.bytes.capacity() / 2 {
            self.bytes.shrink_to(fit_bytes(self.bytes.len()));
        }
    }

    pub fn memory_bytes(&self) -> usize {
        allocated_bytes(self.bytes.capacity())
    }
}
