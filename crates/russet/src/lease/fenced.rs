//! A value that only the latest holder of a lease can write.

use super::{FAMILY, Fence, Guard};
use crate::error::{Error, Result};
use crate::key::{Key, Scope};
use crate::kit::Kit;
use crate::observe::stats;
use crate::step::{Safe, Step};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

pub(super) static WRITE: Step<Safe> =
    Step::new("lease_fenced_write", include_str!("fenced_write.lua"));
pub(super) static READ: Step<Safe> =
    Step::read_only("lease_fenced_read", include_str!("fenced_read.lua"));

const TTL_MAX: Duration = Duration::from_secs(366 * 24 * 60 * 60);

/// Which write it is: the fencing number of the holder, and which of the holder's writes. A write
/// that was delayed on its way does not overwrite a later one, of whomever.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Stamp {
    /// The number of the lease's holder.
    pub fence: Fence,
    /// Which of the holder's writes, the first being 0.
    pub turn: u64,
}

/// What came of a fenced write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum FencedWrite {
    /// It is the latest, unless a repeated call has written it before.
    Written,
    /// A later write was there before: nothing was changed.
    Stale {
        /// Of the write that is there.
        latest: Stamp,
    },
}

/// A value, and whose it is.
#[derive(Clone, PartialEq, Eq)]
pub struct FencedValue {
    /// Of the holder that wrote it.
    pub fence: Fence,
    /// What it wrote.
    pub value: Vec<u8>,
}

/// Says nothing of its content.
impl fmt::Debug for FencedValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FencedValue").field("fence", &self.fence).finish_non_exhaustive()
    }
}

stats! {
    /// What a handle and its clones have seen in this process.
    FencedStats counted by Counts {
        /// Writes and removals that were made.
        written,
        /// Writes of holders that were too late, and changed nothing.
        stale,
    }
}

/// A value that only the latest holder of a lease can write: the store refuses a holder that has
/// lost its lease as soon as the next one has written.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use russet::lease::{Fenced, FencedWrite, Lease};
/// use std::time::Duration;
///
/// let kit = russet::Kit::embedded(Default::default())?;
/// let lease = Lease::new(&kit, "leader", Duration::from_secs(5))?;
/// let config = Fenced::new(&kit, "config", Duration::from_secs(3600))?;
/// let guard = lease.try_acquire().await?.held().ok_or("busy")?;
/// assert_eq!(config.write(&guard, "a").await?, FencedWrite::Written);
/// assert_eq!(config.read().await?.map(|it| it.value), Some(b"a".to_vec()));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Fenced {
    kit: Kit,
    key: Key,
    ttl: Duration,
    counts: Arc<Counts>,
}

impl Fenced {
    /// `ttl` is how long value and number outlive the last write. It must be longer than any
    /// holder that was lost can be asleep: after it a stale write is not known for one.
    pub fn new(kit: &Kit, scope: impl Into<Scope>, ttl: Duration) -> Result<Self> {
        if ttl.is_zero() || ttl > TTL_MAX {
            return Err(Error::invalid(format!("ttl must be between 1 ms and {TTL_MAX:?}")));
        }
        let key = kit.keys(FAMILY, scope)?.key("fenced");
        Ok(Fenced { kit: kit.clone(), key, ttl, counts: Arc::default() })
    }

    /// Writes as the holder of a lease.
    pub async fn write(&self, guard: &Guard, value: impl AsRef<[u8]>) -> Result<FencedWrite> {
        self.write_at(guard.stamp(), Some(value.as_ref())).await
    }

    /// Removes the value. Its number is remembered.
    pub async fn clear(&self, guard: &Guard) -> Result<FencedWrite> {
        self.write_at(guard.stamp(), None).await
    }

    /// Writes, or removes, with a stamp that was taken elsewhere.
    pub async fn write_at(&self, stamp: Stamp, value: Option<&[u8]>) -> Result<FencedWrite> {
        let call = self.kit.step(&WRITE).key(self.key.clone());
        let call = call.arg(stamp.fence.number()).arg(stamp.turn).arg(self.ttl);
        let call = call.arg(value.is_some()).arg(value.unwrap_or_default());
        let envelope = call.run().await?;
        match envelope.status() {
            "WRITTEN" => {
                self.counts.written.add(1);
                Ok(FencedWrite::Written)
            }
            "STALE" => {
                self.counts.stale.add(1);
                crate::observe::count("redis.lease.fenced.stale.count", "lease", 1);
                let fence = Fence(envelope.count("fence")?);
                let latest = Stamp { fence, turn: envelope.count("turn")? };
                Ok(FencedWrite::Stale { latest })
            }
            _ => Err(envelope.unexpected()),
        }
    }

    /// What this handle and its clones have seen.
    pub fn stats(&self) -> FencedStats {
        self.counts.stats()
    }

    /// What the latest holder has written.
    pub async fn read(&self) -> Result<Option<FencedValue>> {
        let mut envelope = self.kit.step(&READ).key(self.key.clone()).run().await?;
        match envelope.status() {
            "EMPTY" => Ok(None),
            "FOUND" => {
                let fence = Fence(envelope.count("fence")?);
                Ok(Some(FencedValue { fence, value: envelope.text("value")? }))
            }
            _ => Err(envelope.unexpected()),
        }
    }
}

impl fmt::Debug for Fenced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fenced").field("ttl", &self.ttl).finish_non_exhaustive()
    }
}
