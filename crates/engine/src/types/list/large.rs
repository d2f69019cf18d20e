//! A list too large for its table entry: a deque of chunks. Pushes and pops touch an end chunk
//! only; the middle is found by adding up the chunks' counts, which lie together so that this is
//! quick; an edit in the middle moves bytes of one chunk.

use std::collections::VecDeque;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use super::chunk::{
    Buffer, CHUNK_BYTES, Chunk, Spare, buffer_memory_bytes, fit_buffer, new_buffer,
};
use super::entries::{Entries, Quota, Run};
use super::entry::{self, Entry};
use super::limits::{Extent, Form, ListLimits, ShrinkCause, form_after_shrinking};
use super::{End, InsertAt, ListRef, medium, packed};
use crate::types::blob::Blob;
use crate::types::capacity::allocated_for;
use crate::types::element::Element;

/// Chunks that there is room for from the start.
const CHUNKS_FIRST: usize = 2;
/// A new chunk has room for this share of the list at first.
const NEW_CHUNK_SHARE: usize = 16;
/// Counts that are added up at once on the way to an index.
const COUNTS_PER_STEP: usize = 64;

#[derive(Clone)]
pub struct LargeList {
    chunks: VecDeque<Chunk>,
    /// What the chunks take besides their places in the deque, and the form in the lowest bit: with
    /// a field for each, every large value would take 16 bytes more.
    tally: Tally,
    /// The entries of each chunk: a chunk has at most `CHUNK_BYTES / 2`.
    counts: VecDeque<u16>,
    size: Extent,
    /// The buffer of the last whole chunk that emptied, for the next one: a list that breathes
    /// across the border of a chunk, or a queue, then allocates nothing.
    spare: Option<Arc<[u8; CHUNK_BYTES]>>,
}

/// Bytes above, and below what OBJECT ENCODING says, which has a memory: see `limits.rs`.
#[derive(Clone, Copy, Default)]
struct Tally(usize);

impl Tally {
    const QUICKLIST: usize = 1;

    fn chunk_bytes(self) -> usize {
        self.0 >> 1
    }

    #[inline]
    fn add(&mut self, bytes: usize) {
        self.0 += bytes << 1;
    }

    #[inline]
    fn remove(&mut self, bytes: usize) {
        self.0 -= bytes << 1;
    }

    fn is_quicklist(self) -> bool {
        self.0 & Tally::QUICKLIST != 0
    }

    fn set_quicklist(&mut self, is_quicklist: bool) {
        self.0 = self.0 & !Tally::QUICKLIST | usize::from(is_quicklist);
    }
}

/// An entry's position: the chunk, and the index inside it.
#[derive(Clone, Copy)]
struct Spot {
    chunk: usize,
    index: usize,
}

/// A position between entries: byte `at` of a chunk's run.
#[derive(Clone, Copy)]
struct Seam {
    chunk: usize,
    at: usize,
}

impl LargeList {
    pub fn new() -> Self {
        LargeList {
            // Most have few chunks, for each of which there is room in here.
            chunks: VecDeque::with_capacity(CHUNKS_FIRST),
            tally: Tally::default(),
            counts: VecDeque::with_capacity(CHUNKS_FIRST),
            size: Extent::default(),
            spare: None,
        }
    }

    /// The same list, which outgrows another form.
    pub fn of(list: ListRef<'_>) -> Self {
        let mut large = Self::new();
        match list {
            ListRef::Packed(bytes) => {
                large.push(End::Back, packed::elements(bytes));
            }
            ListRef::Medium(bytes) => {
                let run = medium::run(bytes);
                large.put_chunk(0, (Chunk::from_run(run.bytes), run.count as u16));
                large.size = run.size();
            }
            ListRef::Large(list) => return list.clone(),
        }
        large
    }

    /// The bytes of a smaller form, for which [`LargeList::shrink_form`] has said it is short
    /// enough.
    pub fn to_bytes(&self, form: Form) -> Vec<u8> {
        match form {
            Form::Packed => {
                packed::build(self.chunks.iter().flat_map(|chunk| Entries::new(chunk.run())))
            }
            _ => medium::build(self.runs()),
        }
    }

    pub fn len(&self) -> usize {
        self.size.count
    }

    pub fn is_empty(&self) -> bool {
        self.size.count == 0
    }

    /// The size of all entries.
    pub fn size(&self) -> Extent {
        self.size
    }

    pub fn is_quicklist(&self) -> bool {
        self.tally.is_quicklist()
    }

    /// To be called before texts of extent `growth` are added or put in another's place.
    pub fn grow(&mut self, growth: Extent, limits: ListLimits) {
        if limits.is_outgrown(self.size.plus(growth)) {
            self.tally.set_quicklist(true);
        }
    }

    /// To be called after elements were removed or replaced, or the list was loaded: the form that
    /// the list should now have.
    pub fn shrink_form(&mut self, limits: ListLimits, cause: ShrinkCause) -> Form {
        if self.is_quicklist() {
            self.tally.set_quicklist(!limits.is_listpack_again(self.size, cause));
        }
        if self.is_quicklist() { Form::Large } else { form_after_shrinking(self.size.bytes) }
    }

    /// Names the encoding of a list that was loaded.
    pub(super) fn note_loaded(&mut self, limits: ListLimits) {
        self.tally.set_quicklist(!limits.is_listpack_again(self.size, ShrinkCause::Built));
    }

    /// Bytes on the heap.
    pub fn memory_bytes(&self) -> usize {
        allocated_for::<Chunk>(self.chunks.capacity())
            + allocated_for::<u16>(self.counts.capacity())
            + self.spare.as_ref().map_or(0, |_| buffer_memory_bytes(CHUNK_BYTES))
            + self.tally.chunk_bytes()
    }

    #[cfg(test)]
    pub fn check_bytes(&self) {
        let bytes: usize = self.chunks.iter().map(Chunk::memory_bytes).sum();
        assert_eq!(self.tally.chunk_bytes(), bytes);
    }

    /// Puts a chunk before the one with this number, or behind the last.
    fn put_chunk(&mut self, at: usize, (chunk, count): (Chunk, u16)) {
        self.tally.add(chunk.memory_bytes());
        self.chunks.insert(at, chunk);
        self.counts.insert(at, count);
    }

    /// Changes a chunk, and counts what it takes from then on.
    #[inline]
    fn edit_chunk<R>(&mut self, chunk: usize, edit: impl FnOnce(&mut Chunk) -> R) -> R {
        let chunk = &mut self.chunks[chunk];
        let before = chunk.capacity();
        let result = edit(chunk);
        if chunk.capacity() != before {
            let bytes = chunk.memory_bytes();
            self.tally.add(bytes);
            self.tally.remove(buffer_memory_bytes(before));
        }
        result
    }

    /// Pushes the elements one after the other: the last one ends up outermost.
    pub fn push<'e>(&mut self, end: End, elements: impl Iterator<Item = Element<'e>>) {
        for element in elements {
            self.push_one(end, &Entry::new(element));
        }
    }

    #[inline]
    fn push_one(&mut self, end: End, entry: &Entry<'_>) {
        let bytes = entry.bytes();
        self.size.bytes += bytes;
        self.size.count += 1;
        let (chunk, count) = match end {
            End::Front => (self.chunks.front_mut(), self.counts.front_mut()),
            End::Back => (self.chunks.back_mut(), self.counts.back_mut()),
        };
        let (Some(chunk), Some(count)) = (chunk, count) else {
            return self.push_chunk(end, entry);
        };
        let before = chunk.capacity();
        let room = match end {
            End::Front => chunk.grow_front(bytes),
            End::Back => chunk.grow_back(bytes),
        };
        let Some(room) = room else { return self.push_chunk(end, entry) };
        entry.write(room);
        *count += 1;
        if chunk.capacity() != before {
            let bytes = chunk.memory_bytes();
            self.tally.add(bytes);
            self.tally.remove(buffer_memory_bytes(before));
        }
    }

    /// Starts a new end chunk with `entry`.
    fn push_chunk(&mut self, end: End, entry: &Entry<'_>) {
        let bytes = entry.bytes();
        let buffer: Buffer = if bytes > CHUNK_BYTES / 2 {
            new_buffer(bytes)
        } else {
            // A chunk of a long list is made whole at once; that of a short one grows.
            let first = self.size.bytes / NEW_CHUNK_SHARE;
            let wanted = fit_buffer(first.clamp(bytes, CHUNK_BYTES));
            match self.spare.take() {
                Some(spare) => spare,
                None => new_buffer(wanted),
            }
        };
        let spare = if end == End::Front { Spare::Front } else { Spare::Back };
        let mut chunk = Chunk::new(buffer, spare);
        let room = match end {
            End::Front => chunk.grow_front(bytes),
            End::Back => chunk.grow_back(bytes),
        };
        entry.write(room.expect("the buffer was chosen to hold the entry"));
        // The former end chunk gets no more pushes, unless it is the other end too.
        let (former, home) = match end {
            End::Front => (0, 0),
            End::Back => (self.chunks.len().saturating_sub(1), self.chunks.len()),
        };
        if self.chunks.len() > 1 {
            self.edit_chunk(former, Chunk::seal);
        }
        self.put_chunk(home, (chunk, 1));
    }

    /// Removes up to `count` elements from one end, shown to `visit` from that end inwards.
    pub fn pop(&mut self, end: End, count: usize, mut visit: impl FnMut(Element<'_>)) {
        let mut left = count;
        while left > 0 && !self.chunks.is_empty() {
            let at = match end {
                End::Front => 0,
                End::Back => self.chunks.len() - 1,
            };
            let taken = left.min(usize::from(self.counts[at]));
            let chunk = &mut self.chunks[at];
            let before = chunk.len();
            let mut rest = Entries::new(chunk.run());
            match end {
                End::Front => rest.by_ref().take(taken).for_each(&mut visit),
                End::Back => rest.by_ref().rev().take(taken).for_each(&mut visit),
            }
            let cut = before - rest.rest().len();
            match end {
                End::Front => chunk.cut_front(cut),
                End::Back => chunk.cut_back(cut),
            }
            self.took(at, Extent { bytes: cut, count: taken });
            left -= taken;
        }
    }

    /// Accounts for entries that were cut from the end chunk `at`, and drops it once it is empty.
    fn took(&mut self, at: usize, cut: Extent) {
        self.size.bytes -= cut.bytes;
        self.size.count -= cut.count;
        self.counts[at] -= cut.count as u16;
        if self.counts[at] > 0 {
            return;
        }
        self.counts.remove(at);
        let Some(chunk) = self.chunks.remove(at) else { return };
        self.tally.remove(chunk.memory_bytes());
        if !self.chunks.is_empty()
            && let Some(buffer) = chunk.into_buffer()
            && let Ok(buffer) = buffer.try_into()
        {
            self.spare = Some(buffer);
        }
    }

    pub fn index(&self, index: usize) -> Option<Element<'_>> {
        let spot = self.locate(index)?;
        let run = self.run(spot.chunk);
        Some(entry::decode(&run.bytes[run.offset(spot.index)..]).0)
    }

    fn run(&self, chunk: usize) -> Run<'_> {
        Run { bytes: self.chunks[chunk].run(), count: usize::from(self.counts[chunk]) }
    }

    /// Where element `index` lies, if there is one.
    fn locate(&self, index: usize) -> Option<Spot> {
        if index >= self.size.count {
            return None;
        }
        let last = self.counts.len() - 1;
        let before_last = self.size.count - usize::from(self.counts[last]);
        if index >= before_last {
            return Some(Spot { chunk: last, index: index - before_last });
        }
        let mut left = index;
        let mut chunk = 0;
        let (front, back) = self.counts.as_slices();
        for step in front.chunks(COUNTS_PER_STEP).chain(back.chunks(COUNTS_PER_STEP)) {
            let sum = step.iter().map(|count| u32::from(*count)).sum::<u32>() as usize;
            if left >= sum {
                left -= sum;
                chunk += step.len();
                continue;
            }
            for count in step {
                let count = usize::from(*count);
                if left < count {
                    return Some(Spot { chunk, index: left });
                }
                left -= count;
                chunk += 1;
            }
        }
        None
    }

    /// Shows the elements of `range`, which is cut to the list, in order.
    pub fn for_each_in(&self, range: Range<usize>, mut visit: impl FnMut(Element<'_>)) {
        let mut left = range.end.min(self.size.count).saturating_sub(range.start);
        if left == 0 {
            return;
        }
        let Some(mut spot) = self.locate(range.start) else {
            return;
        };
        while left > 0 {
            let run = self.run(spot.chunk);
            let here = left.min(run.count - spot.index);
            // One loop with one call in it: `visit` is worth being inlined there.
            for element in Entries::new(run.slice(spot.index..spot.index + here)) {
                visit(element);
            }
            left -= here;
            spot = Spot { chunk: spot.chunk + 1, index: 0 };
        }
    }

    /// The same from the last of the range to the first.
    pub fn for_each_in_rev(&self, range: Range<usize>, mut visit: impl FnMut(Element<'_>)) {
        let end = range.end.min(self.size.count);
        let mut left = end.saturating_sub(range.start);
        if left == 0 {
            return;
        }
        let Some(mut spot) = self.locate(end - 1) else {
            return;
        };
        loop {
            let run = self.run(spot.chunk);
            let here = (spot.index + 1).min(left);
            let entries = Entries::new(&run.bytes[..run.offset(spot.index + 1)]);
            entries.rev().take(here).for_each(&mut visit);
            left -= here;
            if left == 0 {
                return;
            }
            spot.chunk -= 1;
            spot.index = usize::from(self.counts[spot.chunk]) - 1;
        }
    }

    /// Shows all elements from one end until `visit` breaks off.
    pub fn scan(&self, from: End, mut visit: impl FnMut(Element<'_>) -> ControlFlow<()>) {
        let entries = |chunk: &'_ Chunk| match from {
            End::Front => Entries::new(chunk.run()).try_for_each(&mut visit),
            End::Back => Entries::new(chunk.run()).rev().try_for_each(&mut visit),
        };
        let _ = match from {
            End::Front => self.chunks.iter().try_for_each(entries),
            End::Back => self.chunks.iter().rev().try_for_each(entries),
        };
    }

    /// The encoded entries of each chunk in order, as an RDB file wants them.
    pub fn runs(&self) -> impl Iterator<Item = Run<'_>> {
        (0..self.chunks.len()).map(|chunk| self.run(chunk))
    }

    /// Puts `element` beside the first one equal to `pivot`: the new length, or `None` without one.
    pub fn insert(
        &mut self,
        side: InsertAt,
        pivot: Element<'_>,
        element: Element<'_>,
    ) -> Option<usize> {
        let first = Quota { limit: 1, from_back: false };
        let (chunk, found) = (0..self.chunks.len())
            .find_map(|chunk| Some((chunk, self.run(chunk).matches(pivot, first).pop()?)))?;
        let at = match side {
            InsertAt::Before => found.start,
            InsertAt::After => found.end,
        };
        self.insert_at(Seam { chunk, at }, &Entry::new(element));
        Some(self.size.count)
    }

    /// Puts an entry at a seam, in whichever chunk beside it has room.
    fn insert_at(&mut self, seam: Seam, entry: &Entry<'_>) {
        let bytes = entry.bytes();
        self.size.bytes += bytes;
        self.size.count += 1;
        let (before, here, after) = (seam.chunk.wrapping_sub(1), seam.chunk, seam.chunk + 1);
        let takes = |chunk: usize| self.chunks.get(chunk).is_some_and(|chunk| chunk.takes(bytes));
        if takes(here) {
            self.put(seam, entry);
        } else if seam.at == 0 && takes(before) {
            self.put(Seam { chunk: before, at: self.chunks[before].len() }, entry);
        } else if seam.at == self.chunks[here].len() && takes(after) {
            self.put(Seam { chunk: after, at: 0 }, entry);
        } else {
            self.insert_between(seam, entry);
        }
    }

    /// Puts an entry into a chunk that takes it.
    fn put(&mut self, seam: Seam, entry: &Entry<'_>) {
        self.edit_chunk(seam.chunk, |chunk| chunk.splice(seam.at, 0, &entry.pieces()));
        self.counts[seam.chunk] += 1;
    }

    /// Splits a full chunk at the seam and puts the entry into a half that takes it, or between.
    fn insert_between(&mut self, seam: Seam, entry: &Entry<'_>) {
        let len = self.chunks[seam.chunk].len();
        if seam.at > 0 && seam.at < len {
            self.split(seam);
            let (left, right) = (seam.chunk, seam.chunk + 1);
            if self.chunks[left].takes(entry.bytes()) {
                return self.put(seam, entry);
            }
            if self.chunks[right].takes(entry.bytes()) {
                return self.put(Seam { chunk: right, at: 0 }, entry);
            }
        }
        let home = seam.chunk + usize::from(seam.at > 0);
        self.put_chunk(home, (Chunk::from_run(&entry.pieces().concat()), 1));
    }

    /// Splits a chunk in two at a seam inside it.
    fn split(&mut self, seam: Seam) {
        let tail = self.edit_chunk(seam.chunk, |chunk| chunk.split_off(seam.at));
        let moved = Entries::new(tail.run()).count() as u16;
        self.counts[seam.chunk] -= moved;
        self.put_chunk(seam.chunk + 1, (tail, moved));
    }

    /// Replaces the element at `index`; `false` if there is none.
    pub fn set(&mut self, index: usize, element: Element<'_>) -> bool {
        let Some(spot) = self.locate(index) else {
            return false;
        };
        let entry = Entry::new(element);
        let run = self.run(spot.chunk);
        let at = run.offset(spot.index);
        let old = entry::entry_bytes(&run.bytes[at..]);
        let alone = run.count == 1;
        if alone || self.chunks[spot.chunk].len() - old + entry.bytes() <= CHUNK_BYTES {
            self.edit_chunk(spot.chunk, |chunk| {
                chunk.splice(at, old, &entry.pieces());
                chunk.fit();
            });
            self.size.bytes = self.size.bytes - old + entry.bytes();
        } else {
            self.edit_chunk(spot.chunk, |chunk| chunk.splice(at, old, &[]));
            self.counts[spot.chunk] -= 1;
            self.size.bytes -= old;
            self.size.count -= 1;
            self.insert_at(Seam { chunk: spot.chunk, at }, &entry);
        }
        true
    }

    /// Removes what equals `wanted`, within the quota; how many that were.
    pub fn remove(&mut self, quota: Quota, wanted: Element<'_>) -> usize {
        let mut left = quota.limit;
        let mut thinned = false;
        let total = self.chunks.len();
        for step in 0..total {
            if left == 0 {
                break;
            }
            let chunk = if quota.from_back { total - 1 - step } else { step };
            let found = self.run(chunk).matches(wanted, Quota { limit: left, ..quota });
            if found.is_empty() {
                continue;
            }
            self.edit_chunk(chunk, |chunk| chunk.cut_out(&found));
            self.counts[chunk] -= found.len() as u16;
            self.size.bytes -= found.iter().map(|gap| gap.len()).sum::<usize>();
            self.size.count -= found.len();
            left -= found.len();
            thinned |= self.chunks[chunk].len() < CHUNK_BYTES / 4;
        }
        if thinned {
            self.merge();
        }
        quota.limit - left
    }

    /// Drops empty chunks and joins small neighbours.
    fn merge(&mut self) {
        let chunks = std::mem::take(&mut self.chunks);
        let counts = std::mem::take(&mut self.counts);
        self.tally.remove(self.tally.chunk_bytes());
        for (chunk, count) in chunks.into_iter().zip(counts) {
            if chunk.is_empty() {
                continue;
            }
            let end = self.chunks.len();
            let room = |last: &Chunk| last.len() + chunk.len() <= CHUNK_BYTES / 4 * 3;
            if self.chunks.back().is_some_and(room) {
                self.edit_chunk(end - 1, |last| last.splice(last.len(), 0, &[chunk.run()]));
                self.counts[end - 1] += count;
            } else {
                self.put_chunk(end, (chunk, count));
            }
        }
    }

    /// Keeps only the elements of `range`, which is cut to the list.
    pub fn trim(&mut self, range: Range<usize>) {
        let end = range.end.min(self.size.count);
        let start = range.start.min(end);
        self.drop_end(End::Back, self.size.count - end);
        self.drop_end(End::Front, start);
        // What LTRIM leaves of a long list should not hold a long list's index.
        if self.chunks.capacity() > 64 && self.chunks.len() < self.chunks.capacity() / 4 {
            self.chunks.shrink_to_fit();
            self.counts.shrink_to_fit();
        }
    }

    /// Drops `count` elements from one end, whole chunks at once.
    fn drop_end(&mut self, end: End, count: usize) {
        let mut left = count;
        while left > 0 && !self.chunks.is_empty() {
            let at = match end {
                End::Front => 0,
                End::Back => self.chunks.len() - 1,
            };
            let run = self.run(at);
            let taken = left.min(run.count);
            let bytes = match end {
                End::Front => run.offset(taken),
                End::Back => run.bytes.len() - run.offset(run.count - taken),
            };
            match end {
                End::Front => self.chunks[at].cut_front(bytes),
                End::Back => self.chunks[at].cut_back(bytes),
            }
            self.took(at, Extent { bytes, count: taken });
            left -= taken;
        }
    }
}

impl Default for LargeList {
    fn default() -> Self {
        Self::new()
    }
}
