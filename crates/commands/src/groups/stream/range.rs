//! XRANGE, XREVRANGE, XLEN.

use super::{access, id_range, integer, reply};
use crate::call::ctx::{Ctx, DONE, Outcome};
use crate::error::Refusal;
use russet_base::Args;
use russet_base::text::eq_ignore_case;
use russet_engine::types::stream::Order;

pub fn xrange(ctx: &mut Ctx, args: Args) -> Outcome {
    range(ctx, args, Order::Forward)
}

pub fn xrevrange(ctx: &mut Ctx, args: Args) -> Outcome {
    range(ctx, args, Order::Backward)
}

fn range(ctx: &mut Ctx, args: Args, order: Order) -> Outcome {
    let (start, end) = match order {
        Order::Forward => (args.at(2), args.at(3)),
        Order::Backward => (args.at(3), args.at(2)),
    };
    let wanted = id_range(start, end)?;
    let mut count = None;
    let mut options = args.from(4).iter();
    while let Some(option) = options.next() {
        match options.next() {
            Some(value) if eq_ignore_case(option, b"count") => {
                count = Some(u64::try_from(integer(value)?).unwrap_or(0));
            }
            _ => return Err(Refusal::Syntax),
        }
    }
    match access::read(ctx.keys, args.at(1))? {
        None => ctx.reply.array(0),
        // COMPAT: a null, though it counts nothing; tests/wire/stream/xrange.wire.
        Some(_) if count == Some(0) => ctx.reply.null_array(),
        Some(stream) => reply::range(ctx.reply, stream, wanted, (order, count)),
    }
    DONE
}

pub fn xlen(ctx: &mut Ctx, args: Args) -> Outcome {
    let len = access::read(ctx.keys, args.at(1))?.map_or(0, |stream| stream.len());
    ctx.reply.int(len as i64);
    DONE
}
