//! The commands that wait for elements: BLPOP, BRPOP, BLMPOP, BLMOVE, BRPOPLPUSH, BLMOVEM.

use super::access::{self, EndOf};
use super::ends::pop_with_key;
use super::moves::{Amount, Route, carry};
use super::{end, limits};
use crate::call::blocking::{BlockRequest, BlockedCall, BlockedPop, deadline, pop_or_wait};
use crate::call::ctx::{Ctx, DONE, Flow, Outcome};
use crate::error::Refusal;
use crate::groups::many_keys::ManyKeys;
use russet_base::{Args, UnixMillis};
use russet_engine::keys::Keys;
use russet_engine::types::element::IntText;
use russet_engine::types::list::{End, ListLimits};
use russet_engine::value::{Type, WrongType};
use russet_protocol::Sink;

/// A pop that waits.
struct WaitingPop {
    end: End,
    /// None for one element without an array around it.
    count: Option<usize>,
    limits: ListLimits,
}

impl BlockedPop for WaitingPop {
    const WANTS: Type = Type::List;

    fn pop(&self, keys: &mut Keys, reply: &mut dyn Sink, key: &[u8]) -> Result<bool, WrongType> {
        let from = EndOf { key, end: self.end };
        let is_popped = pop_with_key(keys, reply, from, self.count, self.limits)?;
        if is_popped && keys.is_recording() {
            let count = self.count.map(|count| IntText::new(count as i64));
            let count = count.as_ref().map(IntText::as_bytes);
            keys.record([from.pop_name(), key].into_iter().chain(count));
        }
        Ok(is_popped)
    }
}

pub fn blpop(ctx: &mut Ctx, args: Args) -> Outcome {
    pop_one(ctx, args, End::Front)
}

pub fn brpop(ctx: &mut Ctx, args: Args) -> Outcome {
    pop_one(ctx, args, End::Back)
}

fn pop_one(ctx: &mut Ctx, args: Args, end: End) -> Outcome {
    let timeout = args.at(args.len() - 1);
    let deadline = deadline(timeout, ctx.keys.now)?;
    let keys = args.from(1).iter().take(args.len() - 2);
    let call = WaitingPop { end, count: None, limits: limits(ctx) };
    pop_or_wait(ctx, keys, deadline, call)
}

pub fn blmpop(ctx: &mut Ctx, args: Args) -> Outcome {
    let wanted = ManyKeys::parse(args.from(2), end)?;
    let deadline = deadline(args.at(1), ctx.keys.now)?;
    let call = WaitingPop { end: wanted.side, count: Some(wanted.count), limits: limits(ctx) };
    pop_or_wait(ctx, wanted.iter(), deadline, call)
}

/// A move that waits.
struct WaitingMove {
    from: End,
    destination: Box<[u8]>,
    to: End,
    amount: Amount,
    limits: ListLimits,
}

impl WaitingMove {
    fn route<'k>(&'k self, source: &'k [u8]) -> Route<'k> {
        Route {
            from: EndOf { key: source, end: self.from },
            to: EndOf { key: &self.destination, end: self.to },
        }
    }
}

impl BlockedCall for WaitingMove {
    fn is_satisfied(&self, keys: &mut Keys, key: &[u8]) -> bool {
        access::len(keys, key).is_ok_and(|len| len >= self.amount.needs())
    }

    fn serve(&self, keys: &mut Keys, reply: &mut dyn Sink, key: &[u8]) -> Result<(), Refusal> {
        carry(keys, reply, self.route(key), self.amount, self.limits)?;
        Ok(())
    }

    fn also_needs(&self) -> Option<&[u8]> {
        Some(&self.destination)
    }

    fn timed_out(&self, reply: &mut dyn Sink) {
        // COMPAT: RESP2's null array even where the answer would be one element; test
        // `a_wait_ends_with_its_time`.
        reply.null_array();
    }
}

pub fn blmove(ctx: &mut Ctx, args: Args) -> Outcome {
    let route = Route::parse(args)?;
    let deadline = deadline(args.at(5), ctx.keys.now)?;
    move_or_wait(ctx, route, Amount::One, deadline)
}

pub fn brpoplpush(ctx: &mut Ctx, args: Args) -> Outcome {
    let deadline = deadline(args.at(3), ctx.keys.now)?;
    move_or_wait(ctx, Route::right_to_left(args), Amount::One, deadline)
}

pub fn blmovem(ctx: &mut Ctx, args: Args) -> Outcome {
    let route = Route::parse(args)?;
    let deadline = deadline(args.at(5), ctx.keys.now)?;
    let amount = Amount::parse(args.from(6))?;
    move_or_wait(ctx, route, amount, deadline)
}

fn move_or_wait(
    ctx: &mut Ctx,
    route: Route,
    amount: Amount,
    deadline: Option<UnixMillis>,
) -> Outcome {
    let limits = limits(ctx);
    if carry(ctx.keys, ctx.reply, route, amount, limits)? {
        return DONE;
    }
    if !ctx.may_block {
        amount.reply_none(ctx.reply);
        return DONE;
    }
    let call = WaitingMove {
        from: route.from.end,
        destination: route.to.key.into(),
        to: route.to.end,
        amount,
        limits,
    };
    let keys = vec![route.from.key.into()];
    let request = BlockRequest { keys, wants: Type::List, deadline, call: Box::new(call) };
    Ok(Flow::Block(Box::new(request)))
}
