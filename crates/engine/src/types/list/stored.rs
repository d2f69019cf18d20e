//! Lists where they are stored: inside a table entry, or an object of their own. Moves a list from
//! one form to another when its limits ask for it.

use super::{
    Element, End, Entries, Extent, Form, LargeList, ListLimits, ListMut, ListRef, ShrinkCause,
    limits, medium, packed,
};
use crate::store::raw::table::{BlobMut, EntryMut, EntryRef, NewValue, View};
use crate::types::blob::Blob;
use crate::value::{Object, PackedTag, WrongType};

/// The list in an entry, to read.
#[inline]
pub fn list<'a>(entry: &EntryRef<'a, Object>) -> Result<ListRef<'a>, WrongType> {
    match entry.value() {
        View::Packed(tag, bytes) if tag == PackedTag::List as u8 => Ok(ListRef::of_bytes(bytes)),
        View::Object(Object::List(list)) => Ok(ListRef::Large(list)),
        _ => Err(WrongType),
    }
}

/// As OBJECT ENCODING names it.
pub fn encoding(entry: &EntryRef<'_, Object>) -> &'static str {
    list(entry).map_or("quicklist", ListRef::encoding)
}

/// Lets `edit` change the list in an entry. Before it adds, [`make_room`]; after it has removed,
/// [`shrink_form`].
#[inline]
pub fn edit<R>(
    entry: &mut EntryMut<'_, Object>,
    edit: impl FnOnce(&mut ListMut<'_, BlobMut<'_>>) -> R,
) -> Result<R, WrongType> {
    if let Some(mut blob) = entry.packed_blob(PackedTag::List as u8) {
        return Ok(edit(&mut ListMut::InEntry(&mut blob)));
    }
    match entry.object_mut() {
        Some(Object::List(list)) => Ok(edit(&mut ListMut::Large(list))),
        _ => Err(WrongType),
    }
}

/// Prepares the list for texts of extent `growth`.
#[inline]
pub fn make_room(
    entry: &mut EntryMut<'_, Object>,
    growth: Extent,
    limits: ListLimits,
) -> Result<(), WrongType> {
    match edit(entry, |list| list.outgrows(growth, limits))? {
        None => {}
        Some(Form::Large) => {
            let mut large = LargeList::of(list(&entry.as_ref())?);
            large.grow(growth, limits);
            entry.set_object(Box::new(Object::List(large)));
        }
        Some(_) => {
            if let View::Packed(tag, bytes) = entry.value() {
                let bytes = medium::of(packed::elements(bytes));
                entry.set_packed(tag, &bytes);
            }
        }
    }
    Ok(())
}

/// Pushes one text, for which room is made; the new length.
#[inline]
pub fn push_one(
    entry: &mut EntryMut<'_, Object>,
    end: End,
    text: &[u8],
    limits: ListLimits,
) -> Result<usize, WrongType> {
    let growth = Extent { bytes: text.len(), count: 1 };
    if let Some(mut blob) = entry.packed_blob(PackedTag::List as u8)
        && !medium::is_medium(blob.bytes())
        && limits::stays_packed(packed::size(blob.bytes()), growth, limits)
    {
        return Ok(packed::push_one(&mut blob, end, Element::parse(text)));
    }
    push_one_making_room(entry, (end, text), (growth, limits))
}

#[inline(never)]
fn push_one_making_room(
    entry: &mut EntryMut<'_, Object>,
    (end, text): (End, &[u8]),
    (growth, limits): (Extent, ListLimits),
) -> Result<usize, WrongType> {
    make_room(entry, growth, limits)?;
    edit(entry, |list| {
        list.push(end, std::iter::once(text));
        list.len()
    })
}

/// Pops one element, which is shown to `show`; how many are left.
#[inline]
pub fn pop_one(
    entry: &mut EntryMut<'_, Object>,
    end: End,
    limits: ListLimits,
    mut show: impl FnMut(Element<'_>),
) -> Result<usize, WrongType> {
    if end == End::Front
        && let Some(mut blob) = entry.packed_blob(PackedTag::List as u8)
        && !medium::is_medium(blob.bytes())
    {
        return Ok(packed::pop_first(&mut blob, show));
    }
    let left = edit(entry, |list| {
        list.pop(end, 1, &mut show);
        list.len()
    })?;
    if left > 0 {
        shrink_form(entry, limits);
    }
    Ok(left)
}

/// Looks again at the form of a list that was edited, but not emptied.
#[inline]
pub fn shrink_form(entry: &mut EntryMut<'_, Object>, limits: ListLimits) {
    if let Ok(Some(form)) = edit(entry, |list| list.shrink_form(limits, ShrinkCause::Shrunk)) {
        shrink(entry, form);
    }
}

/// Gives a list a smaller form.
#[cold]
fn shrink(entry: &mut EntryMut<'_, Object>, form: Form) {
    let bytes = match list(&entry.as_ref()) {
        Ok(ListRef::Large(list)) => list.to_bytes(form),
        Ok(ListRef::Medium(bytes)) => packed::build(Entries::new(medium::run(bytes).bytes)),
        _ => return,
    };
    entry.set_packed(PackedTag::List as u8, &bytes);
}

/// A new list of elements pushed one after the other at `end`, handed to `put` as a value.
pub fn build<'e, R>(
    end: End,
    elements: impl DoubleEndedIterator<Item = Element<'e>>,
    size: (Extent, ListLimits),
    put: impl FnOnce(NewValue<'_, Object>) -> R,
) -> R {
    let (growth, limits) = size;
    match limits::form_of_packed(Extent::default(), growth, limits) {
        Form::Packed => {
            let mut bytes = ShortBytes::new();
            packed::push(&mut bytes, end, elements);
            put(NewValue::Packed(PackedTag::List as u8, &bytes.0))
        }
        form if form == Form::Medium || limits::may_be_medium(growth) => {
            let bytes = match end {
                End::Front => medium::of(elements.rev()),
                End::Back => medium::of(elements),
            };
            build_measured(&bytes, size, put)
        }
        _ => {
            let mut list = LargeList::new();
            list.grow(growth, limits);
            list.push(end, elements);
            put(NewValue::Object(Box::new(Object::List(list))))
        }
    }
}

/// A new list of medium size in the form that fits its real size.
fn build_measured<R>(
    bytes: &[u8],
    (growth, limits): (Extent, ListLimits),
    put: impl FnOnce(NewValue<'_, Object>) -> R,
) -> R {
    let run = medium::run(bytes);
    if run.bytes.len() > limits::MEDIUM_BYTES_MAX || limits.is_outgrown(growth) {
        let mut list = LargeList::new();
        list.grow(growth, limits);
        list.push(End::Back, Entries::new(run.bytes));
        return put(NewValue::Object(Box::new(Object::List(list))));
    }
    if run.bytes.len() - run.count + packed::HEADER_BYTES <= super::PACKED_BYTES_MAX {
        let packed = packed::build(Entries::new(run.bytes));
        return put(NewValue::Packed(PackedTag::List as u8, &packed));
    }
    put(NewValue::Packed(PackedTag::List as u8, bytes))
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
