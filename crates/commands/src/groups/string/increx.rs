//! INCREX: a counter with bounds and a time to live in one step.

use super::expiry::{Besides, Deadline, ExpiryOptions};
use super::record_set;
use crate::call::ctx::{Ctx, DONE, Outcome};
use crate::error::Refusal;
use russet_base::longdouble::{LongDouble, add};
use russet_base::{Args, OwnedArgs, num};
use russet_engine::event::Event;
use russet_engine::store::raw::table::NewValue;
use russet_engine::types::element::Element;
use russet_engine::types::string::{self, Text};
use russet_protocol::{Resp, Sink};
use std::borrow::Cow;

/// The arguments of a call, their numbers unread.
struct Options<'a> {
    by: Option<&'a [u8]>,
    is_float: bool,
    lower: Option<&'a [u8]>,
    upper: Option<&'a [u8]>,
    saturates: bool,
    /// ENX: an expiry that is there stays.
    only_without_expiry: bool,
    expiry: ExpiryOptions<'a>,
}

impl<'a> Options<'a> {
    fn parse(args: Args<'a>) -> Result<Self, Refusal> {
        let mut options = Options {
            by: None,
            is_float: false,
            lower: None,
            upper: None,
            saturates: false,
            only_without_expiry: false,
            expiry: ExpiryOptions::new(Besides::Persist),
        };
        let mut at = 2;
        while at < args.len() {
            let taken = options.take(args.at(at), args.get(at + 1));
            at += taken.ok_or(Refusal::Syntax)?;
        }
        if options.only_without_expiry && !options.expiry.is_time() {
            return Err(match options.expiry.is_empty() {
                true => Refusal::text("ERR ENX flag requires an expiration"),
                false => Refusal::Syntax,
            });
        }
        Ok(options)
    }

    /// Takes an option; how many arguments it has, `None` if it is none or comes again.
    fn take(&mut self, arg: &[u8], next: Option<&'a [u8]>) -> Option<usize> {
        let is = |name: &str| arg.eq_ignore_ascii_case(name.as_bytes());
        let once = |slot: &mut Option<&'a [u8]>| match slot {
            Some(_) => None,
            None => {
                *slot = Some(next?);
                Some(2)
            }
        };
        let mark = |flag: &mut bool| (!std::mem::replace(flag, true)).then_some(1);
        match () {
            () if is("BYINT") => once(&mut self.by),
            () if is("BYFLOAT") => {
                self.is_float = true;
                once(&mut self.by)
            }
            () if is("LBOUND") => once(&mut self.lower),
            () if is("UBOUND") => once(&mut self.upper),
            () if is("SATURATE") => mark(&mut self.saturates),
            () if is("ENX") => mark(&mut self.only_without_expiry),
            () if self.expiry.is_empty() => self.expiry.take(arg, next),
            () => None,
        }
    }
}

pub fn increx(ctx: &mut Ctx, args: Args) -> Outcome {
    let options = Options::parse(args)?;
    match options.is_float {
        true => by_float(ctx, args.at(1), &options),
        false => by_int(ctx, args.at(1), &options),
    }
}

/// A number of the call, or what it is without one.
fn number<T>(
    arg: Option<&[u8]>,
    default: T,
    parse: impl FnOnce(&[u8]) -> Option<T>,
    refusal: &'static str,
) -> Result<T, Refusal> {
    arg.map_or(Ok(default), |arg| parse(arg).ok_or(Refusal::text(refusal)))
}

const CROSSED: Refusal = Refusal::Text(Cow::Borrowed("ERR LBOUND can't be greater than UBOUND"));

fn by_int(ctx: &mut Ctx, key: &[u8], options: &Options) -> Outcome {
    let int = |arg, default, refusal| number(arg, default, num::parse_i64, refusal);
    let by = int(options.by, 1, "ERR Increment is not an integer or out of range")?;
    let lower = int(options.lower, i64::MIN, "ERR LBOUND is not an integer or out of range")?;
    let upper = int(options.upper, i64::MAX, "ERR UBOUND is not an integer or out of range")?;
    if lower > upper {
        return Err(CROSSED);
    }
    let deadline = options.expiry.deadline(ctx.keys.real_now(), ctx.command.spec().full_name)?;
    let found = Found::of(ctx, key, |text| text.int().ok_or(Refusal::NotInteger))?;
    let old = found.value.unwrap_or(0);
    let wanted = i128::from(old) + i128::from(by);
    let within = wanted.clamp(i128::from(lower), i128::from(upper));
    let is_declined = within != wanted && !options.saturates;
    let value = if is_declined { old } else { within as i64 };
    let applied =
        value.checked_sub(old).ok_or(Refusal::text("ERR applied increment would overflow"))?;
    if !is_declined {
        let deadline = found.deadline(deadline, options);
        store(ctx, key, Element::Int(value), (Event::string("incrby"), deadline));
    }
    ctx.reply.array(2);
    ctx.reply.int(value);
    ctx.reply.int(applied);
    DONE
}

fn by_float(ctx: &mut Ctx, key: &[u8], options: &Options) -> Outcome {
    let float = |arg, default, refusal| number(arg, default, LongDouble::parse, refusal);
    let by = float(options.by, LongDouble::ZERO, "ERR Increment is not a valid float")?;
    if !by.is_finite() {
        return Err(Refusal::text("ERR BYFLOAT increment cannot be Infinity"));
    }
    let least = LongDouble::MAX.negated();
    let lower = float(options.lower, least, "ERR LBOUND is not a valid float")?;
    let upper = float(options.upper, LongDouble::MAX, "ERR UBOUND is not a valid float")?;
    if lower.exceeds(&upper) {
        return Err(CROSSED);
    }
    let deadline = options.expiry.deadline(ctx.keys.real_now(), ctx.command.spec().full_name)?;
    let found = Found::of(ctx, key, |text| {
        let value = text.with_bytes(LongDouble::parse).ok_or(Refusal::NotFloat)?;
        let is_finite = value.is_finite().then_some(value);
        is_finite.ok_or(Refusal::text("ERR value cannot be Infinity"))
    })?;
    let old = found.value.unwrap_or(LongDouble::ZERO);
    let wanted = add(&old, &by);
    let bound = match () {
        () if wanted.exceeds(&upper) => Some(upper),
        () if lower.exceeds(&wanted) => Some(lower),
        () => None,
    };
    let is_declined = bound.is_some() && !options.saturates;
    let value = if is_declined { old } else { bound.unwrap_or(wanted) };
    let applied = add(&value, &old.negated());
    if !applied.is_finite() {
        return Err(Refusal::text("ERR applied increment would be Infinity"));
    }
    if !is_declined {
        let mut text = Vec::new();
        value.write(&mut text);
        let deadline = found.deadline(deadline, options);
        store(ctx, key, Element::Bytes(&text), (Event::string("incrbyfloat"), deadline));
    }
    ctx.reply.array(2);
    reply_float(ctx.reply, value);
    reply_float(ctx.reply, applied);
    DONE
}

/// What the key held before.
struct Found<T> {
    value: Option<T>,
    has_expiry: bool,
}

impl<T> Found<T> {
    fn of(
        ctx: &mut Ctx,
        key: &[u8],
        parse: impl FnOnce(Text<'_>) -> Result<T, Refusal>,
    ) -> Result<Self, Refusal> {
        Ok(match ctx.keys.peek(key) {
            None => Found { value: None, has_expiry: false },
            Some(entry) => Found {
                value: Some(parse(string::text(&entry)?)?),
                has_expiry: entry.expiry().is_some(),
            },
        })
    }

    /// What to do with the expiry: with ENX, one that is there stays.
    fn deadline(&self, asked: Deadline, options: &Options) -> Deadline {
        match options.only_without_expiry && self.has_expiry {
            true => Deadline::Unsaid,
            false => asked,
        }
    }
}

/// Writes and publishes the event. A deadline in the past deletes the key instead.
fn store(ctx: &mut Ctx, key: &[u8], value: Element<'_>, (event, deadline): (Event, Deadline)) {
    if deadline.moment().is_some_and(|at| at <= ctx.keys.now) {
        if ctx.keys.remove(key) {
            ctx.keys.wrote_expired(key);
            ctx.keys.record([b"DEL", key]);
        }
        return;
    }
    let new_value = match value {
        Element::Int(value) => NewValue::Int(value),
        Element::Bytes(text) => NewValue::Bytes(text),
    };
    let mut further = deadline.moment().map(|_| Event::generic("expire"));
    match ctx.keys.write(key) {
        None => ctx.keys.put(key, new_value, deadline.moment()),
        Some(mut entry) => {
            let old = entry.expiry();
            let expiry = match deadline {
                Deadline::At(at) => Some(at.0),
                Deadline::Persist => None,
                Deadline::Unsaid | Deadline::Keep => old,
            };
            if old.is_some() && expiry.is_none() {
                further = Some(Event::generic("persist"));
            }
            entry.set(new_value);
            entry.set_expiry(expiry);
        }
    }
    ctx.keys.wrote(key, event);
    if let Some(further) = further {
        ctx.keys.also(key, further);
    }
    let lasting = if deadline == Deadline::Unsaid { Deadline::Keep } else { deadline };
    let push_value = |record: &mut OwnedArgs| value.with_bytes(|text| record.push(text));
    record_set(ctx.keys, key, push_value, lasting);
}

/// A long double: all its digits in RESP2, a double in RESP3.
fn reply_float(reply: &mut dyn Sink, value: LongDouble) {
    let mut text = Vec::new();
    value.write(&mut text);
    match (reply.resp(), num::parse_f64(&text)) {
        (Resp::V3, Some(value)) => reply.double(value),
        _ => reply.bulk(&text),
    }
}
