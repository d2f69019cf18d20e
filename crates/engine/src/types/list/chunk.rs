//! One node of a large list: a run of entries in a buffer with spare room at either end, so that
//! pushes and pops at the ends of a list move nothing. How many entries it has is kept by the list.

use crate::types::blob::Blob;
use crate::types::capacity::{allocated_bytes, fit_bytes};

/// Largest buffer of a chunk, unless one element alone needs more. The allocator keeps books of its
/// own for each block of a whole page; of this size it cuts four from one stretch of pages.
pub const CHUNK_BYTES: usize = 7168;
/// Smallest buffer that is worth an allocation of its own.
const BUFFER_BYTES_MIN: usize = 64;

/// Where a chunk's spare room should be.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Spare {
    Front,
    Back,
}

/// The entries are `buffer[start..end]`.
#[derive(Clone)]
pub struct Chunk {
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
}

impl Chunk {
    /// An empty chunk over a buffer whose contents do not matter.
    pub fn new(buffer: Box<[u8]>, spare: Spare) -> Self {
        let at = if spare == Spare::Front { buffer.len() } else { 0 };
        Chunk { buffer, start: at, end: at }
    }

    /// A chunk of exactly these entries.
    pub fn from_run(run: &[u8]) -> Self {
        Chunk { buffer: run.into(), start: 0, end: run.len() }
    }

    pub fn into_buffer(self) -> Box<[u8]> {
        self.buffer
    }

    pub fn run(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    pub fn len(&self) -> usize {
        self.end - self.start
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
        allocated_bytes(self.buffer.len())
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
        if self.end + bytes > self.buffer.len() {
            if !self.takes(bytes) {
                return None;
            }
            if self.is_worth_sliding(self.start, bytes) {
                self.slide(Spare::Back);
            } else if self.buffer.len() < CHUNK_BYTES {
                self.move_to(self.grown_bytes(bytes), Spare::Back);
            } else {
                return None;
            }
        }
        let at = self.end;
        self.end += bytes;
        Some(&mut self.buffer[at..self.end])
    }

    /// The same at the front.
    #[inline]
    pub fn grow_front(&mut self, bytes: usize) -> Option<&mut [u8]> {
        if self.start < bytes {
            if !self.takes(bytes) {
                return None;
            }
            if self.is_worth_sliding(self.buffer.len() - self.end, bytes) {
                self.slide(Spare::Front);
            } else if self.buffer.len() < CHUNK_BYTES {
                self.move_to(self.grown_bytes(bytes), Spare::Front);
            } else {
                return None;
            }
        }
        self.start -= bytes;
        Some(&mut self.buffer[self.start..self.start + bytes])
    }

    pub fn cut_front(&mut self, bytes: usize) {
        debug_assert!(bytes <= self.len());
        self.start += bytes;
    }

    pub fn cut_back(&mut self, bytes: usize) {
        debug_assert!(bytes <= self.len());
        self.end -= bytes;
    }

    /// Takes the entries from `at` on into a chunk of their own.
    pub fn split_off(&mut self, at: usize) -> Chunk {
        let tail = Chunk::from_run(&self.run()[at..]);
        self.end = self.start + at;
        self.fit();
        tail
    }

    /// Closes the gaps, given in order, that removed entries leave.
    pub fn cut_out(&mut self, gaps: &[std::ops::Range<usize>]) {
        let Some(first) = gaps.first() else {
            return;
        };
        let mut to = self.start + first.start;
        for (index, gap) in gaps.iter().enumerate() {
            let next = gaps.get(index + 1).map_or(self.len(), |next| next.start);
            let kept = self.start + gap.end..self.start + next;
            let kept_len = kept.len();
            self.buffer.copy_within(kept, to);
            to += kept_len;
        }
        self.end = to;
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
        needed.max(fit_bytes(roomy))
    }

    /// Puts the entries into a new buffer.
    fn move_to(&mut self, buffer_bytes: usize, spare: Spare) {
        let len = self.len();
        let mut buffer = vec![0; buffer_bytes].into_boxed_slice();
        let start = if spare == Spare::Front { buffer_bytes - len } else { 0 };
        buffer[start..start + len].copy_from_slice(self.run());
        *self = Chunk { buffer, start, end: start + len };
    }

    /// Moves the entries to one side of their buffer.
    fn slide(&mut self, spare: Spare) {
        let len = self.len();
        let start = if spare == Spare::Front { self.buffer.len() - len } else { 0 };
        self.buffer.copy_within(self.start..self.end, start);
        (self.start, self.end) = (start, start + len);
    }
}

impl Blob for Chunk {
    fn bytes(&self) -> &[u8] {
        self.run()
    }

    fn overwrite(&mut self, at: usize, with: &[u8]) {
        let at = self.start + at;
        self.buffer[at..at + with.len()].copy_from_slice(with);
    }

    fn splice(&mut self, at: usize, remove: usize, insert: &[&[u8]]) {
        let added: usize = insert.iter().map(|piece| piece.len()).sum();
        let (len, capacity) = (self.len(), self.buffer.len());
        let tail = len - at - remove;
        if len - remove + added > capacity {
            self.move_to(self.grown_bytes(added - remove), Spare::Back);
        } else if self.start + remove < added && self.end - remove + added > capacity {
            // Room on both sides, enough on neither.
            self.slide(Spare::Back);
        }
        // The shorter side moves, if there is room on its side.
        let end_moved = self.end - remove + added;
        match (self.start + remove).checked_sub(added) {
            Some(start) if at <= tail || end_moved > self.buffer.len() => {
                self.buffer.copy_within(self.start..self.start + at, start);
                self.start = start;
            }
            _ => {
                self.buffer.copy_within(self.end - tail..self.end, end_moved - tail);
                self.end = end_moved;
            }
        }
        let mut to = self.start + at;
        for piece in insert {
            self.buffer[to..to + piece.len()].copy_from_slice(piece);
            to += piece.len();
        }
    }
}
