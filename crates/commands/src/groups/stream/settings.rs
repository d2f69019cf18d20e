//! XSETID and XCFGSET: what a stream says of itself.

use super::{access, integer, strict_id};
use crate::call::ctx::{Ctx, DONE, Outcome};
use crate::call::invoke::Origin;
use crate::error::Refusal;
use russet_base::Args;
use russet_base::text::eq_ignore_case;
use russet_engine::event::Event;
use russet_engine::keys::Keys;
use russet_engine::types::stream::{Idempotency, StreamId};
use std::ops::RangeInclusive;

const DURATIONS_S: RangeInclusive<u64> = 1..=86_400;
const MESSAGES_MAX: RangeInclusive<u64> = 1..=10_000;

pub fn xsetid(ctx: &mut Ctx, args: Args) -> Outcome {
    let id = strict_id(args.at(2), 0)?;
    let (mut entries_added, mut max_deleted) = (None, StreamId::MIN);
    let mut has_max_deleted = false;
    let mut rest = args.from(3).iter();
    while let Some(arg) = rest.next() {
        let value = rest.next().ok_or(Refusal::Syntax)?;
        if eq_ignore_case(arg, b"entriesadded") {
            let added = u64::try_from(integer(value)?);
            let refusal = || Refusal::text("ERR entries_added must be positive");
            entries_added = Some(added.map_err(|_| refusal())?);
        } else if eq_ignore_case(arg, b"maxdeletedid") {
            max_deleted = strict_id(value, 0)?;
            has_max_deleted = true;
            if id < max_deleted {
                return Err(Refusal::text(
                    "ERR The ID specified in XSETID is smaller than the provided \
                     max_deleted_entry_id",
                ));
            }
        } else {
            return Err(Refusal::Syntax);
        }
    }
    let key = args.at(1);
    let says_nothing_deleted = has_max_deleted && max_deleted == StreamId::MIN;
    let stream = access::peek(ctx.keys, key)?.ok_or(Refusal::NoSuchKey)?;
    if id < stream.max_deleted_id() {
        return Err(Refusal::text(
            "ERR The ID specified in XSETID is smaller than current max_deleted_entry_id",
        ));
    }
    if stream.last_entry_id().is_some_and(|last| id < last) {
        return Err(Refusal::text(
            "ERR The ID specified in XSETID is smaller than the target stream top item",
        ));
    }
    if !stream.is_empty() && entries_added.is_some_and(|added| stream.len() > added) {
        return Err(Refusal::text(
            "ERR The entries_added specified in XSETID is smaller than the target stream length",
        ));
    }
    if let Some(stream) = access::edit(ctx.keys, key)? {
        stream.log.last_id = id;
        stream.log.entries_added = entries_added.unwrap_or(stream.log.entries_added);
        // A client's 0-0 changes nothing, as in Redis. What is done again says what there was.
        if max_deleted != StreamId::MIN || says_nothing_deleted && ctx.origin == Origin::Load {
            stream.log.max_deleted_id = max_deleted;
        }
    }
    if says_nothing_deleted && ctx.origin != Origin::Load {
        record_without_deleted(ctx.keys, (key, args.at(2)), entries_added);
    }
    ctx.keys.wrote_beside(key, 1, Some(Event::stream("xsetid")));
    ctx.reply.ok();
    DONE
}

/// XSETID with an option less, which changed nothing and would if it were done again.
fn record_without_deleted(keys: &mut Keys, (key, id): (&[u8], &[u8]), added: Option<u64>) {
    let added = added.map(|added| added.to_string());
    let option = added.iter().flat_map(|added| [&b"ENTRIESADDED"[..], added.as_bytes()]);
    keys.record([&b"XSETID"[..], key, id].into_iter().chain(option));
}

/// One of XCFGSET's numbers; given twice, it is refused.
fn setting(
    known: Option<u64>,
    value: &[u8],
    name: &str,
    (bounds, unit): (RangeInclusive<u64>, &str),
) -> Result<Option<u64>, Refusal> {
    if known.is_some() {
        return Err(Refusal::text(format!("ERR {name} specified multiple times")));
    }
    let value = u64::try_from(integer(value)?).ok().filter(|value| bounds.contains(value));
    let (least, most) = (bounds.start(), bounds.end());
    let refusal = || Refusal::text(format!("ERR {name} must be between {least} and {most} {unit}"));
    value.map(Some).ok_or_else(refusal)
}

pub fn xcfgset(ctx: &mut Ctx, args: Args) -> Outcome {
    let key = args.at(1);
    let stream = access::peek(ctx.keys, key)?.ok_or(Refusal::NoSuchKey)?;
    let current = stream.idempotency().cloned().unwrap_or_default();
    let (mut duration_s, mut messages_max) = (None, None);
    let mut rest = args.from(2).iter();
    while let Some(arg) = rest.next() {
        let value = rest.next().ok_or(Refusal::Syntax)?;
        if eq_ignore_case(arg, b"idmp-duration") {
            let bounds = (DURATIONS_S, "seconds");
            duration_s = setting(duration_s, value, "IDMP-DURATION", bounds)?;
        } else if eq_ignore_case(arg, b"idmp-maxsize") {
            let bounds = (MESSAGES_MAX, "entries");
            messages_max = setting(messages_max, value, "IDMP-MAXSIZE", bounds)?;
        } else {
            return Err(Refusal::Syntax);
        }
    }
    if duration_s.is_none() && messages_max.is_none() {
        return Err(Refusal::text("ERR At least one parameter must be specified"));
    }
    let changes = duration_s.is_some_and(|given| given != current.duration_s)
        || messages_max.is_some_and(|given| given != current.messages_max);
    if changes && let Some(stream) = access::edit(ctx.keys, key)? {
        let idempotency: &mut Idempotency = stream.idempotency_mut();
        idempotency.duration_s = duration_s.unwrap_or(idempotency.duration_s);
        idempotency.messages_max = messages_max.unwrap_or(idempotency.messages_max);
        idempotency.clear();
        ctx.keys.wrote_beside(key, 1, None);
    }
    ctx.reply.ok();
    DONE
}
