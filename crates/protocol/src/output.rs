//! Replies that wait to be sent: a buffer that is written to, and before it chunks that are full.
//!
//! Small replies are appended to the buffer, and as a rule one write sends them. A full buffer
//! becomes a chunk, so that a reply which grows is never copied, and what was sent is freed chunk
//! by chunk. A long string is a chunk of its own: it is sent from where it is stored.

use russet_base::SharedBytes;
use russet_base::capacity::allocated_bytes;
use russet_base::limits::LONG_STRING_BYTES;
use russet_base::shared::shrink_queue_beyond;
use std::borrow::Cow;
use std::collections::VecDeque;
use std::io::IoSlice;

/// A buffer of this length becomes a chunk.
pub const CHUNK_BYTES: usize = 64 * 1024;
/// What a buffer must have left for the next short piece of a reply.
const PIECE_BYTES_MAX: usize = 256;
pub(crate) const CHUNK_FULL_BYTES: usize = CHUNK_BYTES - PIECE_BYTES_MAX;
/// Places for chunks that an output without any keeps.
const CHUNKS_KEPT_MAX: usize = 16;

enum Chunk {
    Own(Vec<u8>),
    Shared {
        bytes: SharedBytes,
        /// A message: those who are to get it are all that have its bytes. Other strings belong to
        /// the keyspace, until it has them no longer.
        is_message: bool,
        /// What of them counts for this output.
        counted: usize,
    },
}

impl Chunk {
    fn bytes(&self) -> &[u8] {
        match self {
            Chunk::Own(bytes) => bytes,
            Chunk::Shared { bytes, .. } => bytes,
        }
    }

    /// Bytes on the heap that only this output has, or its share of them.
    fn capacity(&self) -> usize {
        match self {
            Chunk::Own(bytes) => bytes.capacity(),
            Chunk::Shared { counted, .. } => *counted,
        }
    }

    fn shared(bytes: SharedBytes, is_message: bool) -> Chunk {
        let counted = share_bytes(&bytes, is_message);
        Chunk::Shared { bytes, is_message, counted }
    }
}

/// What of shared bytes counts for one who has them: its part of a message, and all of a string
/// that nobody else has any more.
fn share_bytes(bytes: &SharedBytes, is_message: bool) -> usize {
    let taken = allocated_bytes(bytes.capacity());
    match SharedBytes::strong_count(bytes) {
        owners if is_message => taken / owners,
        1 => taken,
        _ => 0,
    }
}

/// The chunks of an output, first to be sent first.
#[derive(Default)]
pub(crate) struct Chunks {
    queue: VecDeque<Chunk>,
    /// Bytes of all of them.
    bytes: usize,
    /// Bytes that they take up: those that they share with nobody, and their part of others.
    capacity: usize,
    /// How many of them are shared.
    shared: usize,
}

impl Chunks {
    fn push(&mut self, chunk: Chunk) {
        self.bytes += chunk.bytes().len();
        self.capacity += chunk.capacity();
        self.shared += usize::from(matches!(chunk, Chunk::Shared { .. }));
        self.queue.push_back(chunk);
    }

    /// Forgets a chunk that was taken from the queue.
    fn taken(&mut self, chunk: &Chunk) {
        self.bytes -= chunk.bytes().len();
        self.capacity -= chunk.capacity();
        self.shared -= usize::from(matches!(chunk, Chunk::Shared { .. }));
    }

    fn pop_front(&mut self) {
        if let Some(chunk) = self.queue.pop_front() {
            self.taken(&chunk);
        }
        if self.queue.is_empty() {
            shrink_queue_beyond(&mut self.queue, CHUNKS_KEPT_MAX);
        }
    }

    /// Puts bytes in at a position inside or between chunks.
    #[cold]
    fn insert(&mut self, at: usize, bytes: &[u8]) {
        let mut start = 0;
        for (index, chunk) in self.queue.iter_mut().enumerate() {
            let end = start + chunk.bytes().len();
            if at == start {
                self.bytes += bytes.len();
                self.capacity += bytes.len();
                return self.queue.insert(index, Chunk::Own(bytes.to_vec()));
            }
            if at < end {
                // A position is where a reply began: never inside a stored string.
                if let Chunk::Own(own) = chunk {
                    let before = own.capacity();
                    own.splice(at - start..at - start, bytes.iter().copied());
                    self.bytes += bytes.len();
                    self.capacity += own.capacity() - before;
                }
                return;
            }
            start = end;
        }
    }

    /// Drops all bytes from a position on.
    fn truncate(&mut self, len: usize) {
        while self.bytes > len {
            let Some(last) = self.queue.pop_back() else { return };
            self.taken(&last);
            if self.bytes < len {
                let kept = last.bytes()[..len - self.bytes].to_vec();
                return self.push(Chunk::Own(kept));
            }
        }
    }

    fn recount_shared(&mut self) {
        if self.shared == 0 {
            return;
        }
        for chunk in &mut self.queue {
            if let Chunk::Shared { bytes, is_message, counted } = chunk {
                let share = share_bytes(bytes, *is_message);
                self.capacity = self.capacity - *counted + share;
                *counted = share;
            }
        }
    }
}

/// What a connection has yet to send.
#[derive(Default)]
pub struct Output {
    chunks: Chunks,
    /// What was written last.
    buffer: Vec<u8>,
    /// How much of the first chunk, or of the buffer if there is none, was sent.
    sent: usize,
    /// All that was ever sent.
    sent_total: u64,
    /// Nothing behind this position may be sent yet.
    limit: Option<u64>,
}

impl Output {
    /// Bytes from the first that is kept, which may have been sent, to the end.
    pub fn len(&self) -> usize {
        self.chunks.bytes + self.buffer.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn unsent_bytes(&self) -> usize {
        self.len() - self.sent
    }

    /// The position in all that was ever written up to which it was sent.
    pub fn sent_position(&self) -> u64 {
        self.sent_total
    }

    /// The position behind the last byte.
    pub fn end_position(&self) -> u64 {
        self.sent_total + self.unsent_bytes() as u64
    }

    pub fn limit(&self) -> Option<u64> {
        self.limit
    }

    /// Nothing behind this position is to be sent, until another limit is set.
    pub fn set_limit(&mut self, limit: Option<u64>) {
        self.limit = limit;
    }

    /// What may be sent now of what is not.
    #[inline]
    pub fn sendable_bytes(&self) -> usize {
        match self.limit {
            None => self.unsent_bytes(),
            Some(limit) => {
                let left = limit.saturating_sub(self.sent_total);
                usize::try_from(left).unwrap_or(usize::MAX).min(self.unsent_bytes())
            }
        }
    }

    /// Bytes that it takes up itself: stored strings that it sends are not among them, as far as
    /// [`Output::recount_shared`] knows.
    pub fn capacity(&self) -> usize {
        self.chunks.capacity + self.buffer.capacity()
    }

    /// Looks again at who else has the strings that it sends: one that was deleted takes up memory
    /// for no other reason than this.
    pub fn recount_shared(&mut self) {
        self.chunks.recount_shared();
    }

    /// Takes a buffer to write to, unless it has one with something in it.
    #[inline]
    pub fn borrow_buffer(&mut self, buffer: &mut Vec<u8>) {
        if self.buffer.is_empty() {
            self.buffer = std::mem::take(buffer);
        }
    }

    /// Gives the buffer back if nothing is in it. One that is kept has little room to spare.
    #[inline]
    pub fn return_buffer(&mut self, buffer: &mut Vec<u8>) {
        if self.buffer.is_empty() {
            *buffer = std::mem::take(&mut self.buffer);
        } else if self.buffer.capacity() > 2 * self.buffer.len() + PIECE_BYTES_MAX {
            self.buffer.shrink_to(self.buffer.len() + PIECE_BYTES_MAX);
        }
    }

    pub fn extend_from_slice(&mut self, bytes: &[u8]) {
        Wire::from(self).extend_from_slice(bytes);
    }

    /// Adds a message, which others get, too, without copying it if it is long.
    pub fn push_message(&mut self, bytes: SharedBytes) {
        Wire::from(self).push(bytes, true);
    }

    /// Drops all bytes; none of them may have been sent.
    #[inline]
    pub fn clear(&mut self) {
        self.buffer.clear();
        if !self.chunks.queue.is_empty() {
            self.chunks.truncate(0);
        }
    }

    /// Drops all bytes from a position on; none of them may have been sent.
    pub fn truncate(&mut self, len: usize) {
        self.buffer.truncate(len.saturating_sub(self.chunks.bytes));
        self.chunks.truncate(len);
    }

    /// The bytes from a position on.
    pub fn bytes_from(&self, start: usize) -> Cow<'_, [u8]> {
        bytes_from((&self.chunks, &self.buffer), start)
    }

    /// All that is to be sent, if it is one run of bytes.
    #[inline]
    pub fn only_run(&self) -> Option<&[u8]> {
        let sendable = self.sent + self.sendable_bytes();
        self.chunks.queue.is_empty().then(|| &self.buffer[self.sent..sendable])
    }

    /// The first runs of bytes to be sent; how many they are.
    pub fn runs<'a>(&'a self, slices: &mut [IoSlice<'a>]) -> usize {
        let chunks = self.chunks.queue.iter().map(Chunk::bytes).chain([self.buffer.as_slice()]);
        let mut skip = self.sent;
        let mut left = self.sendable_bytes();
        let mut count = 0;
        for bytes in chunks.take(slices.len()) {
            let bytes = &bytes[std::mem::take(&mut skip)..];
            slices[count] = IoSlice::new(&bytes[..bytes.len().min(left)]);
            left = left.saturating_sub(bytes.len());
            count += 1;
            if left == 0 {
                break;
            }
        }
        count
    }

    /// So many more bytes were sent: what held them is freed.
    #[inline]
    pub fn advance(&mut self, bytes: usize) {
        self.sent += bytes;
        self.sent_total += bytes as u64;
        if !self.chunks.queue.is_empty() {
            self.free_sent_chunks();
        }
        if !self.chunks.queue.is_empty() {
            return;
        }
        if self.sent == self.buffer.len() {
            self.sent = 0;
            self.buffer.clear();
        } else if self.sent > self.buffer.len() / 2 {
            self.buffer.drain(..self.sent);
            self.sent = 0;
        }
    }

    fn free_sent_chunks(&mut self) {
        while let Some(first) = self.chunks.queue.front() {
            let len = first.bytes().len();
            if self.sent < len {
                break;
            }
            self.sent -= len;
            self.chunks.pop_front();
        }
    }
}

/// Where RESP bytes are written: the output of a connection, or a plain buffer, which is never
/// divided.
pub struct Wire<'a> {
    pub(crate) buffer: &'a mut Vec<u8>,
    chunks: Option<&'a mut Chunks>,
}

impl<'a> From<&'a mut Vec<u8>> for Wire<'a> {
    fn from(buffer: &'a mut Vec<u8>) -> Self {
        Wire { buffer, chunks: None }
    }
}

impl<'a> From<&'a mut Output> for Wire<'a> {
    fn from(output: &'a mut Output) -> Self {
        Wire { buffer: &mut output.buffer, chunks: Some(&mut output.chunks) }
    }
}

impl Wire<'_> {
    pub fn reborrow(&mut self) -> Wire<'_> {
        Wire { buffer: self.buffer, chunks: self.chunks.as_deref_mut() }
    }

    fn sealed_bytes(&self) -> usize {
        self.chunks.as_ref().map_or(0, |chunks| chunks.bytes)
    }

    /// Bytes so far: a position that [`Wire::bytes_from`] takes.
    pub fn len(&self) -> usize {
        self.sealed_bytes() + self.buffer.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes that are taken up, stored strings apart.
    pub fn capacity(&self) -> usize {
        self.chunks.as_ref().map_or(0, |chunks| chunks.capacity) + self.buffer.capacity()
    }

    /// The bytes from a position on.
    pub fn bytes_from(&self, start: usize) -> Cow<'_, [u8]> {
        match &self.chunks {
            Some(chunks) => bytes_from((chunks, self.buffer), start),
            None => Cow::Borrowed(&self.buffer[start..]),
        }
    }

    /// Makes room for about so many bytes more, or for the next chunk of them.
    pub fn reserve(&mut self, bytes: usize) {
        match self.chunks {
            Some(_) => {
                let room = CHUNK_BYTES.saturating_sub(self.buffer.len());
                self.buffer.reserve(bytes.min(room));
            }
            None => self.buffer.reserve(bytes),
        }
    }

    pub fn extend_from_slice(&mut self, bytes: &[u8]) {
        self.make_room(bytes.len());
        self.buffer.extend_from_slice(bytes);
    }

    /// Sees to it that so many bytes can be appended and the buffer stays a chunk's size, or is as
    /// long as they are.
    #[inline]
    pub(crate) fn make_room(&mut self, bytes: usize) {
        if self.buffer.len() + bytes > CHUNK_BYTES && self.chunks.is_some() {
            self.seal();
            self.buffer.reserve_exact(bytes.max(CHUNK_BYTES));
        }
    }

    /// Between short pieces: a full buffer becomes a chunk.
    #[inline]
    pub(crate) fn seal_if_full(&mut self) {
        if self.buffer.len() >= CHUNK_FULL_BYTES {
            self.seal_full();
        }
    }

    #[cold]
    #[inline(never)]
    fn seal_full(&mut self) {
        if self.chunks.is_some() {
            self.seal();
            self.buffer.reserve_exact(CHUNK_BYTES);
        }
    }

    /// Makes a chunk of what is in the buffer. Few bytes are copied and leave the buffer its room.
    fn seal(&mut self) {
        let Some(chunks) = &mut self.chunks else { return };
        if self.buffer.is_empty() {
            return;
        }
        if self.buffer.len() < self.buffer.capacity() / 2 {
            chunks.push(Chunk::Own(self.buffer.as_slice().into()));
            self.buffer.clear();
        } else {
            chunks.push(Chunk::Own(std::mem::take(self.buffer)));
        }
    }

    /// Adds bytes that others have, too: a chunk without a copy if they are many.
    pub fn push_shared(&mut self, bytes: &SharedBytes) {
        if bytes.len() < LONG_STRING_BYTES || self.chunks.is_none() {
            return self.extend_from_slice(bytes);
        }
        self.push(bytes.clone(), false);
    }

    fn push(&mut self, bytes: SharedBytes, is_message: bool) {
        if bytes.len() < LONG_STRING_BYTES {
            return self.extend_from_slice(&bytes);
        }
        self.seal();
        match &mut self.chunks {
            Some(chunks) => chunks.push(Chunk::shared(bytes, is_message)),
            None => self.extend_from_slice(&bytes),
        }
    }

    /// Puts bytes in where a reply began: `at` is a position.
    pub(crate) fn insert(&mut self, at: usize, bytes: &[u8]) {
        let sealed = self.sealed_bytes();
        assert!(at <= self.len(), "a position lies in the output that it was asked of");
        if let Some(chunks) = &mut self.chunks
            && at < sealed
        {
            return chunks.insert(at, bytes);
        }
        self.buffer.extend_from_slice(bytes);
        self.buffer[at - sealed..].rotate_right(bytes.len());
    }
}

fn bytes_from<'a>((chunks, buffer): (&'a Chunks, &'a [u8]), start: usize) -> Cow<'a, [u8]> {
    if start >= chunks.bytes {
        return Cow::Borrowed(&buffer[start - chunks.bytes..]);
    }
    let mut all = Vec::with_capacity(chunks.bytes + buffer.len() - start);
    let mut skip = start;
    for chunk in &chunks.queue {
        let bytes = chunk.bytes();
        all.extend_from_slice(bytes.get(skip..).unwrap_or_default());
        skip = skip.saturating_sub(bytes.len());
    }
    all.extend_from_slice(buffer);
    Cow::Owned(all)
}

#[cfg(test)]
mod tests;
