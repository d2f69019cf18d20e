//! A block of entries: one run of bytes, and what is known of it without looking inside.

use super::id::StreamId;
use super::run::{Entries, Run, Scratch, listpack_int, put_entry, put_names};
use super::{BlockLimits, MEMBERS_BYTES_MAX};

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
    pub fn is_full(self, words_bytes: usize, limits: BlockLimits) -> bool {
        let bytes_max = match limits.bytes_max {
            0 => MEMBERS_BYTES_MAX,
            bytes => bytes.min(MEMBERS_BYTES_MAX),
        };
        let entries = u64::from(self.live) + u64::from(self.dead);
        self.listpack_bytes as usize + words_bytes >= bytes_max
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
#[derive(Clone, Default)]
pub struct Block {
    /// The last entry that was added, even if it is deleted since.
    pub last: StreamId,
    pub measure: Measure,
    bytes: Vec<u8>,
}

impl Block {
    /// A block with its first entry.
    pub fn begin<'w>(id: StreamId, words: impl ExactSizeIterator<Item = &'w [u8]> + Clone) -> Self {
        let mut scratch = Scratch::new();
        let listpack = put_names(&mut scratch, words.clone());
        let bytes = scratch.to_vec();
        let measure = Measure { live: 0, dead: 0, listpack_bytes: listpack as u32 };
        let mut block = Block { last: id, measure, bytes };
        block.append(id, id, words);
        block
    }

    /// A block made of a packed stream's parts.
    pub fn from_parts(last: StreamId, measure: Measure, bytes: &[u8]) -> Self {
        Block { last, measure, bytes: bytes.to_vec() }
    }

    /// Adds an entry; `first` is the block's key, `id` lies behind its last entry.
    pub fn append<'w>(
        &mut self,
        first: StreamId,
        id: StreamId,
        words: impl ExactSizeIterator<Item = &'w [u8]> + Clone,
    ) {
        let mut scratch = Scratch::new();
        let listpack = put_entry(&mut scratch, self.run(first), id, words);
        self.bytes.extend_from_slice(&scratch);
        self.measure.add(listpack);
        self.last = id;
    }

    #[inline]
    pub fn run(&self, first: StreamId) -> Run<'_> {
        Run::new(first, &self.bytes)
    }

    pub fn entries(&self, first: StreamId) -> Entries<'_> {
        self.run(first).entries()
    }

    /// No more will be added.
    pub fn close(&mut self) {
        self.bytes.shrink_to_fit();
    }

    /// Deletes one entry; false if it is not here.
    pub fn delete(&mut self, first: StreamId, id: StreamId) -> bool {
        let mut entries = self.entries(first);
        let mut start = 0;
        while let Some(entry) = entries.next() {
            if entry.id == id {
                let base = Run::entries_start(&self.bytes);
                let (from, to) = (base + start, base + entries.position());
                self.bytes.drain(from..to);
                self.measure.kill();
                return true;
            }
            if entry.id > id {
                return false;
            }
            start = entries.position();
        }
        false
    }

    pub fn memory_bytes(&self) -> usize {
        self.bytes.capacity()
    }
}
