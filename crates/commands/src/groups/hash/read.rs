//! Reading fields: HGET, HMGET, HGETALL, HKEYS, HVALS, HLEN, HSTRLEN, HEXISTS.

use super::{read, reply_element, reply_nulls, reply_value};
use crate::call::ctx::{Ctx, DONE, Outcome};
use russet_base::Args;
use russet_engine::types::element::Element;
use russet_engine::types::hash::{Field, HashRef};
use russet_protocol::{BulkWriter, Sink};

/// From here on the bytes are written past the sink.
const DIRECT_ELEMENTS_MIN: usize = 64;

pub fn hget(ctx: &mut Ctx, args: Args) -> Outcome {
    let hash = read(ctx.keys, args.at(1))?;
    reply_value(ctx.reply, hash.and_then(|hash| hash.value(args.at(2))));
    DONE
}

pub fn hmget(ctx: &mut Ctx, args: Args) -> Outcome {
    let names = args.from(2);
    let Some(hash) = read(ctx.keys, args.at(1))? else {
        reply_nulls(ctx.reply, names.len());
        return DONE;
    };
    ctx.reply.array(names.len());
    names.iter().for_each(|name| reply_value(ctx.reply, hash.value(name)));
    DONE
}

pub fn hlen(ctx: &mut Ctx, args: Args) -> Outcome {
    let len = read(ctx.keys, args.at(1))?.map_or(0, HashRef::len);
    ctx.reply.int(len as i64);
    DONE
}

pub fn hstrlen(ctx: &mut Ctx, args: Args) -> Outcome {
    let value = read(ctx.keys, args.at(1))?.and_then(|hash| hash.value(args.at(2)));
    let len = value.map_or(0, |value| value.with_bytes(<[u8]>::len));
    ctx.reply.int(len as i64);
    DONE
}

pub fn hexists(ctx: &mut Ctx, args: Args) -> Outcome {
    let hash = read(ctx.keys, args.at(1))?;
    ctx.reply.int(i64::from(hash.is_some_and(|hash| hash.contains(args.at(2)))));
    DONE
}

pub fn hgetall(ctx: &mut Ctx, args: Args) -> Outcome {
    let Some(hash) = read(ctx.keys, args.at(1))? else {
        ctx.reply.map(0);
        return DONE;
    };
    let fields = hash.len();
    ctx.reply.map(fields);
    reply_all(ctx.reply, (hash, 2 * fields), |field, write| {
        write(field.name);
        write(field.value);
    });
    DONE
}

pub fn hkeys(ctx: &mut Ctx, args: Args) -> Outcome {
    one_side(ctx, args, |field| field.name)
}

pub fn hvals(ctx: &mut Ctx, args: Args) -> Outcome {
    one_side(ctx, args, |field| field.value)
}

fn one_side(ctx: &mut Ctx, args: Args, side: fn(Field<'_>) -> Element<'_>) -> Outcome {
    let Some(hash) = read(ctx.keys, args.at(1))? else {
        ctx.reply.array(0);
        return DONE;
    };
    let count = hash.len();
    ctx.reply.array(count);
    reply_all(ctx.reply, (hash, count), |field, write| write(side(field)));
    DONE
}

/// Answers with the `count` elements that `show` makes of the fields.
#[inline]
fn reply_all(
    reply: &mut dyn Sink,
    (hash, count): (HashRef, usize),
    show: impl Fn(Field<'_>, &mut dyn FnMut(Element<'_>)),
) {
    match reply.wire() {
        Some(out) if count >= DIRECT_ELEMENTS_MIN => {
            let mut bulks = BulkWriter::new(out);
            let mut write = |element: Element<'_>| match element {
                Element::Bytes(bytes) => bulks.bulk(bytes),
                Element::Int(value) => bulks.bulk_int(value),
            };
            hash.for_each(|field| show(field, &mut write));
            bulks.finish();
        }
        _ => hash.for_each(|field| show(field, &mut |element| reply_element(reply, element))),
    }
}
