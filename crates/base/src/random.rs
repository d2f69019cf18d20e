//! A small, fast random generator (xoshiro256**), the same sequence from the same seed. It is for
//! sampling and seeds, not for secrets.

use std::collections::hash_map::RandomState;
use std::fs::File;
use std::hash::{BuildHasher, Hasher};
use std::io::Read;
use std::sync::OnceLock;

/// Fills `bytes` with what nobody can guess: for passwords and the like, for which [`Random`] is no
/// source. Fails where the system gives none, rather than take less.
pub fn fill_with_secrets(bytes: &mut [u8]) -> std::io::Result<()> {
    // Opened once: to open and close it takes longer than to read.
    static SOURCE: OnceLock<File> = OnceLock::new();
    let mut source = match SOURCE.get() {
        Some(source) => source,
        None => {
            let opened = File::open("/dev/urandom")?;
            SOURCE.get_or_init(|| opened)
        }
    };
    source.read_exact(bytes)
}

#[derive(Clone, Debug)]
pub struct Random {
    state: [u64; 4],
}

impl Random {
    pub fn from_seed(seed: u64) -> Self {
        // SplitMix64 spreads the seed; four of its outputs in a row are never all zero, which is
        // the one state that xoshiro can't leave.
        let mut at = seed;
        let state = std::array::from_fn(|_| {
            at = at.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut mixed = at;
            mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            mixed ^ (mixed >> 31)
        });
        Random { state }
    }

    /// Seeded by the system; where /dev/urandom can't be read, by the hasher keys that the
    /// standard library got from it.
    pub fn from_entropy() -> Self {
        let mut bytes = [0u8; 32];
        let state = match fill_with_secrets(&mut bytes) {
            Ok(()) => std::array::from_fn(|word| {
                std::array::from_fn::<u8, 8, _>(|byte| bytes[word * 8 + byte])
            })
            .map(u64::from_le_bytes),
            Err(_) => std::array::from_fn(|_| RandomState::new().build_hasher().finish()),
        };
        if state == [0; 4] { Random::from_seed(0) } else { Random { state } }
    }

    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        let [a, b, c, d] = self.state;
        let out = b.wrapping_mul(5).rotate_left(7).wrapping_mul(9);
        let (c, d) = (c ^ a, d ^ b);
        self.state = [a ^ d, b ^ c, c ^ (b << 17), d.rotate_left(45)];
        out
    }

    /// A number below `bound`, each as likely as the other; 0 if `bound` is 0.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        // Lemire: the high half of a 128-bit product, with the few unfair low halves drawn again.
        let mut product = u128::from(self.next_u64()) * u128::from(bound);
        if (product as u64) < bound {
            let unfair = bound.wrapping_neg() % bound;
            while (product as u64) < unfair {
                product = u128::from(self.next_u64()) * u128::from(bound);
            }
        }
        (product >> 64) as u64
    }

    /// An index into something of `len` elements.
    #[inline]
    pub fn index(&mut self, len: usize) -> usize {
        self.below(len as u64) as usize
    }

    /// A number in [0, 1).
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// True with this probability: never at 0, always from 1 on.
    pub fn chance(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }

    pub fn fill(&mut self, out: &mut [u8]) {
        for chunk in out.chunks_mut(8) {
            let word = self.next_u64().to_le_bytes();
            chunk.copy_from_slice(&word[..chunk.len()]);
        }
    }

    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.index(last + 1));
        }
    }

    /// A run id or replication id: 40 hexadecimal digits.
    pub fn run_id(&mut self) -> String {
        let mut bytes = [0u8; 20];
        self.fill(&mut bytes);
        hex(&bytes)
    }
}

/// Bytes as lower-case hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |nibble: u8| char::from(DIGITS[usize::from(nibble)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_fixes_the_sequence() {
        let draw = |seed| {
            let mut random = Random::from_seed(seed);
            [random.next_u64(), random.next_u64(), random.next_u64()]
        };
        assert_eq!(draw(0), draw(0));
        assert_ne!(draw(0), draw(1));
        assert_ne!(Random::from_entropy().next_u64(), Random::from_entropy().next_u64());
    }

    #[test]
    fn known_first_outputs_of_the_algorithm() {
        // The reference state {1, 2, 3, 4} of the published algorithm.
        let mut random = Random { state: [1, 2, 3, 4] };
        let first: Vec<u64> = (0..5).map(|_| random.next_u64()).collect();
        assert_eq!(first, [11520, 0, 1509978240, 1215971899390074240, 1216172134540287360]);
    }

    #[test]
    fn below_stays_below_and_reaches_everything() {
        let mut random = Random::from_seed(7);
        assert_eq!(random.below(0), 0);
        assert_eq!(random.below(1), 0);
        let mut seen = [0u32; 6];
        (0..6_000).for_each(|_| seen[random.index(6)] += 1);
        assert!(seen.iter().all(|&times| (800..1_200).contains(&times)), "{seen:?}");
        assert!((0..100).all(|_| random.below(u64::MAX) < u64::MAX));
    }

    #[test]
    fn chances_at_the_ends_are_certain() {
        let mut random = Random::from_seed(3);
        assert!((0..1_000).all(|_| !random.chance(0.0) && random.chance(1.0)));
        assert!(!random.chance(f64::NAN));
    }

    #[test]
    fn shuffle_keeps_every_element() {
        let mut random = Random::from_seed(5);
        let mut items: Vec<u32> = (0..100).collect();
        random.shuffle(&mut items);
        assert_ne!(items, (0..100).collect::<Vec<_>>());
        items.sort_unstable();
        assert_eq!(items, (0..100).collect::<Vec<_>>());
        random.shuffle::<u8>(&mut []);
    }

    #[test]
    fn run_ids_are_forty_hex_digits() {
        assert_eq!(hex(&[0x00, 0x9f, 0xff]), "009fff");
        let id = Random::from_entropy().run_id();
        assert_eq!(id.len(), 40);
        assert!(id.bytes().all(|b| b.is_ascii_hexdigit()));
        let mut bytes = [0u8; 11];
        Random::from_seed(1).fill(&mut bytes);
        assert_ne!(bytes, [0; 11]);
    }
}
