//! For how long a lease is taken.

use crate::error::{Error, Result};
use std::time::Duration;

/// Below this a lease is over before the holder has read the reply.
const TTL_MIN: Duration = Duration::from_millis(10);
/// A crashed holder blocks the others for as long as this.
const TTL_MAX: Duration = Duration::from_secs(24 * 60 * 60);
/// No holder is kept alive for longer.
const HOLD_MAX: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// How long the last fencing number is remembered: it matters if the clock of the server steps
/// back.
const MEMORY: Duration = Duration::from_secs(600);
/// How much faster than ours the server's clock may go: one part in this.
const DRIFT_DIVISOR: u32 = 100;
/// What the rounding to milliseconds may cost.
const DRIFT_MIN: Duration = Duration::from_millis(2);

/// For how long a lease is taken, and whether it is renewed. A [`Duration`] alone is a time
/// without renewal.
///
/// ```
/// use russet::lease::Terms;
/// use std::time::Duration;
///
/// // Free ten seconds after a crash; renewed meanwhile, for an hour at most.
/// let terms = Terms::new(Duration::from_secs(10)).keep_alive(Duration::from_secs(3600));
/// # let _ = terms;
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    pub(super) ttl: Duration,
    pub(super) hold_max: Option<Duration>,
    pub(super) memory: Duration,
}

impl Terms {
    /// A lease that is free this long after it was taken or renewed: 10 milliseconds to a day.
    pub fn new(ttl: Duration) -> Self {
        Terms { ttl, hold_max: None, memory: MEMORY }
    }

    /// The guard renews it in the background, three times within its TTL, but not beyond
    /// `hold_max`: a holder that hangs does not block the others for ever.
    pub fn keep_alive(mut self, hold_max: Duration) -> Self {
        self.hold_max = Some(hold_max);
        self
    }

    /// How long the last fencing number is remembered after the lease; 10 minutes by default.
    pub fn fence_memory(mut self, memory: Duration) -> Self {
        self.memory = memory;
        self
    }

    pub(super) fn checked(self) -> Result<Self> {
        if self.ttl < TTL_MIN || self.ttl > TTL_MAX {
            return Err(Error::invalid(format!("ttl must be between {TTL_MIN:?} and {TTL_MAX:?}")));
        }
        if self.hold_max.is_some_and(|most| most < self.ttl || most > HOLD_MAX) {
            return Err(Error::invalid(format!("hold_max must be between ttl and {HOLD_MAX:?}")));
        }
        if self.memory < TTL_MIN || self.memory > TTL_MAX {
            let bounds = format!("fence_memory must be between {TTL_MIN:?} and {TTL_MAX:?}");
            return Err(Error::Invalid(bounds));
        }
        Ok(self)
    }

    /// How much of the TTL a holder can count on, by its own clock.
    pub(super) fn safe_ttl(&self) -> Duration {
        self.ttl.saturating_sub(self.ttl / DRIFT_DIVISOR + DRIFT_MIN)
    }
}

impl From<Duration> for Terms {
    fn from(ttl: Duration) -> Self {
        Terms::new(ttl)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_have_bounds() {
        let second = Duration::from_secs(1);
        assert!(Terms::new(second).checked().is_ok());
        assert!(Terms::new(Duration::ZERO).checked().is_err());
        assert!(Terms::new(TTL_MAX + second).checked().is_err());
        assert!(Terms::new(second).keep_alive(second / 2).checked().is_err());
        assert!(Terms::new(second).keep_alive(HOLD_MAX + second).checked().is_err());
        assert!(Terms::new(second).fence_memory(Duration::ZERO).checked().is_err());
    }

    #[test]
    fn a_holder_counts_on_less_than_the_ttl() {
        assert_eq!(Terms::new(Duration::from_secs(1)).safe_ttl(), Duration::from_millis(988));
        assert!(Terms::new(TTL_MIN).safe_ttl() > Duration::ZERO);
    }
}
