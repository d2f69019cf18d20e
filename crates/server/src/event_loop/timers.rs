//! When waiting clients are to be looked at: one timer for each connection, at most.

use std::collections::BTreeSet;

/// A connection of a loop: its slot, and which of those that had the slot.
pub type Owner = (usize, u64);

/// The timers of a loop, in milliseconds since 1970.
#[derive(Debug, Default)]
pub struct Timers(BTreeSet<(i64, Owner)>);

impl Timers {
    /// Moves a connection's timer from where it was set. One that went off is set again, if its
    /// time is the same.
    pub fn set(&mut self, owner: Owner, was_ms: Option<i64>, at_ms: Option<i64>) {
        if was_ms != at_ms
            && let Some(was_ms) = was_ms
        {
            self.0.remove(&(was_ms, owner));
        }
        self.0.extend(at_ms.map(|at_ms| (at_ms, owner)));
    }

    pub fn next_ms(&self) -> Option<i64> {
        self.0.first().map(|(at_ms, _)| *at_ms)
    }

    /// Those whose time has come; they are forgotten.
    pub fn take_due(&mut self, now_ms: i64) -> Vec<Owner> {
        let mut due = Vec::new();
        while self.next_ms().is_some_and(|at_ms| at_ms <= now_ms) {
            due.extend(self.0.pop_first().map(|(_, owner)| owner));
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::Timers;

    /// A blocked call that was served left its timer behind until its deadline came, and one more
    /// for each second that it had waited: 150,000 calls with long timeouts cost 6 MB.
    #[test]
    fn a_connection_has_one_timer_at_most() {
        let mut timers = Timers::default();
        let mut was = None;
        for deadline in 1_000_000..1_001_000 {
            // Twice for each call: a look that changes nothing, then the end of the wait.
            for at in [Some(deadline), Some(deadline), None] {
                timers.set((7, 1), was, at);
                was = at;
                assert_eq!(timers.0.len(), usize::from(at.is_some()));
            }
        }
        assert_eq!(timers.next_ms(), None);
    }

    #[test]
    fn those_that_are_due_come_in_order() {
        let mut timers = Timers::default();
        timers.set((1, 0), None, Some(30));
        timers.set((2, 0), None, Some(10));
        timers.set((3, 0), None, Some(20));
        timers.set((3, 0), Some(20), Some(40));
        assert_eq!(timers.next_ms(), Some(10));
        assert_eq!(timers.take_due(30), [(2, 0), (1, 0)]);
        // Its connection was out when it went off.
        timers.set((1, 0), Some(30), Some(30));
        assert_eq!(timers.take_due(30), [(1, 0)]);
        assert_eq!(timers.take_due(100), [(3, 0)]);
    }
}
