//! Setting and removing fields: HSET, HMSET, HSETNX, HDEL, HGETDEL.

use super::{
    args as hash_args, delete_emptied, limits, pairs, reply_nulls, reply_value, wrote_fields,
};
use crate::call::ctx::{Ctx, DONE, Outcome};
use crate::error::Refusal;
use russet_base::Args;
use russet_engine::event::Event;
use russet_engine::types::hash::Lease;

pub fn hset(ctx: &mut Ctx, args: Args) -> Outcome {
    let created = set_all(ctx, args)?;
    ctx.reply.int(created as i64);
    DONE
}

pub fn hmset(ctx: &mut Ctx, args: Args) -> Outcome {
    set_all(ctx, args)?;
    ctx.reply.ok();
    DONE
}

/// Sets the fields and tells; how many are new.
fn set_all(ctx: &mut Ctx, args: Args) -> Result<usize, Refusal> {
    let (key, fields_args) = (args.at(1), args.from(2));
    if !fields_args.len().is_multiple_of(2) {
        return Err(Refusal::Arity(ctx.command.spec().full_name));
    }
    let (limits, pairs) = (limits(ctx), pairs(fields_args));
    let fields = pairs.len();
    let created = ctx.keys.edit_hash(key, limits, |hash| {
        // COMPAT: more fields than a listpack may have make a hashtable of it, even if they are
        // there already (tests/wire/hash/encoding.wire).
        if fields > limits.entries {
            hash.mark_hashtable();
        }
        pairs.clone().map(|pair| usize::from(hash.set(pair, Lease::None))).sum()
    })?;
    let created = match created {
        Some(created) => created,
        None => ctx.keys.put_hash(key, pairs, (Lease::None, limits)),
    };
    wrote_fields(ctx, key, (Event::hash("hset"), fields));
    Ok(created)
}

pub fn hsetnx(ctx: &mut Ctx, args: Args) -> Outcome {
    let (key, pair, limits) = (args.at(1), (args.at(2), args.at(3)), limits(ctx));
    let is_new = ctx.keys.edit_hash(key, limits, |hash| {
        !hash.view().contains(pair.0) && hash.set(pair, Lease::None)
    })?;
    let is_new = is_new.unwrap_or_else(|| {
        ctx.keys.put_hash(key, [pair].into_iter(), (Lease::None, limits));
        true
    });
    if is_new {
        ctx.keys.wrote(key, Event::hash("hset"));
    }
    ctx.reply.int(i64::from(is_new));
    DONE
}

pub fn hdel(ctx: &mut Ctx, args: Args) -> Outcome {
    let (key, limits) = (args.at(1), limits(ctx));
    let names = args.from(2);
    let edited = ctx.keys.edit_hash(key, limits, |hash| {
        let removed = names.iter().filter(|name| hash.remove(name)).count();
        (removed, hash.is_empty())
    })?;
    let (removed, is_emptied) = edited.unwrap_or((0, false));
    notify_removed(ctx, key, (removed, is_emptied));
    ctx.reply.int(removed as i64);
    DONE
}

fn notify_removed(ctx: &mut Ctx, key: &[u8], (removed, is_emptied): (usize, bool)) {
    if removed > 0 {
        wrote_fields(ctx, key, (Event::hash("hdel"), removed));
    }
    if is_emptied {
        delete_emptied(ctx, key);
    }
}

pub fn hgetdel(ctx: &mut Ctx, args: Args) -> Outcome {
    let (key, limits) = (args.at(1), limits(ctx));
    let names = hash_args::named(args, Refusal::text(hash_args::COUNT_MISMATCH))?;
    let Ctx { keys, reply, .. } = ctx;
    let edited = keys.edit_hash(key, limits, |hash| {
        reply.array(names.len());
        let mut removed = 0;
        for name in names.iter() {
            reply_value(*reply, hash.view().value(name));
            removed += usize::from(hash.remove(name));
        }
        (removed, hash.is_empty())
    })?;
    match edited {
        None => reply_nulls(ctx.reply, names.len()),
        Some(edited) => {
            notify_removed(ctx, key, edited);
            if edited.0 > 0 {
                ctx.keys.record_list(&[b"HDEL", key], names.iter());
            }
        }
    }
    DONE
}
