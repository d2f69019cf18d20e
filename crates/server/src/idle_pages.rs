//! When the allocator is asked to give idle pages back to the system: soon after a large call has
//! ended, and seldom while the load uses them again and again. How it is asked is up to `host`.

/// The allocator is looked at once in so many turns of housekeeping, which is every half second.
const TURNS_PER_LOOK: u32 = 5;
/// Idle pages up to here stay for the next call.
const IDLE_BYTES_MAX: u64 = 8 * 1024 * 1024;
/// More than that at so many looks one after the other is given back.
const LOOKS_MIN: u32 = 2;
/// As many looks as the wait may grow to, which is four seconds: by then the allocator's own
/// decay has begun.
const LOOKS_MAX: u32 = 8;

pub struct IdlePages {
    turns: u32,
    /// Looks one after the other that found too much, and that found little.
    looks_over: u32,
    looks_under: u32,
    /// Looks to wait for before the next purge.
    wait: u32,
}

impl IdlePages {
    pub fn new() -> IdlePages {
        IdlePages { turns: 0, looks_over: 0, looks_under: 0, wait: LOOKS_MIN }
    }

    /// For each turn of housekeeping: whether to give the idle pages back now. `idle_bytes` is
    /// asked only when it is time to look.
    pub fn turn(&mut self, idle_bytes: impl FnOnce() -> u64) -> bool {
        self.turns += 1;
        if self.turns < TURNS_PER_LOOK {
            return false;
        }
        self.turns = 0;
        self.look(idle_bytes())
    }

    /// Pages that become idle again soon after a purge are needed, and were given back for
    /// nothing: the next purge waits twice as long, until nobody needs them for that time.
    fn look(&mut self, idle_bytes: u64) -> bool {
        if idle_bytes <= IDLE_BYTES_MAX {
            self.looks_over = 0;
            self.looks_under = (self.looks_under + 1).min(LOOKS_MAX);
            if self.looks_under >= self.wait {
                self.wait = LOOKS_MIN;
            }
            return false;
        }
        self.looks_under = 0;
        self.looks_over += 1;
        if self.looks_over < self.wait {
            return false;
        }
        self.looks_over = 0;
        self.wait = (self.wait * 2).min(LOOKS_MAX);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MUCH: u64 = IDLE_BYTES_MAX + 1;

    /// The number of looks until a purge, if each finds this much.
    fn looks_until_purge(pages: &mut IdlePages) -> u32 {
        (1..=100).find(|_| pages.look(MUCH)).unwrap()
    }

    #[test]
    fn what_one_call_leaves_goes_back_at_once() {
        let mut pages = IdlePages::new();
        for _ in 0..3 {
            assert_eq!(looks_until_purge(&mut pages), LOOKS_MIN);
            assert!((0..LOOKS_MAX).all(|_| !pages.look(IDLE_BYTES_MAX)));
        }
        let asked = (0..2 * TURNS_PER_LOOK).filter(|_| pages.turn(|| MUCH)).count();
        assert_eq!(asked, 1);
    }

    #[test]
    fn what_the_load_uses_again_stays() {
        let mut pages = IdlePages::new();
        // Used at every second look.
        assert!((0..100).all(|at| !pages.look(if at % 2 == 0 { MUCH } else { 0 })));
        // Idle again after each purge.
        let waits: Vec<u32> = (0..6).map(|_| looks_until_purge(&mut pages)).collect();
        assert_eq!(waits, [2, 4, 8, 8, 8, 8]);
        // Not needed for as long as the last wait.
        assert!((0..LOOKS_MAX).all(|_| !pages.look(0)));
        assert_eq!(looks_until_purge(&mut pages), LOOKS_MIN);
    }
}
