//! Who reads: each of the first clients that track keys has a slot, so that the readers of a key
//! are a set of bits beside its name and one more reader takes no memory. Who comes when all slots
//! are taken is remembered by its number.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// As many as there are bits in a [`SlotSet`].
pub(super) const SLOTS: usize = 128;

/// What one without a slot takes beside a key.
pub(super) const READER_BYTES: usize = 8;

/// Slots, a bit for each.
pub type SlotSet = u128;

/// A client whose reads are remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reader {
    pub(super) id: u64,
    pub(super) slot: Option<u8>,
}

impl Reader {
    pub(super) fn memory_bytes(self) -> u64 {
        if self.slot.is_some() { 0 } else { READER_BYTES as u64 }
    }
}

/// Which client has which slot.
///
/// A slot is free again only when no key has its bit any more. A bit that is left over does no
/// harm: a client that has the slot later gets an invalidation too many. A bit that is missing
/// would leave an old copy, so those of a slot are cleared only between a client and the next.
#[derive(Debug)]
pub struct ReaderSlots {
    /// The client that has or had a slot. A reader's number is here before its first bit is set
    /// under the lock of a shard, which orders it before whoever finds the bit there.
    ids: [AtomicU64; SLOTS],
    in_use: Mutex<SlotsInUse>,
}

#[derive(Debug, Default)]
struct SlotsInUse {
    taken: SlotSet,
    /// Of these, those whose client reads no more, and whose bits nobody has begun to clear.
    left: SlotSet,
}

impl Default for ReaderSlots {
    fn default() -> Self {
        ReaderSlots { ids: [const { AtomicU64::new(0) }; SLOTS], in_use: Mutex::default() }
    }
}

impl ReaderSlots {
    fn in_use(&self) -> MutexGuard<'_, SlotsInUse> {
        self.in_use.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A client begins to track keys.
    pub fn join(&self, id: u64) -> Reader {
        let mut in_use = self.in_use();
        let slot = in_use.taken.trailing_ones() as usize;
        let Some(own) = self.ids.get(slot) else { return Reader { id, slot: None } };
        own.store(id, Ordering::Relaxed);
        in_use.taken |= 1 << slot;
        Reader { id, slot: Some(slot as u8) }
    }

    /// It no longer does.
    pub fn leave(&self, reader: Reader) {
        if let Some(slot) = reader.slot {
            self.in_use().left |= 1 << slot;
        }
    }

    /// The slots whose bits are to be cleared: whoever gets them does so, in all shards, and then
    /// frees them.
    pub fn take_left(&self) -> SlotSet {
        std::mem::take(&mut self.in_use().left)
    }

    /// No key has the bits of these any more.
    pub fn free(&self, slots: SlotSet) {
        self.in_use().taken &= !slots;
    }

    /// The clients of these slots.
    pub(super) fn ids(&self, mut slots: SlotSet) -> impl Iterator<Item = u64> {
        std::iter::from_fn(move || {
            let own = self.ids.get(slots.trailing_zeros() as usize)?;
            slots &= slots.wrapping_sub(1);
            Some(own.load(Ordering::Relaxed))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_is_given_again_only_when_it_was_freed() {
        let slots = ReaderSlots::default();
        let readers: Vec<Reader> = (1..=SLOTS as u64).map(|id| slots.join(id)).collect();
        assert!(readers.iter().all(|reader| reader.slot.is_some()));
        assert_eq!(slots.join(500), Reader { id: 500, slot: None }, "all are taken");
        slots.leave(readers[3]);
        slots.leave(Reader { id: 500, slot: None });
        assert_eq!(slots.join(501).slot, None, "some key may have its bit");
        let left = slots.take_left();
        assert_eq!((left, slots.take_left()), (1 << 3, 0), "one clears it");
        assert_eq!(slots.join(502).slot, None);
        assert_eq!(slots.ids(left).collect::<Vec<_>>(), [4]);
        slots.free(left);
        assert_eq!(slots.join(503), Reader { id: 503, slot: Some(3) });
        assert_eq!(slots.ids(left | 1 << 127).collect::<Vec<_>>(), [503, 128]);
    }
}
