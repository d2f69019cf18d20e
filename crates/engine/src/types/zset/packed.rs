//! A small sorted set in one run of bytes: a two-byte count, then the entries (see `entry.rs`) in
//! order. Whether a sorted set may be packed is said by `limits.rs`; callers ask first.

use super::entry::{self, Entries, Entry, Found, Pair};
use crate::types::blob::Blob;
use crate::types::element::Stored;
use smallvec::SmallVec;
use std::ops::Range;

pub const HEADER_BYTES: usize = 2;

#[inline]
pub fn len(bytes: &[u8]) -> usize {
    match bytes {
        [low, high, ..] => usize::from(u16::from_le_bytes([*low, *high])),
        _ => 0,
    }
}

/// The entries without the header.
#[inline]
pub fn run(bytes: &[u8]) -> &[u8] {
    bytes.get(HEADER_BYTES..).unwrap_or(&[])
}

/// Puts a pair whose member is not there yet in its place. It comes with its form.
#[inline]
pub fn insert(blob: &mut impl Blob, (pair, entry): (Pair<'_>, &Entry<'_>)) {
    let [score, head, payload] = entry.pieces();
    let count = count_bytes(len(blob.bytes()) + 1);
    if blob.bytes().is_empty() {
        return blob.splice(0, 0, &[&count, score, head, payload]);
    }
    let at = HEADER_BYTES + entry::place(run(blob.bytes()), &pair, entry);
    blob.overwrite(0, &count);
    blob.splice(at, 0, &[score, head, payload]);
}

/// Gives the member at `found` another score.
#[inline]
pub fn rescore(blob: &mut impl Blob, found: Found, (pair, entry): (Pair<'_>, &Entry<'_>)) {
    let [score, head, payload] = entry.pieces();
    let run = run(blob.bytes());
    // Its place is behind the old one or before it, with what lies between on the other side.
    if found.score < pair.score {
        let to = found.end() + entry::place(&run[found.end()..], &pair, entry);
        let between = SmallVec::<[u8; 512]>::from_slice(&run[found.end()..to]);
        blob.splice(HEADER_BYTES + found.at, to - found.at, &[&between, score, head, payload]);
    } else {
        let to = entry::place(&run[..found.at], &pair, entry);
        let between = SmallVec::<[u8; 512]>::from_slice(&run[to..found.at]);
        let remove = found.end() - to;
        blob.splice(HEADER_BYTES + to, remove, &[score, head, payload, &between]);
    }
}

/// Looks for a member.
#[inline]
pub fn find(bytes: &[u8], wanted: &Stored<'_>) -> Option<Found> {
    entry::find(run(bytes), wanted)
}

pub fn remove(blob: &mut impl Blob, found: Found) {
    take_out(blob, found.at..found.end(), 1);
}

/// Removes the entries of a range of ranks, which lies inside the set.
pub fn remove_range(blob: &mut impl Blob, range: Range<usize>) {
    let run = run(blob.bytes());
    let start = entry::offset(run, range.start);
    let bytes = entry::offset(&run[start..], range.len());
    take_out(blob, start..start + bytes, range.len());
}

fn take_out(blob: &mut impl Blob, run: Range<usize>, count: usize) {
    let left = len(blob.bytes()) - count;
    if left == 0 {
        let total = blob.bytes().len();
        return blob.splice(0, total, &[]);
    }
    blob.overwrite(0, &count_bytes(left));
    blob.splice(HEADER_BYTES + run.start, run.len(), &[]);
}

/// The pairs of a packed set.
pub fn entries(bytes: &[u8]) -> Entries<'_> {
    Entries::new(run(bytes))
}

/// A packed set of pairs that come in order.
pub fn build<'p>(pairs: impl Iterator<Item = Pair<'p>>) -> Vec<u8> {
    let mut bytes = vec![0; HEADER_BYTES];
    let mut count = 0;
    for pair in pairs {
        Entry::new(pair).append_with(|piece| bytes.extend_from_slice(piece));
        count += 1;
    }
    bytes[..HEADER_BYTES].copy_from_slice(&count_bytes(count));
    bytes
}

fn count_bytes(count: usize) -> [u8; HEADER_BYTES] {
    u16::try_from(count)
        .expect("an entry is two bytes at least and PACKED_BYTES_MAX is far below 64 KiB")
        .to_le_bytes()
}
