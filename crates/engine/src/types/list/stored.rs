//! Lists where they are stored: packed inside a table entry, or an object of their own. Moves a
//! list from one form to the other when its limits ask for it.

use super::{Extent, LargeList, ListLimits, ListMut, ListRef, Settling, packed};
use crate::store::raw::table::{BlobMut, EntryMut, EntryRef, NewValue, View};
use crate::types::blob::Blob;
use crate::value::{Object, PackedTag, WrongType};

/// The list in an entry, to read.
#[inline]
pub fn list<'a>(entry: &EntryRef<'a, Object>) -> Result<ListRef<'a>, WrongType> {
    match entry.value() {
        View::Packed(tag, bytes) if tag == PackedTag::List as u8 => Ok(ListRef::Packed(bytes)),
        View::Object(Object::List(list)) => Ok(ListRef::Large(list)),
        _ => Err(WrongType),
    }
}

/// As OBJECT ENCODING names it.
pub fn encoding(entry: &EntryRef<'_, Object>) -> &'static str {
    list(entry).map_or("quicklist", ListRef::encoding)
}

/// Lets `edit` change the list in an entry. Before it adds, [`make_room`]; after it has removed,
/// [`settle`].
#[inline]
pub fn edit<R>(
    entry: &mut EntryMut<'_, Object>,
    edit: impl FnOnce(&mut ListMut<'_, BlobMut<'_>>) -> R,
) -> Result<R, WrongType> {
    if is_packed(entry) {
        let mut blob = entry.blob().expect("a packed value is bytes");
        return Ok(edit(&mut ListMut::Packed(&mut blob)));
    }
    match entry.object_mut() {
        Some(Object::List(list)) => Ok(edit(&mut ListMut::Large(list))),
        _ => Err(WrongType),
    }
}

#[inline]
fn is_packed(entry: &EntryMut<'_, Object>) -> bool {
    matches!(entry.value(), View::Packed(tag, _) if tag == PackedTag::List as u8)
}

/// Prepares the list for texts of extent `growth`.
#[inline]
pub fn make_room(
    entry: &mut EntryMut<'_, Object>,
    growth: Extent,
    limits: ListLimits,
) -> Result<(), WrongType> {
    if edit(entry, |list| list.outgrows(growth, limits))? {
        let mut large = match entry.value() {
            View::Packed(_, bytes) => LargeList::from_packed(bytes),
            _ => return Ok(()),
        };
        large.grow(growth, limits);
        entry.set_object(Box::new(Object::List(large)));
    }
    Ok(())
}

/// Looks again at the form of a list that was edited, but not emptied.
#[inline]
pub fn settle(entry: &mut EntryMut<'_, Object>, limits: ListLimits) {
    if let Some(Object::List(list)) = entry.object_mut()
        && list.settle(limits, Settling::Shrunk)
    {
        let packed = list.to_packed();
        entry.set_packed(PackedTag::List as u8, &packed);
    }
}

/// A new list of elements pushed one after the other at `end`, handed to `put` as a value.
pub fn build<'e, R>(
    end: super::End,
    elements: impl DoubleEndedIterator<Item = super::Element<'e>>,
    size: (Extent, ListLimits),
    put: impl FnOnce(NewValue<'_, Object>) -> R,
) -> R {
    let (growth, limits) = size;
    if !super::fits_packed(Extent::default(), growth, limits) {
        let mut list = LargeList::new();
        list.grow(growth, limits);
        list.push(end, elements);
        return put(NewValue::Object(Box::new(Object::List(list))));
    }
    let mut bytes = ShortBytes::new();
    packed::push(&mut bytes, end, elements);
    put(NewValue::Packed(PackedTag::List as u8, &bytes.0))
}

/// Bytes of a new packed list, on the stack.
struct ShortBytes(smallvec::SmallVec<[u8; super::PACKED_BYTES_MAX]>);

impl ShortBytes {
    fn new() -> Self {
        ShortBytes(smallvec::SmallVec::new())
    }
}

impl Blob for ShortBytes {
    fn bytes(&self) -> &[u8] {
        &self.0
    }

    fn overwrite(&mut self, at: usize, with: &[u8]) {
        self.0[at..at + with.len()].copy_from_slice(with);
    }

    fn splice(&mut self, at: usize, remove: usize, insert: &[&[u8]]) {
        debug_assert!(at == self.0.len() && remove == 0, "a new list is only ever begun");
        insert.iter().for_each(|piece| self.0.extend_from_slice(piece));
    }
}
