//! A small sorted set in one run of bytes: a two-byte count, then the entries (see `entry.rs`) in
//! order. Whether a sorted set may be packed is said by `limits.rs`; callers ask first.

use super::entry::{self, Entries, Entry, Found, Pair};
use super::range::Probe;
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

/// Puts a pair whose member is not there yet in its place.
pub fn insert(blob: &mut impl Blob, pair: Pair<'_>) {
    let entry = Entry::new(pair);
    let [score, head, payload] = entry.pieces();
    let count = count_bytes(len(blob.bytes()) + 1);
    if blob.bytes().is_empty() {
        return blob.splice(0, 0, &[&count, score, head, payload]);
    }
    let at = HEADER_BYTES + insert_offset(run(blob.bytes()), &pair);
    blob.overwrite(0, &count);
    blob.splice(at, 0, &[score, head, payload]);
}

/// The offset in a run where a pair belongs.
#[inline]
fn insert_offset(run: &[u8], pair: &Pair<'_>) -> usize {
    entry::spot(run, &Probe::Pair(*pair)).at
}

/// Gives the member at `found` another score.
pub fn rescore(blob: &mut impl Blob, found: Found, pair: Pair<'_>) {
    let entry = Entry::new(pair);
    let run = run(blob.bytes());
    // The place is looked for with the old entry still there, on whose far side it may be.
    let to = insert_offset(run, &pair);
    let mut edited = SmallVec::<[u8; 512]>::new();
    let range = if to >= found.end() {
        edited.extend_from_slice(&run[found.end()..to]);
        entry.append_with(|piece| edited.extend_from_slice(piece));
        found.at..to
    } else {
        entry.append_with(|piece| edited.extend_from_slice(piece));
        if to < found.at {
            edited.extend_from_slice(&run[to..found.at]);
        }
        to.min(found.at)..found.end()
    };
    if edited.len() == range.len() {
        blob.overwrite(HEADER_BYTES + range.start, &edited);
    } else {
        blob.splice(HEADER_BYTES + range.start, range.len(), &[&edited]);
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
