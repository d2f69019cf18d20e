//! Fields that count: HINCRBY, HINCRBYFLOAT.

use super::{limits, record_deadline};
use crate::call::ctx::{Ctx, DONE, Outcome};
use crate::error::Refusal;
use russet_base::longdouble::{LongDouble, add};
use russet_base::{Args, num};
use russet_engine::event::Event;
use russet_engine::types::element::{Element, IntText};
use russet_engine::types::hash::Lease;

pub fn hincrby(ctx: &mut Ctx, args: Args) -> Outcome {
    let by = num::parse_i64(args.at(3)).ok_or(Refusal::NotInteger)?;
    let (key, name, limits) = (args.at(1), args.at(2), limits(ctx));
    let edited = ctx.keys.edit_hash(key, limits, |hash| {
        let old = match hash.view().value(name) {
            None => 0,
            Some(Element::Int(old)) => old,
            Some(Element::Bytes(_)) => {
                return Err(Refusal::text("ERR hash value is not an integer"));
            }
        };
        let sum = old.checked_add(by).ok_or(Refusal::Overflow)?;
        hash.set((name, IntText::new(sum).as_bytes()), Lease::Keep);
        Ok(sum)
    })?;
    let sum = edited.transpose()?.unwrap_or_else(|| {
        let text = IntText::new(by);
        ctx.keys.put_hash(key, [(name, text.as_bytes())].into_iter(), (Lease::None, limits));
        by
    });
    ctx.keys.wrote(key, Event::hash("hincrby"));
    ctx.reply.int(sum);
    DONE
}

pub fn hincrbyfloat(ctx: &mut Ctx, args: Args) -> Outcome {
    let by = LongDouble::parse(args.at(3)).ok_or(Refusal::NotFloat)?;
    if !by.is_finite() {
        return Err(Refusal::text("ERR value is NaN or Infinity"));
    }
    let (key, name, limits) = (args.at(1), args.at(2), limits(ctx));
    let mut text = Vec::new();
    let edited = ctx.keys.edit_hash(key, limits, |hash| {
        let old = match hash.view().value(name) {
            None => LongDouble::ZERO,
            Some(old) => old
                .with_bytes(LongDouble::parse)
                .ok_or(Refusal::text("ERR hash value is not a float"))?,
        };
        let sum = add(&old, &by);
        if !sum.is_finite() {
            return Err(Refusal::NotFinite);
        }
        sum.write(&mut text);
        hash.set((name, &text), Lease::Keep);
        Ok(hash.view().deadline(name).flatten())
    })?;
    let edited = edited.transpose()?;
    if edited.is_none() {
        by.write(&mut text);
        ctx.keys.put_hash(key, [(name, &*text)].into_iter(), (Lease::None, limits));
    }
    ctx.keys.wrote(key, Event::hash("hincrbyfloat"));
    ctx.keys.record([b"HSET", key, name, &text]);
    if let Some(Some(at_ms)) = edited {
        // HSET has taken it away.
        record_deadline(ctx.keys, key, (Some(at_ms), [name].into_iter()));
    }
    ctx.reply.bulk(&text);
    DONE
}
