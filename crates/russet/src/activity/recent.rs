//! The latest items of a user: searches, products, notifications.

use crate::error::{Error, Result};
use crate::key::{Family, Scope};
use crate::kit::Kit;
use crate::member::Member;
use crate::observe::stats;
use crate::retry::RequestId;
use crate::spread::{check_bound, check_ttl};
use crate::step::{Safe, Step, WithRequestId};
use std::time::Duration;

const FAMILY: Family = Family { purpose: "activity.recent", version: 1 };
/// The most items of a list.
const ITEMS_MAX: u32 = 10_000;

pub(super) static PUSH: Step<WithRequestId> =
    Step::new("recent_push", include_str!("recent_push.lua"));
pub(super) static LIST: Step<Safe> =
    Step::read_only("recent_list", include_str!("recent_list.lua"));
pub(super) static REMOVE: Step<Safe> =
    Step::new("recent_remove", include_str!("recent_remove.lua"));

/// What happens to an item that is in the list already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeats {
    /// It stays, and stands in the list twice.
    Keep,
    /// It moves to the front.
    Move,
}

/// What is kept for each user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecentSettings {
    /// How many items a list has; the oldest go first.
    pub items_max: u32,
    /// How long the list is kept after the last item.
    pub ttl: Duration,
    /// What becomes of an item that is in the list already.
    pub repeats: Repeats,
}

/// Lists of the latest items, the last one first.
///
/// Invariant: a list never has more than `items_max` items, and never lives on without a deadline.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use russet::Kit;
/// use russet::activity::{Recent, RecentSettings, Repeats};
/// use std::time::Duration;
///
/// let kit = Kit::embedded(Default::default())?;
/// let ttl = Duration::from_secs(30 * 24 * 60 * 60);
/// let settings = RecentSettings { items_max: 20, ttl, repeats: Repeats::Move };
/// let searches = Recent::new(&kit, settings)?;
/// for text in ["redis", "rust", "redis"] {
///     searches.push("ann", text, None).await?;
/// }
/// assert_eq!(searches.list("ann", 10).await?, ["redis", "rust"]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Recent {
    kit: Kit,
    settings: RecentSettings,
    counts: Counts,
}

stats! {
    /// What a handle has seen in this process.
    RecentStats counted by Counts {
        /// Items put at the front.
        pushed,
        /// Items taken out.
        removed,
    }
}

impl Recent {
    /// Lists by these settings. Refuses those without sense: no items, a TTL of zero.
    pub fn new(kit: &Kit, settings: RecentSettings) -> Result<Self> {
        check_bound("items_max", settings.items_max, ITEMS_MAX)?;
        check_ttl("ttl", settings.ttl)?;
        Ok(Recent { kit: kit.clone(), settings, counts: Counts::default() })
    }

    /// What this handle has seen.
    pub fn stats(&self) -> RecentStats {
        self.counts.stats()
    }

    /// Adds an item and says how many there are now.
    pub async fn push(
        &self,
        of: impl Into<Scope>,
        item: impl Into<Member>,
        request: Option<&RequestId>,
    ) -> Result<u64> {
        let (keys, item) = (self.kit.keys(FAMILY, of)?, item.into().checked()?);
        let RecentSettings { items_max, ttl, repeats } = self.settings;
        let repeats = match repeats {
            Repeats::Keep => "KEEP",
            Repeats::Move => "MOVE",
        };
        let call = self.kit.step_of_request(&PUSH, &keys, request).key(keys.key("items"));
        let reply = call.about(&item).arg(items_max).arg(ttl).arg(repeats).run().await?;
        self.counts.pushed.add(1);
        reply.count("items")
    }

    /// The latest `count` items.
    pub async fn list(&self, of: impl Into<Scope>, count: u32) -> Result<Vec<Member>> {
        let keys = self.kit.keys(FAMILY, of)?;
        if count == 0 {
            return Ok(Vec::new());
        }
        let call = self.kit.step(&LIST).key(keys.key("items")).arg(count.min(ITEMS_MAX));
        let items = call.run().await?.list("items")?.into_iter();
        items.map(|item| Ok(Member::from(item.into_bytes()?.ok_or_else(no_item)?))).collect()
    }

    /// Takes an item off the list; whether it was there.
    pub async fn remove(&self, of: impl Into<Scope>, item: impl Into<Member>) -> Result<bool> {
        let call = self.kit.step(&REMOVE).key(self.kit.keys(FAMILY, of)?.key("items"));
        let removed = call.arg(&item.into().checked()?).run().await?.count("removed")?;
        self.counts.removed.add(removed);
        Ok(removed > 0)
    }

    /// Forgets all items; how many there were.
    pub async fn clear(&self, of: impl Into<Scope>) -> Result<u64> {
        let call = self.kit.step(&REMOVE).key(self.kit.keys(FAMILY, of)?.key("items"));
        let removed = call.run().await?.count("removed")?;
        self.counts.removed.add(removed);
        Ok(removed)
    }
}

fn no_item() -> Error {
    Error::Corrupt("an item of a list is nil".into())
}
