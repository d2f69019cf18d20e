//! PFADD, PFCOUNT and PFMERGE.

use super::sparse_bytes_max;
use crate::call::ctx::{Ctx, DONE, Outcome};
use crate::error::Refusal;
use russet_base::Args;
use russet_engine::event::Event;
use russet_engine::types::hyperloglog::Encoding;
use russet_engine::types::hyperloglog::stored::{self, Gain, Union};

pub fn pfadd(ctx: &mut Ctx, args: Args) -> Outcome {
    let (key, elements) = (args.at(1), args.from(2));
    let sparse_max = sparse_bytes_max(ctx);
    let was_dense = ctx.keys.is_recording() && is_dense(ctx, key);
    let changes = match ctx.keys.write(key) {
        Some(mut entry) => stored::add(&mut entry, elements.iter(), sparse_max)?,
        None => {
            let (mut bytes, changes) = stored::build(elements.iter(), sparse_max);
            ctx.keys.put(key, stored::adopt(&mut bytes), None);
            // The new key is a change of its own.
            changes + 1
        }
    };
    if changes > 0 {
        ctx.keys.wrote_many(key, Event::string("pfadd"), changes as u64);
        record(ctx, args, was_dense);
    }
    ctx.reply.int(i64::from(changes > 0));
    DONE
}

fn is_dense(ctx: &mut Ctx, key: &[u8]) -> bool {
    ctx.keys.peek(key).is_some_and(|entry| stored::encoding(&entry) == Ok(Encoding::Dense))
}

/// Records a call that has changed its first key. If that became dense, perhaps because it would
/// have outgrown `hll-sparse-max-bytes`, it becomes so wherever the call is run again.
fn record(ctx: &mut Ctx, args: Args, was_dense: bool) {
    if ctx.keys.is_recording() {
        let key = args.at(1);
        ctx.record_as_is(args);
        if !was_dense && is_dense(ctx, key) {
            ctx.keys.record([b"PFDEBUG", b"TODENSE", key]);
        }
    }
}

pub fn pfcount(ctx: &mut Ctx, args: Args) -> Outcome {
    let estimate = match args.len() {
        2 => count_one(ctx, args.at(1))?,
        _ => {
            let entries = ctx.keys.read_all(args.from(1).iter());
            let mut union = Union::default();
            union.add_all(entries.into_iter().flatten())?;
            union.estimate()
        }
    };
    // COMPAT: printed as a signed number, which matters only for estimates that were forged.
    ctx.reply.int(estimate as i64);
    DONE
}

/// The estimate that is kept in the value, or else a new one, which is kept from then on.
fn count_one(ctx: &mut Ctx, key: &[u8]) -> Result<u64, Refusal> {
    let Some(entry) = ctx.keys.read(key) else {
        return Ok(0);
    };
    if let Some(estimate) = stored::kept_estimate(&entry)? {
        return Ok(estimate);
    }
    let Some(mut entry) = ctx.keys.write(key) else {
        return Ok(0);
    };
    let estimate = stored::estimate_anew(&mut entry)?;
    ctx.keys.changed(key);
    Ok(estimate)
}

pub fn pfmerge(ctx: &mut Ctx, args: Args) -> Outcome {
    let target = args.at(1);
    let sparse_max = sparse_bytes_max(ctx);
    let was_dense = ctx.keys.is_recording() && is_dense(ctx, target);
    let mut union = None;
    let gain = read_merged(ctx, args, &mut union)?;
    match (ctx.keys.write(target), gain, &union) {
        (Some(mut entry), Some(gain), _) => gain.store(&mut entry)?,
        (Some(mut entry), None, Some(union)) => union.store(&mut entry, sparse_max)?,
        (None, _, Some(union)) => {
            ctx.keys.put(target, stored::adopt(&mut union.build(sparse_max)), None);
        }
        _ => {}
    }
    ctx.keys.wrote(target, Event::string("pfadd"));
    record(ctx, args, was_dense);
    ctx.reply.ok();
    DONE
}

/// What PFMERGE's target gains, if that is little; otherwise the union of all, which is too large
/// to be handed on.
fn read_merged(
    ctx: &mut Ctx,
    args: Args,
    union: &mut Option<Union>,
) -> Result<Option<Gain>, Refusal> {
    let entries = ctx.keys.read_all(args.from(1).iter());
    if let Some((Some(old), others)) = entries.split_first()
        && let Some(gain) = Gain::of(old, others.iter().flatten())?
    {
        return Ok(Some(gain));
    }
    union.insert(Union::default()).add_all(entries.into_iter().flatten())?;
    Ok(None)
}
