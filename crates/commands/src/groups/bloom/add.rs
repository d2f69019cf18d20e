//! Making filters and adding to them: BF.RESERVE, BF.ADD, BF.MADD and BF.INSERT.

use super::{DEFAULT_WISH, not_found};
use crate::call::ctx::{Ctx, DONE, Outcome};
use crate::error::Refusal;
use russet_base::text::eq_ignore_case;
use russet_base::{Args, num};
use russet_engine::event::Event;
use russet_engine::store::raw::table::NewValue;
use russet_engine::types::bloom::{self, Bloom, CAPACITY_MAX, EXPANSION_MAX, Refused, Wish};
use russet_engine::value::Object;

const RESERVED: Event = Event::generic("bloom.reserve");
const ADDED: Event = Event::generic("bloom.add");
/// Most arguments of BF.RESERVE.
const RESERVE_ARGS_MAX: usize = 7;

fn is_rate(rate: f64) -> bool {
    rate > 0.0 && rate < 1.0
}

/// Zero means a filter that must not grow.
fn expansion(value: i64) -> Option<Option<u32>> {
    match u32::try_from(value) {
        Ok(0) => Some(None),
        Ok(factor) if u64::from(factor) <= EXPANSION_MAX => Some(Some(factor)),
        _ => None,
    }
}

fn capacity(value: i64) -> Option<u64> {
    u64::try_from(value).ok().filter(|items| (1..=CAPACITY_MAX).contains(items))
}

fn reserve_wish(args: Args) -> Result<Wish, Refusal> {
    let error_rate = num::parse_f64(args.at(2)).ok_or(Refusal::text("ERR bad error rate"))?;
    if !is_rate(error_rate) {
        return Err(Refusal::text("ERR error rate must be in the range (0.000000, 1.000000)"));
    }
    let items = num::parse_i64(args.at(3)).ok_or(Refusal::text("ERR bad capacity"))?;
    let capacity = capacity(items).ok_or_else(|| {
        Refusal::text(format!("ERR capacity must be in the range [1, {CAPACITY_MAX}]"))
    })?;
    let mut wish = Wish { error_rate, capacity, ..DEFAULT_WISH };
    let (mut is_fixed, mut factor) = (false, None);
    let mut at = 4;
    while let Some(arg) = args.get(at) {
        at += 1;
        if eq_ignore_case(arg, b"nonscaling") {
            is_fixed = true;
        } else if eq_ignore_case(arg, b"expansion") {
            let arg = args.get(at).ok_or(Refusal::text("ERR no expansion"))?;
            factor = Some(num::parse_i64(arg).ok_or(Refusal::text("ERR bad expansion"))?);
            at += 1;
        } else {
            // DIFFERS: Redis looks for the arguments that it knows and lets any other pass.
            return Err(Refusal::Syntax);
        }
    }
    if let Some(factor) = factor {
        if is_fixed && factor != 0 {
            return Err(Refusal::text("Nonscaling filters cannot expand"));
        }
        wish.expansion = expansion(factor).ok_or_else(|| {
            Refusal::text(format!("ERR expansion must be in the range [0, {EXPANSION_MAX}]"))
        })?;
    }
    if is_fixed {
        wish.expansion = None;
    }
    Ok(wish)
}

fn too_large(_: Refused) -> Refusal {
    Refusal::text("ERR Insufficient memory to create filter")
}

fn put(ctx: &mut Ctx, key: &[u8], bloom: Bloom) {
    ctx.keys.put(key, NewValue::Object(Box::new(Object::Bloom(bloom))), None);
}

pub fn bf_reserve(ctx: &mut Ctx, args: Args) -> Outcome {
    if args.len() > RESERVE_ARGS_MAX {
        return Err(Refusal::Arity(ctx.command.full_name()));
    }
    let (key, wish) = (args.at(1), reserve_wish(args)?);
    if let Some(entry) = ctx.keys.peek(key) {
        bloom::stored(&entry)?;
        return Err(Refusal::text("ERR item exists"));
    }
    put(ctx, key, Bloom::new(wish).map_err(too_large)?);
    ctx.keys.wrote(key, RESERVED);
    ctx.reply.ok();
    DONE
}

/// What is to be added, and to what.
struct Insertion<'a> {
    key: &'a [u8],
    items: Args<'a>,
    /// What is made if there is no filter; none: nothing.
    wish: Option<Wish>,
    replies_array: bool,
}

pub fn bf_add(ctx: &mut Ctx, args: Args) -> Outcome {
    let (key, items) = (args.at(1), args.from(2));
    insert(ctx, Insertion { key, items, wish: Some(DEFAULT_WISH), replies_array: false })
}

pub fn bf_madd(ctx: &mut Ctx, args: Args) -> Outcome {
    let (key, items) = (args.at(1), args.from(2));
    insert(ctx, Insertion { key, items, wish: Some(DEFAULT_WISH), replies_array: true })
}

pub fn bf_insert(ctx: &mut Ctx, args: Args) -> Outcome {
    let arity = || Refusal::Arity("bf.insert");
    let (mut wish, mut creates, mut is_fixed) = (DEFAULT_WISH, true, false);
    let mut at = 2;
    loop {
        let arg = args.get(at).ok_or_else(arity)?;
        at += 1;
        if eq_ignore_case(arg, b"items") {
            break;
        } else if eq_ignore_case(arg, b"nocreate") {
            creates = false;
            continue;
        } else if eq_ignore_case(arg, b"nonscaling") {
            is_fixed = true;
            continue;
        }
        let is_option = [b"capacity".as_slice(), b"error", b"expansion"]
            .iter()
            .any(|option| eq_ignore_case(arg, option));
        if !is_option {
            return Err(Refusal::text("Unknown argument received"));
        }
        let value = args.get(at).ok_or_else(arity)?;
        at += 1;
        if eq_ignore_case(arg, b"error") {
            let rate = num::parse_f64(value).filter(|rate| is_rate(*rate));
            wish.error_rate = rate.ok_or(Refusal::text("Bad error rate"))?;
        } else if eq_ignore_case(arg, b"capacity") {
            let items = num::parse_i64(value).and_then(capacity);
            wish.capacity = items.ok_or(Refusal::text("Bad capacity"))?;
        } else {
            let factor = num::parse_i64(value).and_then(expansion);
            wish.expansion = factor.ok_or(Refusal::text("Bad expansion"))?;
        }
    }
    let items = args.from(at);
    if items.is_empty() {
        return Err(arity());
    }
    if is_fixed {
        wish.expansion = None;
    }
    let wish = creates.then_some(wish);
    insert(ctx, Insertion { key: args.at(1), items, wish, replies_array: true })
}

/// Adds the items one by one. COMPAT: those before one that finds the filter full stay, and the
/// reply ends with the error in its place.
fn insert(ctx: &mut Ctx, insertion: Insertion) -> Outcome {
    let key = insertion.key;
    let is_new = ctx.keys.peek(key).map(|entry| bloom::stored(&entry).map(|_| ())).transpose()?;
    if is_new.is_none() {
        let wish = insertion.wish.ok_or_else(not_found)?;
        put(ctx, key, Bloom::new(wish).map_err(too_large)?);
        ctx.keys.wrote(key, RESERVED);
    }
    let Some(mut entry) = ctx.keys.write(key) else {
        return Err(not_found());
    };
    let bloom = bloom::stored_mut(&mut entry)?;
    let mark = insertion.replies_array.then(|| ctx.reply.begin_array());
    let (mut replies, mut added) = (0, 0);
    for item in insertion.items.iter() {
        replies += 1;
        match bloom.add(item) {
            Ok(is_new) => {
                added += u64::from(is_new);
                ctx.reply.boolean(is_new);
            }
            Err(refused) => {
                ctx.reply.error(match refused {
                    Refused::Full => "ERR non scaling filter is full",
                    Refused::TooLarge => "ERR problem inserting into filter",
                });
                break;
            }
        }
    }
    if let Some(mark) = mark {
        ctx.reply.end_array(mark, replies);
    }
    if added > 0 {
        ctx.keys.wrote(key, ADDED);
    }
    DONE
}
