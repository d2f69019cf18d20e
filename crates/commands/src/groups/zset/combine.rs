//! ZUNION, ZINTER, ZDIFF, their STORE forms, and ZINTERCARD.

use super::reply::{self, Scores};
use super::{access, float, integer, limits};
use crate::call::ctx::{Ctx, DONE, Outcome};
use crate::error::Refusal;
use russet_base::text::eq_ignore_case;
use russet_base::{Args, num};
use russet_engine::event::Event;
use russet_engine::keys::Keys;
use russet_engine::types::zset::combine::{
    self, Aggregate, Input, Members, Scored, difference, intersection, union,
};
use russet_engine::types::zset::stored;
use russet_engine::value::WrongType;
use smallvec::SmallVec;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operation {
    Union,
    Intersection,
    Difference,
}

impl Operation {
    fn run<'a>(self, inputs: &[Input<'a>], aggregate: Aggregate) -> Vec<Scored<'a>> {
        match self {
            Operation::Union => union(inputs, aggregate),
            Operation::Intersection => intersection(inputs, aggregate),
            Operation::Difference => difference(inputs),
        }
    }

    fn stored(self) -> Event {
        Event::zset(match self {
            Operation::Union => "zunionstore",
            Operation::Intersection => "zinterstore",
            Operation::Difference => "zdiffstore",
        })
    }
}

/// What becomes of the result, which decides the options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    Answer,
    Store,
    Count,
}

/// The operands' keys and what is to be done with them.
struct Query<'a> {
    keys: Args<'a>,
    keys_len: usize,
    options: Args<'a>,
}

impl<'a> Query<'a> {
    /// `args` are the arguments from `numkeys` on.
    fn parse(ctx: &Ctx, args: Args<'a>) -> Result<Self, Refusal> {
        let keys_len = integer(args.at(0))?;
        if keys_len < 1 {
            let name = ctx.command.spec().full_name;
            return Err(Refusal::text(format!(
                "ERR at least 1 input key is needed for '{name}' command"
            )));
        }
        let keys_len = usize::try_from(keys_len).unwrap_or(usize::MAX);
        if keys_len > args.len() - 1 {
            return Err(Refusal::Syntax);
        }
        Ok(Query { keys: args.from(1), keys_len, options: args.from(1 + keys_len) })
    }

    fn keys(&self) -> impl Iterator<Item = &'a [u8]> + Clone {
        self.keys.iter().take(self.keys_len)
    }
}

/// WEIGHTS, AGGREGATE, WITHSCORES, LIMIT.
struct Options {
    /// Empty: all are 1.
    weights: SmallVec<[f64; 8]>,
    aggregate: Aggregate,
    scores: Scores,
    limit: usize,
}

impl Options {
    fn parse(query: &Query, operation: Operation, purpose: Use) -> Result<Self, Refusal> {
        let mut options = Options {
            weights: SmallVec::new(),
            aggregate: Aggregate::Sum,
            scores: Scores::Without,
            limit: 0,
        };
        let given = query.options;
        let has_scores = operation != Operation::Difference && purpose != Use::Count;
        let mut at = 0;
        while let Some(arg) = given.get(at) {
            let left = given.len() - at;
            if has_scores && left > query.keys_len && eq_ignore_case(arg, b"weights") {
                let weights = given.from(at + 1).iter().take(query.keys_len);
                let refusal = || Refusal::text("ERR weight value is not a float");
                options.weights =
                    weights.map(|arg| float(arg, refusal())).collect::<Result<_, _>>()?;
                at += query.keys_len;
            } else if has_scores && left >= 2 && eq_ignore_case(arg, b"aggregate") {
                options.aggregate = aggregate(given.at(at + 1))?;
                at += 1;
            } else if purpose == Use::Answer && eq_ignore_case(arg, b"withscores") {
                options.scores = Scores::With;
            } else if purpose == Use::Count && left >= 2 && eq_ignore_case(arg, b"limit") {
                options.limit = limit(given.at(at + 1))?;
                at += 1;
            } else {
                return Err(Refusal::Syntax);
            }
            at += 1;
        }
        Ok(options)
    }
}

fn aggregate(arg: &[u8]) -> Result<Aggregate, Refusal> {
    let names: [(&[u8], Aggregate); 4] = [
        (b"sum", Aggregate::Sum),
        (b"min", Aggregate::Min),
        (b"max", Aggregate::Max),
        (b"count", Aggregate::Count),
    ];
    let found = names.iter().find(|(name, _)| eq_ignore_case(arg, name));
    found.map(|(_, aggregate)| *aggregate).ok_or(Refusal::Syntax)
}

fn limit(arg: &[u8]) -> Result<usize, Refusal> {
    let value = num::parse_i64(arg).and_then(|value| usize::try_from(value).ok());
    value.ok_or_else(|| Refusal::text("ERR LIMIT can't be negative"))
}

/// Runs `action` on the operands.
/// COMPAT: they are looked up before the options are read, so that a wrong type is refused before a
/// wrong option; tests/wire/zset/zunion.wire.
fn with_inputs<R>(
    keys: &mut Keys,
    query: &Query,
    parse: impl FnOnce() -> Result<Options, Refusal>,
    action: impl FnOnce(&[Input<'_>], &Options) -> R,
) -> Result<R, Refusal> {
    let entries = keys.read_all(query.keys());
    let members = entries.iter().map(|entry| match entry {
        None => Ok(Members::None),
        Some(entry) => stored::members(entry),
    });
    let members = members.collect::<Result<SmallVec<[Members<'_>; 8]>, WrongType>>()?;
    let options = parse()?;
    let weight = |at: usize| options.weights.get(at).copied().unwrap_or(1.0);
    let mut inputs = SmallVec::<[Input<'_>; 8]>::new();
    for (at, members) in members.into_iter().enumerate() {
        inputs.push(Input { members, weight: weight(at) });
    }
    Ok(action(&inputs, &options))
}

fn answer(ctx: &mut Ctx, args: Args, operation: Operation) -> Outcome {
    let query = Query::parse(ctx, args.from(1))?;
    let parse = || Options::parse(&query, operation, Use::Answer);
    let Ctx { keys, reply, .. } = ctx;
    with_inputs(keys, &query, parse, |inputs, options| {
        let found = operation.run(inputs, options.aggregate);
        reply::begin(*reply, found.len(), options.scores);
        found.iter().for_each(|scored| reply::pair(*reply, scored.pair, options.scores));
    })?;
    DONE
}

fn store(ctx: &mut Ctx, args: Args, operation: Operation) -> Outcome {
    let query = Query::parse(ctx, args.from(2))?;
    let limits = limits(ctx);
    let parse = || Options::parse(&query, operation, Use::Store);
    let (built, len, aggregate) = with_inputs(ctx.keys, &query, parse, |inputs, options| {
        let found = operation.run(inputs, options.aggregate);
        (access::build(&found, limits), found.len(), options.aggregate)
    })?;
    let dirty = ctx.keys.effects.dirty;
    access::store(ctx.keys, args.at(1), built, operation.stored());
    // Servers that don't know it would pass over the call without a word.
    if aggregate == Aggregate::Count && ctx.keys.effects.dirty != dirty {
        access::record_all(ctx.keys, args.at(1));
    }
    ctx.reply.int(len as i64);
    DONE
}

pub fn zunion(ctx: &mut Ctx, args: Args) -> Outcome {
    answer(ctx, args, Operation::Union)
}

pub fn zinter(ctx: &mut Ctx, args: Args) -> Outcome {
    answer(ctx, args, Operation::Intersection)
}

pub fn zdiff(ctx: &mut Ctx, args: Args) -> Outcome {
    answer(ctx, args, Operation::Difference)
}

pub fn zunionstore(ctx: &mut Ctx, args: Args) -> Outcome {
    store(ctx, args, Operation::Union)
}

pub fn zinterstore(ctx: &mut Ctx, args: Args) -> Outcome {
    store(ctx, args, Operation::Intersection)
}

pub fn zdiffstore(ctx: &mut Ctx, args: Args) -> Outcome {
    store(ctx, args, Operation::Difference)
}

pub fn zintercard(ctx: &mut Ctx, args: Args) -> Outcome {
    let query = Query::parse(ctx, args.from(1))?;
    let parse = || Options::parse(&query, Operation::Intersection, Use::Count);
    let len = with_inputs(ctx.keys, &query, parse, |inputs, options| {
        let limit = if options.limit == 0 { usize::MAX } else { options.limit };
        combine::intersection_len(inputs, limit)
    })?;
    ctx.reply.int(len as i64);
    DONE
}
