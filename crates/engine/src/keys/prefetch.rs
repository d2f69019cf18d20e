//! Asking for the memory of many keys at once: of a call's own, or of all those of a batch, whose
//! shards are locked on the way. Nothing here changes what a key holds.

use super::{Keys, KnownKey};
use crate::keyspace::Location;
use crate::store::raw::prefetch::prefetch_value;
use crate::store::raw::table::{EntryRef, Likely, Table};
use crate::value::Object;
use smallvec::SmallVec;

/// Large values of one batch that are noted without asking for memory.
const OBJECTS_FETCHED: usize = 16;

/// How much of the entries of a batch is worth asking for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fetch {
    /// As much as most entries have.
    #[default]
    Start,
    /// All of each: they are collections, which are longer than most.
    Whole,
    /// The same, and what an edit needs that moves an entry.
    ToEdit,
}

/// Entries of one batch that are asked for in whole.
const ENTRIES_FOUND: usize = 16;

/// Entries of one batch that are not where they belong and are asked for all the same.
const ENTRIES_PASSED: usize = 16;

impl Keys<'_> {
    /// Hints that all the known keys will be needed soon: a command of many keys waits for memory
    /// once, not once for each.
    pub fn prefetch_known(&mut self) {
        let is_of_one_shard = |a: &KnownKey, b: &KnownKey| a.location.shard == b.location.shard;
        for hint in [Table::prefetch_segment, Table::prefetch_bucket] {
            for known in self.known.chunk_by(is_of_one_shard) {
                let table = self.table(known[0].location.shard);
                known.iter().for_each(|known| hint(table, known.location.hash));
            }
        }
        self.prefetch_entries(self.known.len(), Fetch::Start);
    }

    /// Hints that the entries of the first of the known keys will be needed soon. Says whether
    /// their shards hold anything large at all.
    #[inline]
    fn prefetch_entries(&self, count: usize, fetch: Fetch) -> bool {
        let (known, mut has_objects) = (self.known, false);
        let mut passed = SmallVec::<[Location; ENTRIES_PASSED]>::new();
        let mut found = SmallVec::<[EntryRef<'_, Object>; ENTRIES_FOUND]>::new();
        let table =
            |location: Location| &self.locked.shared(usize::from(location.shard)).tables[self.db];
        for &KnownKey { location, .. } in &known[..count] {
            let table = table(location);
            has_objects |= table.has_objects();
            let is_rest_later = fetch > Fetch::Start && found.len() < ENTRIES_FOUND;
            match table.prefetch_entry(location.hash, is_rest_later) {
                Likely::Here(entry) if is_rest_later => {
                    found.push(entry);
                }
                Likely::Passed if passed.len() < ENTRIES_PASSED => passed.push(location),
                _ => {}
            }
        }
        for location in passed {
            table(location).prefetch_passed_entry(location.hash);
        }
        // Only now, when all the first lines are on their way, which say how long each is.
        found.iter().for_each(|entry| entry.prefetch_rest(fetch == Fetch::ToEdit));
        has_objects
    }

    /// Locks the shards of the known keys, up to the first that would take waiting, and hints at
    /// the parts of their tables; how many keys' shards are held.
    #[inline]
    pub fn hold_known_now(&mut self) -> usize {
        let db = self.db;
        for (at, &KnownKey { location, .. }) in self.known.iter().enumerate() {
            let Some(shard) = self.locked.try_add_now(location.shard as usize) else { return at };
            shard.tables[db].prefetch_segment(location.hash);
        }
        self.known.len()
    }

    /// Hints that the first of the known keys, whose shards are locked, will be needed soon. Says
    /// whether their shards hold anything large at all: see [`Keys::weigh`].
    #[inline]
    pub fn prefetch_held(&mut self, count: usize, fetch: Fetch) -> bool {
        self.enter_epoch();
        let known = self.known;
        for &KnownKey { location, .. } in &known[..count] {
            self.table(location.shard).prefetch_bucket(location.hash);
        }
        let has_objects = self.prefetch_entries(count, fetch);
        if has_objects {
            self.prefetch_objects(count);
        }
        has_objects
    }

    /// Fetches what does not lie in its entry, all at once: [`Keys::weigh`] would wait for each.
    /// Then what these point to: no command waits for one line of memory behind another.
    fn prefetch_objects(&self, count: usize) {
        let mut objects = SmallVec::<[&Object; OBJECTS_FETCHED]>::new();
        for &KnownKey { location, .. } in &self.known[..count] {
            let shard = self.locked.shared(location.shard as usize);
            if let Some(object) = shard.tables[self.db].likely_object(location.hash) {
                prefetch_value(object);
                objects.push(object);
            }
        }
        objects.iter().for_each(|object| object.prefetch_boxed());
        objects.iter().for_each(|object| object.prefetch_behind_box());
    }
}
