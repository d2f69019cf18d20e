//! The stream under a key, opened to be read or changed.

use crate::error::Refusal;
use russet_engine::keys::Keys;
use russet_engine::types::stream::{Log, OpenGroup, Stream, StreamRef, stored};

/// For a command that reads it: a hit or a miss.
#[inline]
pub fn read<'k>(keys: &'k mut Keys, key: &[u8]) -> Result<Option<StreamRef<'k>>, Refusal> {
    Ok(keys.read(key).map(|entry| stored::stream(&entry)).transpose()?)
}

/// Without a trace of having looked.
pub fn peek<'k>(keys: &'k mut Keys, key: &[u8]) -> Result<Option<StreamRef<'k>>, Refusal> {
    Ok(keys.peek(key).map(|entry| stored::stream(&entry)).transpose()?)
}

/// To be changed. One that is packed becomes large, so look first whether there is a need.
pub fn edit<'k>(keys: &'k mut Keys, key: &[u8]) -> Result<Option<&'k mut Stream>, Refusal> {
    Ok(keys.write(key).map(stored::edit).transpose()?)
}

/// A group to be changed, with the entries that it reads.
pub fn open_group<'k>(
    keys: &'k mut Keys,
    key: &[u8],
    group: &[u8],
) -> Result<Option<(OpenGroup<'k>, &'k Log)>, Refusal> {
    // A packed stream has no groups and stays packed.
    if peek(keys, key)?.is_none_or(|stream| stream.group(group).is_none()) {
        return Ok(None);
    }
    open_known_group(keys, key, group)
}

/// As [`open_group`], for a caller that has just seen the group.
pub fn open_known_group<'k>(
    keys: &'k mut Keys,
    key: &[u8],
    group: &[u8],
) -> Result<Option<(OpenGroup<'k>, &'k Log)>, Refusal> {
    Ok(edit(keys, key)?.and_then(|stream| stream.open_group(group)))
}
