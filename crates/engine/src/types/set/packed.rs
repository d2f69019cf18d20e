//! A small set of any members, packed: a byte that says how many they are, then their stored forms
//! end to end, in the order in which they came. No bytes at all are the empty set.

use crate::types::blob::Blob;
use crate::types::element::{self, Element, Stored, stored_bytes};
use std::ops::Range;

/// Longest packed set, which lies inside its table entry.
pub const PACKED_BYTES_MAX: usize = 1024;
/// Most members of one.
pub const PACKED_MEMBERS_MAX: usize = u8::MAX as usize;

const HEADER_BYTES: usize = 1;

#[inline]
pub fn len(bytes: &[u8]) -> usize {
    bytes.first().map_or(0, |count| usize::from(*count))
}

/// Where the form of a member lies.
#[inline]
pub fn find(bytes: &[u8], wanted: &Stored<'_>) -> Option<Range<usize>> {
    let mut at = HEADER_BYTES;
    while at < bytes.len() {
        let run = &bytes[at..];
        if wanted.starts(run) {
            return Some(at..at + wanted.bytes());
        }
        at += stored_bytes(run);
    }
    None
}

/// The members from the first to the last.
pub fn iter(bytes: &[u8]) -> Members<'_> {
    Members { rest: bytes.get(HEADER_BYTES..).unwrap_or(&[]) }
}

#[derive(Clone)]
pub struct Members<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Members<'a> {
    type Item = Element<'a>;

    #[inline]
    fn next(&mut self) -> Option<Element<'a>> {
        if self.rest.is_empty() {
            return None;
        }
        let (member, bytes) = element::decode(self.rest);
        self.rest = &self.rest[bytes..];
        Some(member)
    }
}

/// Where the form of the member at an index lies.
pub fn place(bytes: &[u8], index: usize) -> Range<usize> {
    let mut at = HEADER_BYTES;
    for _ in 0..index {
        at += stored_bytes(&bytes[at..]);
    }
    at..at + stored_bytes(&bytes[at..])
}

/// Whether one more member fits in.
#[inline]
pub fn has_room(bytes: &[u8], member: &Stored<'_>) -> bool {
    bytes.len().max(HEADER_BYTES) + member.bytes() <= PACKED_BYTES_MAX
        && len(bytes) < PACKED_MEMBERS_MAX
}

/// Adds a member that is not there yet and that there is room for.
pub fn add(blob: &mut impl Blob, member: &Stored<'_>) {
    let [head, payload] = member.pieces();
    let (total, count) = (blob.bytes().len(), len(blob.bytes()) as u8 + 1);
    if total == 0 {
        return blob.splice(0, 0, &[&[count], head, payload]);
    }
    blob.overwrite(0, &[count]);
    blob.splice(total, 0, &[head, payload]);
}

/// Removes the member whose form lies there.
pub fn remove(blob: &mut impl Blob, place: Range<usize>) {
    let (total, count) = (blob.bytes().len(), len(blob.bytes()) as u8);
    if count == 1 {
        return blob.splice(0, total, &[]);
    }
    blob.overwrite(0, &[count - 1]);
    blob.splice(place.start, place.len(), &[]);
}
