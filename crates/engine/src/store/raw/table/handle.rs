//! Borrowed views of entries: to read one, to change one, to fill a vacancy, and to look at what
//! was removed. Their lifetimes keep the table from changing under them.

use super::account::{Measured, block_cost};
use super::core::{Core, SlotPosition};
use super::entry::{Change, Kind, Label, RawEntry};
use super::removed::{Deleted, Removed};
use crate::types::blob::Blob;
use russet_base::hash::KeyHasher;
use std::marker::PhantomData;

/// A value as it is given to the table.
pub enum NewValue<'v, O> {
    Int(i64),
    Bytes(&'v [u8]),
    /// A packed collection and its tag, 0 to 7.
    Packed(u8, &'v [u8]),
    Object(Box<O>),
}

/// A value as it is seen.
#[derive(Debug, PartialEq, Eq)]
pub enum View<'a, O> {
    Int(i64),
    Bytes(&'a [u8]),
    Packed(u8, &'a [u8]),
    Object(&'a O),
}

impl<O> Clone for View<'_, O> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<O> Copy for View<'_, O> {}

/// # Safety
/// 1. The entry is alive for `'a`, not written meanwhile, and its object, if any, is an `O`.
#[inline(always)]
unsafe fn view<'a, O>(entry: RawEntry) -> View<'a, O> {
    let label = entry.label();
    match label.kind {
        Kind::Int => View::Int(entry.int()),
        Kind::Bytes => View::Bytes(entry.value()),
        Kind::Packed => View::Packed(label.tag, entry.value()),
        // SAFETY: 1. The pointer came from a `Box<O>` that the entry owns.
        Kind::Object => View::Object(unsafe { &*entry.object::<O>() }),
    }
}

/// An entry to read.
pub struct EntryRef<'a, O> {
    entry: RawEntry,
    marker: PhantomData<&'a O>,
}

impl<O> Clone for EntryRef<'_, O> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<O> Copy for EntryRef<'_, O> {}

impl<'a, O> EntryRef<'a, O> {
    /// # Safety
    /// 1. The entry is alive for `'a`, not written meanwhile, and its object, if any, is an `O`.
    #[inline]
    pub(super) unsafe fn new(entry: RawEntry) -> EntryRef<'a, O> {
        EntryRef { entry, marker: PhantomData }
    }

    #[inline]
    pub fn key(&self) -> &'a [u8] {
        self.entry.key()
    }

    /// When the entry expires, in milliseconds of the caller's clock.
    #[inline]
    pub fn expiry(&self) -> Option<i64> {
        self.entry.expiry()
    }

    /// The access clock, 24 bits.
    #[inline]
    pub fn access(&self) -> u32 {
        self.entry.access()
    }

    /// Asks for the memory behind the first line, which was asked for. With what an edit needs that
    /// moves the entry, if it is to be edited.
    #[inline]
    pub fn prefetch_rest(&self, is_edited: bool) {
        self.entry.prefetch_rest();
        if is_edited {
            self.entry.prefetch_page();
        }
    }

    #[inline]
    pub fn value(&self) -> View<'a, O> {
        // SAFETY: 1. By the contract of `new`.
        unsafe { view(self.entry) }
    }

    /// Bytes of its block; an object's own bytes are not counted, nor is the slot.
    pub fn block_bytes(&self) -> usize {
        block_cost(self.entry.block_bytes())
    }
}

/// An entry to read and change.
pub struct EntryMut<'a, O> {
    core: &'a mut Core,
    position: SlotPosition,
    /// What is at `position`, so that it need not be looked up for each use.
    entry: RawEntry,
    marker: PhantomData<&'a mut O>,
}

impl<'a, O> EntryMut<'a, O> {
    /// # Safety
    /// 1. The position is that of a slot in use of `core`, and the entry is the one in it. 2. The
    ///    objects of `core` are `O`s.
    #[inline]
    pub(super) unsafe fn new(
        core: &'a mut Core,
        (position, entry): (SlotPosition, RawEntry),
    ) -> EntryMut<'a, O> {
        EntryMut { core, position, entry, marker: PhantomData }
    }

    #[inline]
    fn raw(&self) -> RawEntry {
        self.entry
    }

    #[inline]
    fn reshape(&mut self, change: &Change<'_>) {
        self.core.reshape(self.position, change);
        self.entry = self.core.entry(self.position);
    }

    #[inline]
    pub fn as_ref(&self) -> EntryRef<'_, O> {
        // SAFETY: 1. The entry lives in the table, which `self` borrows.
        unsafe { EntryRef::new(self.raw()) }
    }

    /// Ends the permission to change; the entry can be read for as long as it was borrowed.
    #[inline]
    pub fn into_ref(self) -> EntryRef<'a, O> {
        // SAFETY: 1. The table stays borrowed for `'a`, and `self` was the only one to write.
        unsafe { EntryRef::new(self.raw()) }
    }

    #[inline]
    pub fn key(&self) -> &[u8] {
        self.as_ref().key()
    }

    #[inline]
    pub fn expiry(&self) -> Option<i64> {
        self.as_ref().expiry()
    }

    #[inline]
    pub fn access(&self) -> u32 {
        self.as_ref().access()
    }

    #[inline]
    pub fn value(&self) -> View<'_, O> {
        self.as_ref().value()
    }

    /// Whether the snapshot under way still needs it as it is.
    #[inline]
    pub fn is_unsaved(&self) -> bool {
        self.raw().mark() != self.core.mark
    }

    /// The snapshot has it, or does not want it.
    pub fn mark_saved(&mut self) {
        self.raw().set_mark(self.core.mark);
    }

    /// Sets the access clock; the upper 8 bits are dropped.
    #[inline]
    pub fn set_access(&mut self, access: u32) {
        self.raw().set_access(access);
    }

    pub fn set_expiry(&mut self, expiry: Option<i64>) {
        let entry = self.raw();
        if entry.expiry() == expiry {
            return;
        }
        let change =
            Change { label: entry.label(), expiry, at: 0, remove: 0, insert: &[], is_edit: false };
        self.reshape(&change);
    }

    #[inline]
    pub fn int(&self) -> Option<i64> {
        let entry = self.raw();
        (entry.label().kind == Kind::Int).then(|| entry.int())
    }
}

impl<'a, O: Measured> EntryMut<'a, O> {
    #[inline]
    pub fn set_int(&mut self, value: i64) {
        let entry = self.raw();
        self.core.assert_saved(self.position);
        if entry.label().kind == Kind::Int {
            return entry.set_int(value);
        }
        self.assign(Label::INT, &value.to_ne_bytes());
    }

    pub fn set_bytes(&mut self, value: &[u8]) {
        self.assign(Label::BYTES, value);
    }

    pub fn set_packed(&mut self, tag: u8, value: &[u8]) {
        self.assign(Label::packed(tag), value);
    }

    pub fn set_object(&mut self, object: Box<O>) {
        let old = self.detach_object();
        self.core.count_object(&*object);
        // Zero bytes first: a pointer can't travel as plain bytes.
        self.replace_value(Label::OBJECT, &[0; 8]);
        self.raw().set_object(Box::into_raw(object));
        drop(old);
    }

    /// Sets the value, whatever kind it is; expiry and access clock stay.
    pub fn set(&mut self, value: NewValue<'_, O>) {
        match value {
            NewValue::Int(value) => self.set_int(value),
            NewValue::Bytes(value) => self.set_bytes(value),
            NewValue::Packed(tag, value) => self.set_packed(tag, value),
            NewValue::Object(object) => self.set_object(object),
        }
    }

    /// Sets value and expiry in one step, which saves a block when both change.
    pub fn set_with_expiry(&mut self, value: NewValue<'_, O>, expiry: Option<i64>) {
        self.core.assert_saved(self.position);
        if let NewValue::Bytes(bytes) = value
            && expiry.is_none()
            && self.raw().replace_bytes(bytes)
        {
            return;
        }
        let old = self.detach_object();
        let number;
        let (label, bytes): (Label, &[u8]) = match &value {
            NewValue::Int(value) => {
                number = value.to_ne_bytes();
                (Label::INT, &number)
            }
            NewValue::Bytes(value) => (Label::BYTES, value),
            NewValue::Packed(tag, value) => (Label::packed(*tag), value),
            NewValue::Object(_) => (Label::OBJECT, &[0; 8]),
        };
        let remove = self.raw().layout().value_len;
        let change = Change { label, expiry, at: 0, remove, insert: &[bytes], is_edit: false };
        self.reshape(&change);
        if let NewValue::Object(object) = value {
            self.core.count_object(&*object);
            self.raw().set_object(Box::into_raw(object));
        }
        drop(old);
    }

    #[inline]
    pub fn object_mut(&mut self) -> Option<&mut O> {
        let object = self.lend_object()?;
        // SAFETY: 1. The entry owns the box of this `O`. 2. `&mut self` makes the borrow exclusive.
        Some(unsafe { &mut *object })
    }

    /// As `object_mut`, for as long as the entry was borrowed.
    pub fn into_object_mut(mut self) -> Option<&'a mut O> {
        let object = self.lend_object()?;
        // SAFETY: 1. As in `object_mut`. 2. The table stays exclusively borrowed for `'a`.
        Some(unsafe { &mut *object })
    }

    /// The object, which from here on may be another size when it is next looked at.
    #[inline]
    fn lend_object(&mut self) -> Option<*mut O> {
        let entry = self.raw();
        self.core.assert_saved(self.position);
        if entry.label().kind != Kind::Object {
            return None;
        }
        let object = entry.object::<O>();
        // SAFETY: 1. The table's objects are `O`s. 2. This is one of them.
        unsafe { self.core.lend(object) };
        Some(object)
    }

    /// The entry as it is, for a snapshot that needs it, before it is removed or replaced: the
    /// object is moved out, and 0 stays; anything else is copied.
    pub fn take_unsaved(&mut self) -> Removed<O> {
        let (expiry, access) = (self.expiry(), self.access());
        let removed = match self.detach_object() {
            Some(object) => Removed::of_object(object, (expiry, access)),
            None => Removed::copy_inline(&self.as_ref()),
        };
        self.mark_saved();
        removed
    }

    /// Takes the object out and leaves the integer 0.
    pub fn take_object(&mut self) -> Option<Box<O>> {
        self.detach_object()
    }

    /// The bytes of a string or packed value, to be edited in place.
    pub fn blob(&mut self) -> Option<BlobMut<'_>> {
        self.core.assert_saved(self.position);
        let kind = self.raw().label().kind;
        matches!(kind, Kind::Bytes | Kind::Packed).then_some(BlobMut {
            core: self.core,
            position: self.position,
            entry: &mut self.entry,
        })
    }

    /// The same of a packed value with this tag; `None` of anything else.
    #[inline]
    pub fn packed_blob(&mut self, tag: u8) -> Option<BlobMut<'_>> {
        self.core.assert_saved(self.position);
        (self.raw().label() == Label::packed(tag)).then_some(BlobMut {
            core: self.core,
            position: self.position,
            entry: &mut self.entry,
        })
    }

    /// Adds bytes behind a string or packed value. Returns false if it is another kind.
    pub fn append(&mut self, bytes: &[u8]) -> bool {
        let Some(mut blob) = self.blob() else { return false };
        let at = blob.bytes().len();
        blob.splice(at, 0, &[bytes]);
        true
    }

    /// Removes the entry and keeps its value, for which short bytes are copied.
    pub fn remove(self) -> Removed<O> {
        // SAFETY: 1. The slot is in use, and the table's objects are `O`s.
        unsafe { Removed::take(self.core, self.position) }
    }

    /// Removes the entry and keeps its object only.
    pub fn delete(self) -> Deleted<O> {
        // SAFETY: 1. The slot is in use, and the table's objects are `O`s.
        unsafe { Deleted::take(self.core, self.position) }
    }

    /// Replaces the value after taking care of an object in it, which is dropped last so that its
    /// destructor can't see or break anything half-done.
    fn assign(&mut self, label: Label, bytes: &[u8]) {
        let old = self.detach_object();
        self.replace_value(label, bytes);
        drop(old);
    }

    fn replace_value(&mut self, label: Label, bytes: &[u8]) {
        let entry = self.raw();
        let (expiry, remove) = (entry.expiry(), entry.layout().value_len);
        let change = Change { label, expiry, at: 0, remove, insert: &[bytes], is_edit: false };
        self.reshape(&change);
    }

    #[inline(always)]
    fn detach_object(&mut self) -> Option<Box<O>> {
        if self.raw().label().kind != Kind::Object {
            return None;
        }
        self.detach_held_object()
    }

    #[inline(never)]
    fn detach_held_object(&mut self) -> Option<Box<O>> {
        let object = self.raw().object::<O>();
        // SAFETY: 1. The table's objects are `O`s. 2. This is one of them.
        unsafe { self.core.discount_object(object) };
        self.core.become_zero(self.position);
        // SAFETY: 1. The pointer came from a `Box<O>`, and the entry has just forgotten it.
        Some(unsafe { Box::from_raw(object) })
    }
}

/// The bytes of one entry's value.
pub struct BlobMut<'a> {
    core: &'a mut Core,
    position: SlotPosition,
    entry: &'a mut RawEntry,
}

impl Blob for BlobMut<'_> {
    #[inline]
    fn bytes(&self) -> &[u8] {
        self.entry.value()
    }

    #[inline]
    fn overwrite(&mut self, at: usize, with: &[u8]) {
        self.entry.overwrite(at, with);
    }

    #[inline]
    fn splice(&mut self, at: usize, remove: usize, insert: &[&[u8]]) {
        if self.entry.splice_in_place(at, remove, insert) {
            return;
        }
        let moving = (self.position, *self.entry);
        if let Some(moved) = self.core.splice_moving(moving, (at, remove), insert) {
            *self.entry = moved;
            return;
        }
        let (label, expiry) = (self.entry.label(), self.entry.expiry());
        self.core
            .reshape(self.position, &Change { label, expiry, at, remove, insert, is_edit: true });
        *self.entry = self.core.entry(self.position);
    }
}

/// What a key's slot in the table holds.
pub enum Slot<'a, O> {
    Occupied(EntryMut<'a, O>),
    Vacant(VacantEntry<'a, O>),
}

/// A key that is absent, ready to be inserted.
pub struct VacantEntry<'a, O> {
    core: &'a mut Core,
    hasher: KeyHasher,
    hash: u64,
    marker: PhantomData<&'a mut O>,
}

impl<'a, O> VacantEntry<'a, O> {
    /// # Safety
    /// 1. The objects of `core` are `O`s.
    pub(super) unsafe fn new(core: &'a mut Core, hasher: KeyHasher, hash: u64) -> Self {
        VacantEntry { core, hasher, hash, marker: PhantomData }
    }
}

impl<'a, O: Measured> VacantEntry<'a, O> {
    /// Inserts the key that was looked for: it is not kept here, so that it need not outlive the
    /// search.
    pub fn insert(
        self,
        key: &[u8],
        value: NewValue<'_, O>,
        expiry: Option<i64>,
    ) -> EntryMut<'a, O> {
        debug_assert_eq!(self.hash, self.hasher.hash(key), "the key that was looked for");
        let (label, value_len) = match &value {
            NewValue::Int(_) => (Label::INT, 8),
            NewValue::Bytes(bytes) => (Label::BYTES, bytes.len()),
            NewValue::Packed(tag, bytes) => (Label::packed(*tag), bytes.len()),
            NewValue::Object(_) => (Label::OBJECT, 8),
        };
        let position = self.core.insert((key, self.hash), (label, value_len), expiry, self.hasher);
        let entry = self.core.entry(position);
        match value {
            NewValue::Int(value) => entry.set_int(value),
            NewValue::Bytes(bytes) | NewValue::Packed(_, bytes) => entry.overwrite(0, bytes),
            NewValue::Object(object) => {
                self.core.count_object(&*object);
                entry.set_object(Box::into_raw(object));
            }
        }
        // SAFETY: 1. Inserted just now. 2. The table that lent the core has `O`s only.
        unsafe { EntryMut::new(self.core, (position, entry)) }
    }
}
