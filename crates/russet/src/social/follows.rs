//! Who follows whom. Both sides of an edge are kept, in the slots of their users: the follower's
//! side holds, and the other one is brought to say the same.

use super::likes::edges;
use crate::error::{Error, Result};
use crate::key::{Family, Keys};
use crate::kit::Kit;
use crate::member::Member;
use crate::observe::{self, stats};
use crate::reply::{Envelope, Reply};
use crate::spread::{check_bound, check_ttl};
use crate::step::{Safe, Step};
use std::sync::Arc;
use std::time::Duration;

const FAMILY: Family = Family { purpose: "social.follows", version: 1 };
/// The most users that one user can follow: reads of common follows look at all of them.
const FOLLOWING_MAX: u32 = 10_000;
/// The most followers of one user.
const FOLLOWERS_MAX: u32 = 100_000_000;
/// The most users of one call.
const COUNT_MAX: u32 = 1000;
/// How long a follower who has gone is remembered, so that a late change is known to be late:
/// longer than any call is tried again.
const GONE_TTL: Duration = Duration::from_secs(7 * 24 * 60 * 60);

pub(super) static CHANGE: Step<Safe> =
    Step::new("follow_change", include_str!("follow_change.lua"));
pub(super) static APPLY: Step<Safe> = Step::new("follow_apply", include_str!("follow_apply.lua"));
pub(super) static CONFIRM: Step<Safe> =
    Step::new("follow_confirm", include_str!("follow_confirm.lua"));
pub(super) static LOOK: Step<Safe> =
    Step::read_only("follow_look", include_str!("follow_look.lua"));
pub(super) static PAGE: Step<Safe> =
    Step::read_only("follow_page", include_str!("follow_page.lua"));
pub(super) static MUTUAL: Step<Safe> =
    Step::read_only("follow_mutual", include_str!("follow_mutual.lua"));

/// What is kept of follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FollowSettings {
    /// How many users one user can follow.
    pub following_max: u32,
    /// How many followers one user can have.
    pub followers_max: u32,
    /// How long they are kept after the last change.
    pub ttl: Duration,
}

/// A user, and since when, in milliseconds since 1970.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edge {
    /// The follower, or the followed one.
    pub user: Member,
    /// By the server's clock.
    pub since_ms: i64,
}

/// What following did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Follow {
    /// From now on.
    New,
    /// It was so before.
    Already,
    /// The user follows `following_max` others.
    FollowsTooMany,
    /// The other has `followers_max` followers. The user does not follow it.
    HasTooMany,
}

/// What no longer following did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Unfollow {
    /// From now on.
    Removed,
    /// It was so before.
    NotFollowed,
}

/// Where a page of followers ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EdgeCursor {
    pub(super) since_ms: i64,
    pub(super) user: Member,
}

/// Some followers, or followed users.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EdgePage {
    /// Who came first is first.
    pub users: Vec<Edge>,
    /// None behind the last.
    pub next: Option<EdgeCursor>,
}

/// Who follows whom.
///
/// Invariant: what the follower said last holds. The followed one's list says the same as soon as
/// every change was confirmed, whatever was lost, delayed or repeated on the way.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use russet::Kit;
/// use russet::social::{FollowSettings, Follows};
/// use std::time::Duration;
///
/// let kit = Kit::embedded(Default::default())?;
/// let ttl = Duration::from_secs(2 * 365 * 24 * 60 * 60);
/// let settings = FollowSettings { following_max: 5000, followers_max: 1_000_000, ttl };
/// let follows = Follows::new(&kit, settings)?;
/// let _new = follows.follow("ann", "ben").await?;
/// let _new = follows.follow("ben", "ann").await?;
/// assert_eq!(follows.mutual("ann", 10).await?, ["ben"]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Follows {
    kit: Kit,
    settings: FollowSettings,
    counts: Arc<Counts>,
}

stats! {
    /// What a handle and its clones have seen in this process.
    FollowStats counted by Counts {
        /// Follows that are new.
        followed,
        /// Follows that were ended.
        unfollowed,
        /// Calls that changed nothing: it was so already.
        unchanged,
        /// Follows that were refused because one side had as many as may be.
        rejected,
        /// Changes that were brought to the other side by [`Follows::repair`].
        repaired,
    }
}

/// A change as both sides know it.
#[derive(Clone, Copy)]
struct Change<'m> {
    user: &'m Member,
    other: &'m Member,
    how: &'static str,
    version: i64,
}

impl Follows {
    /// Follows by these settings. Refuses bounds and a TTL of zero.
    pub fn new(kit: &Kit, settings: FollowSettings) -> Result<Self> {
        check_bound("following_max", settings.following_max, FOLLOWING_MAX)?;
        check_bound("followers_max", settings.followers_max, FOLLOWERS_MAX)?;
        check_ttl("ttl", settings.ttl)?;
        Ok(Follows { kit: kit.clone(), settings, counts: Arc::default() })
    }

    /// What this handle and its clones have seen.
    pub fn stats(&self) -> FollowStats {
        self.counts.stats()
    }

    /// Follows another user. If it fails half-way, calling it again or [`Follows::repair`] does the
    /// rest.
    pub async fn follow(
        &self,
        user: impl Into<Member>,
        other: impl Into<Member>,
    ) -> Result<Follow> {
        let (user, other) = (user.into().checked()?, other.into().checked()?);
        if user == other {
            return Err(Error::invalid("nobody follows himself"));
        }
        let envelope = self.change(&user, &other, "SET").await?;
        if envelope.is("FULL") {
            self.counts.rejected.add(1);
            return Ok(Follow::FollowsTooMany);
        }
        let change =
            Change { user: &user, other: &other, how: "SET", version: version(&envelope)? };
        if !self.apply_to_other(&change).await? {
            let undone = self.change(&user, &other, "CLEAR").await?;
            let version = version(&undone)?;
            self.apply_to_other(&Change { how: "CLEAR", version, ..change }).await?;
            self.counts.rejected.add(1);
            return Ok(Follow::HasTooMany);
        }
        let (follow, counter) = match envelope.is("CHANGED") {
            true => (Follow::New, &self.counts.followed),
            false => (Follow::Already, &self.counts.unchanged),
        };
        counter.add(1);
        Ok(follow)
    }

    /// Follows a user no longer.
    pub async fn unfollow(
        &self,
        user: impl Into<Member>,
        other: impl Into<Member>,
    ) -> Result<Unfollow> {
        let (user, other) = (user.into().checked()?, other.into().checked()?);
        let envelope = self.change(&user, &other, "CLEAR").await?;
        let version = version(&envelope)?;
        self.apply_to_other(&Change { user: &user, other: &other, how: "CLEAR", version }).await?;
        let (unfollow, counter) = match envelope.is("CHANGED") {
            true => (Unfollow::Removed, &self.counts.unfollowed),
            false => (Unfollow::NotFollowed, &self.counts.unchanged),
        };
        counter.add(1);
        Ok(unfollow)
    }

    /// Tells the other sides of changes of a user that were not confirmed, at most 100, and says of
    /// how many.
    pub async fn repair(&self, user: impl Into<Member>) -> Result<u64> {
        let user = user.into().checked()?;
        let pending = self.look(&user, &[]).await?.list("pending")?;
        let mut repaired = 0;
        for change in pending.chunks_exact(3) {
            let (Some(other), Some(how), Some(version)) =
                (change[0].as_bytes(), change[1].as_bytes(), change[2].as_double())
            else {
                return Err(Error::Corrupt("a pending follow".into()));
            };
            let (other, how) = (Member::from(other), if how == b"SET" { "SET" } else { "CLEAR" });
            // Milliseconds are whole and exact.
            let change = Change { user: &user, other: &other, how, version: version as i64 };
            self.complete(&change).await?;
            repaired += 1;
        }
        self.counts.repaired.add(repaired);
        observe::count("redis.follows.repaired.count", "social.follows", repaired);
        Ok(repaired)
    }

    /// Whether one user follows another, as the follower said last.
    pub async fn is_following(
        &self,
        user: impl Into<Member>,
        other: impl Into<Member>,
    ) -> Result<bool> {
        let (user, other) = (user.into().checked()?, other.into().checked()?);
        Ok(ones(self.look(&user, &[&other]).await?.list("follows")?) == [true])
    }

    /// Whether each of two follows the other.
    pub async fn is_mutual(
        &self,
        user: impl Into<Member>,
        other: impl Into<Member>,
    ) -> Result<bool> {
        let (user, other) = (user.into().checked()?, other.into().checked()?);
        let mut envelope = self.look(&user, &[&other]).await?;
        let follows = ones(envelope.list("follows")?);
        Ok(follows == [true] && ones(envelope.list("followed_by")?) == [true])
    }

    /// How many a user follows, and how many follow it.
    pub async fn counts(&self, user: impl Into<Member>) -> Result<(u64, u64)> {
        let envelope = self.look(&user.into().checked()?, &[]).await?;
        Ok((envelope.count("following")?, envelope.count("followers")?))
    }

    /// Users who follow a user and are followed by it, at most 1,000.
    pub async fn mutual(&self, user: impl Into<Member>, count: u32) -> Result<Vec<Member>> {
        check_count(count)?;
        if count == 0 {
            return Ok(Vec::new());
        }
        let keys = self.keys(&user.into().checked()?)?;
        let call = self.kit.step(&MUTUAL).key(keys.key("following")).key(keys.key("followers"));
        let users = call.arg(count).run().await?.list("users")?;
        Ok(users.iter().filter_map(|user| user.as_bytes().map(Member::from)).collect())
    }

    /// Users whom both follow, at most 1,000. The two are in different slots: it reads what the
    /// first follows page by page and asks for each page at the second.
    pub async fn common(
        &self,
        user: impl Into<Member>,
        other: impl Into<Member>,
        count: u32,
    ) -> Result<Vec<Member>> {
        check_count(count)?;
        let (user, other) = (user.into().checked()?, other.into().checked()?);
        let (mut common, mut cursor) = (Vec::new(), None);
        while common.len() < count as usize {
            let page = self.following(&user, cursor.as_ref(), COUNT_MAX).await?;
            let followed: Vec<&Member> = page.users.iter().map(|edge| &edge.user).collect();
            let follows = ones(self.look(&other, &followed).await?.list("follows")?);
            let both = followed.iter().zip(follows).filter(|(_, follows)| *follows);
            common.extend(both.map(|(user, _)| (*user).clone()));
            let Some(next) = page.next else { break };
            cursor = Some(next);
        }
        common.truncate(count as usize);
        Ok(common)
    }

    /// Whom a user follows, the first first.
    pub async fn following(
        &self,
        user: impl Into<Member>,
        after: Option<&EdgeCursor>,
        count: u32,
    ) -> Result<EdgePage> {
        self.page(user.into(), "following", after, count).await
    }

    /// Who follows a user, the first first.
    pub async fn followers(
        &self,
        user: impl Into<Member>,
        after: Option<&EdgeCursor>,
        count: u32,
    ) -> Result<EdgePage> {
        self.page(user.into(), "followers", after, count).await
    }

    async fn page(
        &self,
        user: Member,
        part: &'static str,
        after: Option<&EdgeCursor>,
        count: u32,
    ) -> Result<EdgePage> {
        check_count(count)?;
        if count == 0 {
            return Err(Error::invalid("a page of none has no end"));
        }
        let call = self.kit.step(&PAGE).key(self.keys(&user.checked()?)?.key(part)).arg(count);
        let call = match after {
            Some(cursor) => call.arg(cursor.since_ms).arg(&cursor.user),
            None => call.arg("").arg(""),
        };
        let users = edges(&call.run().await?.list("users")?)?;
        let last = users.last().filter(|_last| users.len() == count as usize).cloned();
        let next = last.map(|Edge { user, since_ms }| EdgeCursor { since_ms, user });
        Ok(EdgePage { users, next })
    }

    async fn change(&self, user: &Member, other: &Member, how: &'static str) -> Result<Envelope> {
        let keys = self.keys(user)?;
        let call = self.kit.step(&CHANGE).key(keys.key("following")).key(keys.key("pending"));
        let call = call.key(keys.key("version")).arg(other).arg(how);
        call.arg(self.settings.following_max).arg(self.settings.ttl).run().await
    }

    /// Applies it to the other side, and takes the change back if that is full: false then.
    async fn complete(&self, change: &Change<'_>) -> Result<bool> {
        let is_done = self.apply_to_other(change).await?;
        if !is_done {
            let undone = self.change(change.user, change.other, "CLEAR").await?;
            let version = version(&undone)?;
            self.apply_to_other(&Change { how: "CLEAR", version, ..*change }).await?;
        }
        Ok(is_done)
    }

    /// Applies it to the other side and confirms it. False if the other side is full.
    async fn apply_to_other(&self, change: &Change<'_>) -> Result<bool> {
        if change.version == 0 {
            return Ok(true);
        }
        let keys = self.keys(change.other)?;
        let call = self.kit.step(&APPLY).key(keys.key("followers")).key(keys.key("gone"));
        let call = call.arg(change.user).arg(change.how).arg(change.version);
        let call = call.arg(self.settings.followers_max).arg(self.settings.ttl).arg(GONE_TTL);
        if call.run().await?.is("FULL") {
            return Ok(false);
        }
        let call = self.kit.step(&CONFIRM).key(self.keys(change.user)?.key("pending"));
        call.arg(change.other).arg(change.version).run().await?;
        Ok(true)
    }

    async fn look(&self, user: &Member, others: &[&Member]) -> Result<Envelope> {
        let keys = self.keys(user)?;
        let call = self.kit.step(&LOOK).key(keys.key("following")).key(keys.key("followers"));
        let call = call.key(keys.key("pending"));
        others.iter().fold(call, |call, other| call.arg(*other)).run().await
    }

    fn keys(&self, user: &Member) -> Result<Keys> {
        self.kit.keys(FAMILY, user)
    }
}

fn version(envelope: &Envelope) -> Result<i64> {
    envelope.int("version")
}

fn ones(list: Vec<Reply>) -> Vec<bool> {
    list.into_iter().map(|reply| reply.as_int() == Some(1)).collect()
}

fn check_count(count: u32) -> Result<()> {
    if count > COUNT_MAX {
        return Err(Error::invalid(format!("at most {COUNT_MAX} users at once")));
    }
    Ok(())
}
