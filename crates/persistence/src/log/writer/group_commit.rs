//! With `always`: when a sync is put off for a moment, because clients that were answered a moment
//! ago are about to send their next calls, which it can then cover as well. Otherwise half of the
//! clients would wait for one sync while the other half's is under way.

use russet_engine::journal::{DeferredCount, Journal};
use std::time::{Duration, Instant};

/// A sync is put off for no longer than one takes, divided by this, and never longer than the
/// second.
const SYNC_SHARE: u32 = 2;
const WAIT_MAX: Duration = Duration::from_millis(2);
/// Behind a sync that takes less, nobody is waited for: the next one is soon, and clients that take
/// turns use the processor while the disk works. `russet-bench log` without a delay, on a busy
/// machine: 44 calls per sync came to 0.61 of Valkey's throughput, 20 per sync to 1.7.
const SYNC_TIME_MIN: Duration = Duration::from_millis(1);
/// After a wait in vain so many syncs begin at once, then twice as many each time, up to the
/// second.
const SKIPS_FIRST: u32 = 2;
const SKIPS_MAX: u32 = 256;
/// Syncs over which their time is averaged.
const SYNCS_AVERAGED: u32 = 8;

/// How many are worth waiting for, and how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Wait {
    waiters: usize,
    time: Duration,
}

#[derive(Debug, Default)]
pub(super) struct GroupCommit {
    /// How long syncs have taken.
    sync_time: Duration,
    /// How many were answered until the last sync; None before the first.
    released: Option<u64>,
    /// How many the next sync could serve: those who were answered after the last one, and those
    /// who had come while it was under way.
    expected: usize,
    /// How many syncs begin at once, and how many after the next wait in vain.
    skips_left: u32,
    skips_next: u32,
}

impl GroupCommit {
    /// Before a sync.
    pub fn await_others(&mut self, journal: &Journal) {
        // A lone client is not asked for: it waits by now, or will in a moment.
        if self.expected < 2 {
            return;
        }
        let before = journal.deferred_count().waiting;
        if let Some(Wait { waiters, time }) = self.wait(before) {
            let after = journal.await_deferred(waiters, Instant::now() + time);
            self.waited(before, after);
        }
    }

    /// Whether to wait when so many wait for the sync.
    fn wait(&mut self, waiting: usize) -> Option<Wait> {
        let is_short = self.sync_time < SYNC_TIME_MIN;
        if is_short || self.expected < 2 || waiting >= self.expected {
            return None;
        }
        if self.skips_left > 0 {
            self.skips_left -= 1;
            return None;
        }
        let time = (self.sync_time / SYNC_SHARE).min(WAIT_MAX);
        Some(Wait { waiters: self.expected, time })
    }

    /// How many waited for the sync before and after it was put off.
    fn waited(&mut self, before: usize, after: usize) {
        let missing = self.expected.saturating_sub(before);
        let come = after.saturating_sub(before);
        if come * 2 < missing {
            self.skips_left = self.skips_next.max(SKIPS_FIRST);
            self.skips_next = (self.skips_left * 2).min(SKIPS_MAX);
        } else {
            self.skips_next = 0;
        }
    }

    /// After a sync, when those were answered who have waited for it.
    pub fn synced(&mut self, time: Duration, DeferredCount { waiting, released }: DeferredCount) {
        self.sync_time = match self.sync_time {
            Duration::ZERO => time,
            average => (average * (SYNCS_AVERAGED - 1) + time) / SYNCS_AVERAGED,
        };
        let before = self.released.replace(released).unwrap_or(released);
        self.expected = (released - before) as usize + waiting;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SYNC: Duration = Duration::from_millis(3);

    fn after_sync(released: u64, waiting: usize) -> GroupCommit {
        let mut group = GroupCommit { released: Some(0), ..GroupCommit::default() };
        group.synced(SYNC, DeferredCount { waiting, released });
        group
    }

    #[test]
    fn a_lone_client_is_never_delayed() {
        let mut first = GroupCommit::default();
        assert_eq!(first.wait(0), None, "nothing was synced yet");
        // Of another log, or while nobody had to wait.
        first.synced(SYNC, DeferredCount { waiting: 1, released: 1000 });
        assert_eq!(first.wait(0), None);
        let mut alone = after_sync(1, 0);
        assert_eq!((alone.wait(0), alone.wait(1)), (None, None));
    }

    /// Of 50 clients 25 were served by each sync, since the others came while it was under way.
    #[test]
    fn those_who_were_just_answered_are_waited_for() {
        let mut group = after_sync(25, 25);
        let wait = group.wait(25);
        assert_eq!(wait, Some(Wait { waiters: 50, time: SYNC / SYNC_SHARE }));
        assert_eq!(group.wait(50), None, "all of them are there");
        group.synced(SYNC, DeferredCount { waiting: 0, released: 75 });
        assert_eq!(group.expected, 50);
    }

    /// On a fast disk fewer calls were served so.
    #[test]
    fn a_short_sync_is_not_put_off() {
        let mut group = GroupCommit { released: Some(0), ..GroupCommit::default() };
        group.synced(SYNC_TIME_MIN / 2, DeferredCount { waiting: 25, released: 25 });
        assert_eq!(group.wait(25), None);
    }

    #[test]
    fn a_slow_disk_delays_nobody_for_long() {
        let mut group = GroupCommit { released: Some(0), ..GroupCommit::default() };
        group.synced(Duration::from_secs(3), DeferredCount { waiting: 0, released: 2 });
        assert_eq!(group.wait(1), Some(Wait { waiters: 2, time: WAIT_MAX }));
    }

    #[test]
    fn who_does_not_come_is_waited_for_more_and_more_rarely() {
        let mut group = after_sync(10, 0);
        let mut syncs_at_once = Vec::new();
        for _ in 0..10 {
            assert!(group.wait(1).is_some());
            group.waited(1, 2);
            let skips = group.skips_left;
            (0..skips).for_each(|_| assert_eq!(group.wait(1), None));
            syncs_at_once.push(skips);
        }
        assert_eq!(syncs_at_once, [2, 4, 8, 16, 32, 64, 128, 256, 256, 256]);
        assert!(group.wait(1).is_some());
        group.waited(1, 9);
        assert!(group.wait(1).is_some(), "they come again");
    }
}
