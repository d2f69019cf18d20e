//! The set's room: what a command can do with a set, whichever form it has. A small set is packed
//! into its table entry, as integers or as any members; a larger one is an object of its own.
//!
//! OBJECT ENCODING names what Redis would have made of the set, which our forms follow only so far:
//! a packed set of integers is an `intset`, a packed set of any members a `listpack`, and a set in
//! cells remembers which of the three it would be.

pub mod combine;
mod ints;
mod large;
mod lookup;
mod packed;
mod sample;
pub mod stored;
#[cfg(test)]
mod tests;

use crate::types::blob::Blob;
use crate::types::cells::Cells;
use crate::types::element::{Element, HEAD_BYTES_MAX, Stored};
use russet_base::hash::KeyHasher;
use smallvec::SmallVec;
use std::ops::ControlFlow;

pub use large::LargeSet;
pub use sample::Draw;

/// Longest packed set of integers: as many as an intset has by default, of the widest.
const INTS_BYTES_MAX: usize = 512 * 8 + 1;

/// Most members that room is made for at once: some of those to come may be equal.
const ROOM_MAX: usize = 4096;

/// As OBJECT ENCODING names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    Intset,
    Listpack,
    Hashtable,
}

impl Encoding {
    pub fn name(self) -> &'static str {
        match self {
            Encoding::Intset => "intset",
            Encoding::Listpack => "listpack",
            Encoding::Hashtable => "hashtable",
        }
    }
}

/// What decides the form of a set.
#[derive(Clone, Copy, Debug)]
pub struct SetRules {
    /// `set-max-intset-entries`.
    pub intset_entries_max: usize,
    /// `set-max-listpack-entries`.
    pub listpack_entries_max: usize,
    /// `set-max-listpack-value`.
    pub listpack_value_bytes_max: usize,
    /// The one of the keyspace, for all its sets.
    pub hasher: KeyHasher,
}

impl SetRules {
    /// What an intset is once it has so many members.
    fn intset_of(&self, len: usize) -> Encoding {
        match len <= self.intset_entries_max {
            true => Encoding::Intset,
            false => Encoding::Hashtable,
        }
    }

    /// What a listpack of `len` members is once another one, of this many bytes, is added.
    #[inline]
    fn listpack_with(&self, len: usize, member_bytes: usize) -> Encoding {
        match len < self.listpack_entries_max && member_bytes <= self.listpack_value_bytes_max {
            true => Encoding::Listpack,
            false => Encoding::Hashtable,
        }
    }

    /// Where a new set starts that so many members, the first of them this one, are added to.
    pub fn start(&self, first: Element<'_>, count: usize) -> Encoding {
        match first {
            Element::Int(_) if count <= self.intset_entries_max => Encoding::Intset,
            _ if count <= self.listpack_entries_max => Encoding::Listpack,
            _ => Encoding::Hashtable,
        }
    }
}

/// The form that a set must take before a member can be added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Packed,
    Large(Encoding),
}

/// A set to read.
#[derive(Clone, Copy)]
pub enum SetRef<'a> {
    Ints(&'a [u8]),
    Packed(&'a [u8]),
    Large(&'a LargeSet),
}

impl<'a> SetRef<'a> {
    /// Where it lies: the same for the set of the same key, and for no other while it lives.
    pub(crate) fn address(self) -> usize {
        match self {
            SetRef::Ints(bytes) | SetRef::Packed(bytes) => bytes.as_ptr().addr(),
            SetRef::Large(set) => std::ptr::from_ref(set).addr(),
        }
    }

    #[inline]
    pub fn len(self) -> usize {
        match self {
            SetRef::Ints(bytes) => ints::len(bytes),
            SetRef::Packed(bytes) => packed::len(bytes),
            SetRef::Large(set) => set.len(),
        }
    }

    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    pub fn encoding(self) -> Encoding {
        match self {
            SetRef::Ints(_) => Encoding::Intset,
            SetRef::Packed(_) => Encoding::Listpack,
            SetRef::Large(set) => set.encoding,
        }
    }

    #[inline]
    pub fn contains(self, member: Element<'_>) -> bool {
        match (self, member) {
            (SetRef::Ints(bytes), Element::Int(value)) => ints::search(bytes, value).is_ok(),
            (SetRef::Ints(_), Element::Bytes(_)) => false,
            (SetRef::Packed(bytes), _) => packed::find(bytes, &Stored::new(member)).is_some(),
            (SetRef::Large(set), _) => set.cells.contains(member),
        }
    }

    /// Shows all members: integers of an intset in ascending order, others in no order.
    pub fn for_each(self, visit: &mut dyn FnMut(Element<'_>)) {
        match self {
            SetRef::Ints(bytes) => ints::iter(bytes).for_each(|value| visit(Element::Int(value))),
            SetRef::Packed(bytes) => packed::iter(bytes).for_each(visit),
            SetRef::Large(set) => set.cells.for_each(|member, _| visit(member)),
        }
    }

    /// As `try_for_each`, with members that may be kept for as long as the set is borrowed.
    pub fn each(self, mut visit: impl FnMut(Element<'a>) -> ControlFlow<()>) -> ControlFlow<()> {
        match self {
            SetRef::Ints(bytes) => {
                ints::iter(bytes).try_for_each(|value| visit(Element::Int(value)))
            }
            SetRef::Packed(bytes) => packed::iter(bytes).try_for_each(visit),
            SetRef::Large(set) => set.cells.iter().try_for_each(|(member, _)| visit(member)),
        }
    }

    /// As `for_each`, until `visit` breaks off.
    pub fn try_for_each(
        self,
        visit: &mut dyn FnMut(Element<'_>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        match self {
            SetRef::Ints(bytes) => {
                ints::iter(bytes).try_for_each(|value| visit(Element::Int(value)))
            }
            SetRef::Packed(bytes) => packed::iter(bytes).try_for_each(visit),
            SetRef::Large(set) => set.cells.try_for_each(|member, _| visit(member)),
        }
    }

    /// Shows `count` members, or a few more, and returns the cursor to go on from; 0 begins and
    /// ends a walk. A member that is there all the while is shown, whatever form the set takes
    /// meanwhile.
    pub fn scan(self, cursor: u64, count: u64, visit: &mut dyn FnMut(Element<'_>)) -> u64 {
        match self {
            SetRef::Large(set) if set.encoding == Encoding::Hashtable => {
                set.cells.scan(cursor, count, |member, _| visit(member))
            }
            // COMPAT: what is small to Redis is shown all at once; test
            // `small_sets_are_scanned_in_one_go`.
            _ => {
                self.for_each(visit);
                0
            }
        }
    }
}

/// A set to change.
pub enum SetMut<'a, B: Blob> {
    Ints(&'a mut B),
    Packed(&'a mut B),
    Large(&'a mut LargeSet),
}

impl<B: Blob> SetMut<'_, B> {
    pub fn as_ref(&self) -> SetRef<'_> {
        match self {
            SetMut::Ints(blob) => SetRef::Ints(blob.bytes()),
            SetMut::Packed(blob) => SetRef::Packed(blob.bytes()),
            SetMut::Large(set) => SetRef::Large(set),
        }
    }

    pub fn len(&self) -> usize {
        self.as_ref().len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds a member; whether it is new. Or else the form that the set must take first.
    #[inline]
    fn add(&mut self, member: Element<'_>, rules: &SetRules) -> Result<bool, Form> {
        match self {
            SetMut::Ints(blob) => match member {
                Element::Int(value) => add_int(*blob, value, rules),
                Element::Bytes(text) => Err(mixed(blob.bytes(), text, rules)),
            },
            SetMut::Packed(blob) => {
                let stored = Stored::new(member);
                if packed::find(blob.bytes(), &stored).is_some() {
                    return Ok(false);
                }
                let count = packed::len(blob.bytes());
                match rules.listpack_with(count, member.with_bytes(<[u8]>::len)) {
                    Encoding::Listpack if packed::has_room(blob.bytes(), &stored) => {
                        packed::add(*blob, &stored);
                        Ok(true)
                    }
                    encoding => Err(Form::Large(encoding)),
                }
            }
            SetMut::Large(set) => Ok(set.add(member, rules)),
        }
    }

    #[inline]
    pub fn remove(&mut self, member: Element<'_>) -> bool {
        match self {
            SetMut::Ints(blob) => {
                let Element::Int(value) = member else { return false };
                let found = ints::search(blob.bytes(), value);
                found.map(|at| ints::remove_at(*blob, at)).is_ok()
            }
            SetMut::Packed(blob) => {
                let found = packed::find(blob.bytes(), &Stored::new(member));
                found.map(|range| packed::remove(*blob, range)).is_some()
            }
            SetMut::Large(set) => set.cells.remove(member),
        }
    }
}

fn add_int(blob: &mut impl Blob, value: i64, rules: &SetRules) -> Result<bool, Form> {
    let bytes = blob.bytes();
    let Err(at) = ints::search(bytes, value) else { return Ok(false) };
    match rules.intset_of(ints::len(bytes) + 1) {
        Encoding::Intset if ints::bytes_with(bytes, value) <= INTS_BYTES_MAX => {
            ints::insert(blob, at, value);
            Ok(true)
        }
        encoding => Err(Form::Large(encoding)),
    }
}

/// What integers become when a text joins them.
#[cold]
fn mixed(bytes: &[u8], text: &[u8], rules: &SetRules) -> Form {
    let count = ints::len(bytes);
    let digits = |at| Element::Int(ints::index(bytes, at)).with_bytes(<[u8]>::len);
    // The longest of those that are there is the first or the last one.
    let longest = if count == 0 { 0 } else { digits(0).max(digits(count - 1)) };
    match rules.listpack_with(count, longest.max(text.len())) {
        Encoding::Listpack if count * HEAD_BYTES_MAX < packed::PACKED_BYTES_MAX => Form::Packed,
        encoding => Form::Large(encoding),
    }
}

/// A set that is in no table yet.
pub enum NewSet {
    Ints(ShortBytes),
    Packed(ShortBytes),
    Large(LargeSet),
}

impl NewSet {
    /// An empty set of this encoding, with room for so many members if they need cells.
    pub fn new(encoding: Encoding, room: usize, rules: &SetRules) -> Self {
        match encoding {
            Encoding::Intset => NewSet::Ints(ShortBytes::default()),
            Encoding::Listpack => NewSet::Packed(ShortBytes::default()),
            Encoding::Hashtable => {
                let cells = Cells::with_room_for(rules.hasher, room.min(ROOM_MAX));
                NewSet::Large(LargeSet { cells, encoding })
            }
        }
    }

    fn as_mut(&mut self) -> SetMut<'_, ShortBytes> {
        match self {
            NewSet::Ints(bytes) => SetMut::Ints(bytes),
            NewSet::Packed(bytes) => SetMut::Packed(bytes),
            NewSet::Large(set) => SetMut::Large(set),
        }
    }

    pub fn as_ref(&self) -> SetRef<'_> {
        match self {
            NewSet::Ints(bytes) => SetRef::Ints(&bytes.0),
            NewSet::Packed(bytes) => SetRef::Packed(&bytes.0),
            NewSet::Large(set) => SetRef::Large(set),
        }
    }

    pub fn add(&mut self, member: Element<'_>, rules: &SetRules) -> bool {
        loop {
            match self.as_mut().add(member, rules) {
                Ok(is_new) => return is_new,
                Err(form) => *self = NewSet::of(self.as_ref(), form, rules),
            }
        }
    }

    /// Adds a member that is not there, to a set whose encoding allows for all its members.
    fn push(&mut self, member: Element<'_>, rules: &SetRules) {
        if let NewSet::Packed(bytes) = self {
            let stored = Stored::new(member);
            if packed::has_room(&bytes.0, &stored) {
                return packed::add(bytes, &stored);
            }
        }
        self.add(member, rules);
    }

    pub fn remove(&mut self, member: Element<'_>) -> bool {
        self.as_mut().remove(member)
    }

    pub fn len(&self) -> usize {
        self.as_ref().len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The same members in another form.
    fn of(set: SetRef<'_>, form: Form, rules: &SetRules) -> Self {
        match form {
            Form::Large(encoding) => NewSet::Large(LargeSet::of(set, encoding, rules)),
            Form::Packed => {
                let mut bytes = ShortBytes::default();
                set.for_each(&mut |member| packed::add(&mut bytes, &Stored::new(member)));
                NewSet::Packed(bytes)
            }
        }
    }
}

/// Bytes of a packed set that is being built.
#[derive(Clone, Debug, Default)]
pub struct ShortBytes(SmallVec<[u8; 256]>);

impl Blob for ShortBytes {
    fn bytes(&self) -> &[u8] {
        &self.0
    }

    fn overwrite(&mut self, at: usize, with: &[u8]) {
        self.0[at..at + with.len()].copy_from_slice(with);
    }

    fn splice(&mut self, at: usize, remove: usize, insert: &[&[u8]]) {
        if at == self.0.len() {
            insert.iter().for_each(|piece| self.0.extend_from_slice(piece));
            return;
        }
        let tail = SmallVec::<[u8; 256]>::from_slice(&self.0[at + remove..]);
        self.0.truncate(at);
        insert.iter().for_each(|piece| self.0.extend_from_slice(piece));
        self.0.extend_from_slice(&tail);
    }
}
