//! An ordered map in chunks that it shares with its clones until one changes them, as vectors do in
//! `cow_vec.rs`. For what large values keep beside their elements: deadlines, pending entries.

use crate::types::capacity::{allocated_bytes, allocated_for, fit, tree_bytes};
use crate::types::cow_vec::{ARC_COUNTS_BYTES, Part, to_change};
use std::collections::BTreeMap;
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;

/// Pairs of a chunk at most: what is copied at once if it is shared.
const CHUNK_PAIRS_MAX: usize = 64;

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

impl<K: Copy, V: Copy> Part for Chunk<K, V> {
    fn elements(&self) -> usize {
        self.0.len()
    }
}

#[derive(Debug)]
pub struct CowMap<K, V> {
    /// None is empty. Each by a key that is not above its own and above all of those before it.
    chunks: BTreeMap<K, Arc<Chunk<K, V>>>,
    len: usize,
    /// Bytes of all chunks' pairs.
    pair_bytes: usize,
}

impl<K, V> Default for CowMap<K, V> {
    fn default() -> Self {
        CowMap { chunks: BTreeMap::new(), len: 0, pair_bytes: 0 }
    }
}

impl<K: Copy, V> Clone for CowMap<K, V> {
    fn clone(&self) -> Self {
        CowMap { chunks: self.chunks.clone(), ..*self }
    }
}

impl<K: Copy + Ord, V: Copy> CowMap<K, V> {
    pub fn len(&self) -> usize {
        self.len
    }

    /// Bytes on the heap.
    pub fn memory_bytes(&self) -> usize {
        let chunk = allocated_bytes(ARC_COUNTS_BYTES + size_of::<Chunk<K, V>>());
        tree_bytes::<K, Arc<Chunk<K, V>>>(self.chunks.len())
            + self.chunks.len() * chunk
            + self.pair_bytes
    }

    fn chunk_of(&self, key: &K) -> Option<&Chunk<K, V>> {
        self.chunks.range(..=key).next_back().map(|(_, chunk)| &**chunk)
    }

    pub fn get(&self, key: &K) -> Option<&V> {
        let Chunk(pairs) = self.chunk_of(key)?;
        let at = pairs.binary_search_by_key(key, |pair| pair.0).ok()?;
        Some(&pairs[at].1)
    }

    pub fn at_mut(&mut self, key: &K) -> Option<&mut V> {
        let (_, chunk) = self.chunks.range_mut(..=key).next_back()?;
        let at = chunk.0.binary_search_by_key(key, |pair| pair.0).ok()?;
        Some(&mut to_change(chunk).0[at].1)
    }

    /// Puts a value under a key; the one that was there.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        if let Some(before) = self.at_mut(&key) {
            return Some(std::mem::replace(before, value));
        }
        self.len += 1;
        self.make_room(key);
        let home = self.chunks.range_mut(..=key).next_back();
        let (_, chunk) = home.expect("there is room for the key");
        let Chunk(pairs) = to_change(chunk);
        let before = allocated_for::<(K, V)>(pairs.capacity());
        if pairs.len() == pairs.capacity() {
            pairs.reserve_exact(fit::<(K, V)>(pairs.len() + 1) - pairs.len());
        }
        let at = pairs.partition_point(|pair| pair.0 < key);
        pairs.insert(at, (key, value));
        self.pair_bytes += allocated_for::<(K, V)>(pairs.capacity()) - before;
        None
    }

    /// Sees to it that there is a chunk where a new key belongs, and that it is not full.
    fn make_room(&mut self, key: K) {
        let Some((&start, chunk)) = self.chunks.range(..=key).next_back() else {
            // Below all others.
            let is_full = |chunk: &Arc<Chunk<K, V>>| chunk.0.len() >= CHUNK_PAIRS_MAX;
            let first = match self.chunks.first_entry().filter(|first| !is_full(first.get())) {
                Some(first) => first.remove(),
                None => Arc::new(Chunk(Vec::new())),
            };
            self.chunks.insert(key, first);
            return;
        };
        if chunk.0.len() < CHUNK_PAIRS_MAX {
            return;
        }
        if chunk.0.last().is_some_and(|last| last.0 < key) {
            // Keys come in ascending order more often than not: the chunk stays full.
            self.chunks.insert(key, Arc::new(Chunk(Vec::new())));
            return;
        }
        let Some(chunk) = self.chunks.get_mut(&start) else { return };
        let Chunk(lower) = to_change(chunk);
        let before = allocated_for::<(K, V)>(lower.capacity());
        let upper = lower.split_off(CHUNK_PAIRS_MAX / 2);
        lower.shrink_to_fit();
        let after = [&*lower, &upper].map(|pairs| allocated_for::<(K, V)>(pairs.capacity()));
        self.pair_bytes = self.pair_bytes + after[0] + after[1] - before;
        self.chunks.insert(upper[0].0, Arc::new(Chunk(upper)));
    }

    pub fn remove(&mut self, key: &K) -> Option<V> {
        let (&start, chunk) = self.chunks.range_mut(..=key).next_back()?;
        let at = chunk.0.binary_search_by_key(key, |pair| pair.0).ok()?;
        let Chunk(pairs) = to_change(chunk);
        let before = allocated_for::<(K, V)>(pairs.capacity());
        let (_, value) = pairs.remove(at);
        if pairs.len() < pairs.capacity() / 2 {
            pairs.shrink_to(fit::<(K, V)>(pairs.len()));
        }
        self.pair_bytes = self.pair_bytes + allocated_for::<(K, V)>(pairs.capacity()) - before;
        self.len -= 1;
        if pairs.is_empty() {
            self.chunks.remove(&start);
        }
        Some(value)
    }

    pub fn first(&self) -> Option<(&K, &V)> {
        let (_, chunk) = self.chunks.first_key_value()?;
        chunk.0.first().map(|(key, value)| (key, value))
    }

    pub fn last(&self) -> Option<(&K, &V)> {
        let (_, chunk) = self.chunks.last_key_value()?;
        chunk.0.last().map(|(key, value)| (key, value))
    }

    /// Those of a range, in order. A range that ends before it starts is empty.
    pub fn range(&self, range: impl RangeBounds<K>) -> impl Iterator<Item = (&K, &V)> {
        let start = match range.start_bound() {
            Bound::Included(key) | Bound::Excluded(key) => {
                self.chunks.range(..=*key).next_back().map(|(start, _)| *start)
            }
            Bound::Unbounded => None,
        };
        let from = start.map_or(Bound::Unbounded, Bound::Included);
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
        self.chunks
            .range((from, Bound::Unbounded))
            .flat_map(|(_, chunk)| chunk.0.iter())
            .skip_while(move |pair| is_before(&pair.0))
            .take_while(move |pair| is_within(&pair.0))
            .map(|(key, value)| (key, value))
    }

    pub fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.range(..)
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
        let pairs =
            map.chunks.values().map(|chunk| allocated_for::<(u32, u32)>(chunk.0.capacity()));
        assert_eq!(map.pair_bytes, pairs.sum::<usize>());
        assert!(map.chunks.values().all(|chunk| !chunk.0.is_empty()));
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
