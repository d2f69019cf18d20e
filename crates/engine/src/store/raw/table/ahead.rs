//! Asking for the memory of segments and entries before it is needed. It reads no more than what
//! was asked for before, and changes nothing.

use super::core::{Core, fingerprint_of};
use super::entry::RawEntry;
use super::face::Table;
use super::handle::{EntryRef, View};
use super::segment::{HomeBucket, Likely};
use super::slab::page_of;
use crate::store::raw::prefetch::{LINE_BYTES, prefetch, prefetch_to_write};
use std::marker::PhantomData;

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

/// Where a search for a key will begin: found once, and asked for in steps.
#[derive(Clone, Copy)]
pub struct Home<'a, O> {
    bucket: HomeBucket<'a>,
    usual_bytes: usize,
    marker: PhantomData<&'a O>,
}

impl<'a, O> Home<'a, O> {
    #[inline]
    pub(super) fn new(table: &'a Table<O>, hash: u64) -> Self {
        let core = &table.core;
        Home {
            bucket: core.segment(core.index_of(hash)).home(fingerprint_of(hash)),
            usual_bytes: core.usual_entry_bytes(),
            marker: PhantomData,
        }
    }

    /// Asks for the bucket.
    #[inline]
    pub fn prefetch(&self) {
        self.bucket.prefetch();
    }

    /// Asks for the entry that the search will most likely read. If that is not where it belongs,
    /// says so, and [`Home::prefetch_passed_entry`] is to follow. As much as most entries have, or
    /// the first line, if the rest is asked for later.
    #[inline]
    pub fn prefetch_entry(&self, is_rest_later: bool) -> Likely<EntryRef<'a, O>> {
        let bytes = if is_rest_later { LINE_BYTES } else { self.usual_bytes };
        match self.bucket.prefetch_entry(bytes) {
            // SAFETY: 1. It lives in the table, which stays borrowed. 2. Its objects are `O`s.
            Likely::Here(entry) => Likely::Here(unsafe { EntryRef::new(entry) }),
            Likely::Passed => Likely::Passed,
            Likely::Absent => Likely::Absent,
        }
    }

    /// Asks for the entry if its bucket was full when it came, and it is in the next one.
    pub fn prefetch_passed_entry(&self) {
        self.bucket.prefetch_passed_entry(self.usual_bytes);
    }

    /// The object that the search will most likely find; another key's, rarely.
    #[inline]
    pub fn likely_object(&self) -> Option<&'a O> {
        let entry = self.bucket.likely_entry()?;
        // SAFETY: 1. The entry lives in the table, which stays borrowed. 2. Its objects are `O`s.
        match unsafe { EntryRef::new(entry) }.value() {
            View::Object(object) => Some(object),
            _ => None,
        }
    }
}
