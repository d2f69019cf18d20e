//! ZREM and the ZREMRANGEBY commands.

use super::access;
use super::bounds::{Bounded, Ends};
use crate::call::ctx::{Ctx, DONE, Outcome};
use russet_base::Args;
use russet_engine::event::Event;
use russet_engine::types::zset::Direction;

pub fn zrem(ctx: &mut Ctx, args: Args) -> Outcome {
    let removed = access::shrink(ctx.keys, args.at(1), Event::zset("zrem"), |zset| {
        args.from(2).iter().filter(|member| zset.remove(member)).count()
    })?;
    ctx.reply.int(removed.unwrap_or(0) as i64);
    DONE
}

pub fn zremrangebyrank(ctx: &mut Ctx, args: Args) -> Outcome {
    let bounded = Ends { min: args.at(2), max: args.at(3) }.ranks()?;
    remove_range(ctx, args.at(1), bounded, Event::zset("zremrangebyrank"))
}

pub fn zremrangebyscore(ctx: &mut Ctx, args: Args) -> Outcome {
    let range = Ends { min: args.at(2), max: args.at(3) }.score_range()?;
    remove_range(ctx, args.at(1), Bounded::Scores(range), Event::zset("zremrangebyscore"))
}

pub fn zremrangebylex(ctx: &mut Ctx, args: Args) -> Outcome {
    let range = Ends { min: args.at(2), max: args.at(3) }.lex_range()?;
    remove_range(ctx, args.at(1), Bounded::Members(range), Event::zset("zremrangebylex"))
}

fn remove_range(ctx: &mut Ctx, key: &[u8], bounded: Bounded, event: Event) -> Outcome {
    let removed = access::shrink(ctx.keys, key, event, |zset| {
        let ranks = bounded.within(zset.as_ref(), Direction::Forward);
        zset.remove_range(ranks.clone());
        ranks.len()
    })?;
    ctx.reply.int(removed.unwrap_or(0) as i64);
    DONE
}
