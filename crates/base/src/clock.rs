//! Time, handed in rather than read: code that takes a `Clock` can be run at any speed by a test.

use std::fmt;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// A moment as milliseconds since 1970. Its arithmetic saturates: an expiry far beyond the end
/// of the range means "never", it doesn't wrap into the past.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UnixMillis(pub i64);

impl UnixMillis {
    pub const EPOCH: UnixMillis = UnixMillis(0);
    pub const MAX: UnixMillis = UnixMillis(i64::MAX);

    /// `None` where the exact sum would not fit: commands refuse such an expiry.
    pub const fn checked_plus_ms(self, ms: i64) -> Option<UnixMillis> {
        match self.0.checked_add(ms) {
            Some(sum) => Some(UnixMillis(sum)),
            None => None,
        }
    }

    /// Milliseconds from `earlier` to this moment; negative if it lies before.
    pub const fn ms_since(self, earlier: UnixMillis) -> i64 {
        self.0.saturating_sub(earlier.0)
    }

    /// Whole seconds, rounded down.
    pub const fn seconds(self) -> i64 {
        self.0.div_euclid(1000)
    }
}

impl fmt::Display for UnixMillis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

pub trait Clock: Send + Sync {
    fn now(&self) -> UnixMillis {
        UnixMillis(self.now_micros().div_euclid(1000))
    }

    /// The wall clock: microseconds since 1970. It can jump.
    fn now_micros(&self) -> i64;

    /// Microseconds since some fixed moment of the past. It never goes back.
    fn monotonic_micros(&self) -> u64;
}

/// The machine's clock.
#[derive(Clone, Copy, Debug)]
pub struct SystemClock {
    started: Instant,
}

impl SystemClock {
    pub fn new() -> Self {
        SystemClock { started: Instant::now() }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        SystemClock::new()
    }
}

impl Clock for SystemClock {
    fn now_micros(&self) -> i64 {
        match SystemTime::now().duration_since(UNIX_EPOCH) {
            Ok(since) => micros_saturated(since),
            Err(before) => -micros_saturated(before.duration()),
        }
    }

    fn monotonic_micros(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_micros()).unwrap_or(u64::MAX)
    }
}

fn micros_saturated(span: Duration) -> i64 {
    i64::try_from(span.as_micros()).unwrap_or(i64::MAX)
}

/// A clock that stands still until it is set.
#[derive(Debug)]
pub struct ManualClock {
    wall_micros: AtomicI64,
    /// Apart from the wall clock, so that a test can let the wall clock jump back.
    monotonic_micros: AtomicI64,
}

impl ManualClock {
    pub fn at(now: UnixMillis) -> Self {
        ManualClock {
            wall_micros: AtomicI64::new(now.0.saturating_mul(1000)),
            monotonic_micros: AtomicI64::new(0),
        }
    }

    /// Both clocks move on by `span`.
    pub fn advance(&self, span: Duration) {
        let micros = micros_saturated(span);
        for clock in [&self.wall_micros, &self.monotonic_micros] {
            let moved = |old: i64| Some(old.saturating_add(micros));
            // The closure never refuses, so the update can't fail.
            let _ = clock.fetch_update(Ordering::AcqRel, Ordering::Acquire, moved);
        }
    }

    pub fn advance_ms(&self, ms: u64) {
        self.advance(Duration::from_millis(ms));
    }

    /// Sets the wall clock, to the past if wished. The monotonic clock does not move.
    pub fn set(&self, now: UnixMillis) {
        self.wall_micros.store(now.0.saturating_mul(1000), Ordering::Release);
    }
}

impl Clock for ManualClock {
    fn now_micros(&self) -> i64 {
        self.wall_micros.load(Ordering::Acquire)
    }

    fn monotonic_micros(&self) -> u64 {
        // Starts at zero and only ever grows.
        self.monotonic_micros.load(Ordering::Acquire).unsigned_abs()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_saturates() {
        assert_eq!(UnixMillis::MAX.checked_plus_ms(1), None);
        assert_eq!(UnixMillis(5).checked_plus_ms(-7), Some(UnixMillis(-2)));
        assert_eq!(UnixMillis::MAX.ms_since(UnixMillis(-1)), i64::MAX);
        assert_eq!(UnixMillis(-1).seconds(), -1);
        assert_eq!(UnixMillis(1999).seconds(), 1);
    }

    #[test]
    fn manual_clock_moves_only_when_set() {
        let clock = ManualClock::at(UnixMillis(1_000));
        assert_eq!((clock.now(), clock.monotonic_micros()), (UnixMillis(1_000), 0));
        clock.advance(Duration::from_micros(2_500));
        assert_eq!((clock.now_micros(), clock.monotonic_micros()), (1_002_500, 2_500));
        assert_eq!(clock.now(), UnixMillis(1_002));
        clock.set(UnixMillis(7));
        assert_eq!((clock.now(), clock.monotonic_micros()), (UnixMillis(7), 2_500));
        clock.advance(Duration::MAX);
        clock.advance(Duration::MAX);
        assert_eq!(clock.now_micros(), i64::MAX);
    }

    #[test]
    fn system_clock_is_past_2020_and_never_goes_back() {
        let clock = SystemClock::new();
        assert!(clock.now() > UnixMillis(1_577_836_800_000));
        let first = clock.monotonic_micros();
        assert!(clock.monotonic_micros() >= first);
    }
}
