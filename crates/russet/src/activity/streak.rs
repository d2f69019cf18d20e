//! Signing in day by day: how long without a gap, across months and years.

use crate::calendar::{Day, Period, ServerClock};
use crate::error::{Error, Result};
use crate::key::{Family, Keys, Scope};
use crate::kit::Kit;
use crate::observe::stats;
use crate::reply::Envelope;
use crate::spread::check_ttl;
use crate::step::{Safe, Step};
use std::time::Duration;

const FAMILY: Family = Family { purpose: "activity.sign_in", version: 1 };
/// From UTC-12 to UTC+14.
const OFFSET_MINUTES: std::ops::RangeInclusive<i32> = -12 * 60..=14 * 60;

pub(super) static SIGN: Step<Safe> = Step::new("sign_in", include_str!("streak_sign.lua"));
pub(super) static STATUS: Step<Safe> =
    Step::read_only("sign_in_streak", include_str!("streak_status.lua"));
pub(super) static YEAR: Step<Safe> =
    Step::read_only("sign_in_year", include_str!("streak_year.lua"));

/// When a day begins, and how long it is known who signed in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SignInSettings {
    /// How far the users' clocks are ahead of UTC: their day is meant.
    pub utc_offset_minutes: i32,
    /// How long a user who does not come back is remembered.
    pub retention: Duration,
}

/// The streak of a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Streak {
    /// Days without a gap up to today, or up to yesterday if today is still open.
    pub current: u64,
    /// The most days without a gap.
    pub longest: u64,
    /// Days in all.
    pub total: u64,
    /// Of the users' day.
    pub is_signed_in_today: bool,
}

/// What a sign-in did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum SignIn {
    /// The first of the day: the streak is a day longer, or begins.
    First(Streak),
    /// Not the first of the day: nothing has changed.
    Again(Streak),
}

impl SignIn {
    /// After the sign-in.
    pub fn streak(&self) -> &Streak {
        match self {
            SignIn::First(streak) | SignIn::Again(streak) => streak,
        }
    }
}

/// Sign-ins of users, by the server's clock.
///
/// Invariant: a day counts once, and a streak breaks when a whole day has passed without a sign-in,
/// not before.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use russet::Kit;
/// use russet::activity::{SignIns, SignInSettings};
/// use std::time::Duration;
///
/// let kit = Kit::embedded(Default::default())?;
/// let retention = Duration::from_secs(400 * 24 * 60 * 60);
/// let sign_ins = SignIns::new(&kit, SignInSettings { utc_offset_minutes: 0, retention })?;
/// assert_eq!(sign_ins.sign_in("ann").await?.streak().current, 1);
/// assert!(sign_ins.streak("ann").await?.is_signed_in_today);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct SignIns {
    kit: Kit,
    settings: SignInSettings,
    clock: ServerClock,
    counts: Counts,
}

stats! {
    /// What a handle has seen in this process.
    SignInStats counted by Counts {
        /// The first of a user and day.
        first,
        /// Sign-ins that were not the first of the day.
        again,
    }
}

/// A day of the users, as steps take it.
struct Today {
    day: Day,
    start_ms: i64,
    end_ms: i64,
}

impl SignIns {
    /// Sign-ins by these settings. Refuses an offset that no time zone has.
    pub fn new(kit: &Kit, settings: SignInSettings) -> Result<Self> {
        if !OFFSET_MINUTES.contains(&settings.utc_offset_minutes) {
            return Err(Error::invalid("utc_offset_minutes must be of a time zone"));
        }
        check_ttl("retention", settings.retention)?;
        let (clock, counts) = (ServerClock::new(), Counts::default());
        Ok(SignIns { kit: kit.clone(), settings, clock, counts })
    }

    /// What this handle has seen.
    pub fn stats(&self) -> SignInStats {
        self.counts.stats()
    }

    /// Signs a user in for today. Doing so again changes nothing.
    pub async fn sign_in(&self, user: impl Into<Scope>) -> Result<SignIn> {
        let keys = self.kit.keys(FAMILY, user)?;
        let mut guesses = self.clock.guesses(&self.kit);
        loop {
            let today = self.today(guesses.next_ms()?);
            let (year, ..) = today.day.year_month_day();
            let index = today.day.number() - Day::new(year, 1, 1)?.number();
            let call = self.kit.step(&SIGN).key(keys.key("streak")).key(bitmap(&keys, year));
            let call = call.arg(today.start_ms).arg(today.end_ms).arg(today.day.number());
            let envelope = call.arg(index).arg(self.settings.retention).run().await?;
            if guesses.was_right(&envelope)? {
                return match envelope.status() {
                    "SIGNED" => {
                        self.counts.first.add(1);
                        Ok(SignIn::First(streak(&envelope, true)?))
                    }
                    "AGAIN" => {
                        self.counts.again.add(1);
                        Ok(SignIn::Again(streak(&envelope, true)?))
                    }
                    _ => Err(envelope.unexpected()),
                };
            }
        }
    }

    /// How a user stands, without signing in.
    pub async fn streak(&self, user: impl Into<Scope>) -> Result<Streak> {
        let keys = self.kit.keys(FAMILY, user)?;
        let mut guesses = self.clock.guesses(&self.kit);
        loop {
            let today = self.today(guesses.next_ms()?);
            let call = self.kit.step(&STATUS).key(keys.key("streak"));
            let call = call.arg(today.start_ms).arg(today.end_ms).arg(today.day.number());
            let envelope = call.run().await?;
            if guesses.was_right(&envelope)? {
                return streak(&envelope, envelope.int("signed")? == 1);
            }
        }
    }

    /// The days of a year on which a user signed in.
    pub async fn days(&self, user: impl Into<Scope>, year: i32) -> Result<Vec<Day>> {
        let first = Day::new(year, 1, 1)?;
        let keys = self.kit.keys(FAMILY, user)?;
        let bits = self.kit.step(&YEAR).key(bitmap(&keys, year)).run().await?.text("bitmap")?;
        let is_set = |index: &u32| {
            let byte = bits.get((index / 8) as usize).copied().unwrap_or(0);
            byte & (128 >> (index % 8)) != 0
        };
        Ok((0..366).filter(is_set).map(|index| first.plus(index)).collect())
    }

    fn today(&self, now_ms: i64) -> Today {
        let offset_ms = i64::from(self.settings.utc_offset_minutes) * 60_000;
        let span = Period::Day.at_unix_ms(now_ms + offset_ms);
        let (start_ms, end_ms) = span.bounds_ms();
        let day = Day::of_unix_ms(start_ms);
        Today { day, start_ms: start_ms - offset_ms, end_ms: end_ms - offset_ms }
    }
}

fn bitmap(keys: &Keys, year: i32) -> crate::key::Key {
    keys.item("year", year.to_string())
}

fn streak(envelope: &Envelope, is_signed_in_today: bool) -> Result<Streak> {
    Ok(Streak {
        current: envelope.count("current")?,
        longest: envelope.count("longest")?,
        total: envelope.count("total")?,
        is_signed_in_today,
    })
}
