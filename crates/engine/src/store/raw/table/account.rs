//! What a table and its objects take, kept as they change, and how it reaches the number that all
//! share ([`UsedMemory`]): when its shard's counts are published, and before that as soon as the
//! difference is large, for a single call may write gigabytes.
//!
//! An object that is lent out to be changed is measured when it is lent and once more when the
//! table next has a use for the figure, so that whoever changes it need not think of it. The one
//! that was lent last keeps its figure: if it is lent next, it is measured only afterwards.
//!
//! [`UsedMemory`]: crate::used_memory::UsedMemory

use super::core::Core;
use super::slab::SLAB_BLOCK_MAX;
use crate::types::capacity::{allocated_bytes, allocated_for};
use std::ptr::NonNull;

/// A table whose bytes differ by more than this from those that it has published publishes them at
/// once.
const UNPUBLISHED_BYTES_MAX: usize = 64 * 1024;

/// An object that knows what it takes.
pub trait Measured {
    /// Bytes on the heap, its own box included. Takes the same few steps whatever its size, and is
    /// the same until the object is changed.
    fn memory_bytes(&self) -> usize;
}

/// The object that was lent out last, and what it took when it was last measured.
#[derive(Clone, Copy)]
struct Lent {
    object: NonNull<()>,
    bytes: usize,
    /// How often it was lent since it was measured: if ever, it may have changed since.
    times: u32,
}

/// An object that is lent again and again, as by a script, is measured once in so many times.
const LENDS_PER_MEASURE: u32 = 64;

/// The bytes of one table.
#[derive(Default)]
pub(super) struct Account {
    /// Blocks of entries.
    pub(super) blocks: usize,
    /// Slots of segments.
    pub(super) slots: usize,
    /// Objects, as they were last measured.
    objects: usize,
    lent: Option<Lent>,
    /// What the shared number holds of all this.
    published: usize,
}

impl Account {
    /// What is left in the shared number of a table that was replaced is this one's to take back.
    pub(super) fn of_successor(&self) -> Account {
        Account { published: self.published, ..Account::default() }
    }
}

/// What of a table's figures may be others than they were.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Changed {
    Nothing,
    Bytes,
    /// Of keys, deadlines or slots, and bytes as well.
    Counts,
}

/// What a block of this block size takes: the small ones are cut from pages without loss, the
/// large ones come from the allocator, which has sizes of its own.
#[inline]
pub(super) fn block_cost(bytes: usize) -> usize {
    if bytes <= SLAB_BLOCK_MAX { bytes } else { allocated_bytes(bytes) }
}

impl Core {
    /// Slots, directory, entries and objects.
    #[inline]
    pub(super) fn counted_bytes(&self) -> usize {
        let account = &self.account;
        account.blocks + account.slots + self.directory_bytes() + account.objects
    }

    pub(super) fn directory_bytes(&self) -> usize {
        allocated_for::<NonNull<()>>(self.directory_capacity())
    }

    /// The bytes of blocks or objects are others than they were.
    #[inline]
    pub(super) fn note_bytes(&mut self) {
        self.changed = self.changed.max(Changed::Bytes);
    }

    /// A new object is in the table. Apart from the path of short values.
    #[inline(never)]
    pub(super) fn count_object(&mut self, object: &impl Measured) {
        self.account.objects += object.memory_bytes();
        self.note_bytes();
        self.publish_much();
    }

    /// An object is about to leave the table.
    ///
    /// # Safety
    /// 1. As in [`Core::recount`]. 2. The object is one of this table's.
    pub(super) unsafe fn discount_object<O: Measured>(&mut self, object: *const O) {
        // SAFETY: 1. By the contract.
        unsafe { self.recount::<O>() };
        // SAFETY: 1. The table's objects are alive, and nobody else has this one while `self` is
        // borrowed.
        self.account.objects -= unsafe { &*object }.memory_bytes();
        self.account.lent = None;
        self.note_bytes();
    }

    /// An object is about to be changed.
    ///
    /// # Safety
    /// 1. and 2. as in [`Core::discount_object`].
    #[inline]
    pub(super) unsafe fn lend<O: Measured>(&mut self, object: *mut O) {
        if let Some(lent) = &mut self.account.lent
            && lent.object.as_ptr() == object.cast()
            && lent.times < LENDS_PER_MEASURE
        {
            lent.times += 1;
            return;
        }
        // SAFETY: 1. and 2. by the contract.
        unsafe { self.lend_measured(object) };
    }

    /// # Safety
    /// 1. and 2. as in [`Core::lend`].
    #[inline(never)]
    unsafe fn lend_measured<O: Measured>(&mut self, object: *mut O) {
        // SAFETY: 1. By the contract.
        unsafe { self.recount::<O>() };
        // SAFETY: 1. As in `discount_object`.
        let bytes = unsafe { &*object }.memory_bytes();
        let object = NonNull::new(object).expect("a box is somewhere").cast();
        self.account.lent = Some(Lent { object, bytes, times: 1 });
    }

    /// Measures the object that was lent out last.
    ///
    /// # Safety
    /// 1. The objects of this table are `O`s.
    #[inline]
    pub(super) unsafe fn recount<O: Measured>(&mut self) {
        if let Some(lent) = &self.account.lent
            && lent.times > 0
        {
            // SAFETY: 1. By the contract.
            unsafe { self.recount_lent::<O>() };
        }
    }

    /// # Safety
    /// 1. As in [`Core::recount`].
    #[inline(never)]
    unsafe fn recount_lent<O: Measured>(&mut self) {
        if let Some(lent) = &mut self.account.lent {
            // SAFETY: 1. An object that leaves the table is forgotten here first, so this one is
            // alive. 2. It was lent for as long as the table was borrowed, so nobody has it now.
            let measured = unsafe { lent.object.cast::<O>().as_ref() }.memory_bytes();
            lent.times = 0;
            let bytes = std::mem::replace(&mut lent.bytes, measured);
            if measured != bytes {
                self.account.objects = self.account.objects + measured - bytes;
                self.note_bytes();
                self.publish_much();
            }
        }
    }

    /// How much more there is than was published; from now on nothing.
    pub(super) fn take_unpublished(&mut self) -> isize {
        let bytes = self.counted_bytes();
        let published = std::mem::replace(&mut self.account.published, bytes);
        bytes.wrapping_sub(published).cast_signed()
    }

    /// To be called after each growth.
    #[inline]
    pub(super) fn publish_much(&mut self) {
        if self.counted_bytes().abs_diff(self.account.published) > UNPUBLISHED_BYTES_MAX {
            let bytes = self.take_unpublished();
            self.blocks().used().add(self.len, bytes);
        }
    }

    /// The bytes of objects as they are now, one that is lent out included.
    ///
    /// # Safety
    /// 1. The objects of this table are `O`s.
    #[cfg(test)]
    pub(super) unsafe fn object_bytes<O: Measured>(&self) -> usize {
        let lent = self.account.lent;
        // SAFETY: 1. and 2. as in `recount`; it is only read, as `self` is.
        let measure = |lent: Lent| unsafe { lent.object.cast::<O>().as_ref() }.memory_bytes();
        self.account.objects + lent.map_or(0, measure) - lent.map_or(0, |lent| lent.bytes)
    }
}
