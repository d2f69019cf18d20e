//! Which clients have read which keys of a shard, and so may keep copies: they are notified when a
//! key changes. A read is noted, and a change looks here, under the shard's lock, so no change
//! behind a read is missed. Names count, not databases: a key of that name in any will do.

use crate::effects::Effects;
use crate::types::capacity::allocated_bytes;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What a key takes besides its name, and one of its readers.
const KEY_BYTES: u64 = 104;
const READER_BYTES: u64 = 8;
/// Room for keys that is kept, though they are gone.
const KEYS_KEPT_MAX: usize = 64;

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

    /// Differences may be negative: addition wraps.
    fn count(&self, (keys, readers): (i64, i64), bytes: i64) {
        self.keys.fetch_add(keys as u64, Ordering::Relaxed);
        self.readers.fetch_add(readers as u64, Ordering::Relaxed);
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

/// The readers of one key.
#[derive(Debug)]
struct KeyReaders {
    readers: Readers,
    /// Where its key is among all.
    position: usize,
}

/// The keys of a shard twice: to find one by its name, and to find any one. A hash table alone does
/// the latter by a walk from its beginning, which is long when keys are taken from there time and
/// again.
#[derive(Debug, Default)]
struct KeyTable {
    by_key: HashMap<Arc<[u8]>, KeyReaders>,
    /// In no order.
    keys: Vec<Arc<[u8]>>,
    /// Which of them goes next for want of room. It moves on with each, so that a key which takes
    /// the place of one that is gone stays for a round.
    next_to_go: usize,
}

impl KeyTable {
    fn insert(&mut self, key: &[u8], readers: Readers) {
        let (key, position) = (Arc::<[u8]>::from(key), self.keys.len());
        self.keys.push(key.clone());
        self.by_key.insert(key, KeyReaders { readers, position });
    }

    fn remove(&mut self, key: &[u8]) -> Option<Readers> {
        let KeyReaders { readers, position } = self.by_key.remove(key)?;
        self.keys.swap_remove(position);
        let moved = self.keys.get(position).and_then(|moved| self.by_key.get_mut(moved));
        if let Some(moved) = moved {
            moved.position = position;
        }
        if self.by_key.capacity() > KEYS_KEPT_MAX && self.by_key.len() < self.by_key.capacity() / 8
        {
            self.by_key.shrink_to(self.by_key.len() * 2);
            self.keys.shrink_to(self.keys.len() * 2);
        }
        Some(readers)
    }

    /// A key that is to go; if possible not this one.
    fn pick_other_than(&mut self, key: &[u8]) -> Option<Arc<[u8]>> {
        for _ in 0..2 {
            let at = if self.next_to_go < self.keys.len() { self.next_to_go } else { 0 };
            self.next_to_go = at + 1;
            let picked = self.keys.get(at)?;
            if **picked != *key {
                return Some(picked.clone());
            }
        }
        // It is the only one.
        self.keys.first().cloned()
    }

    /// Keeps those that are to be kept.
    fn retain(&mut self, mut is_kept: impl FnMut(&[u8], &mut Readers) -> bool) {
        self.keys.clear();
        self.by_key.retain(|key, held| {
            let is_kept = is_kept(key, &mut held.readers);
            if is_kept {
                held.position = self.keys.len();
                self.keys.push(key.clone());
            }
            is_kept
        });
    }
}

/// The keys of one shard that clients have read. Made when the first one is, so that a shard which
/// has none is hardly larger, and a write need not look far.
#[derive(Debug)]
pub struct TrackedKeys {
    table: Option<Box<KeyTable>>,
    totals: Arc<TrackedTotals>,
}

impl TrackedKeys {
    pub(crate) fn new(totals: Arc<TrackedTotals>) -> Self {
        TrackedKeys { table: None, totals }
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.table.as_ref().is_none_or(|table| table.keys.is_empty())
    }

    /// A client has read a key.
    pub fn add(&mut self, key: &[u8], reader: u64) {
        let table = self.table.get_or_insert_default();
        if let Some(KeyReaders { readers, .. }) = table.by_key.get_mut(key) {
            if let Err(at) = readers.binary_search(&reader) {
                readers.insert(at, reader);
                self.totals.count((0, 1), READER_BYTES as i64);
            }
            return;
        }
        table.insert(key, vec![reader]);
        self.totals.count((1, 1), bytes_of(key, 1));
    }

    /// Who has read a key. They are forgotten: each is notified once.
    pub fn take(&mut self, key: &[u8]) -> Readers {
        let Some(table) = &mut self.table else { return Readers::new() };
        let Some(readers) = table.remove(key) else { return Readers::new() };
        self.forget_count(key, readers.len());
        readers
    }

    fn forget_count(&self, key: &[u8], readers: usize) {
        self.totals.count((-1, -(readers as i64)), -bytes_of(key, readers));
    }

    /// Any key, with its readers, which are forgotten for want of room; if possible not this one.
    pub fn take_other_than(&mut self, key: &[u8]) -> Option<ChangedKey> {
        let other = self.table.as_mut()?.pick_other_than(key)?;
        let readers = self.take(&other);
        Some(ChangedKey { key: other[..].into(), readers, cause: Cause::TableFull })
    }

    /// Forgets every key.
    pub fn clear(&mut self) {
        let forgotten = self.table.take();
        forgotten
            .iter()
            .flat_map(|table| table.by_key.iter())
            .for_each(|(key, held)| self.forget_count(key, held.readers.len()));
    }

    /// Forgets readers that are gone, and keys that nobody else has read.
    pub fn forget_readers(&mut self, is_gone: &dyn Fn(u64) -> bool) {
        let (totals, Some(table)) = (&self.totals, &mut self.table) else { return };
        table.retain(|key, readers| {
            let before = readers.len();
            readers.retain(|reader| !is_gone(*reader));
            let gone = before - readers.len();
            match readers.is_empty() {
                true => totals.count((-1, -(before as i64)), -bytes_of(key, before)),
                false => totals.count((0, -(gone as i64)), -((gone as u64 * READER_BYTES) as i64)),
            }
            !readers.is_empty()
        });
        if table.keys.is_empty() {
            self.table = None;
        }
    }
}

fn bytes_of(key: &[u8], readers: usize) -> i64 {
    (allocated_bytes(key.len()) as u64 + KEY_BYTES + readers as u64 * READER_BYTES) as i64
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
mod tests {
    use super::*;

    fn totals(tracked: &TrackedKeys) -> (u64, u64) {
        (tracked.totals.keys(), tracked.totals.readers())
    }

    #[test]
    fn a_reader_is_notified_once_and_what_is_counted_goes_with_it() {
        let mut tracked = TrackedKeys::new(Arc::default());
        for (key, reader) in [("a", 2), ("a", 1), ("a", 2), ("b", 2)] {
            tracked.add(key.as_bytes(), reader);
        }
        assert_eq!(totals(&tracked), (2, 3));
        assert_eq!(tracked.take(b"a"), [1, 2]);
        assert!(tracked.take(b"a").is_empty());
        tracked.add(b"a", 3);
        tracked.forget_readers(&|reader| reader == 2);
        assert_eq!(totals(&tracked), (1, 1));
        let other = tracked.take_other_than(b"a").expect("there is one key");
        assert_eq!((&*other.key, other.readers), (b"a".as_slice(), vec![3]));
        assert_eq!((totals(&tracked), tracked.totals.bytes()), ((0, 0), 0));
    }

    #[test]
    fn another_key_goes_first_and_what_is_gone_takes_no_room() {
        let mut tracked = TrackedKeys::new(Arc::default());
        (0..1000).for_each(|at| tracked.add(format!("k{at}").as_bytes(), 1));
        for _ in 0..999 {
            assert!(tracked.take_other_than(b"k7").is_some_and(|it| *it.key != *b"k7"));
        }
        let room = tracked.table.as_ref().map_or(0, |table| table.by_key.capacity());
        assert!(room <= 2 * KEYS_KEPT_MAX, "{room}");
        tracked.clear();
        assert_eq!((totals(&tracked), tracked.totals.bytes()), ((0, 0), 0));
    }

    /// A key to forget was looked for from the beginning of the hash table each time. What was
    /// there had gone before, so the walk became long, a read with a full table of one shard six
    /// times as dear; and what it found was often a key that had just been read.
    #[test]
    fn keys_that_were_just_read_are_not_the_next_to_go() {
        const KEYS: usize = 1000;
        let mut tracked = TrackedKeys::new(Arc::default());
        let key_of = |at: usize| format!("k{at}").into_bytes();
        (0..KEYS).for_each(|at| tracked.add(&key_of(at), 1));
        let is_old = |key: &[u8]| (0..KEYS).any(|at| key_of(at) == key);
        for at in KEYS..2 * KEYS {
            tracked.add(&key_of(at), 1);
            let forgotten = tracked.take_other_than(&key_of(at)).expect("there are many");
            assert!(is_old(&forgotten.key), "{:?} was read just now", forgotten.key);
        }
        assert_eq!(totals(&tracked), (KEYS as u64, KEYS as u64));
        (KEYS..2 * KEYS).for_each(|at| assert_eq!(tracked.take(&key_of(at)), [1]));
    }

    /// Both forms of the table name the same keys, whatever is done.
    #[test]
    fn a_key_is_found_where_the_table_says_it_is() {
        let mut tracked = TrackedKeys::new(Arc::default());
        for at in 0..500_u64 {
            tracked.add(format!("k{}", at * 7 % 50).as_bytes(), at % 3);
            match at % 5 {
                0 => drop(tracked.take(format!("k{}", at % 11).as_bytes())),
                1 => drop(tracked.take_other_than(b"k1")),
                2 if at % 40 == 2 => tracked.forget_readers(&|reader| reader == 1),
                _ => {}
            }
            let Some(table) = &tracked.table else { continue };
            assert_eq!(
                (table.by_key.len(), totals(&tracked).0),
                (table.keys.len(), table.keys.len() as u64)
            );
            for (position, key) in table.keys.iter().enumerate() {
                assert_eq!(table.by_key[key].position, position);
            }
        }
    }

    #[test]
    fn a_change_is_gathered_if_somebody_is_to_be_notified() {
        let (mut tracked, mut effects) = (TrackedKeys::new(Arc::default()), Effects::default());
        effects.note_change(&mut tracked, b"k", Cause::ChangedBy(1));
        tracked.add(b"other", 1);
        effects.note_change(&mut tracked, b"k", Cause::ChangedBy(1));
        assert!(effects.changed.is_empty());
        tracked.add(b"k", 1);
        effects.note_change(&mut tracked, b"k", Cause::ChangedBy(1));
        assert_eq!(effects.changed[0].readers, [1]);
        effects.wants_all_keys = true;
        effects.note_change(&mut tracked, b"k", Cause::GONE);
        assert!(effects.changed[1].readers.is_empty());
    }
}
