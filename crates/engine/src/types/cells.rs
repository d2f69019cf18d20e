//! The table under large sets and large hashes: keys, each with a payload of bytes, packed into
//! cells that lie in the order of the keys' hashes.
//!
//! It is extendible hashing with the directory indexed by the highest bits of the hash. A cell that
//! is overfull splits in two, a cell that is nearly empty joins its other half, so that each change
//! moves some dozens of records at most. The order of the cells is the order of the hashes whatever
//! the depth of the directory: a scan's cursor is a position in that order, and two tables of one
//! hasher are combined by walking both side by side (see `combine`).
//!
//! What a payload means is its owner's business: a set has none and pays nothing for it.

mod build;
mod cell;
mod combine;
mod due;
mod pool;
mod span;
#[cfg(test)]
mod tests;
mod walk;

use crate::types::capacity::allocated_for;
use crate::types::element::{self, Element, Stored, stored_bytes};
use cell::{Cell, Copied, Found};
use pool::Pool;
use russet_base::hash::KeyHasher;
use smallvec::SmallVec;
use span::{Span, position, slot};
use std::marker::PhantomData;

pub use combine::Wanted;
pub use due::position_of;
pub use walk::Spot;

/// Most bits that a directory is indexed by.
const DEPTH_MAX: u32 = 31;
/// A cell of more records splits.
const CELL_RECORDS_MAX: usize = 64;
/// A cell of more bytes splits as well, if it has records enough for each half.
const CELL_BYTES_MAX: usize = 4096;
const CELL_RECORDS_FEW: usize = 16;
/// A cell of more bytes than this splits even if one record is left to each half.
const CELL_BYTES_HUGE: usize = 64 * 1024;
/// Two halves that have no more than this together become one cell.
const MERGED_RECORDS_MAX: usize = 24;
const MERGED_BYTES_MAX: usize = CELL_BYTES_MAX / 2;
/// A directory of more slots is halved if it can be.
const SLOTS_PER_CELL_MAX: usize = 8;

/// How the bytes behind a key are measured.
pub trait Payload {
    /// Bytes of the payload that starts `run`. It must be able to tell where its own end is.
    fn bytes(run: &[u8]) -> usize;
}

/// A set's members have none.
#[derive(Clone, Copy, Debug)]
pub struct NoPayload;

impl Payload for NoPayload {
    #[inline]
    fn bytes(_run: &[u8]) -> usize {
        0
    }
}

/// Hashes keys. Equal hashers must hash equally.
pub trait HashElement: Copy + PartialEq {
    fn hash_element(&self, element: Element<'_>) -> u64;
}

impl HashElement for KeyHasher {
    #[inline]
    fn hash_element(&self, element: Element<'_>) -> u64 {
        match element {
            Element::Bytes(bytes) => self.hash(bytes),
            Element::Int(value) => self.hash(&value.to_le_bytes()),
        }
    }
}

/// The part of a hash that is kept beside its record. The directory looks at the other end.
#[inline]
fn fingerprint(hash: u64) -> u8 {
    hash as u8
}

/// A key in its stored form, which starts `record`, and what stands behind it.
#[inline]
fn parts(record: &[u8]) -> (Element<'_>, &[u8]) {
    let (key, bytes) = element::decode(record);
    (key, &record[bytes..])
}

pub struct Cells<P, H = KeyHasher> {
    hasher: H,
    len: usize,
    /// For each slot the number of its cell.
    directory: Box<[u32]>,
    depth: u32,
    /// Cells that have a slot of their own: without any the directory could be half as long.
    deepest: u32,
    /// The most records that a cell ever had.
    fullest: u32,
    /// A mark of the owner's, kept here because there is room for it: beside the table it would
    /// take eight bytes.
    pub(super) mark: bool,
    pool: Pool,
    payload: PhantomData<fn() -> P>,
}

impl<P, H: Copy> Clone for Cells<P, H> {
    fn clone(&self) -> Self {
        Cells {
            hasher: self.hasher,
            directory: self.directory.clone(),
            pool: self.pool.clone(),
            payload: PhantomData,
            ..*self
        }
    }
}

impl<P: Payload, H: HashElement> Cells<P, H> {
    pub fn new(hasher: H) -> Self {
        Self::with_cells(hasher, vec![Cell::new(Span::ALL)])
    }

    /// With cells for about so many records.
    pub fn with_room_for(hasher: H, records: usize) -> Self {
        let cells = (records / CELL_RECORDS_MAX).max(1).next_power_of_two();
        let depth = cells.ilog2().min(DEPTH_MAX);
        let mut spans = vec![Span::ALL];
        for _ in 0..depth {
            spans = spans.into_iter().flat_map(Span::halves).collect();
        }
        Self::with_cells(hasher, spans.into_iter().map(Cell::new).collect())
    }

    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub fn hasher(&self) -> H {
        self.hasher
    }

    /// Bytes on the heap.
    pub fn memory_bytes(&self) -> usize {
        allocated_for::<u32>(self.directory.len()) + self.pool.memory_bytes()
    }

    #[inline]
    fn number_at(&self, position: u32) -> u32 {
        self.directory[slot(position, self.depth)]
    }

    #[inline]
    fn cell_at(&self, position: u32) -> &Cell {
        &self.pool[self.number_at(position)]
    }

    /// The payload of a key.
    #[inline]
    pub fn find(&self, key: Element<'_>) -> Option<&[u8]> {
        let hash = self.hasher.hash_element(key);
        let cell = self.cell_at(position(hash));
        let found = cell.find::<P>(fingerprint(hash), &Stored::new(key))?;
        let record = cell.record::<P>(found.at);
        Some(&record[stored_bytes(record)..])
    }

    #[inline]
    pub fn contains(&self, key: Element<'_>) -> bool {
        let hash = self.hasher.hash_element(key);
        let cell = self.cell_at(position(hash));
        cell.find::<P>(fingerprint(hash), &Stored::new(key)).is_some()
    }

    /// Adds a key, or replaces its payload. The payload is given in pieces. Whether it is new.
    pub fn insert(&mut self, key: Element<'_>, payload: &[&[u8]]) -> bool {
        self.put(key, payload, true)
    }

    /// Adds a key that is not there yet; whether it was so.
    #[inline]
    pub fn add(&mut self, key: Element<'_>, payload: &[&[u8]]) -> bool {
        self.put(key, payload, false)
    }

    #[inline]
    fn put(&mut self, key: Element<'_>, payload: &[&[u8]], replaces: bool) -> bool {
        let hash = self.hasher.hash_element(key);
        let number = self.number_at(position(hash));
        let stored = Stored::new(key);
        let found = self.pool[number].find::<P>(fingerprint(hash), &stored);
        if found.is_some() && !replaces {
            return false;
        }
        let (records, is_overfull) = self.pool.edit(number, |cell| {
            match found {
                Some(found) => cell.set_payload::<P>(found, payload),
                None => cell.add(fingerprint(hash), stored.pieces(), payload),
            }
            (cell.len() as u32, is_overfull(cell))
        });
        self.len += usize::from(found.is_none());
        if is_overfull {
            self.relieve(position(hash));
        }
        self.fullest = self.fullest.max(records);
        found.is_none()
    }

    #[inline]
    pub fn remove(&mut self, key: Element<'_>) -> bool {
        self.remove_with(key, |_| ()).is_some()
    }

    /// Removes a key, after `last_look` has seen its payload.
    pub fn remove_with<R>(
        &mut self,
        key: Element<'_>,
        last_look: impl FnOnce(&[u8]) -> R,
    ) -> Option<R> {
        let hash = self.hasher.hash_element(key);
        let number = self.number_at(position(hash));
        let cell = &self.pool[number];
        let found = cell.find::<P>(fingerprint(hash), &Stored::new(key))?;
        let record = cell.record::<P>(found.at);
        let seen = last_look(&record[stored_bytes(record)..]);
        self.remove_found(number, found);
        Some(seen)
    }

    fn remove_found(&mut self, number: u32, found: Found) {
        self.pool.edit(number, |cell| cell.remove::<P>(found));
        self.len -= 1;
        let cell = &self.pool[number];
        let is_sparse = cell.len() < MERGED_RECORDS_MAX;
        let start = cell.span.start();
        if is_sparse {
            self.join(start);
        }
    }

    /// Splits the cell at a position until it is small enough, or may not be split.
    #[cold]
    fn relieve(&mut self, position: u32) {
        loop {
            let number = self.number_at(position);
            let cell = &self.pool[number];
            if !is_overfull(cell) || !self.may_split(cell) {
                return;
            }
            self.split(number);
        }
    }

    /// A cell whose records all agree in their hashes' next bits would double the directory again
    /// and again. It may do so only while the directory is small beside all records, or beside
    /// this cell; otherwise it stays as it is, however full.
    fn may_split(&self, cell: &Cell) -> bool {
        let depth = cell.span.depth();
        let doubled = self.directory.len() * 2;
        depth < self.depth
            || depth < DEPTH_MAX
                && (doubled <= self.len / 2 || doubled * size_of::<u32>() <= cell.bytes())
    }

    fn split(&mut self, number: u32) {
        let span = self.pool[number].span;
        if span.depth() == self.depth {
            self.directory = self.directory.iter().flat_map(|&cell| [cell, cell]).collect();
            self.depth += 1;
            self.deepest = 0;
        }
        let halves = self.halves_of(&self.pool[number]);
        let [lower, upper] = halves;
        if lower.span.depth() == self.depth {
            self.deepest += 2;
        }
        let slots = upper.span.slots(self.depth);
        self.pool.replace(number, lower);
        let added = self.pool.push(upper);
        self.directory[slots].fill(added);
    }

    fn halves_of(&self, cell: &Cell) -> [Cell; 2] {
        let mut sides = [SmallVec::<[Copied<'_>; CELL_RECORDS_MAX]>::new(), SmallVec::new()];
        for (fingerprint, record) in cell.iter::<P>() {
            let hash = self.hasher.hash_element(element::decode(record).0);
            sides[usize::from(cell.span.is_in_upper_half(hash))].push((fingerprint, record));
        }
        let [lower, upper] = cell.span.halves();
        [Cell::of(lower, &sides[0]), Cell::of(upper, &sides[1])]
    }

    /// Joins the cell at a position and its other half while both are nearly empty.
    #[cold]
    fn join(&mut self, position: u32) {
        loop {
            let number = self.number_at(position);
            let cell = &self.pool[number];
            let Some((parent, buddy_span)) = cell.span.parent().zip(cell.span.buddy()) else {
                return;
            };
            let buddy_number = self.number_at(buddy_span.start());
            let buddy = &self.pool[buddy_number];
            if buddy.span != buddy_span || !fit_in_one(cell, buddy) {
                return;
            }
            if cell.span.depth() == self.depth {
                self.deepest -= 2;
            }
            let joined = joined::<P>(parent, cell, buddy);
            self.pool.replace(number, joined);
            self.directory[parent.slots(self.depth)].fill(number);
            self.pool.swap_remove(buddy_number);
            if (buddy_number as usize) < self.pool.len() {
                let moved = self.pool[buddy_number].span;
                self.directory[moved.slots(self.depth)].fill(buddy_number);
            }
            self.shorten();
        }
    }

    /// Halves a directory that has become far too long.
    fn shorten(&mut self) {
        while self.deepest == 0 && self.directory.len() >= SLOTS_PER_CELL_MAX * self.pool.len() {
            self.directory = self.directory.iter().step_by(2).copied().collect();
            self.depth -= 1;
            // Two slots of one cell are next to each other; those of others are its own.
            let (pairs, only) = self.directory.as_chunks::<2>();
            let apart = pairs.iter().filter(|[lower, upper]| lower != upper);
            self.deepest = (2 * apart.count() + only.len()) as u32;
        }
    }
}

#[inline]
fn is_overfull(cell: &Cell) -> bool {
    let (records, bytes) = (cell.len(), cell.bytes());
    records > CELL_RECORDS_MAX
        || bytes > CELL_BYTES_MAX && records > CELL_RECORDS_FEW
        || bytes > CELL_BYTES_HUGE && records > 1
}

/// Whether two halves are better one cell.
fn fit_in_one(cell: &Cell, buddy: &Cell) -> bool {
    let is_one_empty = cell.len() == 0 || buddy.len() == 0;
    cell.len() + buddy.len() <= MERGED_RECORDS_MAX
        && (is_one_empty || cell.bytes() + buddy.bytes() <= MERGED_BYTES_MAX)
}

fn joined<P: Payload>(parent: Span, cell: &Cell, buddy: &Cell) -> Cell {
    let records: SmallVec<[Copied<'_>; MERGED_RECORDS_MAX]> =
        cell.iter::<P>().chain(buddy.iter::<P>()).collect();
    Cell::of(parent, &records)
}
