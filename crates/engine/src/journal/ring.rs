//! A ring of slots that many writers fill in one total order and one reader empties in that order.
//!
//! A writer takes the next number with one atomic addition, exchanges what it brings for what is at
//! that slot, and marks it as filled: between the two nothing is allocated, copied or
//! waited for. The reader takes slots from the first on, as far as all of them are filled.

use super::sync::{AtomicU64, Mutex, Ordering, pass};

/// Alone on its cache lines, which are fetched in pairs.
#[repr(align(128))]
struct Alone<T>(T);

struct Slot<T> {
    /// The number that the next writer must have; one more once it is filled. The reader leaves it
    /// for the writer of the next round.
    turn: AtomicU64,
    /// Never contended: whose turn it is has it alone.
    content: Mutex<T>,
}

pub(super) struct Ring<T> {
    slots: Box<[Slot<T>]>,
    reserved: Alone<AtomicU64>,
}

impl<T: Default> Ring<T> {
    pub fn new(slots: usize) -> Self {
        debug_assert!(slots.is_power_of_two());
        let slot = |number| Slot { turn: AtomicU64::new(number), content: Mutex::default() };
        Ring { slots: (0..slots as u64).map(slot).collect(), reserved: Alone(AtomicU64::new(0)) }
    }

    fn slot(&self, number: u64) -> &Slot<T> {
        &self.slots[number as usize & (self.slots.len() - 1)]
    }

    pub fn len(&self) -> u64 {
        self.slots.len() as u64
    }

    /// The number that the next writer will get.
    #[inline]
    pub fn reserved(&self) -> u64 {
        self.reserved.0.load(Ordering::SeqCst)
    }

    /// Puts `content` at the end, in exchange for something empty; its number.
    #[inline]
    pub fn push(&self, content: &mut T) -> u64 {
        // Two writers whose changes depend on each other hold a lock in common: that orders them.
        let number = self.reserved.0.fetch_add(1, Ordering::SeqCst);
        let slot = self.slot(number);
        // Writers are held back long before the ring is full.
        while slot.turn.load(Ordering::Acquire) != number {
            pass();
        }
        match slot.content.lock() {
            Ok(mut inside) => std::mem::swap(&mut *inside, content),
            Err(poison) => std::mem::swap(&mut *poison.into_inner(), content),
        }
        slot.turn.store(number + 1, Ordering::Release);
        number
    }

    /// Shows what has this number to `take`, which must leave something empty. False if it is not
    /// there yet. For the one reader, who asks for one number after the other.
    pub fn pop(&self, number: u64, take: impl FnOnce(&mut T)) -> bool {
        let slot = self.slot(number);
        if slot.turn.load(Ordering::Acquire) != number + 1 {
            return false;
        }
        match slot.content.lock() {
            Ok(mut inside) => take(&mut inside),
            Err(poison) => take(&mut poison.into_inner()),
        }
        slot.turn.store(number + self.len(), Ordering::Release);
        true
    }
}
