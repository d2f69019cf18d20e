//! Sets where they are stored: packed inside a table entry, or an object of their own.

use super::{Encoding, NewSet, SetMut, SetRef, SetRules};
use crate::store::raw::table::{BlobMut, EntryMut, EntryRef, NewValue, View};
use crate::types::element::Element;
use crate::value::{Object, PackedTag, WrongType};
use russet_base::random::Random;

const INTS: u8 = PackedTag::IntSet as u8;
const PACKED: u8 = PackedTag::Set as u8;

/// The set in an entry, to read.
#[inline]
pub fn set<'a>(entry: &EntryRef<'a, Object>) -> Result<SetRef<'a>, WrongType> {
    match entry.value() {
        View::Packed(INTS, bytes) => Ok(SetRef::Ints(bytes)),
        View::Packed(PACKED, bytes) => Ok(SetRef::Packed(bytes)),
        View::Object(Object::Set(set)) => Ok(SetRef::Large(set)),
        _ => Err(WrongType),
    }
}

/// As OBJECT ENCODING names it.
pub fn encoding(entry: &EntryRef<'_, Object>) -> &'static str {
    set(entry).map_or("hashtable", |set| set.encoding().name())
}

/// Lets `edit` change the set in an entry. Members are added with [`add`].
#[inline]
pub fn edit<R>(
    entry: &mut EntryMut<'_, Object>,
    edit: impl FnOnce(&mut SetMut<'_, BlobMut<'_>>) -> R,
) -> Result<R, WrongType> {
    if let Some(mut blob) = entry.packed_blob(PACKED) {
        return Ok(edit(&mut SetMut::Packed(&mut blob)));
    }
    if let Some(mut blob) = entry.packed_blob(INTS) {
        return Ok(edit(&mut SetMut::Ints(&mut blob)));
    }
    match entry.object_mut() {
        Some(Object::Set(set)) => Ok(edit(&mut SetMut::Large(set))),
        _ => Err(WrongType),
    }
}

/// Adds a member; whether it is new.
#[inline]
pub fn add(
    entry: &mut EntryMut<'_, Object>,
    member: Element<'_>,
    rules: &SetRules,
) -> Result<bool, WrongType> {
    loop {
        match edit(entry, |set| set.add(member, rules))? {
            Ok(is_new) => return Ok(is_new),
            Err(form) => {
                let changed = NewSet::of(set(&entry.as_ref())?, form, rules);
                put(changed, |value| entry.set(value));
            }
        }
    }
}

/// Prepares a set for `count` members that are about to be added: Redis makes a table of it if
/// they alone would be too many for another encoding. A value of another type may pass.
#[inline]
pub fn make_room(
    entry: &mut EntryMut<'_, Object>,
    count: usize,
    rules: &SetRules,
) -> Result<(), WrongType> {
    match count <= rules.intset_entries_max.min(rules.listpack_entries_max) {
        true => Ok(()),
        false => make_much_room(entry, count, rules),
    }
}

#[inline(never)]
fn make_much_room(
    entry: &mut EntryMut<'_, Object>,
    count: usize,
    rules: &SetRules,
) -> Result<(), WrongType> {
    let current = set(&entry.as_ref())?;
    let max = match current.encoding() {
        Encoding::Intset => rules.intset_entries_max,
        Encoding::Listpack => rules.listpack_entries_max,
        Encoding::Hashtable => return Ok(()),
    };
    if count <= max {
        return Ok(());
    }
    let form = super::Form::Large(Encoding::Hashtable);
    if let Some(Object::Set(large)) = entry.object_mut() {
        large.encoding = Encoding::Hashtable;
        return Ok(());
    }
    let changed = NewSet::of(set(&entry.as_ref())?, form, rules);
    put(changed, |value| entry.set(value));
    Ok(())
}

/// Takes out `count` members, fewer than there are, and shows them.
pub fn pop_many(
    entry: &mut EntryMut<'_, Object>,
    count: usize,
    (rules, random): (&SetRules, &mut Random),
    visit: &mut dyn FnMut(Element<'_>),
) -> Result<(), WrongType> {
    let before = set(&entry.as_ref())?;
    let left = before.len() - count;
    // COMPAT: Redis keeps what is left as a new set if that is little, and so a table may become a
    // listpack; test `spop_of_most_members_makes_a_new_set`.
    let renews = left.saturating_mul(MOVE_FACTOR) <= count;
    if matches!(before, SetRef::Large(_)) && !renews {
        return edit(entry, |set| (0..count).for_each(|_| _ = set.pop(random, visit)));
    }
    let start = match before.encoding() {
        Encoding::Hashtable => Encoding::Listpack,
        encoding => encoding,
    };
    let mut kept = NewSet::new(start, left, rules);
    let mut draw = super::Draw { random, wanted: count, left: before.len() };
    before.for_each(&mut |member| {
        if draw.takes_next() {
            visit(member);
        } else {
            kept.add(member, rules);
        }
    });
    put(kept, |value| entry.set(value));
    Ok(())
}

/// Redis renews a set that loses at least so many times as many members as it keeps.
const MOVE_FACTOR: usize = 5;

/// Hands a new set to `put` as a value.
pub fn put<R>(set: NewSet, put: impl FnOnce(NewValue<'_, Object>) -> R) -> R {
    match set {
        NewSet::Ints(bytes) => put(NewValue::Packed(INTS, &bytes.0)),
        NewSet::Packed(bytes) => put(NewValue::Packed(PACKED, &bytes.0)),
        NewSet::Large(set) => put(NewValue::Object(Box::new(Object::Set(set)))),
    }
}
