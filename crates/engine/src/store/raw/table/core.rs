//! The directory of segments (extendible hashing) with the blocks of their entries: everything
//! about a table that doesn't depend on what its objects are. It grows one segment at a time: a
//! full segment gets more buckets, and at the largest size splits in two by one more bit of the
//! hash. On the way down segments lose buckets, then merge with their neighbour.
//!
//! An index into the directory is the leading bits of a hash. Segments that share fewer bits than
//! the directory has stand in it several times, side by side.

#[cfg(test)]
mod check;

use super::account::{Account, Changed, block_cost};
use super::blocks::Blocks;
use super::entry::{Change, Label, RawEntry};
use super::segment::{
    BUCKETS_MAX, Gathered, Segment, Spot, Word, buckets_for, capacity_of, larger,
};
use crate::store::raw::prefetch::LINE_BYTES;
use russet_base::hash::KeyHasher;
use std::ptr::NonNull;
use std::sync::Arc;

/// Bits of the directory's index at most: 2^23 segments hold seven billion keys.
pub(super) const DEPTH_MAX: u8 = 23;
/// Two neighbours with fewer entries than this together become one segment.
const MERGE_BELOW: usize = 256;
/// The neighbour is a cache miss away, so it isn't looked at for each removal.
const MERGE_CHECK_EVERY: usize = 16;
/// How full the largest segment would be that keys are expected for: some get more than others.
const RESERVED_FILL: (usize, usize) = (7, 8);
/// How far ahead a split asks for the entries it will read.
const PREFETCH_AHEAD: usize = 12;

/// Where an entry's slot is. Valid until the next change of the directory or of the segment.
#[derive(Clone, Copy)]
pub(super) struct SlotPosition {
    /// Of the directory. Short, because a position goes along with every entry that is found.
    index: u32,
    pub(super) spot: Spot,
}

const _: () = assert!(DEPTH_MAX <= 32 && size_of::<SlotPosition>() == 8);

impl SlotPosition {
    #[inline]
    pub(super) fn new(index: usize, spot: Spot) -> SlotPosition {
        SlotPosition { index: index as u32, spot }
    }

    #[inline]
    pub(super) fn index(self) -> usize {
        self.index as usize
    }
}

pub(super) struct Core {
    /// Where the entries live, beside those of other tables.
    blocks: Arc<Blocks>,
    /// Of this table's own blocks, slots and objects.
    pub(super) account: Account,
    /// 2^depth pointers, or none while the table has never held a key.
    directory: Vec<NonNull<Segment>>,
    depth: u8,
    /// Segments as deep as the directory: when there is none left, it can be halved.
    deepest: usize,
    pub(super) len: usize,
    pub(super) expires: usize,
    objects: usize,
    /// What is not as it was when this was last asked.
    pub(super) changed: Changed,
    pub(super) sweep: Sweep,
    /// The mark of entries that the snapshot under way has, or need not have because they are
    /// newer. Without a snapshot all entries have it.
    pub(super) mark: bool,
}

/// How far the search for expired entries has come.
#[derive(Clone, Copy)]
pub(super) struct Sweep {
    /// No segment is due before this time.
    pub(super) due_ms: i64,
    /// The same for the next pass, as far as this one has seen.
    pub(super) next_due_ms: i64,
    /// The hash at which the pass under way goes on.
    pub(super) position: Option<u64>,
    /// The time of the last step.
    pub(super) seen_ms: i64,
}

impl Sweep {
    fn new() -> Sweep {
        let (due_ms, next_due_ms) = (i64::MAX, i64::MAX);
        Sweep { due_ms, next_due_ms, position: None, seen_ms: i64::MIN }
    }
}

#[inline]
pub(super) fn fingerprint_of(hash: u64) -> u16 {
    hash as u16
}

impl Core {
    pub(super) fn new(blocks: Arc<Blocks>) -> Core {
        Core {
            blocks,
            account: Account::default(),
            directory: Vec::new(),
            depth: 0,
            deepest: 0,
            len: 0,
            expires: 0,
            objects: 0,
            changed: Changed::Nothing,
            sweep: Sweep::new(),
            mark: false,
        }
    }

    pub(super) fn empty_twin(&self) -> Core {
        Core { mark: self.mark, ..Core::new(Arc::clone(&self.blocks)) }
    }

    pub(super) fn directory_capacity(&self) -> usize {
        self.directory.capacity()
    }

    pub(super) fn blocks(&self) -> &Blocks {
        &self.blocks
    }

    pub(super) fn depth(&self) -> u8 {
        self.depth
    }

    pub(super) fn directory_len(&self) -> usize {
        self.directory.len()
    }

    #[inline]
    pub(super) fn index_of(&self, hash: u64) -> usize {
        // Two shifts, because one by 64 has no meaning.
        ((hash >> 1) >> (63 - self.depth)) as usize
    }

    #[inline]
    pub(super) fn segment(&self, index: usize) -> &Segment {
        // SAFETY: 1. The directory's pointers come from boxes that live until they leave the
        // directory. 2. Segments are changed only through `&mut self`.
        unsafe { self.directory[index].as_ref() }
    }

    #[inline]
    pub(super) fn segment_mut(&mut self, index: usize) -> &mut Segment {
        // SAFETY: 1. and 2. as in `segment`; `&mut self` makes the borrow exclusive.
        unsafe { self.directory[index].as_mut() }
    }

    /// The part of the directory that one segment fills.
    fn run_of(&self, index: usize) -> std::ops::Range<usize> {
        let width = 1usize << (self.depth - self.segment(index).depth);
        let start = index & !(width - 1);
        start..start + width
    }

    /// Where the segment's share of the hashes ends; `None` at the very end.
    pub(super) fn end_of(&self, index: usize) -> Option<u64> {
        let end = self.run_of(index).end;
        (end < self.directory.len()).then(|| (end as u64) << (64 - self.depth))
    }

    /// Where a key's entry is, and the entry itself.
    #[inline(always)]
    pub(super) fn find(&self, key: &[u8], hash: u64) -> Option<(SlotPosition, RawEntry)> {
        if self.directory.is_empty() {
            return None;
        }
        let index = self.index_of(hash);
        let (spot, entry) = self.segment(index).find(fingerprint_of(hash), key)?;
        Some((SlotPosition::new(index, spot), entry))
    }

    #[inline]
    pub(super) fn has_objects(&self) -> bool {
        self.objects > 0
    }

    #[inline]
    fn word(&self, position: SlotPosition) -> Word {
        let word = self.segment(position.index()).word(position.spot);
        word.expect("a position names a slot that is in use")
    }

    #[inline]
    pub(super) fn entry(&self, position: SlotPosition) -> RawEntry {
        self.word(position).entry()
    }

    /// Adds an entry, its value still zeroes. The key must be absent.
    pub(super) fn insert(
        &mut self,
        (key, hash): (&[u8], u64),
        value: (Label, usize),
        expiry: Option<i64>,
        hasher: KeyHasher,
    ) -> SlotPosition {
        debug_assert!(self.find(key, hash).is_none(), "an inserted key is absent");
        self.make_room(hash, hasher);
        let index = self.index_of(hash);
        let entry = RawEntry::create(&self.blocks, key, value, expiry);
        if self.mark {
            entry.set_mark(true);
        }
        self.account.blocks += block_cost(entry.block_bytes());
        let spot = self.segment_mut(index).insert(Word::new(entry, fingerprint_of(hash)));
        self.len += 1;
        self.changed = Changed::Counts;
        self.publish_much();
        self.objects += usize::from(value.0 == Label::OBJECT);
        let position = SlotPosition::new(index, spot);
        if expiry.is_some() {
            self.mark_expiry(position, expiry);
        }
        position
    }

    /// Takes an entry out of the table; its block stays until `release`.
    pub(super) fn detach(&mut self, position: SlotPosition) -> RawEntry {
        self.assert_saved(position);
        let entry = self.detach_keeping_shape(position);
        let is_time = self.segment(position.index()).len().is_multiple_of(MERGE_CHECK_EVERY);
        self.shrink(position.index(), is_time);
        entry
    }

    /// As `detach`, without the shrinking, so that the segment can be walked on.
    pub(super) fn detach_keeping_shape(&mut self, position: SlotPosition) -> RawEntry {
        let word = self.segment_mut(position.index()).remove(position.spot);
        self.len -= 1;
        self.changed = Changed::Counts;
        self.expires -= usize::from(word.has_expiry());
        let entry = word.entry();
        self.objects -= usize::from(entry.label() == Label::OBJECT);
        entry
    }

    /// Frees the block of a detached entry.
    ///
    /// # Safety
    /// 1. The entry was detached from this table. 2. Nobody uses it any more.
    pub(super) unsafe fn release(&mut self, entry: RawEntry) {
        let bytes = entry.block_bytes();
        self.account.blocks -= block_cost(bytes);
        // SAFETY: 1. An entry's block has the block size of its layout at all times, and came from
        // the blocks that the table was made with. 2. By the contract.
        unsafe { self.blocks.release(entry.pointer(), bytes) };
    }

    /// Moves an entry into a block of another size, with a part of its value replaced: see
    /// [`RawEntry::splice_moving`].
    #[inline(never)]
    pub(super) fn splice_moving(
        &mut self,
        (position, old): (SlotPosition, RawEntry),
        range: (usize, usize),
        insert: &[&[u8]],
    ) -> Option<RawEntry> {
        self.assert_saved(position);
        let entry = old.splice_moving(range, insert, &self.blocks)?;
        self.account.blocks += block_cost(entry.block_bytes());
        self.note_bytes();
        self.segment_mut(position.index()).repoint(position.spot, entry);
        // SAFETY: 1. The slot, its only user, has let go of the old block.
        unsafe { self.release(old) };
        self.publish_much();
        Some(entry)
    }

    /// Changes an entry in place or into a new block. An object that is replaced is not dropped.
    pub(super) fn reshape(&mut self, position: SlotPosition, change: &Change<'_>) {
        self.assert_saved(position);
        let word = self.word(position);
        let old = word.entry();
        let old_expiry = if word.has_expiry() { old.expiry() } else { None };
        self.objects -= usize::from(old.label() == Label::OBJECT);
        self.objects += usize::from(change.label == Label::OBJECT);
        if let Some(entry) = old.reshape(change, &self.blocks) {
            self.account.blocks += block_cost(entry.block_bytes());
            self.note_bytes();
            self.segment_mut(position.index()).replace(position.spot, word.moved_to(entry));
            // SAFETY: 1. The slot, its only user, has let go of the old block.
            unsafe { self.release(old) };
            self.publish_much();
        }
        if old_expiry != change.expiry {
            self.mark_expiry(position, change.expiry);
        }
    }

    /// No entry is changed that a snapshot still needs as it is.
    #[inline]
    pub(super) fn assert_saved(&self, position: SlotPosition) {
        debug_assert_eq!(self.entry(position).mark(), self.mark, "a snapshot needs it as it is");
    }

    /// The entry holds an object no longer.
    pub(super) fn become_zero(&mut self, position: SlotPosition) {
        self.entry(position).become_zero();
        self.objects -= 1;
    }

    /// Makes slot, segment and counters agree with an entry's expiry.
    fn mark_expiry(&mut self, position: SlotPosition, expiry: Option<i64>) {
        let word = self.word(position);
        let segment = self.segment_mut(position.index());
        let is_soon = expiry.is_some_and(|at_ms| at_ms < segment.horizon);
        segment.replace(position.spot, word.with_expiry(expiry.is_some(), is_soon));
        segment.expires -= u16::from(word.has_expiry());
        segment.expires += u16::from(expiry.is_some());
        match expiry {
            Some(at_ms) => segment.note_expiry(at_ms),
            None if segment.expires == 0 => segment.expiry_min = i64::MAX,
            None => {}
        }
        let due_ms = segment.due_ms();
        self.changed = Changed::Counts;
        self.expires -= usize::from(word.has_expiry());
        self.expires += usize::from(expiry.is_some());
        self.sweep.due_ms = self.sweep.due_ms.min(due_ms);
        self.sweep.next_due_ms = self.sweep.next_due_ms.min(due_ms);
    }

    /// Makes segments for so many keys, unless there have been some: what comes need not grow into
    /// them then.
    pub(super) fn reserve(&mut self, keys: usize) {
        let most = capacity_of(BUCKETS_MAX) * RESERVED_FILL.0 / RESERVED_FILL.1;
        let depth = keys.div_ceil(most).max(1).next_power_of_two().ilog2() as u8;
        if keys > 0 && self.directory.is_empty() && depth <= DEPTH_MAX {
            self.start(depth, buckets_for(keys >> depth));
        }
    }

    /// Makes the first segments.
    fn start(&mut self, depth: u8, buckets: usize) {
        (self.depth, self.deepest) = (depth, 1 << depth);
        self.directory.reserve_exact(self.deepest);
        for _ in 0..self.deepest {
            let segment = Segment::new(depth, buckets, self.blocks.pool());
            self.account.slots += segment.cost();
            self.directory.push(NonNull::from(Box::leak(segment)));
        }
        self.changed = Changed::Counts;
    }

    fn make_room(&mut self, hash: u64, hasher: KeyHasher) {
        if self.directory.is_empty() {
            self.start(0, 1);
        }
        loop {
            let index = self.index_of(hash);
            if !self.segment(index).is_full() {
                return;
            }
            match larger(self.segment(index).count()) {
                Some(count) => self.resize(index, count),
                None => self.split(index, hasher),
            }
        }
    }

    fn resize(&mut self, index: usize, count: usize) {
        let pool = Arc::clone(self.blocks.pool());
        let mut words = Gathered::new();
        let segment = self.segment_mut(index);
        segment.gather(&mut words);
        let before = segment.cost();
        segment.rebuild(&words, count, &pool);
        let after = segment.cost();
        self.account.slots += after;
        self.account.slots -= before;
    }

    /// Splits a segment by the next bit of its entries' hashes.
    fn split(&mut self, index: usize, hasher: KeyHasher) {
        let depth = self.segment(index).depth;
        // A thousand keys that share 23 bits of a keyed hash don't occur.
        assert!(depth < DEPTH_MAX, "the hash does not spread the keys");
        let mut index = index;
        if depth == self.depth {
            self.double();
            index *= 2;
        }
        let mut words = Gathered::new();
        let mut halves = [Gathered::new(), Gathered::new()];
        self.segment(index).gather(&mut words);
        for (number, word) in words.iter().enumerate() {
            if let Some(ahead) = words.get(number + PREFETCH_AHEAD) {
                ahead.prefetch(LINE_BYTES);
            }
            let hash = hasher.hash(word.entry().key());
            debug_assert_eq!(fingerprint_of(hash), word.fingerprint(), "the hasher is stable");
            halves[(hash >> (63 - depth)) as usize & 1].push(*word);
        }
        let run = self.run_of(index);
        let [low, high] = &halves;
        let old = self.segment(index);
        let (before, times) = (old.cost(), (old.expiry_min, old.sweep_after, old.horizon));
        let mut twin = Segment::new(depth + 1, buckets_for(high.len()), self.blocks.pool());
        let twin_count = twin.count();
        (twin.expiry_min, twin.sweep_after, twin.horizon) = times;
        twin.rebuild(high, twin_count, self.blocks.pool());
        let twin_cost = twin.cost();
        let pool = Arc::clone(self.blocks.pool());
        let segment = self.segment_mut(index);
        segment.depth = depth + 1;
        segment.rebuild(low, buckets_for(low.len()), &pool);
        let after = segment.cost();
        self.account.slots += after;
        self.account.slots += twin_cost;
        self.account.slots -= before;
        if depth + 1 == self.depth {
            self.deepest += 2;
        }
        let middle = run.start + run.len() / 2;
        let twin = NonNull::from(Box::leak(twin));
        self.directory[middle..run.end].fill(twin);
    }

    fn double(&mut self) {
        let mut doubled = Vec::with_capacity(self.directory.len() * 2);
        for &segment in &self.directory {
            doubled.extend([segment, segment]);
        }
        self.directory = doubled;
        self.depth += 1;
        self.deepest = 0;
    }

    /// After removals: gives back what a segment no longer needs.
    pub(super) fn shrink(&mut self, index: usize, looks_at_neighbour: bool) {
        let mut index = index;
        while looks_at_neighbour && self.merge(&mut index) {}
        let segment = self.segment(index);
        let (len, count) = (segment.len(), segment.count());
        if count > 1 && len < capacity_of(count) / 2 {
            // With a quarter to spare, so that the next few keys don't undo it.
            let target = buckets_for(len + len / 4);
            if target < count {
                self.resize(index, target);
            }
        }
    }

    /// Merges a segment with the one that it was split from, if both together are small.
    fn merge(&mut self, index: &mut usize) -> bool {
        let segment = self.segment(*index);
        if segment.len() >= MERGE_BELOW || segment.depth == 0 {
            return false;
        }
        let run = self.run_of(*index);
        let buddy = self.run_of(run.start ^ run.len());
        let (here, there) = (self.segment(run.start), self.segment(buddy.start));
        let len = here.len() + there.len();
        if here.depth != there.depth || len >= MERGE_BELOW {
            return false;
        }
        let depth = here.depth;
        let low = run.start.min(buddy.start);
        let high = run.start.max(buddy.start);
        let mut words = Gathered::new();
        here.gather(&mut words);
        there.gather(&mut words);
        let freed = self.directory[high];
        // SAFETY: 1. The pointer came from a box, and all its positions in the directory are
        // overwritten below.
        let freed = unsafe { Box::from_raw(freed.as_ptr()) };
        let kept = self.directory[low];
        self.directory[high..high + run.len()].fill(kept);
        let pool = Arc::clone(self.blocks.pool());
        let segment = self.segment_mut(low);
        let mut before = segment.cost();
        before += freed.cost();
        segment.expiry_min = segment.expiry_min.min(freed.expiry_min);
        // The earlier of both: merge upon merge could put a sweep off for seconds otherwise.
        segment.sweep_after = segment.sweep_after.min(freed.sweep_after);
        // Below the earlier horizon, all entries of both are marked.
        segment.horizon = segment.horizon.min(freed.horizon);
        segment.depth = depth - 1;
        segment.rebuild(&words, buckets_for(len + len / 4), &pool);
        let after = segment.cost();
        self.account.slots += after;
        self.account.slots -= before;
        freed.dissolve(&pool);
        if depth == self.depth {
            self.deepest -= 2;
        }
        *index = low;
        while self.deepest == 0 && self.depth > 0 {
            self.halve();
            *index /= 2;
        }
        true
    }

    fn halve(&mut self) {
        self.depth -= 1;
        self.directory = self.directory.iter().copied().step_by(2).collect();
        let depth = self.depth;
        self.deepest =
            (0..self.directory.len()).filter(|&index| self.segment(index).depth == depth).count();
    }

    /// The first directory index of each segment, in order.
    pub(super) fn segments(&self) -> impl Iterator<Item = usize> + '_ {
        let first = (!self.directory.is_empty()).then_some(0);
        std::iter::successors(first, |&index| {
            let end = self.run_of(index).end;
            (end < self.directory.len()).then_some(end)
        })
    }

    /// Frees everything, calling back for each entry that holds an object. The core is empty
    /// afterwards.
    pub(super) fn release_all(&mut self, drop_object: &mut dyn FnMut(RawEntry)) {
        let mut old = std::mem::replace(self, self.empty_twin());
        let segments: Vec<usize> = old.segments().collect();
        for index in segments {
            let mut words = Gathered::new();
            old.segment(index).gather(&mut words);
            for (number, word) in words.iter().enumerate() {
                if let Some(ahead) = words.get(number + PREFETCH_AHEAD) {
                    ahead.prefetch(LINE_BYTES);
                }
                let entry = word.entry();
                if entry.label() == Label::OBJECT {
                    drop_object(entry);
                }
                // SAFETY: 1. Its slot is dissolved below and not read before.
                unsafe { old.release(entry) };
            }
            let segment = old.directory[index];
            // SAFETY: 1. The pointer came from a box. 2. The rest of its run in the directory is
            // never read again: `segments` listed each segment once, before.
            unsafe { Box::from_raw(segment.as_ptr()) }.dissolve(old.blocks.pool());
        }
        if !old.directory.is_empty() {
            old.blocks.trim();
        }
    }
}
