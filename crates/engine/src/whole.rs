//! What concerns a whole database and not this or that key: counting, walking, picking at random,
//! emptying and exchanging.

use crate::keys::{Keys, ReadyKey};
use crate::keyspace::Keyspace;
use crate::shard::Shard;
use crate::store::raw::table::{Cursor, EntryRef, Table};
use crate::store::shard_set::ShardSet;
use crate::types::hash::stored;
use crate::value::Object;

/// Random picks before the search for a key that is not expired goes in order.
const RANDOM_PICKS_MAX: usize = 64;

/// How often a walk asks for the next shard before it ends there.
const MOVE_ON_TRIES: usize = 8;

fn is_live(entry: &EntryRef<'_, Object>, now_ms: i64) -> bool {
    entry.expiry().is_none_or(|at| at > now_ms)
}

fn holds_key(keyspace: &Keyspace, table: &Table<Object>, key: &[u8]) -> bool {
    table.find(key, keyspace.locate(key).hash).is_some()
}

impl<'a> Keys<'a> {
    /// The keys of this database in the held shards, those included that expired unnoticed.
    pub fn count_all(&mut self) -> usize {
        let db = self.db;
        self.held().iter().map(|index| self.shard(index).table(db).len()).sum()
    }

    /// Shows the live keys of the next few places of a held shard, and says where to go on.
    #[inline]
    pub fn scan(
        &mut self,
        shard: usize,
        cursor: Cursor,
        visit: &mut dyn FnMut(EntryRef<'_, Object>),
    ) -> Cursor {
        let (db, now) = (self.db, self.now);
        let held = self.shard(shard);
        let has_dead_fields = held.fields[db].is_due(now);
        let table = held.table(db);
        if table.expires_len() == 0 && !has_dead_fields {
            return table.scan(cursor, visit);
        }
        table.scan(cursor, &mut |entry| {
            // Nothing is removed here: a walk moves on to other shards without any effect.
            let is_over = has_dead_fields && stored::is_over(&entry.value(), now.0);
            if is_live(&entry, now.0) && !is_over {
                visit(entry);
            }
        })
    }

    /// Gives up the held shards for another one, unless that one is busy. Only for a command that
    /// has reported no change and asks for no more than a walk.
    pub fn move_on(&mut self, shard: usize) -> bool {
        debug_assert!(
            self.effects.is_published(),
            "effects are published under the locks they had"
        );
        // Most shards are held for microseconds: a walk that ended at each of them would take many
        // more calls than its COUNT says.
        for _ in 0..MOVE_ON_TRIES {
            if let Ok(mut locked) = self.keyspace.try_lock(&ShardSet::one(shard)) {
                locked.set_mark(self.locked.mark());
                self.locked = locked;
                self.enter_epoch();
                return true;
            }
            std::thread::yield_now();
        }
        false
    }

    /// Gives up the held shards, between two steps of a walk. As for [`Keys::move_on`], nothing may
    /// have been changed.
    pub fn release(&mut self) {
        debug_assert!(
            self.effects.is_published(),
            "effects are published under the locks they had"
        );
        let mut none = self.keyspace.lock_none();
        none.set_mark(self.locked.mark());
        self.locked = none;
    }

    /// Shows one key of the held shards, each live one as likely as another. Expired ones that the
    /// search meets are deleted.
    pub fn with_random_key<R>(&mut self, show: impl FnOnce(&[u8]) -> R) -> Option<R> {
        let db = self.db;
        let keyspace = self.keyspace;
        for _ in 0..RANDOM_PICKS_MAX {
            let shard = self.random_shard()?;
            self.expire_fields_of(shard);
            let (now_ms, hides_ms) = (self.now.0, self.hides_fields_ms());
            let Some(entry) = self.shard(shard).table(db).random(&mut || keyspace.draw_u64())
            else {
                continue;
            };
            if is_live(&entry, now_ms) && !stored::is_over(&entry.value(), hides_ms) {
                return Some(show(entry.key()));
            }
            let key: Box<[u8]> = entry.key().into();
            self.exists(&key);
        }
        self.first_live_key().map(|key| show(&key))
    }

    /// A held shard, as likely as it has keys.
    fn random_shard(&mut self) -> Option<usize> {
        let total = self.count_all() as u64;
        let mut at = ((u128::from(self.keyspace.draw_u64()) * u128::from(total)) >> 64) as usize;
        let db = self.db;
        self.held().iter().find(|&index| {
            let len = self.shard(index).table(db).len();
            let is_here = at < len;
            at = at.saturating_sub(len);
            is_here
        })
    }

    fn first_live_key(&mut self) -> Option<Box<[u8]>> {
        for shard in self.held().iter() {
            let mut cursor = Cursor::START;
            loop {
                let mut found: Option<Box<[u8]>> = None;
                cursor = self.scan(shard, cursor, &mut |entry| {
                    if found.is_none() {
                        found = Some(entry.key().into());
                    }
                });
                if found.is_some() {
                    return found;
                }
                if cursor.is_end() {
                    break;
                }
            }
        }
        None
    }

    /// Empties databases; their memory is freed elsewhere. Every shard is held.
    pub fn flush(&mut self, databases: std::ops::Range<usize>) {
        let keyspace = self.keyspace;
        self.invalidate_all();
        if keyspace.once_totals().records() > 0 {
            for index in self.held().iter() {
                let once = &mut self.locked.shard(index).once;
                databases.clone().for_each(|db| once.clear(db));
            }
        }
        let used: Vec<usize> = databases.filter(|db| self.may_have_keys(*db)).collect();
        if used.is_empty() {
            return;
        }
        let mut emptied = Vec::new();
        for index in self.held().iter() {
            for &db in &used {
                let Shard { tables, fields, watched, waiting, snapshot, .. } =
                    self.locked.shard(index);
                // One that keys have left may still have slots.
                if tables[db].memory_bytes() == 0 {
                    continue;
                }
                let table = &mut tables[db];
                for key in waiting.keys_of_db(db) {
                    if holds_key(keyspace, table, &key) {
                        self.effects.ready.push(ReadyKey { db, key });
                    }
                }
                watched.touch_all(db, |key| holds_key(keyspace, table, key));
                self.effects.dirty += table.len() as u64;
                let full = match self.epoch.is_running() {
                    true => snapshot.keep_table(db, table.take()),
                    false => Some(table.take()),
                };
                emptied.push((full, fields[db].take()));
                keyspace.gauges()[index].mean_expiry[db].forget();
            }
        }
        used.iter().for_each(|db| self.all_outdated(*db));
        self.effects.emptied.extend(used);
        if !emptied.is_empty() {
            keyspace.reclaimer().reclaim_tables(emptied);
        }
    }

    /// Whether there may be keys in a database. Every shard is held.
    fn may_have_keys(&self, db: usize) -> bool {
        // A transaction or script may have added keys that are not counted yet.
        let effects = &self.effects;
        let has_changes = !effects.touched.is_empty() || !effects.left.is_empty();
        has_changes || self.keyspace.key_counts().is_used(db)
    }

    /// Clients that track keys are notified that all may have changed.
    fn invalidate_all(&mut self) {
        if self.keyspace.tracked_totals().keys() > 0 {
            for index in self.held().iter() {
                self.locked.shard(index).tracked.clear();
            }
        }
        self.effects.are_all_changed = true;
    }

    /// Exchanges two databases under the clients that use them. Every shard is held.
    pub fn swap(&mut self, (one, other): (usize, usize)) {
        self.effects.dirty += 1;
        if one == other {
            return;
        }
        self.invalidate_all();
        if self.keyspace.once_totals().records() > 0 {
            for index in self.held().iter() {
                self.locked.shard(index).once.swap((one, other));
            }
        }
        // What has no keys is the same in either place.
        if self.may_have_keys(one) || self.may_have_keys(other) {
            for index in self.held().iter() {
                self.swap_in_shard(index, (one, other));
            }
            [one, other].into_iter().for_each(|db| self.all_outdated(db));
        }
    }

    /// The gauges of all shards are out of date for a database.
    fn all_outdated(&mut self, db: usize) {
        let held = self.held().clone();
        self.effects.leave(db, &held);
    }

    fn swap_in_shard(&mut self, index: usize, (one, other): (usize, usize)) {
        let keyspace = self.keyspace;
        self.expire_watched(index, (one, other));
        let Shard { tables, fields, watched, waiting, snapshot, .. } = self.locked.shard(index);
        snapshot.swap((one, other));
        if !watched.is_empty() {
            for db in [one, other] {
                watched.touch_all(db, |key| {
                    [one, other].iter().any(|&of| holds_key(keyspace, &tables[of], key))
                });
            }
        }
        tables.swap(one, other);
        fields.swap(one, other);
        if !waiting.is_empty() {
            for db in [one, other] {
                for key in waiting.keys_of_db(db) {
                    // A key that is gone ends some waits, too.
                    if [one, other].iter().any(|&of| holds_key(keyspace, &tables[of], &key)) {
                        self.effects.ready.push(ReadyKey { db, key });
                    }
                }
            }
        }
        for db in [one, other] {
            self.locked.shard(index).tables[db].mark_changed();
            keyspace.gauges()[index].mean_expiry[db].forget();
        }
    }

    /// Deletes the expired keys under the names that clients of either database watch, so that
    /// they count as absent: who watches in the one may not know of a dead key in the other.
    fn expire_watched(&mut self, index: usize, (one, other): (usize, usize)) {
        let watched = &self.locked.shard(index).watched;
        if watched.is_empty() {
            return;
        }
        let mut names = watched.keys_of_db(one);
        names.extend(watched.keys_of_db(other));
        for key in &names {
            for db in [one, other] {
                self.in_db(db, |keys| keys.exists(key));
            }
        }
    }
}
