//! Moving elements from list to list: LMOVE, RPOPLPUSH, LMOVEM.

use super::access::{self, EndOf, Shrunk};
use super::{end, limits, reply_element};
use crate::call::ctx::{Ctx, DONE, Outcome};
use crate::error::Refusal;
use crate::groups::many_keys::positive;
use russet_base::Args;
use russet_base::text::eq_ignore_case;
use russet_engine::keys::Keys;
use russet_engine::types::blob::Blob;
use russet_engine::types::element::IntText;
use russet_engine::types::list::{Element, End, ListLimits, ListMut, Taken, stored};
use russet_engine::value::WrongType;
use russet_protocol::Sink;

/// How many elements are moved, in which order, and how that is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// One, answered with itself: LMOVE.
    One,
    /// Several, answered with an array: LMOVEM.
    Many { count: usize, is_exact: bool, order: Order },
}

/// How several elements come to lie at their destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// OBO: as if each was moved by a command of its own.
    OneByOne,
    /// BULK: as they lay at the source.
    Kept,
}

impl Amount {
    /// LMOVEM's arguments behind the two ends.
    pub fn parse(args: Args) -> Result<Self, Refusal> {
        if args.is_empty() {
            return Ok(Amount::Many { count: 1, is_exact: false, order: Order::OneByOne });
        }
        if args.len() != 3 {
            return Err(Refusal::Syntax);
        }
        let is_exact = eq_ignore_case(args.at(0), b"exactly");
        if !is_exact && !eq_ignore_case(args.at(0), b"count") {
            return Err(Refusal::Syntax);
        }
        let order = if eq_ignore_case(args.at(2), b"obo") {
            Order::OneByOne
        } else if eq_ignore_case(args.at(2), b"bulk") {
            Order::Kept
        } else {
            return Err(Refusal::Syntax);
        };
        let count = positive(args.at(1), "ERR count should be greater than 0")?;
        Ok(Amount::Many { count, is_exact, order })
    }

    /// How long a source must be to be moved from.
    pub fn needs(self) -> usize {
        match self {
            Amount::Many { count, is_exact: true, .. } => count,
            _ => 1,
        }
    }

    fn count(self) -> usize {
        match self {
            Amount::One => 1,
            Amount::Many { count, .. } => count,
        }
    }

    /// The answer when the source is too short.
    pub fn reply_none(self, reply: &mut dyn Sink) {
        match self {
            Amount::One => reply.null(),
            Amount::Many { .. } => reply.null_array(),
        }
    }
}

/// From where to where.
#[derive(Clone, Copy, Debug)]
pub struct Route<'k> {
    pub from: EndOf<'k>,
    pub to: EndOf<'k>,
}

impl<'k> Route<'k> {
    /// `source destination wherefrom whereto`, behind the command's name.
    pub fn parse(args: Args<'k>) -> Result<Self, Refusal> {
        let (from, to) = (end(args.at(3))?, end(args.at(4))?);
        Ok(Route::between(args, from, to))
    }

    /// RPOPLPUSH's way.
    pub fn right_to_left(args: Args<'k>) -> Self {
        Route::between(args, End::Back, End::Front)
    }

    fn between(args: Args<'k>, from: End, to: End) -> Self {
        Route { from: EndOf { key: args.at(1), end: from }, to: EndOf { key: args.at(2), end: to } }
    }
}

pub fn lmove(ctx: &mut Ctx, args: Args) -> Outcome {
    run(ctx, Route::parse(args)?, Amount::One)
}

pub fn rpoplpush(ctx: &mut Ctx, args: Args) -> Outcome {
    run(ctx, Route::right_to_left(args), Amount::One)
}

pub fn lmovem(ctx: &mut Ctx, args: Args) -> Outcome {
    let route = Route::parse(args)?;
    run(ctx, route, Amount::parse(args.from(5))?)
}

fn run(ctx: &mut Ctx, route: Route, amount: Amount) -> Outcome {
    let limits = limits(ctx);
    if !carry(ctx.keys, ctx.reply, route, amount, limits)? {
        amount.reply_none(ctx.reply);
    }
    DONE
}

/// Moves and answers. False, and no answer, if the source is too short.
pub fn carry(
    keys: &mut Keys,
    reply: &mut dyn Sink,
    route: Route,
    amount: Amount,
    limits: ListLimits,
) -> Result<bool, WrongType> {
    let Route { from, to } = route;
    let available = access::len(keys, from.key)?;
    if available < amount.needs() {
        return Ok(false);
    }
    access::len(keys, to.key)?;
    let count = available.min(amount.count());
    if from.key == to.key {
        carry_within(keys, reply, route, (amount, count))?;
    } else {
        carry_over(keys, reply, route, (amount, count), limits)?;
    }
    Ok(true)
}

fn carry_over(
    keys: &mut Keys,
    reply: &mut dyn Sink,
    route: Route,
    what: (Amount, usize),
    limits: ListLimits,
) -> Result<(), WrongType> {
    let (Route { from, to }, (amount, count)) = (route, what);
    let mut taken = Taken::default();
    let shrunk = access::shrink_quietly(keys, from.key, limits, |list| {
        taken = list.take(from.end, count);
        count
    })?;
    let growth = taken.extent();
    if is_turned(route, amount) {
        access::push_quietly(keys, to, taken.iter().rev(), growth, limits)?;
    } else {
        access::push_quietly(keys, to, taken.iter(), growth, limits)?;
    }
    // A move has an event at both its ends, but counts once.
    keys.wrote_too(to.key, to.pushed());
    record_move(keys, route, amount, &taken);
    access::notify_shrunk(keys, from.key, from.popped(), shrunk.unwrap_or(Shrunk::NOTHING));
    answer(reply, route, amount, &taken);
    Ok(())
}

/// A move inside one list. It is never empty in between, so its key stays.
fn carry_within(
    keys: &mut Keys,
    reply: &mut dyn Sink,
    route: Route,
    what: (Amount, usize),
) -> Result<(), WrongType> {
    let (Route { from, to }, (amount, count)) = (route, what);
    let Some(mut entry) = keys.write(from.key) else {
        return Ok(());
    };
    let taken = stored::edit(&mut entry, |list| {
        let taken = list.take(from.end, count);
        put_back(list, to.end, &taken, is_turned(route, amount));
        taken
    })?;
    // COMPAT: LMOVE notifies of the push first, LMOVEM within one list the pop; test
    // `moves_inside_one_list_are_notified`.
    let (first, second) = match amount {
        Amount::One => (to.pushed(), from.popped()),
        Amount::Many { .. } => (from.popped(), to.pushed()),
    };
    keys.wrote_many(from.key, first, count as u64);
    keys.also(from.key, second);
    record_move(keys, route, amount, &taken);
    answer(reply, route, amount, &taken);
    Ok(())
}

/// Records a move: one element by the command that every server has, several as a pop and a push.
fn record_move(keys: &mut Keys, route: Route, amount: Amount, taken: &Taken) {
    if !keys.is_recording() {
        return;
    }
    let Route { from, to } = route;
    // Within one list a pop of all would end the key, and its deadline with it.
    let is_within = from.key == to.key;
    if is_within && is_turned(route, amount) {
        return;
    }
    if amount == Amount::One || is_within {
        let record: [&[u8]; 5] = [b"LMOVE", from.key, to.key, from.side(), to.side()];
        return taken.iter().for_each(|_| keys.record(record));
    }
    let count = taken.len() as i64;
    keys.record([from.pop_name(), from.key, IntText::new(count).as_bytes()]);
    let mut elements: Vec<Vec<u8>> =
        taken.iter().map(|element| element.with_bytes(<[u8]>::to_vec)).collect();
    if is_turned(route, amount) {
        elements.reverse();
    }
    keys.record_list(&[to.push_name(), to.key], elements);
}

fn put_back<B: Blob>(list: &mut ListMut<'_, B>, end: End, taken: &Taken, is_turned: bool) {
    if is_turned {
        list.push_elements(end, taken.iter().rev());
    } else {
        list.push_elements(end, taken.iter());
    }
}

/// Whether what was popped must be pushed from the last to the first, to lie as it lay before. So
/// must elements that go back one by one to the end that they came from: each such move changes
/// nothing.
fn is_turned(route: Route, amount: Amount) -> bool {
    let is_kept = matches!(amount, Amount::Many { order: Order::Kept, .. });
    let is_within = amount != Amount::One && route.from.key == route.to.key;
    (is_kept || is_within) && route.from.end == route.to.end
}

/// Answers with what was moved, in the order of the destination.
fn answer(reply: &mut dyn Sink, route: Route, amount: Amount, taken: &Taken) {
    if amount != Amount::One {
        reply.array(taken.len());
    }
    let mut each = |element: Element<'_>| reply_element(reply, element);
    // The pushes ran from the first popped to the last unless turned, and pushes at the front leave
    // the last one foremost.
    if is_turned(route, amount) != (route.to.end == End::Front) {
        taken.iter().rev().for_each(&mut each);
    } else {
        taken.iter().for_each(&mut each);
    }
}
