//! XDEL and XDELEX.

use super::trim::references;
use super::{access, record, strict_id};
use crate::call::ctx::{Ctx, DONE, Outcome};
use crate::error::Refusal;
use russet_base::text::eq_ignore_case;
use russet_base::{Args, num};
use russet_engine::event::Event;
use russet_engine::keys::Keys;
use russet_engine::types::stream::{Name, References, Stream, StreamId};
use russet_protocol::Sink;
use smallvec::SmallVec;
use std::collections::BTreeMap;

/// The IDs of a call: few, usually.
pub type Ids = SmallVec<[StreamId; 8]>;

/// What became of an entry, as XDELEX and XACKDEL reply it.
pub const NOT_FOUND: i64 = -1;
pub const DELETED: i64 = 1;
pub const STILL_REFERENCED: i64 = 2;

pub fn parse_ids<'a>(args: impl Iterator<Item = &'a [u8]>) -> Result<Ids, Refusal> {
    args.map(|arg| strict_id(arg, 0)).collect()
}

/// `[KEEPREF|DELREF|ACKED] IDS numids id...`, in any order.
pub struct ListedIds<'a> {
    pub references: References,
    args: Args<'a>,
    count: usize,
}

impl<'a> ListedIds<'a> {
    pub fn parse(args: Args<'a>) -> Result<Self, Refusal> {
        let (mut kept, mut ids) = (None, None);
        let mut at = 0;
        while at < args.len() {
            let arg = args.at(at);
            match references(arg) {
                Some(references) if kept.is_none() => {
                    kept = Some(references);
                    at += 1;
                }
                _ if eq_ignore_case(arg, b"ids") && at + 1 < args.len() => {
                    let count = num::parse_i64(args.at(at + 1)).unwrap_or(0);
                    let count = usize::try_from(count).ok().filter(|count| *count > 0);
                    let count = count
                        .ok_or(Refusal::text("ERR Number of IDs must be a positive integer"))?;
                    if count > args.len() - at - 2 {
                        return Err(Refusal::text(
                            "ERR The `numids` parameter must match the number of arguments",
                        ));
                    }
                    ids = Some((at + 2, count));
                    at += 2 + count;
                }
                _ => return Err(Refusal::Syntax),
            }
        }
        let (start, count) = ids.ok_or(Refusal::text("ERR IDS option is required"))?;
        Ok(ListedIds { references: kept.unwrap_or_default(), args: args.from(start), count })
    }

    /// The reply when there is nothing to look for them in.
    pub fn reply_not_found(&self, reply: &mut dyn Sink) {
        reply.array(self.count);
        (0..self.count).for_each(|_| reply.int(NOT_FOUND));
    }

    pub fn parse_ids(&self) -> Result<Ids, Refusal> {
        parse_ids(self.args.iter().take(self.count))
    }
}

pub fn xdel(ctx: &mut Ctx, args: Args) -> Outcome {
    let key = args.at(1);
    // COMPAT: a missing key is 0 whatever the IDs are; tests/wire/stream/xdel.wire.
    let Some(stream) = access::peek(ctx.keys, key)? else {
        ctx.reply.int(0);
        return DONE;
    };
    let mut ids = parse_ids(args.from(2).iter())?;
    let mut deleted = 0;
    if stream.may_contain_any(&ids)
        && let Some(stream) = access::edit(ctx.keys, key)?
    {
        // In order, each block is walked once for all that it holds of them.
        ids.sort_unstable();
        deleted = stream.log.delete_all(&ids);
    }
    notify_deleted(ctx, key, deleted, deleted);
    ctx.reply.int(deleted as i64);
    DONE
}

/// Publishes the deletion of entries, and other changes that came with it.
pub fn notify_deleted(ctx: &mut Ctx, key: &[u8], deleted: u64, changes: u64) {
    if deleted > 0 {
        ctx.keys.wrote_many(key, Event::stream("xdel"), changes);
    } else if changes > 0 {
        ctx.keys.wrote_beside(key, changes, None);
    }
}

pub fn xdelex(ctx: &mut Ctx, args: Args) -> Outcome {
    let key = args.at(1);
    let is_there = access::peek(ctx.keys, key)?.is_some();
    let listed = ListedIds::parse(args.from(2))?;
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
            let mut has_changed = false;
            let mut outcome = NOT_FOUND;
            let may_go = match listed.references {
                References::Delete => {
                    note_references(stream, id, &mut released);
                    has_changed = stream.drop_references(id);
                    true
                }
                references => stream.release(id, references),
            };
            if !may_go {
                outcome = STILL_REFERENCED;
            } else if stream.log.delete(id) {
                outcome = DELETED;
                deleted.push(id);
                has_changed = true;
            }
            changes += u64::from(has_changed);
            ctx.reply.int(outcome);
        }
    }
    record_released(ctx.keys, key, &released, &deleted);
    notify_deleted(ctx, key, deleted.len() as u64, changes);
    DONE
}

/// Pending entries that are about to be so no more, by group.
pub type Released = BTreeMap<Name, Ids>;

/// Notes in which groups an entry is pending.
pub fn note_references(stream: &Stream, id: StreamId, released: &mut Released) {
    for (name, group) in stream.groups().into_iter().flatten() {
        if group.pending(id).is_some() {
            released.entry(name.clone()).or_default().push(id);
        }
    }
}

/// Records what was taken off pending lists, and what was deleted.
pub fn record_released(keys: &mut Keys, key: &[u8], released: &Released, deleted: &[StreamId]) {
    for (group, ids) in released {
        record::acknowledged(keys, key, group, ids);
    }
    record::deleted(keys, key, deleted);
}
