//! An ordered map in chunks that it shares with its clones until one changes them, as vectors do in
//! `cow_vec.rs`. For what large values keep beside their elements: deadlines, pending entries.

use crate::types::capacity::{allocated_bytes, allocated_for, fit, tree_bytes};
use crate::types::cow_vec::{ARC_COUNTS_BYTES, Part, to_change};
use std::collections::BTreeMap;
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;

/// Pairs of a chunk at most: what is copied at once if it is shared.
const CHUNK_PAIRS_MAX: usize = 64;
/// Pairs that are kept without chunks, and copied with a clone: most maps have no more, and are
/// found with one look at memory instead of three.
const FEW_PAIRS_MAX: usize = 16;

#[derive(Debug)]
struct Chunk<K, V>(Vec<(K, V)>);

impl<K: Copy, V: Copy> Clone for Chunk<K, V> {
    /// With the same room, so that what was counted of the one is right for the other.
    fn clone(&self) -> Self {
        let mut pairs = Vec::with_capacity(self.0.capacity());
        pairs.extend_from_slice(&self.0);
        Chunk(pairs)
    }
}

impl<K, V> Default for Chunk<K, V> {
    fn default() -> Self {
        Chunk(Vec::new())
    }
}

impl<K: Copy + Ord, V: Copy> Chunk<K, V> {
    fn find(&self, key: &K) -> Option<usize> {
        self.0.binary_search_by_key(key, |pair| pair.0).ok()
    }

    /// Bytes of its pairs.
    fn memory_bytes(&self) -> usize {
        allocated_for::<(K, V)>(self.0.capacity())
    }

    /// Adds a key that is not there yet.
    fn insert(&mut self, key: K, value: V) {
        let Chunk(pairs) = self;
        if pairs.len() == pairs.capacity() {
            pairs.reserve_exact(fit::<(K, V)>(pairs.len() + 1) - pairs.len());
        }
        let at = pairs.partition_point(|pair| pair.0 < key);
        pairs.insert(at, (key, value));
    }

    fn remove(&mut self, at: usize) -> V {
        let Chunk(pairs) = self;
        let (_, value) = pairs.remove(at);
        if pairs.is_empty() {
            *pairs = Vec::new();
        } else if pairs.len() < pairs.capacity() / 2 {
            pairs.shrink_to(fit::<(K, V)>(pairs.len()));
        }
        value
    }
}

impl<K: Copy, V: Copy> Part for Chunk<K, V> {
    fn elements(&self) -> usize {
        self.0.len()
    }
}

/// An ordered map.
#[derive(Debug)]
pub struct CowMap<K, V>(Form<K, V>);

#[derive(Debug)]
enum Form<K, V> {
    Few(Chunk<K, V>),
    /// In a box, since most maps are small and there are many of them.
    Many(Box<Chunks<K, V>>),
}

impl<K, V> Default for CowMap<K, V> {
    fn default() -> Self {
        CowMap(Form::Few(Chunk::default()))
    }
}

impl<K: Copy, V: Copy> Clone for CowMap<K, V> {
    fn clone(&self) -> Self {
        CowMap(match &self.0 {
            Form::Few(few) => Form::Few(few.clone()),
            Form::Many(many) => Form::Many(many.clone()),
        })
    }
}

impl<K: Copy + Ord, V: Copy> CowMap<K, V> {
    pub fn len(&self) -> usize {
        match &self.0 {
            Form::Few(few) => few.0.len(),
            Form::Many(many) => many.len,
        }
    }

    /// Bytes on the heap.
    pub fn memory_bytes(&self) -> usize {
        match &self.0 {
            Form::Few(few) => few.memory_bytes(),
            Form::Many(many) => allocated_for::<Chunks<K, V>>(1) + many.memory_bytes(),
        }
    }

    pub fn get(&self, key: &K) -> Option<&V> {
        let home = match &self.0 {
            Form::Few(few) => few,
            Form::Many(many) => many.chunk_of(key)?,
        };
        home.find(key).map(|at| &home.0[at].1)
    }

    pub fn at_mut(&mut self, key: &K) -> Option<&mut V> {
        match &mut self.0 {
            Form::Few(few) => few.find(key).map(|at| &mut few.0[at].1),
            Form::Many(many) => many.at_mut(key),
        }
    }

    /// Puts a value under a key; the one that was there.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        if let Some(before) = self.at_mut(&key) {
            return Some(std::mem::replace(before, value));
        }
        if let Form::Few(few) = &mut self.0
            && few.0.len() == FEW_PAIRS_MAX
        {
            self.0 = Form::Many(Box::new(Chunks::of(std::mem::take(few))));
        }
        match &mut self.0 {
            Form::Few(few) => few.insert(key, value),
            Form::Many(many) => many.insert(key, value),
        }
        None
    }

    pub fn remove(&mut self, key: &K) -> Option<V> {
        match &mut self.0 {
            Form::Few(few) => few.find(key).map(|at| few.remove(at)),
            Form::Many(many) => {
                let removed = many.remove(key);
                if many.len == 0 {
                    *self = CowMap::default();
                }
                removed
            }
        }
    }

    pub fn first(&self) -> Option<(&K, &V)> {
        let chunk = match &self.0 {
            Form::Few(few) => few,
            Form::Many(many) => many.by_start.first_key_value()?.1,
        };
        chunk.0.first().map(|(key, value)| (key, value))
    }

    pub fn last(&self) -> Option<(&K, &V)> {
        let chunk = match &self.0 {
            Form::Few(few) => few,
            Form::Many(many) => many.by_start.last_key_value()?.1,
        };
        chunk.0.last().map(|(key, value)| (key, value))
    }

    /// Those of a range, in order. A range that ends before it starts is empty.
    pub fn range(&self, range: impl RangeBounds<K>) -> impl Iterator<Item = (&K, &V)> {
        let (few, many) = match &self.0 {
            Form::Few(few) => (few.0.as_slice(), None),
            Form::Many(many) => (&[][..], Some(many.from(range.start_bound().cloned()))),
        };
        let (low, high) = (range.start_bound().cloned(), range.end_bound().cloned());
        let is_before = move |key: &K| match &low {
            Bound::Included(low) => key < low,
            Bound::Excluded(low) => key <= low,
            Bound::Unbounded => false,
        };
        let is_within = move |key: &K| match &high {
            Bound::Included(high) => key <= high,
            Bound::Excluded(high) => key < high,
            Bound::Unbounded => true,
        };
        few.iter()
            .chain(many.into_iter().flatten())
            .skip_while(move |pair| is_before(&pair.0))
            .take_while(move |pair| is_within(&pair.0))
            .map(|(key, value)| (key, value))
    }

    pub fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.range(..)
    }
}

/// The pairs of a map that has many.
#[derive(Clone, Debug)]
struct Chunks<K, V> {
    /// None is empty. Each by a key that is not above its own and above all of those before it.
    by_start: BTreeMap<K, Arc<Chunk<K, V>>>,
    len: usize,
    /// Bytes of all chunks' pairs.
    pair_bytes: usize,
}

impl<K: Copy + Ord, V: Copy> Chunks<K, V> {
    fn of(chunk: Chunk<K, V>) -> Self {
        let (len, pair_bytes) = (chunk.0.len(), chunk.memory_bytes());
        let by_start = BTreeMap::from([(chunk.0[0].0, Arc::new(chunk))]);
        Chunks { by_start, len, pair_bytes }
    }

    fn memory_bytes(&self) -> usize {
        let chunk = allocated_bytes(ARC_COUNTS_BYTES + size_of::<Chunk<K, V>>());
        tree_bytes::<K, Arc<Chunk<K, V>>>(self.by_start.len())
            + self.by_start.len() * chunk
            + self.pair_bytes
    }

    fn chunk_of(&self, key: &K) -> Option<&Chunk<K, V>> {
        self.by_start.range(..=key).next_back().map(|(_, chunk)| &**chunk)
    }

    fn at_mut(&mut self, key: &K) -> Option<&mut V> {
        let (_, chunk) = self.by_start.range_mut(..=key).next_back()?;
        let at = chunk.find(key)?;
        Some(&mut to_change(chunk).0[at].1)
    }

    /// Adds a key that is not there yet.
    fn insert(&mut self, key: K, value: V) {
        self.len += 1;
        self.make_room(key);
        let home = self.by_start.range_mut(..=key).next_back();
        let (_, chunk) = home.expect("there is room for the key");
        let chunk = to_change(chunk);
        let before = chunk.memory_bytes();
        chunk.insert(key, value);
        self.pair_bytes += chunk.memory_bytes() - before;
    }

    /// Sees to it that there is a chunk where a new key belongs, and that it is not full.
    fn make_room(&mut self, key: K) {
        let Some((&start, chunk)) = self.by_start.range(..=key).next_back() else {
            // Below all others.
            let is_full = |chunk: &Arc<Chunk<K, V>>| chunk.0.len() >= CHUNK_PAIRS_MAX;
            let first = match self.by_start.first_entry().filter(|first| !is_full(first.get())) {
                Some(first) => first.remove(),
                None => Arc::default(),
            };
            self.by_start.insert(key, first);
            return;
        };
        if chunk.0.len() < CHUNK_PAIRS_MAX {
            return;
        }
        if chunk.0.last().is_some_and(|last| last.0 < key) {
            // Keys come in ascending order more often than not: the chunk stays full.
            self.by_start.insert(key, Arc::default());
            return;
        }
        let Some(chunk) = self.by_start.get_mut(&start) else { return };
        let lower = to_change(chunk);
        let before = lower.memory_bytes();
        let upper = Chunk(lower.0.split_off(CHUNK_PAIRS_MAX / 2));
        lower.0.shrink_to_fit();
        self.pair_bytes = self.pair_bytes + lower.memory_bytes() + upper.memory_bytes() - before;
        self.by_start.insert(upper.0[0].0, Arc::new(upper));
    }

    fn remove(&mut self, key: &K) -> Option<V> {
        let (&start, chunk) = self.by_start.range_mut(..=key).next_back()?;
        let at = chunk.find(key)?;
        let chunk = to_change(chunk);
        let before = chunk.memory_bytes();
        let value = chunk.remove(at);
        self.pair_bytes = self.pair_bytes + chunk.memory_bytes() - before;
        self.len -= 1;
        if chunk.0.is_empty() {
            self.by_start.remove(&start);
        }
        Some(value)
    }

    /// All pairs from the chunk on that a range may begin in.
    fn from(&self, start: Bound<K>) -> impl Iterator<Item = &(K, V)> {
        let start = match start {
            Bound::Included(key) | Bound::Excluded(key) => {
                self.by_start.range(..=key).next_back().map(|(start, _)| *start)
            }
            Bound::Unbounded => None,
        };
        let from = start.map_or(Bound::Unbounded, Bound::Included);
        let chunks = self.by_start.range((from, Bound::Unbounded));
        chunks.flat_map(|(_, chunk)| chunk.0.iter())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::cow_vec::take_copied_elements;
    use russet_base::random::Random;

    type Both = (CowMap<u32, u32>, BTreeMap<u32, u32>);

    fn check((map, model): &Both, random: &mut Random) {
        assert_eq!(map.len(), model.len());
        assert!(map.iter().eq(model.iter()));
        assert_eq!((map.first(), map.last()), (model.first_key_value(), model.last_key_value()));
        let low = random.below(1000) as u32;
        let high = low + random.below(300) as u32;
        assert!(map.range(low..high).eq(model.range(low..high)));
        assert!(map.range(low..=high).eq(model.range(low..=high)));
        assert!(map.range(..low).eq(model.range(..low)));
        assert_eq!(
            map.range(high..=low).count(),
            usize::from(low == high && map.get(&low).is_some())
        );
        match &map.0 {
            Form::Few(few) => assert!(few.0.len() <= FEW_PAIRS_MAX),
            Form::Many(many) => {
                let chunks = many.by_start.values();
                assert_eq!(many.pair_bytes, chunks.map(|chunk| chunk.memory_bytes()).sum());
                assert!(many.by_start.values().all(|chunk| !chunk.0.is_empty()));
            }
        }
    }

    /// Clones that are changed in turn, each against a map of its own.
    #[test]
    fn clones_share_chunks_and_see_no_change_of_another() {
        let mut random = Random::from_seed(1);
        let mut all = vec![Both::default()];
        for step in 0..30_000 {
            let (which, count) = (random.index(all.len()), all.len());
            // Up and down in waves; some keys come in order, up or down.
            let is_growing = step / 3_000 % 2 == 0;
            let (map, model) = &mut all[which];
            let key = match random.index(10) {
                0 => model.last_key_value().map_or(0, |(key, _)| key + 1),
                1 => model.first_key_value().map_or(0, |(key, _)| key.saturating_sub(1)),
                _ => random.below(1000) as u32,
            };
            take_copied_elements();
            match random.index(10) {
                0 => {
                    let (of_map, of_model) = (map.at_mut(&key), model.get_mut(&key));
                    assert_eq!(of_map, of_model);
                    of_map.into_iter().chain(of_model).for_each(|value| *value = step);
                }
                1 if random.below(50) == 0 => {
                    let clone = all[which].clone();
                    assert_eq!(take_copied_elements(), 0, "a clone copies nothing");
                    all.push(clone);
                }
                2 if count > 3 => drop(all.swap_remove(0)),
                3..6 if is_growing => assert_eq!(map.insert(key, step), model.insert(key, step)),
                _ if is_growing => assert_eq!(map.get(&key), model.get(&key)),
                _ => assert_eq!(map.remove(&key), model.remove(&key)),
            }
            assert!(take_copied_elements() <= 2 * CHUNK_PAIRS_MAX);
            if step % 64 == 0 {
                all.iter().for_each(|both| check(both, &mut random));
            }
        }
    }
}
