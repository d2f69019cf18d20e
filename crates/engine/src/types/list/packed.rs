//! A small list in one run of bytes: a two-byte count, then the stored forms of its elements (see
//! `element.rs`) end to end. An empty list is no bytes at all. It is short, so that it is walked
//! from its front only, and its last elements cost a walk. Whether a list may be packed is said by
//! `limits.rs`; callers ask first.

use std::ops::Range;

use smallvec::SmallVec;

use super::entries::Quota;
use super::limits::Extent;
use super::{End, InsertAt};
use crate::types::blob::Blob;
use crate::types::element::{self, Element, Stored};

pub const HEADER_BYTES: usize = 2;

#[inline]
pub fn len(bytes: &[u8]) -> usize {
    match bytes {
        [low, high, ..] => usize::from(u16::from_le_bytes([*low, *high])),
        _ => 0,
    }
}

/// The size of the elements, without the header.
pub fn size(bytes: &[u8]) -> Extent {
    Extent { bytes: run(bytes).len(), count: len(bytes) }
}

fn run(bytes: &[u8]) -> &[u8] {
    bytes.get(HEADER_BYTES..).unwrap_or(&[])
}

/// The elements of a run, in order.
#[derive(Clone)]
pub struct Elements<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Elements<'a> {
    type Item = Element<'a>;

    #[inline]
    fn next(&mut self) -> Option<Element<'a>> {
        if self.rest.is_empty() {
            return None;
        }
        let (element, bytes) = element::decode(self.rest);
        self.rest = &self.rest[bytes..];
        Some(element)
    }
}

/// Elements to be shown from the last one on.
pub type Gathered<'a> = SmallVec<[Element<'a>; 32]>;

/// Where element `index` starts, which may be one behind the last.
#[inline]
fn offset(run: &[u8], index: usize) -> usize {
    (0..index).fold(0, |at, _| at + element::stored_bytes(&run[at..]))
}

pub fn elements(bytes: &[u8]) -> Elements<'_> {
    Elements { rest: run(bytes) }
}

pub fn index(bytes: &[u8], index: usize) -> Option<Element<'_>> {
    let run = run(bytes);
    (index < len(bytes)).then(|| element::decode(&run[offset(run, index)..]).0)
}

/// The elements of `range`, which is cut to the list.
pub fn range(bytes: &[u8], range: Range<usize>) -> std::iter::Take<Elements<'_>> {
    let run = run(bytes);
    let end = range.end.min(len(bytes));
    let start = range.start.min(end);
    Elements { rest: &run[offset(run, start)..] }.take(end - start)
}

/// A packed list of these elements.
pub fn build<'e>(elements: impl Iterator<Item = Element<'e>>) -> Vec<u8> {
    let mut packed = vec![0; HEADER_BYTES];
    let mut count = 0;
    for element in elements {
        Stored::new(element).pieces().iter().for_each(|piece| packed.extend_from_slice(piece));
        count += 1;
    }
    if count == 0 {
        return Vec::new();
    }
    packed[..HEADER_BYTES].copy_from_slice(&count_bytes(count));
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
        push_one(blob, end, element);
        return;
    }
    let mut encoded = SmallVec::<[u8; 512]>::new();
    let mut added = 0;
    let mut encode = |element| {
        Stored::new(element).pieces().iter().for_each(|piece| encoded.extend_from_slice(piece));
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

/// As [`push`], for one element, which is not copied first; the new length.
#[inline]
pub fn push_one(blob: &mut impl Blob, end: End, element: Element<'_>) -> usize {
    let stored = Stored::new(element);
    let [head, payload] = stored.pieces();
    let total = blob.bytes().len();
    let len = len(blob.bytes()) + 1;
    let count = count_bytes(len);
    match end {
        _ if total == 0 => blob.splice(0, 0, &[&count, head, payload]),
        End::Front => blob.splice(0, HEADER_BYTES, &[&count, head, payload]),
        End::Back => {
            blob.overwrite(0, &count);
            blob.splice(total, 0, &[head, payload]);
        }
    }
    len
}

/// Removes up to `count` elements from one end, shown to `visit` from that end inwards.
pub fn pop(blob: &mut impl Blob, end: End, count: usize, mut visit: impl FnMut(Element<'_>)) {
    let bytes = blob.bytes();
    let (run, total) = (run(bytes), len(bytes));
    let count = count.min(total);
    let kept = match end {
        End::Front => {
            let mut rest = Elements { rest: run };
            rest.by_ref().take(count).for_each(&mut visit);
            run.len() - rest.rest.len()..run.len()
        }
        End::Back => {
            let start = offset(run, total - count);
            let popped: Gathered = Elements { rest: &run[start..] }.collect();
            popped.into_iter().rev().for_each(&mut visit);
            0..start
        }
    };
    keep(blob, kept, total - count);
}

/// Removes the first element, which must be there, once `show` has seen it; how many are left.
#[inline]
pub fn pop_first(blob: &mut impl Blob, show: impl FnOnce(Element<'_>)) -> usize {
    let left = len(blob.bytes()) - 1;
    let (element, bytes) = element::decode(run(blob.bytes()));
    show(element);
    match left {
        0 => clear(blob),
        _ => blob.splice(0, HEADER_BYTES + bytes, &[&count_bytes(left)]),
    }
    left
}

/// Where the elements equal to `wanted` lie, in order, within the quota.
fn matches(run: &[u8], wanted: Element<'_>, quota: Quota) -> Vec<Range<usize>> {
    let wanted = Stored::new(wanted);
    let mut found = Vec::new();
    let mut at = 0;
    while at < run.len() && (quota.from_back || found.len() < quota.limit) {
        let end = at + element::stored_bytes(&run[at..]);
        if wanted.starts(&run[at..]) {
            found.push(at..end);
        }
        at = end;
    }
    found.split_off(found.len().saturating_sub(quota.limit))
}

/// Puts `element` beside the first one equal to `pivot`: the new length, or `None` without a pivot.
pub fn insert(
    blob: &mut impl Blob,
    side: InsertAt,
    pivot: Element<'_>,
    element: Element<'_>,
) -> Option<usize> {
    let bytes = blob.bytes();
    let found = matches(run(bytes), pivot, Quota { limit: 1, from_back: false }).pop()?;
    let at = match side {
        InsertAt::Before => found.start,
        InsertAt::After => found.end,
    };
    let count = len(bytes) + 1;
    blob.overwrite(0, &count_bytes(count));
    blob.splice(HEADER_BYTES + at, 0, &Stored::new(element).pieces());
    Some(count)
}

/// Replaces the element at `index`; `false` if there is none.
pub fn set(blob: &mut impl Blob, index: usize, element: Element<'_>) -> bool {
    let bytes = blob.bytes();
    if index >= len(bytes) {
        return false;
    }
    let run = run(bytes);
    let at = offset(run, index);
    let old = element::stored_bytes(&run[at..]);
    blob.splice(HEADER_BYTES + at, old, &Stored::new(element).pieces());
    true
}

/// Removes what equals `wanted`, within the quota; how many that were.
pub fn remove(blob: &mut impl Blob, quota: Quota, wanted: Element<'_>) -> usize {
    let bytes = blob.bytes();
    let run = run(bytes);
    let found = matches(run, wanted, quota);
    let (Some(first), Some(last)) = (found.first(), found.last()) else {
        return 0;
    };
    let edited = first.start..last.end;
    let left = len(bytes) - found.len();
    if left == 0 {
        clear(blob);
        return found.len();
    }
    // One edit from the first removed element to the last, with what lies between them kept.
    let mut between = SmallVec::<[u8; 512]>::new();
    for pair in found.windows(2) {
        between.extend_from_slice(&run[pair[0].end..pair[1].start]);
    }
    blob.splice(HEADER_BYTES + edited.start, edited.len(), &[&between]);
    blob.overwrite(0, &count_bytes(left));
    found.len()
}

/// Keeps only the elements of `range`.
pub fn trim(blob: &mut impl Blob, range: Range<usize>) {
    let bytes = blob.bytes();
    let run = run(bytes);
    let end = range.end.min(len(bytes));
    let start = range.start.min(end);
    let kept = offset(run, start)..offset(run, end);
    keep(blob, kept, end - start);
}

/// Keeps the elements at `kept`, which are `count`.
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
        .expect("an element is a byte at least and PACKED_BYTES_MAX is far below 64 KiB")
        .to_le_bytes()
}
