//! Reading strings, whole and in part.

use super::integer;
use crate::call::ctx::{Ctx, DONE, Outcome};
use russet_base::Args;
use russet_engine::types::string::{self, Text};
use russet_protocol::Sink;
use std::ops::Range;

pub(crate) fn reply_text(reply: &mut dyn Sink, text: Text) {
    match text {
        Text::Int(value) => reply.bulk_int(value),
        Text::Bytes(bytes) => reply.bulk(bytes),
        Text::Shared(bytes) => reply.bulk_shared(bytes),
    }
}

pub fn get(ctx: &mut Ctx, args: Args) -> Outcome {
    match ctx.keys.read(args.at(1)) {
        None => ctx.reply.null(),
        Some(entry) => reply_text(ctx.reply, string::text(&entry)?),
    }
    DONE
}

pub fn strlen(ctx: &mut Ctx, args: Args) -> Outcome {
    let len = match ctx.keys.read(args.at(1)) {
        None => 0,
        Some(entry) => string::text(&entry)?.len(),
    };
    ctx.reply.int(len as i64);
    DONE
}

/// GETRANGE, and SUBSTR, its older name.
pub fn getrange(ctx: &mut Ctx, args: Args) -> Outcome {
    let (start, end) = (integer(args.at(2))?, integer(args.at(3))?);
    match ctx.keys.read(args.at(1)) {
        None => ctx.reply.bulk(b""),
        Some(entry) => string::text(&entry)?.with_bytes(|bytes| {
            let range = range_within(start, end, bytes.len());
            ctx.reply.bulk(&bytes[range]);
        }),
    }
    DONE
}

/// The bytes from `start` to `end`, both included and negative from the end.
/// COMPAT: an end before the string's start means its first byte, as in Valkey; Redis 8 answers
/// nothing there. Both start and end negative and crossed mean nothing in either.
fn range_within(start: i64, end: i64, len: usize) -> Range<usize> {
    let len = i64::try_from(len).unwrap_or(i64::MAX);
    if len == 0 || (start < 0 && end < 0 && start > end) {
        return 0..0;
    }
    let from_end = |index: i64| if index < 0 { index.saturating_add(len).max(0) } else { index };
    let (start, end) = (from_end(start), from_end(end).min(len - 1));
    if start > end { 0..0 } else { start as usize..end as usize + 1 }
}
