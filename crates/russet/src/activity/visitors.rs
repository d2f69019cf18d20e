//! Unique visitors of a page, approximately: 12 KB for any number of them.

use crate::calendar::{Day, Period, ServerClock};
use crate::error::{Error, Result};
use crate::key::{Family, Scope};
use crate::kit::Kit;
use crate::member::Member;
use crate::observe::stats;
use crate::spread::check_ttl;
use crate::step::{Safe, Step};
use std::time::Duration;

const FAMILY: Family = Family { purpose: "activity.visitors", version: 1 };
/// The most days that one count unites.
const DAYS_MAX: u32 = 100;

pub(super) static VISIT: Step<Safe> = Step::new("visitors_visit", include_str!("visit.lua"));
// Not read-only: servers keep a count in the value, which they do not allow such scripts.
pub(super) static COUNT: Step<Safe> =
    Step::new("visitors_count", include_str!("visitors_count.lua"));

/// What is kept of visitors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VisitorSettings {
    /// How long a day is kept after its end.
    pub retention: Duration,
}

/// What a visit was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Visit {
    /// It has changed the count: a visitor not seen today.
    New,
    /// Most likely one seen today. One in a hundred of the new ones is taken for such.
    Seen,
}

/// Unique visitors per page and day (UTC, by the server's clock), with a standard error of 0.81 %.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use russet::activity::{VisitorSettings, Visitors};
/// use russet::{Day, Kit};
/// use std::time::Duration;
///
/// let kit = Kit::embedded(Default::default())?;
/// let retention = Duration::from_secs(90 * 24 * 60 * 60);
/// let visitors = Visitors::new(&kit, VisitorSettings { retention })?;
/// for visitor in ["ann", "ben", "ann"] {
///     let _visit = visitors.visit("/home", visitor).await?;
/// }
/// assert_eq!(visitors.count("/home", Day::today()).await?, 2);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Visitors {
    kit: Kit,
    settings: VisitorSettings,
    clock: ServerClock,
    counts: Counts,
}

stats! {
    /// What a handle has seen in this process.
    VisitorStats counted by Counts {
        /// Visits that were new to their page and day, as far as the estimate tells.
        new,
        /// Visits that were not.
        seen,
    }
}

impl Visitors {
    /// Visitors by these settings. Refuses a retention of zero.
    pub fn new(kit: &Kit, settings: VisitorSettings) -> Result<Self> {
        check_ttl("retention", settings.retention)?;
        let (clock, counts) = (ServerClock::new(), Counts::default());
        Ok(Visitors { kit: kit.clone(), settings, clock, counts })
    }

    /// What this handle has seen.
    pub fn stats(&self) -> VisitorStats {
        self.counts.stats()
    }

    /// Counts a visitor of a page, today by the server's clock.
    pub async fn visit(&self, page: impl Into<Scope>, visitor: impl Into<Member>) -> Result<Visit> {
        let (keys, visitor) = (self.kit.keys(FAMILY, page)?, visitor.into().checked()?);
        let mut guesses = self.clock.guesses(&self.kit);
        loop {
            let span = Period::Day.at_unix_ms(guesses.next_ms()?);
            let (start_ms, end_ms) = span.bounds_ms();
            let call = self.kit.step(&VISIT).key(keys.item("day", span.label()));
            let call = call.arg(start_ms).arg(end_ms).arg(self.settings.retention);
            let envelope = call.arg(&visitor).run().await?;
            if guesses.was_right(&envelope)? {
                return match envelope.status() {
                    "NEW" => {
                        self.counts.new.add(1);
                        Ok(Visit::New)
                    }
                    "SEEN" => {
                        self.counts.seen.add(1);
                        Ok(Visit::Seen)
                    }
                    _ => Err(envelope.unexpected()),
                };
            }
        }
    }

    /// How many different visitors a page had on a day, within about 1 %.
    pub async fn count(&self, page: impl Into<Scope>, day: Day) -> Result<u64> {
        self.count_over(page, day, 1).await
    }

    /// Over several days, each visitor once.
    pub async fn count_over(&self, page: impl Into<Scope>, from: Day, days: u32) -> Result<u64> {
        if days == 0 || days > DAYS_MAX {
            return Err(Error::invalid(format!("days must be 1 to {DAYS_MAX}")));
        }
        let keys = self.kit.keys(FAMILY, page)?;
        let call = (0..days).fold(self.kit.step(&COUNT), |call, later| {
            call.key(keys.item("day", from.plus(later).label()))
        });
        call.run().await?.count("visitors")
    }
}
