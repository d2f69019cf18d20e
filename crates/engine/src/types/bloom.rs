//! Bloom filters: whether an item was ever added, in a few bits for each. "No" is certain; "yes" is
//! wrong at most as often as was asked.
//!
//! A filter that is full grows by a layer, larger than the last and with less than half its error,
//! so that the errors of all layers together stay below the one that was asked for. Hash and bit
//! positions are those of the Bloom module of Redis, so that filters can be exchanged one day.

mod layer;
#[cfg(test)]
mod tests;

use crate::store::raw::table::{EntryMut, EntryRef, NewValue, View};
use crate::types::capacity::{allocated_bytes, allocated_for};
use crate::value::{Object, WrongType};
pub use layer::LayerParts;
use layer::{Layer, Probe};

/// Most items that a filter can be made for at once.
pub const CAPACITY_MAX: u64 = 1 << 30;
/// Largest factor by which a layer may exceed the one before.
pub const EXPANSION_MAX: u64 = 32_768;
/// An error rate above this is taken as this: with fewer bits a filter would say yes to anything.
pub const ERROR_RATE_CAP: f64 = 0.25;
/// Bytes that the bits of one filter may take up, all layers together: as much as a string may.
pub const BITS_BYTES_MAX: u64 = 512 << 20;

/// The share of the error that the first layer is made for, if more may follow.
const FIRST_LAYER_SHARE: f64 = 0.5;
/// Each further layer has this share of the error of the one before. All of them together come to
/// ten elevenths of what was asked.
/// DIFFERS: Redis halves, which adds up to all of it and, measured, to a little more.
const TIGHTENING: f64 = 0.45;
/// The share of the error that a single layer is made for: whole numbers of hash functions and the
/// way positions are derived cost a little of it.
const SINGLE_LAYER_SHARE: f64 = 0.9;
/// What the module of Redis counts beside the bits: for a filter, and for each layer.
const FILTER_BYTES: u64 = 32;
const LAYER_BYTES: u64 = 64;

/// What a filter is made for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wish {
    /// Share of wrong answers, above 0 and below 1.
    pub error_rate: f64,
    /// Items, at least 1.
    pub capacity: u64,
    /// How much larger each further layer is; none for a filter that must not grow.
    pub expansion: Option<u32>,
}

/// Why an item was not added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The filter is full and must not grow.
    Full,
    /// It would take up more than [`BITS_BYTES_MAX`].
    TooLarge,
}

#[derive(Clone)]
pub struct Bloom(Box<Chain>);

#[derive(Clone, Default)]
struct Chain {
    /// Never empty; the last one takes new items.
    layers: Vec<Layer>,
    /// Bytes of the bits of all layers, and what they take on the heap.
    bits_bytes: u64,
    heap_bytes: usize,
    items: u64,
    expansion: Option<u32>,
}

impl Chain {
    fn push(&mut self, layer: Layer) {
        self.bits_bytes += layer.bytes().len() as u64;
        self.heap_bytes += allocated_bytes(layer.bytes().len());
        self.layers.push(layer);
    }
}

impl Bloom {
    /// An empty filter, unless its bits would take up too much.
    pub fn new(wish: Wish) -> Result<Self, Refused> {
        let share = if wish.expansion.is_some() { FIRST_LAYER_SHARE } else { SINGLE_LAYER_SHARE };
        let error_rate = wish.error_rate.min(ERROR_RATE_CAP) * share;
        let layer = Layer::new(wish.capacity, error_rate, BITS_BYTES_MAX)?;
        let mut chain = Chain { expansion: wish.expansion, ..Chain::default() };
        chain.push(layer);
        Ok(Bloom(Box::new(chain)))
    }

    /// A filter that was saved, without its layers.
    pub fn loading(expansion: Option<u32>) -> BloomBuilder {
        BloomBuilder(Chain { expansion, ..Chain::default() })
    }

    pub fn parts(&self) -> impl ExactSizeIterator<Item = LayerParts<'_>> {
        self.0.layers.iter().map(Layer::parts)
    }

    /// Adds an item; whether it is new, as far as a filter can tell.
    pub fn add(&mut self, item: &[u8]) -> Result<bool, Refused> {
        let probe = Probe::of(item);
        if self.has(probe) {
            return Ok(false);
        }
        let bits_bytes = self.bits_bytes();
        let chain = &mut *self.0;
        let last = chain.layers.last().expect("a filter has a layer");
        if last.is_full() {
            let expansion = chain.expansion.ok_or(Refused::Full)?;
            let capacity = last.capacity().saturating_mul(u64::from(expansion));
            let bytes_max = BITS_BYTES_MAX - bits_bytes;
            let next = Layer::new(capacity, last.error_rate() * TIGHTENING, bytes_max)?;
            chain.push(next);
        }
        let last = chain.layers.last_mut().expect("a filter has a layer");
        last.add(probe);
        chain.items += 1;
        Ok(true)
    }

    pub fn contains(&self, item: &[u8]) -> bool {
        self.has(Probe::of(item))
    }

    /// The newest layer is the largest, so it is asked first.
    fn has(&self, probe: Probe) -> bool {
        self.0.layers.iter().rev().any(|layer| layer.has(probe))
    }

    /// Items that were new when they were added.
    pub fn len(&self) -> usize {
        self.0.items as usize
    }

    pub fn is_empty(&self) -> bool {
        self.0.items == 0
    }

    /// Items that fit into the layers that there are.
    pub fn capacity(&self) -> u64 {
        self.0.layers.iter().map(Layer::capacity).sum()
    }

    pub fn layers(&self) -> usize {
        self.0.layers.len()
    }

    pub fn expansion(&self) -> Option<u32> {
        self.0.expansion
    }

    fn bits_bytes(&self) -> u64 {
        self.0.bits_bytes
    }

    /// The size as the module of Redis counts it.
    pub fn reported_bytes(&self) -> u64 {
        FILTER_BYTES + LAYER_BYTES * self.0.layers.len() as u64 + self.bits_bytes()
    }

    pub fn memory_bytes(&self) -> usize {
        allocated_for::<Chain>(1)
            + allocated_for::<Layer>(self.0.layers.capacity())
            + self.0.heap_bytes
    }

    /// The bits of each layer, for signatures of the data.
    pub fn layer_bytes(&self) -> impl Iterator<Item = &[u8]> {
        self.0.layers.iter().map(Layer::bytes)
    }
}

/// A filter that is put together from its layers.
pub struct BloomBuilder(Chain);

impl BloomBuilder {
    /// Adds a layer; false if its parts don't belong together or it is too much.
    #[must_use]
    pub fn add(&mut self, parts: LayerParts<'_>) -> bool {
        let is_too_large = self.0.bits_bytes + parts.bits.len() as u64 > BITS_BYTES_MAX;
        let layer = Layer::of_parts(parts).filter(|_| !is_too_large);
        let Some(items) = self.0.items.checked_add(parts.items) else { return false };
        self.0.items = items;
        layer.map(|layer| self.0.push(layer)).is_some()
    }

    /// The filter as a value; `None` without a layer.
    pub fn finish(self) -> Option<NewValue<'static, Object>> {
        let bloom = (!self.0.layers.is_empty()).then(|| Bloom(Box::new(self.0)));
        bloom.map(|bloom| NewValue::Object(Box::new(Object::Bloom(bloom))))
    }
}

/// The filter in an entry.
pub fn stored<'a>(entry: &EntryRef<'a, Object>) -> Result<&'a Bloom, WrongType> {
    match entry.value() {
        View::Object(Object::Bloom(bloom)) => Ok(bloom),
        _ => Err(WrongType),
    }
}

/// The filter in an entry, to be changed.
pub fn stored_mut<'a>(entry: &'a mut EntryMut<'_, Object>) -> Result<&'a mut Bloom, WrongType> {
    match entry.object_mut() {
        Some(Object::Bloom(bloom)) => Ok(bloom),
        _ => Err(WrongType),
    }
}
