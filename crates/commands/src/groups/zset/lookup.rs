//! Reading without members in return: ZSCORE, ZMSCORE, ZCARD, ZRANK, ZREVRANK, ZCOUNT, ZLEXCOUNT.

use super::bounds::Ends;
use super::{access, reply};
use crate::call::ctx::{Ctx, DONE, Outcome};
use crate::error::Refusal;
use russet_base::Args;
use russet_base::text::eq_ignore_case;
use russet_engine::types::zset::Direction;

pub fn zcard(ctx: &mut Ctx, args: Args) -> Outcome {
    let len = access::read(ctx.keys, args.at(1))?.map_or(0, |zset| zset.len());
    ctx.reply.int(len as i64);
    DONE
}

pub fn zscore(ctx: &mut Ctx, args: Args) -> Outcome {
    let zset = access::read(ctx.keys, args.at(1))?;
    match zset.and_then(|zset| zset.score(args.at(2))) {
        Some(score) => reply::score(ctx.reply, score),
        None => ctx.reply.null(),
    }
    DONE
}

pub fn zmscore(ctx: &mut Ctx, args: Args) -> Outcome {
    let zset = access::read(ctx.keys, args.at(1))?;
    let members = args.from(2);
    ctx.reply.array(members.len());
    for member in members.iter() {
        match zset.and_then(|zset| zset.score(member)) {
            Some(score) => reply::score(ctx.reply, score),
            None => ctx.reply.null(),
        }
    }
    DONE
}

pub fn zrank(ctx: &mut Ctx, args: Args) -> Outcome {
    rank(ctx, args, Direction::Forward)
}

pub fn zrevrank(ctx: &mut Ctx, args: Args) -> Outcome {
    rank(ctx, args, Direction::Reverse)
}

fn rank(ctx: &mut Ctx, args: Args, direction: Direction) -> Outcome {
    let with_score = match args.get(3) {
        _ if args.len() > 4 => return Err(Refusal::Arity(ctx.command.spec().full_name)),
        None => false,
        Some(arg) if eq_ignore_case(arg, b"withscore") => true,
        Some(_) => return Err(Refusal::Syntax),
    };
    let zset = access::read(ctx.keys, args.at(1))?;
    let found = zset.and_then(|zset| Some((zset.ranked(args.at(2))?, zset.len())));
    let Some((ranked, len)) = found else {
        match with_score {
            true => ctx.reply.null_array(),
            false => ctx.reply.null(),
        }
        return DONE;
    };
    let rank = match direction {
        Direction::Forward => ranked.rank,
        Direction::Reverse => len - 1 - ranked.rank,
    };
    if with_score {
        ctx.reply.array(2);
    }
    ctx.reply.int(rank as i64);
    if with_score {
        reply::score(ctx.reply, ranked.score);
    }
    DONE
}

pub fn zcount(ctx: &mut Ctx, args: Args) -> Outcome {
    let range = Ends { min: args.at(2), max: args.at(3) }.score_range()?;
    let zset = access::read(ctx.keys, args.at(1))?;
    let count = zset.map_or(0, |zset| zset.by_score(&range).len());
    ctx.reply.int(count as i64);
    DONE
}

pub fn zlexcount(ctx: &mut Ctx, args: Args) -> Outcome {
    let range = Ends { min: args.at(2), max: args.at(3) }.lex_range()?;
    let zset = access::read(ctx.keys, args.at(1))?;
    let count = zset.map_or(0, |zset| zset.by_lex(&range, Direction::Forward).len());
    ctx.reply.int(count as i64);
    DONE
}
