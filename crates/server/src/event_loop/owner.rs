//! Which thread owns a loop right now, and how a slow one loses it.
//!
//! `beat` is even while the owner looks after the loop itself, and odd while it runs commands.
//! Every few commands give it a new odd value, so a watchdog that sees the same odd value for too
//! long knows that a command is taking that long. It takes the loop by swapping that value for
//! [`LOST`]; the owner notices at its next beat. One compare-and-swap decides, so exactly one of
//! the two wins.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const LOST: u64 = u64::MAX;

/// The pulse of a loop's owner, seen from the watchdog.
#[derive(Debug, Default)]
pub struct Pulse(AtomicU64);

impl Pulse {
    /// The value if the owner is inside a command.
    pub fn in_command(&self) -> Option<u64> {
        let beat = self.0.load(Ordering::Relaxed);
        (beat % 2 == 1 && beat != LOST).then_some(beat)
    }

    /// Takes the loop from an owner that is still in the command it was seen in.
    pub fn seize(&self, seen: u64) -> bool {
        self.0.compare_exchange(seen, LOST, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }
}

/// An owner's hold on its loop. Only its own thread uses it.
pub struct Ownership {
    pulse: Arc<Pulse>,
    beat: Cell<u64>,
}

impl Ownership {
    pub fn new(pulse: Arc<Pulse>) -> Self {
        pulse.0.store(0, Ordering::Relaxed);
        Ownership { pulse, beat: Cell::new(0) }
    }

    /// Some commands begin. False if the loop is lost.
    #[inline]
    pub fn beat(&self) -> bool {
        let next = self.beat.get().wrapping_add(1) | 1;
        self.advance(next)
    }

    /// The turn is over: the owner is back at the loop. False if the loop is lost.
    pub fn rest(&self) -> bool {
        if self.beat.get().is_multiple_of(2) {
            return !self.is_lost();
        }
        // A lost loop's beat is odd too; what it would be next is never stored.
        self.advance(self.beat.get().wrapping_add(1))
    }

    pub fn is_lost(&self) -> bool {
        self.beat.get() == LOST
    }

    #[inline]
    fn advance(&self, next: u64) -> bool {
        let now = self.beat.get();
        if now == LOST {
            return false;
        }
        match self.pulse.0.compare_exchange(now, next, Ordering::AcqRel, Ordering::Relaxed) {
            Ok(_) => {
                self.beat.set(next);
                true
            }
            Err(_) => {
                self.beat.set(LOST);
                false
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_owner_loses_its_loop_and_a_quick_one_keeps_it() {
        let pulse = Arc::new(Pulse::default());
        let owner = Ownership::new(pulse.clone());
        assert_eq!(pulse.in_command(), None);
        assert!(owner.beat());
        let seen = pulse.in_command().unwrap();
        assert!(owner.beat());
        assert!(!pulse.seize(seen), "it is in another command by now");
        let seen = pulse.in_command().unwrap();
        assert!(pulse.seize(seen));
        assert!(!owner.rest() && owner.is_lost() && !owner.beat());
    }

    #[test]
    fn a_resting_owner_cannot_be_seized() {
        let pulse = Arc::new(Pulse::default());
        let owner = Ownership::new(pulse.clone());
        assert!(owner.beat() && owner.rest() && owner.rest());
        assert_eq!(pulse.in_command(), None);
    }
}
