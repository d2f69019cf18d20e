//! One shard: a table for each database in use, and who waits for or watches its keys.

use crate::field_expiry::FieldSchedule;
use crate::lifetime::MeanExpiry;
use crate::once::OnceRecords;
use crate::snapshot::ShardSnapshot;
use crate::store::raw::lock::PREFETCHED_BYTES;
use crate::store::raw::table::{Blocks, Table};
use crate::tracked::TrackedKeys;
use crate::value::Object;
use crate::waiting::Waiting;
use crate::watch::Watched;
use russet_base::hash::KeyHasher;
use std::mem::offset_of;
use std::ops::{Index, IndexMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What is behind one shard's lock. What every command looks at comes first: those lines of memory
/// are asked for before the lock is taken.
#[repr(C)]
pub struct Shard {
    pub(crate) tables: ByDatabase<Table<Object>>,
    /// By database: the hashes some of whose fields expire.
    pub(crate) fields: ByDatabase<FieldSchedule>,
    pub watched: Watched,
    pub tracked: TrackedKeys,
    pub waiting: Waiting,
    pub once: OnceRecords,
    /// The offset of the journal behind the last call that may have changed it, while nothing may
    /// be shown that is not durable.
    pub(crate) last_write: u64,
    pub(crate) snapshot: Box<ShardSnapshot>,
}

/// What [`Shard::has_listeners`] looks at is among the lines that are asked for.
const _: () = assert!(offset_of!(Shard, waiting) + size_of::<[usize; 3]>() <= PREFETCHED_BYTES);

impl Shard {
    pub(crate) fn new(
        blocks: &Arc<Blocks>,
        hasher: KeyHasher,
        (once, tracked): (OnceRecords, TrackedKeys),
    ) -> Self {
        let tables = ByDatabase::new(Table::new(blocks.clone(), hasher));
        let fields = ByDatabase::new(FieldSchedule::new(blocks));
        let (watched, waiting) = (Watched::default(), Waiting::default());
        let snapshot = Box::default();
        Shard { tables, fields, watched, tracked, waiting, once, last_write: 0, snapshot }
    }

    pub fn table(&self, db: usize) -> &Table<Object> {
        &self.tables[db]
    }

    /// The databases that may hold something: those before this one.
    pub fn databases_end(&self) -> usize {
        self.tables.end()
    }

    /// Whether some field of some hash has a deadline.
    pub fn has_expiring_fields(&self) -> bool {
        (0..self.fields.end()).any(|db| self.fields[db].len() > 0)
    }

    /// Bytes of a database's keys and values, and of what is kept beside them.
    pub fn memory_bytes(&self, db: usize) -> usize {
        self.tables[db].memory_bytes() + self.fields[db].memory_bytes()
    }

    /// Whether a touched key may be of interest to someone.
    #[inline]
    pub(crate) fn has_listeners(&self) -> bool {
        !self.watched.is_empty() || !self.waiting.is_empty() || !self.tracked.is_empty()
    }
}

/// What a shard has for each database: for the first at once, for others when they are first used,
/// since there are hundreds of shards and few servers use more than one database. The first lies in
/// the shard itself, so that who has locked it need not wait for memory once more.
#[repr(C)]
pub(crate) struct ByDatabase<T> {
    first: T,
    others: Box<Others<T>>,
}

/// What a shard has for the databases behind the first.
struct Others<T> {
    /// Up to the last that was used.
    made: Vec<T>,
    /// What is read of a database that was never written to.
    blank: T,
}

/// Can give another of its kind that holds nothing.
pub(crate) trait Blank {
    fn blank(&self) -> Self;
}

impl Blank for Table<Object> {
    fn blank(&self) -> Self {
        self.empty_twin()
    }
}

impl Blank for FieldSchedule {
    fn blank(&self) -> Self {
        self.empty_twin()
    }
}

impl<T: Blank> ByDatabase<T> {
    fn new(blank: T) -> Self {
        let first = blank.blank();
        ByDatabase { first, others: Box::new(Others { made: Vec::new(), blank }) }
    }

    /// The databases that may hold something: those before this one.
    pub fn end(&self) -> usize {
        1 + self.others.made.len()
    }

    pub fn swap(&mut self, one: usize, other: usize) {
        let (low, high) = (one.min(other), one.max(other));
        if high > self.others.made.len() {
            self.make(high);
        }
        let made = &mut self.others.made;
        match low.checked_sub(1) {
            Some(low) => made.swap(low, high - 1),
            None if high > 0 => std::mem::swap(&mut self.first, &mut made[high - 1]),
            None => {}
        }
    }

    /// All of them, those that are yet to be made included.
    pub fn each_mut(&mut self, mut action: impl FnMut(&mut T)) {
        action(&mut self.first);
        self.others.made.iter_mut().for_each(&mut action);
        action(&mut self.others.blank);
    }

    #[cold]
    fn make(&mut self, db: usize) {
        let Others { made, blank } = &mut *self.others;
        let missing = db - made.len();
        made.reserve_exact(missing);
        made.extend((0..missing).map(|_| blank.blank()));
    }
}

impl<T> Index<usize> for ByDatabase<T> {
    type Output = T;

    #[inline]
    fn index(&self, db: usize) -> &T {
        match db.checked_sub(1) {
            None => &self.first,
            Some(at) => self.others.made.get(at).unwrap_or(&self.others.blank),
        }
    }
}

impl<T: Blank> IndexMut<usize> for ByDatabase<T> {
    #[inline]
    fn index_mut(&mut self, db: usize) -> &mut T {
        match db.checked_sub(1) {
            None => &mut self.first,
            Some(at) => {
                if at >= self.others.made.len() {
                    self.make(db);
                }
                &mut self.others.made[at]
            }
        }
    }
}

/// What INFO wants to know of a shard, readable without its lock. Only the holder of the lock
/// writes, so plain stores are enough.
#[derive(Default)]
pub struct ShardGauges {
    pub expires: Vec<AtomicU64>,
    /// Hashes some of whose fields expire.
    pub volatile: Vec<AtomicU64>,
    pub expired: AtomicU64,
    pub(crate) mean_expiry: Vec<MeanExpiry>,
    pub expired_fields: AtomicU64,
    /// Of the last snapshot that the shard has joined.
    snapshot_version: AtomicU64,
}

impl ShardGauges {
    pub(crate) fn new(databases: usize) -> Self {
        ShardGauges {
            expires: (0..databases).map(|_| AtomicU64::new(0)).collect(),
            volatile: (0..databases).map(|_| AtomicU64::new(0)).collect(),
            expired: AtomicU64::new(0),
            mean_expiry: (0..databases).map(|_| MeanExpiry::default()).collect(),
            expired_fields: AtomicU64::new(0),
            snapshot_version: AtomicU64::new(0),
        }
    }

    pub(crate) fn publish(&self, shard: &Shard, db: usize) {
        let table = &shard.tables[db];
        self.expires[db].store(table.expires_len() as u64, Ordering::Relaxed);
        self.publish_volatile(db, shard.fields[db].len());
    }

    pub(crate) fn snapshot_version(&self) -> u64 {
        self.snapshot_version.load(Ordering::Acquire)
    }

    pub(crate) fn set_snapshot_version(&self, version: u64) {
        self.snapshot_version.store(version, Ordering::Release);
    }

    pub(crate) fn count_expired(&self, count: u64) {
        let before = self.expired.load(Ordering::Relaxed);
        self.expired.store(before + count, Ordering::Relaxed);
    }

    pub(crate) fn publish_volatile(&self, db: usize, count: usize) {
        self.volatile[db].store(count as u64, Ordering::Relaxed);
    }

    pub(crate) fn count_expired_fields(&self, count: u64) {
        let before = self.expired_fields.load(Ordering::Relaxed);
        self.expired_fields.store(before + count, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::raw::table::{NewValue, PagePool};

    #[test]
    fn databases_are_made_as_they_are_written_to() {
        let blocks = Arc::new(Blocks::new(Arc::new(PagePool::new())));
        let hasher = KeyHasher::with_seed(1);
        let tracked = TrackedKeys::new(Arc::default(), hasher);
        let beside = (OnceRecords::new(Arc::default()), tracked);
        let mut tables = Shard::new(&blocks, hasher, beside).tables;
        assert!(tables[9].is_empty() && tables.end() == 1, "reading makes nothing");
        let hash = hasher.hash(b"k");
        tables[2].insert(b"k", hash, NewValue::Int(7), None);
        assert_eq!((tables.end(), tables[0].len(), tables[2].len()), (3, 0, 1));
        tables.swap(2, 5);
        assert_eq!((tables.end(), tables[2].len(), tables[5].len()), (6, 0, 1));
        tables.swap(0, 1);
        assert!(tables[5].find(b"k", hash).is_some() && tables[15].find(b"k", hash).is_none());
    }
}
