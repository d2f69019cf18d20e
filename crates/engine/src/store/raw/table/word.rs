//! The word of a slot: which entry it holds, and what a search or a sweep wants to know of it.

use super::entry::RawEntry;
use super::pages::ADDRESS_BITS;
use crate::store::raw::prefetch::{LINE_BYTES, prefetch};
use std::ptr::{NonNull, null_mut};

const EXPIRY_BIT: usize = 1;
/// On the first word of a bucket only, and about the bucket, not about the entry.
const OVERFLOW_BIT: usize = 2;
/// The entry's expiry is before the segment's horizon.
const SOON_BIT: usize = 4;
pub(super) const POINTER_MASK: usize = (1 << ADDRESS_BITS) - 8;

/// A slot: fingerprint, pointer and flags in one word; no pointer means empty.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(super) struct Word(*mut u8);

impl Word {
    pub(super) const EMPTY: Word = Word(null_mut());

    pub(super) fn new(entry: RawEntry, fingerprint: u16) -> Word {
        let pointer = entry.pointer().as_ptr();
        assert!(pointer.addr() & !POINTER_MASK == 0, "blocks have 48-bit addresses, 8-aligned");
        Word(pointer.map_addr(|address| address | usize::from(fingerprint) << ADDRESS_BITS))
    }

    #[inline]
    pub(super) fn is_empty(self) -> bool {
        self.0.addr() & POINTER_MASK == 0
    }

    #[inline]
    pub(super) fn fingerprint(self) -> u16 {
        (self.0.addr() >> ADDRESS_BITS) as u16
    }

    #[inline]
    pub(super) fn has_expiry(self) -> bool {
        self.0.addr() & EXPIRY_BIT != 0
    }

    #[cfg(test)]
    pub(super) fn is_soon(self) -> bool {
        self.0.addr() & SOON_BIT != 0
    }

    pub(super) fn with_expiry(self, has_expiry: bool, is_soon: bool) -> Word {
        let bits = usize::from(has_expiry) * EXPIRY_BIT + usize::from(is_soon) * SOON_BIT;
        Word(self.0.map_addr(|address| address & !(EXPIRY_BIT | SOON_BIT) | bits))
    }

    /// The same slot word for an entry that moved.
    pub(super) fn moved_to(self, entry: RawEntry) -> Word {
        let kept = self.0.addr() & (EXPIRY_BIT | SOON_BIT);
        Word(Word::new(entry, self.fingerprint()).0.map_addr(|address| address | kept))
    }

    /// The same slot word, with all its marks, for an entry that moved.
    #[inline]
    pub(super) fn pointing_to(self, entry: RawEntry) -> Word {
        let marks = self.0.addr() & !POINTER_MASK;
        let pointer = entry.pointer().as_ptr();
        assert!(pointer.addr() & !POINTER_MASK == 0, "blocks have 48-bit addresses, 8-aligned");
        Word(pointer.map_addr(|address| address | marks))
    }

    pub(super) fn with_overflow_of(self, other: Word) -> Word {
        let mark = other.0.addr() & OVERFLOW_BIT;
        Word(self.0.map_addr(|address| address & !OVERFLOW_BIT | mark))
    }

    /// The entry of a word that is not empty.
    #[inline]
    pub(super) fn entry(self) -> RawEntry {
        let pointer = self.0.map_addr(|address| address & POINTER_MASK);
        let pointer = NonNull::new(pointer).expect("only words with a pointer are asked for it");
        // SAFETY: 1. Words are made from entries, keep their provenance, and leave the table no
        // later than their entry is freed. 2. The table's borrow rules guard the entry.
        unsafe { RawEntry::new(pointer) }
    }

    /// Prefetches so many bytes of the entry, and a line at least.
    #[inline]
    pub(super) fn prefetch(self, bytes: usize) {
        let pointer = self.0.map_addr(|address| address & POINTER_MASK);
        prefetch(pointer);
        let mut end = LINE_BYTES;
        loop {
            // Blocks are aligned to 8 bytes.
            prefetch(pointer.wrapping_add(end - 8));
            if end >= bytes {
                return;
            }
            end += LINE_BYTES;
        }
    }

    /// On the first word of a bucket: whether entries have passed the bucket by.
    #[inline]
    pub(super) fn is_overflowed(self) -> bool {
        self.0.addr() & OVERFLOW_BIT != 0
    }

    pub(super) fn with_overflow(self, is_overflowed: bool) -> Word {
        let mark = usize::from(is_overflowed) * OVERFLOW_BIT;
        Word(self.0.map_addr(|address| address & !OVERFLOW_BIT | mark))
    }

    #[inline]
    pub(super) fn has(self, flag: SlotFlag) -> bool {
        self.0.addr() & flag as usize != 0
    }
}

/// What may be asked of a slot without a look at its entry.
#[derive(Clone, Copy)]
pub(super) enum SlotFlag {
    Expires = EXPIRY_BIT as isize,
    ExpiresSoon = SOON_BIT as isize,
}
