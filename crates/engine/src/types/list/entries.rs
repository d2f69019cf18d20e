//! A run of entries, end to end: walked from either side, searched and measured. Where the run
//! lives (behind a packed list's header, in a chunk) is the owner's business.

use super::entry;
use super::limits::Extent;
use crate::types::element::{self, Element};

/// The elements of a run, from both ends.
#[derive(Clone)]
pub struct Entries<'a> {
    run: &'a [u8],
}

impl<'a> Entries<'a> {
    /// `run` must be whole entries.
    pub fn new(run: &'a [u8]) -> Self {
        Entries { run }
    }

    /// The bytes not walked yet.
    pub fn rest(&self) -> &'a [u8] {
        self.run
    }
}

impl<'a> Iterator for Entries<'a> {
    type Item = Element<'a>;

    #[inline]
    fn next(&mut self) -> Option<Element<'a>> {
        if self.run.is_empty() {
            return None;
        }
        let (element, bytes) = entry::decode(self.run);
        self.run = &self.run[bytes..];
        Some(element)
    }
}

impl<'a> DoubleEndedIterator for Entries<'a> {
    #[inline]
    fn next_back(&mut self) -> Option<Element<'a>> {
        if self.run.is_empty() {
            return None;
        }
        let start = self.run.len() - entry::last_entry_bytes(self.run);
        let (element, _) = entry::decode(&self.run[start..]);
        self.run = &self.run[..start];
        Some(element)
    }
}

/// A run and how many entries it has, which the run itself does not say.
#[derive(Clone, Copy)]
pub struct Run<'a> {
    pub bytes: &'a [u8],
    pub count: usize,
}

impl<'a> Run<'a> {
    pub fn size(self) -> Extent {
        Extent { bytes: self.bytes.len(), count: self.count }
    }

    /// Where entry `index` starts, walked from the nearer end; `index == count` is the end.
    pub fn offset(self, index: usize) -> usize {
        debug_assert!(index <= self.count);
        if index <= self.count / 2 {
            let mut at = 0;
            for _ in 0..index {
                at += entry::entry_bytes(&self.bytes[at..]);
            }
            at
        } else {
            let mut end = self.bytes.len();
            for _ in index..self.count {
                end -= entry::last_entry_bytes(&self.bytes[..end]);
            }
            end
        }
    }

    /// The bytes of the entries in `range`, which must lie inside the run.
    pub fn slice(self, range: std::ops::Range<usize>) -> &'a [u8] {
        let start = self.offset(range.start);
        if range.end == self.count {
            return &self.bytes[start..];
        }
        // From the start of the range on or from the end of the run, whichever is nearer.
        let rest = Run { bytes: &self.bytes[start..], count: self.count - range.start };
        &rest.bytes[..rest.offset(range.len())]
    }

    /// The elements of `range`, which is cut to the run.
    pub fn within(self, range: std::ops::Range<usize>) -> Entries<'a> {
        let end = range.end.min(self.count);
        Entries::new(self.slice(range.start.min(end)..end))
    }

    /// Where the entries equal to `wanted` lie, in order; at most `limit` of them, the last ones if
    /// `from_back`.
    pub fn matches(self, wanted: Element<'_>, quota: Quota) -> Vec<std::ops::Range<usize>> {
        let mut found = Vec::new();
        let mut rest = Entries::new(self.bytes);
        let mut left = self.bytes.len();
        while found.len() < quota.limit {
            let Some(element) = (if quota.from_back { rest.next_back() } else { rest.next() })
            else {
                break;
            };
            let now = rest.rest().len();
            if element == wanted {
                found.push(if quota.from_back {
                    now..left
                } else {
                    self.bytes.len() - left..self.bytes.len() - now
                });
            }
            left = now;
        }
        if quota.from_back {
            found.reverse();
        }
        found
    }
}

/// How many matches are wanted, and from which side they are counted.
#[derive(Clone, Copy)]
pub struct Quota {
    pub limit: usize,
    pub from_back: bool,
}

/// Whether `run`, which came from outside, is exactly `count` well-formed entries. Only such a run
/// may be given to [`Entries`].
pub fn is_sound(run: &[u8], count: usize) -> bool {
    let mut rest = run;
    let mut seen = 0;
    while !rest.is_empty() {
        if element::decode_checked(rest).is_none() {
            return false;
        }
        let bytes = entry::entry_bytes(rest);
        if rest.len() < bytes || !back_agrees(&rest[..bytes]) {
            return false;
        }
        rest = &rest[bytes..];
        seen += 1;
    }
    seen == count
}

/// Whether an entry read from its end has the length that its head gives.
fn back_agrees(entry: &[u8]) -> bool {
    let continued = entry.iter().rev().take_while(|byte| **byte & 0x80 != 0).count();
    continued < 5 && continued < entry.len() && entry::last_entry_bytes(entry) == entry.len()
}
