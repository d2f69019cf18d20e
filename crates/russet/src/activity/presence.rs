//! Who is here: connections that say so again and again, and are forgotten when they do not.

use crate::error::{Error, Result};
use crate::key::{Family, Scope};
use crate::kit::Kit;
use crate::member::Member;
use crate::observe::{self, stats};
use crate::reply::Envelope;
use crate::spread::{Spread, check_bound, check_shards, check_ttl};
use crate::step::{Safe, Step};
use std::time::Duration;

const FAMILY: Family = Family { purpose: "activity.presence", version: 1 };
/// The most members of a room.
const MEMBERS_MAX: u32 = 10_000_000;
/// The most members that one call lists.
const LIST_MAX: u32 = 1000;

pub(super) static BEAT: Step<Safe> = Step::new("presence_beat", include_str!("presence_beat.lua"));
pub(super) static LEAVE: Step<Safe> =
    Step::new("presence_leave", include_str!("presence_leave.lua"));
pub(super) static LIST: Step<Safe> =
    Step::read_only("presence_list", include_str!("presence_list.lua"));

/// When someone counts as gone, and how many a room takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PresenceSettings {
    /// Who has not been heard of for so long is not there. Beats should come three times as often.
    pub timeout: Duration,
    /// How many a room has at most.
    pub members_max: u32,
    /// Over how many slots a room is spread.
    pub shards: u32,
}

/// What a beat did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Beat {
    /// It was not there before.
    Joined,
    /// It was there, and stays for another timeout.
    Refreshed,
    /// The room has `members_max` others: it is not there.
    Full,
}

/// Someone who is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Present {
    /// Who beats.
    pub member: Member,
    /// By the server's clock, in milliseconds since 1970.
    pub last_seen_ms: i64,
}

/// Who is in which room, by the server's clock. Members are whatever beats: users, or connections
/// of users.
///
/// Invariant: whoever has not been heard of for the timeout is not there, whether or not anything
/// was ever told of its end.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use russet::Kit;
/// use russet::activity::{Beat, Presence, PresenceSettings};
/// use std::time::Duration;
///
/// let kit = Kit::embedded(Default::default())?;
/// let timeout = Duration::from_secs(30);
/// let settings = PresenceSettings { timeout, members_max: 1000, shards: 1 };
/// let rooms = Presence::new(&kit, settings)?;
/// assert_eq!(rooms.beat("lobby", "ann").await?, Beat::Joined);
/// assert_eq!(rooms.count("lobby").await?, 1);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Presence {
    kit: Kit,
    settings: PresenceSettings,
    counts: Counts,
}

stats! {
    /// What a handle has seen in this process.
    PresenceStats counted by Counts {
        /// Beats of those who were not there before.
        joined,
        /// Beats of those who were.
        refreshed,
        /// Those who said that they leave.
        left,
        /// Beats that were refused because as many were there as may be.
        rejected,
    }
}

impl Presence {
    /// Rooms by these settings. Refuses those without sense: a timeout of zero, no members.
    pub fn new(kit: &Kit, settings: PresenceSettings) -> Result<Self> {
        check_ttl("timeout", settings.timeout)?;
        check_bound("members_max", settings.members_max, MEMBERS_MAX)?;
        check_shards(settings.shards)?;
        Ok(Presence { kit: kit.clone(), settings, counts: Counts::default() })
    }

    /// What this handle has seen.
    pub fn stats(&self) -> PresenceStats {
        self.counts.stats()
    }

    /// Says that someone is there.
    pub async fn beat(&self, room: impl Into<Scope>, member: impl Into<Member>) -> Result<Beat> {
        let (spread, member) = (self.spread(room), member.into().checked()?);
        let keys = spread.keys_of(&self.kit, &member)?;
        let call = self.kit.step(&BEAT).key(keys.key("seen")).arg(&member);
        let call = call.arg(self.settings.timeout).arg(spread.share(self.settings.members_max));
        let envelope = call.run().await?;
        let (beat, counter) = match envelope.status() {
            "JOINED" => (Beat::Joined, &self.counts.joined),
            "REFRESHED" => (Beat::Refreshed, &self.counts.refreshed),
            "FULL" => (Beat::Full, &self.counts.rejected),
            _ => return Err(envelope.unexpected()),
        };
        counter.add(1);
        Ok(beat)
    }

    /// Says that someone has gone; whether it was known to be there.
    pub async fn leave(&self, room: impl Into<Scope>, member: impl Into<Member>) -> Result<bool> {
        let (spread, member) = (self.spread(room), member.into().checked()?);
        let keys = spread.keys_of(&self.kit, &member)?;
        let call = self.kit.step(&LEAVE).key(keys.key("seen")).arg(&member);
        let was_there = call.run().await?.is("LEFT");
        self.counts.left.add(u64::from(was_there));
        Ok(was_there)
    }

    /// Whether a member is in a room.
    pub async fn is_present(
        &self,
        room: impl Into<Scope>,
        member: impl Into<Member>,
    ) -> Result<bool> {
        let (spread, member) = (self.spread(room), member.into().checked()?);
        let shard = spread.shard_of(&member);
        Ok(self.look(&spread, shard, 0, Some(&member)).await?.int("is_there")? == 1)
    }

    /// How many are in a room: a call per shard.
    pub async fn count(&self, room: impl Into<Scope>) -> Result<u64> {
        let (spread, mut count) = (self.spread(room), 0);
        for shard in spread.shards() {
            count += self.look(&spread, shard, 0, None).await?.count("present")?;
        }
        observe::gauge("redis.zset.presence.cardinality", "activity.presence", count);
        Ok(count)
    }

    /// Who is there, the last heard of first, at most 1,000.
    pub async fn list(&self, room: impl Into<Scope>, count: u32) -> Result<Vec<Present>> {
        if count > LIST_MAX {
            return Err(Error::invalid(format!("count is at most {LIST_MAX}")));
        }
        let (spread, mut all) = (self.spread(room), Vec::new());
        for shard in spread.shards().filter(|_shard| count > 0) {
            let mut envelope = self.look(&spread, shard, count, None).await?;
            all.extend(present(&mut envelope)?);
        }
        all.sort_by(|a, b| (b.last_seen_ms, &a.member).cmp(&(a.last_seen_ms, &b.member)));
        all.truncate(count as usize);
        Ok(all)
    }

    fn spread(&self, room: impl Into<Scope>) -> Spread {
        Spread::new(FAMILY, room.into(), self.settings.shards)
    }

    async fn look(
        &self,
        spread: &Spread,
        shard: u32,
        count: u32,
        member: Option<&Member>,
    ) -> Result<Envelope> {
        let keys = spread.keys(&self.kit, shard)?;
        let call = self.kit.step(&LIST).key(keys.key("seen"));
        let call = call.arg(self.settings.timeout).arg(count);
        match member {
            Some(member) => call.arg(member).run().await,
            None => call.run().await,
        }
    }
}

fn present(envelope: &mut Envelope) -> Result<Vec<Present>> {
    let mut items = envelope.list("members")?.into_iter();
    let mut all = Vec::new();
    while let (Some(member), Some(score)) = (items.next(), items.next()) {
        let last_seen = score.as_double().ok_or_else(|| score.is_not("a score"))?;
        let member = member.into_bytes()?.unwrap_or_default();
        // Milliseconds are whole and exact.
        all.push(Present { member: Member::from(member), last_seen_ms: last_seen as i64 });
    }
    Ok(all)
}
