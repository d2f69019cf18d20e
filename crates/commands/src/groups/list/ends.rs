//! Pushing and popping at the ends: LPUSH, RPUSH, LPUSHX, RPUSHX, LPOP, RPOP, LMPOP.

use super::access::{self, EndOf};
use super::{end, limits, natural, reply_element};
use crate::call::ctx::{Ctx, DONE, Outcome};
use crate::error::Refusal;
use crate::groups::many_keys::ManyKeys;
use russet_base::Args;
use russet_engine::keys::Keys;
use russet_engine::types::list::{Element, End, Extent, ListLimits, stored};
use russet_engine::value::WrongType;
use russet_protocol::Sink;

pub fn lpush(ctx: &mut Ctx, args: Args) -> Outcome {
    push(ctx, args, End::Front)
}

pub fn rpush(ctx: &mut Ctx, args: Args) -> Outcome {
    push(ctx, args, End::Back)
}

pub fn lpushx(ctx: &mut Ctx, args: Args) -> Outcome {
    push_if_there(ctx, args, End::Front)
}

pub fn rpushx(ctx: &mut Ctx, args: Args) -> Outcome {
    push_if_there(ctx, args, End::Back)
}

#[inline]
fn push(ctx: &mut Ctx, args: Args, end: End) -> Outcome {
    if args.len() > 3 {
        return push_many(ctx, args, end);
    }
    let onto = EndOf { key: args.at(1), end };
    let len = access::push_one(ctx.keys, onto, args.at(2), limits(ctx))?;
    ctx.reply.int(len as i64);
    DONE
}

#[inline(never)]
fn push_many(ctx: &mut Ctx, args: Args, end: End) -> Outcome {
    let onto = EndOf { key: args.at(1), end };
    let texts = args.from(2);
    let growth = Extent::of(texts.iter());
    let limits = limits(ctx);
    let len = access::push(ctx.keys, onto, texts.iter().map(Element::parse), growth, limits)?;
    ctx.reply.int(len as i64);
    DONE
}

fn push_if_there(ctx: &mut Ctx, args: Args, end: End) -> Outcome {
    if ctx.keys.exists(args.at(1)) {
        return push(ctx, args, end);
    }
    ctx.reply.int(0);
    DONE
}

pub fn lpop(ctx: &mut Ctx, args: Args) -> Outcome {
    pop(ctx, args, End::Front)
}

pub fn rpop(ctx: &mut Ctx, args: Args) -> Outcome {
    pop(ctx, args, End::Back)
}

fn pop(ctx: &mut Ctx, args: Args, end: End) -> Outcome {
    let from = EndOf { key: args.at(1), end };
    match args.get(2) {
        None => pop_one(ctx, from),
        Some(_) if args.len() > 3 => Err(Refusal::Arity(ctx.command.spec().full_name)),
        Some(arg) => pop_many(ctx, from, natural(arg, Refusal::NotPositive)?),
    }
}

fn pop_one(ctx: &mut Ctx, from: EndOf) -> Outcome {
    let (limits, reply) = (limits(ctx), &mut *ctx.reply);
    let show = |element: Element<'_>| reply_element(reply, element);
    if !access::pop_one(ctx.keys, from, limits, show)? {
        ctx.reply.null();
    }
    DONE
}

fn pop_many(ctx: &mut Ctx, from: EndOf, count: usize) -> Outcome {
    // COMPAT: a count of zero is no change; tests/wire/list/pop.wire.
    if count == 0 {
        match ctx.keys.peek(from.key) {
            None => ctx.reply.null_array(),
            Some(entry) => {
                stored::list(&entry)?;
                ctx.reply.array(0);
            }
        }
        return DONE;
    }
    let (limits, reply) = (limits(ctx), &mut *ctx.reply);
    let is_there = access::pop(ctx.keys, from, count, limits, |list, count| {
        reply.array(count);
        list.pop(from.end, count, |element| reply_element(reply, element));
    })?;
    if !is_there {
        ctx.reply.null_array();
    }
    DONE
}

pub fn lmpop(ctx: &mut Ctx, args: Args) -> Outcome {
    let wanted = ManyKeys::parse(args.from(1), end)?;
    let limits = limits(ctx);
    for key in wanted.iter() {
        let from = EndOf { key, end: wanted.side };
        if pop_with_key(ctx.keys, ctx.reply, from, Some(wanted.count), limits)? {
            return DONE;
        }
    }
    ctx.reply.null_array();
    DONE
}

/// Pops from one list and answers with its key: one element, or an array of up to `count`. False,
/// and no answer, without a list.
pub fn pop_with_key(
    keys: &mut Keys,
    reply: &mut dyn Sink,
    from: EndOf,
    count: Option<usize>,
    limits: ListLimits,
) -> Result<bool, WrongType> {
    access::pop(keys, from, count.unwrap_or(1), limits, |list, popped| {
        reply.array(2);
        reply.bulk(from.key);
        if count.is_some() {
            reply.array(popped);
        }
        list.pop(from.end, popped, |element| reply_element(reply, element));
    })
}
