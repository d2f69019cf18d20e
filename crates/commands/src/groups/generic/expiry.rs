//! When keys end: EXPIRE and its kin set it, TTL and its kin read it, PERSIST takes it away.

use crate::call::ctx::{Ctx, DONE, Outcome};
use crate::error::Refusal;
use crate::groups::deadline::{Base, Conditions, Unit, record_expiry};
use russet_base::{Args, UnixMillis, num};
use russet_engine::event::Event;

/// Unlike those of HEXPIRE, all arguments are read before any two are found not to go together.
fn conditions(args: Args) -> Result<Conditions, Refusal> {
    let mut given = Conditions::default();
    args.iter().try_for_each(|arg| given.take(arg))?;
    given.check()?;
    Ok(given)
}

pub fn expire(ctx: &mut Ctx, args: Args) -> Outcome {
    set_expiry(ctx, args, (Base::Now, Unit::Seconds))
}

pub fn pexpire(ctx: &mut Ctx, args: Args) -> Outcome {
    set_expiry(ctx, args, (Base::Now, Unit::Millis))
}

pub fn expireat(ctx: &mut Ctx, args: Args) -> Outcome {
    set_expiry(ctx, args, (Base::Epoch, Unit::Seconds))
}

pub fn pexpireat(ctx: &mut Ctx, args: Args) -> Outcome {
    set_expiry(ctx, args, (Base::Epoch, Unit::Millis))
}

fn set_expiry(ctx: &mut Ctx, args: Args, (base, unit): (Base, Unit)) -> Outcome {
    let key = args.at(1);
    let conditions = conditions(args.from(3))?;
    let given = num::parse_i64(args.at(2)).ok_or(Refusal::NotInteger)?;
    let now = ctx.keys.now;
    let start = if base == Base::Now { ctx.keys.real_now() } else { UnixMillis::EPOCH };
    let at_ms = match unit {
        Unit::Seconds => given.checked_mul(1000),
        Unit::Millis => Some(given),
    }
    .and_then(|ms| ms.checked_add(start.0))
    .ok_or(Refusal::InvalidExpire(ctx.command.spec().full_name))?;

    let Some(mut entry) = ctx.keys.write(key) else {
        ctx.reply.int(0);
        return DONE;
    };
    if !conditions.allow(entry.expiry(), at_ms) {
        ctx.reply.int(0);
        return DONE;
    }
    if at_ms <= now.0 {
        // COMPAT: the event is Valkey 9's "expired"; Redis calls it "del"
        // (tests/wire/pubsub/keyspace.wire).
        ctx.keys.remove(key);
        ctx.keys.wrote_expired(key);
        ctx.keys.record([b"DEL", key]);
    } else {
        entry.set_expiry(Some(at_ms));
        ctx.keys.wrote(key, Event::generic("expire"));
        record_expiry(ctx.keys, key, at_ms);
    }
    ctx.reply.int(1);
    DONE
}

pub fn persist(ctx: &mut Ctx, args: Args) -> Outcome {
    let key = args.at(1);
    let mut was_mortal = false;
    if let Some(mut entry) = ctx.keys.write(key) {
        was_mortal = entry.expiry().is_some();
        entry.set_expiry(None);
    }
    if was_mortal {
        ctx.keys.wrote(key, Event::generic("persist"));
    }
    ctx.reply.int(i64::from(was_mortal));
    DONE
}

pub fn ttl(ctx: &mut Ctx, args: Args) -> Outcome {
    reply_expiry(ctx, args, (Base::Now, Unit::Seconds))
}

pub fn pttl(ctx: &mut Ctx, args: Args) -> Outcome {
    reply_expiry(ctx, args, (Base::Now, Unit::Millis))
}

pub fn expiretime(ctx: &mut Ctx, args: Args) -> Outcome {
    reply_expiry(ctx, args, (Base::Epoch, Unit::Seconds))
}

pub fn pexpiretime(ctx: &mut Ctx, args: Args) -> Outcome {
    reply_expiry(ctx, args, (Base::Epoch, Unit::Millis))
}

fn reply_expiry(ctx: &mut Ctx, args: Args, (base, unit): (Base, Unit)) -> Outcome {
    const NO_KEY: i64 = -2;
    const NO_EXPIRY: i64 = -1;
    let now = ctx.keys.now;
    let remaining = match ctx.keys.inspect(args.at(1)).map(|entry| entry.expiry()) {
        None => NO_KEY,
        Some(None) => NO_EXPIRY,
        Some(Some(at_ms)) => {
            let start_ms = if base == Base::Now { now.0 } else { 0 };
            let ms = at_ms.saturating_sub(start_ms).max(0);
            match unit {
                Unit::Millis => ms,
                // To the nearest second, without overflow at the end of time.
                Unit::Seconds => ms / 1000 + i64::from(ms % 1000 >= 500),
            }
        }
    };
    ctx.reply.int(remaining);
    DONE
}
