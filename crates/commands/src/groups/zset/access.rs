//! A sorted set under a key: read, shrunk, removed once it is empty, replaced, and each change
//! published.

use russet_base::float::format_f64;
use russet_engine::event::Event;
use russet_engine::keys::Keys;
use russet_engine::store::raw::table::BlobMut;
use russet_engine::types::zset::combine::Scored;
use russet_engine::types::zset::{Direction, ZsetLimits, ZsetMut, ZsetRef, stored};
use russet_engine::value::WrongType;

/// Of one command in a record.
const RECORDED_PAIRS_MAX: usize = 1000;

/// The sorted set under a key for a command that reads it.
#[inline]
pub fn read<'k>(keys: &'k mut Keys, key: &[u8]) -> Result<Option<ZsetRef<'k>>, WrongType> {
    keys.read(key).map(|entry| stored::zset(&entry)).transpose()
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
        keys.wrote_many(key, event, removed as u64);
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

/// Records all that is under a key, in place of how it came to be there.
pub fn record_all(keys: &mut Keys, key: &[u8]) {
    if !keys.is_recording() {
        return;
    }
    let mut args: Vec<Vec<u8>> = Vec::new();
    if let Some(Ok(zset)) = keys.peek(key).map(|entry| stored::zset(&entry)) {
        zset.for_each(0..zset.len(), Direction::Forward, |pair| {
            let mut score = Vec::new();
            format_f64(pair.score, &mut score);
            args.extend([score, pair.member.with_bytes(<[u8]>::to_vec)]);
        });
    }
    keys.record([b"DEL", key]);
    for args in args.chunks(2 * RECORDED_PAIRS_MAX) {
        keys.record([b"ZADD", key].into_iter().chain(args.iter().map(Vec::as_slice)));
    }
}

/// The value of these pairs, which are in order; None if there are none.
pub fn build(pairs: &[Scored<'_>], limits: ZsetLimits) -> Option<stored::Built> {
    (!pairs.is_empty()).then(|| stored::Built::new(pairs, limits))
}
