//! The keys of one shard that clients have read, with their readers. A read finds its key by the
//! hash that the call knows already, in two lines of memory that can be fetched ahead: a slot of
//! an open hash table, and a record with the readers and a short key's name. Records lie end to
//! end, so that any one is found at once where keys have to go for want of room.

use super::readers::{READER_BYTES, Reader, SlotSet};
use crate::store::raw::prefetch::prefetch_value;
use crate::types::capacity::allocated_bytes;
use smallvec::SmallVec;

/// A name up to this lies in its record.
const NAME_INLINE_BYTES: usize = 24;
/// What a key takes besides a longer name: its record, its slot, and room for others of these.
const KEY_BYTES: usize = 104;
/// Room for keys that is kept, though they are gone.
const KEYS_KEPT_MAX: usize = 64;
/// Records that are looked at under one lock to forget who is gone: some tens of microseconds.
const FORGET_STEPS: usize = 1024;

/// Where a record is, and which part of the hash leads there.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    place: u32,
    /// One more than the record's position; 0 if there is none.
    record: u32,
}

/// A key and its readers, in one line of memory.
#[derive(Debug)]
#[repr(align(64))]
pub(super) struct Record {
    slots: SlotSet,
    /// By their numbers, in ascending order: readers without a slot.
    #[expect(clippy::box_collection, reason = "one word, so that the record is one line")]
    others: Option<Box<Vec<u64>>>,
    place: u32,
    name: SmallVec<[u8; NAME_INLINE_BYTES]>,
}

const _: () = assert!(size_of::<Record>() == 64);

impl Record {
    pub fn name(&self) -> &[u8] {
        &self.name
    }

    pub fn slots(&self) -> SlotSet {
        self.slots
    }

    pub fn others(&self) -> &[u64] {
        self.others.as_deref().map_or(&[], Vec::as_slice)
    }

    fn has_none(&self) -> bool {
        self.slots == 0 && self.others.is_none()
    }

    pub fn readers_len(&self) -> u64 {
        u64::from(self.slots.count_ones()) + self.others().len() as u64
    }

    pub fn memory_bytes(&self) -> u64 {
        let long_name = if self.name.spilled() { allocated_bytes(self.name.len()) } else { 0 };
        (KEY_BYTES + long_name + self.others().len() * READER_BYTES) as u64
    }

    /// False if it was one already.
    fn add(&mut self, reader: Reader) -> bool {
        if let Some(slot) = reader.slot {
            let before = self.slots;
            self.slots |= 1 << slot;
            return self.slots != before;
        }
        let others = self.others.get_or_insert_default();
        match others.binary_search(&reader.id) {
            Ok(_) => false,
            Err(at) => {
                others.insert(at, reader.id);
                true
            }
        }
    }

    fn forget(&mut self, gone: &Gone<'_>) {
        self.slots &= !gone.slots;
        if let Some(others) = &mut self.others {
            others.retain(|id| !(gone.is_gone)(*id));
            if others.is_empty() {
                self.others = None;
            }
        }
    }
}

/// Readers that are to be forgotten.
pub struct Gone<'g> {
    pub slots: SlotSet,
    /// Those without a slot, by their numbers.
    pub is_gone: &'g dyn Fn(u64) -> bool,
}

#[derive(Debug, Default)]
pub(super) struct KeyTable {
    /// None, or a power of two of them, of which at most half are used: a key is in the first free
    /// one from its place on.
    slots: Vec<Slot>,
    /// In no order.
    records: Vec<Record>,
    /// Which of them goes next for want of room. It moves on with each, so that a key which takes
    /// the place of one that is gone stays for a round.
    next_to_go: usize,
    /// While readers are being forgotten, from the end on: those before this one are still to be
    /// looked at. A record that moves comes from the end, so none is missed.
    forget_end: Option<usize>,
}

/// Which part of a hash leads to a key's slot: one that the choice of the shard leaves alone.
fn place_of(hash: u64) -> u32 {
    (hash >> 32) as u32
}

impl KeyTable {
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    pub fn records(&self) -> &[Record] {
        &self.records
    }

    #[cfg(test)]
    pub fn room(&self) -> usize {
        self.slots.len().max(self.records.capacity())
    }

    fn mask(&self) -> usize {
        self.slots.len().wrapping_sub(1)
    }

    /// Hints that a key's slot will be needed soon.
    pub fn prefetch_slot(&self, hash: u64) {
        if let Some(slot) = self.slots.get(place_of(hash) as usize & self.mask()) {
            prefetch_value(slot);
        }
    }

    /// The same for its record, where its slot is at hand.
    pub fn prefetch_record(&self, hash: u64) {
        let place = place_of(hash);
        let mut likely = self.probe(place).filter(|(_, slot)| slot.place == place);
        if let Some((_, slot)) = likely.next() {
            prefetch_value(&self.records[slot.record as usize - 1]);
        }
    }

    /// The used slots from a place on.
    fn probe(&self, place: u32) -> impl Iterator<Item = (usize, Slot)> {
        let mask = self.mask();
        let mut at = place as usize & mask;
        std::iter::from_fn(move || {
            let slot = *self.slots.get(at)?;
            let found = (at, slot);
            at = (at + 1) & mask;
            (slot.record != 0).then_some(found)
        })
    }

    /// Where a key's slot is, and its record.
    fn find(&self, place: u32, key: &[u8]) -> Option<(usize, usize)> {
        let mut likely = self.probe(place).filter(|(_, slot)| slot.place == place);
        likely.find_map(|(at, slot)| {
            let record = slot.record as usize - 1;
            (*self.records[record].name == *key).then_some((at, record))
        })
    }

    /// A client has read a key. Says what that has added.
    pub fn add(&mut self, (hash, key): (u64, &[u8]), reader: Reader) -> Counted {
        let place = place_of(hash);
        if let Some((_, record)) = self.find(place, key) {
            return match self.records[record].add(reader) {
                true => Counted { keys: 0, readers: 1, bytes: reader.memory_bytes() },
                false => Counted::default(),
            };
        }
        if (self.records.len() + 1) * 2 > self.slots.len() {
            self.resize((self.slots.len() * 2).max(KEYS_KEPT_MAX));
        }
        let mut record = Record { slots: 0, others: None, place, name: SmallVec::from_slice(key) };
        record.add(reader);
        let added = Counted::of(&record);
        self.records.push(record);
        self.insert_slot(Slot { place, record: self.records.len() as u32 });
        added
    }

    fn insert_slot(&mut self, slot: Slot) {
        let end = self.probe(slot.place).last();
        let mask = self.mask();
        let at = end.map_or(slot.place as usize & mask, |(at, _)| (at + 1) & mask);
        self.slots[at] = slot;
    }

    /// To a power of two that is at least twice as many as there are records.
    fn resize(&mut self, slots: usize) {
        self.slots = vec![Slot::default(); slots];
        for position in 0..self.records.len() {
            let place = self.records[position].place;
            self.insert_slot(Slot { place, record: position as u32 + 1 });
        }
    }

    pub fn remove(&mut self, hash: u64, key: &[u8]) -> Option<Record> {
        let (at, record) = self.find(place_of(hash), key)?;
        Some(self.remove_at(at, record))
    }

    fn remove_at(&mut self, at: usize, position: usize) -> Record {
        self.free_slot(at);
        let removed = self.records.swap_remove(position);
        let moved_from = self.records.len();
        if let Some(moved) = self.records.get(position) {
            let slot = self.slot_of(moved.place, moved_from);
            self.slots[slot].record = position as u32 + 1;
        }
        if self.slots.len() > KEYS_KEPT_MAX && self.records.len() * 16 < self.slots.len() {
            self.resize((self.records.len() * 4).next_power_of_two().max(KEYS_KEPT_MAX));
            self.records.shrink_to(self.records.len() * 2);
        }
        removed
    }

    fn slot_of(&self, place: u32, position: usize) -> usize {
        let slot = self.probe(place).find(|(_, slot)| slot.record as usize == position + 1);
        slot.expect("each record has a slot").0
    }

    /// Frees a slot. Those behind it move up as far as their places allow.
    fn free_slot(&mut self, mut free: usize) {
        let mask = self.mask();
        let mut at = free;
        loop {
            at = (at + 1) & mask;
            let slot = self.slots[at];
            if slot.record == 0 {
                break;
            }
            let from_place = at.wrapping_sub(slot.place as usize) & mask;
            if from_place >= at.wrapping_sub(free) & mask {
                self.slots[free] = slot;
                free = at;
            }
        }
        self.slots[free] = Slot::default();
    }

    /// A record that is to go for want of room; if possible not that of this key.
    pub fn remove_other_than(&mut self, key: &[u8]) -> Option<Record> {
        let mut picked = 0;
        for _ in 0..2 {
            picked = if self.next_to_go < self.records.len() { self.next_to_go } else { 0 };
            self.next_to_go = picked + 1;
            if *self.records.get(picked)?.name != *key {
                break;
            }
        }
        let slot = self.slot_of(self.records[picked].place, picked);
        Some(self.remove_at(slot, picked))
    }

    /// Forgets readers, in a step of many, and keys that nobody else has read. Says whether that
    /// was the last step, and what is no longer there.
    pub fn forget_step(&mut self, gone: &Gone<'_>) -> (bool, Counted) {
        let end = self.forget_end.unwrap_or(usize::MAX).min(self.records.len());
        let start = end.saturating_sub(FORGET_STEPS);
        let (mut before, mut after) = (Counted::default(), Counted::default());
        for position in (start..end).rev() {
            let record = &mut self.records[position];
            before.add(Counted::of(record));
            record.forget(gone);
            match record.has_none() {
                true => {
                    let place = record.place;
                    let slot = self.slot_of(place, position);
                    self.remove_at(slot, position);
                }
                false => after.add(Counted::of(record)),
            }
        }
        self.forget_end = (start > 0).then_some(start);
        (start == 0, before.less(after))
    }
}

/// What a record, or several, add to the totals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counted {
    pub keys: u64,
    pub readers: u64,
    pub bytes: u64,
}

impl Counted {
    pub fn of(record: &Record) -> Counted {
        Counted { keys: 1, readers: record.readers_len(), bytes: record.memory_bytes() }
    }

    pub fn add(&mut self, other: Counted) {
        self.keys += other.keys;
        self.readers += other.readers;
        self.bytes += other.bytes;
    }

    fn less(self, other: Counted) -> Counted {
        Counted {
            keys: self.keys - other.keys,
            readers: self.readers - other.readers,
            bytes: self.bytes - other.bytes,
        }
    }
}
