//! Collections over several slots: each member has its shard, and reads ask all of them.

use crate::error::{Error, Result};
use crate::key::{Family, Keys, Scope, Shards};
use crate::kit::Kit;
use crate::member::Member;

/// The most shards of a collection: reads ask all of them.
pub(crate) const SHARDS_MAX: u32 = 64;

/// Checked at construction, so that no call fails for it.
pub(crate) fn check_shards(shards: u32) -> Result<()> {
    if !(1..=SHARDS_MAX).contains(&shards) {
        return Err(Error::invalid(format!("shards must be 1 to {SHARDS_MAX}")));
    }
    Ok(())
}

/// A bound of a collection: not none, and not without end.
pub(crate) fn check_bound(name: &str, value: u32, most: u32) -> Result<()> {
    if value == 0 || value > most {
        return Err(Error::invalid(format!("{name} must be 1 to {most}")));
    }
    Ok(())
}

/// A time that something is kept.
pub(crate) fn check_ttl(name: &str, ttl: std::time::Duration) -> Result<()> {
    /// A hundred years.
    const TTL_MS_MAX: u64 = 100 * 366 * 24 * 60 * 60 * 1000;
    if ttl.is_zero() || crate::time::millis(ttl) > TTL_MS_MAX {
        return Err(Error::invalid(format!("{name} must be more than nothing, up to a century")));
    }
    Ok(())
}

/// A scope in so many slots.
#[derive(Clone, Debug)]
pub(crate) struct Spread {
    family: Family,
    shards: Shards,
}

impl Spread {
    pub fn new(family: Family, scope: Scope, shards: u32) -> Self {
        Spread { family, shards: Shards { scope, count: shards } }
    }

    pub fn shards(&self) -> std::ops::Range<u32> {
        0..self.shards.count
    }

    pub fn shard_of(&self, member: &Member) -> u32 {
        member.shard(self.shards.count)
    }

    /// The share of a bound that each shard has.
    pub fn share(&self, bound: u32) -> u32 {
        self.shards.share(bound)
    }

    /// The keys of one shard.
    pub fn keys(&self, kit: &Kit, shard: u32) -> Result<Keys> {
        kit.keys(self.family, self.shards.at(shard))
    }

    /// The keys of the shard of a member.
    pub fn keys_of(&self, kit: &Kit, member: &Member) -> Result<Keys> {
        self.keys(kit, self.shard_of(member))
    }
}
