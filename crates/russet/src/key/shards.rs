//! A scope spread over several slots, for what is too much for one.

use super::Scope;
use crate::error::Result;
use crate::member::Member;
use crate::spread::check_shards;

/// The scopes that one is spread over, each in a slot of its own: a member always has the same one,
/// and who wants all asks each. Made by [`Scope::spread`].
#[derive(Clone, Debug)]
pub struct Shards {
    pub(crate) scope: Scope,
    pub(crate) count: u32,
}

impl Scope {
    /// Spreads it over so many slots, up to 64: all keys of one scope are on one node of a cluster,
    /// however busy they are. Collections of the workflows do so by themselves; this is for what a
    /// program stores beside them. The number must never change: what is stored depends on it.
    ///
    /// ```
    /// # fn main() -> russet::Result<()> {
    /// use russet::key::{Family, Scope};
    ///
    /// const VISITS: Family = Family { purpose: "visits", version: 1 };
    /// let kit = russet::Kit::embedded(Default::default())?;
    /// let shards = Scope::from("front page").spread(16)?;
    /// let key = kit.keys(VISITS, shards.of("visitor-7"))?.key("seen");
    /// let mut all = shards.all().map(|scope| kit.keys(VISITS, scope).map(|it| it.key("seen")));
    /// assert!(all.any(|it| it.is_ok_and(|it| it == key)));
    /// # Ok(())
    /// # }
    /// ```
    pub fn spread(&self, shards: u32) -> Result<Shards> {
        check_shards(shards)?;
        Ok(Shards { scope: self.clone(), count: shards })
    }
}

impl Shards {
    /// The scope of a member.
    pub fn of(&self, member: impl Into<Member>) -> Scope {
        self.at(member.into().shard(self.count))
    }

    /// Every scope, in their order.
    pub fn all(&self) -> impl Iterator<Item = Scope> + '_ {
        (0..self.count).map(|shard| self.at(shard))
    }

    /// The share of a bound that each has.
    pub fn share(&self, bound: u32) -> u32 {
        bound.div_ceil(self.count)
    }

    pub(crate) fn at(&self, shard: u32) -> Scope {
        match self.count {
            1 => self.scope.clone(),
            _ => self.scope.shard(shard),
        }
    }
}
