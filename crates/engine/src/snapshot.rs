//! Snapshots of all data at one point in time, while calls go on.
//!
//! A snapshot has a version. A call reads the current one once it holds its shards, so versions
//! never go back along a shard: what calls of older versions have changed is part of the snapshot,
//! in all their shards, and what newer ones change in none. No moment is needed at which all shards
//! are held.
//!
//! Each entry has a mark. When a shard is first held in a new version it joins the snapshot: its
//! tables turn their mark, and so all entries that are there are unsaved and all that come later
//! are not. The walk (`snapshot/walk.rs`) takes unsaved entries and marks them. A call that is
//! about to change or remove an unsaved entry hands it over first ([`ShardSnapshot::keep`]): an
//! object that is removed is moved, anything else is copied. The copy of a large collection shares
//! its chunks, which are copied one by one as they are changed (`types/cow_vec.rs`), so that no
//! call waits for a whole value. Tables that are emptied are handed over as a whole. So each entry
//! is saved once, as it was at the cut.
//!
//! When a snapshot is over all entries have the mark of their tables again. One that is cancelled
//! is walked to its end for that, without saving anything.
//!
//! What the data is written as, and where, is up to the callers.

#[cfg(test)]
mod tests;
mod walk;

pub use walk::{Batch, Kept, Walk};

use crate::barrier::Barrier;
use crate::journal::Journal;
use crate::keyspace::Keyspace;
use crate::once::SharedRequests;
use crate::shard::Shard;
use crate::store::raw::table::{Blocks, Measured, NewValue, PagePool, Removed, Table};
use crate::value::Object;
use russet_base::hash::KeyHasher;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

/// Bytes of copies that wait to be written when calls that write are held back.
pub const COPIES_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Slabs that copies lie in: threads that write at the same time seldom meet.
const SLABS: usize = 8;

/// A version, and whether its snapshot is being taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Epoch(u64);

impl Epoch {
    pub fn version(self) -> u64 {
        self.0 >> 1
    }

    #[inline]
    pub fn is_running(self) -> bool {
        self.0 & 1 != 0
    }
}

/// Which snapshot there is, for all calls.
#[derive(Default)]
pub struct Snapshots {
    epoch: AtomicU64,
    current: Mutex<Option<Arc<Snapshot>>>,
}

impl Snapshots {
    /// To be read by who holds all its shards.
    #[inline]
    pub(crate) fn epoch(&self) -> Epoch {
        // Whoever held a shard before has read what it read before it let go of it.
        Epoch(self.epoch.load(Ordering::Relaxed))
    }

    fn current(&self) -> MutexGuard<'_, Option<Arc<Snapshot>>> {
        self.current.lock().unwrap_or_else(|poison| poison.into_inner())
    }

    /// Bytes of copies that are kept for the snapshot under way, and at most so far.
    pub fn copies_bytes(&self) -> (u64, u64) {
        let current = self.current();
        current.as_ref().map_or((0, 0), |snapshot| (snapshot.copies_bytes(), snapshot.peak_bytes()))
    }
}

/// A snapshot that is being taken.
pub struct Snapshot {
    version: u64,
    pool: Arc<PagePool>,
    slabs: Box<[Arc<Blocks>]>,
    hasher: KeyHasher,
    journal: Arc<Journal>,
    is_cancelled: AtomicBool,
    has_expiring_fields: AtomicBool,
    keys: AtomicU64,
    peak_bytes: AtomicU64,
    at_cut: Box<dyn Fn() + Send + Sync>,
}

impl Snapshot {
    pub fn version(&self) -> u64 {
        self.version
    }

    /// What is taken from here on is of no use: nothing is kept any more.
    pub fn cancel(&self) {
        self.is_cancelled.store(true, Ordering::Release);
        self.journal.raise(Barrier::Copies, false);
    }

    pub fn is_cancelled(&self) -> bool {
        self.is_cancelled.load(Ordering::Acquire)
    }

    /// Whether some hash has fields that expire. Known once all shards have joined.
    pub fn has_expiring_fields(&self) -> bool {
        self.has_expiring_fields.load(Ordering::Relaxed)
    }

    /// How many keys it will have. Known once all shards have joined.
    pub fn keys(&self) -> u64 {
        self.keys.load(Ordering::Relaxed)
    }

    /// Bytes of copies that are kept now.
    pub fn copies_bytes(&self) -> u64 {
        self.pool.used().bytes()
    }

    pub fn peak_bytes(&self) -> u64 {
        self.peak_bytes.load(Ordering::Relaxed)
    }

    fn count(&self, lane: usize, bytes: isize) {
        self.pool.used().add(lane, bytes);
        let total = self.copies_bytes();
        self.peak_bytes.fetch_max(total, Ordering::Relaxed);
        let is_over = total > COPIES_BYTES_MAX;
        if is_over != self.journal.barriers().is_up(Barrier::Copies) && !self.is_cancelled() {
            self.journal.raise(Barrier::Copies, is_over);
        }
    }
}

/// What a shard has for the snapshot under way.
#[derive(Default)]
pub(crate) struct ShardSnapshot {
    /// Of the last call that held the shard while a snapshot was taken.
    version: u64,
    /// The shard's number, so that shards use different slabs.
    lane: usize,
    /// None once the walk is through with the shard.
    running: Option<Arc<Snapshot>>,
    /// Where the table of each database was at the cut; empty: where it is.
    origins: Vec<usize>,
    kept: Vec<Kept>,
    /// Those that ran once, as they were at the cut.
    requests: Option<SharedRequests>,
}

impl ShardSnapshot {
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Whether unsaved entries are still needed.
    pub fn is_wanted(&self) -> bool {
        self.wanted().is_some()
    }

    fn wanted(&self) -> Option<&Arc<Snapshot>> {
        self.running.as_ref().filter(|snapshot| !snapshot.is_cancelled())
    }

    fn origin(&self, db: usize) -> usize {
        self.origins.get(db).copied().unwrap_or(db)
    }

    /// Where the table is now that was at a database at the cut.
    fn location_of(&self, origin: usize) -> usize {
        self.origins.iter().position(|of| *of == origin).unwrap_or(origin)
    }

    /// Takes an unsaved entry over. Gives an object back that is of no use.
    #[cold]
    pub fn keep(
        &mut self,
        (db, key): (usize, &[u8]),
        mut entry: Removed<Object>,
    ) -> Option<Box<Object>> {
        if self.wanted().is_none() {
            return entry.into_object();
        }
        let facts = (entry.expiry(), entry.access());
        self.keep_value((db, key), entry.to_new_value(), facts);
        None
    }

    /// Takes a copy of an unsaved entry over. What a collection shares with its copy is not counted
    /// as the snapshot's: those who write would be held back for memory that nobody has taken.
    #[cold]
    pub fn keep_copy(&mut self, (db, key): (usize, &[u8]), mut copy: Removed<Object>) {
        let shared_bytes = match copy.object() {
            // A string is copied as a whole by who changes it.
            None | Some(Object::String(_)) => 0,
            Some(object) => object.memory_bytes(),
        };
        let facts = (copy.expiry(), copy.access());
        self.store((db, key), copy.to_new_value(), facts, shared_bytes);
    }

    /// As [`ShardSnapshot::keep`], for what is left of an entry that is gone.
    #[cold]
    pub fn keep_value(
        &mut self,
        (db, key): (usize, &[u8]),
        value: NewValue<'_, Object>,
        facts: (Option<i64>, u32),
    ) {
        self.store((db, key), value, facts, 0);
    }

    fn store(
        &mut self,
        (db, key): (usize, &[u8]),
        value: NewValue<'_, Object>,
        (expiry, access): (Option<i64>, u32),
        shared_bytes: usize,
    ) {
        let Some(snapshot) = self.wanted().cloned() else { return };
        let origin = self.origin(db);
        let known = self.kept.iter().position(|kept| kept.db == origin && !kept.is_whole);
        let at = known.unwrap_or_else(|| {
            let blocks = snapshot.slabs[self.lane % SLABS].clone();
            let table = Table::new(blocks, snapshot.hasher);
            self.kept.push(Kept { db: origin, table, is_whole: false, shared_bytes: 0 });
            self.kept.len() - 1
        });
        let kept = &mut self.kept[at];
        let hash = snapshot.hasher.hash(key);
        kept.table.insert(key, hash, value, expiry).set_access(access);
        kept.shared_bytes += shared_bytes;
        let bytes = kept.table.take_unpublished() - shared_bytes.cast_signed();
        snapshot.count(self.lane, bytes);
    }

    /// Takes over what a database has held that is emptied. Gives back what is of no use.
    pub fn keep_table(&mut self, db: usize, table: Table<Object>) -> Option<Table<Object>> {
        let Some(snapshot) = self.wanted().cloned() else { return Some(table) };
        snapshot.count(self.lane, table.memory_bytes().cast_signed());
        let db = self.origin(db);
        self.kept.push(Kept { db, table, is_whole: true, shared_bytes: 0 });
        None
    }

    /// Two databases have changed places.
    pub fn swap(&mut self, (one, other): (usize, usize)) {
        if self.running.is_some() {
            let end = one.max(other) + 1;
            self.origins.extend(self.origins.len()..end);
            self.origins.swap(one, other);
        }
    }
}

impl Shard {
    /// The shard is held for the first time since the cut.
    #[cold]
    pub(crate) fn join_snapshot(&mut self, index: usize, snapshot: &Arc<Snapshot>) {
        debug_assert_eq!(self.snapshot.version + 1, snapshot.version, "one after the other");
        if index == 0 {
            (snapshot.at_cut)();
        }
        self.tables.each_mut(|table| table.set_mark(snapshot.version & 1 == 1));
        if self.has_expiring_fields() {
            snapshot.has_expiring_fields.store(true, Ordering::Relaxed);
        }
        let keys: usize = (0..self.databases_end()).map(|db| self.tables[db].len()).sum();
        snapshot.keys.fetch_add(keys as u64, Ordering::Relaxed);
        let requests = (!self.once.is_empty()).then(|| self.once.share());
        *self.snapshot = ShardSnapshot {
            version: snapshot.version,
            running: Some(snapshot.clone()),
            lane: index,
            requests,
            ..ShardSnapshot::default()
        };
    }
}

impl Keyspace {
    /// Begins a snapshot: the cut is here. `before` learns its version first, before any call has
    /// it. `at_cut` is called once, by who first holds the first shard afterwards, before it
    /// changes anything. None if a snapshot is under way.
    pub fn begin_snapshot(
        &self,
        before: impl FnOnce(u64),
        at_cut: Box<dyn Fn() + Send + Sync>,
    ) -> Option<Walk> {
        let mut current = self.snapshots().current();
        if current.is_some() {
            return None;
        }
        let version = self.snapshots().epoch().version() + 1;
        before(version);
        let pool = Arc::new(PagePool::new());
        let snapshot = Arc::new(Snapshot {
            version,
            slabs: (0..SLABS).map(|_| Arc::new(Blocks::new(pool.clone()))).collect(),
            pool,
            hasher: self.hasher(),
            journal: self.journal().clone(),
            is_cancelled: AtomicBool::new(false),
            has_expiring_fields: AtomicBool::new(false),
            keys: AtomicU64::new(0),
            peak_bytes: AtomicU64::new(0),
            at_cut,
        });
        *current = Some(snapshot.clone());
        self.snapshots().epoch.store(version << 1 | 1, Ordering::SeqCst);
        Some(Walk::new(snapshot))
    }

    /// The walk is through with all shards.
    fn end_snapshot(&self, snapshot: &Snapshot) {
        self.snapshots().epoch.store(snapshot.version << 1, Ordering::SeqCst);
        self.journal().raise(Barrier::Copies, false);
        self.snapshots().current().take();
    }

    /// For who holds a shard that has not joined the snapshot of this version.
    #[cold]
    pub(crate) fn join(&self, index: usize, shard: &mut Shard) {
        let current = self.snapshots().current().clone();
        // It can't be over before this shard has joined.
        let snapshot = current.expect("a snapshot under way is not over");
        shard.join_snapshot(index, &snapshot);
        self.gauges()[index].set_snapshot_version(snapshot.version);
    }
}
