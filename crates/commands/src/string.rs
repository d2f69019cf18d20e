//! Strings and counters. Each family of verbs has its file; what several share is here.

pub mod compare;
pub mod counter;
pub mod edit;
mod expiry;
pub mod increx;
pub mod many;
pub mod read;
#[cfg(test)]
mod tests;
pub mod write;

use crate::config::Directive;
use crate::ctx::Ctx;
use crate::error::Refusal;
use russet_base::num;

/// An integer argument.
pub(crate) fn integer(word: &[u8]) -> Result<i64, Refusal> {
    num::parse_i64(word).ok_or(Refusal::NotInteger)
}

/// The most bytes that a string may have.
pub(crate) fn bytes_max(ctx: &Ctx) -> u64 {
    ctx.node.config.memory(Directive::ProtoMaxBulkLen)
}

/// The length of a string of `size` and `more` bytes, unless no client could be sent it.
pub(crate) fn check_length(ctx: &Ctx, size: usize, more: usize) -> Result<usize, Refusal> {
    let total = size.checked_add(more).filter(|total| *total as u64 <= bytes_max(ctx));
    total.ok_or(Refusal::StringTooLong)
}
