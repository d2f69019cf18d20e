//! What requests that must run at most once have answered: by request id, for a time. The records
//! of a shard are behind its lock, so that one is there exactly when the effect is.

#[cfg(test)]
mod tests;

use crate::types::capacity::{allocated_bytes, allocated_for};
use crate::types::cow_vec::{ARC_COUNTS_BYTES, CowVec, Part};
use russet_base::clock::UnixMillis;
use smallvec::SmallVec;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Records that are over and go for each new one, so that however fast they come, they do not pile
/// up between two visits of the housekeeping.
const EXPIRED_PER_PUT: usize = 2;

/// From so many slots on, those of a shard are laid out anew when three in four are free.
const SPARSE_SLOTS_MIN: usize = 1024;

/// Slots that are copied at once if a snapshot has them, too.
const CHUNK_SLOTS: usize = 16;

/// An id and a reply of so many bytes are put together without an allocation.
const SHORT_BYTES_MAX: usize = 128;

/// What the records of all shards come to, readable without their locks.
#[derive(Debug, Default)]
pub struct OnceTotals {
    records: AtomicU64,
    bytes: AtomicU64,
    expired: AtomicU64,
}

impl OnceTotals {
    /// Those that are kept, marks of requests included.
    pub fn records(&self) -> u64 {
        self.records.load(Ordering::Relaxed)
    }

    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Requests whose records went because their time was over.
    pub fn expired(&self) -> u64 {
        self.expired.load(Ordering::Relaxed)
    }

    /// All threads write these: what changes none of them must not touch them.
    fn change(&self, records: i64, bytes: i64) {
        for (total, by) in [(&self.records, records), (&self.bytes, bytes)] {
            if by != 0 {
                total.fetch_add(by as u64, Ordering::Relaxed);
            }
        }
    }

    fn add_expired(&self, requests: u64) {
        if requests > 0 {
            self.expired.fetch_add(requests, Ordering::Relaxed);
        }
    }
}

/// One request that has run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OnceRecord<'r> {
    /// Of the command and its arguments: the same id with others is refused.
    pub digest: u128,
    /// The reply, as it was sent. No reply is empty: an empty one marks a request whose reply is
    /// kept in another shard.
    pub reply: &'r [u8],
    pub expires: UnixMillis,
}

/// A record in its place, or what is left of one.
#[derive(Clone, Debug, Default)]
struct Slot {
    digest: u128,
    expires: i64,
    /// The id and the reply; None in a slot that is free.
    bytes: Option<Arc<[u8]>>,
    /// The id has so many of the bytes, the reply the rest.
    id_len: u32,
    db: u32,
    /// The hash of the id, as that of a key.
    hash: u64,
}

/// What the index knows a request by.
fn tag(hash: u64, db: usize) -> u32 {
    (hash >> 32) as u32 ^ (db as u32).wrapping_mul(0x9e37_79b1)
}

impl Slot {
    fn is(&self, db: usize, id: &[u8]) -> bool {
        let bytes = self.bytes.as_deref().unwrap_or_default();
        self.db as usize == db && bytes.get(..self.id_len as usize) == Some(id)
    }

    fn record(&self) -> OnceRecord<'_> {
        let bytes = self.bytes.as_deref().unwrap_or_default();
        OnceRecord {
            digest: self.digest,
            reply: &bytes[self.id_len as usize..],
            expires: UnixMillis(self.expires),
        }
    }

    /// How many requests it counts for: one, or none if it only marks one.
    fn requests(&self) -> u64 {
        let len = self.bytes.as_deref().map_or(0, <[u8]>::len);
        u64::from(len > self.id_len as usize)
    }

    /// What its id and reply take; its own place is part of the room for all.
    fn memory_bytes(&self) -> i64 {
        let bytes = self.bytes.as_deref();
        bytes.map_or(0, |bytes| allocated_bytes(ARC_COUNTS_BYTES + bytes.len()) as i64)
    }
}

impl Part for Slot {
    fn elements(&self) -> usize {
        1
    }
}

type Slots = CowVec<Slot, CHUNK_SLOTS>;

/// The requests of one shard as they were when they were shared. They can be looked at without its
/// lock.
#[derive(Debug)]
pub struct SharedRequests(Slots);

impl SharedRequests {
    /// See [`OnceRecords::for_each`].
    pub fn for_each(&self, mut visit: impl FnMut(usize, &[u8], OnceRecord<'_>)) {
        for slot in self.0.iter().filter(|slot| slot.requests() > 0) {
            if let Some(bytes) = &slot.bytes {
                visit(slot.db as usize, &bytes[..slot.id_len as usize], slot.record());
            }
        }
    }
}

/// Slots by the hash of what they hold: open addressing in cells of one word, hash above and slot
/// below, so that a look-up waits for memory once. A cell that is zero is empty.
#[derive(Debug, Default)]
struct Index {
    cells: Vec<u64>,
    used: usize,
}

impl Index {
    const CELLS_MIN: usize = 16;

    fn start(&self, hash: u32) -> usize {
        hash as usize & (self.cells.len() - 1)
    }

    fn first_cell(&self, hash: u32) -> u64 {
        if self.cells.is_empty() { 0 } else { self.cells[self.start(hash)] }
    }

    fn next(&self, at: usize) -> usize {
        (at + 1) & (self.cells.len() - 1)
    }

    /// The slot of this hash that is the right one.
    fn find(&self, hash: u32, is_right: impl Fn(u32) -> bool) -> Option<u32> {
        if self.cells.is_empty() {
            return None;
        }
        let mut at = self.start(hash);
        loop {
            let cell = self.cells[at];
            let slot = (cell as u32).checked_sub(1)?;
            if (cell >> 32) as u32 == hash && is_right(slot) {
                return Some(slot);
            }
            at = self.next(at);
        }
    }

    /// Adds a slot that is not there.
    fn add(&mut self, hash: u32, slot: u32) {
        if (self.used + 1) * 3 > self.cells.len() * 2 {
            self.grow();
        }
        self.used += 1;
        self.put(u64::from(hash) << 32 | u64::from(slot + 1));
    }

    fn put(&mut self, cell: u64) {
        let mut at = self.start((cell >> 32) as u32);
        while self.cells[at] != 0 {
            at = self.next(at);
        }
        self.cells[at] = cell;
    }

    fn grow(&mut self) {
        let len = (self.cells.len() * 2).max(Self::CELLS_MIN);
        let old = std::mem::replace(&mut self.cells, vec![0; len]);
        old.into_iter().filter(|cell| *cell != 0).for_each(|cell| self.put(cell));
    }

    /// Takes a slot out that is there, and moves those behind it that may come closer to their
    /// start.
    fn remove(&mut self, hash: u32, slot: u32) {
        let wanted = u64::from(hash) << 32 | u64::from(slot + 1);
        let mut hole = self.start(hash);
        while self.cells[hole] != wanted {
            debug_assert_ne!(self.cells[hole], 0, "only what was added is removed");
            hole = self.next(hole);
        }
        self.used -= 1;
        let mask = self.cells.len() - 1;
        let mut at = self.next(hole);
        while self.cells[at] != 0 {
            let start = self.start((self.cells[at] >> 32) as u32);
            if at.wrapping_sub(start) & mask >= at.wrapping_sub(hole) & mask {
                self.cells[hole] = self.cells[at];
                hole = at;
            }
            at = self.next(at);
        }
        self.cells[hole] = 0;
    }
}

/// The records of one shard. The hash of an id comes with it: that of a key of the same bytes.
#[derive(Debug)]
pub struct OnceRecords {
    slots: Slots,
    free: Vec<u32>,
    index: Index,
    /// When a slot's record is over, the soonest first. Some tell of records that are gone.
    deadlines: BinaryHeap<Reverse<(i64, u32)>>,
    totals: Arc<OnceTotals>,
    /// How long the lists above were when their bytes were last counted.
    room: [usize; 4],
    /// Those bytes, which are part of the totals.
    room_bytes: i64,
}

impl OnceRecords {
    pub fn new(totals: Arc<OnceTotals>) -> Self {
        OnceRecords {
            room: [0; 4],
            room_bytes: 0,
            slots: Slots::default(),
            free: Vec::new(),
            index: Index::default(),
            deadlines: BinaryHeap::new(),
            totals,
        }
    }

    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Tells the totals of records that came or went, and brings what they have for the lists up
    /// to date.
    #[inline]
    fn count(&mut self, records: i64, bytes: i64) {
        let [free, cells] = [self.free.capacity(), self.index.cells.capacity()];
        let room = [self.slots.len(), free, cells, self.deadlines.capacity()];
        let grown = if room == self.room { 0 } else { self.count_room(room) };
        self.totals.change(records, bytes + grown);
    }

    /// By how many bytes the lists have grown.
    #[inline(never)]
    fn count_room(&mut self, room: [usize; 4]) -> i64 {
        let [_, free, cells, deadlines] = room;
        let bytes = self.slots.memory_bytes()
            + allocated_for::<u32>(free)
            + allocated_for::<u64>(cells)
            + allocated_for::<Reverse<(i64, u32)>>(deadlines);
        self.room = room;
        bytes as i64 - std::mem::replace(&mut self.room_bytes, bytes as i64)
    }

    /// Forgets the lists, and gives them back.
    fn take_lists(&mut self) -> OnceRecords {
        let empty = OnceRecords::new(self.totals.clone());
        let lists = std::mem::replace(self, empty);
        self.totals.change(0, -lists.room_bytes);
        lists
    }

    fn slot_of(&self, (id, hash): (&[u8], u64), db: usize) -> Option<u32> {
        self.index.find(tag(hash, db), |slot| self.slots[slot as usize].is(db, id))
    }

    /// Looks at where a request is to be found, so that it is in the cache when it is looked for.
    pub fn touch(&self, hash: u64, db: usize) {
        std::hint::black_box(self.index.first_cell(tag(hash, db)));
    }

    pub fn find(&self, db: usize, id: (&[u8], u64), now: UnixMillis) -> Option<OnceRecord<'_>> {
        if self.is_empty() {
            return None;
        }
        let slot = &self.slots[self.slot_of(id, db)? as usize];
        (slot.expires > now.0).then(|| slot.record())
    }

    /// Shows every request: its database, its id, and what is kept. Marks are left out: whether a
    /// request has one depends on where its id and its key lie.
    pub fn for_each(&self, visit: impl FnMut(usize, &[u8], OnceRecord<'_>)) {
        self.share().for_each(visit);
    }

    /// The requests as they are now. None is copied before it is changed.
    pub fn share(&self) -> SharedRequests {
        SharedRequests(self.slots.clone())
    }

    /// Keeps a record, in place of one of the same id that is over.
    pub fn put(
        &mut self,
        db: usize,
        (id, hash): (&[u8], u64),
        record: OnceRecord,
        now: UnixMillis,
    ) {
        self.expire(now, EXPIRED_PER_PUT);
        if let Some(old) = self.slot_of((id, hash), db) {
            let slot = &self.slots[old as usize];
            let expired = if slot.expires <= now.0 { slot.requests() } else { 0 };
            self.totals.add_expired(expired);
            self.remove(old);
        }
        let mut bytes = SmallVec::<[u8; SHORT_BYTES_MAX]>::from_slice(id);
        bytes.extend_from_slice(record.reply);
        self.add(Slot {
            hash,
            digest: record.digest,
            expires: record.expires.0,
            db: db as u32,
            id_len: id.len() as u32,
            bytes: Some(Arc::from(&*bytes)),
        });
    }

    fn add(&mut self, slot: Slot) {
        let at = self.free.pop().unwrap_or_else(|| self.grow());
        self.index.add(tag(slot.hash, slot.db as usize), at);
        self.deadlines.push(Reverse((slot.expires, at)));
        let bytes = slot.memory_bytes();
        *self.slots.at_mut(at as usize) = slot;
        self.count(1, bytes);
    }

    /// Makes free slots, and takes the first of them.
    fn grow(&mut self) -> u32 {
        let (first, end) = (self.slots.len() as u32, self.slots.grow() as u32);
        self.free.extend((first + 1..end).rev());
        first
    }

    fn remove(&mut self, at: u32) {
        let slot = self.slots.at_mut(at as usize);
        let bytes = slot.memory_bytes();
        slot.bytes = None;
        self.index.remove(tag(slot.hash, slot.db as usize), at);
        self.free.push(at);
        if self.is_empty() {
            // Deadlines of records that were gone before are all that is left.
            self.take_lists();
        }
        self.count(-1, -bytes);
    }

    /// Forgets up to `budget` records that are over; how many that were.
    pub fn expire(&mut self, now: UnixMillis, budget: usize) -> usize {
        let (mut count, mut requests) = (0, 0);
        while count < budget
            && let Some(Reverse((deadline, at))) = self.deadlines.peek().copied()
            && deadline <= now.0
        {
            self.deadlines.pop();
            // The slot may hold a later record by now; one of the same deadline is over, too.
            let slot = &self.slots[at as usize];
            if slot.bytes.is_some() && slot.expires == deadline {
                requests += slot.requests();
                self.remove(at);
                count += 1;
            }
        }
        self.totals.add_expired(requests);
        if self.slots.len() >= SPARSE_SLOTS_MIN && self.len() < self.slots.len() / 4 {
            // Their room counts against the bound on all records.
            self.rebuild(Some);
        }
        count
    }

    /// Exchanges the records of two databases.
    pub fn swap(&mut self, (one, other): (usize, usize)) {
        let of = |db: usize| match db {
            db if db == one => other,
            db if db == other => one,
            db => db,
        };
        self.rebuild(|db| Some(of(db)));
    }

    /// Forgets the records of a database that was emptied.
    pub fn clear(&mut self, db: usize) {
        self.rebuild(|of| (of != db).then_some(of));
    }

    /// Puts every record into the database that it belongs to now, or nowhere.
    fn rebuild(&mut self, new_db: impl Fn(usize) -> Option<usize>) {
        if self.slots.len() == 0 {
            return;
        }
        let slots = self.take_lists().slots;
        for mut slot in slots.iter().filter(|slot| slot.bytes.is_some()).cloned() {
            self.totals.change(-1, -slot.memory_bytes());
            if let Some(db) = new_db(slot.db as usize) {
                slot.db = db as u32;
                self.add(slot);
            }
        }
    }
}
