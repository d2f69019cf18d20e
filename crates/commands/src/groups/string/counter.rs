//! Counters: INCR and its relatives.

use super::expiry::Deadline;
use super::{integer, record_set};
use crate::call::ctx::{Ctx, DONE, Outcome};
use crate::error::Refusal;
use russet_base::Args;
use russet_base::longdouble::{LongDouble, add as add_long_doubles};
use russet_engine::event::Event;
use russet_engine::store::raw::table::NewValue;
use russet_engine::types::string;

pub fn incr(ctx: &mut Ctx, args: Args) -> Outcome {
    add(ctx, args.at(1), 1)
}

pub fn decr(ctx: &mut Ctx, args: Args) -> Outcome {
    add(ctx, args.at(1), -1)
}

pub fn incrby(ctx: &mut Ctx, args: Args) -> Outcome {
    add(ctx, args.at(1), integer(args.at(2))?)
}

pub fn decrby(ctx: &mut Ctx, args: Args) -> Outcome {
    let by = integer(args.at(2))?.checked_neg().ok_or(Refusal::DecrementOverflow)?;
    add(ctx, args.at(1), by)
}

fn add(ctx: &mut Ctx, key: &[u8], by: i64) -> Outcome {
    let sum = match ctx.keys.write(key) {
        Some(mut entry) => {
            let old = match entry.int() {
                Some(old) => old,
                None => string::text(&entry.as_ref())?.int().ok_or(Refusal::NotInteger)?,
            };
            let sum = old.checked_add(by).ok_or(Refusal::Overflow)?;
            entry.set_int(sum);
            sum
        }
        None => {
            ctx.keys.put(key, NewValue::Int(by), None);
            by
        }
    };
    ctx.keys.wrote(key, Event::string("incrby"));
    ctx.reply.int(sum);
    DONE
}

pub fn incrbyfloat(ctx: &mut Ctx, args: Args) -> Outcome {
    let key = args.at(1);
    let mut out = Vec::new();
    match ctx.keys.write(key) {
        Some(mut entry) => {
            let old = string::text(&entry.as_ref())?.with_bytes(LongDouble::parse);
            sum_into(&mut out, old.ok_or(Refusal::NotFloat)?, args.at(2))?;
            entry.set(NewValue::Bytes(&out));
        }
        None => {
            sum_into(&mut out, LongDouble::ZERO, args.at(2))?;
            ctx.keys.put(key, NewValue::Bytes(&out), None);
        }
    }
    ctx.keys.wrote(key, Event::string("incrbyfloat"));
    record_set(ctx.keys, key, |record| record.push(&out), Deadline::Keep);
    ctx.reply.bulk(&out);
    DONE
}

fn sum_into(out: &mut Vec<u8>, old: LongDouble, by: &[u8]) -> Result<(), Refusal> {
    let by = LongDouble::parse(by).ok_or(Refusal::NotFloat)?;
    let sum = add_long_doubles(&old, &by);
    if !sum.is_finite() {
        return Err(Refusal::NotFinite);
    }
    sum.write(out);
    Ok(())
}
