//! Feeds: a post goes to the inboxes of all followers, and readers scroll through theirs.

use super::follows::{EdgeCursor, Follows};
use super::likes::edges;
use crate::error::{Error, Result};
use crate::key::{Family, Key, Keys, hex};
use crate::kit::Kit;
use crate::member::Member;
use crate::observe::{self, stats};
use crate::spread::{check_bound, check_ttl};
use crate::step::{Safe, Step};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;
use tokio::task::JoinSet;

const FAMILY: Family = Family { purpose: "social.feed", version: 1 };
/// The most posts of an inbox.
const INBOX_MAX: u32 = 100_000;
/// The most posts of an author that are not with all followers yet.
const UNFINISHED_MAX: u32 = 100;
/// Followers between two notes of how far a post came: so many are served again after a crash.
const FOLLOWERS_PAGE: u32 = 500;
/// Inboxes that are written at the same time.
const CONCURRENCY_MAX: usize = 32;
/// The most posts of a page.
const PAGE_MAX: u32 = 1000;

pub(super) static BEGIN: Step<Safe> = Step::new("feed_begin", include_str!("feed_begin.lua"));
pub(super) static PUSH: Step<Safe> = Step::new("feed_push", include_str!("feed_push.lua"));
pub(super) static PROGRESS: Step<Safe> =
    Step::new("feed_progress", include_str!("feed_progress.lua"));
pub(super) static UNFINISHED: Step<Safe> =
    Step::read_only("feed_unfinished", include_str!("feed_unfinished.lua"));
pub(super) static SCROLL: Step<Safe> =
    Step::read_only("feed_scroll", include_str!("feed_scroll.lua"));

/// What is kept of feeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeedSettings {
    /// How many posts an inbox keeps, and the list of an author's own; the oldest go first.
    pub inbox_max: u32,
    /// How long an inbox is kept after its last post.
    pub ttl: Duration,
}

/// A post and its moment, in milliseconds since 1970.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Post {
    /// As it was published.
    pub id: Member,
    /// When, by the server's clock, in milliseconds since 1970.
    pub at_ms: i64,
}

/// What became of a post.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Published {
    /// It is with all who followed its author. `followers` were served by this call.
    Done {
        /// When it was first published, in milliseconds since 1970.
        at_ms: i64,
        /// Inboxes that this call wrote to.
        followers: u64,
    },
    /// A hundred others of the author are not with all followers yet: finish these first.
    Busy,
}

/// Where a page ends: the place behind a post. As text it can be handed to a client.
///
/// ```
/// use russet::social::FeedCursor;
///
/// let cursor: FeedCursor = "1783012441000-706f73742d31".parse()?;
/// assert_eq!(cursor.to_string(), "1783012441000-706f73742d31");
/// # Ok::<(), russet::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeedCursor {
    at_ms: i64,
    post: Member,
}

impl fmt::Display for FeedCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let post = hex(self.post.as_bytes());
        write!(f, "{}-{}", self.at_ms, String::from_utf8_lossy(&post))
    }
}

impl FromStr for FeedCursor {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let read = || {
            let (at_ms, post) = text.split_once('-')?;
            Some(FeedCursor { at_ms: at_ms.parse().ok()?, post: Member::from(unhex(post)?) })
        };
        read().ok_or_else(|| Error::invalid("the cursor"))
    }
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let bytes = text.as_bytes();
    let pairs = bytes.chunks(2).map(|pair| {
        let digits = std::str::from_utf8(pair).ok().filter(|pair| pair.len() == 2)?;
        u8::from_str_radix(digits, 16).ok()
    });
    pairs.collect()
}

/// Some posts, the newest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeedPage {
    /// The newest first.
    pub posts: Vec<Post>,
    /// None behind the last.
    pub next: Option<FeedCursor>,
}

/// Inboxes of readers, filled by those whom they follow.
///
/// Invariant: scrolling from page to page shows every post that was there at the start once,
/// whatever is published meanwhile; and a post whose publication was cut off is brought to the rest
/// of the followers by publishing it again.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use russet::Kit;
/// use russet::social::{Feed, FeedSettings, FollowSettings, Follows};
/// use std::time::Duration;
///
/// let kit = Kit::embedded(Default::default())?;
/// let ttl = Duration::from_secs(90 * 24 * 60 * 60);
/// let settings = FollowSettings { following_max: 5000, followers_max: 1_000_000, ttl };
/// let follows = Follows::new(&kit, settings)?;
/// let feed = Feed::new(&kit, &follows, FeedSettings { inbox_max: 1000, ttl })?;
/// let _new = follows.follow("ann", "ben").await?;
/// let _published = feed.publish("ben", "post-1").await?;
/// let page = feed.scroll("ann", None, 10).await?;
/// assert_eq!(page.posts[0].id, "post-1");
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Feed {
    kit: Kit,
    follows: Follows,
    settings: FeedSettings,
    counts: Counts,
}

stats! {
    /// What a handle has seen in this process.
    FeedStats counted by Counts {
        /// Posts that reached the last follower.
        published,
        /// Inboxes that got a post.
        delivered,
        /// Posts that were refused because too many others were unfinished.
        busy,
        /// Pages that were read.
        pages,
    }
}

impl Feed {
    /// Feeds of those who follow each other there.
    pub fn new(kit: &Kit, follows: &Follows, settings: FeedSettings) -> Result<Self> {
        check_bound("inbox_max", settings.inbox_max, INBOX_MAX)?;
        check_ttl("ttl", settings.ttl)?;
        let (follows, counts) = (follows.clone(), Counts::default());
        Ok(Feed { kit: kit.clone(), follows, settings, counts })
    }

    /// What this handle has seen.
    pub fn stats(&self) -> FeedStats {
        self.counts.stats()
    }

    /// Brings a post to all followers of its author. It takes a call per follower: a background
    /// task's work. Called again for the same post, it goes on where it was cut off.
    pub async fn publish(
        &self,
        author: impl Into<Member>,
        post: impl Into<Member>,
    ) -> Result<Published> {
        let (author, post) = (author.into().checked()?, post.into().checked()?);
        let keys = self.keys(&author)?;
        let call = self.kit.step(&BEGIN).key(keys.key("posts")).key(keys.key("unfinished"));
        let call = call.key(keys.key("cursors")).arg(&post).arg(self.settings.inbox_max);
        let mut envelope = call.arg(UNFINISHED_MAX).arg(self.settings.ttl).run().await?;
        match envelope.status() {
            "DONE" => return Ok(Published::Done { at_ms: envelope.int("at_ms")?, followers: 0 }),
            "BUSY" => {
                self.counts.busy.add(1);
                return Ok(Published::Busy);
            }
            "BEGUN" => {}
            _ => return Err(envelope.unexpected()),
        }
        let at_ms = envelope.int("at_ms")?;
        let mut cursor = read_cursor(&envelope.string("cursor")?)?;
        let post = Post { id: post, at_ms };
        let mut followers = 0;
        loop {
            let page = self.follows.followers(&author, cursor.as_ref(), FOLLOWERS_PAGE).await?;
            followers += page.users.len() as u64;
            self.deliver(&post, page.users.into_iter().map(|edge| edge.user)).await?;
            cursor = page.next;
            let text = cursor.as_ref().map(cursor_text).unwrap_or_default();
            let call = self.kit.step(&PROGRESS).key(keys.key("unfinished"));
            let call = call.key(keys.key("cursors")).arg(&post.id).arg(text);
            call.arg(self.settings.ttl).run().await?;
            if cursor.is_none() {
                self.counts.published.add(1);
                self.counts.delivered.add(followers);
                observe::count("redis.feed.delivered.count", "social.feed", followers);
                return Ok(Published::Done { at_ms, followers });
            }
        }
    }

    /// Posts of an author whose publication was cut off, the oldest first.
    pub async fn unfinished(&self, author: impl Into<Member>) -> Result<Vec<Member>> {
        let keys = self.keys(&author.into().checked()?)?;
        let call = self.kit.step(&UNFINISHED).key(keys.key("unfinished"));
        let posts = call.run().await?.list("posts")?;
        Ok(posts.iter().filter_map(|post| post.as_bytes().map(Member::from)).collect())
    }

    /// A page of a reader's inbox, from the newest on or behind an earlier page; at most 1,000.
    pub async fn scroll(
        &self,
        reader: impl Into<Member>,
        after: Option<&FeedCursor>,
        count: u32,
    ) -> Result<FeedPage> {
        let key = self.keys(&reader.into().checked()?)?.key("inbox");
        self.page(key, after, count).await
    }

    /// A page of an author's own posts.
    pub async fn posts(
        &self,
        author: impl Into<Member>,
        after: Option<&FeedCursor>,
        count: u32,
    ) -> Result<FeedPage> {
        let key = self.keys(&author.into().checked()?)?.key("posts");
        self.page(key, after, count).await
    }

    async fn page(&self, key: Key, after: Option<&FeedCursor>, count: u32) -> Result<FeedPage> {
        if count == 0 || count > PAGE_MAX {
            return Err(Error::invalid(format!("a page has 1 to {PAGE_MAX} posts")));
        }
        self.counts.pages.add(1);
        let call = self.kit.step(&SCROLL).key(key).arg(count);
        let call = match after {
            Some(cursor) => call.arg(cursor.at_ms).arg(&cursor.post),
            None => call.arg("").arg(""),
        };
        let found = edges(&call.run().await?.list("posts")?)?.into_iter();
        let posts: Vec<Post> = found.map(|it| Post { id: it.user, at_ms: it.since_ms }).collect();
        let last = posts.last().filter(|_last| posts.len() == count as usize).cloned();
        let next = last.map(|Post { id, at_ms }| FeedCursor { at_ms, post: id });
        Ok(FeedPage { posts, next })
    }

    /// Puts a post into inboxes, some at a time. All are done when it returns, or it failed.
    async fn deliver(&self, post: &Post, readers: impl Iterator<Item = Member>) -> Result<()> {
        let mut tasks: JoinSet<Result<()>> = JoinSet::new();
        for reader in readers {
            if tasks.len() == CONCURRENCY_MAX {
                ended(tasks.join_next().await)?;
            }
            let (kit, post, settings) = (self.kit.clone(), post.clone(), self.settings);
            let inbox = self.keys(&reader)?.key("inbox");
            tasks.spawn(async move {
                let call = kit.step(&PUSH).key(inbox).arg(&post.id).arg(post.at_ms);
                call.arg(settings.inbox_max).arg(settings.ttl).run().await.map(drop)
            });
        }
        while !tasks.is_empty() {
            ended(tasks.join_next().await)?;
        }
        Ok(())
    }

    fn keys(&self, user: &Member) -> Result<Keys> {
        self.kit.keys(FAMILY, user)
    }
}

fn ended(task: Option<Result<Result<()>, tokio::task::JoinError>>) -> Result<()> {
    match task {
        Some(Ok(result)) => result,
        Some(Err(error)) => Err(Error::Unknown(error.to_string())),
        None => Ok(()),
    }
}

/// As it is stored: the moment, then the user.
fn cursor_text(cursor: &EdgeCursor) -> String {
    FeedCursor { at_ms: cursor.since_ms, post: cursor.user.clone() }.to_string()
}

fn read_cursor(text: &str) -> Result<Option<EdgeCursor>> {
    if text.is_empty() {
        return Ok(None);
    }
    let corrupt = |_error| Error::Corrupt("how far a post came".into());
    let FeedCursor { at_ms, post } = text.parse().map_err(corrupt)?;
    Ok(Some(EdgeCursor { since_ms: at_ms, user: post }))
}
