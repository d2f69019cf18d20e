//! Sets of ids by what they have in common: open orders of a customer, members of a role.

use crate::error::{Error, Result};
use crate::key::{Family, Key, Keys, Scope};
use crate::kit::Kit;
use crate::member::Member;
use crate::observe::{self, stats};
use crate::reply::{Envelope, Reply};
use crate::spread::{check_bound, check_ttl};
use crate::step::{Safe, Step};
use std::time::Duration;

const FAMILY: Family = Family { purpose: "object.index", version: 1 };
/// The most members of a set: combining some of them looks at all.
const MEMBERS_MAX: u32 = 20_000;
/// The most sets that are combined.
const SETS_MAX: usize = 8;
/// The most members that one call returns or asks for.
const COUNT_MAX: u32 = 1000;

pub(super) static CHANGE: Step<Safe> = Step::new("index_change", include_str!("index_change.lua"));
pub(super) static MOVE: Step<Safe> = Step::new("index_move", include_str!("index_move.lua"));
pub(super) static LOOK: Step<Safe> = Step::read_only("index_look", include_str!("index_look.lua"));
pub(super) static SCAN: Step<Safe> = Step::read_only("index_scan", include_str!("index_scan.lua"));
pub(super) static COMBINE: Step<Safe> =
    Step::read_only("index_combine", include_str!("index_combine.lua"));

/// What bounds the sets of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexSettings {
    /// How many members each set has.
    pub members_max: u32,
    /// How long a set lives after its last new member.
    pub ttl: Duration,
}

/// What adding did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Added {
    /// It is in the set from now on.
    New,
    /// It was before.
    Already,
    /// The set has `members_max` others.
    Full,
}

/// What moving did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Moved {
    /// It is in the other set.
    Moved,
    /// It was there before.
    Already,
    /// It is in neither.
    Missing,
    /// The other set has `members_max` others: it stays.
    Full,
}

/// How sets are combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Combine {
    /// Members of all of them.
    All,
    /// Members of any of them.
    Any,
    /// Members of the first and of none of the others.
    First,
}

/// Some members of a set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScanPage {
    /// One may come twice if the set changes meanwhile.
    pub members: Vec<Member>,
    /// None at the end.
    pub next: Option<u64>,
}

stats! {
    /// What a handle has seen in this process.
    IndexStats counted by Counts {
        /// Members that were new to their set.
        added,
        /// Members that went from one set to another.
        moved,
        /// Members that were taken out.
        removed,
        /// Members that were neither added nor moved because the set was full.
        rejected,
    }
}

/// Sets of one scope, say of a tenant. They share a slot, so that they can be combined.
///
/// Invariant: no set is larger than its bound, and no call reads a whole set without one.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use russet::Kit;
/// use russet::object::{Combine, Index, IndexSettings};
/// use std::time::Duration;
///
/// let kit = Kit::embedded(Default::default())?;
/// let ttl = Duration::from_secs(30 * 24 * 60 * 60);
/// let orders = Index::new(&kit, "acme", IndexSettings { members_max: 10_000, ttl })?;
/// let _new = orders.add("open", "order-1").await?;
/// let _new = orders.add("urgent", "order-1").await?;
/// let found = orders.combine(Combine::All, &["open", "urgent"], 10).await?;
/// assert_eq!(found, ["order-1"]);
/// let _moved = orders.move_to("open", "closed", "order-1").await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Index {
    kit: Kit,
    keys: Keys,
    settings: IndexSettings,
    counts: Counts,
}

impl Index {
    /// The sets of a scope. Refuses bounds and a TTL of zero.
    pub fn new(kit: &Kit, scope: impl Into<Scope>, settings: IndexSettings) -> Result<Self> {
        check_bound("members_max", settings.members_max, MEMBERS_MAX)?;
        check_ttl("ttl", settings.ttl)?;
        let (keys, counts) = (kit.keys(FAMILY, scope)?, Counts::default());
        Ok(Index { kit: kit.clone(), keys, settings, counts })
    }

    /// What this handle has seen.
    pub fn stats(&self) -> IndexStats {
        self.counts.stats()
    }

    /// Puts a member into a set.
    pub async fn add(&self, set: &str, member: impl Into<Member>) -> Result<Added> {
        let envelope = self.change("SET", set, member.into()).await?;
        match envelope.status() {
            "CHANGED" => {
                self.counts.added.add(1);
                Ok(Added::New)
            }
            "UNCHANGED" => Ok(Added::Already),
            "FULL" => {
                self.counts.rejected.add(1);
                observe::count("redis.set.large_key.detected.count", "object.index", 1);
                Ok(Added::Full)
            }
            _ => Err(envelope.unexpected()),
        }
    }

    /// Takes a member out of a set; whether it was there.
    pub async fn remove(&self, set: &str, member: impl Into<Member>) -> Result<bool> {
        let was_there = self.change("CLEAR", set, member.into()).await?.is("CHANGED");
        self.counts.removed.add(u64::from(was_there));
        Ok(was_there)
    }

    /// Moves a member from one set to another: when an order is closed, for example.
    pub async fn move_to(&self, from: &str, to: &str, member: impl Into<Member>) -> Result<Moved> {
        let member = member.into().checked()?;
        if from == to {
            return Err(Error::invalid("a set can't be moved to itself"));
        }
        let call = self.kit.step(&MOVE).key(self.key(from)).key(self.key(to)).arg(&member);
        let call = call.arg(self.settings.members_max).arg(self.settings.ttl);
        let envelope = call.run().await?;
        match envelope.status() {
            "MOVED" => {
                self.counts.moved.add(1);
                Ok(Moved::Moved)
            }
            "ALREADY" => Ok(Moved::Already),
            "MISSING" => Ok(Moved::Missing),
            "FULL" => {
                self.counts.rejected.add(1);
                Ok(Moved::Full)
            }
            _ => Err(envelope.unexpected()),
        }
    }

    /// Whether a member is in a set.
    pub async fn contains(&self, set: &str, member: impl Into<Member>) -> Result<bool> {
        let call = self.kit.step(&LOOK).key(self.key(set)).arg(&member.into().checked()?);
        let watch = observe::Stopwatch::start();
        let contains = call.run().await?.list("contains")?;
        observe::latency(observe::LOOKUP_LATENCY, "object.index", watch);
        Ok(contains.first().and_then(Reply::as_int) == Some(1))
    }

    /// How many members a set has.
    pub async fn len(&self, set: &str) -> Result<u64> {
        self.kit.step(&LOOK).key(self.key(set)).run().await?.count("members")
    }

    /// Whether a set has no members: then there is no key for it either.
    pub async fn is_empty(&self, set: &str) -> Result<bool> {
        Ok(self.len(set).await? == 0)
    }

    /// About `count` members, at most 1,000 at once, from the start or behind an earlier page.
    pub async fn scan(&self, set: &str, after: Option<u64>, count: u32) -> Result<ScanPage> {
        if count == 0 || count > COUNT_MAX {
            return Err(Error::invalid(format!("count must be 1 to {COUNT_MAX}")));
        }
        let call = self.kit.step(&SCAN).key(self.key(set)).arg(after.unwrap_or(0)).arg(count);
        let mut envelope = call.run().await?;
        let cursor = envelope.string("cursor")?.parse::<u64>();
        let cursor = cursor.map_err(|_text| Error::Corrupt("the cursor of a scan".into()))?;
        let members = members(&envelope.list("members")?);
        Ok(ScanPage { members, next: Some(cursor).filter(|cursor| *cursor != 0) })
    }

    /// Members of some sets together, at most 1,000, of at most 8 sets. It looks at whole sets.
    pub async fn combine(&self, how: Combine, sets: &[&str], count: u32) -> Result<Vec<Member>> {
        Ok(members(&self.combined(how, sets, count).await?.list("members")?))
    }

    /// How many members some sets have together.
    pub async fn count(&self, how: Combine, sets: &[&str]) -> Result<u64> {
        self.combined(how, sets, 0).await?.count("total")
    }

    async fn combined(&self, how: Combine, sets: &[&str], count: u32) -> Result<Envelope> {
        if sets.is_empty() || sets.len() > SETS_MAX || count > COUNT_MAX {
            let text = format!("1 to {SETS_MAX} sets, and at most {COUNT_MAX} members");
            return Err(Error::Invalid(text));
        }
        let how = match how {
            Combine::All => "ALL",
            Combine::Any => "ANY",
            Combine::First => "FIRST",
        };
        let call = self.kit.step(&COMBINE).arg(how).arg(count);
        sets.iter().fold(call, |call, set| call.key(self.key(set))).run().await
    }

    async fn change(&self, how: &'static str, set: &str, member: Member) -> Result<Envelope> {
        let member = member.checked()?;
        let call = self.kit.step(&CHANGE).key(self.key(set)).arg(how).arg(&member);
        call.arg(self.settings.members_max).arg(self.settings.ttl).run().await
    }

    fn key(&self, set: &str) -> Key {
        self.keys.item("set", set)
    }
}

fn members(list: &[Reply]) -> Vec<Member> {
    list.iter().filter_map(|member| member.as_bytes().map(Member::from)).collect()
}
