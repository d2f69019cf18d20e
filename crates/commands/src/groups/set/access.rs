//! A set under a key: opened, filled, emptied, and each change published.

use russet_base::Args;
use russet_engine::event::Event;
use russet_engine::keys::Keys;
use russet_engine::types::element::Element;
use russet_engine::types::set::{NewSet, SetRef, SetRules, stored};
use russet_engine::value::WrongType;

/// The set under a key for a command that reads it.
#[inline]
pub fn read<'k>(keys: &'k mut Keys, key: &[u8]) -> Result<Option<SetRef<'k>>, WrongType> {
    keys.read(key).map(|entry| stored::set(&entry)).transpose()
}

/// Adds members, to a new set if there is none; how many are new. No event is published.
#[inline]
pub fn add_quietly(
    keys: &mut Keys,
    key: &[u8],
    members: Args,
    rules: &SetRules,
) -> Result<usize, WrongType> {
    let Some(mut entry) = keys.write(key) else {
        let first = Element::parse(members.at(0));
        let mut set = NewSet::new(rules.start(first, members.len()), members.len(), rules);
        members.iter().for_each(|member| _ = set.add(Element::parse(member), rules));
        let added = set.len();
        stored::put(set, |value| keys.put(key, value, None));
        return Ok(added);
    };
    stored::make_room(&mut entry, members.len(), rules)?;
    let mut added = 0;
    for member in members.iter() {
        added += usize::from(stored::add(&mut entry, Element::parse(member), rules)?);
    }
    Ok(added)
}

/// What a removal did.
#[derive(Clone, Copy, Debug)]
pub struct Removed {
    pub count: usize,
    pub is_last: bool,
}

/// Removes members, and the key with the last one. None without a key. No event is published.
#[inline]
pub fn remove_quietly(
    keys: &mut Keys,
    key: &[u8],
    members: Args,
) -> Result<Option<Removed>, WrongType> {
    let Some(mut entry) = keys.write(key) else { return Ok(None) };
    let removed = stored::edit(&mut entry, |set| {
        let count = members.iter().filter(|member| set.remove(Element::parse(member))).count();
        Removed { count, is_last: set.is_empty() }
    })?;
    if removed.is_last {
        keys.remove(key);
    }
    Ok(Some(removed))
}

/// Publishes a removal of members.
#[inline]
pub fn notify_removed(keys: &mut Keys, key: &[u8], event: Event, removed: Removed) {
    keys.wrote_many(key, event, removed.count as u64);
    if removed.is_last {
        keys.also(key, Event::DEL);
    }
}
