//! Limits within this process: the one before the store is asked, and the share of a limit that a
//! process has while the store can't be reached. Buckets by the monotonic clock, bounded in number.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

/// Subjects that are known at the same time.
const SUBJECTS_MAX: usize = 10_000;

/// Buckets of one size, by subject.
#[derive(Debug)]
pub(super) struct LocalBuckets {
    burst: f64,
    /// Seconds per token.
    interval: f64,
    /// When each bucket is full again, in seconds of the kit's clock. Full ones are not kept.
    full_at: Mutex<HashMap<Vec<u8>, f64>>,
}

impl LocalBuckets {
    /// `max` tokens per window, no less than one at a time.
    pub fn new(max: f64, burst: f64, window: Duration) -> Self {
        let (burst, interval) = (burst.max(1.0), window.as_secs_f64() / max);
        LocalBuckets { burst, interval, full_at: Mutex::default() }
    }

    /// Takes tokens, or says how long until they are there. A cost above the burst empties a full
    /// bucket: otherwise it would be denied for ever. None: so many subjects are known that nothing
    /// is known of this one.
    pub fn take(&self, subject: &[u8], cost: u64, now: Duration) -> Option<Result<(), Duration>> {
        let now = now.as_secs_f64();
        let cost = (cost as f64).min(self.burst);
        let mut full_at = self.full_at.lock().unwrap_or_else(|poison| poison.into_inner());
        if full_at.len() >= SUBJECTS_MAX && !full_at.contains_key(subject) {
            full_at.retain(|_subject, full_at| *full_at > now);
            if full_at.len() >= SUBJECTS_MAX {
                return None;
            }
        }
        let known = full_at.get(subject).copied().unwrap_or(now).max(now);
        let over = known - now + (cost - self.burst) * self.interval;
        // Sums of intervals are rounded.
        if over > self.interval / 100.0 {
            return Some(Err(Duration::from_secs_f64(over)));
        }
        full_at.insert(subject.to_vec(), known + cost * self.interval);
        Some(Ok(()))
    }

    /// Puts tokens back.
    pub fn give_back(&self, subject: &[u8], cost: u64) {
        let mut full_at = self.full_at.lock().unwrap_or_else(|poison| poison.into_inner());
        if let Some(full_at) = full_at.get_mut(subject) {
            *full_at -= (cost as f64).min(self.burst) * self.interval;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_bucket_empties_and_fills() {
        let buckets = LocalBuckets::new(3.0, 3.0, SECOND);
        let taken =
            (0..10).filter(|_| buckets.take(b"a", 1, SECOND).is_some_and(|it| it.is_ok())).count();
        assert_eq!(taken, 3);
        assert!(matches!(buckets.take(b"b", 1, SECOND), Some(Ok(()))));
        let wait = buckets.take(b"a", 1, SECOND).unwrap().unwrap_err();
        assert!(matches!(buckets.take(b"a", 1, SECOND + wait), Some(Ok(()))));
        buckets.give_back(b"a", 1);
        assert!(matches!(buckets.take(b"a", 1, SECOND + wait), Some(Ok(()))));
    }

    #[test]
    fn subjects_are_bounded() {
        let buckets = LocalBuckets::new(1.0, 1.0, SECOND);
        for subject in 0..SUBJECTS_MAX {
            assert!(buckets.take(&subject.to_ne_bytes(), 1, SECOND).is_some());
        }
        assert!(buckets.take(b"one more", 1, SECOND).is_none());
        // They are full again by now, and forgotten.
        assert!(buckets.take(b"one more", 1, 3 * SECOND).is_some());
    }
}
