//! A small set of any members, packed, in the order in which they came. No bytes at all are the
//! empty set. Otherwise a byte says how many members there are, and another how they lie:
//!
//! | second byte | then |
//! |---|---|
//! | 0 | stored forms, end to end |
//! | n | texts of n bytes each, end to end, and nothing else |
//!
//! Names and ids are often of one length. Then the second form saves a byte for each, and a member
//! is looked for without reading the others' lengths.

use crate::types::blob::Blob;
use crate::types::element::{self, Element, Needle, Stored, stored_bytes};
use smallvec::SmallVec;
use std::ops::Range;

/// Longest packed set of any number of members, which lies inside its table entry.
pub const PACKED_BYTES_MAX: usize = 1024;
/// The same for one of few members, which are looked through quickly however long they are.
const PACKED_FEW_BYTES_MAX: usize = 6 * 1024;
const PACKED_FEW_MAX: usize = 128;
/// Most members of one.
const PACKED_MEMBERS_MAX: usize = u8::MAX as usize;

const HEADER_BYTES: usize = 2;
const MIXED: u8 = 0;

#[inline]
pub fn len(bytes: &[u8]) -> usize {
    bytes.first().map_or(0, |count| usize::from(*count))
}

/// The length of every member, if they all have the same and are texts.
#[inline]
fn stride(bytes: &[u8]) -> Option<usize> {
    bytes.get(1).filter(|stride| **stride != MIXED).map(|stride| usize::from(*stride))
}

/// The length that a member would have beside others of the same.
#[inline]
fn stride_of(member: &Stored<'_>) -> Option<u8> {
    let [_, text] = member.pieces();
    // An integer's form has no payload.
    u8::try_from(text.len()).ok().filter(|stride| *stride != MIXED)
}

/// Where a member lies.
#[inline]
pub fn find(bytes: &[u8], wanted: &Stored<'_>) -> Option<Range<usize>> {
    let Some(stride) = stride(bytes) else { return find_mixed(bytes, wanted) };
    let [_, text] = wanted.pieces();
    if text.len() != stride {
        return None;
    }
    let starts = HEADER_BYTES..bytes.len();
    let start = match text.last_chunk::<8>() {
        // Members that differ mostly do so at their ends.
        Some(end) => starts.step_by(stride).find(|start| {
            let other = &bytes[*start..start + stride];
            other.last_chunk() == Some(end) && other == text
        })?,
        None => find_short(bytes, &Needle::new([text, &[]]), stride)?,
    };
    Some(start..start + stride)
}

/// Where a member of fewer than eight bytes starts.
#[inline]
fn find_short(bytes: &[u8], needle: &Needle<'_>, stride: usize) -> Option<usize> {
    let mut at = HEADER_BYTES;
    // A word at a time, as long as there is a whole one.
    while let Some(word) = bytes.get(at..at + size_of::<u64>()).and_then(<[u8]>::first_chunk) {
        if needle.may_start(u64::from_le_bytes(*word)) {
            return Some(at);
        }
        at += stride;
    }
    while at < bytes.len() {
        if needle.starts(&bytes[at..]) {
            return Some(at);
        }
        at += stride;
    }
    None
}

fn find_mixed(bytes: &[u8], wanted: &Stored<'_>) -> Option<Range<usize>> {
    let (needle, mut at) = (wanted.needle(), HEADER_BYTES);
    while at < bytes.len() {
        let run = &bytes[at..];
        if needle.starts(run) {
            return Some(at..at + wanted.bytes());
        }
        at += stored_bytes(run);
    }
    None
}

/// The members from the first to the last.
pub fn iter(bytes: &[u8]) -> Members<'_> {
    Members { stride: stride(bytes), rest: bytes.get(HEADER_BYTES..).unwrap_or(&[]) }
}

#[derive(Clone)]
pub struct Members<'a> {
    stride: Option<usize>,
    rest: &'a [u8],
}

impl Members<'_> {
    /// Where the next one starts in the bytes that these are the members of.
    pub fn start(&self, bytes: &[u8]) -> usize {
        bytes.len() - self.rest.len()
    }
}

impl<'a> Iterator for Members<'a> {
    type Item = Element<'a>;

    #[inline]
    fn next(&mut self) -> Option<Element<'a>> {
        if self.rest.is_empty() {
            return None;
        }
        let (member, bytes) = match self.stride {
            Some(stride) => (Element::Bytes(&self.rest[..stride]), stride),
            None => element::decode(self.rest),
        };
        self.rest = &self.rest[bytes..];
        Some(member)
    }
}

/// Where the member at an index lies.
pub fn range(bytes: &[u8], index: usize) -> Range<usize> {
    if let Some(stride) = stride(bytes) {
        let start = HEADER_BYTES + index * stride;
        return start..start + stride;
    }
    let mut at = HEADER_BYTES;
    for _ in 0..index {
        at += stored_bytes(&bytes[at..]);
    }
    at..at + stored_bytes(&bytes[at..])
}

/// The member that starts at an offset.
pub fn member_at(bytes: &[u8], start: usize) -> Element<'_> {
    match stride(bytes) {
        Some(stride) => Element::Bytes(&bytes[start..start + stride]),
        None => element::decode(&bytes[start..]).0,
    }
}

/// The member that lies in a range.
pub fn member(bytes: &[u8], range: Range<usize>) -> Element<'_> {
    match stride(bytes) {
        Some(_) => Element::Bytes(&bytes[range]),
        None => element::decode(&bytes[range]).0,
    }
}

/// Whether one more member fits in.
#[inline]
pub fn has_room(bytes: &[u8], member: &Stored<'_>) -> bool {
    let count = len(bytes);
    // At most what it takes once each member has a head.
    let heads = stride(bytes).map_or(0, |stride| if stride < 64 { count } else { 2 * count });
    let total = bytes.len().max(HEADER_BYTES) + heads + member.bytes();
    (total <= PACKED_BYTES_MAX && count < PACKED_MEMBERS_MAX)
        || (total <= PACKED_FEW_BYTES_MAX && count < PACKED_FEW_MAX)
}

/// Adds a member that is not there yet and that there is room for.
pub fn add(blob: &mut impl Blob, member: &Stored<'_>) {
    let (total, count) = (blob.bytes().len(), len(blob.bytes()) as u8 + 1);
    let [head, text] = member.pieces();
    if total == 0 {
        return match stride_of(member) {
            Some(stride) => blob.splice(0, 0, &[&[count, stride], text]),
            None => blob.splice(0, 0, &[&[count, MIXED], head, text]),
        };
    }
    if let Some(stride) = stride(blob.bytes()) {
        if text.len() == stride {
            blob.overwrite(0, &[count]);
            return blob.splice(total, 0, &[text]);
        }
        let all = mixed(blob.bytes(), count);
        return blob.splice(0, total, &[&all, head, text]);
    }
    blob.overwrite(0, &[count]);
    blob.splice(total, 0, &[head, text]);
}

/// The same members in their stored forms, behind a header that says how many there will be.
#[cold]
fn mixed(bytes: &[u8], count: u8) -> SmallVec<[u8; 256]> {
    let mut all = SmallVec::from_slice(&[count, MIXED]);
    for member in iter(bytes) {
        Stored::new(member).pieces().iter().for_each(|piece| all.extend_from_slice(piece));
    }
    all
}

/// Removes the member that lies there.
pub fn remove(blob: &mut impl Blob, range: Range<usize>) {
    let (total, count) = (blob.bytes().len(), len(blob.bytes()) as u8);
    if count == 1 {
        return blob.splice(0, total, &[]);
    }
    blob.overwrite(0, &[count - 1]);
    blob.splice(range.start, range.len(), &[]);
}
