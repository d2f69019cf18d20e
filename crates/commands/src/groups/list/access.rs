//! A list under a key: opened, grown, shrunk, removed once it is empty, and each change published.

use russet_engine::event::Event;
use russet_engine::keys::Keys;
use russet_engine::store::raw::table::BlobMut;
use russet_engine::types::list::{Element, End, Extent, ListLimits, ListMut, ListRef, stored};
use russet_engine::value::WrongType;

/// One end of the list under a key.
#[derive(Clone, Copy, Debug)]
pub struct EndOf<'k> {
    pub key: &'k [u8],
    pub end: End,
}

impl EndOf<'_> {
    pub fn pushed(self) -> Event {
        Event::list(if self.end == End::Front { "lpush" } else { "rpush" })
    }

    /// What this end is called.
    pub fn side(self) -> &'static [u8] {
        if self.end == End::Front { b"LEFT" } else { b"RIGHT" }
    }

    pub fn push_name(self) -> &'static [u8] {
        if self.end == End::Front { b"LPUSH" } else { b"RPUSH" }
    }

    pub fn pop_name(self) -> &'static [u8] {
        if self.end == End::Front { b"LPOP" } else { b"RPOP" }
    }

    pub fn popped(self) -> Event {
        Event::list(if self.end == End::Front { "lpop" } else { "rpop" })
    }
}

/// The list under a key for a command that reads it.
#[inline]
pub fn read<'k>(keys: &'k mut Keys, key: &[u8]) -> Result<Option<ListRef<'k>>, WrongType> {
    keys.read(key).map(|entry| stored::list(&entry)).transpose()
}

/// How long the list under a key is, without a trace of having looked; 0 if there is none.
pub fn len(keys: &mut Keys, key: &[u8]) -> Result<usize, WrongType> {
    match keys.peek(key) {
        None => Ok(0),
        Some(entry) => Ok(stored::list(&entry)?.len()),
    }
}

/// Pushes elements one after the other, onto a new list if there is none, and tells it. `growth` is
/// their extent. The new length.
#[inline]
pub fn push<'e>(
    keys: &mut Keys,
    onto: EndOf,
    elements: impl DoubleEndedIterator<Item = Element<'e>>,
    growth: Extent,
    limits: ListLimits,
) -> Result<usize, WrongType> {
    let len = push_quietly(keys, onto, elements, growth, limits)?;
    keys.wrote_many(onto.key, onto.pushed(), growth.count as u64);
    Ok(len)
}

/// As [`push`], for one text: what most pushes have.
#[inline]
pub fn push_one(
    keys: &mut Keys,
    onto: EndOf,
    text: &[u8],
    limits: ListLimits,
) -> Result<usize, WrongType> {
    let len = match keys.write(onto.key) {
        Some(mut entry) => stored::push_one(&mut entry, onto.end, text, limits)?,
        None => put_one(keys, onto, text, limits),
    };
    keys.wrote_many(onto.key, onto.pushed(), 1);
    Ok(len)
}

#[inline(never)]
fn put_one(keys: &mut Keys, onto: EndOf, text: &[u8], limits: ListLimits) -> usize {
    let (element, growth) = (Element::parse(text), Extent { bytes: text.len(), count: 1 });
    stored::build(onto.end, std::iter::once(element), (growth, limits), |value| {
        keys.put(onto.key, value, None);
    });
    growth.count
}

/// As [`push`], without telling it.
#[inline]
pub fn push_quietly<'e>(
    keys: &mut Keys,
    onto: EndOf,
    elements: impl DoubleEndedIterator<Item = Element<'e>>,
    growth: Extent,
    limits: ListLimits,
) -> Result<usize, WrongType> {
    let len = match keys.write(onto.key) {
        Some(mut entry) => {
            stored::make_room(&mut entry, growth, limits)?;
            stored::edit(&mut entry, |list| {
                list.push_elements(onto.end, elements);
                list.len()
            })?
        }
        None => {
            stored::build(onto.end, elements, (growth, limits), |value| {
                keys.put(onto.key, value, None);
            });
            growth.count
        }
    };
    Ok(len)
}

/// What a shrinking edit did.
#[derive(Clone, Copy, Debug)]
pub struct Shrunk {
    pub removed: usize,
    pub left: usize,
}

impl Shrunk {
    pub const NOTHING: Shrunk = Shrunk { removed: 0, left: 0 };
}

/// Lets `remove` take elements out of the list under a key and say how many they were. An emptied
/// list is gone. No event is published. None without a key.
#[inline]
pub fn shrink_quietly(
    keys: &mut Keys,
    key: &[u8],
    limits: ListLimits,
    remove: impl FnOnce(&mut ListMut<'_, BlobMut<'_>>) -> usize,
) -> Result<Option<Shrunk>, WrongType> {
    let Some(mut entry) = keys.write(key) else {
        return Ok(None);
    };
    let shrunk = stored::edit(&mut entry, |list| {
        let removed = remove(list);
        Shrunk { removed, left: list.len() }
    })?;
    if shrunk.left == 0 {
        keys.remove(key);
    } else if shrunk.removed > 0 {
        stored::shrink_form(&mut entry, limits);
    }
    Ok(Some(shrunk))
}

/// Publishes what [`shrink_quietly`] did.
#[inline]
pub fn notify_shrunk(keys: &mut Keys, key: &[u8], event: Event, shrunk: Shrunk) {
    keys.wrote_many(key, event, shrunk.removed as u64);
    if shrunk.left == 0 {
        keys.also(key, Event::DEL);
    }
}

/// Pops from one end and publishes it: `take` gets the list and how many of the `count` elements it
/// has, which it must remove. False without a key.
#[inline]
pub fn pop(
    keys: &mut Keys,
    from: EndOf,
    count: usize,
    limits: ListLimits,
    take: impl FnOnce(&mut ListMut<'_, BlobMut<'_>>, usize),
) -> Result<bool, WrongType> {
    let shrunk = shrink_quietly(keys, from.key, limits, |list| {
        let count = count.min(list.len());
        take(list, count);
        count
    })?;
    match shrunk {
        None => Ok(false),
        Some(shrunk) => {
            notify_shrunk(keys, from.key, from.popped(), shrunk);
            Ok(true)
        }
    }
}

/// As [`pop`], for one element, which is shown to `show`: what most pops are.
#[inline]
pub fn pop_one(
    keys: &mut Keys,
    from: EndOf,
    limits: ListLimits,
    show: impl FnMut(Element<'_>),
) -> Result<bool, WrongType> {
    let Some(mut entry) = keys.write(from.key) else {
        return Ok(false);
    };
    let left = stored::pop_one(&mut entry, from.end, limits, show)?;
    if left == 0 {
        keys.remove(from.key);
    }
    notify_shrunk(keys, from.key, from.popped(), Shrunk { removed: 1, left });
    Ok(true)
}
