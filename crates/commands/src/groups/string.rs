//! Strings and counters. Each family of verbs has its file; what several share is here.

pub mod compare;
pub mod counter;
pub mod delete;
pub mod edit;
mod expiry;
pub mod increx;
pub(crate) mod large;
pub mod many;
pub mod read;
#[cfg(test)]
mod tests;
pub mod write;

use crate::call::ctx::Ctx;
use crate::call::invoke::Origin;
use crate::error::Refusal;
use crate::node::config::Directive;
use expiry::Deadline;
use russet_base::{OwnedArgs, num};
use russet_engine::keys::Keys;
use russet_engine::types::element::IntText;

/// An integer argument.
pub(crate) fn integer(arg: &[u8]) -> Result<i64, Refusal> {
    num::parse_i64(arg).ok_or(Refusal::NotInteger)
}

/// The most bytes that a string may have. What was done once is done again, whatever the limit is
/// now.
pub(crate) fn bytes_max(ctx: &Ctx) -> u64 {
    if ctx.origin == Origin::Load {
        return u64::MAX;
    }
    ctx.node.config.memory(Directive::ProtoMaxBulkLen)
}

/// Records that a string was written whole. Without a deadline the key has none from then on.
fn record_set(
    keys: &mut Keys,
    key: &[u8],
    push_value: impl FnOnce(&mut OwnedArgs),
    deadline: Deadline,
) {
    if !keys.is_recording() {
        return;
    }
    let mut args: OwnedArgs = [b"SET", key].into_iter().collect();
    push_value(&mut args);
    match deadline {
        Deadline::Unsaid | Deadline::Persist => {}
        Deadline::Keep => args.push(b"KEEPTTL"),
        Deadline::At(at) => {
            args.push(b"PXAT");
            args.push(IntText::new(at.0).as_bytes());
        }
    }
    keys.effects.records.push_owned(keys.db, args);
}

/// The length of a string of `size` and `more` bytes, unless no client could be sent it.
pub(crate) fn check_length(ctx: &Ctx, size: usize, more: usize) -> Result<usize, Refusal> {
    let total = size.checked_add(more).filter(|total| *total as u64 <= bytes_max(ctx));
    total.ok_or(Refusal::StringTooLong)
}
