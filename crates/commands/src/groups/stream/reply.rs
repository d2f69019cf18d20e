//! How entries look in a reply.

use russet_engine::types::stream::{Element, Entry, IdRange, Log, Order, StreamId, StreamRef};
use russet_protocol::{RespWriter, Sink};
use std::ops::ControlFlow;

#[inline]
pub fn id(reply: &mut (impl Sink + ?Sized), id: StreamId) {
    reply.bulk(id.text().as_bytes());
}

#[inline]
fn element<S: Sink + ?Sized>(reply: &mut S, element: Element<'_>) {
    match element {
        Element::Bytes(bytes) => reply.bulk(bytes),
        Element::Int(value) => reply.bulk_int(value),
    }
}

/// Its ID and its fields, inside an array that is begun already.
#[inline]
pub fn parts<S: Sink + ?Sized>(reply: &mut S, entry: Entry<'_>) {
    id(reply, entry.id);
    reply.array(entry.fields_len * 2);
    entry.for_each_field(|name, value| {
        element(reply, name);
        element(reply, value);
    });
}

/// An entry: its ID and its fields.
#[inline]
pub fn entry<S: Sink + ?Sized>(reply: &mut S, entry: Entry<'_>) {
    reply.array(2);
    parts(reply, entry);
}

/// The entries of a range as an array. `count` is the most of them, if there is a limit.
pub fn range(
    reply: &mut dyn Sink,
    stream: StreamRef<'_>,
    range: IdRange,
    (order, count): (Order, Option<u64>),
) {
    let mark = reply.begin_array();
    let resp = reply.resp();
    let len = match reply.wire() {
        // Calls through the trait cost more than the bytes.
        Some(out) => write_range(&mut RespWriter::new(out, resp), stream, range, (order, count)),
        None => write_range(reply, stream, range, (order, count)),
    };
    reply.end_array(mark, len);
}

fn write_range<S: Sink + ?Sized>(
    reply: &mut S,
    stream: StreamRef<'_>,
    range: IdRange,
    (order, count): (Order, Option<u64>),
) -> usize {
    let mut len = 0;
    let max = count.map_or(usize::MAX, |count| usize::try_from(count).unwrap_or(usize::MAX));
    if max == 0 {
        return 0;
    }
    stream.visit(range, order, |shown| {
        entry(reply, shown);
        len += 1;
        if len == max { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    len
}

/// One entry by its ID; false, and nothing is written, if it is not there.
pub fn one(reply: &mut dyn Sink, log: &Log, id: StreamId) -> bool {
    let mut is_there = false;
    log.visit(IdRange::one(id), Order::Forward, |shown| {
        entry(reply, shown);
        is_there = true;
        ControlFlow::Break(())
    });
    is_there
}

/// The first or the last entry, or null.
pub fn edge(reply: &mut dyn Sink, stream: StreamRef<'_>, order: Order) {
    if write_range(reply, stream, IdRange::ALL, (order, Some(1))) == 0 {
        reply.null();
    }
}

/// Bytes of an entry on the wire, which is what MAXSIZE counts.
pub fn entry_bytes(entry: Entry<'_>) -> u64 {
    let mut bytes = header_bytes(2) + bulk_bytes(entry.id.text().as_bytes().len());
    bytes += header_bytes(entry.fields_len * 2);
    entry.for_each_field(|name, value| {
        for element in [name, value] {
            bytes += element.with_bytes(|text| bulk_bytes(text.len()));
        }
    });
    bytes
}

fn header_bytes(len: usize) -> u64 {
    u64::from(len.checked_ilog10().unwrap_or(0)) + 4
}

/// Bytes of a bulk string on the wire.
pub fn bulk_bytes(len: usize) -> u64 {
    header_bytes(len) + len as u64 + 2
}
