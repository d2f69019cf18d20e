//! Asking for the memory of segments and entries before it is needed. It reads no more than what
//! was asked for before, and changes nothing.

use super::core::Core;
use super::entry::RawEntry;
use super::slab::page_of;
use crate::store::raw::prefetch::{LINE_BYTES, prefetch, prefetch_to_write};

/// Lines of an entry that are asked for without a look at how long it is, and the bytes of a longer
/// one.
const ENTRY_LINES: usize = 5;
const ENTRY_BYTES_MAX: usize = 1024;

impl RawEntry {
    /// Asks for its memory behind the first line, which may still be on its way: so what is asked
    /// for is found without a branch that would wait for it.
    #[inline]
    pub(super) fn prefetch_rest(self) {
        let (start, end) = (self.pointer().as_ptr(), self.layout().bytes());
        // Blocks are aligned to 8 bytes.
        for line in 2..ENTRY_LINES {
            prefetch(start.wrapping_add((line * LINE_BYTES - 8).min(end - 1)));
        }
        prefetch(start.wrapping_add(end - 1));
        if end > ENTRY_LINES * LINE_BYTES {
            self.prefetch_long_rest(end);
        }
    }

    #[inline(never)]
    fn prefetch_long_rest(self, end: usize) {
        for at in (ENTRY_LINES * LINE_BYTES - 8..end.min(ENTRY_BYTES_MAX)).step_by(LINE_BYTES) {
            prefetch(self.pointer().as_ptr().wrapping_add(at));
        }
    }

    /// Asks for what is changed, too, when its block is given back.
    #[inline]
    pub(super) fn prefetch_page(self) {
        prefetch_to_write(page_of(self.pointer()));
    }
}

impl Core {
    /// The lines of a segment that a search reads, but for that of the last groups.
    #[inline]
    pub(super) fn prefetch_segment(&self, hash: u64) {
        let segment = (&raw const *self.segment(self.index_of(hash))).cast::<u8>();
        prefetch(segment);
        prefetch(segment.wrapping_add(LINE_BYTES));
    }

    /// How much of an entry is worth asking for: as many bytes as most entries here have.
    #[inline]
    pub(super) fn usual_entry_bytes(&self) -> usize {
        match self.account.blocks {
            blocks if blocks <= LINE_BYTES * self.len => LINE_BYTES,
            blocks if blocks <= 2 * LINE_BYTES * self.len => 2 * LINE_BYTES,
            _ => 4 * LINE_BYTES,
        }
    }
}
