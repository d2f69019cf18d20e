//! Who likes what, and since when.

use super::follows::Edge;
use crate::error::{Error, Result};
use crate::key::{Family, Scope};
use crate::kit::Kit;
use crate::member::Member;
use crate::observe::stats;
use crate::reply::{Envelope, Reply};
use crate::spread::{Spread, check_bound, check_shards, check_ttl};
use crate::step::{Safe, Step};
use std::time::Duration;

const FAMILY: Family = Family { purpose: "social.likes", version: 1 };
/// The most likers of one thing.
const LIKERS_MAX: u32 = 100_000_000;
/// The most likers, or users, of one call.
const COUNT_MAX: u32 = 1000;

pub(super) static SET: Step<Safe> = Step::new("like", include_str!("like.lua"));
pub(super) static READ: Step<Safe> = Step::read_only("likes_read", include_str!("likes_read.lua"));

/// What is kept of likes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LikeSettings {
    /// How many users can like one thing.
    pub likers_max: u32,
    /// How long they are kept after the last like.
    pub ttl: Duration,
    /// Over how many slots the likes of one thing are spread.
    pub shards: u32,
}

/// What a like did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Like {
    /// The user likes it from now on.
    New,
    /// The user likes it already.
    Already,
    /// `likers_max` others do.
    Full,
}

/// What taking a like back did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Unlike {
    /// The user likes it no longer.
    Removed,
    /// The user did not like it.
    NotLiked,
}

/// Likes of posts, products and whatever else.
///
/// Invariant: a user likes a thing once or not at all, as said last, and the first to like it is
/// the first.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use russet::Kit;
/// use russet::social::{Like, LikeSettings, Likes};
/// use std::time::Duration;
///
/// let kit = Kit::embedded(Default::default())?;
/// let ttl = Duration::from_secs(365 * 24 * 60 * 60);
/// let likes = Likes::new(&kit, LikeSettings { likers_max: 1_000_000, ttl, shards: 1 })?;
/// assert_eq!(likes.like("post-1", "ann").await?, Like::New);
/// assert_eq!(likes.like("post-1", "ann").await?, Like::Already);
/// assert_eq!(likes.count("post-1").await?, 1);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Likes {
    kit: Kit,
    settings: LikeSettings,
    counts: Counts,
}

stats! {
    /// What a handle has seen in this process.
    LikeStats counted by Counts {
        /// Likes that are new.
        liked,
        /// Likes that were taken back.
        unliked,
        /// Calls that changed nothing: it was so already.
        unchanged,
        /// Likes that were refused because there were as many as may be.
        rejected,
    }
}

impl Likes {
    /// Likes by these settings. Refuses bounds and a TTL of zero.
    pub fn new(kit: &Kit, settings: LikeSettings) -> Result<Self> {
        check_bound("likers_max", settings.likers_max, LIKERS_MAX)?;
        check_ttl("ttl", settings.ttl)?;
        check_shards(settings.shards)?;
        Ok(Likes { kit: kit.clone(), settings, counts: Counts::default() })
    }

    /// What this handle has seen.
    pub fn stats(&self) -> LikeStats {
        self.counts.stats()
    }

    /// Says that a user likes it. Saying so again changes nothing.
    pub async fn like(&self, thing: impl Into<Scope>, user: impl Into<Member>) -> Result<Like> {
        let envelope = self.set(thing.into(), user.into(), "SET").await?;
        let (like, counter) = match envelope.status() {
            "CHANGED" => (Like::New, &self.counts.liked),
            "UNCHANGED" => (Like::Already, &self.counts.unchanged),
            "FULL" => (Like::Full, &self.counts.rejected),
            _ => return Err(envelope.unexpected()),
        };
        counter.add(1);
        Ok(like)
    }

    /// Says that a user does not like it. Saying so again changes nothing.
    pub async fn unlike(&self, thing: impl Into<Scope>, user: impl Into<Member>) -> Result<Unlike> {
        let envelope = self.set(thing.into(), user.into(), "CLEAR").await?;
        let (unlike, counter) = match envelope.status() {
            "CHANGED" => (Unlike::Removed, &self.counts.unliked),
            "UNCHANGED" => (Unlike::NotLiked, &self.counts.unchanged),
            _ => return Err(envelope.unexpected()),
        };
        counter.add(1);
        Ok(unlike)
    }

    /// Which of these users like it, in their order: at most 1,000 users.
    pub async fn liked_by(
        &self,
        thing: impl Into<Scope>,
        users: impl IntoIterator<Item: Into<Member>>,
    ) -> Result<Vec<bool>> {
        let users: Result<Vec<Member>> =
            users.into_iter().map(|user| user.into().checked()).collect();
        let (spread, users) = (self.spread(thing.into()), users?);
        check_count(u32::try_from(users.len()).unwrap_or(u32::MAX))?;
        let mut liked = vec![false; users.len()];
        for shard in spread.shards() {
            let of_shard = users.iter().enumerate().filter(|(_, it)| spread.shard_of(it) == shard);
            let (indexes, members): (Vec<usize>, Vec<&Member>) = of_shard.unzip();
            if members.is_empty() {
                continue;
            }
            let mut envelope = self.read(&spread, shard, (0, "FIRST"), &members).await?;
            for (index, reply) in indexes.into_iter().zip(envelope.list("liked")?) {
                liked[index] = reply.as_int() == Some(1);
            }
        }
        Ok(liked)
    }

    /// How many users like it: a call per shard.
    pub async fn count(&self, thing: impl Into<Scope>) -> Result<u64> {
        let (spread, mut likes) = (self.spread(thing.into()), 0);
        for shard in spread.shards() {
            likes += self.read(&spread, shard, (0, "FIRST"), &[]).await?.count("likes")?;
        }
        Ok(likes)
    }

    /// The first users who liked it, at most 1,000.
    pub async fn first(&self, thing: impl Into<Scope>, count: u32) -> Result<Vec<Edge>> {
        let mut likers = self.likers(thing.into(), count, "FIRST").await?;
        likers.sort_by(|a, b| (a.since_ms, &a.user).cmp(&(b.since_ms, &b.user)));
        likers.truncate(count as usize);
        Ok(likers)
    }

    /// The last users who liked it, the last one first, at most 1,000.
    pub async fn last(&self, thing: impl Into<Scope>, count: u32) -> Result<Vec<Edge>> {
        let mut likers = self.likers(thing.into(), count, "LAST").await?;
        likers.sort_by(|a, b| (b.since_ms, &b.user).cmp(&(a.since_ms, &a.user)));
        likers.truncate(count as usize);
        Ok(likers)
    }

    async fn likers(&self, thing: Scope, count: u32, order: &'static str) -> Result<Vec<Edge>> {
        check_count(count)?;
        let (spread, mut likers) = (self.spread(thing), Vec::new());
        for shard in spread.shards().filter(|_shard| count > 0) {
            let mut envelope = self.read(&spread, shard, (count, order), &[]).await?;
            likers.extend(edges(&envelope.list("likers")?)?);
        }
        Ok(likers)
    }

    async fn set(&self, thing: Scope, user: Member, how: &'static str) -> Result<Envelope> {
        let (spread, user) = (self.spread(thing), user.checked()?);
        let keys = spread.keys_of(&self.kit, &user)?;
        let call = self.kit.step(&SET).key(keys.key("likers")).arg(&user).arg(how);
        call.arg(spread.share(self.settings.likers_max)).arg(self.settings.ttl).run().await
    }

    async fn read(
        &self,
        spread: &Spread,
        shard: u32,
        (count, order): (u32, &'static str),
        users: &[&Member],
    ) -> Result<Envelope> {
        let keys = spread.keys(&self.kit, shard)?;
        let call = self.kit.step(&READ).key(keys.key("likers")).arg(count).arg(order);
        users.iter().fold(call, |call, user| call.arg(*user)).run().await
    }

    fn spread(&self, thing: Scope) -> Spread {
        Spread::new(FAMILY, thing, self.settings.shards)
    }
}

fn check_count(count: u32) -> Result<()> {
    if count > COUNT_MAX {
        return Err(Error::invalid(format!("at most {COUNT_MAX} users at once")));
    }
    Ok(())
}

/// Users and moments, one after the other.
pub(super) fn edges(list: &[Reply]) -> Result<Vec<Edge>> {
    let edge = |pair: &[Reply]| {
        // Milliseconds are whole and exact.
        let since_ms = pair[1].as_double()? as i64;
        Some(Edge { user: Member::from(pair[0].as_bytes()?), since_ms })
    };
    let edges: Option<Vec<Edge>> = list.chunks_exact(2).map(edge).collect();
    edges.ok_or_else(|| Error::Corrupt("a user with a moment".into()))
}
