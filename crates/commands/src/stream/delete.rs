//! XDEL and XDELEX.

use super::trim::references;
use super::{access, strict_id};
use crate::ctx::{Ctx, DONE, Outcome};
use crate::error::Refusal;
use russet_base::text::eq_ignore_case;
use russet_base::{Args, num};
use russet_engine::event::Event;
use russet_engine::types::stream::{References, StreamId};
use smallvec::SmallVec;

/// The IDs of a call: few, usually.
pub type Ids = SmallVec<[StreamId; 8]>;

/// What became of an entry, as XDELEX and XACKDEL tell it.
pub const NOT_FOUND: i64 = -1;
pub const DELETED: i64 = 1;
pub const STILL_REFERENCED: i64 = 2;

pub fn parse_ids<'a>(words: impl Iterator<Item = &'a [u8]>) -> Result<Ids, Refusal> {
    words.map(|word| strict_id(word, 0)).collect()
}

/// `[KEEPREF|DELREF|ACKED] IDS numids id...`, in any order.
pub struct ListedIds<'a> {
    pub references: References,
    words: Args<'a>,
    count: usize,
}

impl<'a> ListedIds<'a> {
    pub fn parse(words: Args<'a>) -> Result<Self, Refusal> {
        let (mut kept, mut ids) = (None, None);
        let mut at = 0;
        while at < words.len() {
            let word = words.at(at);
            match references(word) {
                Some(references) if kept.is_none() => {
                    kept = Some(references);
                    at += 1;
                }
                _ if eq_ignore_case(word, b"ids") && at + 1 < words.len() => {
                    let count = num::parse_i64(words.at(at + 1)).unwrap_or(0);
                    let count = usize::try_from(count).ok().filter(|count| *count > 0);
                    let count = count
                        .ok_or(Refusal::text("ERR Number of IDs must be a positive integer"))?;
                    if count > words.len() - at - 2 {
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
        Ok(ListedIds { references: kept.unwrap_or_default(), words: words.from(start), count })
    }

    pub fn len(&self) -> usize {
        self.count
    }

    pub fn parse_ids(&self) -> Result<Ids, Refusal> {
        parse_ids(self.words.iter().take(self.count))
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
    tell_deleted(ctx, key, deleted, deleted);
    ctx.reply.int(deleted as i64);
    DONE
}

/// Tells of entries that were deleted, and of changes besides.
pub fn tell_deleted(ctx: &mut Ctx, key: &[u8], deleted: u64, changes: u64) {
    if deleted > 0 {
        ctx.keys.wrote(key, Event::stream("xdel"));
        ctx.keys.effects.dirty += changes - 1;
    } else if changes > 0 {
        ctx.keys.wrote_beside(key, changes, None);
    }
}

pub fn xdelex(ctx: &mut Ctx, args: Args) -> Outcome {
    let key = args.at(1);
    let is_there = access::peek(ctx.keys, key)?.is_some();
    let listed = ListedIds::parse(args.from(2))?;
    if !is_there {
        ctx.reply.array(listed.len());
        (0..listed.len()).for_each(|_| ctx.reply.int(NOT_FOUND));
        return DONE;
    }
    let ids = listed.parse_ids()?;
    let (mut deleted, mut changes) = (0, 0);
    if let Some(stream) = access::edit(ctx.keys, key)? {
        ctx.reply.array(ids.len());
        for id in ids {
            let mut has_changed = false;
            let mut outcome = NOT_FOUND;
            let may_go = match listed.references {
                References::Delete => {
                    has_changed = stream.drop_references(id);
                    true
                }
                references => stream.release(id, references),
            };
            if !may_go {
                outcome = STILL_REFERENCED;
            } else if stream.log.delete(id) {
                outcome = DELETED;
                deleted += 1;
                has_changed = true;
            }
            changes += u64::from(has_changed);
            ctx.reply.int(outcome);
        }
    }
    tell_deleted(ctx, key, deleted, changes);
    DONE
}
