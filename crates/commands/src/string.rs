//! Strings and counters. Each family of verbs has its file; what several share is here.

pub mod counter;
mod expiry;
pub mod many;
pub mod read;
pub mod write;

use crate::error::Refusal;
use russet_base::limits::BULK_BYTES_MAX;
use russet_base::num;

/// An integer argument.
pub(crate) fn integer(word: &[u8]) -> Result<i64, Refusal> {
    num::parse_i64(word).ok_or(Refusal::NotInteger)
}

/// Refuses a string of `size` and `more` bytes that no client could be sent.
pub(crate) fn check_length(size: usize, more: usize) -> Result<usize, Refusal> {
    let total = size.checked_add(more).filter(|total| *total <= BULK_BYTES_MAX);
    total.ok_or(Refusal::StringTooLong)
}
