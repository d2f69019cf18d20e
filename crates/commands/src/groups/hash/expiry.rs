//! When fields end: HEXPIRE and its kin set it, HTTL and its kin read it, HPERSIST takes it away.

use super::args::{self, Call, Moment};
use super::{Changed, delete_emptied, limits, read, wrote_fields};
use crate::call::ctx::{Ctx, DONE, Outcome};
use crate::error::Refusal;
use crate::groups::deadline::{Base, Conditions, Unit};
use russet_base::Args;
use russet_engine::event::Event;

/// What each field is answered with.
const NO_FIELD: i64 = -2;
const NO_DEADLINE: i64 = -1;
const NOT_MET: i64 = 0;
const CHANGED: i64 = 1;
const DELETED: i64 = 2;

pub fn hexpire(ctx: &mut Ctx, args: Args) -> Outcome {
    set_deadlines(ctx, args, (Base::Now, Unit::Seconds))
}

pub fn hpexpire(ctx: &mut Ctx, args: Args) -> Outcome {
    set_deadlines(ctx, args, (Base::Now, Unit::Millis))
}

pub fn hexpireat(ctx: &mut Ctx, args: Args) -> Outcome {
    set_deadlines(ctx, args, (Base::Epoch, Unit::Seconds))
}

pub fn hpexpireat(ctx: &mut Ctx, args: Args) -> Outcome {
    set_deadlines(ctx, args, (Base::Epoch, Unit::Millis))
}

fn set_deadlines(ctx: &mut Ctx, args: Args, (base, unit): (Base, Unit)) -> Outcome {
    let (key, limits, now) = (args.at(1), limits(ctx), ctx.keys.now);
    let mut conditions = Conditions::default();
    // DIFFERS: Redis takes one condition only, Valkey XX with GT or LT as well.
    let call = Call::parse(args, (3, 1), &mut |arg, _| {
        conditions.take(arg)?;
        conditions.check().map(|()| 1)
    })?;
    let moment = Moment { base, unit, number: args.at(2) };
    let at_ms = moment.read(ctx.keys.real_now(), ctx.command.spec().full_name)?;
    let (names, is_over) = (call.fields(), at_ms <= now.0);

    let Ctx { keys, reply, .. } = ctx;
    let mut changed = Changed::new(keys);
    let edited = keys.edit_hash(key, limits, |hash| {
        reply.array(names.len());
        for name in names.iter() {
            let answer = match hash.view().deadline(name) {
                None => NO_FIELD,
                Some(current) if !conditions.allow(current, at_ms) => NOT_MET,
                Some(_) if is_over => {
                    hash.remove(name);
                    DELETED
                }
                Some(_) => {
                    hash.set_deadline(name, Some(at_ms));
                    CHANGED
                }
            };
            if answer > 0 {
                changed.add(name);
            }
            reply.int(answer);
        }
        hash.is_empty()
    })?;
    match edited {
        None => reply_missing(ctx, names),
        Some(_) if changed.count == 0 => {}
        Some(_) if !is_over => publish_deadline(ctx, key, (&changed, at_ms)),
        Some(is_emptied) => publish_expired(ctx, key, (&changed, is_emptied)),
    }
    DONE
}

/// Publishes the events of fields that were given a deadline.
pub(super) fn publish_deadline(ctx: &mut Ctx, key: &[u8], (fields, at_ms): (&Changed, i64)) {
    wrote_fields(ctx, key, (Event::hash("hexpire"), fields.count));
    fields.record_deadline(ctx.keys, key, Some(at_ms));
}

/// Publishes the events of fields that are over as soon as they were given their deadline.
pub(super) fn publish_expired(ctx: &mut Ctx, key: &[u8], (fields, is_emptied): (&Changed, bool)) {
    ctx.keys.count_expired_fields(key, fields.count);
    wrote_fields(ctx, key, (Event::hash("hexpired"), fields.count));
    fields.record_removed(ctx.keys, key);
    if is_emptied {
        delete_emptied(ctx, key);
    }
}

fn reply_missing(ctx: &mut Ctx, names: Args) {
    ctx.reply.array(names.len());
    names.iter().for_each(|_| ctx.reply.int(NO_FIELD));
}

pub fn hpersist(ctx: &mut Ctx, args: Args) -> Outcome {
    let (key, limits) = (args.at(1), limits(ctx));
    let names = args::named(args, Refusal::text(args::COUNT_MISMATCH))?;
    let Ctx { keys, reply, .. } = ctx;
    let edited = keys.edit_hash(key, limits, |hash| {
        reply.array(names.len());
        let mut changed = 0;
        for name in names.iter() {
            reply.int(match hash.view().deadline(name) {
                None => NO_FIELD,
                Some(None) => NO_DEADLINE,
                Some(Some(_)) => {
                    hash.set_deadline(name, None);
                    changed += 1;
                    CHANGED
                }
            });
        }
        changed
    })?;
    match edited {
        None => reply_missing(ctx, names),
        Some(0) => {}
        Some(changed) => wrote_fields(ctx, key, (Event::hash("hpersist"), changed)),
    }
    DONE
}

pub fn httl(ctx: &mut Ctx, args: Args) -> Outcome {
    reply_deadlines(ctx, args, (Base::Now, Unit::Seconds))
}

pub fn hpttl(ctx: &mut Ctx, args: Args) -> Outcome {
    reply_deadlines(ctx, args, (Base::Now, Unit::Millis))
}

pub fn hexpiretime(ctx: &mut Ctx, args: Args) -> Outcome {
    reply_deadlines(ctx, args, (Base::Epoch, Unit::Seconds))
}

pub fn hpexpiretime(ctx: &mut Ctx, args: Args) -> Outcome {
    reply_deadlines(ctx, args, (Base::Epoch, Unit::Millis))
}

/// COMPAT: a count that does not match is a syntax error here, and only here (httl.wire).
fn reply_deadlines(ctx: &mut Ctx, args: Args, (base, unit): (Base, Unit)) -> Outcome {
    let names = args::named(args, Refusal::Syntax)?;
    let start_ms = if base == Base::Now { ctx.keys.now.0 } else { 0 };
    let Some(hash) = read(ctx.keys, args.at(1))? else {
        reply_missing(ctx, names);
        return DONE;
    };
    ctx.reply.array(names.len());
    for name in names.iter() {
        ctx.reply.int(match hash.deadline(name) {
            None => NO_FIELD,
            Some(None) => NO_DEADLINE,
            Some(Some(at_ms)) => {
                let ms = at_ms.saturating_sub(start_ms).max(0);
                match unit {
                    Unit::Millis => ms,
                    // To the nearest second, without overflow at the end of time.
                    Unit::Seconds => ms / 1000 + i64::from(ms % 1000 >= 500),
                }
            }
        });
    }
    DONE
}
