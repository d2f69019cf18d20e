//! A small list in one run of bytes: a two-byte count, then the entries (see `element.rs`). An
//! empty list is no bytes at all. Whether a list may be packed is said by `limits.rs`; callers ask
//! first.

use std::ops::Range;

use smallvec::SmallVec;

use super::entries::{Entries, Quota, Run};
use super::entry::{self, Entry};
use super::limits::Extent;
use super::{End, Place};
use crate::types::blob::Blob;
use crate::types::element::Element;

pub const HEADER_BYTES: usize = 2;

pub fn len(bytes: &[u8]) -> usize {
    match bytes {
        [low, high, ..] => usize::from(u16::from_le_bytes([*low, *high])),
        _ => 0,
    }
}

/// The size of the entries, without the header.
pub fn size(bytes: &[u8]) -> Extent {
    Extent { bytes: bytes.len().saturating_sub(HEADER_BYTES), count: len(bytes) }
}

/// The entries, encoded: what an RDB file's listpack holds between its header and its end mark.
pub fn run(bytes: &[u8]) -> Run<'_> {
    Run { bytes: bytes.get(HEADER_BYTES..).unwrap_or(&[]), count: len(bytes) }
}

pub fn index(bytes: &[u8], index: usize) -> Option<Element<'_>> {
    let run = run(bytes);
    (index < run.count).then(|| entry::decode(&run.bytes[run.offset(index)..]).0)
}

/// The elements of `range`, which is cut to the list.
pub fn range(bytes: &[u8], range: Range<usize>) -> Entries<'_> {
    let run = run(bytes);
    let end = range.end.min(run.count);
    Entries::new(run.slice(range.start.min(end)..end))
}

/// A packed list of entries that are already encoded.
pub fn from_run(run: Run<'_>) -> Vec<u8> {
    if run.count == 0 {
        return Vec::new();
    }
    let mut packed = Vec::with_capacity(HEADER_BYTES + run.bytes.len());
    packed.extend_from_slice(&count_bytes(run.count));
    packed.extend_from_slice(run.bytes);
    packed
}

/// Pushes the elements one after the other: the last one ends up outermost.
pub fn push<'e>(
    blob: &mut impl Blob,
    end: End,
    elements: impl DoubleEndedIterator<Item = Element<'e>>,
) {
    let mut elements = elements;
    if elements.size_hint() == (1, Some(1))
        && let Some(element) = elements.next()
    {
        return push_one(blob, end, element);
    }
    let mut encoded = SmallVec::<[u8; 512]>::new();
    let mut added = 0;
    let mut encode = |element| {
        let entry = Entry::new(element);
        entry.pieces().iter().for_each(|piece| encoded.extend_from_slice(piece));
        added += 1;
    };
    match end {
        End::Front => elements.rev().for_each(&mut encode),
        End::Back => elements.for_each(&mut encode),
    }
    if added == 0 {
        return;
    }
    let count = count_bytes(len(blob.bytes()) + added);
    let total = blob.bytes().len();
    match end {
        _ if total == 0 => blob.splice(0, 0, &[&count, &encoded]),
        End::Front => blob.splice(0, HEADER_BYTES, &[&count, &encoded]),
        End::Back => {
            blob.overwrite(0, &count);
            blob.splice(total, 0, &[&encoded]);
        }
    }
}

/// As [`push`], for one element, which is not copied first.
fn push_one(blob: &mut impl Blob, end: End, element: Element<'_>) {
    let entry = Entry::new(element);
    let [head, payload, back] = entry.pieces();
    let count = count_bytes(len(blob.bytes()) + 1);
    let total = blob.bytes().len();
    match end {
        _ if total == 0 => blob.splice(0, 0, &[&count, head, payload, back]),
        End::Front => blob.splice(0, HEADER_BYTES, &[&count, head, payload, back]),
        End::Back => {
            blob.overwrite(0, &count);
            blob.splice(total, 0, &[head, payload, back]);
        }
    }
}

/// Removes up to `count` elements from one end, shown to `visit` from that end inwards.
pub fn pop(blob: &mut impl Blob, end: End, count: usize, mut visit: impl FnMut(Element<'_>)) {
    let whole = run(blob.bytes());
    let count = count.min(whole.count);
    let kept = match end {
        End::Front => {
            let mut rest = Entries::new(whole.bytes);
            rest.by_ref().take(count).for_each(&mut visit);
            whole.bytes.len() - rest.rest().len()..whole.bytes.len()
        }
        End::Back => {
            let mut rest = Entries::new(whole.bytes);
            rest.by_ref().rev().take(count).for_each(&mut visit);
            0..rest.rest().len()
        }
    };
    keep(blob, kept, len(blob.bytes()) - count);
}

/// Puts `element` beside the first one equal to `pivot`: the new length, or `None` without a pivot.
pub fn insert(
    blob: &mut impl Blob,
    place: Place,
    pivot: Element<'_>,
    element: Element<'_>,
) -> Option<usize> {
    let run = run(blob.bytes());
    let found = run.matches(pivot, Quota { limit: 1, from_back: false }).pop()?;
    let at = match place {
        Place::Before => found.start,
        Place::After => found.end,
    };
    let count = run.count + 1;
    blob.overwrite(0, &count_bytes(count));
    blob.splice(HEADER_BYTES + at, 0, &Entry::new(element).pieces());
    Some(count)
}

/// Replaces the element at `index`; `false` if there is none.
pub fn set(blob: &mut impl Blob, index: usize, element: Element<'_>) -> bool {
    let run = run(blob.bytes());
    if index >= run.count {
        return false;
    }
    let at = run.offset(index);
    let old = entry::entry_bytes(&run.bytes[at..]);
    blob.splice(HEADER_BYTES + at, old, &Entry::new(element).pieces());
    true
}

/// Removes what equals `wanted`, within the quota; how many that were.
pub fn remove(blob: &mut impl Blob, quota: Quota, wanted: Element<'_>) -> usize {
    let run = run(blob.bytes());
    let found = run.matches(wanted, quota);
    let (Some(first), Some(last)) = (found.first(), found.last()) else {
        return 0;
    };
    let edited = first.start..last.end;
    let left = run.count - found.len();
    if left == 0 {
        clear(blob);
        return found.len();
    }
    // One edit from the first removed entry to the last, with what lies between them kept.
    let mut between = SmallVec::<[u8; 512]>::new();
    for pair in found.windows(2) {
        between.extend_from_slice(&run.bytes[pair[0].end..pair[1].start]);
    }
    blob.splice(HEADER_BYTES + edited.start, edited.len(), &[&between]);
    blob.overwrite(0, &count_bytes(left));
    found.len()
}

/// Keeps only the elements of `range`.
pub fn trim(blob: &mut impl Blob, range: Range<usize>) {
    let run = run(blob.bytes());
    let end = range.end.min(run.count);
    let start = range.start.min(end);
    let kept = run.offset(start)..run.offset(end);
    keep(blob, kept, end - start);
}

/// Keeps the entries at `kept`, which are `count`.
fn keep(blob: &mut impl Blob, kept: Range<usize>, count: usize) {
    let total = blob.bytes().len();
    if count == 0 {
        return clear(blob);
    }
    let tail = HEADER_BYTES + kept.end;
    if tail < total {
        blob.splice(tail, total - tail, &[]);
    }
    if kept.start > 0 {
        blob.splice(0, HEADER_BYTES + kept.start, &[&count_bytes(count)]);
    } else {
        blob.overwrite(0, &count_bytes(count));
    }
}

fn clear(blob: &mut impl Blob) {
    let total = blob.bytes().len();
    if total > 0 {
        blob.splice(0, total, &[]);
    }
}

fn count_bytes(count: usize) -> [u8; HEADER_BYTES] {
    u16::try_from(count)
        .expect("an entry is two bytes at least and PACKED_BYTES_MAX is far below 64 KiB")
        .to_le_bytes()
}
