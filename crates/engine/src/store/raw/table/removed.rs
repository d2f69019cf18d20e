//! What is left of an entry that is out of the table: its value, owned.

use super::account::Measured;
use super::core::{Core, SlotPosition};
use super::entry::{Kind, RawEntry};
use super::handle::{EntryRef, NewValue, View};
use smallvec::SmallVec;

/// Values up to this length move out without an allocation.
const SHORT_BYTES: usize = 64;

enum Owned<O> {
    Int(i64),
    Bytes(SmallVec<[u8; SHORT_BYTES]>),
    Packed(u8, SmallVec<[u8; SHORT_BYTES]>),
    Object(Box<O>),
}

/// A removed entry with its whole value. Dropping it drops the object.
pub struct Removed<O> {
    value: Owned<O>,
    expiry: Option<i64>,
    access: u32,
}

impl<O> Removed<O> {
    /// # Safety
    /// 1. `position` is a slot in use of `core`, whose objects are `O`s.
    pub(super) unsafe fn take(core: &mut Core, position: SlotPosition) -> Removed<O>
    where
        O: Measured,
    {
        let entry = core.detach(position);
        let label = entry.label();
        if label.kind == Kind::Object {
            // SAFETY: 1. The table's objects are `O`s. 2. This one is still whole.
            unsafe { core.discount_object(entry.object::<O>()) };
        }
        let value = match label.kind {
            Kind::Int => Owned::Int(entry.int()),
            Kind::Bytes => Owned::Bytes(SmallVec::from_slice(entry.value())),
            Kind::Packed => Owned::Packed(label.tag, SmallVec::from_slice(entry.value())),
            // SAFETY: 1. The pointer came from a `Box<O>`; the entry is freed just below.
            Kind::Object => Owned::Object(unsafe { Box::from_raw(entry.object::<O>()) }),
        };
        let removed = Removed { value, expiry: entry.expiry(), access: entry.access() };
        // SAFETY: 1. Detached from this core. 2. Nothing of it is used after this.
        unsafe { core.release(entry) };
        removed
    }

    pub(super) fn of_object(object: Box<O>, (expiry, access): (Option<i64>, u32)) -> Removed<O> {
        Removed { value: Owned::Object(object), expiry, access }
    }

    /// A copy of an entry that holds no object.
    pub(super) fn copy_inline(entry: &EntryRef<'_, O>) -> Removed<O> {
        let value = match entry.value() {
            View::Int(value) => Owned::Int(value),
            View::Bytes(bytes) => Owned::Bytes(SmallVec::from_slice(bytes)),
            View::Packed(tag, bytes) => Owned::Packed(tag, SmallVec::from_slice(bytes)),
            View::Object(_) => unreachable!("the caller has taken it out"),
        };
        Removed { value, expiry: entry.expiry(), access: entry.access() }
    }

    /// A copy of an entry that stays where it is: as if it had been removed, for COPY.
    pub fn copy_of(entry: &EntryRef<'_, O>) -> Removed<O>
    where
        O: Clone,
    {
        let View::Object(object) = entry.value() else { return Self::copy_inline(entry) };
        Self::of_object(Box::new(object.clone()), (entry.expiry(), entry.access()))
    }

    pub fn expiry(&self) -> Option<i64> {
        self.expiry
    }

    pub fn access(&self) -> u32 {
        self.access
    }

    pub fn value(&self) -> View<'_, O> {
        match &self.value {
            Owned::Int(value) => View::Int(*value),
            Owned::Bytes(bytes) => View::Bytes(bytes),
            Owned::Packed(tag, bytes) => View::Packed(*tag, bytes),
            Owned::Object(object) => View::Object(object),
        }
    }

    pub fn object(&self) -> Option<&O> {
        match &self.value {
            Owned::Object(object) => Some(object),
            _ => None,
        }
    }

    pub fn into_object(self) -> Option<Box<O>> {
        match self.value {
            Owned::Object(object) => Some(object),
            _ => None,
        }
    }

    /// The value, ready to be put under another key. An object moves out, and 0 stays.
    pub fn to_new_value(&mut self) -> NewValue<'_, O> {
        if matches!(self.value, Owned::Object(_))
            && let Owned::Object(object) = std::mem::replace(&mut self.value, Owned::Int(0))
        {
            return NewValue::Object(object);
        }
        match &self.value {
            Owned::Int(value) => NewValue::Int(*value),
            Owned::Bytes(bytes) => NewValue::Bytes(bytes),
            Owned::Packed(tag, bytes) => NewValue::Packed(*tag, bytes),
            Owned::Object(_) => unreachable!("an object was moved out above"),
        }
    }
}

/// What can still be seen of an entry that is about to be freed.
pub struct Gone<'a> {
    pub key: &'a [u8],
    pub access: u32,
    /// The snapshot under way needs it as it was.
    pub is_unsaved: bool,
    /// Its value, unless it was an object.
    pub inline: Option<Inline<'a>>,
}

/// A value that lay in its entry.
#[derive(Clone, Copy)]
pub enum Inline<'a> {
    Int(i64),
    Bytes(&'a [u8]),
    Packed(u8, &'a [u8]),
}

impl<'a> Inline<'a> {
    pub fn to_new_value<O>(self) -> NewValue<'a, O> {
        match self {
            Inline::Int(value) => NewValue::Int(value),
            Inline::Bytes(bytes) => NewValue::Bytes(bytes),
            Inline::Packed(tag, bytes) => NewValue::Packed(tag, bytes),
        }
    }
}

/// A removed entry of which only the object was kept. Dropping it drops the object.
pub struct Deleted<O> {
    object: Option<Box<O>>,
    expiry: Option<i64>,
}

impl<O> Deleted<O> {
    /// # Safety
    /// 1. `position` is a slot in use of `core`, whose objects are `O`s.
    pub(super) unsafe fn take(core: &mut Core, position: SlotPosition) -> Deleted<O>
    where
        O: Measured,
    {
        let entry = core.detach(position);
        // SAFETY: 1. Detached just now.
        let deleted = unsafe { Deleted::of(core, entry) };
        // SAFETY: 1. Detached from this core. 2. Nothing of it is used after this.
        unsafe { core.release(entry) };
        deleted
    }

    /// # Safety
    /// 1. The entry is detached from `core`, its object is an `O`, and nobody takes the object
    ///    again.
    pub(super) unsafe fn of(core: &mut Core, entry: RawEntry) -> Deleted<O>
    where
        O: Measured,
    {
        let has_object = entry.label().kind == Kind::Object;
        if has_object {
            // SAFETY: 1. The table's objects are `O`s. 2. This one is still whole.
            unsafe { core.discount_object(entry.object::<O>()) };
        }
        // SAFETY: 1. The pointer came from a `Box<O>`, and by the contract it is taken once.
        let object = has_object.then(|| unsafe { Box::from_raw(entry.object::<O>()) });
        Deleted { object, expiry: entry.expiry() }
    }

    pub fn expiry(&self) -> Option<i64> {
        self.expiry
    }

    pub fn object(&self) -> Option<&O> {
        self.object.as_deref()
    }

    pub fn into_object(self) -> Option<Box<O>> {
        self.object
    }

    /// The object with what else is known of the entry.
    pub fn into_removed(self, access: u32) -> Option<Removed<O>> {
        let expiry = self.expiry;
        self.object.map(|object| Removed::of_object(object, (expiry, access)))
    }
}
