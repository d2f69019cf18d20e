//! Several sets at once: SINTER, SUNION, SDIFF, their STORE forms and their counts.

use super::{reply_members, rules};
use crate::call::ctx::{Ctx, DONE, Outcome};
use crate::error::Refusal;
use russet_base::text::eq_ignore_case;
use russet_base::{Args, num};
use russet_engine::event::Event;
use russet_engine::keys::Keys;
use russet_engine::types::set::combine::{Combination, Operation};
use russet_engine::types::set::stored;
use russet_engine::value::WrongType;
use smallvec::SmallVec;
use std::ops::ControlFlow;

pub fn sinter(ctx: &mut Ctx, args: Args) -> Outcome {
    show(ctx, args, Operation::Inter)
}

pub fn sunion(ctx: &mut Ctx, args: Args) -> Outcome {
    show(ctx, args, Operation::Union)
}

pub fn sdiff(ctx: &mut Ctx, args: Args) -> Outcome {
    show(ctx, args, Operation::Diff)
}

pub fn sinterstore(ctx: &mut Ctx, args: Args) -> Outcome {
    store(ctx, args, Operation::Inter)
}

pub fn sunionstore(ctx: &mut Ctx, args: Args) -> Outcome {
    store(ctx, args, Operation::Union)
}

pub fn sdiffstore(ctx: &mut Ctx, args: Args) -> Outcome {
    store(ctx, args, Operation::Diff)
}

pub fn sintercard(ctx: &mut Ctx, args: Args) -> Outcome {
    count(ctx, args, Operation::Inter)
}

pub fn sunioncard(ctx: &mut Ctx, args: Args) -> Outcome {
    count(ctx, args, Operation::Union)
}

pub fn sdiffcard(ctx: &mut Ctx, args: Args) -> Outcome {
    count(ctx, args, Operation::Diff)
}

/// Lets `look` see the sets under some keys together.
fn combine<'w, R>(
    keys: &mut Keys,
    names: impl Iterator<Item = &'w [u8]> + Clone,
    operation: Operation,
    look: impl FnOnce(&Combination<'_>) -> R,
) -> Result<R, WrongType> {
    let entries = keys.read_all(names);
    let sets = entries.iter().map(|entry| entry.as_ref().map(stored::set).transpose());
    let sets = sets.collect::<Result<SmallVec<[_; 8]>, _>>()?;
    Ok(look(&Combination::new(operation, sets.iter().copied())))
}

fn show(ctx: &mut Ctx, args: Args, operation: Operation) -> Outcome {
    let rules = rules(ctx);
    let reply = &mut *ctx.reply;
    combine(ctx.keys, args.from(1).iter(), operation, |sets| {
        let mark = reply.begin_set();
        let count = reply_members(reply, sets.len_max(), |visit| {
            let _never_broken_off = sets.try_for_each(&rules, &mut |member| {
                visit(member);
                ControlFlow::Continue(())
            });
        });
        reply.end_set(mark, count);
    })?;
    DONE
}

fn store(ctx: &mut Ctx, args: Args, operation: Operation) -> Outcome {
    let rules = rules(ctx);
    let destination = args.at(1);
    let result = combine(ctx.keys, args.from(2).iter(), operation, |sets| sets.build(&rules))?;
    let len = result.len();
    if len > 0 {
        stored::put(result, |value| ctx.keys.put(destination, value, None));
        ctx.keys.wrote(
            destination,
            Event::set(match operation {
                Operation::Inter => "sinterstore",
                Operation::Union => "sunionstore",
                Operation::Diff => "sdiffstore",
            }),
        );
    } else if ctx.keys.remove(destination) {
        ctx.keys.wrote(destination, Event::DEL);
    }
    ctx.reply.int(len as i64);
    DONE
}

fn natural(arg: &[u8]) -> Option<usize> {
    num::parse_i64(arg).and_then(|value| usize::try_from(value).ok())
}

fn count(ctx: &mut Ctx, args: Args, operation: Operation) -> Outcome {
    let keys_len = natural(args.at(1)).filter(|count| *count > 0);
    let keys_len = keys_len.ok_or_else(|| Refusal::text("ERR numkeys should be greater than 0"))?;
    if keys_len > args.len() - 2 {
        return Err(Refusal::text("ERR Number of keys can't be greater than number of args"));
    }
    let limit = parse_limit(args.from(2 + keys_len), operation)?;
    let rules = rules(ctx);
    let names = args.from(2).iter().take(keys_len);
    let count = combine(ctx.keys, names, operation, |sets| sets.count(&rules, limit))?;
    ctx.reply.int(count as i64);
    DONE
}

/// The arguments behind the keys: where counting stops.
fn parse_limit(args: Args, operation: Operation) -> Result<usize, Refusal> {
    let mut limit = 0;
    let mut args = args.iter();
    while let Some(option) = args.next() {
        // DIFFERS: Redis estimates with a HyperLogLog; to count is as fast here, and exact.
        if operation == Operation::Union && eq_ignore_case(option, b"approx") {
            continue;
        }
        let (true, Some(arg)) = (eq_ignore_case(option, b"limit"), args.next()) else {
            return Err(Refusal::Syntax);
        };
        limit = natural(arg).ok_or_else(|| Refusal::text("ERR LIMIT can't be negative"))?;
    }
    Ok(if limit == 0 { usize::MAX } else { limit })
}
