//! Byte strings. Short ones lie side by side in one buffer, so that making one is a copy and no
//! allocation, and the end of a run is a cut; long ones have blocks of their own.

use super::memory::Memory;
use crate::fault::Refusal;
use crate::hashing::Keyed;
use crate::limits::{KEPT_BYTES_MAX, PACKED_STRING_BYTES_MAX};
use crate::value::StrRef;
use russet_base::hash::KeyHasher;
use russet_base::shared::{shrink_spare, spare_bytes};
use std::cell::Cell;
use std::collections::HashMap;
use std::ops::Range;

#[derive(Debug, Default)]
pub(crate) struct Slot {
    body: Body,
    /// 0: not asked for yet.
    hash: Cell<u32>,
}

#[derive(Debug, Default)]
pub(crate) enum Body {
    #[default]
    Free,
    Packed {
        start: u32,
        len: u32,
    },
    Own(Box<[u8]>),
}

const SLOT_BYTES: usize = size_of::<Slot>();

#[derive(Debug)]
pub struct Strings {
    slots: Vec<Slot>,
    buffer: Vec<u8>,
    /// Slots and bytes below these marks outlive the run.
    permanent: usize,
    permanent_bytes: usize,
    free: Vec<u32>,
    free_permanent: Vec<u32>,
    /// Bytes of the buffer that no string names any more.
    lost_bytes: usize,
    hasher: KeyHasher,
    seed: u64,
    /// Permanent strings that constants share, so that most lookups compare handles only.
    interned: HashMap<Box<[u8]>, StrRef, Keyed>,
}

/// Bytes that were appended to the buffer and are not yet a string.
#[derive(Debug)]
#[must_use]
pub(crate) struct Unfinished {
    start: usize,
}

impl Strings {
    pub(crate) fn new(seed: u64) -> Self {
        Strings {
            slots: Vec::new(),
            buffer: Vec::new(),
            permanent: 0,
            permanent_bytes: 0,
            free: Vec::new(),
            free_permanent: Vec::new(),
            lost_bytes: 0,
            hasher: KeyHasher::with_seed(seed),
            seed,
            interned: HashMap::with_hasher(Keyed::with_seed(seed)),
        }
    }

    pub fn bytes(&self, string: StrRef) -> &[u8] {
        match &self.slots[string.index()].body {
            Body::Packed { start, len } => {
                &self.buffer[*start as usize..*start as usize + *len as usize]
            }
            Body::Own(bytes) => bytes,
            Body::Free => &[],
        }
    }

    pub fn len(&self, string: StrRef) -> usize {
        match &self.slots[string.index()].body {
            Body::Packed { len, .. } => *len as usize,
            Body::Own(bytes) => bytes.len(),
            Body::Free => 0,
        }
    }

    pub(crate) fn hash(&self, string: StrRef) -> u32 {
        let slot = &self.slots[string.index()];
        match slot.hash.get() {
            0 => {
                let hash = self.hash_bytes(self.bytes(string));
                slot.hash.set(hash);
                hash
            }
            hash => hash,
        }
    }

    /// What all hashes of the state depend on.
    pub(crate) fn seed(&self) -> u64 {
        self.seed
    }

    pub(crate) fn hash_bytes(&self, bytes: &[u8]) -> u32 {
        let hash = self.hasher.hash(bytes);
        ((hash ^ (hash >> 32)) as u32).max(1)
    }

    pub(crate) fn equal(&self, a: StrRef, b: StrRef) -> bool {
        a == b || self.equal_bodies(a, b)
    }

    /// Whether a string that was hashed before is the same as one whose hash is known.
    #[inline(always)]
    pub(crate) fn is_same(&self, known: StrRef, (string, hash): (StrRef, u32)) -> bool {
        known == string
            || (self.slots[known.index()].hash.get() == hash
                && self.bytes(known) == self.bytes(string))
    }

    fn equal_bodies(&self, a: StrRef, b: StrRef) -> bool {
        let (hash_a, hash_b) = (self.slots[a.index()].hash.get(), self.slots[b.index()].hash.get());
        if hash_a != 0 && hash_b != 0 && hash_a != hash_b {
            return false;
        }
        self.bytes(a) == self.bytes(b)
    }

    pub(crate) fn add(&mut self, memory: &mut Memory, bytes: &[u8]) -> Result<StrRef, Refusal> {
        if bytes.len() > PACKED_STRING_BYTES_MAX {
            return self.add_own(memory, bytes.into());
        }
        memory.take(SLOT_BYTES + bytes.len())?;
        let start = self.buffer.len();
        self.buffer.extend_from_slice(bytes);
        self.name(start, bytes.len())
    }

    pub(crate) fn add_own(
        &mut self,
        memory: &mut Memory,
        bytes: Box<[u8]>,
    ) -> Result<StrRef, Refusal> {
        memory.take(SLOT_BYTES + bytes.len())?;
        Ok(self.add_slot(Slot { body: Body::Own(bytes), hash: Cell::new(0) }))
    }

    /// Starts a short string that is put together in place.
    pub(crate) fn begin(&mut self) -> Unfinished {
        Unfinished { start: self.buffer.len() }
    }

    pub(crate) fn append(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// Appends another string without a copy in between.
    pub(crate) fn append_string(&mut self, string: StrRef) {
        match &self.slots[string.index()].body {
            Body::Packed { start, len } => {
                let start = *start as usize;
                self.buffer.extend_from_within(start..start + *len as usize);
            }
            Body::Own(bytes) => self.buffer.extend_from_slice(bytes),
            Body::Free => {}
        }
    }

    /// Appends a part of another string without a copy in between.
    pub(crate) fn append_part(&mut self, string: StrRef, part: Range<usize>) {
        match &self.slots[string.index()].body {
            Body::Packed { start, .. } => {
                let start = *start as usize;
                self.buffer.extend_from_within(start + part.start..start + part.end);
            }
            Body::Own(bytes) => self.buffer.extend_from_slice(&bytes[part]),
            Body::Free => {}
        }
    }

    pub(crate) fn unfinished_len(&self, unfinished: &Unfinished) -> usize {
        self.buffer.len() - unfinished.start
    }

    /// Takes back what was appended.
    pub(crate) fn give_up(&mut self, unfinished: Unfinished) {
        self.buffer.truncate(unfinished.start);
    }

    pub(crate) fn finish(
        &mut self,
        memory: &mut Memory,
        unfinished: Unfinished,
    ) -> Result<StrRef, Refusal> {
        let len = self.buffer.len() - unfinished.start;
        if let Err(refusal) = memory.take(SLOT_BYTES + len) {
            self.buffer.truncate(unfinished.start);
            return Err(refusal);
        }
        self.name(unfinished.start, len)
    }

    #[inline(always)]
    fn name(&mut self, start: usize, len: usize) -> Result<StrRef, Refusal> {
        let Ok(start) = u32::try_from(start) else {
            self.buffer.truncate(start);
            return Err(Refusal::OutOfMemory);
        };
        let body = Body::Packed { start, len: len as u32 };
        Ok(self.add_slot(Slot { body, hash: Cell::new(0) }))
    }

    #[inline(always)]
    fn add_slot(&mut self, slot: Slot) -> StrRef {
        match self.free.pop() {
            Some(index) => {
                self.slots[index as usize] = slot;
                StrRef(index)
            }
            None => {
                self.slots.push(slot);
                StrRef(self.slots.len() as u32 - 1)
            }
        }
    }

    pub(crate) fn interned(&self, bytes: &[u8]) -> Option<StrRef> {
        self.interned.get(bytes).copied()
    }

    /// A permanent string; only while there is no run part.
    pub(crate) fn intern(&mut self, memory: &mut Memory, bytes: &[u8]) -> Result<StrRef, Refusal> {
        if let Some(known) = self.interned(bytes) {
            return Ok(known);
        }
        assert_eq!(self.permanent, self.slots.len(), "permanent strings are made between runs");
        let string = self.add_permanent(memory, bytes)?;
        self.interned.insert(bytes.into(), string);
        Ok(string)
    }

    /// As `intern`, before the end of the set-up.
    pub(crate) fn intern_late(
        &mut self,
        memory: &mut Memory,
        bytes: &[u8],
    ) -> Result<StrRef, Refusal> {
        if let Some(known) = self.interned(bytes) {
            return Ok(known);
        }
        let string = self.add(memory, bytes)?;
        self.interned.insert(bytes.into(), string);
        Ok(string)
    }

    /// A permanent string of its own, in a free permanent slot or behind the last.
    pub(crate) fn add_permanent(
        &mut self,
        memory: &mut Memory,
        bytes: &[u8],
    ) -> Result<StrRef, Refusal> {
        let string = self.add(memory, bytes)?;
        self.permanent_bytes = self.buffer.len();
        let Some(index) = self.free_permanent.pop() else {
            self.permanent = self.slots.len();
            return Ok(string);
        };
        let slot = self.slots.pop();
        self.slots[index as usize] = slot.expect("it was pushed a moment ago: no run part is free");
        Ok(StrRef(index))
    }

    pub(crate) fn is_run(&self, string: StrRef) -> bool {
        string.index() >= self.permanent
    }

    /// All that is there now outlives the runs to come.
    pub(crate) fn make_permanent(&mut self) {
        self.free_permanent.append(&mut self.free);
        self.permanent = self.slots.len();
        self.permanent_bytes = self.buffer.len();
    }

    /// Ends the run: what it made is gone.
    pub(crate) fn cut(&mut self) {
        self.slots.truncate(self.permanent);
        self.buffer.truncate(self.permanent_bytes);
        self.free.clear();
        self.lost_bytes = 0;
        self.shrink();
    }

    /// Gives back what a large run left behind.
    fn shrink(&mut self) {
        shrink_spare(&mut self.slots, KEPT_BYTES_MAX);
        shrink_spare(&mut self.buffer, KEPT_BYTES_MAX);
        shrink_spare(&mut self.free, KEPT_BYTES_MAX);
    }

    /// Bytes of room that is not in use.
    pub(crate) fn spare_bytes(&self) -> usize {
        spare_bytes(&self.slots)
            + spare_bytes(&self.buffer)
            + spare_bytes(&self.free)
            + spare_bytes(&self.free_permanent)
    }

    /// The run part, taken out so that survivors can be given permanent places.
    pub(crate) fn split_run(&mut self) -> RunStrings {
        let slots = self.slots.split_off(self.permanent);
        let buffer = self.buffer.split_off(self.permanent_bytes);
        self.free.clear();
        self.lost_bytes = 0;
        self.shrink();
        RunStrings { slots, buffer, offset: self.permanent_bytes, first: self.permanent }
    }

    pub(crate) fn run_len(&self) -> usize {
        self.slots.len() - self.permanent
    }

    pub(crate) fn total_len(&self) -> usize {
        self.slots.len()
    }

    /// Frees the unmarked strings from `first` on and closes the gaps in the buffer.
    pub(crate) fn sweep(&mut self, memory: &mut Memory, first: usize, marks: &[bool]) {
        for (index, marked) in (first..self.slots.len()).zip(marks) {
            let slot = &mut self.slots[index];
            let len = match &slot.body {
                Body::Free => continue,
                _ if *marked => continue,
                Body::Packed { len, .. } => {
                    self.lost_bytes += *len as usize;
                    *len as usize
                }
                Body::Own(bytes) => bytes.len(),
            };
            memory.give(SLOT_BYTES + len);
            *slot = Slot::default();
            if index < self.permanent {
                self.free_permanent.push(index as u32);
            } else {
                self.free.push(index as u32);
            }
        }
        if first < self.permanent {
            let slots = &self.slots;
            self.interned.retain(|_, string| !matches!(slots[string.index()].body, Body::Free));
        }
        if self.lost_bytes > self.buffer.len() / 4 {
            self.close_gaps(first);
        }
    }

    fn close_gaps(&mut self, first: usize) {
        let mut to = if first < self.permanent { 0 } else { self.permanent_bytes };
        let mut live: Vec<(u32, u32)> = Vec::new();
        for (index, slot) in self.slots.iter().enumerate().skip(first) {
            if let Body::Packed { start, .. } = slot.body {
                live.push((start, index as u32));
            }
        }
        live.sort_unstable();
        for (_, index) in live {
            if let Body::Packed { start, len } = &mut self.slots[index as usize].body {
                let from = *start as usize;
                self.buffer.copy_within(from..from + *len as usize, to);
                *start = to as u32;
                to += *len as usize;
            }
        }
        self.buffer.truncate(to);
        shrink_spare(&mut self.buffer, KEPT_BYTES_MAX);
        self.lost_bytes = 0;
        if first < self.permanent {
            self.permanent_bytes = to;
        }
    }
}

/// The strings of a run that is over.
pub(crate) struct RunStrings {
    slots: Vec<Slot>,
    buffer: Vec<u8>,
    offset: usize,
    first: usize,
}

impl RunStrings {
    /// Whether a handle named one of them.
    pub(crate) fn has(&self, string: StrRef) -> bool {
        string.index() >= self.first
    }

    /// Nothing for a handle that a register kept from a function long gone.
    pub(crate) fn bytes(&self, string: StrRef) -> &[u8] {
        match self.slots.get(string.index() - self.first).map(|slot| &slot.body) {
            Some(Body::Packed { start, len }) => {
                let start = *start as usize - self.offset;
                &self.buffer[start..start + *len as usize]
            }
            Some(Body::Own(bytes)) => bytes,
            Some(Body::Free) | None => &[],
        }
    }
}
