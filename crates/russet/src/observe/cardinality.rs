//! About how many different keys of a pattern this process has used: a sketch of 256 bytes for each
//! pattern, so that no key is kept. The figure is within about 7 %.

use crate::key::{Key, Pattern};
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, LazyLock, RwLock};

const NAME: &str = "redis.key.cardinality";
/// So many bits of a hash choose a register; the others have the run of zeros that it keeps.
const REGISTER_BITS: u32 = 8;
const REGISTERS: usize = 1 << REGISTER_BITS;
/// The constant of HyperLogLog for so many registers.
const ALPHA: f64 = 0.7213 / (1.0 + 1.079 / REGISTERS as f64);

static SKETCHES: LazyLock<Sketches> = LazyLock::new(Sketches::default);

#[derive(Default)]
struct Sketches {
    by_pattern: RwLock<HashMap<Pattern, Arc<Sketch>>>,
    hasher: RandomState,
}

struct Sketch([AtomicU8; REGISTERS]);

/// The gauge is set when the sketch has changed: rarely, once it knows the keys.
pub(super) fn used(key: &Key) {
    let (sketches, pattern) = (&*SKETCHES, key.pattern());
    let known = {
        let all = sketches.by_pattern.read().unwrap_or_else(|poison| poison.into_inner());
        all.get(&pattern).cloned()
    };
    let sketch = known.unwrap_or_else(|| {
        let mut all = sketches.by_pattern.write().unwrap_or_else(|poison| poison.into_inner());
        all.entry(pattern).or_default().clone()
    });
    if sketch.add(sketches.hasher.hash_one(key.as_bytes())) {
        metrics::gauge!(NAME, "pattern" => pattern.to_string()).set(sketch.estimate());
    }
}

impl Default for Sketch {
    fn default() -> Self {
        Sketch([const { AtomicU8::new(0) }; REGISTERS])
    }
}

impl Sketch {
    /// Whether it says something new.
    fn add(&self, hash: u64) -> bool {
        let register = &self.0[hash as usize % REGISTERS];
        // At most 57, with the last bit set.
        let run = ((hash >> REGISTER_BITS) | 1 << (63 - REGISTER_BITS)).trailing_zeros() as u8 + 1;
        run > register.load(Ordering::Relaxed) && register.fetch_max(run, Ordering::Relaxed) < run
    }

    fn estimate(&self) -> f64 {
        let registers = || self.0.iter().map(|it| it.load(Ordering::Relaxed));
        let count = REGISTERS as f64;
        let sum: f64 = registers().map(|run| f64::from(run).exp2().recip()).sum();
        let raw = ALPHA * count * count / sum;
        match registers().filter(|run| *run == 0).count() {
            // While there are few keys the empty registers say more.
            empty if empty > 0 && raw < 2.5 * count => count * (count / empty as f64).ln(),
            _ => raw,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sketch_counts_each_key_once() {
        for keys in [1, 100, 10_000, 300_000_u64] {
            let (sketch, hasher) = (Sketch::default(), RandomState::new());
            for _ in 0..2 {
                for key in 0..keys {
                    sketch.add(hasher.hash_one(key));
                }
            }
            let (estimate, wanted) = (sketch.estimate(), keys as f64);
            // Four standard errors: one run in thousands is beyond.
            assert!((estimate - wanted).abs() <= wanted * 0.27 + 1.0, "{keys}: {estimate}");
        }
    }
}
