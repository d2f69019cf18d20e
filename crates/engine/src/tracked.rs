//! Which clients have read which keys of a shard, and so may keep copies: they are notified when a
//! key changes. A read is noted, and a change looks here, under the shard's lock, so no change
//! behind a read is missed. Names count, not databases: a key of that name in any will do.

mod readers;
mod table;

pub use readers::{Reader, ReaderSlots, SlotSet};
pub use table::Gone;

use crate::effects::Effects;
use russet_base::hash::KeyHasher;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use table::{Counted, KeyTable, Record};

/// The clients that have read a key, by their numbers: in ascending order, each once.
pub type Readers = Vec<u64>;

/// Why copies of a key are of no use any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// A client has changed it; with 0 nobody has, or nobody whom that matters to.
    ChangedBy(u64),
    /// Its readers are forgotten for want of room: it is as it was.
    TableFull,
}

impl Cause {
    /// It has expired, or was evicted.
    pub const GONE: Cause = Cause::ChangedBy(0);
}

/// A key whose copies are of no use any more, and who may have one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedKey {
    pub key: Box<[u8]>,
    pub readers: Readers,
    pub cause: Cause,
}

/// What all shards remember, readable without their locks.
#[derive(Debug, Default)]
pub struct TrackedTotals {
    keys: AtomicU64,
    readers: AtomicU64,
    bytes: AtomicU64,
    /// Who they are.
    pub slots: ReaderSlots,
}

impl TrackedTotals {
    pub fn keys(&self) -> u64 {
        self.keys.load(Ordering::Relaxed)
    }

    /// Those of each key, added up.
    pub fn readers(&self) -> u64 {
        self.readers.load(Ordering::Relaxed)
    }

    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    fn add(&self, added: Counted) {
        self.readers.fetch_add(added.readers, Ordering::Relaxed);
        if added.keys > 0 {
            self.keys.fetch_add(added.keys, Ordering::Relaxed);
        }
        if added.bytes > 0 {
            self.bytes.fetch_add(added.bytes, Ordering::Relaxed);
        }
    }

    fn subtract(&self, gone: Counted) {
        self.keys.fetch_sub(gone.keys, Ordering::Relaxed);
        self.readers.fetch_sub(gone.readers, Ordering::Relaxed);
        self.bytes.fetch_sub(gone.bytes, Ordering::Relaxed);
    }
}

/// The keys of one shard that clients have read. Made when the first one is, so that a shard which
/// has none is hardly larger, and a write need not look far.
#[derive(Debug)]
pub struct TrackedKeys {
    table: Option<Box<KeyTable>>,
    totals: Arc<TrackedTotals>,
    hasher: KeyHasher,
}

impl TrackedKeys {
    pub(crate) fn new(totals: Arc<TrackedTotals>, hasher: KeyHasher) -> Self {
        TrackedKeys { table: None, totals, hasher }
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.table.as_ref().is_none_or(|table| table.is_empty())
    }

    /// A client has read a key of this hash. True if nobody has before.
    pub(crate) fn add(&mut self, (hash, key): (u64, &[u8]), reader: Reader) -> bool {
        debug_assert_eq!(hash, self.hasher.hash(key));
        let added = self.table.get_or_insert_default().add((hash, key), reader);
        if added.readers > 0 {
            self.totals.add(added);
        }
        added.keys > 0
    }

    /// Hints that a key's slot will be needed soon.
    #[inline]
    pub(crate) fn prefetch_slot(&self, hash: u64) {
        if let Some(table) = &self.table {
            table.prefetch_slot(hash);
        }
    }

    /// The same for what is known of the key, where its slot was fetched.
    #[inline]
    pub(crate) fn prefetch_record(&self, hash: u64) {
        if let Some(table) = &self.table {
            table.prefetch_record(hash);
        }
    }

    /// Who has read a key. They are forgotten: each is notified once.
    pub fn take(&mut self, key: &[u8]) -> Readers {
        let hash = self.hasher.hash(key);
        let record = self.table.as_mut().and_then(|table| table.remove(hash, key));
        record.map_or_else(Readers::new, |record| self.readers_of(&record))
    }

    /// The readers of a key that is forgotten.
    fn readers_of(&self, record: &Record) -> Readers {
        self.totals.subtract(Counted::of(record));
        let mut readers: Readers = self.totals.slots.ids(record.slots()).collect();
        readers.extend_from_slice(record.others());
        readers.sort_unstable();
        readers.dedup();
        readers
    }

    /// Any key, with its readers, which are forgotten for want of room; if possible not this one.
    pub fn take_other_than(&mut self, key: &[u8]) -> Option<ChangedKey> {
        let record = self.table.as_mut()?.remove_other_than(key)?;
        let readers = self.readers_of(&record);
        Some(ChangedKey { key: record.name().into(), readers, cause: Cause::TableFull })
    }

    /// Forgets every key.
    pub fn clear(&mut self) {
        if let Some(forgotten) = self.table.take() {
            let mut gone = Counted::default();
            forgotten.records().iter().for_each(|record| gone.add(Counted::of(record)));
            self.totals.subtract(gone);
        }
    }

    /// Forgets readers that are gone, and keys that nobody else has read, in a step of many. True
    /// if that was the last one.
    pub fn forget_readers(&mut self, gone: &Gone<'_>) -> bool {
        let Some(table) = &mut self.table else { return true };
        let (is_over, forgotten) = table.forget_step(gone);
        self.totals.subtract(forgotten);
        if table.is_empty() {
            self.table = None;
        }
        is_over
    }
}

impl Effects {
    /// A key of a shard was changed: those who have read it, or track all, are to be notified.
    #[inline]
    pub(crate) fn note_change(&mut self, tracked: &mut TrackedKeys, key: &[u8], cause: Cause) {
        if self.wants_all_keys || !tracked.is_empty() {
            self.gather_change(tracked, key, cause);
        }
    }

    #[inline(never)]
    fn gather_change(&mut self, tracked: &mut TrackedKeys, key: &[u8], cause: Cause) {
        let readers = tracked.take(key);
        if self.wants_all_keys || !readers.is_empty() {
            self.changed.push(ChangedKey { key: key.into(), readers, cause });
        }
    }
}

#[cfg(test)]
mod tests;
