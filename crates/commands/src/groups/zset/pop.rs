//! Popping without waiting: ZPOPMIN, ZPOPMAX, ZMPOP.

use super::access;
use super::reply::{self, Scores};
use crate::call::ctx::{Ctx, DONE, Outcome};
use crate::error::Refusal;
use crate::groups::many_keys::ManyKeys;
use russet_base::text::eq_ignore_case;
use russet_base::{Args, num};
use russet_engine::event::Event;
use russet_engine::keys::Keys;
use russet_engine::store::raw::table::BlobMut;
use russet_engine::types::zset::{Direction, ZsetMut};
use russet_engine::value::WrongType;
use russet_protocol::{Resp, Sink};

/// The end that is popped from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extreme {
    Min,
    Max,
}

impl Extreme {
    pub fn parse(arg: &[u8]) -> Result<Self, Refusal> {
        if eq_ignore_case(arg, b"min") {
            Ok(Extreme::Min)
        } else if eq_ignore_case(arg, b"max") {
            Ok(Extreme::Max)
        } else {
            Err(Refusal::Syntax)
        }
    }

    /// The command that pops there without waiting.
    pub fn pop_name(self) -> &'static [u8] {
        if self == Extreme::Min { b"ZPOPMIN" } else { b"ZPOPMAX" }
    }

    fn event(self) -> Event {
        Event::zset(if self == Extreme::Min { "zpopmin" } else { "zpopmax" })
    }
}

/// The shape of the answer to a pop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// ZPOPMIN: members and scores in one flat array.
    Flat,
    /// ZPOPMIN with a count in RESP3: an array of pairs.
    Pairs,
    /// BZPOPMIN: the key, the member, the score.
    KeyAndPair,
    /// ZMPOP: the key, and an array of pairs.
    KeyAndPairs,
}

/// Which sorted set to pop from, and how many.
#[derive(Clone, Copy, Debug)]
pub struct Pop<'k> {
    pub key: &'k [u8],
    pub extreme: Extreme,
    pub count: usize,
}

impl Pop<'_> {
    /// Pops and answers; false, and no answer, without a key.
    pub fn run(
        self,
        keys: &mut Keys,
        reply: &mut dyn Sink,
        shape: Shape,
    ) -> Result<bool, WrongType> {
        let popped = access::shrink(keys, self.key, self.extreme.event(), |zset| {
            let count = self.count.min(zset.len());
            self.begin(reply, shape, count);
            self.take(zset, reply, shape, count);
            count
        })?;
        Ok(popped.is_some())
    }

    fn begin(self, reply: &mut dyn Sink, shape: Shape, count: usize) {
        match shape {
            Shape::Flat => reply.array(count * 2),
            Shape::Pairs => reply.array(count),
            Shape::KeyAndPair => {
                reply.array(3);
                reply.bulk(self.key);
            }
            Shape::KeyAndPairs => {
                reply.array(2);
                reply.bulk(self.key);
                reply.array(count);
            }
        }
    }

    fn take(
        self,
        zset: &mut ZsetMut<'_, BlobMut<'_>>,
        reply: &mut dyn Sink,
        shape: Shape,
        count: usize,
    ) {
        let len = zset.len();
        let (ranks, direction) = match self.extreme {
            Extreme::Min => (0..count, Direction::Forward),
            Extreme::Max => (len - count..len, Direction::Reverse),
        };
        let is_nested = matches!(shape, Shape::Pairs | Shape::KeyAndPairs);
        zset.as_ref().for_each(ranks.clone(), direction, |pair| {
            if is_nested {
                reply.array(2);
            }
            reply::member(reply, pair.member);
            reply::score(reply, pair.score);
        });
        zset.remove_range(ranks);
    }
}

pub fn zpopmin(ctx: &mut Ctx, args: Args) -> Outcome {
    pop(ctx, args, Extreme::Min)
}

pub fn zpopmax(ctx: &mut Ctx, args: Args) -> Outcome {
    pop(ctx, args, Extreme::Max)
}

fn pop(ctx: &mut Ctx, args: Args, extreme: Extreme) -> Outcome {
    let count = match args.get(2) {
        _ if args.len() > 3 => return Err(Refusal::Syntax),
        None => None,
        Some(arg) => Some(parse_count(arg)?),
    };
    let is_nested = ctx.reply.resp() == Resp::V3 && count.is_some();
    let shape = if is_nested { Shape::Pairs } else { Shape::Flat };
    let pop = Pop { key: args.at(1), extreme, count: count.unwrap_or(1) };
    if !pop.run(ctx.keys, ctx.reply, shape)? {
        reply::begin(ctx.reply, 0, Scores::Without);
    }
    DONE
}

/// COMPAT: two texts for a count that is none; tests/wire/zset/zpop.wire.
fn parse_count(arg: &[u8]) -> Result<usize, Refusal> {
    let value = num::parse_i64(arg).ok_or(Refusal::NotPositive)?;
    usize::try_from(value).map_err(|_| Refusal::NotPositive)
}

pub fn zmpop(ctx: &mut Ctx, args: Args) -> Outcome {
    let wanted = ManyKeys::parse(args.from(1), Extreme::parse)?;
    for key in wanted.iter() {
        let pop = Pop { key, extreme: wanted.side, count: wanted.count };
        if pop.run(ctx.keys, ctx.reply, Shape::KeyAndPairs)? {
            return DONE;
        }
    }
    ctx.reply.null_array();
    DONE
}
