//! A Bloom filter of all ids that exist, so that what does not exist is never looked up.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use russet::cache::filter::{Completed, Filter, Presence, Size};
//! use std::time::Duration;
//!
//! let kit = russet::Kit::embedded(Default::default())?;
//! let size = Size { items_max: 100_000, error_rate: 0.01 };
//! let users = Filter::new(&kit, "users", size, Duration::from_secs(7 * 86_400))?;
//! users.add_all(["user-1", "user-2"]).await?;
//! assert_eq!(users.complete().await?, Completed::Complete);
//! assert_eq!(users.presence("user-1").await?, Presence::Possible);
//! assert_eq!(users.presence("user-3").await?, Presence::Absent);
//! # Ok(())
//! # }
//! ```
//!
//! It is made of `BF` commands where the server has them, else of bitmaps. A filter that was not
//! filled to the end, has expired, or was lost does not know: then everything is possible. If it
//! is lost while it is filled, that can't be completed: the filling has a token, in the store.
//! Add an id before the database commits it. Ids can't be removed: fill a new filter from time to
//! time.

use crate::error::{Error, Result};
use crate::key::{Family, Keys, Scope};
use crate::kit::Kit;
use crate::observe::stats;
use crate::reply::Reply;
use crate::request::Request;
use crate::retry::token;
use crate::step::{Safe, Step};
use std::collections::BTreeMap;
use std::f64::consts::LN_2;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::sync::OnceCell;

const FAMILY: Family = Family { purpose: "filter", version: 1 };
/// A filter is spread over keys of at most this many bits (1 MiB), each in a slot of its own.
const SHARD_BITS_MAX: u64 = 1 << 23;
const SHARDS_MAX: u64 = 4096;
/// Ids that are added by one step.
const BATCH: usize = 128;

pub(super) static ADD: Step<Safe> = Step::new("filter_add", include_str!("filter_add.lua"));
pub(super) static COMPLETE: Step<Safe> =
    Step::new("filter_complete", include_str!("filter_complete.lua"));
pub(super) static HAS: Step<Safe> = Step::read_only("filter_has", include_str!("filter_has.lua"));

/// What a filter is made for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Size {
    /// Ids that it is to hold: with more, more pass for possible.
    pub items_max: u64,
    /// Which part of what does not exist may pass for possible, as 0.01.
    pub error_rate: f64,
}

/// Whether an id exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Presence {
    /// It may exist, or the filter does not know.
    Possible,
    /// It does not exist.
    Absent,
}

/// Whether a filter is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Completed {
    /// From now on it knows what does not exist.
    Complete,
    /// The store has lost a part of it since its filling began, as by eviction: fill it again.
    Lost,
}

/// What is known of the filling of a part.
#[derive(Clone)]
enum Filling {
    /// What its additions replied.
    Marked(Vec<u8>),
    Lost,
}

/// The mark of a filter that was completed.
const COMPLETE_MARK: &[u8] = b"complete";

stats! {
    /// What a handle and its clones have seen in this process.
    FilterStats counted by Counts {
        /// Ids that were added, some of them perhaps again.
        added,
        /// Ids that were known not to exist: look-ups saved.
        absent,
        /// Ids that may exist, or that the filter knew nothing of.
        possible,
        /// Fillings of which the store had lost a part.
        lost,
    }
}

/// A filter. Clones are handles to the same one.
#[derive(Clone)]
pub struct Filter {
    inner: Arc<Inner>,
}

struct Inner {
    kit: Kit,
    name: String,
    size: Size,
    ttl: Duration,
    layout: Layout,
    /// Whether the server has a Bloom filter of its own.
    has_bloom: OnceCell<bool>,
    /// By part, what this handle has added to since it was complete.
    fillings: Mutex<BTreeMap<u32, Filling>>,
    counts: Counts,
}

/// How the bits are spread.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Layout {
    shards: u64,
    shard_bits: u64,
    hashes: u64,
}

impl Layout {
    fn of(size: Size) -> Result<Self> {
        if size.items_max == 0 || !(size.error_rate > 0.0 && size.error_rate < 1.0) {
            return Err(Error::invalid("size: items_max from 1, error_rate between 0 and 1"));
        }
        let bits = (size.items_max as f64 * -size.error_rate.ln() / (LN_2 * LN_2)).ceil();
        let bits = (bits as u64).max(64);
        let shards = bits.div_ceil(SHARD_BITS_MAX);
        if shards > SHARDS_MAX {
            return Err(Error::invalid(format!("a filter of {bits} bits is too large")));
        }
        let hashes = (bits as f64 / size.items_max as f64 * LN_2).round().clamp(1.0, 30.0) as u64;
        Ok(Layout { shards, shard_bits: bits.div_ceil(shards), hashes })
    }
}

/// An id as the filter sees it.
struct Item {
    digest: Vec<u8>,
    shard: u32,
    low: u64,
    high: u64,
}

impl Filter {
    /// The filter of this name, of which every process says the same size. What it holds outlives
    /// the last addition by `ttl`.
    pub fn new(kit: &Kit, name: &str, size: Size, ttl: Duration) -> Result<Self> {
        if ttl.is_zero() {
            return Err(Error::invalid("the ttl of a filter must not be zero"));
        }
        let layout = Layout::of(size)?;
        let (kit, name, has_bloom) = (kit.clone(), name.to_owned(), OnceCell::new());
        let (fillings, counts) = (Mutex::default(), Counts::default());
        let inner = Inner { kit, name, size, ttl, layout, has_bloom, fillings, counts };
        Ok(Filter { inner: Arc::new(inner) })
    }

    /// Adds an id, before anyone can look for it.
    pub async fn add(&self, id: impl Into<Scope>) -> Result<()> {
        self.add_all([id]).await
    }

    /// Adds many ids, in batches. May be called again for the same ids.
    pub async fn add_all(&self, ids: impl IntoIterator<Item: Into<Scope>>) -> Result<()> {
        let inner = &*self.inner;
        let is_bloom = inner.is_bloom().await?;
        let mut by_shard: BTreeMap<u32, Vec<Item>> = BTreeMap::new();
        for id in ids {
            let item = inner.item(&id.into())?;
            let shard = item.shard;
            let batch = by_shard.entry(shard).or_default();
            batch.push(item);
            if batch.len() == BATCH {
                let full = std::mem::take(batch);
                inner.add_batch(shard, &full, is_bloom).await?;
            }
        }
        for (shard, batch) in by_shard {
            if !batch.is_empty() {
                inner.add_batch(shard, &batch, is_bloom).await?;
            }
        }
        Ok(())
    }

    /// All that exists has been added, by this handle: from now on what is missing is known not to
    /// exist.
    pub async fn complete(&self) -> Result<Completed> {
        let inner = &*self.inner;
        let is_bloom = inner.is_bloom().await?;
        for shard in 0..inner.layout.shards as u32 {
            let filling = inner.fillings().get(&shard).cloned();
            let mark = match filling {
                Some(Filling::Marked(mark)) => mark,
                Some(Filling::Lost) => return Ok(inner.lost()),
                None => Vec::new(),
            };
            let call = inner.step(&COMPLETE, shard, is_bloom)?.arg(inner.ttl);
            let call = call.arg(inner.shard_capacity()).arg(inner.size.error_rate);
            let reply = call.arg(inner.layout.shard_bits).arg(mark).run().await?;
            match reply.status() {
                "COMPLETE" => {}
                "LOST" => return Ok(inner.lost()),
                _ => return Err(reply.unexpected()),
            }
        }
        inner.fillings().clear();
        Ok(Completed::Complete)
    }

    /// What this handle and its clones have seen.
    pub fn stats(&self) -> FilterStats {
        self.inner.counts.stats()
    }

    /// Whether an id can exist, in one call of the store.
    pub async fn presence(&self, id: impl Into<Scope>) -> Result<Presence> {
        let inner = &*self.inner;
        let is_bloom = inner.is_bloom().await?;
        let item = inner.item(&id.into())?;
        let mut call = inner.step(&HAS, item.shard, is_bloom)?;
        if is_bloom {
            call = call.arg(&item.digest);
        } else {
            for offset in inner.offsets(&item) {
                call = call.arg(offset);
            }
        }
        let reply = call.run().await?;
        match reply.status() {
            "ABSENT" => {
                inner.counts.absent.add(1);
                Ok(Presence::Absent)
            }
            "PRESENT" | "UNKNOWN" => {
                inner.counts.possible.add(1);
                Ok(Presence::Possible)
            }
            _ => Err(reply.unexpected()),
        }
    }
}

impl Inner {
    async fn is_bloom(&self) -> Result<bool> {
        let ask = || async {
            let asked = Request::new("COMMAND").arg("INFO").arg("BF.INSERT");
            let reply = self.kit.call_safe(&asked).await?;
            let first = reply.as_list().and_then(|items| items.first());
            Ok(matches!(first, Some(Reply::List(facts)) if !facts.is_empty()))
        };
        self.has_bloom.get_or_try_init(ask).await.copied()
    }

    fn keys(&self, shard: u32) -> Result<Keys> {
        self.kit.keys(FAMILY, Scope::from(&self.name).shard(shard))
    }

    fn step(
        &self,
        step: &'static Step<Safe>,
        shard: u32,
        is_bloom: bool,
    ) -> Result<crate::step::StepCall<'_, Safe>> {
        let (keys, mode) = (self.keys(shard)?, if is_bloom { "bloom" } else { "bits" });
        let call = self.kit.step(step).key(keys.key(mode)).key(keys.key("complete"));
        Ok(call.arg(mode))
    }

    fn item(&self, id: &Scope) -> Result<Item> {
        let digest = self.kit.digest_of_scope("filter", id)?;
        let half = |digits: &[u8]| {
            digits.iter().fold(0_u64, |sum, digit| {
                sum << 4 | u64::from((*digit as char).to_digit(16).unwrap_or(0))
            })
        };
        let (low, high) = digest.split_at(digest.len() / 2);
        let (low, high) = (half(low), half(high));
        let shard = (low.rotate_left(32) ^ high) % self.layout.shards;
        Ok(Item { digest, shard: shard as u32, low, high })
    }

    /// Where its bits are in its shard.
    fn offsets(&self, item: &Item) -> impl Iterator<Item = u64> + use<> {
        let (low, step, bits) = (item.low, item.high | 1, self.layout.shard_bits);
        (0..self.layout.hashes).map(move |n| low.wrapping_add(step.wrapping_mul(n)) % bits)
    }

    fn shard_capacity(&self) -> u64 {
        self.size.items_max.div_ceil(self.layout.shards)
    }

    async fn add_batch(&self, shard: u32, items: &[Item], is_bloom: bool) -> Result<()> {
        let call = self.step(&ADD, shard, is_bloom)?.arg(self.ttl);
        let mut call = call.arg(self.shard_capacity()).arg(self.size.error_rate).arg(token());
        for item in items {
            if is_bloom {
                call = call.arg(&item.digest);
            } else {
                for offset in self.offsets(item) {
                    call = call.arg(offset);
                }
            }
        }
        let mark = call.run().await?.text("mark")?;
        self.note(shard, mark);
        self.counts.added.add(items.len() as u64);
        Ok(())
    }

    /// Additions to one filling reply with the same mark, or find that it was completed meanwhile.
    fn note(&self, shard: u32, mark: Vec<u8>) {
        let mut fillings = self.fillings();
        let filling = fillings.entry(shard).or_insert_with(|| Filling::Marked(mark.clone()));
        if matches!(filling, Filling::Marked(known) if *known != mark) {
            let is_complete = mark == COMPLETE_MARK;
            *filling = if is_complete { Filling::Marked(mark) } else { Filling::Lost };
        }
    }

    fn lost(&self) -> Completed {
        self.fillings().clear();
        self.counts.lost.add(1);
        tracing::warn!(filter = self.name, "a filter was lost while it was filled");
        Completed::Lost
    }

    fn fillings(&self) -> MutexGuard<'_, BTreeMap<u32, Filling>> {
        self.fillings.lock().unwrap_or_else(|poison| poison.into_inner())
    }
}

impl fmt::Debug for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Filter").field("name", &self.inner.name).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_has_the_bits_that_it_needs() {
        let layout = Layout::of(Size { items_max: 1_000_000, error_rate: 0.01 }).unwrap();
        assert_eq!(layout, Layout { shards: 2, shard_bits: 4_792_530, hashes: 7 });
        for (items_max, error_rate) in [(0, 0.1), (1, 0.0), (1, 1.0), (1 << 40, 0.01)] {
            let refused = Layout::of(Size { items_max, error_rate });
            assert!(matches!(refused, Err(Error::Invalid(_))));
        }
    }
}
