//! ZRANDMEMBER.

use super::reply::{self, Scores};
use super::{access, integer};
use crate::call::ctx::{Ctx, DONE, Outcome};
use crate::error::Refusal;
use russet_base::Args;
use russet_base::random::Random;
use russet_base::text::eq_ignore_case;
use russet_engine::types::zset::{Direction, ZsetRef};
use russet_protocol::Sink;
use std::collections::HashSet;

/// DIFFERS: more members, drawn with repetition, are refused: such a reply fits in no memory.
const DRAWS_MAX: u64 = 1 << 26;
/// From this share of all members on, walking through them is cheaper than drawing.
const WALK_SHARE: usize = 3;

pub fn zrandmember(ctx: &mut Ctx, args: Args) -> Outcome {
    let Some(arg) = args.get(2) else {
        return one(ctx, args.at(1));
    };
    let count = count(arg)?;
    let scores = match args.get(3) {
        None => Scores::Without,
        Some(arg) if args.len() == 4 && eq_ignore_case(arg, b"withscores") => Scores::With,
        Some(_) => return Err(Refusal::Syntax),
    };
    const OUT_OF_RANGE: &str = "ERR value is out of range";
    if scores == Scores::With && !(-i64::MAX / 2..=i64::MAX / 2).contains(&count) {
        return Err(Refusal::text(OUT_OF_RANGE));
    }
    let mut random = Random::from_seed(ctx.keys.keyspace().draw_u64());
    match access::read(ctx.keys, args.at(1))? {
        None => ctx.reply.array(0),
        Some(_) if count < 0 && count.unsigned_abs() > DRAWS_MAX => {
            return Err(Refusal::text(OUT_OF_RANGE));
        }
        Some(zset) if count < 0 => {
            let draws = count.unsigned_abs() as usize;
            reply::begin(ctx.reply, draws, scores);
            for _ in 0..draws {
                reply::pair(ctx.reply, zset.at(random.index(zset.len())), scores);
            }
        }
        Some(zset) => {
            let count = usize::try_from(count).unwrap_or(usize::MAX).min(zset.len());
            reply::begin(ctx.reply, count, scores);
            distinct(ctx.reply, zset, (count, &mut random), scores);
        }
    }
    DONE
}

fn count(arg: &[u8]) -> Result<i64, Refusal> {
    match integer(arg)? {
        i64::MIN => Err(Refusal::text(
            "ERR value is out of range, \
             value must between -9223372036854775807 and 9223372036854775807",
        )),
        count => Ok(count),
    }
}

fn one(ctx: &mut Ctx, key: &[u8]) -> Outcome {
    let mut random = Random::from_seed(ctx.keys.keyspace().draw_u64());
    match access::read(ctx.keys, key)? {
        Some(zset) => reply::member(ctx.reply, zset.at(random.index(zset.len())).member),
        None => ctx.reply.null(),
    }
    DONE
}

/// Different members, `count` of them, which there are.
fn distinct(
    reply: &mut dyn Sink,
    zset: ZsetRef<'_>,
    (count, random): (usize, &mut Random),
    scores: Scores,
) {
    let len = zset.len();
    if count >= len / WALK_SHARE {
        let (mut wanted, mut left) = (count, len);
        // COMPAT: all of them come from the highest down; tests/wire/zset/zrandmember.wire.
        zset.for_each(0..len, Direction::Reverse, |pair| {
            if random.index(left) < wanted {
                reply::pair(reply, pair, scores);
                wanted -= 1;
            }
            left -= 1;
        });
        return;
    }
    // Floyd: each choice is as likely as another, and no draw is in vain.
    let mut chosen = HashSet::with_capacity(count);
    let mut ranks = Vec::with_capacity(count);
    for bound in len - count..len {
        let rank = random.index(bound + 1);
        let rank = if chosen.insert(rank) { rank } else { bound };
        chosen.insert(rank);
        ranks.push(rank);
    }
    random.shuffle(&mut ranks);
    ranks.iter().for_each(|rank| reply::pair(reply, zset.at(*rank), scores));
}
