//! One cell: the records whose hashes share a prefix, in one block of bytes.
//!
//! ```text
//! fingerprints: 8 for each group of records, the last group filled up with zeros
//! starts:       for each group where its first record lies, 4 bytes
//! records:      end to end, in no order: the key's stored form, then its payload
//! ```
//!
//! A look-up compares the fingerprints of a whole group at once, jumps to the group's first record
//! and walks over at most seven others.

use super::{Payload, Span};
use crate::store::raw::prefetch::prefetch_bytes;
use crate::types::capacity::allocated_bytes;
use crate::types::cow_vec::Part;
use crate::types::element::{Stored, is_same, stored_bytes};
use std::marker::PhantomData;

/// Records of a group: as many fingerprints as are compared at once.
pub(super) const GROUP: usize = 8;
/// What a group takes besides its records.
const GROUP_BYTES: usize = GROUP + START_BYTES;
const START_BYTES: usize = 4;
/// Stands for a start that does not fit: the group is found by walking from one before it.
const START_FAR: u32 = u32::MAX;

const LOW_BITS: u64 = 0x0101_0101_0101_0101;
const HIGH_BITS: u64 = 0x8080_8080_8080_8080;

/// A record to be copied into a cell: its fingerprint and its bytes.
pub(super) type Copied<'a> = (u8, &'a [u8]);

/// Where a record lies.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    pub index: usize,
    /// From the start of the records.
    pub at: usize,
}

/// A key to be looked for.
pub(super) trait Wanted {
    /// Whether the record that starts `run` has this key.
    fn is_key_of(&self, run: &[u8]) -> bool;
}

impl Wanted for Stored<'_> {
    #[inline]
    fn is_key_of(&self, run: &[u8]) -> bool {
        self.starts(run)
    }
}

/// A key in its stored form.
impl Wanted for &[u8] {
    #[inline]
    fn is_key_of(&self, run: &[u8]) -> bool {
        run.get(..self.len()).is_some_and(|key| is_same(key, self))
    }
}

#[derive(Debug)]
pub(super) struct Cell {
    data: Vec<u8>,
    count: u32,
    pub span: Span,
}

impl Clone for Cell {
    /// With the same room, so that what was counted of the one is right for the other.
    fn clone(&self) -> Self {
        let mut data = Vec::with_capacity(self.data.capacity());
        data.extend_from_slice(&self.data);
        Cell { data, ..*self }
    }
}

/// Stands where a cell was taken away.
impl Default for Cell {
    fn default() -> Self {
        Cell::new(Span::ALL)
    }
}

impl Part for Cell {
    fn elements(&self) -> usize {
        self.len()
    }
}

impl Cell {
    pub fn new(span: Span) -> Self {
        Cell { data: Vec::new(), count: 0, span }
    }

    /// A cell of copies of records.
    pub fn of(span: Span, records: &[Copied<'_>]) -> Self {
        let groups = records.len().div_ceil(GROUP);
        let bytes: usize = records.iter().map(|(_, record)| record.len()).sum();
        let total = groups * GROUP_BYTES + bytes;
        let mut data = Vec::new();
        data.reserve_exact(roomy(total));
        data.extend(records.iter().map(|(fingerprint, _)| *fingerprint));
        data.resize(groups * GROUP, 0);
        let mut start = 0;
        for group in records.chunks(GROUP) {
            data.extend_from_slice(&start_bytes(start));
            start += group.iter().map(|(_, record)| record.len()).sum::<usize>();
        }
        records.iter().for_each(|(_, record)| data.extend_from_slice(record));
        Cell { data, count: records.len() as u32, span }
    }

    #[inline]
    pub fn len(&self) -> usize {
        self.count as usize
    }

    /// Bytes of all that is in it.
    #[inline]
    pub fn bytes(&self) -> usize {
        self.data.len()
    }

    #[inline]
    pub fn capacity(&self) -> usize {
        self.data.capacity()
    }

    /// Bytes on the heap.
    #[inline]
    pub fn memory_bytes(&self) -> usize {
        allocated_bytes(self.data.capacity())
    }

    #[inline]
    fn groups(&self) -> usize {
        self.len().div_ceil(GROUP)
    }

    #[inline]
    pub fn fingerprints(&self) -> &[u8] {
        &self.data[..self.len()]
    }

    #[inline]
    fn records_at(&self) -> usize {
        self.groups() * GROUP_BYTES
    }

    #[inline]
    pub fn records(&self) -> &[u8] {
        &self.data[self.records_at()..]
    }

    /// Where the first record of a group lies.
    #[inline]
    fn start<P: Payload>(&self, group: usize) -> usize {
        match self.noted_start(group) {
            START_FAR => self.far_start::<P>(group),
            start => start as usize,
        }
    }

    #[inline]
    fn noted_start(&self, group: usize) -> u32 {
        let at = self.groups() * GROUP + group * START_BYTES;
        let bytes = self.data[at..].first_chunk().expect("each group has a start");
        u32::from_le_bytes(*bytes)
    }

    #[cold]
    fn far_start<P: Payload>(&self, group: usize) -> usize {
        let near = (0..group).rev().find(|before| self.noted_start(*before) != START_FAR);
        let near = near.expect("the first group starts at zero");
        let first = self.noted_start(near) as usize;
        (near * GROUP..group * GROUP)
            .fold(first, |at, _| at + record_bytes::<P>(&self.records()[at..]))
    }

    fn note_start(&mut self, group: usize, start: usize) {
        let at = self.groups() * GROUP + group * START_BYTES;
        self.data[at..at + START_BYTES].copy_from_slice(&start_bytes(start));
    }

    /// The record with this key.
    #[inline]
    pub fn find<P: Payload>(&self, fingerprint: u8, wanted: &impl Wanted) -> Option<Found> {
        let groups = self.groups();
        let (words, _) = self.data[..groups * GROUP].as_chunks::<GROUP>();
        let pattern = u64::from(fingerprint) * LOW_BITS;
        for (group, word) in words.iter().enumerate() {
            let mut equal = zero_bytes(u64::from_le_bytes(*word) ^ pattern);
            while equal != 0 {
                let index = group * GROUP + equal.trailing_zeros() as usize / 8;
                if index >= self.len() {
                    return None;
                }
                let at = self.offset::<P>(index);
                if wanted.is_key_of(&self.records()[at..]) {
                    return Some(Found { index, at });
                }
                equal &= equal - 1;
            }
        }
        None
    }

    /// Asks for the memory of its records.
    #[inline]
    pub fn prefetch(&self) {
        prefetch_bytes(&self.data);
    }

    /// Where the record of an index lies.
    #[inline]
    pub fn offset<P: Payload>(&self, index: usize) -> usize {
        let records = self.records();
        let first = self.start::<P>(index / GROUP);
        (0..index % GROUP).fold(first, |at, _| at + record_bytes::<P>(&records[at..]))
    }

    /// The record at a position that was found.
    #[inline]
    pub fn record<P: Payload>(&self, at: usize) -> &[u8] {
        let run = &self.records()[at..];
        &run[..record_bytes::<P>(run)]
    }

    #[inline]
    pub fn iter<P: Payload>(&self) -> Records<'_, P> {
        Records { fingerprints: self.fingerprints(), rest: self.records(), form: PhantomData }
    }

    /// Adds a record, whose key must be new, given in pieces.
    pub fn add(&mut self, fingerprint: u8, pieces: [&[u8]; 2], payload: &[&[u8]]) {
        let all = || pieces.iter().chain(payload);
        let added: usize = all().map(|piece| piece.len()).sum();
        let needs_group = self.len().is_multiple_of(GROUP);
        let frame = if needs_group { GROUP_BYTES } else { 0 };
        self.make_room(added + frame);
        if needs_group {
            self.add_group();
        }
        self.data[self.count as usize] = fingerprint;
        all().for_each(|piece| self.data.extend_from_slice(piece));
        self.count += 1;
    }

    fn make_room(&mut self, added: usize) {
        let total = self.data.len() + added;
        if total > self.data.capacity() {
            self.data.reserve_exact(roomy(total) - self.data.len());
        }
    }

    /// Makes room for the fingerprints and the start of one more group, which starts at the end.
    fn add_group(&mut self) {
        let groups = self.groups();
        let (starts_at, records_at, total) =
            (groups * GROUP, groups * GROUP_BYTES, self.data.len());
        self.data.resize(total + GROUP_BYTES, 0);
        self.data.copy_within(records_at..total, records_at + GROUP_BYTES);
        self.data.copy_within(starts_at..records_at, starts_at + GROUP);
        self.data[starts_at..starts_at + GROUP].fill(0);
        let last = (groups + 1) * GROUP_BYTES - START_BYTES;
        self.data[last..last + START_BYTES].copy_from_slice(&start_bytes(total - records_at));
    }

    /// Replaces the payload of a record.
    pub fn set_payload<P: Payload>(&mut self, found: Found, payload: &[&[u8]]) {
        let run = &self.records()[found.at..];
        let key = stored_bytes(run);
        let old = P::bytes(&run[key..]);
        let new: usize = payload.iter().map(|piece| piece.len()).sum();
        if new != old {
            self.resize_payload::<P>(found, key, (old, new));
        }
        let mut to = self.records_at() + found.at + key;
        for piece in payload {
            self.data[to..to + piece.len()].copy_from_slice(piece);
            to += piece.len();
        }
    }

    /// Moves what stands behind a record's payload, which begins `key` bytes into it.
    fn resize_payload<P: Payload>(&mut self, found: Found, key: usize, (old, new): (usize, usize)) {
        if new > old {
            self.make_room(new - old);
        }
        // From the last on: a start that is far is found from those before it.
        for group in (found.index / GROUP + 1..self.groups()).rev() {
            let start = self.start::<P>(group);
            self.note_start(group, start + new - old);
        }
        let at = self.records_at() + found.at + key;
        let total = self.data.len();
        if new > old {
            self.data.resize(total + new - old, 0);
        }
        self.data.copy_within(at + old..total, at + new);
        self.data.truncate(total + new - old);
        self.give_back();
    }

    pub fn remove<P: Payload>(&mut self, found: Found) {
        let (groups, count) = (self.groups(), self.len());
        let removed = record_bytes::<P>(&self.records()[found.at..]);
        // From the next group on each begins with what was its second record.
        for group in (found.index / GROUP + 1..groups).rev() {
            let start = self.start::<P>(group);
            let first = record_bytes::<P>(&self.records()[start..]);
            self.note_start(group, start + first - removed);
        }
        let records_at = self.records_at();
        let at = records_at + found.at;
        self.data.copy_within(at + removed.., at);
        self.data.truncate(self.data.len() - removed);
        self.data.copy_within(found.index + 1..count, found.index);
        self.data[count - 1] = 0;
        if count % GROUP == 1 {
            // The last group is empty now: its start goes, and so do its fingerprints.
            let (starts_at, total) = ((groups - 1) * GROUP, self.data.len());
            self.data.copy_within(groups * GROUP..records_at - START_BYTES, starts_at);
            self.data.copy_within(records_at..total, records_at - GROUP_BYTES);
            self.data.truncate(total - GROUP_BYTES);
        }
        self.count -= 1;
        self.give_back();
    }

    /// Gives memory back once half of it is unused.
    fn give_back(&mut self) {
        if self.data.len() < self.data.capacity() / 2 {
            self.data.shrink_to(roomy(self.data.len()));
        }
    }
}

fn start_bytes(start: usize) -> [u8; START_BYTES] {
    u32::try_from(start).unwrap_or(START_FAR).to_le_bytes()
}

/// The high bit of each byte that is zero.
#[inline]
fn zero_bytes(word: u64) -> u64 {
    // Adding 0x7f carries into the high bit from any of the low seven bits.
    !(((word & !HIGH_BITS) + !HIGH_BITS) | word) & HIGH_BITS
}

/// Bytes of the record that starts `run`.
#[inline]
pub(super) fn record_bytes<P: Payload>(run: &[u8]) -> usize {
    let key = stored_bytes(run);
    key + P::bytes(&run[key..])
}

/// The bytes to ask the allocator for so that none of what it gives lies idle: it has four sizes
/// for each power of two.
fn roomy(bytes: usize) -> usize {
    match bytes {
        0 => 0,
        1..=128 => bytes.next_multiple_of(16),
        _ => bytes.next_multiple_of(1 << ((bytes - 1).ilog2() - 2)),
    }
}

/// The records of a cell: fingerprint and bytes.
pub(super) struct Records<'a, P> {
    fingerprints: &'a [u8],
    rest: &'a [u8],
    form: PhantomData<fn() -> P>,
}

impl<'a, P: Payload> Iterator for Records<'a, P> {
    type Item = Copied<'a>;

    #[inline]
    fn next(&mut self) -> Option<Copied<'a>> {
        let (fingerprint, others) = self.fingerprints.split_first()?;
        let (record, rest) = self.rest.split_at(record_bytes::<P>(self.rest));
        (self.fingerprints, self.rest) = (others, rest);
        Some((*fingerprint, record))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.fingerprints.len(), Some(self.fingerprints.len()))
    }
}
