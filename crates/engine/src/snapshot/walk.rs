//! The walk through all shards that takes what a snapshot holds. It has each shard for a short time
//! only, again and again; what calls have handed over it takes along and looks at without a lock.

use super::Snapshot;
use crate::keyspace::Keyspace;
use crate::once::SharedRequests;
use crate::shard::Shard;
use crate::store::raw::lock::Locked;
use crate::store::raw::table::{Cursor, EntryRef, Measured, Removed, Table, View};
use crate::store::shard_set::ShardSet;
use crate::value::Object;
use std::sync::Arc;

/// What is taken while a shard is held: entries, and bytes that they come to. Some tens of
/// microseconds.
const SLICE_ENTRIES_MAX: usize = 64;
const SLICE_BYTES_MAX: usize = 16 * 1024;
/// Buckets that are looked at while a shard is held: most may have been taken already.
const SLICE_STEPS_MAX: usize = 256;

/// Larger objects are copied while the shard is held, and written when it is not: a copy shares all
/// chunks with what it was made of.
const LARGE_BYTES_MIN: usize = SLICE_BYTES_MAX;

/// Whether an object is better copied than written.
fn is_copied(object: &Object) -> bool {
    // A long string is shared, and not copied at all.
    matches!(object, Object::String(_)) || object.memory_bytes() >= LARGE_BYTES_MIN
}

/// Entries that were handed over, of one database.
pub struct Kept {
    /// Where they were at the cut.
    pub(super) db: usize,
    pub(super) table: Table<Object>,
    /// A whole database that was emptied, and not copies alone.
    pub(super) is_whole: bool,
    /// Bytes of the table that the keyspace has, too, or had.
    pub(super) shared_bytes: usize,
}

impl Kept {
    pub fn db(&self) -> usize {
        self.db
    }

    /// Shows every entry once.
    pub fn for_each(&mut self, mut visit: impl FnMut(EntryRef<'_, Object>)) {
        if !self.is_whole {
            self.table.set_mark(true);
        }
        let mut cursor = Cursor::START;
        loop {
            cursor = self.table.save_step(cursor, &mut visit);
            if cursor.is_end() {
                return;
            }
        }
    }
}

/// What was taken out of a shard.
#[derive(Default)]
pub struct Batch {
    pub kept: Vec<Kept>,
    pub requests: Vec<SharedRequests>,
    /// All shards are done.
    pub is_last: bool,
}

/// How far the walk of a snapshot has come.
pub struct Walk {
    snapshot: Arc<Snapshot>,
    shard: usize,
    /// Where the table that it is in was at the cut: SWAPDB moves tables, and the walk with them.
    db: usize,
    cursor: Cursor,
}

impl Walk {
    pub(super) fn new(snapshot: Arc<Snapshot>) -> Self {
        Walk { snapshot, shard: 0, db: 0, cursor: Cursor::START }
    }

    pub fn snapshot(&self) -> &Arc<Snapshot> {
        &self.snapshot
    }

    /// Has all shards join. Then no call is left that is part of the snapshot and not over.
    pub fn join_all(&self, keyspace: &Keyspace) {
        let version = self.snapshot.version;
        let is_joined = |index: usize| keyspace.gauges()[index].snapshot_version() == version;
        let all = || 0..keyspace.shards();
        for index in all().filter(|index| !is_joined(*index)) {
            if let Some(mut locked) = keyspace.try_lock_now(index) {
                self.join(keyspace, (index, locked.shard()));
            }
        }
        // Who holds a busy one may have it join, and many others with it.
        for index in all() {
            if !is_joined(index) {
                let mut locked = keyspace.lock(ShardSet::one(index));
                self.join(keyspace, (index, locked.shard(index)));
            }
        }
    }

    fn join(&self, keyspace: &Keyspace, (index, shard): (usize, &mut Shard)) {
        if shard.snapshot.version < self.snapshot.version {
            keyspace.join(index, shard);
        }
    }

    fn lock<'k>(&self, keyspace: &'k Keyspace, index: usize) -> Locked<'k, Shard> {
        let mut locked = keyspace.lock(ShardSet::one(index));
        self.join(keyspace, (index, locked.shard(index)));
        locked
    }

    /// Shows some entries of the shard that the walk has come to, with the databases that they
    /// were in; `visit` says what they come to in bytes.
    pub fn step(
        &mut self,
        keyspace: &Keyspace,
        visit: &mut dyn FnMut(usize, EntryRef<'_, Object>) -> usize,
    ) -> Batch {
        if self.shard >= keyspace.shards() {
            return Batch { is_last: true, ..Batch::default() };
        }
        let mut locked = self.lock(keyspace, self.shard);
        let shard = locked.shard(self.shard);
        let is_done = self.take_some(shard, visit);
        if !is_done {
            // Copies of large values do not wait for the end of the shard.
            return take_kept(shard);
        }
        let batch = take_kept(shard);
        shard.snapshot.running = None;
        (self.shard, self.db, self.cursor) = (self.shard + 1, 0, Cursor::START);
        Batch { is_last: self.shard == keyspace.shards(), ..batch }
    }

    fn take_some(
        &mut self,
        shard: &mut Shard,
        visit: &mut dyn FnMut(usize, EntryRef<'_, Object>) -> usize,
    ) -> bool {
        let (mut entries, mut bytes) = (0, 0);
        let is_wanted = shard.snapshot.is_wanted();
        let mut copies: Vec<(Box<[u8]>, Removed<Object>)> = Vec::new();
        for _ in 0..SLICE_STEPS_MAX {
            let Some(db) = self.next_table(shard) else { return true };
            let origin = self.db;
            self.cursor = shard.tables[db].save_step(self.cursor, &mut |entry| {
                entries += 1;
                match entry.value() {
                    View::Object(object) if is_wanted && is_copied(object) => {
                        bytes += object.memory_bytes();
                        copies.push((entry.key().into(), Removed::copy_of(&entry)));
                    }
                    _ => bytes += visit(origin, entry),
                }
            });
            for (key, copy) in copies.drain(..) {
                shard.snapshot.keep_copy((db, &key), copy);
            }
            if self.cursor.is_end() {
                self.db += 1;
            }
            if entries >= SLICE_ENTRIES_MAX || bytes >= SLICE_BYTES_MAX {
                break;
            }
        }
        false
    }

    /// Where the table that the walk is in is now, or the next one that holds something.
    fn next_table(&mut self, shard: &Shard) -> Option<usize> {
        while self.db < shard.databases_end() {
            let db = shard.snapshot.location_of(self.db);
            if !shard.tables[db].is_empty() {
                return Some(db);
            }
            (self.db, self.cursor) = (self.db + 1, Cursor::START);
        }
        None
    }

    /// What calls have handed over in shards that the walk has not come to, so that it does not
    /// pile up. Busy shards are left for the next time.
    pub fn collect(&self, keyspace: &Keyspace) -> Batch {
        let mut all = Batch::default();
        for index in self.shard..keyspace.shards() {
            let Some(mut locked) = keyspace.try_lock_now(index) else { continue };
            let Batch { kept, requests, .. } = take_kept(locked.shard());
            all.kept.extend(kept);
            all.requests.extend(requests);
        }
        all
    }

    /// What was handed over is written.
    pub fn release(&self, kept: Kept) {
        let mut table = kept.table;
        table.clear();
    }

    /// Ends the snapshot. What was not taken is not saved, but passed over.
    pub fn end(mut self, keyspace: &Keyspace) {
        if self.shard < keyspace.shards() {
            self.snapshot.cancel();
            while !self.step(keyspace, &mut |_, _| 0).is_last {}
        }
        keyspace.end_snapshot(&self.snapshot);
    }
}

fn take_kept(shard: &mut Shard) -> Batch {
    let snapshot = &mut shard.snapshot;
    let kept = std::mem::take(&mut snapshot.kept);
    if let Some(running) = snapshot.running.as_ref().filter(|_| !kept.is_empty()) {
        // From here on it is being written: what counts is what piles up meanwhile. Else one large
        // value would hold all writers back until it is written.
        let bytes_of = |kept: &Kept| kept.table.memory_bytes() - kept.shared_bytes;
        let bytes: usize = kept.iter().map(bytes_of).sum();
        running.count(snapshot.lane, bytes.cast_signed().wrapping_neg());
    }
    Batch { kept, requests: snapshot.requests.take().into_iter().collect(), is_last: false }
}
