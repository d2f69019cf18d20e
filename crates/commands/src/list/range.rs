//! LRANGE.

use super::{access, integer, reply_element};
use crate::ctx::{Ctx, DONE, Outcome};
use russet_base::Args;
use russet_engine::types::list::Bounds;

pub fn lrange(ctx: &mut Ctx, args: Args) -> Outcome {
    let bounds = Bounds { start: integer(args.at(2))?, stop: integer(args.at(3))? };
    let Some(list) = access::read(ctx.keys, args.at(1))? else {
        ctx.reply.array(0);
        return DONE;
    };
    let range = bounds.within(list.len());
    ctx.reply.array(range.len());
    list.for_each_in(range, |element| reply_element(ctx.reply, element));
    DONE
}
