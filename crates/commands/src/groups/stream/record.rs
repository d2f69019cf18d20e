//! What changes of streams are recorded as: with the IDs, moments and counts that they came to.

use super::access;
use super::delete::{Released, note_references, record_released};
use russet_engine::keys::Keys;
use russet_engine::types::element::IntText;
use russet_engine::types::stream::{Group, References, Stream, StreamId, StreamRef, Trim};

/// What is pending for a consumer once it has been given an entry.
#[derive(Clone, Copy, Debug)]
pub struct Claimed {
    pub id: StreamId,
    pub delivered_ms: i64,
    pub deliveries: u64,
}

impl Claimed {
    /// As it is pending now.
    pub fn of(group: &Group, id: StreamId) -> Option<Self> {
        let pending = group.pending(id)?;
        let (delivered_ms, deliveries) = (pending.delivered_ms, pending.deliveries);
        Some(Claimed { id, delivered_ms, deliveries })
    }
}

/// A group of a stream, and one of its consumers.
#[derive(Clone, Copy)]
pub struct Reader<'a> {
    pub key: &'a [u8],
    pub group: &'a [u8],
    pub consumer: &'a [u8],
}

pub fn consumer_created(keys: &mut Keys, reader: Reader) {
    let Reader { key, group, consumer } = reader;
    keys.record([&b"XGROUP"[..], b"CREATECONSUMER", key, group, consumer]);
}

/// Entries that were given to a consumer.
pub fn claimed(keys: &mut Keys, reader: Reader, entries: &[Claimed]) {
    let Reader { key, group, consumer } = reader;
    for entry in entries {
        let (id, at) = (entry.id.text(), IntText::new(entry.delivered_ms));
        let deliveries = IntText::new(entry.deliveries as i64);
        let options: [&[u8]; 6] =
            [b"TIME", at.as_bytes(), b"RETRYCOUNT", deliveries.as_bytes(), b"FORCE", b"JUSTID"];
        let call: [&[u8]; 6] = [b"XCLAIM", key, group, consumer, b"0", id.as_bytes()];
        keys.record(call.into_iter().chain(options));
    }
}

/// Entries that are pending no more.
pub fn acknowledged(keys: &mut Keys, key: &[u8], group: &[u8], ids: &[StreamId]) {
    keys.record_list(&[b"XACK", key, group], texts(ids));
}

pub fn deleted(keys: &mut Keys, key: &[u8], ids: &[StreamId]) {
    keys.record_list(&[b"XDEL", key], texts(ids));
}

fn texts(ids: &[StreamId]) -> impl Iterator<Item = Vec<u8>> {
    ids.iter().map(|id| id.text().as_bytes().to_vec())
}

/// How far a group has read.
pub fn position(keys: &mut Keys, key: &[u8], name: &[u8]) {
    if !keys.is_recording() {
        return;
    }
    let Ok(Some(stream)) = access::peek(keys, key) else { return };
    let Some(group) = stream.group(name) else { return };
    let (last_id, read) = (group.last_id.text(), IntText::new(group.entries_read.unwrap_or(-1)));
    let read = read.as_bytes();
    keys.record([&b"XGROUP"[..], b"SETID", key, name, last_id.as_bytes(), b"ENTRIESREAD", read]);
}

/// What a trim came to, beside how many entries are left.
#[derive(Default)]
pub struct Trimmed {
    /// What was pending and went.
    released: Released,
    /// Entries that went from behind one that had to stay.
    deleted: Vec<StreamId>,
    /// What XDEL would change and trimming does not.
    max_deleted: StreamId,
}

/// Trims, and says how many entries went and, if it is to be recorded, what else `trimmed` needs.
pub fn trim(stream: &mut Stream, trim: Trim, is_recording: bool) -> (u64, Trimmed) {
    let mut trimmed = Trimmed { max_deleted: stream.log.max_deleted_id, ..Trimmed::default() };
    if !is_recording || trim.references == References::Keep {
        return (stream.trim(trim), trimmed);
    }
    let mut gone = Vec::new();
    let removed = stream.trim_noting(trim, &mut |stream, id| {
        note_references(stream, id, &mut trimmed.released);
        gone.push(id);
    });
    if let Some(first_left) = StreamRef::Large(stream).first_entry_id() {
        let prefix = gone.partition_point(|id| *id < first_left);
        trimmed.deleted = gone.split_off(prefix);
    }
    (removed, trimmed)
}

/// A stream was trimmed: exactly to what is left. Who keeps references, or deletes only what has
/// none, uses options that servers before Redis 8.2 would pass over, so it is recorded as what it
/// came to. The order matters: once the entries behind one that stayed are gone, those in front of
/// the first that is left are all that is too much.
pub fn trimmed(keys: &mut Keys, key: &[u8], trimmed: &Trimmed) {
    if !keys.is_recording() {
        return;
    }
    let Ok(Some(stream)) = access::peek(keys, key) else { return };
    let (len, last_id) = (stream.len().to_string(), stream.last_id().text());
    let added = stream.entries_added().to_string();
    record_released(keys, key, &trimmed.released, &trimmed.deleted);
    if !trimmed.deleted.is_empty() {
        let max_deleted = trimmed.max_deleted.text();
        let call: [&[u8]; 7] = [
            b"XSETID",
            key,
            last_id.as_bytes(),
            b"ENTRIESADDED",
            added.as_bytes(),
            b"MAXDELETEDID",
            max_deleted.as_bytes(),
        ];
        keys.record(call);
    }
    keys.record([&b"XTRIM"[..], key, b"MAXLEN", b"=", len.as_bytes()]);
}
