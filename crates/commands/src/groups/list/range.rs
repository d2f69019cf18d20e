//! LRANGE.

use super::{access, integer, reply_element};
use crate::call::ctx::{Ctx, DONE, Outcome};
use russet_base::Args;
use russet_engine::types::list::{Bounds, Element, ListRef};
use russet_protocol::{BulkWriter, Sink};
use std::ops::Range;

/// From here on the bytes are written past the sink.
const DIRECT_ELEMENTS_MIN: usize = 32;
/// What a bulk string has besides its text and what its entry has, nearly always.
const FRAME_BYTES: usize = 6;

pub fn lrange(ctx: &mut Ctx, args: Args) -> Outcome {
    let bounds = Bounds { start: integer(args.at(2))?, stop: integer(args.at(3))? };
    let Some(list) = access::read(ctx.keys, args.at(1))? else {
        ctx.reply.array(0);
        return DONE;
    };
    reply_range(ctx.reply, list, bounds.within(list.len()));
    DONE
}

/// Answers with the elements of a range, which lies inside the list.
fn reply_range(reply: &mut dyn Sink, list: ListRef, range: Range<usize>) {
    reply.array(range.len());
    match reply.wire() {
        Some(mut out) if range.len() >= DIRECT_ELEMENTS_MIN => {
            out.reserve(reply_bytes(list, range.len()));
            let mut bulks = BulkWriter::new(out);
            list.for_each_in(range, |element| match element {
                Element::Bytes(bytes) => bulks.bulk(bytes),
                Element::Int(value) => bulks.bulk_int(value),
            });
            bulks.finish();
        }
        _ => list.for_each_in(range, |element| reply_element(reply, element)),
    }
}

/// About how long the reply with `count` elements will be.
fn reply_bytes(list: ListRef, count: usize) -> usize {
    let size = list.size();
    let share = (size.bytes as u128 * count as u128 / size.count.max(1) as u128) as usize;
    share + count * FRAME_BYTES
}
