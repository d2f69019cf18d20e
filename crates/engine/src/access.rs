//! The 24 bits of each entry that say how it is used: when last, in seconds; or, while keys are
//! judged by how often they are used (LFU), a counter and the minute when it was last looked at.
//!
//! The counter is logarithmic: the higher it is, the less likely a use raises it. It goes down with
//! the time that passes without one.

use crate::keyspace::Keyspace;
use russet_base::clock::UnixMillis;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

pub const ACCESS_MASK: u32 = 0x00ff_ffff;
/// What a new key is counted as, so that it is not the first to go.
const NEW_COUNT: u8 = 5;
const COUNT_BITS: u32 = 8;
const MINUTE_MASK: u32 = 0xffff;
/// Set in a clock that counts, and in no entry.
const COUNTING: u32 = 1 << 31;

/// How uses are kept.
#[derive(Debug, Default)]
pub(crate) struct AccessPolicy {
    is_counting: AtomicBool,
    /// Only changes are uses.
    ignores_reads: AtomicBool,
    log_factor: AtomicU32,
    decay_minutes: AtomicU32,
}

/// How the counter of uses goes up and down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CounterPace {
    /// How slowly it grows.
    pub log_factor: u32,
    /// Minutes without a use that take one off; 0: it stays.
    pub decay_minutes: u32,
}

/// What files and RESTORE say of a key's use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotedUse {
    /// How long it has not been used.
    IdleSeconds(u64),
    /// The counter of its uses.
    Count(u8),
}

/// The moment of a command, in the terms that entries are stamped with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccessClock(u32);

impl AccessClock {
    fn seconds(now: UnixMillis) -> Self {
        AccessClock((now.0 / 1000) as u32 & ACCESS_MASK)
    }

    fn counting(now: UnixMillis) -> Self {
        AccessClock((now.0 / 60_000) as u32 & MINUTE_MASK | COUNTING)
    }

    /// Whether an entry that was used before needs no new stamp.
    #[inline]
    pub(crate) fn is_stamped(self, access: u32) -> bool {
        self.0 == access
    }

    /// The stamp of a key that is made now.
    #[inline]
    pub(crate) fn new_stamp(self) -> u32 {
        if self.0 & COUNTING == 0 { self.0 } else { pack(self.0, NEW_COUNT) }
    }
}

fn pack(minute: u32, count: u8) -> u32 {
    (minute & MINUTE_MASK) << COUNT_BITS | u32::from(count)
}

/// The counter of an entry, less what the time since its last use took off.
fn decayed(access: u32, minute: u32, decay_minutes: u32) -> u8 {
    let count = access as u8;
    // The minutes wrap after six weeks.
    let elapsed = (minute & MINUTE_MASK).wrapping_sub(access >> COUNT_BITS) & MINUTE_MASK;
    let periods = elapsed.checked_div(decay_minutes).unwrap_or(0);
    count.saturating_sub(u8::try_from(periods).unwrap_or(u8::MAX))
}

/// The counter after one more use; `random` is a number of any size.
fn raised(count: u8, log_factor: u32, random: u64) -> u8 {
    let above = u64::from(count.saturating_sub(NEW_COUNT));
    let one_in = above * u64::from(log_factor) + 1;
    let is_raised = (u128::from(random) * u128::from(one_in)) >> 64 == 0;
    count.saturating_add(u8::from(is_raised))
}

impl Keyspace {
    /// Uses are counted from now on, or their times are noted. What entries have is taken for the
    /// other thing until they are used again.
    pub fn count_uses(&self, is_counting: bool) {
        self.access.is_counting.store(is_counting, Ordering::Relaxed);
    }

    /// Only changes count as uses from now on, or reads do as well.
    pub fn ignore_reads(&self, is_ignored: bool) {
        self.access.ignores_reads.store(is_ignored, Ordering::Relaxed);
    }

    pub(crate) fn ignores_reads(&self) -> bool {
        self.access.ignores_reads.load(Ordering::Relaxed)
    }

    pub fn set_counter_pace(&self, pace: CounterPace) {
        self.access.log_factor.store(pace.log_factor, Ordering::Relaxed);
        self.access.decay_minutes.store(pace.decay_minutes, Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn access_clock(&self, now: UnixMillis) -> AccessClock {
        match self.access.is_counting.load(Ordering::Relaxed) {
            false => AccessClock::seconds(now),
            true => AccessClock::counting(now),
        }
    }

    /// The stamp of a key that is used now and had another before.
    #[inline]
    pub(crate) fn next_stamp(&self, clock: AccessClock, before: u32) -> u32 {
        if clock.0 & COUNTING == 0 { clock.0 } else { self.count_use(clock, before) }
    }

    #[cold]
    fn count_use(&self, clock: AccessClock, before: u32) -> u32 {
        let count = decayed(before, clock.0, self.access.decay_minutes.load(Ordering::Relaxed));
        let log_factor = self.access.log_factor.load(Ordering::Relaxed);
        pack(clock.0, raised(count, log_factor, self.draw_u64()))
    }

    /// Whether uses are counted, and not their times noted.
    pub fn is_counting_uses(&self) -> bool {
        self.access.is_counting.load(Ordering::Relaxed)
    }

    /// The stamp of a key that is loaded with what was noted of its use; `None` if that is not what
    /// is noted now.
    pub fn stamp_of(&self, noted: NotedUse, now: UnixMillis) -> Option<u32> {
        match noted {
            NotedUse::Count(count) if self.is_counting_uses() => {
                Some(pack(AccessClock::counting(now).0, count))
            }
            NotedUse::IdleSeconds(idle) if !self.is_counting_uses() => {
                let idle = u32::try_from(idle).unwrap_or(ACCESS_MASK).min(ACCESS_MASK);
                Some(AccessClock::seconds(now).0.wrapping_sub(idle) & ACCESS_MASK)
            }
            _ => None,
        }
    }

    /// How often a key was used lately, from what its entry says: OBJECT FREQ.
    pub fn use_count(&self, access: u32, now: UnixMillis) -> u8 {
        let minute = AccessClock::counting(now).0;
        decayed(access, minute, self.access.decay_minutes.load(Ordering::Relaxed))
    }

    /// The higher, the less a key is used: by its counter, and of equal ones those first that were
    /// not used for longer.
    pub(crate) fn rank_by_count(&self, access: u32, now: UnixMillis) -> u64 {
        let minute = AccessClock::counting(now).0 & MINUTE_MASK;
        let idle_minutes = minute.wrapping_sub(access >> COUNT_BITS) & MINUTE_MASK;
        let rarity = u8::MAX - self.use_count(access, now);
        u64::from(rarity) << u32::BITS | u64::from(idle_minutes)
    }
}

/// Seconds since a key was used, from what its entry says: OBJECT IDLETIME. The clock has 24 bits,
/// and wraps.
pub fn idle_seconds(access: u32, now: UnixMillis) -> u32 {
    AccessClock::seconds(now).0.wrapping_sub(access) & ACCESS_MASK
}

/// The moment when a key was used last, in seconds since the epoch.
#[inline]
pub(crate) fn last_used_seconds(access: u32, now: UnixMillis) -> u64 {
    let seconds = u64::try_from(now.0 / 1000).unwrap_or(0);
    seconds.saturating_sub(u64::from(idle_seconds(access, now)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_time_wraps_with_the_clock() {
        let now = UnixMillis(((1 << 24) + 5) * 1000);
        assert_eq!(idle_seconds(2, now), 3);
        assert_eq!(idle_seconds(ACCESS_MASK, now), 6);
    }

    #[test]
    fn the_counter_grows_more_slowly_the_higher_it_is() {
        assert_eq!(raised(5, 10, u64::MAX), 6);
        assert_eq!(raised(6, 10, u64::MAX), 6);
        assert_eq!(raised(6, 10, u64::MAX / 12), 7);
        assert_eq!(raised(6, 10, u64::MAX / 10), 6);
        assert_eq!(raised(200, 0, u64::MAX), 201);
        assert_eq!(raised(255, 0, 0), 255);
        assert_eq!(raised(255, u32::MAX, u64::MAX), 255);
    }

    #[test]
    fn the_counter_decays_with_the_minutes() {
        let access = pack(100, 9);
        assert_eq!(decayed(access, 100, 1), 9);
        assert_eq!(decayed(access, 104, 1), 5);
        assert_eq!(decayed(access, 104, 2), 7);
        assert_eq!(decayed(access, 5000, 1), 0);
        assert_eq!(decayed(access, 5000, 0), 9);
        assert_eq!(decayed(pack(MINUTE_MASK, 9), 2, 1), 6);
    }
}
