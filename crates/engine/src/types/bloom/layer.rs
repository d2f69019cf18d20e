//! One layer: bits, and for each item a few positions among them.

use super::Refused;
use crate::types::murmur::murmur64a;
use std::f64::consts::LN_2;

const SEED: u64 = 0xc6a4_a793_5bd1_e995;

/// Two hashes of an item, from which all its positions in all layers follow.
#[derive(Clone, Copy)]
pub(super) struct Probe {
    start: u64,
    step: u64,
}

impl Probe {
    pub fn of(item: &[u8]) -> Probe {
        let start = murmur64a(item, SEED);
        Probe { start, step: murmur64a(item, start) }
    }
}

#[derive(Clone)]
pub(super) struct Layer {
    bytes: Box<[u8]>,
    hashes: u32,
    capacity: u64,
    items: u64,
    error_rate: f64,
}

/// What a layer is, for files.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LayerParts<'a> {
    pub capacity: u64,
    pub error_rate: f64,
    /// Positions of each item.
    pub hashes: u32,
    /// Items that were new to it.
    pub items: u64,
    pub bits: &'a [u8],
}

impl LayerParts<'_> {
    pub fn bits_per_item(&self) -> f64 {
        bits_per_item(self.error_rate)
    }
}

fn bits_per_item(error_rate: f64) -> f64 {
    -error_rate.ln() / (LN_2 * LN_2)
}

fn hashes_for(error_rate: f64) -> u32 {
    (LN_2 * bits_per_item(error_rate)).ceil() as u32
}

impl Layer {
    /// The size is known, and refused, before anything is allocated.
    pub fn new(capacity: u64, error_rate: f64, bytes_max: u64) -> Result<Layer, Refused> {
        let bits_per_item = bits_per_item(error_rate);
        // Casts saturate; what is too large is too large all the same.
        let bits = (capacity as f64 * bits_per_item) as u64;
        let bytes = bits.max(1).div_ceil(64).saturating_mul(8);
        if bytes > bytes_max {
            return Err(Refused::TooLarge);
        }
        Ok(Layer {
            // Zeroed memory comes from the system as it is, without being written.
            bytes: vec![0; bytes as usize].into_boxed_slice(),
            hashes: hashes_for(error_rate),
            capacity,
            items: 0,
            error_rate,
        })
    }

    /// A layer that was saved; `None` if its parts don't belong together.
    pub fn of_parts(parts: LayerParts<'_>) -> Option<Layer> {
        let LayerParts { capacity, error_rate, hashes, items, bits } = parts;
        let is_sound = capacity > 0
            && error_rate > 0.0
            && error_rate < 1.0
            && hashes == hashes_for(error_rate)
            && !bits.is_empty()
            && bits.len().is_multiple_of(8);
        is_sound.then(|| Layer { bytes: bits.into(), hashes, capacity, items, error_rate })
    }

    pub fn parts(&self) -> LayerParts<'_> {
        let Layer { hashes, capacity, items, error_rate, .. } = *self;
        LayerParts { capacity, error_rate, hashes, items, bits: &self.bytes }
    }

    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    pub fn error_rate(&self) -> f64 {
        self.error_rate
    }

    pub fn is_full(&self) -> bool {
        self.items >= self.capacity
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    fn positions(&self, probe: Probe) -> impl Iterator<Item = (usize, u8)> + use<> {
        let bits = self.bytes.len() as u64 * 8;
        (0..u64::from(self.hashes)).map(move |turn| {
            let at = probe.start.wrapping_add(turn.wrapping_mul(probe.step)) % bits;
            ((at / 8) as usize, 1 << (at % 8))
        })
    }

    pub fn has(&self, probe: Probe) -> bool {
        self.positions(probe).all(|(byte, bit)| self.bytes[byte] & bit != 0)
    }

    pub fn add(&mut self, probe: Probe) {
        for (byte, bit) in self.positions(probe) {
            self.bytes[byte] |= bit;
        }
        self.items += 1;
    }
}
