//! When a rewrite of the log that nobody asked for may be tried again after one that failed.

use russet_base::UnixMillis;

/// How long it waits after the first failure, and at most: it doubles with each.
const WAIT_MS: i64 = 60_000;
const WAIT_MS_MAX: i64 = 3_600_000;
/// How long it waits for one that can't be put off.
const WAIT_MS_MIN: i64 = 1000;

/// The tries since the last that succeeded.
#[derive(Debug, Default)]
pub(super) struct Retry {
    last: Option<UnixMillis>,
    wait_ms: i64,
}

impl Retry {
    /// Whether to try now; then the try is noted. `is_bad` says that the last one failed.
    pub fn may_try(&mut self, now: UnixMillis, is_bad: bool) -> bool {
        match self.last.filter(|_| is_bad) {
            None => self.wait_ms = WAIT_MS,
            // A clock that was set back makes nobody wait longer.
            Some(last) if (0..self.wait_ms).contains(&now.0.saturating_sub(last.0)) => {
                return false;
            }
            Some(_) => self.wait_ms = (self.wait_ms * 2).min(WAIT_MS_MAX),
        }
        self.last = Some(now);
        true
    }

    /// The same for one that clients may wait for.
    pub fn may_try_soon(&mut self, now: UnixMillis) -> bool {
        let is_new = |last: UnixMillis| (0..WAIT_MS_MIN).contains(&now.0.saturating_sub(last.0));
        let may_try = !self.last.is_some_and(is_new);
        if may_try {
            self.last = Some(now);
        }
        may_try
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A rewrite that failed was begun again ten times in a second, and each time took all locks.
    #[test]
    fn a_rewrite_that_fails_is_tried_again_less_and_less_often() {
        let mut retry = Retry::default();
        let seconds: Vec<i64> = (0..4 * 3600)
            .filter(|second| retry.may_try(UnixMillis(second * 1000), *second > 0))
            .collect();
        let minutes: Vec<i64> = seconds.iter().map(|second| second / 60).collect();
        assert_eq!(minutes, [0, 1, 3, 7, 15, 31, 63, 123, 183]);
        let later = UnixMillis(4 * WAIT_MS_MAX);
        assert!(retry.may_try(later, false), "the last one succeeded");
        assert!(!retry.may_try(UnixMillis(later.0 + WAIT_MS - 1), true));
        assert!(retry.may_try(UnixMillis(later.0 + WAIT_MS), true));
        assert!(retry.may_try(later, true), "the clock was set back");
    }

    #[test]
    fn a_rewrite_that_clients_wait_for_is_tried_every_second() {
        let mut retry = Retry::default();
        let tries: Vec<i64> =
            (0..3000).step_by(100).filter(|ms| retry.may_try_soon(UnixMillis(*ms))).collect();
        assert_eq!(tries, [0, 1000, 2000]);
    }

    #[test]
    fn rewrites_that_succeed_wait_for_nothing() {
        let mut retry = Retry::default();
        assert!((0..10).all(|ms| retry.may_try(UnixMillis(ms), false)));
    }
}
