//! What a snapshot needs is handed over to it before it is changed: see `snapshot.rs`.

use super::Keys;
use crate::field_expiry::bound_of_entry;
use crate::keyspace::Location;
use crate::store::raw::table::Removed;
use crate::value::Object;

impl Keys<'_> {
    /// Takes the version that there is now: all shards of the call are held, and it has changed
    /// nothing.
    #[inline]
    pub(crate) fn enter_epoch(&mut self) {
        self.effects.wants_all_keys = self.keyspace.wants_all_keys();
        self.epoch = self.keyspace.snapshots().epoch();
        if self.epoch.is_running() {
            self.join_snapshot();
        }
    }

    /// The version of the snapshot that what the call changes is not part of.
    pub fn version(&self) -> u64 {
        self.epoch.version()
    }

    #[cold]
    fn join_snapshot(&mut self) {
        for index in self.locked.held().iter() {
            self.join_shard(index);
        }
    }

    fn join_shard(&mut self, index: usize) {
        let shard = self.locked.shard(index);
        if shard.snapshot.version() < self.epoch.version() {
            self.keyspace.join(index, shard);
        }
    }

    /// Whether a shard that was added to the others may stay: not if a call of a newer version has
    /// held it, for what this one does there would be part of a snapshot that may have passed.
    pub(super) fn may_hold(&mut self, index: usize) -> bool {
        if self.locked.shard(index).snapshot.version() > self.epoch.version() {
            self.locked.release(index);
            return false;
        }
        if self.epoch.is_running() {
            self.join_shard(index);
        }
        true
    }

    /// A key is about to be changed.
    #[cold]
    pub(super) fn save_before_change(&mut self, key: &[u8], location: Location) {
        let db = self.db;
        let shard = self.locked.shard(usize::from(location.shard));
        let Some(mut entry) = shard.tables[db].find_mut(key, location.hash) else { return };
        if entry.is_unsaved() {
            let copy = shard.snapshot.is_wanted().then(|| Removed::copy_of(&entry.as_ref()));
            entry.mark_saved();
            if let Some(copy) = copy {
                shard.snapshot.keep_copy((db, key), copy);
            }
        }
    }

    /// The value of a key is about to be replaced: an object is moved away, and 0 stays. Its bound,
    /// if it had one (see `field_expiry.rs`).
    #[cold]
    pub(super) fn save_before_replacing(&mut self, key: &[u8], location: Location) -> Option<i64> {
        let db = self.db;
        let shard = self.locked.shard(usize::from(location.shard));
        let mut entry = shard.tables[db].find_mut(key, location.hash)?;
        if !entry.is_unsaved() {
            return None;
        }
        let bound = bound_of_entry(&entry);
        let unsaved = entry.take_unsaved();
        if let Some(object) = shard.snapshot.keep((db, key), unsaved) {
            self.keyspace.reclaimer().reclaim(object);
        }
        bound
    }

    /// A key was removed or replaced, and a snapshot needs what it held.
    #[cold]
    pub(super) fn keep_unsaved(&mut self, key: &[u8], unsaved: Removed<Object>) {
        let db = self.db;
        if let Some(object) = self.shard_of(key).snapshot.keep((db, key), unsaved) {
            self.keyspace.reclaimer().reclaim(object);
        }
    }
}
