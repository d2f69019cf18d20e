//! One node of a large list: a run of entries in a buffer with spare room at either end, so that
//! pushes and pops at the ends of a list move nothing. How many entries it has is kept by the list.

use crate::types::blob::Blob;
use crate::types::capacity::{allocated_bytes, fit_bytes};
use crate::types::cow_vec::{self, ARC_COUNTS_BYTES};
use std::iter::repeat_n;
use std::ops::Range;
use std::sync::Arc;

/// Largest buffer of a chunk, unless one element alone needs more. The allocator keeps books of its
/// own for each block of a whole page; of this size, with its counts, it cuts four from one stretch
/// of pages.
pub const CHUNK_BYTES: usize = 7168 - ARC_COUNTS_BYTES;
/// Smallest buffer that is worth an allocation of its own.
const BUFFER_BYTES_MIN: usize = 64;

/// Where a chunk's spare room should be.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Spare {
    Front,
    Back,
}

/// Room for entries, shared with clones of a list until one changes it.
pub type Buffer = Arc<[u8]>;

/// A buffer of so many bytes, which mean nothing.
pub fn new_buffer(bytes: usize) -> Buffer {
    repeat_n(0, bytes).collect()
}

/// What a buffer of so many bytes takes.
#[inline]
pub fn buffer_memory_bytes(bytes: usize) -> usize {
    allocated_bytes(ARC_COUNTS_BYTES + bytes)
}

/// The size of buffer, at least so large, that leaves nothing of its allocation unused.
pub fn fit_buffer(bytes: usize) -> usize {
    fit_bytes(ARC_COUNTS_BYTES + bytes) - ARC_COUNTS_BYTES
}

/// The entries are `buffer[start..end]`. Short numbers: a list of two chunks has little else.
#[derive(Clone)]
pub struct Chunk {
    buffer: Buffer,
    start: u32,
    end: u32,
}

impl Chunk {
    /// An empty chunk over a buffer whose contents do not matter.
    pub fn new(buffer: Buffer, spare: Spare) -> Self {
        let at = if spare == Spare::Front { buffer.len() } else { 0 };
        Chunk::of(buffer, at..at)
    }

    /// A chunk of exactly these entries.
    pub fn from_run(run: &[u8]) -> Self {
        Chunk::of(run.into(), 0..run.len())
    }

    fn of(buffer: Buffer, entries: Range<usize>) -> Self {
        let is_addressed = u32::try_from(buffer.len()).is_ok();
        assert!(is_addressed, "an element comes from a request, which has a 32-bit length");
        Chunk { buffer, start: entries.start as u32, end: entries.end as u32 }
    }

    /// Where the entries lie.
    #[inline]
    fn range(&self) -> Range<usize> {
        self.start as usize..self.end as usize
    }

    /// Says where the entries lie now, within the buffer.
    #[inline]
    fn set_range(&mut self, entries: Range<usize>) {
        debug_assert!(entries.start <= entries.end && entries.end <= self.buffer.len());
        (self.start, self.end) = (entries.start as u32, entries.end as u32);
    }

    /// Its buffer, unless a clone has it, too.
    pub fn into_buffer(mut self) -> Option<Buffer> {
        Arc::get_mut(&mut self.buffer).is_some().then_some(self.buffer)
    }

    /// The buffer, to be changed: it is copied first if a clone has it, too.
    #[inline]
    fn buffer_mut(&mut self) -> &mut [u8] {
        let (start, end) = (self.start as usize, self.end as usize);
        cow_vec::bytes_to_change(&mut self.buffer, || end - start)
    }

    pub fn run(&self) -> &[u8] {
        &self.buffer[self.range()]
    }

    pub fn len(&self) -> usize {
        (self.end - self.start) as usize
    }

    pub fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// Bytes of its buffer.
    #[inline]
    pub fn capacity(&self) -> usize {
        self.buffer.len()
    }

    #[inline]
    pub fn memory_bytes(&self) -> usize {
        buffer_memory_bytes(self.buffer.len())
    }

    /// Whether `added` more bytes keep it within a chunk's size.
    pub fn takes(&self, added: usize) -> bool {
        self.len() + added <= CHUNK_BYTES
    }

    /// Whether the entries should be moved over `spare` bytes on their far side to make room for
    /// so many more: if that gains enough. Beside a full buffer a fresh chunk is the alternative.
    fn is_worth_sliding(&self, spare: usize, bytes: usize) -> bool {
        let share = if self.buffer.len() < CHUNK_BYTES { 8 } else { 2 };
        spare >= self.buffer.len() / share && self.len() + bytes <= self.buffer.len()
    }

    /// Room for `bytes` more at the end, or `None` if a fresh chunk is the better home.
    #[inline]
    pub fn grow_back(&mut self, bytes: usize) -> Option<&mut [u8]> {
        if self.range().end + bytes > self.buffer.len() {
            if !self.takes(bytes) {
                return None;
            }
            if self.is_worth_sliding(self.range().start, bytes) {
                self.slide(Spare::Back);
            } else if self.buffer.len() < CHUNK_BYTES {
                self.move_to(self.grown_bytes(bytes), Spare::Back);
            } else {
                return None;
            }
        }
        let Range { start, end } = self.range();
        self.set_range(start..end + bytes);
        Some(&mut self.buffer_mut()[end..end + bytes])
    }

    /// The same at the front.
    #[inline]
    pub fn grow_front(&mut self, bytes: usize) -> Option<&mut [u8]> {
        if self.range().start < bytes {
            if !self.takes(bytes) {
                return None;
            }
            if self.is_worth_sliding(self.buffer.len() - self.range().end, bytes) {
                self.slide(Spare::Front);
            } else if self.buffer.len() < CHUNK_BYTES {
                self.move_to(self.grown_bytes(bytes), Spare::Front);
            } else {
                return None;
            }
        }
        let Range { start, end } = self.range();
        self.set_range(start - bytes..end);
        Some(&mut self.buffer_mut()[start - bytes..start])
    }

    pub fn cut_front(&mut self, bytes: usize) {
        debug_assert!(bytes <= self.len());
        self.start += bytes as u32;
    }

    pub fn cut_back(&mut self, bytes: usize) {
        debug_assert!(bytes <= self.len());
        self.end -= bytes as u32;
    }

    /// Takes the entries from `at` on into a chunk of their own.
    pub fn split_off(&mut self, at: usize) -> Chunk {
        let tail = Chunk::from_run(&self.run()[at..]);
        self.set_range(self.range().start..self.range().start + at);
        self.fit();
        tail
    }

    /// Closes the gaps, given in order, that removed entries leave.
    pub fn cut_out(&mut self, gaps: &[Range<usize>]) {
        let Some(first) = gaps.first() else {
            return;
        };
        let (start, len) = (self.range().start, self.len());
        let mut to = start + first.start;
        let buffer = self.buffer_mut();
        for (index, gap) in gaps.iter().enumerate() {
            let next = gaps.get(index + 1).map_or(len, |next| next.start);
            let kept = start + gap.end..start + next;
            let kept_len = kept.len();
            buffer.copy_within(kept, to);
            to += kept_len;
        }
        self.set_range(start..to);
        self.fit();
    }

    /// Gives back the room that will not be used again once the list grows past this chunk.
    pub fn seal(&mut self) {
        if self.buffer.len() - self.len() >= CHUNK_BYTES / 8 {
            self.move_to(self.len(), Spare::Back);
        }
    }

    /// Gives memory back if less than half of the buffer is used.
    pub fn fit(&mut self) {
        if self.buffer.len() > BUFFER_BYTES_MIN && self.len() < self.buffer.len() / 2 {
            self.move_to(self.len(), Spare::Back);
        }
    }

    /// The buffer to ask for when `added` bytes do not fit: an eighth more, so that growth is
    /// amortised, in sizes of the allocator's, up to a chunk's size.
    fn grown_bytes(&self, added: usize) -> usize {
        let needed = self.len() + added;
        let roomy = (needed + needed / 8).clamp(BUFFER_BYTES_MIN, CHUNK_BYTES);
        needed.max(fit_buffer(roomy))
    }

    /// Puts the entries into a new buffer.
    fn move_to(&mut self, buffer_bytes: usize, spare: Spare) {
        let len = self.len();
        let start = if spare == Spare::Front { buffer_bytes - len } else { 0 };
        let mut moved = Chunk::of(new_buffer(buffer_bytes), start..start + len);
        moved.buffer_mut()[start..start + len].copy_from_slice(self.run());
        *self = moved;
    }

    /// Moves the entries to one side of their buffer.
    fn slide(&mut self, spare: Spare) {
        let len = self.len();
        let start = if spare == Spare::Front { self.buffer.len() - len } else { 0 };
        let entries = self.range();
        self.buffer_mut().copy_within(entries, start);
        self.set_range(start..start + len);
    }
}

impl Blob for Chunk {
    fn bytes(&self) -> &[u8] {
        self.run()
    }

    fn overwrite(&mut self, at: usize, with: &[u8]) {
        let at = self.range().start + at;
        self.buffer_mut()[at..at + with.len()].copy_from_slice(with);
    }

    fn splice(&mut self, at: usize, remove: usize, insert: &[&[u8]]) {
        let added: usize = insert.iter().map(|piece| piece.len()).sum();
        let (len, capacity) = (self.len(), self.buffer.len());
        let tail = len - at - remove;
        let Range { start, end } = self.range();
        if len - remove + added > capacity {
            self.move_to(self.grown_bytes(added - remove), Spare::Back);
        } else if start + remove < added && end - remove + added > capacity {
            // Room on both sides, enough on neither.
            self.slide(Spare::Back);
        }
        // The shorter side moves, if there is room on its side.
        let Range { start, end } = self.range();
        let end_moved = end - remove + added;
        match (start + remove).checked_sub(added) {
            Some(start_moved) if at <= tail || end_moved > self.buffer.len() => {
                self.buffer_mut().copy_within(start..start + at, start_moved);
                self.set_range(start_moved..end);
            }
            _ => {
                self.buffer_mut().copy_within(end - tail..end, end_moved - tail);
                self.set_range(start..end_moved);
            }
        }
        let mut to = self.range().start + at;
        let buffer = self.buffer_mut();
        for piece in insert {
            buffer[to..to + piece.len()].copy_from_slice(piece);
            to += piece.len();
        }
    }
}
