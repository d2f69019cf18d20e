//! What is due to expire: drafts, reservations, approvals. A key that expires tells nobody; an
//! index of deadlines can be asked.

use crate::error::{Error, Result};
use crate::key::{Family, Keys, Scope};
use crate::kit::Kit;
use crate::member::Member;
use crate::observe::stats;
use crate::reply::{Envelope, Reply};
use crate::spread::{Spread, check_bound, check_shards, check_ttl};
use crate::step::{Safe, Step, StepCall, WithRequestId};
use std::fmt;
use std::time::Duration;

const FAMILY: Family = Family { purpose: "activity.expiry", version: 1 };
/// The most items of an index.
const ITEMS_MAX: u32 = 100_000_000;
/// The most items that one call returns.
const COUNT_MAX: u32 = 1000;

pub(super) static PUT: Step<Safe> = Step::new("expiry_put", include_str!("expiry_put.lua"));
pub(super) static RENEW: Step<Safe> = Step::new("expiry_renew", include_str!("expiry_renew.lua"));
pub(super) static READ: Step<Safe> =
    Step::read_only("expiry_read", include_str!("expiry_read.lua"));
pub(super) static REMOVE: Step<Safe> =
    Step::new("expiry_remove", include_str!("expiry_remove.lua"));
pub(super) static TAKE: Step<WithRequestId> =
    Step::new("expiry_take", include_str!("expiry_take.lua"));

/// What an index takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExpirySettings {
    /// How many items it has at most.
    pub items_max: u32,
    /// How many bytes a state has at most.
    pub state_bytes_max: u32,
    /// How long items outlive the last deadline of all if nobody handles them.
    pub grace: Duration,
    /// Over how many slots it is spread.
    pub shards: u32,
}

/// An item with its state.
#[derive(Clone, PartialEq, Eq)]
pub struct Item {
    /// What it was put under.
    pub id: Member,
    /// What it was put with.
    pub state: Vec<u8>,
    /// By the server's clock, in milliseconds since 1970.
    pub expires_at_ms: i64,
}

/// Says nothing of its content.
impl fmt::Debug for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Item");
        shown.field("expires_at_ms", &self.expires_at_ms).finish_non_exhaustive()
    }
}

/// What became of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Put {
    /// There was none of this id.
    New {
        /// By the server's clock, in milliseconds since 1970.
        expires_at_ms: i64,
    },
    /// State and deadline of an earlier one are gone.
    Replaced {
        /// By the server's clock, in milliseconds since 1970.
        expires_at_ms: i64,
    },
    /// There are `items_max` others.
    Full,
}

/// What became of a renewal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Renewed {
    /// It has a new deadline.
    Renewed {
        /// By the server's clock, in milliseconds since 1970.
        expires_at_ms: i64,
    },
    /// It is due, or gone: too late.
    Missing,
}

/// What became of the removal of an item that was due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum RemovedDue {
    /// It is gone, with its state.
    Removed,
    /// It was put anew since it was read, and stays.
    Renewed,
    /// It was gone before.
    Missing,
}

/// Items with deadlines, by the server's clock.
///
/// Invariant: an item and its state come and go in one piece, and one that was renewed is never
/// removed for its old deadline.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use russet::activity::{ExpiryIndex, ExpirySettings};
/// use russet::{Kit, ManualTime, Options};
/// use std::time::Duration;
///
/// let time = ManualTime::new();
/// let kit = Kit::builder().embedded_at(Options::default(), &time)?;
/// let grace = Duration::from_secs(24 * 60 * 60);
/// let settings = ExpirySettings { items_max: 1000, state_bytes_max: 1024, grace, shards: 1 };
/// let drafts = ExpiryIndex::new(&kit, "quotes", settings)?;
/// let _put = drafts.put("quote-1", "state", Duration::from_secs(60)).await?;
/// assert!(drafts.due(10).await?.is_empty());
/// time.advance(Duration::from_secs(61));
/// for item in drafts.due(10).await? {
///     // Handle it, then:
///     let _removed = drafts.remove_due(&item).await?;
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct ExpiryIndex {
    kit: Kit,
    spread: Spread,
    settings: ExpirySettings,
    counts: Counts,
}

stats! {
    /// What a handle has seen in this process.
    ExpiryStats counted by Counts {
        /// Items that were put, anew or in place of others.
        put,
        /// Items that got a new deadline.
        renewed,
        /// Items that were refused because there were as many as may be.
        rejected,
        /// Items that were removed one by one.
        removed,
        /// Items that were taken when they were due.
        taken,
    }
}

impl ExpiryIndex {
    /// The index of this name. Refuses settings without sense: no items, a grace of zero.
    pub fn new(kit: &Kit, name: impl Into<Scope>, settings: ExpirySettings) -> Result<Self> {
        check_bound("items_max", settings.items_max, ITEMS_MAX)?;
        check_ttl("grace", settings.grace)?;
        check_shards(settings.shards)?;
        let spread = Spread::new(FAMILY, name.into(), settings.shards);
        spread.keys(kit, 0)?;
        Ok(ExpiryIndex { kit: kit.clone(), spread, settings, counts: Counts::default() })
    }

    /// What this handle has seen.
    pub fn stats(&self) -> ExpiryStats {
        self.counts.stats()
    }

    /// Puts an item, or replaces its state and deadline.
    pub async fn put(
        &self,
        id: impl Into<Member>,
        state: impl AsRef<[u8]>,
        expires_in: Duration,
    ) -> Result<Put> {
        let (id, state) = (id.into().checked()?, state.as_ref());
        if state.len() > self.settings.state_bytes_max as usize {
            let most = self.settings.state_bytes_max;
            return Err(Error::invalid(format!("a state is over {most} bytes")));
        }
        check_ttl("expires_in", expires_in)?;
        let call = self.on_item(&PUT, &id)?.arg(state).arg(expires_in);
        let call = call.arg(self.spread.share(self.settings.items_max)).arg(self.settings.grace);
        let envelope = call.run().await?;
        let put = match envelope.status() {
            "NEW" => Put::New { expires_at_ms: envelope.int("expires_at_ms")? },
            "REPLACED" => Put::Replaced { expires_at_ms: envelope.int("expires_at_ms")? },
            "FULL" => Put::Full,
            _ => return Err(envelope.unexpected()),
        };
        let counter = if put == Put::Full { &self.counts.rejected } else { &self.counts.put };
        counter.add(1);
        Ok(put)
    }

    /// Moves the deadline of an item that is not due; never to an earlier moment.
    pub async fn renew(&self, id: impl Into<Member>, expires_in: Duration) -> Result<Renewed> {
        check_ttl("expires_in", expires_in)?;
        let call = self.on_item(&RENEW, &id.into().checked()?)?;
        let envelope = call.arg(expires_in).arg(self.settings.grace).run().await?;
        match envelope.status() {
            "RENEWED" => {
                self.counts.renewed.add(1);
                Ok(Renewed::Renewed { expires_at_ms: envelope.int("expires_at_ms")? })
            }
            "MISSING" => Ok(Renewed::Missing),
            _ => Err(envelope.unexpected()),
        }
    }

    /// An item, due or not.
    pub async fn get(&self, id: impl Into<Member>) -> Result<Option<Item>> {
        let id = id.into().checked()?;
        let keys = self.spread.keys_of(&self.kit, &id)?;
        let call = self.at(&READ, &keys).arg(1).arg(&id);
        Ok(items(call.run().await?)?.pop())
    }

    /// Removes an item, due or not; whether it was there.
    pub async fn remove(&self, id: impl Into<Member>) -> Result<bool> {
        let call = self.on_item(&REMOVE, &id.into().checked()?)?;
        let was_there = call.run().await?.is("REMOVED");
        self.counts.removed.add(u64::from(was_there));
        Ok(was_there)
    }

    /// Items that are due, the longest due of each shard first. Handle each, then
    /// [`ExpiryIndex::remove_due`] it: if the program dies in between it is due again.
    pub async fn due(&self, count: u32) -> Result<Vec<Item>> {
        let mut due = Vec::new();
        for shard in self.spread.shards() {
            let Some(left) = left(count, due.len())? else { break };
            let keys = self.spread.keys(&self.kit, shard)?;
            due.extend(items(self.at(&READ, &keys).arg(left).run().await?)?);
        }
        Ok(due)
    }

    /// Removes an item that was due, unless it was put or renewed since.
    pub async fn remove_due(&self, item: &Item) -> Result<RemovedDue> {
        let envelope = self.on_item(&REMOVE, &item.id)?.arg(item.expires_at_ms).run().await?;
        match envelope.status() {
            "REMOVED" => {
                self.counts.removed.add(1);
                Ok(RemovedDue::Removed)
            }
            "RENEWED" => Ok(RemovedDue::Renewed),
            "MISSING" => Ok(RemovedDue::Missing),
            _ => Err(envelope.unexpected()),
        }
    }

    /// Removes items that are due and returns them: each to one caller, who must not lose them. All
    /// are of one shard.
    pub async fn take_due(&self, count: u32) -> Result<Vec<Item>> {
        for shard in self.spread.shards() {
            let Some(count) = left(count, 0)? else { break };
            let keys = self.spread.keys(&self.kit, shard)?;
            let call = self.kit.step_of_own_request(&TAKE, &keys);
            let call = call.key(keys.key("deadlines")).key(keys.key("states")).arg(count);
            let taken = items(call.run().await?)?;
            self.counts.taken.add(taken.len() as u64);
            if !taken.is_empty() {
                return Ok(taken);
            }
        }
        Ok(Vec::new())
    }

    /// How many items there are, due or not.
    pub async fn len(&self) -> Result<u64> {
        let mut total = 0;
        for shard in self.spread.shards() {
            let keys = self.spread.keys(&self.kit, shard)?;
            total += self.at(&READ, &keys).arg(1).run().await?.count("total")?;
        }
        Ok(total)
    }

    /// Whether it has no items, due or not.
    pub async fn is_empty(&self) -> Result<bool> {
        Ok(self.len().await? == 0)
    }

    fn on_item(&self, step: &'static Step<Safe>, id: &Member) -> Result<StepCall<'_, Safe>> {
        let keys = self.spread.keys_of(&self.kit, id)?;
        Ok(self.at(step, &keys).arg(id))
    }

    fn at(&self, step: &'static Step<Safe>, keys: &Keys) -> StepCall<'_, Safe> {
        self.kit.step(step).key(keys.key("deadlines")).key(keys.key("states"))
    }
}

/// How many more are wanted; None if none.
fn left(count: u32, found: usize) -> Result<Option<u32>> {
    if count > COUNT_MAX {
        return Err(Error::invalid(format!("count is at most {COUNT_MAX}")));
    }
    let found = u32::try_from(found).unwrap_or(u32::MAX);
    Ok(Some(count.saturating_sub(found)).filter(|left| *left > 0))
}

fn items(mut envelope: Envelope) -> Result<Vec<Item>> {
    let list = envelope.list("items")?;
    let item = |parts: &[Reply]| {
        let (id, state) = (parts[0].as_bytes()?, parts[2].as_bytes()?);
        // Milliseconds are whole and exact.
        let expires_at_ms = parts[1].as_double()? as i64;
        Some(Item { id: Member::from(id), state: state.to_vec(), expires_at_ms })
    };
    let items: Option<Vec<Item>> = list.chunks_exact(3).map(item).collect();
    items.ok_or_else(|| Error::Corrupt("an item of an expiry index".into()))
}
