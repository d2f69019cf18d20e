//! The face of the table: keys in, entries out. Everything here is safe to call; the work is done
//! by the modules below.

use super::account::{Changed, Measured};
use super::ahead::Home;
use super::blocks::Blocks;
use super::core::Core;
use super::handle::{EntryMut, EntryRef, NewValue, Slot, VacantEntry};
use super::removed::{Deleted, Removed};
use russet_base::hash::KeyHasher;
use std::marker::PhantomData;
use std::sync::Arc;

/// The keys of one shard of one database. `O` is the type of values too large to live inline.
pub struct Table<O> {
    pub(super) core: Core,
    hasher: KeyHasher,
    marker: PhantomData<Box<O>>,
}

// SAFETY: 1. A table owns its entries, segments and pages alone; the pool that it shares is
// synchronised. 2. Its objects are sent along, hence the bound on `O`.
unsafe impl<O: Send> Send for Table<O> {}
// SAFETY: 1. Through `&Table` entries are only read, objects included.
unsafe impl<O: Sync> Sync for Table<O> {}

impl<O> Table<O> {
    /// Allocates nothing until the first key arrives. The hash that goes with each key must be the
    /// hasher's own. Other tables may have the same blocks.
    pub fn new(blocks: Arc<Blocks>, hasher: KeyHasher) -> Table<O> {
        Table { core: Core::new(blocks), hasher, marker: PhantomData }
    }

    /// An empty table with the same blocks.
    pub fn empty_twin(&self) -> Table<O> {
        Table { core: self.core.empty_twin(), hasher: self.hasher, marker: PhantomData }
    }

    /// Has room for so many keys at once, if it has never held any.
    pub fn reserve(&mut self, keys: usize) {
        self.core.reserve(keys);
    }

    #[inline]
    pub fn len(&self) -> usize {
        self.core.len
    }

    pub fn is_empty(&self) -> bool {
        self.core.len == 0
    }

    /// Keys that have an expiry.
    pub fn expires_len(&self) -> usize {
        self.core.expires
    }

    /// Bytes of slots, entries and objects.
    pub fn memory_bytes(&self) -> usize {
        self.core.counted_bytes()
    }

    /// By how much [`Table::memory_bytes`] has grown since it was last published, as it is now.
    pub fn take_unpublished(&mut self) -> isize {
        self.core.take_unpublished()
    }

    /// Bytes of slots and directory.
    pub fn slot_bytes(&self) -> usize {
        self.core.account.slots + self.core.directory_bytes()
    }

    /// Bytes of live entries, by the size of their blocks.
    pub fn allocated_bytes(&self) -> usize {
        self.core.account.blocks
    }

    /// Where the entries live.
    pub fn blocks(&self) -> &Blocks {
        self.core.blocks()
    }

    /// Entries are unsaved from now on if they do not have this mark; new ones have it. All that
    /// are there must have had the other.
    pub fn set_mark(&mut self, mark: bool) {
        self.core.mark = mark;
    }

    #[inline]
    pub fn find(&self, key: &[u8], hash: u64) -> Option<EntryRef<'_, O>> {
        let (_, entry) = self.core.find(key, hash)?;
        // SAFETY: 1. The entry lives in the table, which stays borrowed. 2. Its objects are `O`s.
        Some(unsafe { EntryRef::new(entry) })
    }

    /// Part of its callers, the path of every command: see [`Segment::find`].
    ///
    /// [`Segment::find`]: super::segment::Segment::find
    #[inline(always)]
    pub fn find_mut(&mut self, key: &[u8], hash: u64) -> Option<EntryMut<'_, O>> {
        let found = self.core.find(key, hash)?;
        // SAFETY: 1. It was found just now. 2. The table's objects are `O`s.
        Some(unsafe { EntryMut::new(&mut self.core, found) })
    }

    /// Finds a key or its vacancy with one search.
    pub fn entry(&mut self, key: &[u8], hash: u64) -> Slot<'_, O> {
        match self.core.find(key, hash) {
            // SAFETY: 1. It was found just now. 2. The table's objects are `O`s.
            Some(found) => Slot::Occupied(unsafe { EntryMut::new(&mut self.core, found) }),
            None => Slot::Vacant(self.vacant(hash)),
        }
    }

    fn vacant(&mut self, hash: u64) -> VacantEntry<'_, O> {
        // SAFETY: 1. The table's objects are `O`s.
        unsafe { VacantEntry::new(&mut self.core, self.hasher, hash) }
    }
}

impl<O: Measured> Table<O> {
    /// What may have changed since this was last asked.
    #[inline]
    pub fn take_changed(&mut self) -> Changed {
        // SAFETY: 1. The table's objects are `O`s.
        unsafe { self.core.recount::<O>() };
        std::mem::replace(&mut self.core.changed, Changed::Nothing)
    }

    /// Counts and bytes are those of another table now.
    pub fn mark_changed(&mut self) {
        self.core.changed = Changed::Counts;
    }

    #[cfg(test)]
    pub(super) fn check(&self) {
        use super::handle::View;
        let objects: usize = self.core.check(self.hasher, |entry| {
            // SAFETY: 1. The entry lives in the table, which is borrowed. 2. Its objects are `O`s.
            match unsafe { EntryRef::<O>::new(entry) }.value() {
                View::Object(object) => object.memory_bytes(),
                _ => 0,
            }
        });
        // SAFETY: 1. The table's objects are `O`s.
        assert_eq!(unsafe { self.core.object_bytes::<O>() }, objects);
    }

    /// Inserts a key that the caller knows to be absent.
    pub fn insert(
        &mut self,
        key: &[u8],
        hash: u64,
        value: NewValue<'_, O>,
        expiry: Option<i64>,
    ) -> EntryMut<'_, O> {
        self.vacant(hash).insert(key, value, expiry)
    }

    /// Removes a key and keeps its value, for which short bytes are copied.
    pub fn remove(&mut self, key: &[u8], hash: u64) -> Option<Removed<O>> {
        self.find_mut(key, hash).map(EntryMut::remove)
    }

    /// Removes a key and keeps its object only: cheaper where bytes are of no interest.
    pub fn delete(&mut self, key: &[u8], hash: u64) -> Option<Deleted<O>> {
        self.find_mut(key, hash).map(EntryMut::delete)
    }
}

impl<O> Table<O> {
    /// Asks for the segment that a search for this hash will look at.
    #[inline]
    pub fn prefetch_segment(&self, hash: u64) {
        if self.core.directory_len() > 0 {
            self.core.prefetch_segment(hash);
        }
    }

    /// Where a search for this hash will begin, whose segment was asked for. There is none while
    /// the table has never held a key.
    #[inline]
    pub fn home(&self, hash: u64) -> Option<Home<'_, O>> {
        (self.core.directory_len() > 0).then(|| Home::new(self, hash))
    }

    /// Whether any value here is an object.
    #[inline]
    pub fn has_objects(&self) -> bool {
        self.core.has_objects()
    }

    /// The object that a search for this hash will most likely find; another key's, rarely.
    #[inline]
    pub fn likely_object(&self, hash: u64) -> Option<&O> {
        if self.has_objects() { self.home(hash)?.likely_object() } else { None }
    }

    pub fn clear(&mut self) {
        drop(self.take());
    }

    /// Leaves an empty table, and returns the full one to be dropped wherever there is time.
    pub fn take(&mut self) -> Table<O> {
        let mut empty = self.empty_twin();
        empty.core.account = self.core.account.of_successor();
        empty.core.changed = Changed::Counts;
        std::mem::replace(self, empty)
    }
}

impl<O> Drop for Table<O> {
    fn drop(&mut self) {
        self.core.release_all(&mut |entry| {
            // SAFETY: 1. The pointer came from a `Box<O>`; the entry is freed without being read
            // again.
            drop(unsafe { Box::from_raw(entry.object::<O>()) });
        });
    }
}
