//! Days and periods, and how a client that does not know the server's time names the current one.
//!
//! The name of a period is part of a key, which a client has to say before the server can look at
//! its clock. So the client guesses; the step refuses a period that is not the present one by the
//! server's clock and tells the time, and the client calls again.

use crate::error::{Error, Result};
use crate::kit::Kit;
use crate::reply::Envelope;
use std::fmt;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const HOUR_MS: i64 = 60 * 60 * 1000;
const DAY_MS: i64 = 24 * HOUR_MS;
/// The first day of 1970 was a Thursday; weeks begin on Mondays.
const DAYS_TO_MONDAY: i64 = 3;
/// The last day there is: the end of the year 9999.
const DAY_MAX: i64 = 2_932_896;
/// How often a call follows the server's clock into another period.
const GUESSES_MAX: u32 = 4;

/// A day of the calendar.
///
/// ```
/// use russet::Day;
///
/// let day = Day::new(2024, 2, 28)?;
/// assert_eq!(day.plus(2).to_string(), "2024-03-01");
/// assert_eq!(Day::of_unix_ms(0), Day::new(1970, 1, 1)?);
/// # Ok::<(), russet::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Day {
    /// Since 1970-01-01.
    number: i64,
}

impl Day {
    /// Refuses dates that are not in the calendar, or not in the years 1970 to 9999.
    pub fn new(year: i32, month: u32, day: u32) -> Result<Day> {
        let refused = || Error::invalid(format!("there is no day {year}-{month}-{day}"));
        if !(1970..=9999).contains(&year) || !(1..=12).contains(&month) || day == 0 {
            return Err(refused());
        }
        let made = Day { number: days_from_civil(year, month, day) };
        if made.year_month_day() != (year, month, day) {
            return Err(refused());
        }
        Ok(made)
    }

    /// The day of a moment, in UTC.
    pub fn of_unix_ms(unix_ms: i64) -> Day {
        Day { number: unix_ms.div_euclid(DAY_MS).clamp(0, DAY_MAX) }
    }

    /// The present day by this machine's clock, in UTC.
    pub fn today() -> Day {
        Day::of_unix_ms(system_ms())
    }

    /// So many days later, but not after the year 9999.
    pub fn plus(self, days: u32) -> Day {
        Day { number: (self.number + i64::from(days)).min(DAY_MAX) }
    }

    /// So many days earlier, but not before 1970.
    pub fn minus(self, days: u32) -> Day {
        Day { number: (self.number - i64::from(days)).max(0) }
    }

    /// As `(2026, 7, 2)`.
    pub fn year_month_day(self) -> (i32, u32, u32) {
        civil_from_days(self.number)
    }

    /// How many days after the start of 1970.
    pub fn number(self) -> i64 {
        self.number
    }

    /// As it stands in keys: `20260702`.
    pub(crate) fn label(self) -> String {
        let (year, month, day) = self.year_month_day();
        format!("{year:04}{month:02}{day:02}")
    }

    fn start_ms(self) -> i64 {
        self.number * DAY_MS
    }
}

impl fmt::Display for Day {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = self.year_month_day();
        write!(f, "{year:04}-{month:02}-{day:02}")
    }
}

impl fmt::Debug for Day {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// Days since 1970 of a date of the Gregorian calendar. Years are counted from March, so that the
/// leap day is the last of its year.
fn days_from_civil(year: i32, month: u32, day: u32) -> i64 {
    let year = i64::from(year) - i64::from(month <= 2);
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let month_from_march = i64::from((month + 9) % 12);
    let day_of_year = (153 * month_from_march + 2) / 5 + i64::from(day) - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

fn civil_from_days(number: i64) -> (i32, u32, u32) {
    let number = number + 719_468;
    let (era, day_of_era) = (number.div_euclid(146_097), number.rem_euclid(146_097));
    let leap_days = day_of_era / 1460 - day_of_era / 36_524 + day_of_era / 146_096;
    let year_of_era = (day_of_era - leap_days) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    // All within the years of `Day`.
    (year as i32, month as u32, day as u32)
}

/// How long something is collected before it begins anew. In UTC.
///
/// ```
/// use russet::{Day, Period};
///
/// let july = Period::Month.of(Day::new(2026, 7, 2)?);
/// assert_eq!(july.previous(), Period::Month.of(Day::new(2026, 6, 30)?));
/// # Ok::<(), russet::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Period {
    /// From one full hour to the next.
    Hour,
    /// From midnight to midnight.
    Day,
    /// From Monday to Sunday.
    Week,
    /// From the first of a month to the last.
    Month,
    /// It never begins anew.
    Endless,
}

impl Period {
    /// The span of this length that a moment lies in.
    pub fn at_unix_ms(self, unix_ms: i64) -> Span {
        let day = Day::of_unix_ms(unix_ms);
        let (start_ms, end_ms) = match self {
            Period::Hour => {
                let start_ms = unix_ms.max(0) / HOUR_MS * HOUR_MS;
                (start_ms, start_ms + HOUR_MS)
            }
            Period::Day => (day.start_ms(), day.start_ms() + DAY_MS),
            Period::Week => {
                let weekday = (day.number + DAYS_TO_MONDAY).rem_euclid(7);
                let monday_ms = (day.number - weekday) * DAY_MS;
                (monday_ms, monday_ms + 7 * DAY_MS)
            }
            Period::Month => {
                let (year, month, _day) = day.year_month_day();
                let (next_year, next) = if month == 12 { (year + 1, 1) } else { (year, month + 1) };
                let start = days_from_civil(year, month, 1);
                (start * DAY_MS, days_from_civil(next_year, next, 1) * DAY_MS)
            }
            Period::Endless => (0, 0),
        };
        Span { period: self, start_ms, end_ms }
    }

    /// The one of a day; of an hour, its first.
    pub fn of(self, day: Day) -> Span {
        self.at_unix_ms(day.start_ms())
    }
}

/// One period: a certain day, week or month.
///
/// ```
/// use russet::{Day, Period};
///
/// let july = Period::Month.of(Day::new(2026, 7, 2)?);
/// assert_eq!(july.previous(), Period::Month.of(Day::new(2026, 6, 30)?));
/// # Ok::<(), russet::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Span {
    period: Period,
    start_ms: i64,
    /// 0 of an endless one.
    end_ms: i64,
}

impl Span {
    /// What it is one of.
    pub fn period(&self) -> Period {
        self.period
    }

    /// Its first millisecond since 1970.
    pub fn start_ms(&self) -> i64 {
        self.start_ms
    }

    /// The millisecond after its last; None if it has no end.
    pub fn end_ms(&self) -> Option<i64> {
        (self.end_ms > 0).then_some(self.end_ms)
    }

    /// The one before it.
    pub fn previous(&self) -> Span {
        self.period.at_unix_ms(self.start_ms - 1)
    }

    /// The one behind it; itself if it has no end.
    pub fn next(&self) -> Span {
        self.period.at_unix_ms(self.end_ms)
    }

    /// As it stands in keys. Those of different lengths differ.
    pub(crate) fn label(&self) -> String {
        let day = Day::of_unix_ms(self.start_ms);
        match self.period {
            Period::Hour => format!("{}T{:02}", day.label(), self.start_ms % DAY_MS / HOUR_MS),
            Period::Day => day.label(),
            Period::Week => format!("{}W", day.label()),
            Period::Month => day.label()[..6].to_owned(),
            Period::Endless => "all".to_owned(),
        }
    }

    /// What a step compares with its clock: the end is 0 for one without end.
    pub(crate) fn bounds_ms(&self) -> (i64, i64) {
        (self.start_ms, self.end_ms)
    }
}

/// What is known of the server's wall clock: how far it is ahead of the kit's.
#[derive(Debug)]
pub(crate) struct ServerClock {
    ahead_ms: AtomicI64,
}

impl ServerClock {
    /// Nothing is known: this machine's clock has to do.
    const UNKNOWN: i64 = i64::MIN;

    pub fn new() -> Self {
        ServerClock { ahead_ms: AtomicI64::new(Self::UNKNOWN) }
    }

    fn guess_ms(&self, kit: &Kit) -> i64 {
        match self.ahead_ms.load(Ordering::Relaxed) {
            Self::UNKNOWN => system_ms(),
            ahead_ms => elapsed_ms(kit) + ahead_ms,
        }
    }

    fn learn(&self, kit: &Kit, now_ms: i64) {
        self.ahead_ms.store(now_ms - elapsed_ms(kit), Ordering::Relaxed);
    }

    /// The attempts of one call to name the present period.
    pub fn guesses<'k>(&'k self, kit: &'k Kit) -> Guesses<'k> {
        Guesses { clock: self, kit, count: 0 }
    }
}

/// See [`ServerClock::guesses`].
#[derive(Debug)]
pub(crate) struct Guesses<'k> {
    clock: &'k ServerClock,
    kit: &'k Kit,
    count: u32,
}

impl Guesses<'_> {
    /// The moment to name in the next call.
    pub fn next_ms(&mut self) -> Result<i64> {
        if self.count == GUESSES_MAX {
            let text = "the server's clock does not stay in one period";
            return Err(Error::Unavailable(text.into()));
        }
        self.count += 1;
        Ok(self.clock.guess_ms(self.kit))
    }

    /// Whether the guess was right: otherwise the step has done nothing but tell the time.
    pub fn was_right(&self, envelope: &Envelope) -> Result<bool> {
        if !envelope.is("PERIOD") {
            return Ok(true);
        }
        self.clock.learn(self.kit, envelope.int("now_ms")?);
        Ok(false)
    }
}

fn elapsed_ms(kit: &Kit) -> i64 {
    i64::try_from(kit.time().elapsed().as_millis()).unwrap_or(i64::MAX / 2)
}

fn system_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_day_has_a_date_and_back() {
        for number in (0..DAY_MAX).step_by(17).chain([DAY_MAX]) {
            let (year, month, day) = civil_from_days(number);
            assert_eq!(days_from_civil(year, month, day), number);
        }
        assert_eq!(Day::new(9999, 12, 31).map(Day::number), Ok(DAY_MAX));
        assert_eq!(Day::new(2000, 2, 29).unwrap().plus(1), Day::new(2000, 3, 1).unwrap());
        assert_eq!(Day::new(2026, 1, 1).unwrap().minus(1), Day::new(2025, 12, 31).unwrap());
    }

    #[test]
    fn what_is_no_date_is_refused() {
        for (year, month, day) in [(2023, 2, 29), (2024, 13, 1), (2024, 4, 31), (1969, 1, 1)] {
            assert!(Day::new(year, month, day).is_err());
        }
    }

    #[test]
    fn periods_follow_each_other() {
        for period in [Period::Hour, Period::Day, Period::Week, Period::Month] {
            let mut span = period.of(Day::new(2023, 12, 1).unwrap());
            for _ in 0..40 {
                let next = span.next();
                assert_eq!(span.end_ms(), Some(next.start_ms()));
                assert_eq!(next.previous(), span);
                assert_ne!(next.label(), span.label());
                span = next;
            }
        }
        let week = Period::Week.of(Day::new(2026, 7, 5).unwrap());
        assert_eq!(Day::of_unix_ms(week.start_ms()), Day::new(2026, 6, 29).unwrap());
    }
}
