//! One limit: how it counts, how much, over how long.

use crate::error::{Error, Result};
use crate::step::{Class, StepCall};
use std::time::Duration;

/// The longest name of a limit or a limiter.
const NAME_BYTES_MAX: usize = 32;
/// The longest window: about thirty years.
const WINDOW_MAX: Duration = Duration::from_secs(1_000_000_000);
/// The largest maximum of limits that keep an entry per unit.
const ENTRIES_MAX: u64 = 10_000;
/// The largest rate and burst of a bucket.
const BUCKET_MAX: u64 = 1_000_000;
/// The largest maximum of windows.
const WINDOW_COUNT_MAX: u64 = 1_000_000_000;
/// The largest quota: what a double holds, with room to add.
const QUOTA_MAX: u64 = 1_000_000_000_000_000;
/// The farthest place from UTC.
const OFFSET_MINUTES_MAX: i32 = 24 * 60;

/// How much of something is allowed.
///
/// | kind | exact | memory per subject | use it for |
/// |---|---|---|---|
/// | [`bucket`](Limit::bucket) | yes | one number | requests: smooth, with bursts |
/// | [`sliding`](Limit::sliding) | nearly | three numbers | many requests per window |
/// | [`log`](Limit::log) | yes | one entry per unit | few and precious things |
/// | [`window`](Limit::window) | twice at the edge | one number | attempts since the first |
/// | [`quota`](Limit::quota) | yes, per calendar period | one number | plans and budgets |
/// | [`concurrency`](Limit::concurrency) | yes | one entry per holder | things that last |
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limit {
    name: String,
    kind: Kind,
    max: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Window(Duration),
    Log(Duration),
    Sliding(Duration),
    Bucket { window: Duration, burst: u64 },
    Concurrency { hold: Duration },
    Quota { period: Period, offset_minutes: i32 },
}

/// A part of the calendar, by the server's clock, in UTC unless a limit says otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Period {
    /// From one full hour to the next.
    Hour,
    /// From midnight to midnight.
    Day,
    /// From Monday.
    Week,
    /// From the first of a month to the last.
    Month,
}

impl Period {
    fn name(self) -> &'static str {
        match self {
            Period::Hour => "HOUR",
            Period::Day => "DAY",
            Period::Week => "WEEK",
            Period::Month => "MONTH",
        }
    }

    /// For headers: a month has thirty days.
    pub(super) fn length(self) -> Duration {
        let hours = match self {
            Period::Hour => 1,
            Period::Day => 24,
            Period::Week => 7 * 24,
            Period::Month => 30 * 24,
        };
        Duration::from_secs(hours * 3600)
    }
}

impl Limit {
    /// At most `max` in the window that begins with the first of them.
    pub fn window(name: &str, max: u64, window: Duration) -> Result<Limit> {
        Limit::new(name, Kind::Window(window), max)
    }

    /// At most `max` in any span of this length. Each unit is an entry of its own: up to 10,000.
    pub fn log(name: &str, max: u64, window: Duration) -> Result<Limit> {
        Limit::new(name, Kind::Log(window), max)
    }

    /// At most `max` in a span of this length, as estimated from what the present window counts and
    /// the part of the one before that the span still covers.
    pub fn sliding(name: &str, max: u64, window: Duration) -> Result<Limit> {
        Limit::new(name, Kind::Sliding(window), max)
    }

    /// A bucket of `max` tokens that fills at `max` per window (GCRA).
    pub fn bucket(name: &str, max: u64, window: Duration) -> Result<Limit> {
        Limit::new(name, Kind::Bucket { window, burst: max }, max)
    }

    /// At most `max` at the same time. Whoever does not give up the slot has it for `hold`.
    pub fn concurrency(name: &str, max: u64, hold: Duration) -> Result<Limit> {
        Limit::new(name, Kind::Concurrency { hold }, max)
    }

    /// At most `max` in each hour, day, week or month.
    pub fn quota(name: &str, max: u64, period: Period) -> Result<Limit> {
        Limit::new(name, Kind::Quota { period, offset_minutes: 0 }, max)
    }

    /// Of a bucket: how many tokens it holds.
    pub fn burst(mut self, burst: u64) -> Result<Limit> {
        let Kind::Bucket { burst: tokens, .. } = &mut self.kind else {
            return Err(Error::invalid("only a bucket has a burst"));
        };
        if !(1..=BUCKET_MAX).contains(&burst) {
            return Err(Error::invalid(format!("a burst is from 1 to {BUCKET_MAX}")));
        }
        *tokens = burst;
        Ok(self)
    }

    /// Of a quota: how far the clock by which its periods end is ahead of UTC.
    pub fn utc_offset_minutes(mut self, minutes: i32) -> Result<Limit> {
        let Kind::Quota { offset_minutes, .. } = &mut self.kind else {
            return Err(Error::invalid("only a quota has an offset"));
        };
        if minutes.abs() > OFFSET_MINUTES_MAX {
            return Err(Error::invalid("an offset is at most a day"));
        }
        *offset_minutes = minutes;
        Ok(self)
    }

    fn new(name: &str, kind: Kind, max: u64) -> Result<Limit> {
        check_name(name)?;
        let most = match kind {
            Kind::Window(_) | Kind::Sliding(_) => WINDOW_COUNT_MAX,
            Kind::Log(_) | Kind::Concurrency { .. } => ENTRIES_MAX,
            Kind::Bucket { .. } => BUCKET_MAX,
            Kind::Quota { .. } => QUOTA_MAX,
        };
        if !(1..=most).contains(&max) {
            return Err(Error::invalid(format!("the maximum of limit {name} is from 1 to {most}")));
        }
        let limit = Limit { name: name.to_owned(), kind, max };
        if limit.length().is_zero() || limit.length() > WINDOW_MAX {
            return Err(Error::invalid(format!("the window of limit {name} is too short or long")));
        }
        Ok(limit)
    }

    /// Unique within a limiter.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it allows: per window, or at once.
    pub fn max(&self) -> u64 {
        self.max
    }

    /// The most that one call can cost.
    pub(super) fn cost_max(&self) -> u64 {
        match self.kind {
            Kind::Bucket { burst, .. } => burst,
            _ => self.max,
        }
    }

    /// How long its window is, or a slot is held.
    pub(super) fn length(&self) -> Duration {
        match self.kind {
            Kind::Window(window) | Kind::Log(window) | Kind::Sliding(window) => window,
            Kind::Bucket { window, .. } => window,
            Kind::Concurrency { hold } => hold,
            Kind::Quota { period, .. } => period.length(),
        }
    }

    /// The window and burst of a bucket.
    pub(super) fn as_bucket(&self) -> Option<(Duration, u64)> {
        match self.kind {
            Kind::Bucket { window, burst } => Some((window, burst)),
            _ => None,
        }
    }

    pub(super) fn is_concurrency(&self) -> bool {
        matches!(self.kind, Kind::Concurrency { .. })
    }

    /// The part of its key.
    pub(super) fn part(&self) -> &'static str {
        match self.kind {
            Kind::Window(_) => "window",
            Kind::Log(_) => "log",
            Kind::Sliding(_) => "sliding",
            Kind::Bucket { .. } => "bucket",
            Kind::Concurrency { .. } => "concurrency",
            Kind::Quota { .. } => "quota",
        }
    }

    /// As steps take it: kind, maximum, window.
    pub(super) fn add_to<'k, C: Class>(&self, call: StepCall<'k, C>) -> StepCall<'k, C> {
        let (name, window) = match self.kind {
            Kind::Window(window) => ("WINDOW", window),
            Kind::Log(window) => ("LOG", window),
            Kind::Sliding(window) => ("SLIDING", window),
            Kind::Bucket { window, .. } => ("BUCKET", window),
            Kind::Concurrency { hold } => ("CONCURRENCY", hold),
            Kind::Quota { period, .. } => {
                return call.arg("QUOTA").arg(self.max).arg(period.name());
            }
        };
        call.arg(name).arg(self.max).arg(window)
    }

    /// What a check takes besides.
    pub(super) fn extra(&self) -> i64 {
        match self.kind {
            Kind::Bucket { burst, .. } => i64::try_from(burst).unwrap_or(i64::MAX),
            Kind::Quota { offset_minutes, .. } => i64::from(offset_minutes),
            _ => 0,
        }
    }
}

/// Names stand in keys and in headers.
pub(super) fn check_name(name: &str) -> Result<()> {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if name.is_empty() || name.len() > NAME_BYTES_MAX || !name.bytes().all(is_plain) {
        return Err(Error::invalid(format!(
            "a name has 1 to {NAME_BYTES_MAX} small letters, digits and hyphens"
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    #[test]
    fn limits_without_sense_are_refused() {
        let refused = |made: Result<Limit>| matches!(made, Err(Error::Invalid(_)));
        assert!(refused(Limit::window("a", 0, MINUTE)));
        assert!(refused(Limit::window("a", 1, Duration::ZERO)));
        assert!(refused(Limit::window("A b", 1, MINUTE)));
        assert!(refused(Limit::window("", 1, MINUTE)));
        assert!(refused(Limit::log("a", 10_001, MINUTE)));
        assert!(refused(Limit::window("a", 1, MINUTE).unwrap().burst(5)));
        assert!(refused(Limit::bucket("a", 1, MINUTE).unwrap().burst(0)));
        assert!(refused(Limit::bucket("a", 1, MINUTE).unwrap().utc_offset_minutes(1)));
        let quota = Limit::quota("a", 1, Period::Day).unwrap();
        assert!(refused(quota.utc_offset_minutes(1441)));
    }
}
