//! A counter that is spread over slots.

use super::windows::{Count, CounterStats, Counts, Windows, check_by, read};
use super::{ADD, FAMILY, check_name};
use crate::error::{Error, Result};
use crate::key::Scope;
use crate::kit::Kit;
use crate::observe;
use crate::request::Request;
use crate::retry::RequestId;
use rand::Rng;
use sha1::{Digest, Sha1};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;

/// Shards of one counter.
const SHARDS_MAX: u32 = 1024;
/// How often a sum that was taken over the end of a window is taken anew.
const SUMS_MAX: u32 = 3;

/// Counts per subject and window, in several slots: each call adds to one of them, a sum reads all.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use russet::counter::{ShardedCounter, Windows};
/// use std::time::Duration;
///
/// let kit = russet::Kit::embedded(russet::Options::default())?;
/// let years = Windows::of(Duration::from_secs(365 * 86400))?;
/// let views = ShardedCounter::new(&kit, "views", years, 16)?;
/// for _ in 0..100 {
///     views.add("front-page", 1, None).await?;
/// }
/// assert_eq!(views.exact("front-page", 0).await?.count, 100);
/// assert_eq!(views.fast("front-page", 0, Duration::from_secs(5)).await?, 100);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct ShardedCounter {
    kit: Kit,
    name: String,
    windows: Windows,
    shards: u32,
    counts: Arc<Counts>,
}

impl ShardedCounter {
    /// All processes must name the same number of shards.
    pub fn new(kit: &Kit, name: &str, windows: Windows, shards: u32) -> Result<ShardedCounter> {
        check_name(name)?;
        if !(1..=SHARDS_MAX).contains(&shards) {
            return Err(Error::invalid(format!("a counter has 1 to {SHARDS_MAX} shards")));
        }
        let (name, counts) = (name.to_owned(), Arc::default());
        Ok(ShardedCounter { kit: kit.clone(), name, windows, shards, counts })
    }

    /// What this handle and its clones have seen.
    pub fn stats(&self) -> CounterStats {
        self.counts.stats()
    }

    /// Adds to the present window.
    pub async fn add(
        &self,
        subject: impl Into<Scope>,
        by: i64,
        request: Option<&RequestId>,
    ) -> Result<()> {
        check_by(by)?;
        let keys = self.kit.keys(FAMILY, subject.into().shard(self.shard(request)))?;
        let call = self.kit.step_of_request(&ADD, &keys, request).bound_to(&self.name);
        let call = call.key(keys.item("windows", &self.name)).arg(by);
        call.arg(self.windows.length).arg(self.windows.keep).run().await?;
        self.counts.added.add(1);
        observe::count("redis.counter.increment.count", "counter", 1);
        Ok(())
    }

    /// The sum of all shards: what was added before this call is in it, what is added meanwhile may
    /// be. One call per shard.
    pub async fn exact(&self, subject: impl Into<Scope>, ago: u32) -> Result<Count> {
        self.windows.check_ago(ago)?;
        let scope = subject.into();
        self.counts.read.add(1);
        for _ in 0..SUMS_MAX {
            if let Some(sum) = self.sum(&scope, ago).await? {
                return Ok(sum);
            }
        }
        Err(Error::Contention { attempts: SUMS_MAX })
    }

    /// A sum that is not older than `age_max`: one call, unless it has to be taken.
    pub async fn fast(
        &self,
        subject: impl Into<Scope>,
        ago: u32,
        age_max: Duration,
    ) -> Result<i64> {
        if age_max.is_zero() {
            return Err(Error::invalid("a sum without an age is an exact one"));
        }
        let scope = subject.into();
        self.windows.check_ago(ago)?;
        let keys = self.kit.keys(FAMILY, &scope)?;
        let total = keys.item("total", format!("{}:{ago}", self.name));
        let known = self.kit.call_safe(&Request::new("GET").key(&total)).await?;
        if let Some(known) = known.as_int() {
            self.counts.read.add(1);
            self.counts.read_fast.add(1);
            return Ok(known);
        }
        let sum = self.exact(&scope, ago).await?;
        // It is right for no longer than the window lasts.
        let ttl = age_max.min(sum.ends_after).max(Duration::from_millis(1));
        let keep = Request::new("SET").key(&total).arg(sum.count).arg("PX").arg(ttl);
        self.kit.call_safe(&keep).await?;
        Ok(sum.count)
    }

    /// None: a window has ended meanwhile, and the shards speak of different ones.
    async fn sum(&self, scope: &Scope, ago: u32) -> Result<Option<Count>> {
        let mut reads = JoinSet::new();
        for shard in 0..self.shards {
            let keys = self.kit.keys(FAMILY, scope.shard(shard))?;
            let (kit, name, windows) = (self.kit.clone(), self.name.clone(), self.windows);
            reads.spawn(async move { read(&kit, &keys, &name, (windows, ago)).await });
        }
        let mut sum: Option<Count> = None;
        while let Some(count) = reads.join_next().await {
            let count = count.map_err(|error| Error::Unavailable(error.to_string()))??;
            match &mut sum {
                None => sum = Some(count),
                Some(sum) if sum.window != count.window => return Ok(None),
                Some(sum) => {
                    sum.count += count.count;
                    sum.ends_after = sum.ends_after.min(count.ends_after);
                }
            }
        }
        Ok(sum)
    }

    /// The same for each attempt at a request: there it is remembered.
    fn shard(&self, request: Option<&RequestId>) -> u32 {
        let number = match request {
            Some(request) => {
                let digest = Sha1::digest(request.as_bytes());
                u32::from_be_bytes([digest[0], digest[1], digest[2], digest[3]])
            }
            None => rand::rng().random(),
        };
        number % self.shards
    }
}
