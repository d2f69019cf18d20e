//! The heaviest of many keys, in bounded memory.
//!
//! Keys are counted exactly while they are few. When there is no more room, the median of all
//! weights is taken from each, and what has nothing left is dropped (the method of Misra and Gries,
//! in steps). So a weight is never more than what was added for its key, and less by at most one
//! part in [`ENTRIES_MAX`] / 2 of all that was added.

use russet_engine::types::capacity::{allocated_bytes, allocated_for};
use std::collections::HashMap;

/// Keys that are counted at once.
const ENTRIES_MAX: usize = 2048;
/// Longer keys are not counted: so many of them would take too much memory.
pub const KEY_BYTES_MAX: usize = 1024;

#[derive(Debug, Default)]
pub struct Sketch {
    weights: HashMap<Box<[u8]>, u64>,
    /// What the keys take up, as allocated.
    key_bytes: usize,
    total: u64,
}

impl Sketch {
    pub fn add(&mut self, key: &[u8], weight: u64) {
        self.total = self.total.saturating_add(weight);
        if let Some(sum) = self.weights.get_mut(key) {
            *sum = sum.saturating_add(weight);
            return;
        }
        if weight == 0 || key.len() > KEY_BYTES_MAX {
            return;
        }
        if self.weights.len() >= ENTRIES_MAX {
            self.prune();
        }
        self.key_bytes += allocated_bytes(key.len());
        self.weights.insert(key.into(), weight);
    }

    #[cold]
    fn prune(&mut self) {
        let mut weights: Vec<u64> = self.weights.values().copied().collect();
        let middle = weights.len() / 2;
        let (_, &mut median, _) = weights.select_nth_unstable(middle);
        let key_bytes = &mut self.key_bytes;
        self.weights.retain(|key, weight| {
            *weight = weight.saturating_sub(median);
            if *weight == 0 {
                *key_bytes -= allocated_bytes(key.len());
            }
            *weight > 0
        });
    }

    /// All that was added, whatever became of it.
    pub fn total(&self) -> u64 {
        self.total
    }

    pub fn entries(&self) -> impl Iterator<Item = (&[u8], u64)> {
        self.weights.iter().map(|(key, weight)| (&**key, *weight))
    }

    pub fn memory_bytes(&self) -> usize {
        self.key_bytes + allocated_for::<(Box<[u8]>, u64)>(self.weights.capacity())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use russet_base::Random;

    fn weight_of(sketch: &Sketch, key: &str) -> u64 {
        let found = sketch.entries().find(|(known, _)| *known == key.as_bytes());
        found.map_or(0, |(_, weight)| weight)
    }

    #[test]
    fn few_keys_are_counted_exactly() {
        let mut sketch = Sketch::default();
        for (key, weight) in [("a", 5), ("b", 7), ("a", 2), ("c", 0)] {
            sketch.add(key.as_bytes(), weight);
        }
        assert_eq!((weight_of(&sketch, "a"), weight_of(&sketch, "b")), (7, 7));
        assert_eq!((sketch.entries().count(), sketch.total()), (2, 14));
    }

    #[test]
    fn a_hot_key_stands_out_among_many_in_bounded_memory() {
        let (mut sketch, mut random) = (Sketch::default(), Random::from_seed(1));
        let (mut hot, mut added) = (0, 0);
        for _ in 0..200_000 {
            let is_hot = random.below(100) == 0;
            let weight = 1 + random.below(9);
            match is_hot {
                true => sketch.add(b"hot", weight),
                false => sketch.add(&random.next_u64().to_le_bytes(), weight),
            }
            hot += if is_hot { weight } else { 0 };
            added += weight;
            assert!(sketch.weights.len() <= ENTRIES_MAX);
        }
        let counted = weight_of(&sketch, "hot");
        assert!(counted <= hot, "{counted} of {hot}");
        assert!(hot - counted <= added / (ENTRIES_MAX as u64 / 2), "{counted} of {hot}");
        let heaviest = sketch.entries().max_by_key(|(_, weight)| *weight);
        assert_eq!(heaviest.map(|(key, _)| key), Some(&b"hot"[..]));
        assert_eq!(sketch.total(), added);
        let key_bytes: usize = sketch.entries().map(|(key, _)| allocated_bytes(key.len())).sum();
        assert_eq!(sketch.key_bytes, key_bytes);
    }

    #[test]
    fn a_key_that_is_too_long_takes_no_memory() {
        let mut sketch = Sketch::default();
        sketch.add(&[b'x'; KEY_BYTES_MAX + 1], 3);
        assert_eq!((sketch.entries().count(), sketch.memory_bytes(), sketch.total()), (0, 0, 3));
    }
}
