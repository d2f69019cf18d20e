//! What changes of streams are recorded as: with the IDs, moments and counts that they came to.

use super::access;
use russet_engine::keys::Keys;
use russet_engine::types::element::IntText;
use russet_engine::types::stream::{
    Group, IdRange, Order, References, Stream, StreamId, StreamRef, Threshold, Trim,
};
use std::ops::ControlFlow;

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

/// Trims, and says how many entries went. What went is recorded by `trimmed`, which gets the last
/// of them where their number alone does not determine which.
pub fn trim(stream: &mut Stream, trim: Trim, is_recording: bool) -> (u64, Option<StreamId>) {
    if !is_recording || trim.references != References::Respect {
        return (stream.trim(trim), None);
    }
    let before = ids(stream);
    let removed = stream.trim(trim);
    // Those that nobody refers to went in order, so the last one says which.
    let left = ids(stream);
    let last = before.into_iter().rev().find(|id| left.binary_search(id).is_err());
    (removed, last)
}

fn ids(stream: &Stream) -> Vec<StreamId> {
    let mut ids = Vec::new();
    StreamRef::Large(stream).visit(IdRange::ALL, Order::Forward, |entry| {
        ids.push(entry.id);
        ControlFlow::Continue(())
    });
    ids
}

/// A stream was trimmed: exactly to what is left.
pub fn trimmed(keys: &mut Keys, key: &[u8], references: References, last: Option<StreamId>) {
    if !keys.is_recording() {
        return;
    }
    let Ok(Some(stream)) = access::peek(keys, key) else { return };
    let threshold = match last.and_then(StreamId::next) {
        Some(first_left) => Threshold::Id(first_left),
        None => Threshold::Len(stream.len()),
    };
    let (name, value) = match threshold {
        Threshold::Id(id) => (&b"MINID"[..], id.text().as_bytes().to_vec()),
        Threshold::Len(len) => (&b"MAXLEN"[..], len.to_string().into_bytes()),
    };
    let references: Option<&[u8]> = match references {
        References::Keep => None,
        References::Delete => Some(b"DELREF"),
        References::Respect => Some(b"ACKED"),
    };
    let call: [&[u8]; 5] = [b"XTRIM", key, name, b"=", &value];
    keys.record(call.into_iter().chain(references));
}
