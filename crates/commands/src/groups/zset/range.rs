//! ZRANGE and all that it replaces, and ZRANGESTORE.

use super::bounds::{Bounded, Ends};
use super::reply::{self, Scores};
use super::{access, integer, limits};
use crate::call::ctx::{Ctx, DONE, Outcome};
use crate::error::Refusal;
use russet_base::Args;
use russet_base::text::eq_ignore_case;
use russet_engine::event::Event;
use russet_engine::types::zset::combine::Scored;
use russet_engine::types::zset::{Direction, ZsetRef};
use std::ops::Range;

/// What the ends of a range are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    Rank,
    Score,
    Lex,
}

/// What a command's name says already; the rest is up to its options.
#[derive(Clone, Copy)]
struct Form {
    by: Option<By>,
    direction: Option<Direction>,
    is_store: bool,
}

impl Form {
    const FREE: Form = Form { by: None, direction: None, is_store: false };

    const fn fixed(by: By, direction: Direction) -> Form {
        Form { by: Some(by), direction: Some(direction), is_store: false }
    }
}

/// LIMIT's two numbers.
#[derive(Clone, Copy)]
struct Limit {
    offset: i64,
    count: i64,
}

/// A range as it was asked for.
struct Query<'a> {
    bounded: Bounded<'a>,
    direction: Direction,
    limit: Limit,
    scores: Scores,
}

impl<'a> Query<'a> {
    /// `args` are the arguments from the key on.
    fn parse(args: Args<'a>, form: Form) -> Result<Self, Refusal> {
        let Form { mut by, mut direction, is_store } = form;
        let mut limit = Limit { offset: 0, count: -1 };
        let mut scores = Scores::Without;
        let mut at = 3;
        while let Some(arg) = args.get(at) {
            if !is_store && eq_ignore_case(arg, b"withscores") {
                scores = Scores::With;
            } else if eq_ignore_case(arg, b"limit") && at + 2 < args.len() {
                let (offset, count) = (integer(args.at(at + 1))?, integer(args.at(at + 2))?);
                limit = Limit { offset, count };
                at += 2;
            } else if direction.is_none() && eq_ignore_case(arg, b"rev") {
                direction = Some(Direction::Reverse);
            } else if by.is_none() && eq_ignore_case(arg, b"bylex") {
                by = Some(By::Lex);
            } else if by.is_none() && eq_ignore_case(arg, b"byscore") {
                by = Some(By::Score);
            } else {
                return Err(Refusal::Syntax);
            }
            at += 1;
        }
        let (by, direction) = (by.unwrap_or(By::Rank), direction.unwrap_or(Direction::Forward));
        if limit.count != -1 && by == By::Rank {
            return Err(Refusal::text(
                "ERR syntax error, LIMIT is only supported in combination with either BYSCORE or \
                 BYLEX",
            ));
        }
        if scores == Scores::With && by == By::Lex {
            return Err(Refusal::text(
                "ERR syntax error, WITHSCORES not supported in combination with BYLEX",
            ));
        }
        let bounded = bounded(args, by, direction)?;
        Ok(Query { bounded, direction, limit, scores })
    }

    /// The ranks asked for, counted from the lowest score.
    fn within(&self, zset: ZsetRef<'_>) -> Range<usize> {
        let ranks = self.bounded.within(zset, self.direction);
        if matches!(self.bounded, Bounded::Ranks(_)) {
            return ranks;
        }
        self.limit.apply(zset, ranks, self.direction)
    }
}

impl Limit {
    /// COMPAT: a negative count is no limit. A negative offset leaves nothing of a listpack; a
    /// skiplist is entered that far from the other end of the range. tests/wire/zset/zrange.wire.
    fn apply(self, zset: ZsetRef<'_>, ranks: Range<usize>, direction: Direction) -> Range<usize> {
        let len = ranks.len();
        let offset = match usize::try_from(self.offset) {
            Ok(offset) => offset.min(len),
            Err(_) if zset.is_listpack() => len,
            Err(_) => {
                let back = usize::try_from(self.offset.unsigned_abs()).unwrap_or(usize::MAX);
                len.checked_sub(back).unwrap_or(len)
            }
        };
        let count = usize::try_from(self.count).unwrap_or(usize::MAX).min(len - offset);
        match direction {
            Direction::Forward => ranks.start + offset..ranks.start + offset + count,
            Direction::Reverse => ranks.end - offset - count..ranks.end - offset,
        }
    }
}

fn bounded(args: Args<'_>, by: By, direction: Direction) -> Result<Bounded<'_>, Refusal> {
    let (first, second) = (args.at(1), args.at(2));
    let is_swapped = direction == Direction::Reverse && by != By::Rank;
    let (min, max) = if is_swapped { (second, first) } else { (first, second) };
    let ends = Ends { min, max };
    match by {
        By::Rank => ends.ranks(),
        By::Score => Ok(Bounded::Scores(ends.score_range()?)),
        By::Lex => Ok(Bounded::Members(ends.lex_range()?)),
    }
}

pub fn zrange(ctx: &mut Ctx, args: Args) -> Outcome {
    read(ctx, args, Form::FREE)
}

pub fn zrevrange(ctx: &mut Ctx, args: Args) -> Outcome {
    read(ctx, args, Form::fixed(By::Rank, Direction::Reverse))
}

pub fn zrangebyscore(ctx: &mut Ctx, args: Args) -> Outcome {
    read(ctx, args, Form::fixed(By::Score, Direction::Forward))
}

pub fn zrevrangebyscore(ctx: &mut Ctx, args: Args) -> Outcome {
    read(ctx, args, Form::fixed(By::Score, Direction::Reverse))
}

pub fn zrangebylex(ctx: &mut Ctx, args: Args) -> Outcome {
    read(ctx, args, Form::fixed(By::Lex, Direction::Forward))
}

pub fn zrevrangebylex(ctx: &mut Ctx, args: Args) -> Outcome {
    read(ctx, args, Form::fixed(By::Lex, Direction::Reverse))
}

fn read(ctx: &mut Ctx, args: Args, form: Form) -> Outcome {
    let query = Query::parse(args.from(1), form)?;
    match access::read(ctx.keys, args.at(1))? {
        None => ctx.reply.array(0),
        Some(zset) => {
            let ranks = query.within(zset);
            reply::range(ctx.reply, zset, (ranks, query.direction), query.scores);
        }
    }
    DONE
}

pub fn zrangestore(ctx: &mut Ctx, args: Args) -> Outcome {
    let query = Query::parse(args.from(2), Form { is_store: true, ..Form::FREE })?;
    let limits = limits(ctx);
    let mut pairs = Vec::new();
    if let Some(zset) = access::read(ctx.keys, args.at(2))? {
        let ranks = query.within(zset);
        pairs.reserve(ranks.len());
        zset.for_each(ranks, Direction::Forward, |pair| pairs.push(Scored::new(pair)));
    }
    let built = access::build(&pairs, limits);
    let len = pairs.len();
    drop(pairs);
    access::store(ctx.keys, args.at(1), built, Event::zset("zrangestore"));
    ctx.reply.int(len as i64);
    DONE
}
