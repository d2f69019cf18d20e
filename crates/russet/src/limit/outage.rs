//! What a limiter does while the store can't be reached, and how it notices.

use super::local::LocalBuckets;
use super::rule::Limit;
use crate::error::{Error, Result};
use crate::key::Key;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

/// What is decided while the store can't be reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outage {
    /// Nothing is allowed: for what must never happen too often, such as guessing passwords.
    Deny,
    /// Everything is allowed: for what is limited out of politeness.
    Allow,
    /// Each process allows its share of each limit by itself, as a bucket that is full at first.
    LocalShare {
        /// How many processes there are.
        processes: u32,
    },
}

/// When to come back if nothing better is known.
const RETRY_AFTER: Duration = Duration::from_secs(1);

impl Outage {
    /// The buckets that it needs, one per limit.
    pub(super) fn shares(self, limits: &[Limit]) -> Result<Vec<LocalBuckets>> {
        let Outage::LocalShare { processes } = self else {
            return Ok(Vec::new());
        };
        if processes == 0 {
            return Err(Error::invalid("a share is that of one process or more"));
        }
        let share = |limit: &Limit| {
            let of = |number: u64| number as f64 / f64::from(processes);
            LocalBuckets::new(of(limit.max()), of(limit.cost_max()), limit.length())
        };
        Ok(limits.iter().map(share).collect())
    }

    /// Decides; a refusal says when to come back.
    pub(super) fn decide(
        self,
        shares: &[LocalBuckets],
        each: &[Key],
        (cost, now): (u64, Duration),
    ) -> Result<(), Duration> {
        match self {
            Outage::Deny => Err(RETRY_AFTER),
            Outage::Allow => Ok(()),
            Outage::LocalShare { .. } => {
                for (index, (share, key)) in shares.iter().zip(each).enumerate() {
                    let taken = share.take(key.as_bytes(), cost, now);
                    let Err(wait) = taken.unwrap_or(Err(RETRY_AFTER)) else {
                        continue;
                    };
                    // All or nothing, here too.
                    let before = shares.iter().zip(each).take(index);
                    before.for_each(|(share, key)| share.give_back(key.as_bytes(), cost));
                    return Err(wait);
                }
                Ok(())
            }
        }
    }
}

/// After this much failure the store is not asked for a while.
const FAILURES_MAX: u32 = 3;
/// That while. One call after it finds out whether the store is back.
const PAUSE: Duration = Duration::from_millis(250);

/// Whether the store is asked at all: during an outage not every request should wait for it.
#[derive(Debug, Default)]
pub(super) struct Circuit {
    failures: AtomicU32,
    /// When the store is asked again, in microseconds of the kit's clock.
    asks_at: AtomicU64,
}

impl Circuit {
    pub fn asks(&self, now: Duration) -> bool {
        if self.failures.load(Ordering::Relaxed) < FAILURES_MAX {
            return true;
        }
        let asks_at = self.asks_at.load(Ordering::Relaxed);
        // Of all who come after the pause one asks.
        let later = micros(now + PAUSE);
        let (ok, fail) = (Ordering::Relaxed, Ordering::Relaxed);
        micros(now) >= asks_at && self.asks_at.compare_exchange(asks_at, later, ok, fail).is_ok()
    }

    /// What came of asking. A call that surely was not run shows an outage by itself; one whose
    /// reply is missing may have been unlucky.
    pub fn heard<T>(&self, result: &Result<T>, now: impl FnOnce() -> Duration) {
        let weight = match result {
            Err(Error::Unavailable(_)) => FAILURES_MAX,
            Err(Error::Unknown(_)) => 1,
            _ => {
                if self.failures.load(Ordering::Relaxed) > 0 {
                    self.failures.store(0, Ordering::Relaxed);
                }
                return;
            }
        };
        self.asks_at.store(micros(now() + PAUSE), Ordering::Relaxed);
        let add = |failures: u32| Some(failures.saturating_add(weight));
        let _ = self.failures.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
    }
}

fn micros(span: Duration) -> u64 {
    u64::try_from(span.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_call_per_pause_asks_during_an_outage() {
        let circuit = Circuit::default();
        let second = Duration::from_secs(1);
        assert!(circuit.asks(second));
        circuit.heard(&Err::<(), _>(Error::Unknown("".into())), || second);
        assert!(circuit.asks(second), "one lost reply is no outage");
        circuit.heard(&Err::<(), _>(Error::Unavailable("".into())), || second);
        assert!(!circuit.asks(second));
        assert!(circuit.asks(second + PAUSE));
        assert!(!circuit.asks(second + PAUSE), "the first one is asking");
        circuit.heard(&Ok(()), || second + PAUSE);
        assert!(circuit.asks(second + PAUSE));
    }
}
