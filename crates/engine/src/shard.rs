//! One shard: a table for each database, and who waits for or watches its keys.

use crate::field_expiry::FieldSchedule;
use crate::lifetime::MeanExpiry;
use crate::once::OnceRecords;
use crate::store::raw::table::{PagePool, Table};
use crate::value::Object;
use crate::waiting::Waiting;
use crate::watch::Watched;
use russet_base::hash::KeyHasher;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What is behind one shard's lock.
pub struct Shard {
    pub(crate) tables: Vec<Table<Object>>,
    /// By database: the hashes some of whose fields expire.
    pub(crate) fields: Vec<FieldSchedule>,
    pub watched: Watched,
    pub waiting: Waiting,
    pub once: OnceRecords,
}

impl Shard {
    pub(crate) fn new(databases: usize, pool: &Arc<PagePool>, hasher: KeyHasher) -> Self {
        let tables = (0..databases).map(|_| Table::new(pool.clone(), hasher)).collect();
        let fields = (0..databases).map(|_| FieldSchedule::default()).collect();
        let (watched, waiting) = (Watched::default(), Waiting::default());
        Shard { tables, fields, watched, waiting, once: OnceRecords::default() }
    }

    pub fn table(&self, db: usize) -> &Table<Object> {
        &self.tables[db]
    }

    /// Whether a touched key may be of interest to someone.
    #[inline]
    pub(crate) fn has_listeners(&self) -> bool {
        !self.watched.is_empty() || !self.waiting.is_empty()
    }
}

/// What INFO wants to know of a shard, readable without its lock. Only the holder of the lock
/// writes, so plain stores are enough.
#[derive(Default)]
pub struct ShardGauges {
    pub keys: Vec<AtomicU64>,
    pub expires: Vec<AtomicU64>,
    /// Hashes some of whose fields expire.
    pub volatile: Vec<AtomicU64>,
    bytes: Vec<AtomicU64>,
    pub expired: AtomicU64,
    pub(crate) mean_expiry: Vec<MeanExpiry>,
    pub expired_fields: AtomicU64,
}

impl ShardGauges {
    pub(crate) fn new(databases: usize) -> Self {
        ShardGauges {
            keys: (0..databases).map(|_| AtomicU64::new(0)).collect(),
            expires: (0..databases).map(|_| AtomicU64::new(0)).collect(),
            volatile: (0..databases).map(|_| AtomicU64::new(0)).collect(),
            bytes: (0..databases).map(|_| AtomicU64::new(0)).collect(),
            expired: AtomicU64::new(0),
            mean_expiry: (0..databases).map(|_| MeanExpiry::default()).collect(),
            expired_fields: AtomicU64::new(0),
        }
    }

    pub(crate) fn publish(&self, shard: &Shard, db: usize) {
        let table = &shard.tables[db];
        self.keys[db].store(table.len() as u64, Ordering::Relaxed);
        self.expires[db].store(table.expires_len() as u64, Ordering::Relaxed);
        self.publish_volatile(db, shard.fields[db].len());
        self.bytes[db].store(table.memory_bytes() as u64, Ordering::Relaxed);
    }

    /// Bytes of slots and entries; objects are counted by the allocator.
    pub fn memory_bytes(&self) -> u64 {
        self.bytes.iter().map(|bytes| bytes.load(Ordering::Relaxed)).sum()
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
