//! A HyperLogLog in a table entry: the only file of this room that touches one. The string's own
//! room says how its bytes are kept.

use super::hash::Mark;
use super::header::{self, DENSE_BYTES, ESTIMATE_AT, Encoding, HEADER_BYTES, STALE, STALE_AT};
use super::registers::Registers;
use super::sparse::{self, Cursor, Set};
use super::{DENSE_REGISTER_BYTES, Fault, dense, estimate};
use crate::store::raw::table::{EntryMut, EntryRef, NewValue};
use crate::types::blob::Blob;
use crate::types::string::{self, Text};
use crate::value::{Object, WrongType};
use smallvec::SmallVec;

/// Most bytes that setting one register can add to a sparse value.
const GROWTH_BYTES_MAX: usize = 3;

impl From<WrongType> for Fault {
    fn from(_: WrongType) -> Self {
        Fault::WrongType
    }
}

fn bytes<'a>(entry: &EntryRef<'a, Object>) -> Result<&'a [u8], Fault> {
    match string::text(entry)? {
        Text::Bytes(bytes) => Ok(bytes),
        Text::Shared(bytes) => Ok(bytes),
        Text::Int(_) => Err(Fault::NotHyperLogLog),
    }
}

pub fn encoding(entry: &EntryRef<'_, Object>) -> Result<Encoding, Fault> {
    Ok(header::parse(bytes(entry)?)?.encoding)
}

/// The bytes behind the header, in whichever encoding.
pub fn register_bytes<'a>(entry: &EntryRef<'a, Object>) -> Result<&'a [u8], Fault> {
    Ok(header::parse(bytes(entry)?)?.registers)
}

/// What came of a value's elements.
struct Added {
    changes: usize,
    /// The element that the sparse layout can't take; those behind it wait.
    left: Option<Mark>,
}

/// Adds elements to a sparse value, as many as it can take.
fn add_sparse<'e>(
    blob: &mut impl Blob,
    elements: &mut impl Iterator<Item = &'e [u8]>,
    sparse_bytes_max: usize,
) -> Result<Added, Fault> {
    let mut changes = 0;
    for element in elements {
        let mark = Mark::of(element);
        match sparse::set(blob, mark, sparse_bytes_max, &mut Cursor::START.clone())? {
            Set::Unchanged => {}
            Set::Changed => changes += 1,
            Set::NeedsDense => return Ok(Added { changes, left: Some(mark) }),
        }
    }
    Ok(Added { changes, left: None })
}

/// Adds to a dense value a mark, if there is one, and elements; how many changed it.
fn add_dense<'e>(
    blob: &mut impl Blob,
    left: Option<Mark>,
    elements: impl Iterator<Item = &'e [u8]>,
) -> usize {
    let marks = left.into_iter().chain(elements.map(Mark::of));
    marks.filter(|mark| dense::set(blob, HEADER_BYTES, *mark)).count()
}

fn mark_stale(blob: &mut impl Blob) {
    let last = blob.bytes()[STALE_AT];
    if last & STALE == 0 {
        blob.overwrite(STALE_AT, &[last | STALE]);
    }
}

/// The dense form of a sparse value.
fn to_dense(bytes: &[u8]) -> Result<Vec<u8>, Fault> {
    let parts = header::parse(bytes)?;
    let mut registers = Registers::default();
    registers.merge(parts)?;
    let mut dense = Vec::with_capacity(DENSE_BYTES);
    dense.extend_from_slice(&header::with_encoding(*parts.header, Encoding::Dense));
    dense.resize(DENSE_BYTES, 0);
    dense::pack(&registers, &mut dense[HEADER_BYTES..]);
    Ok(dense)
}

/// Makes the value dense; whether it was not before.
pub fn make_dense(entry: &mut EntryMut<'_, Object>) -> Result<bool, Fault> {
    if encoding(&entry.as_ref())? == Encoding::Dense {
        return Ok(false);
    }
    let dense = to_dense(bytes(&entry.as_ref())?)?;
    entry.set_object(Object::string(dense));
    Ok(true)
}

/// Adds elements; how many changed the value. A value that is found corrupt is left as it was.
pub fn add<'e>(
    entry: &mut EntryMut<'_, Object>,
    mut elements: impl ExactSizeIterator<Item = &'e [u8]>,
    sparse_bytes_max: usize,
) -> Result<usize, Fault> {
    let parts = header::parse(bytes(&entry.as_ref())?)?;
    let old_len = HEADER_BYTES + parts.registers.len();
    let mut added = Added { changes: 0, left: None };
    if parts.encoding == Encoding::Sparse {
        // One element fails before it changes anything. Several must not fail half-way.
        if elements.len() > 1 && sparse::walk(&[parts.registers], |_: sparse::Span| {}).is_err() {
            return add_to_copy(entry, elements, sparse_bytes_max);
        }
        let growth = elements.len().saturating_mul(GROWTH_BYTES_MAX);
        let len = old_len.saturating_add(growth).min(sparse_bytes_max).max(old_len);
        let mut blob = string::edit(entry, len)?;
        added = add_sparse(&mut blob, &mut elements, sparse_bytes_max)?;
        if added.changes > 0 {
            mark_stale(&mut blob);
        }
        if added.left.is_none() {
            return Ok(added.changes);
        }
        make_dense(entry)?;
    }
    let mut blob = string::edit(entry, DENSE_BYTES)?;
    let changes = added.changes + add_dense(&mut blob, added.left, elements);
    if changes > 0 {
        mark_stale(&mut blob);
    }
    Ok(changes)
}

/// As [`add`], for a value that is corrupt somewhere: perhaps not where the elements go.
#[cold]
fn add_to_copy<'e>(
    entry: &mut EntryMut<'_, Object>,
    mut elements: impl Iterator<Item = &'e [u8]>,
    sparse_bytes_max: usize,
) -> Result<usize, Fault> {
    let mut copy = bytes(&entry.as_ref())?.to_vec();
    let added = add_sparse(&mut copy, &mut elements, sparse_bytes_max)?;
    if added.left.is_some() {
        return Err(Fault::Corrupt);
    }
    if added.changes > 0 {
        mark_stale(&mut copy);
        entry.set(string::adopt(&mut copy));
    }
    Ok(added.changes)
}

/// A new value with these elements, and how many of them changed it.
pub fn build<'e>(
    mut elements: impl ExactSizeIterator<Item = &'e [u8]>,
    sparse_bytes_max: usize,
) -> (Vec<u8>, usize) {
    let mut bytes = empty(elements.len());
    let mut added = add_sparse(&mut bytes, &mut elements, sparse_bytes_max)
        .expect("a value made here covers every register");
    if added.left.is_some() {
        bytes = to_dense(&bytes).expect("a value made here covers every register");
        added.changes += add_dense(&mut bytes, added.left, elements);
    }
    mark_stale(&mut bytes);
    (bytes, added.changes)
}

/// A value without elements, and room for some.
fn empty(elements: usize) -> Vec<u8> {
    let room = elements.saturating_mul(GROWTH_BYTES_MAX).min(DENSE_BYTES);
    let mut bytes = Vec::with_capacity(HEADER_BYTES + 2 + room);
    bytes.extend_from_slice(&header::empty(Encoding::Sparse));
    bytes.extend_from_slice(&sparse::empty_registers());
    bytes
}

/// The estimate that is kept with the value, or else none.
pub fn kept_estimate(entry: &EntryRef<'_, Object>) -> Result<Option<u64>, Fault> {
    Ok(header::parse(bytes(entry)?)?.estimate())
}

/// Makes a new estimate and keeps it with the value.
pub fn estimate_anew(entry: &mut EntryMut<'_, Object>) -> Result<u64, Fault> {
    let estimate = estimate::of_parts(header::parse(bytes(&entry.as_ref())?)?)?;
    let mut blob = string::edit(entry, 0)?;
    blob.overwrite(ESTIMATE_AT, &estimate.to_le_bytes());
    Ok(estimate)
}

/// Several values taken together, as one that is not stored. It is large: made once, it stays where
/// it is.
#[derive(Default)]
pub struct Union {
    registers: Registers,
    /// One of the values at least was dense.
    has_dense: bool,
}

impl Union {
    pub fn add_all<'a>(
        &mut self,
        entries: impl Iterator<Item = EntryRef<'a, Object>>,
    ) -> Result<(), Fault> {
        let mut sparse = SmallVec::<[&[u8]; 8]>::new();
        for entry in entries {
            let parts = header::parse(bytes(&entry)?)?;
            match parts.encoding {
                Encoding::Sparse => sparse.push(parts.registers),
                Encoding::Dense => {
                    self.has_dense = true;
                    self.registers.merge(parts)?;
                }
            }
        }
        sparse::merge_into(&mut self.registers, &sparse)
    }

    pub fn estimate(&self) -> u64 {
        estimate::of_registers(&self.registers)
    }

    pub fn registers(&self) -> &Registers {
        &self.registers
    }

    /// Makes the value in an entry, which must be part of this union, equal to it.
    pub fn store(
        &self,
        entry: &mut EntryMut<'_, Object>,
        sparse_bytes_max: usize,
    ) -> Result<(), Fault> {
        let parts = header::parse(bytes(&entry.as_ref())?)?;
        if parts.encoding == Encoding::Sparse && !self.has_dense {
            let mut grown = bytes(&entry.as_ref())?.to_vec();
            if self.store_sparse(&mut grown, sparse_bytes_max)? {
                mark_stale(&mut grown);
                entry.set(string::adopt(&mut grown));
                return Ok(());
            }
        }
        make_dense(entry)?;
        let mut blob = string::edit(entry, DENSE_BYTES)?;
        if let string::Editable::Long(bytes) = &mut blob {
            dense::pack(&self.registers, &mut bytes[HEADER_BYTES..]);
        }
        mark_stale(&mut blob);
        Ok(())
    }

    /// Sets the registers one by one, which makes the bytes that the peers make; false if the
    /// sparse layout can't take them.
    fn store_sparse(&self, bytes: &mut Vec<u8>, sparse_bytes_max: usize) -> Result<bool, Fault> {
        let mut cursor = Cursor::START;
        for (register, run) in self.registers.iter().enumerate().filter(|(_, run)| *run > 0) {
            match sparse::set(bytes, Mark { register, run }, sparse_bytes_max, &mut cursor)? {
                Set::Unchanged | Set::Changed => {}
                Set::NeedsDense => return Ok(false),
            }
        }
        Ok(true)
    }

    /// The union as a new value.
    pub fn build(&self, sparse_bytes_max: usize) -> Vec<u8> {
        let mut bytes = empty(0);
        let is_sparse = !self.has_dense
            && self
                .store_sparse(&mut bytes, sparse_bytes_max)
                .expect("a value made here covers every register");
        if !is_sparse {
            bytes.clear();
            bytes.reserve_exact(DENSE_BYTES);
            bytes.extend_from_slice(&header::empty(Encoding::Dense));
            bytes.resize(HEADER_BYTES + DENSE_REGISTER_BYTES, 0);
            dense::pack(&self.registers, &mut bytes[HEADER_BYTES..]);
        }
        mark_stale(&mut bytes);
        bytes
    }
}

/// Few marks are cheaper to set one by one than all registers are to pack.
const MARKS_MAX: usize = 512;

/// Values that are walked through before the marks are counted.
const VALUES_AT_ONCE: usize = 4;

/// What sparse values add to a dense one: often little or nothing.
#[derive(Default)]
pub struct Gain(SmallVec<[Mark; 32]>);

impl Gain {
    /// None unless the target is dense and the others are sparse and add little.
    pub fn of<'e, 'a: 'e>(
        target: &EntryRef<'a, Object>,
        others: impl Iterator<Item = &'e EntryRef<'a, Object>>,
    ) -> Result<Option<Self>, Fault> {
        let target = header::parse(bytes(target)?)?;
        let (Encoding::Dense, Some(dense)) = (target.encoding, target.registers.first_chunk())
        else {
            return Ok(None);
        };
        let mut sparse = SmallVec::<[&[u8]; 8]>::new();
        for other in others {
            let parts = header::parse(bytes(other)?)?;
            if parts.encoding == Encoding::Dense {
                return Ok(None);
            }
            sparse.push(parts.registers);
        }
        let mut gain = Gain::default();
        for some in sparse.chunks(VALUES_AT_ONCE) {
            sparse::marks_above(dense, some, |mark| gain.0.push(mark))?;
            if gain.0.len() > MARKS_MAX {
                return Ok(None);
            }
        }
        Ok(Some(gain))
    }

    /// Adds it to the target.
    pub fn store(&self, entry: &mut EntryMut<'_, Object>) -> Result<(), Fault> {
        let mut blob = string::edit(entry, DENSE_BYTES)?;
        for mark in &self.0 {
            dense::set(&mut blob, HEADER_BYTES, *mark);
        }
        mark_stale(&mut blob);
        Ok(())
    }
}

/// How a new value is stored.
pub fn adopt(bytes: &mut Vec<u8>) -> NewValue<'_, Object> {
    string::adopt(bytes)
}
