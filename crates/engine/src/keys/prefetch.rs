//! Asking for the memory of many keys at once: of a call's own, or of all those of a batch, whose
//! shards are locked on the way. Nothing here changes what a key holds.

use super::{Keys, KnownKey};
use crate::store::raw::prefetch::prefetch_value;
use crate::store::raw::table::{EntryRef, Home, Likely};
use crate::value::Object;
use smallvec::SmallVec;

/// Keys whose memory is asked for together: as many as a batch has.
const HOMES_FOUND: usize = 48;

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
        let known = self.known;
        for &KnownKey { location, .. } in known {
            self.table(location.shard).prefetch_segment(location.hash);
        }
        for some in known.chunks(HOMES_FOUND) {
            self.prefetch_entries(some, Fetch::Start);
        }
    }

    /// Hints that the entries of some keys will be needed soon, whose segments were asked for. Says
    /// whether their shards hold anything large at all.
    #[inline]
    fn prefetch_entries(&self, some: &[KnownKey], fetch: Fetch) -> bool {
        let mut has_objects = false;
        let mut homes = SmallVec::<[Home<'_, Object>; HOMES_FOUND]>::new();
        for &KnownKey { location, .. } in some {
            let table = &self.locked.shared(usize::from(location.shard)).tables[self.db];
            has_objects |= table.has_objects();
            if let Some(home) = table.home(location.hash) {
                home.prefetch();
                homes.push(home);
            }
        }
        let mut passed = SmallVec::<[&Home<'_, Object>; ENTRIES_PASSED]>::new();
        let mut found = SmallVec::<[EntryRef<'_, Object>; ENTRIES_FOUND]>::new();
        for home in &homes {
            let is_rest_later = fetch > Fetch::Start && found.len() < ENTRIES_FOUND;
            match home.prefetch_entry(is_rest_later) {
                Likely::Here(entry) if is_rest_later => found.push(entry),
                Likely::Passed if passed.len() < ENTRIES_PASSED => passed.push(home),
                _ => {}
            }
        }
        passed.iter().for_each(|home| home.prefetch_passed_entry());
        // Only now, when all the first lines are on their way, which say how long each is.
        found.iter().for_each(|entry| entry.prefetch_rest(fetch == Fetch::ToEdit));
        if has_objects {
            prefetch_objects(&homes);
        }
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
        self.prefetch_entries(&self.known[..count], fetch)
    }
}

/// Fetches what does not lie in its entry, all at once: [`Keys::weigh`] would wait for each. Then
/// what these point to: no command waits for one line of memory behind another.
fn prefetch_objects(homes: &[Home<'_, Object>]) {
    let mut objects = SmallVec::<[&Object; HOMES_FOUND]>::new();
    for object in homes.iter().filter_map(Home::likely_object) {
        prefetch_value(object);
        objects.push(object);
    }
    objects.iter().for_each(|object| object.prefetch_boxed());
    objects.iter().for_each(|object| object.prefetch_behind_box());
}
