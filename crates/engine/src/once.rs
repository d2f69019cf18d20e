//! What requests that must run at most once have answered: by request id, for a time. The records
//! of a shard are behind its lock, so that one is there exactly when the effect is.

use russet_base::clock::UnixMillis;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What a record takes besides its id and reply: its slot, and its places in the index and among
/// the deadlines.
const RECORD_BYTES: usize = size_of::<Slot>() + 2 * size_of::<u64>() + size_of::<(i64, u32)>();

/// Records that are over and go for each new one, so that however fast they come, they do not pile
/// up between two visits of the housekeeping.
const EXPIRED_PER_PUT: usize = 2;

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

    fn add(&self, slot: &Slot) {
        self.records.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(slot.memory_bytes() as u64, Ordering::Relaxed);
    }

    fn remove(&self, slot: &Slot) {
        self.records.fetch_sub(1, Ordering::Relaxed);
        self.bytes.fetch_sub(slot.memory_bytes() as u64, Ordering::Relaxed);
    }
}

/// One request that has run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OnceRecord<'r> {
    /// Of the command and its words: the same id with other words is refused.
    pub digest: u128,
    /// The reply, as it was sent. No reply is empty: an empty one marks a request whose reply is
    /// kept in another shard.
    pub reply: &'r [u8],
    pub expires: UnixMillis,
}

/// A record in its place, or what is left of one.
#[derive(Debug)]
struct Slot {
    digest: u128,
    expires: i64,
    /// The id and the reply; None in a slot that is free.
    bytes: Option<Box<[u8]>>,
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

    fn memory_bytes(&self) -> usize {
        RECORD_BYTES + self.bytes.as_deref().map_or(0, <[u8]>::len)
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
    slots: Vec<Slot>,
    free: Vec<u32>,
    index: Index,
    /// When a slot's record is over, the soonest first. Some tell of records that are gone.
    deadlines: BinaryHeap<Reverse<(i64, u32)>>,
    totals: Arc<OnceTotals>,
}

impl OnceRecords {
    pub fn new(totals: Arc<OnceTotals>) -> Self {
        OnceRecords {
            slots: Vec::new(),
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
    pub fn for_each(&self, mut visit: impl FnMut(usize, &[u8], OnceRecord<'_>)) {
        for slot in self.slots.iter().filter(|slot| slot.requests() > 0) {
            if let Some(bytes) = &slot.bytes {
                visit(slot.db as usize, &bytes[..slot.id_len as usize], slot.record());
            }
        }
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
            self.totals.expired.fetch_add(expired, Ordering::Relaxed);
            self.remove(old);
        }
        let mut bytes = Vec::with_capacity(id.len() + record.reply.len());
        bytes.extend_from_slice(id);
        bytes.extend_from_slice(record.reply);
        self.add(Slot {
            hash,
            digest: record.digest,
            expires: record.expires.0,
            db: db as u32,
            id_len: id.len() as u32,
            bytes: Some(bytes.into()),
        });
    }

    fn add(&mut self, slot: Slot) {
        let at = self.free.pop().unwrap_or(self.slots.len() as u32);
        self.index.add(tag(slot.hash, slot.db as usize), at);
        self.totals.add(&slot);
        self.deadlines.push(Reverse((slot.expires, at)));
        match self.slots.get_mut(at as usize) {
            Some(free) => *free = slot,
            None => self.slots.push(slot),
        }
    }

    fn remove(&mut self, at: u32) {
        let slot = &mut self.slots[at as usize];
        self.totals.remove(slot);
        slot.bytes = None;
        self.index.remove(tag(slot.hash, slot.db as usize), at);
        self.free.push(at);
        if self.is_empty() {
            // Deadlines of records that were gone before are all that is left.
            *self = OnceRecords::new(self.totals.clone());
        }
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
        self.totals.expired.fetch_add(requests, Ordering::Relaxed);
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
    fn rebuild(&mut self, place: impl Fn(usize) -> Option<usize>) {
        if self.slots.is_empty() {
            return;
        }
        let empty = OnceRecords::new(self.totals.clone());
        let slots = std::mem::replace(self, empty).slots;
        for mut slot in slots.into_iter().filter(|slot| slot.bytes.is_some()) {
            self.totals.remove(&slot);
            if let Some(db) = place(slot.db as usize) {
                slot.db = db as u32;
                self.add(slot);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An id with a hash that many share.
    fn id(text: &[u8]) -> (&[u8], u64) {
        (text, u64::from(text[0]) << 32)
    }

    fn record(expires: i64) -> OnceRecord<'static> {
        OnceRecord { digest: 7, reply: b"+OK\r\n", expires: UnixMillis(expires) }
    }

    /// Long ago: nothing is over yet.
    const EARLY: UnixMillis = UnixMillis(0);

    #[test]
    fn records_go_when_their_time_is_over() {
        let totals = Arc::new(OnceTotals::default());
        let mut records = OnceRecords::new(totals.clone());
        records.put(0, id(b"a"), record(10), EARLY);
        records.put(0, id(b"b"), record(20), EARLY);
        records.put(1, id(b"a"), record(30), EARLY);
        assert_eq!(totals.records(), 3);
        assert_eq!(records.find(0, id(b"a"), UnixMillis(9)), Some(record(10)));
        assert_eq!(records.find(0, id(b"a"), UnixMillis(10)), None);
        assert_eq!(records.find(2, id(b"a"), UnixMillis(0)), None);
        assert_eq!(records.expire(UnixMillis(20), 1), 1);
        assert_eq!(records.expire(UnixMillis(20), 10), 1);
        assert_eq!(records.len(), 1);
        records.put(1, id(b"a"), record(40), EARLY);
        assert_eq!(records.len(), 1);
        records.clear(0);
        assert_eq!(records.len(), 1);
        records.clear(1);
        assert!(records.is_empty() && records.deadlines.is_empty());
        assert_eq!((totals.records(), totals.bytes(), totals.expired()), (0, 0, 2));
    }

    /// `stored` counted requests and `expired` records, two for a request whose id and key are in
    /// different shards; and one whose place a repeat took was not counted at all.
    #[test]
    fn a_request_counts_once_however_many_records_it_has() {
        let totals = Arc::new(OnceTotals::default());
        let mut homes = [OnceRecords::new(totals.clone()), OnceRecords::new(totals.clone())];
        let mark = |expires| OnceRecord { reply: b"", ..record(expires) };
        homes[0].put(0, id(b"a"), record(10), EARLY);
        homes[1].put(0, id(b"a"), mark(10), EARLY);
        assert_eq!((totals.records(), totals.expired()), (2, 0));
        homes.iter_mut().for_each(|records| assert_eq!(records.expire(UnixMillis(10), 9), 1));
        assert_eq!((totals.records(), totals.expired(), totals.bytes()), (0, 1, 0));
        // Two others that are over go first, so the third is there when it is used again.
        for name in [b"b", b"c", b"d"] {
            homes[0].put(0, id(name), record(20), EARLY);
        }
        homes[0].put(0, id(b"d"), record(40), UnixMillis(30));
        assert_eq!((totals.records(), totals.expired()), (1, 4));
    }

    /// DEBUG DIGEST FULL ended the server if a request had been forgotten whose place was free.
    #[test]
    fn what_is_shown_is_neither_a_mark_nor_a_free_place() {
        let mut records = OnceRecords::new(Arc::default());
        records.put(0, id(b"gone"), record(10), EARLY);
        records.put(1, id(b"kept"), record(40), EARLY);
        records.put(1, id(b"mark"), OnceRecord { reply: b"", ..record(40) }, EARLY);
        assert_eq!(records.expire(UnixMillis(10), 9), 1);
        let mut shown = Vec::new();
        records.for_each(|db, id, record| shown.push((db, id.to_vec(), record.expires.0)));
        assert_eq!(shown, [(1, b"kept".to_vec(), 40)]);
    }

    /// The housekeeping took a few hundred at a visit: 12,000 in a second on one key were more, and
    /// once it was full, requests were refused though nearly all records were over.
    #[test]
    fn records_do_not_pile_up_however_fast_they_come() {
        let totals = Arc::new(OnceTotals::default());
        let mut records = OnceRecords::new(totals.clone());
        for now in 0..100_000 {
            let name = now.to_string().into_bytes();
            records.put(0, id(&name), record(now / 10 + 50), UnixMillis(now / 10));
        }
        assert_eq!((records.len(), totals.records()), (500, 500));
        assert_eq!(totals.expired(), 99_500);
    }

    #[test]
    fn the_index_finds_what_is_there_though_hashes_collide() {
        let mut random = russet_base::Random::from_seed(3);
        let mut index = Index::default();
        let mut model = std::collections::BTreeMap::new();
        for _ in 0..20_000 {
            let slot = random.below(200) as u32;
            match model.remove(&slot) {
                Some(hash) => index.remove(hash, slot),
                None => {
                    let hash = [7, 8, 9, 15, 16, u32::MAX][random.below(6) as usize];
                    index.add(hash, slot);
                    model.insert(slot, hash);
                }
            }
            assert_eq!(index.used, model.len());
            let asked = random.below(200) as u32;
            for hash in [7, 15, u32::MAX] {
                let found = index.find(hash, |slot| slot == asked);
                assert_eq!(found, model.get(&asked).filter(|of| **of == hash).map(|_| asked));
            }
        }
    }

    #[test]
    fn records_are_as_in_a_map() {
        use std::collections::HashMap as Map;
        let mut random = russet_base::Random::from_seed(5);
        let totals = Arc::new(OnceTotals::default());
        let mut records = OnceRecords::new(totals.clone());
        type Kept = (u128, Vec<u8>, i64);
        let mut model: Map<(usize, Vec<u8>), Kept> = Map::new();
        for now in 0..4_000 {
            let (db, name) = (random.below(2) as usize, random.below(40).to_string().into_bytes());
            let found = records.find(db, id(&name), UnixMillis(now));
            let live = model.get(&(db, name.clone())).filter(|(_, _, expires)| *expires > now);
            let expected = live.map(|(digest, reply, expires)| (*digest, reply.clone(), *expires));
            let shown = found.map(|it| (it.digest, it.reply.to_vec(), it.expires.0));
            assert_eq!(shown, expected);
            match random.below(20) {
                0 => {
                    records.swap((0, 1));
                    model = model.drain().map(|((db, id), it)| ((1 - db, id), it)).collect();
                }
                1 => {
                    records.clear(db);
                    model.retain(|(of, _), _| *of != db);
                }
                2..=5 => {
                    records.expire(UnixMillis(now), 1000);
                    model.retain(|_, (_, _, expires)| *expires > now);
                    let bytes = |((_, id), (_, reply, _)): (&(usize, Vec<u8>), &Kept)| {
                        (RECORD_BYTES + id.len() + reply.len()) as u64
                    };
                    let expected = (model.len() as u64, model.iter().map(bytes).sum());
                    assert_eq!((totals.records(), totals.bytes()), expected);
                    assert_eq!(records.len(), model.len());
                }
                _ if shown.is_none() => {
                    let expires = now + 1 + random.below(60) as i64;
                    let reply = vec![b'x'; random.below(30) as usize];
                    let digest = u128::from(random.next_u64());
                    let record = OnceRecord { digest, reply: &reply, expires: UnixMillis(expires) };
                    records.put(db, id(&name), record, UnixMillis(now));
                    model.insert((db, name), (digest, reply, expires));
                }
                _ => {}
            }
        }
    }
}
