//! XACK, XACKDEL, XNACK: what becomes of a pending entry.

use super::delete::{
    DELETED, Ids, ListedIds, NOT_FOUND, Released, STILL_REFERENCED, note_references,
    notify_deleted, parse_ids, record_released,
};
use super::{access, integer, no_group, shown};
use crate::call::ctx::{Ctx, DONE, Outcome};
use crate::error::Refusal;
use russet_base::text::eq_ignore_case;
use russet_base::{Args, num};
use russet_engine::types::stream::{Count, DELIVERIES_MAX, References};

pub fn xack(ctx: &mut Ctx, args: Args) -> Outcome {
    let (key, name) = (args.at(1), args.at(2));
    // COMPAT: without the group, 0 whatever the IDs are; tests/wire/stream/xack.wire.
    if access::read(ctx.keys, key)?.is_none_or(|stream| stream.group(name).is_none()) {
        ctx.reply.int(0);
        return DONE;
    }
    let ids = parse_ids(args.from(3).iter())?;
    let acknowledged = access::open_group(ctx.keys, key, name)?
        .map_or(0, |(mut group, _)| ids.iter().filter(|id| group.acknowledge(**id)).count());
    if acknowledged > 0 {
        ctx.keys.wrote_beside(key, acknowledged as u64, None);
    }
    ctx.reply.int(acknowledged as i64);
    DONE
}

pub fn xackdel(ctx: &mut Ctx, args: Args) -> Outcome {
    let (key, name) = (args.at(1), args.at(2));
    let stream = access::read(ctx.keys, key)?;
    let is_there = stream.is_some_and(|stream| stream.group(name).is_some());
    let listed = ListedIds::parse(args.from(3))?;
    if !is_there {
        listed.reply_not_found(ctx.reply);
        return DONE;
    }
    let ids = listed.parse_ids()?;
    let mut changes = 0;
    let (mut released, mut deleted) = (Released::new(), Ids::new());
    if let Some(stream) = access::edit(ctx.keys, key)? {
        ctx.reply.array(ids.len());
        for id in ids {
            let is_acked =
                stream.open_group(name).is_some_and(|(mut group, _)| group.acknowledge(id));
            if !is_acked {
                ctx.reply.int(NOT_FOUND);
                continue;
            }
            changes += 1;
            released.entry(name.into()).or_default().push(id);
            if listed.references == References::Delete {
                note_references(stream, id, &mut released);
            }
            let may_go = stream.release(id, listed.references);
            if may_go && stream.log.delete(id) {
                deleted.push(id);
            }
            ctx.reply.int(if may_go { DELETED } else { STILL_REFERENCED });
        }
    }
    record_released(ctx.keys, key, &released, &deleted);
    notify_deleted(ctx, key, deleted.len() as u64, changes);
    DONE
}

/// What XNACK is asked to do besides the IDs.
struct NackCall<'a> {
    count: Count,
    forces: bool,
    ids: Args<'a>,
    ids_len: usize,
}

impl<'a> NackCall<'a> {
    /// `args` are those from the mode on.
    fn parse(args: Args<'a>) -> Result<Self, Refusal> {
        let mode = match args.at(0) {
            arg if eq_ignore_case(arg, b"silent") => Count::TakeBack,
            arg if eq_ignore_case(arg, b"fail") => Count::Leave,
            arg if eq_ignore_case(arg, b"fatal") => Count::Set(DELIVERIES_MAX),
            _ => return Err(Refusal::text("ERR mode must be SILENT, FAIL, or FATAL")),
        };
        let (mut retries, mut forces, mut ids) = (None, false, None);
        let mut at = 1;
        while at < args.len() {
            let arg = args.at(at);
            let has_more = at + 1 < args.len();
            if eq_ignore_case(arg, b"ids") && has_more {
                let count = num::parse_i64(args.at(at + 1)).unwrap_or(0);
                let count = i32::try_from(count).ok().and_then(|count| usize::try_from(count).ok());
                let count = count
                    .filter(|count| *count > 0)
                    .ok_or(Refusal::text("ERR numids must be a positive integer"))?;
                if count > args.len() - at - 2 {
                    return Err(Refusal::text("ERR number of IDs doesn't match numids"));
                }
                ids = Some((args.from(at + 2), count));
                at += 2 + count;
            } else if eq_ignore_case(arg, b"force") {
                forces = true;
                at += 1;
            } else if eq_ignore_case(arg, b"retrycount") && has_more {
                let count = u64::try_from(integer(args.at(at + 1))?);
                retries =
                    Some(count.map_err(|_| {
                        Refusal::text("ERR Invalid RETRYCOUNT value, must be >= 0")
                    })?);
                at += 2;
            } else {
                let arg = shown(arg);
                return Err(Refusal::text(format!("ERR Unrecognized XNACK option '{arg}'")));
            }
        }
        let (ids, ids_len) = ids.ok_or(Refusal::text("ERR syntax error, expected IDS keyword"))?;
        Ok(NackCall { count: retries.map_or(mode, Count::Set), forces, ids, ids_len })
    }
}

pub fn xnack(ctx: &mut Ctx, args: Args) -> Outcome {
    let (key, name) = (args.at(1), args.at(2));
    if access::peek(ctx.keys, key)?.is_none_or(|stream| stream.group(name).is_none()) {
        return Err(no_group(key, name));
    }
    let call = NackCall::parse(args.from(3))?;
    let ids = parse_ids(call.ids.iter().take(call.ids_len))?;
    let mut given_back = 0;
    if let Some(stream) = access::edit(ctx.keys, key)? {
        for id in ids {
            let is_there = call.forces && stream.log.contains(id);
            let Some((mut group, _)) = stream.open_group(name) else { break };
            if is_there || group.pending(id).is_some() {
                group.give_back(id, call.count);
                given_back += 1;
            }
        }
    }
    if given_back > 0 {
        ctx.keys.wrote_beside(key, given_back, None);
        // They can be claimed at once.
        ctx.keys.recheck_waiters(key);
    }
    ctx.reply.int(given_back as i64);
    DONE
}
