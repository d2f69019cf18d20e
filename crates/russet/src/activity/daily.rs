//! Daily active users on bitmaps: a bit per user and day, at an index that the store gives out.

use crate::calendar::{Day, Period, ServerClock};
use crate::error::{Error, Result};
use crate::key::{Family, Keys, Scope};
use crate::kit::Kit;
use crate::member::Member;
use crate::observe;
use crate::spread::{Spread, check_bound, check_shards, check_ttl};
use crate::step::{Safe, Step};
use std::collections::BTreeMap;
use std::time::Duration;

const FAMILY: Family = Family { purpose: "activity.daily", version: 1 };
/// The most members: a bitmap of one day has at most an eighth of it in bytes.
const MEMBERS_MAX: u32 = 100_000_000;
/// Members that one step marks.
const BATCH: usize = 500;
/// The most days that one call combines.
const DAYS_MAX: u32 = 100;

pub(super) static MARK: Step<Safe> = Step::new("daily_mark", include_str!("daily_mark.lua"));
pub(super) static SEEN: Step<Safe> = Step::read_only("daily_seen", include_str!("daily_seen.lua"));
pub(super) static COUNT: Step<Safe> =
    Step::read_only("daily_count", include_str!("daily_count.lua"));
pub(super) static COMBINE: Step<Safe> =
    Step::new("daily_combine", include_str!("daily_combine.lua"));

/// What is kept of daily activity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DailySettings {
    /// How many members can ever be marked while marks are kept: the guard against bitmaps that are
    /// nearly empty and very long.
    pub members_max: u32,
    /// How long a day is kept after its end.
    pub retention: Duration,
    /// Over how many slots it is spread.
    pub shards: u32,
}

/// Which members were active on which day (UTC, by the server's clock).
///
/// Invariant: a member has one index as long as any day is kept, so that the same bit is the same
/// member on all days.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use russet::activity::{DailyActive, DailySettings};
/// use russet::{Day, Kit};
/// use std::time::Duration;
///
/// let kit = Kit::embedded(Default::default())?;
/// let retention = Duration::from_secs(90 * 24 * 60 * 60);
/// let settings = DailySettings { members_max: 1_000_000, retention, shards: 1 };
/// let active = DailyActive::new(&kit, "acme", settings)?;
/// let marked = active.mark(["ann", "ben", "ann"]).await?;
/// assert_eq!((marked.new, marked.again), (2, 1));
/// assert_eq!(active.count(Day::today()).await?, 2);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct DailyActive {
    kit: Kit,
    spread: Spread,
    settings: DailySettings,
    clock: ServerClock,
}

/// What became of marks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct Marked {
    /// Not active before on this day.
    pub new: u64,
    /// Active before on this day.
    pub again: u64,
    /// Not marked: they were never seen, and there are `members_max` others.
    pub refused: u64,
}

/// How many of those who were active on one day were so on later ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cohort {
    /// The day that makes the cohort.
    pub day: Day,
    /// How many were active on it.
    pub size: u64,
    /// As many entries as days were asked for.
    pub retained: Vec<u64>,
}

/// What a day takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DailyStats {
    /// Members that were active on it.
    pub active: u64,
    /// Members that have an index.
    pub indexes: u64,
    /// The highest index of a shard; a bitmap has an eighth of it in bytes.
    pub index_max: u64,
    /// Memory of its bitmaps, in all shards.
    pub bitmap_bytes: u64,
}

impl DailyActive {
    /// Days of this scope. Refuses settings without sense: no members, too many shards.
    pub fn new(kit: &Kit, scope: impl Into<Scope>, settings: DailySettings) -> Result<Self> {
        check_shards(settings.shards)?;
        check_bound("members_max", settings.members_max, MEMBERS_MAX)?;
        check_ttl("retention", settings.retention)?;
        let spread = Spread::new(FAMILY, scope.into(), settings.shards);
        spread.keys(kit, 0)?;
        Ok(DailyActive { kit: kit.clone(), spread, settings, clock: ServerClock::new() })
    }

    /// Marks members as active today. Doing so again changes nothing.
    pub async fn mark(&self, members: impl IntoIterator<Item: Into<Member>>) -> Result<Marked> {
        let mut by_shard: BTreeMap<u32, Vec<Member>> = BTreeMap::new();
        for member in members {
            let member = member.into().checked()?;
            by_shard.entry(self.spread.shard_of(&member)).or_default().push(member);
        }
        let mut marked = Marked::default();
        for (shard, members) in &by_shard {
            for batch in members.chunks(BATCH) {
                let it = self.mark_batch(*shard, batch).await?;
                marked.new += it.new;
                marked.again += it.again;
                marked.refused += it.refused;
            }
        }
        Ok(marked)
    }

    async fn mark_batch(&self, shard: u32, members: &[Member]) -> Result<Marked> {
        let keys = self.spread.keys(&self.kit, shard)?;
        let mut guesses = self.clock.guesses(&self.kit);
        loop {
            let span = Period::Day.at_unix_ms(guesses.next_ms()?);
            let day = Day::of_unix_ms(span.start_ms());
            let (start_ms, end_ms) = span.bounds_ms();
            let call = self.kit.step(&MARK).key(keys.key("indexes")).key(bitmap(&keys, day));
            let call = call.arg(start_ms).arg(end_ms).arg(self.settings.retention);
            let call = call.arg(self.spread.share(self.settings.members_max));
            let envelope = members.iter().fold(call, |call, it| call.arg(it)).run().await?;
            if guesses.was_right(&envelope)? {
                let indexes = envelope.count("indexes")?;
                observe::gauge("redis.bitmap.highest_offset", "activity.daily", indexes.max(1) - 1);
                let refused = envelope.count("refused")?;
                if refused > 0 {
                    observe::count("redis.bitmap.refused.count", "activity.daily", refused);
                }
                let (new, again) = (envelope.count("new")?, envelope.count("again")?);
                return Ok(Marked { new, again, refused });
            }
        }
    }

    /// Whether a member was active on a day that is still kept.
    pub async fn was_active(&self, member: impl Into<Member>, day: Day) -> Result<bool> {
        let member = member.into().checked()?;
        let keys = self.spread.keys_of(&self.kit, &member)?;
        let call = self.kit.step(&SEEN).key(keys.key("indexes")).key(bitmap(&keys, day));
        Ok(call.arg(&member).run().await?.int("active")? == 1)
    }

    /// How many were active on a day.
    pub async fn count(&self, day: Day) -> Result<u64> {
        self.stats(day).await.map(|stats| stats.active)
    }

    /// What a day takes.
    pub async fn stats(&self, day: Day) -> Result<DailyStats> {
        let mut stats = DailyStats::default();
        for shard in self.spread.shards() {
            let keys = self.spread.keys(&self.kit, shard)?;
            let call = self.kit.step(&COUNT).key(keys.key("indexes")).key(bitmap(&keys, day));
            let envelope = call.run().await?;
            let indexes = envelope.count("indexes")?;
            stats.active += envelope.count("active")?;
            stats.indexes += indexes;
            stats.index_max = stats.index_max.max(indexes.saturating_sub(1));
            stats.bitmap_bytes += envelope.count("bytes")?;
        }
        Ok(stats)
    }

    /// How many were active on at least one of some days: weekly or monthly active users. Not for
    /// the request of a user: it reads the bitmaps of all days.
    pub async fn count_any(&self, from: Day, days: u32) -> Result<u64> {
        self.combine("ANY", &following(from, days)?).await
    }

    /// How many were active on every one of some days.
    pub async fn count_every(&self, from: Day, days: u32) -> Result<u64> {
        self.combine("EVERY", &following(from, days)?).await
    }

    /// Of those who were active on a day, how many were so again so many days later: `[1, 7, 30]`
    /// for the usual figures.
    pub async fn retention(&self, day: Day, days_later: &[u32]) -> Result<Cohort> {
        if days_later.len() > DAYS_MAX as usize {
            return Err(Error::invalid(format!("at most {DAYS_MAX} days")));
        }
        let size = self.count(day).await?;
        let mut retained = Vec::with_capacity(days_later.len());
        for later in days_later {
            retained.push(self.combine("EVERY", &[day, day.plus(*later)]).await?);
        }
        Ok(Cohort { day, size, retained })
    }

    async fn combine(&self, how: &'static str, days: &[Day]) -> Result<u64> {
        let mut active = 0;
        for shard in self.spread.shards() {
            let keys = self.spread.keys(&self.kit, shard)?;
            let call = self.kit.step(&COMBINE).key(keys.key("scratch")).arg(how);
            let call = days.iter().fold(call, |call, day| call.key(bitmap(&keys, *day)));
            active += call.run().await?.count("active")?;
        }
        Ok(active)
    }
}

fn bitmap(keys: &Keys, day: Day) -> crate::key::Key {
    keys.item("day", day.label())
}

fn following(from: Day, days: u32) -> Result<Vec<Day>> {
    if days == 0 || days > DAYS_MAX {
        return Err(Error::invalid(format!("days must be 1 to {DAYS_MAX}")));
    }
    Ok((0..days).map(|later| from.plus(later)).collect())
}
