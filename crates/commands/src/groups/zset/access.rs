//! A sorted set under a key: read, shrunk, removed once it is empty, replaced, and each change
//! published.

use russet_engine::event::Event;
use russet_engine::keys::Keys;
use russet_engine::store::raw::table::BlobMut;
use russet_engine::types::zset::combine::Scored;
use russet_engine::types::zset::{ZsetLimits, ZsetMut, ZsetRef, stored};
use russet_engine::value::WrongType;

/// The sorted set under a key for a command that reads it.
#[inline]
pub fn read<'k>(keys: &'k mut Keys, key: &[u8]) -> Result<Option<ZsetRef<'k>>, WrongType> {
    keys.read(key).map(|entry| stored::zset(&entry)).transpose()
}

/// Publishes a change of `count` members.
#[inline]
pub fn notify(keys: &mut Keys, key: &[u8], event: Event, count: usize) {
    keys.wrote_many(key, event, count as u64);
}

/// Lets `remove` take members out of the sorted set under a key and say how many they were, and
/// publishes it if there were any. An emptied one is gone. None without a key.
pub fn shrink(
    keys: &mut Keys,
    key: &[u8],
    event: Event,
    remove: impl FnOnce(&mut ZsetMut<'_, BlobMut<'_>>) -> usize,
) -> Result<Option<usize>, WrongType> {
    let Some(mut entry) = keys.write(key) else {
        return Ok(None);
    };
    let (removed, left) = stored::edit(&mut entry, |zset| {
        let removed = remove(zset);
        (removed, zset.len())
    })?;
    if left == 0 {
        keys.remove(key);
    }
    if removed > 0 {
        notify(keys, key, event, removed);
        if left == 0 {
            keys.also(key, Event::DEL);
        }
    }
    Ok(Some(removed))
}

/// What a STORE command puts under its key: the value is made while the operands are still
/// borrowed, and put when they no longer are.
pub fn store(keys: &mut Keys, key: &[u8], built: Option<stored::Built>, event: Event) {
    match built {
        Some(built) => {
            built.put(|value| keys.put(key, value, None));
            keys.wrote(key, event);
        }
        None => {
            if keys.remove(key) {
                keys.wrote(key, Event::DEL);
            }
        }
    }
}

/// The value of these pairs, which are in order; None if there are none.
pub fn build(pairs: &[Scored<'_>], limits: ZsetLimits) -> Option<stored::Built> {
    (!pairs.is_empty()).then(|| stored::Built::new(pairs, limits))
}
