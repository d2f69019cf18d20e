//! A list of medium size, in its table entry like a packed one: the entries of a listpack end to
//! end, so that it is walked from either end, and spare room before and behind them, so that most
//! pops and pushes move nothing.
//!
//! | bytes | what |
//! |---|---|
//! | 0..2 | how many elements; the highest bit is set, which it never is in a packed list |
//! | 2..4 | bytes of spare room before the entries |
//! | 4..6 | bytes of spare room behind them |
//! | 6.. | spare room, entries, spare room |
//!
//! Once it is empty it is no bytes at all, which are a packed list. Whether a list may have this
//! form is said by `limits.rs`; callers ask first.

use super::entries::{Entries, Quota, Run};
use super::entry::{self, Entry};
use super::limits::MEDIUM_BYTES_MAX;
use super::{End, InsertAt};
use crate::types::blob::Blob;
use crate::types::element::Element;
use smallvec::SmallVec;
use std::ops::Range;

pub const HEADER_BYTES: usize = 6;
const MARK: u16 = 0x8000;
/// Room that is made at once before the entries: this share of them, but not less than so much.
const FRONT_SHARE: usize = 16;
const FRONT_BYTES_MIN: usize = 64;
/// Spare room on one side beyond this share of the entries, and so much more, is given back.
const SPARE_SHARE: usize = 8;
const SPARE_BYTES_MIN: usize = 64;

const NOTHING: [u8; FRONT_BYTES_MIN + MEDIUM_BYTES_MAX / FRONT_SHARE] =
    [0; FRONT_BYTES_MIN + MEDIUM_BYTES_MAX / FRONT_SHARE];

/// Whether these bytes are a list of this form, and not a packed one.
#[inline]
pub fn is_medium(bytes: &[u8]) -> bool {
    matches!(bytes, [_, high, ..] if high & (MARK >> 8) as u8 != 0)
}

/// What the header says.
#[derive(Clone, Copy)]
struct Frame {
    count: usize,
    front: usize,
    back: usize,
}

impl Frame {
    #[inline]
    fn of(bytes: &[u8]) -> Self {
        let number = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        Frame {
            count: usize::from(number(0) & !MARK),
            front: usize::from(number(2)),
            back: usize::from(number(4)),
        }
    }

    #[inline]
    fn header(self) -> [u8; HEADER_BYTES] {
        let number = |value: usize| {
            let short = u16::try_from(value);
            short.expect("entries and spare room are far below 64 KiB").to_le_bytes()
        };
        let [count, front, back] = [self.count, self.front, self.back].map(number);
        [count[0], count[1] | (MARK >> 8) as u8, front[0], front[1], back[0], back[1]]
    }

    /// Where the entries lie among all bytes.
    #[inline]
    fn range(self, bytes: &[u8]) -> Range<usize> {
        HEADER_BYTES + self.front..bytes.len() - self.back
    }
}

#[inline]
pub fn len(bytes: &[u8]) -> usize {
    Frame::of(bytes).count
}

#[inline]
pub fn run(bytes: &[u8]) -> Run<'_> {
    let frame = Frame::of(bytes);
    Run { bytes: &bytes[frame.range(bytes)], count: frame.count }
}

/// A list of these runs, one after the other.
pub fn build<'r>(runs: impl Iterator<Item = Run<'r>>) -> Vec<u8> {
    let mut bytes = vec![0; HEADER_BYTES];
    let mut count = 0;
    for run in runs {
        bytes.extend_from_slice(run.bytes);
        count += run.count;
    }
    bytes[..HEADER_BYTES].copy_from_slice(&Frame { count, front: 0, back: 0 }.header());
    bytes
}

/// A list of these elements.
pub fn of<'e>(elements: impl Iterator<Item = Element<'e>>) -> Vec<u8> {
    let mut entries = Vec::new();
    let mut count = 0;
    for element in elements {
        let entry = Entry::new(element);
        entry.pieces().iter().for_each(|piece| entries.extend_from_slice(piece));
        count += 1;
    }
    build(std::iter::once(Run { bytes: &entries, count }))
}

/// Pushes the elements one after the other: the last one ends up outermost.
pub fn push<'e>(blob: &mut impl Blob, end: End, elements: impl Iterator<Item = Element<'e>>) {
    for element in elements {
        let entry = Entry::new(element);
        match end {
            End::Front => push_front(blob, &entry),
            End::Back => push_back(blob, &entry),
        }
    }
}

#[inline]
fn push_back(blob: &mut impl Blob, entry: &Entry<'_>) {
    let mut frame = Frame::of(blob.bytes());
    let at = blob.bytes().len() - frame.back;
    let spare = frame.back;
    frame.count += 1;
    frame.back = spare.saturating_sub(entry.bytes());
    blob.overwrite(0, &frame.header());
    blob.splice(at, spare - frame.back, &entry.pieces());
}

#[inline]
fn push_front(blob: &mut impl Blob, entry: &Entry<'_>) {
    let mut frame = Frame::of(blob.bytes());
    frame.count += 1;
    if let Some(front) = frame.front.checked_sub(entry.bytes()) {
        frame.front = front;
        blob.overwrite(0, &frame.header());
        let mut at = HEADER_BYTES + front;
        for piece in entry.pieces() {
            blob.overwrite(at, piece);
            at += piece.len();
        }
        return;
    }
    let spare = frame.front;
    let entries = frame.range(blob.bytes()).len();
    frame.front = FRONT_BYTES_MIN.max(entries / FRONT_SHARE);
    let [head, payload, back] = entry.pieces();
    blob.overwrite(0, &frame.header());
    blob.splice(HEADER_BYTES, spare, &[&NOTHING[..frame.front], head, payload, back]);
}

/// Removes up to `count` elements from one end, shown to `visit` from that end inwards.
pub fn pop(blob: &mut impl Blob, end: End, count: usize, mut visit: impl FnMut(Element<'_>)) {
    let run = run(blob.bytes());
    let count = count.min(run.count);
    let mut rest = Entries::new(run.bytes);
    match end {
        End::Front => rest.by_ref().take(count).for_each(&mut visit),
        End::Back => rest.by_ref().rev().take(count).for_each(&mut visit),
    }
    let cut = run.bytes.len() - rest.rest().len();
    let mut frame = Frame::of(blob.bytes());
    frame.count -= count;
    match end {
        End::Front => frame.front += cut,
        End::Back => frame.back += cut,
    }
    reframe(blob, frame);
}

/// Writes the header, and gives back spare room that is too much.
fn reframe(blob: &mut impl Blob, frame: Frame) {
    let total = blob.bytes().len();
    if frame.count == 0 {
        return blob.splice(0, total, &[]);
    }
    let spare_max = frame.range(blob.bytes()).len() / SPARE_SHARE + SPARE_BYTES_MIN;
    let kept = |spare: usize| if spare > spare_max { 0 } else { spare };
    let fitted = Frame { count: frame.count, front: kept(frame.front), back: kept(frame.back) };
    blob.overwrite(0, &fitted.header());
    if fitted.back < frame.back {
        blob.splice(total - frame.back, frame.back, &[]);
    }
    if fitted.front < frame.front {
        blob.splice(HEADER_BYTES, frame.front, &[]);
    }
}

/// Puts `element` beside the first one equal to `pivot`: the new length, or `None` without a pivot.
pub fn insert(
    blob: &mut impl Blob,
    side: InsertAt,
    pivot: Element<'_>,
    element: Element<'_>,
) -> Option<usize> {
    let first = Quota { limit: 1, from_back: false };
    let found = run(blob.bytes()).matches(pivot, first).pop()?;
    let mut frame = Frame::of(blob.bytes());
    let at = match side {
        InsertAt::Before => found.start,
        InsertAt::After => found.end,
    };
    frame.count += 1;
    blob.overwrite(0, &frame.header());
    blob.splice(HEADER_BYTES + frame.front + at, 0, &Entry::new(element).pieces());
    Some(frame.count)
}

/// Replaces the element at `index`; `false` if there is none.
pub fn set(blob: &mut impl Blob, index: usize, element: Element<'_>) -> bool {
    let run = run(blob.bytes());
    if index >= run.count {
        return false;
    }
    let at = run.offset(index);
    let old = entry::entry_bytes(&run.bytes[at..]);
    let start = Frame::of(blob.bytes()).range(blob.bytes()).start;
    blob.splice(start + at, old, &Entry::new(element).pieces());
    true
}

/// Removes what equals `wanted`, within the quota; how many that were.
pub fn remove(blob: &mut impl Blob, quota: Quota, wanted: Element<'_>) -> usize {
    let run = run(blob.bytes());
    let found = run.matches(wanted, quota);
    let (Some(first), Some(last)) = (found.first(), found.last()) else {
        return 0;
    };
    // One edit from the first removed entry to the last, with what lies between them kept.
    let edited = first.start..last.end;
    let mut between = SmallVec::<[u8; 512]>::new();
    for pair in found.windows(2) {
        between.extend_from_slice(&run.bytes[pair[0].end..pair[1].start]);
    }
    let mut frame = Frame::of(blob.bytes());
    let start = frame.range(blob.bytes()).start;
    blob.splice(start + edited.start, edited.len(), &[&between]);
    frame.count -= found.len();
    reframe(blob, frame);
    found.len()
}

/// Keeps only the elements of `range`, which is cut to the list.
pub fn trim(blob: &mut impl Blob, range: Range<usize>) {
    let run = run(blob.bytes());
    let end = range.end.min(run.count);
    let start = range.start.min(end);
    let kept = run.offset(start)..run.offset(end);
    let mut frame = Frame::of(blob.bytes());
    frame.back += run.bytes.len() - kept.end;
    frame.front += kept.start;
    frame.count = end - start;
    reframe(blob, frame);
}
