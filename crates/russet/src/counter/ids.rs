//! Unique ids: a time of the server and a position within it.

use super::{FAMILY, IDS, check_name};
use crate::error::{Error, Result};
use crate::key::Key;
use crate::kit::Kit;
use crate::observe::stats;
use crate::request::Request;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Where the time of ids begins: 2025, in milliseconds since 1970.
const EPOCH_MS: u64 = 1_735_689_600_000;
/// Bits of the position within a millisecond. 41 bits of time are before it; the sign bit is 0.
const POSITION_BITS: u32 = 22;
const POSITIONS: u64 = 1 << POSITION_BITS;
/// The largest block.
const BLOCK_MAX: u32 = 4096;
/// How long a block is used. Ids are in the order of time to this.
const BLOCK_AGE_MAX: Duration = Duration::from_secs(1);
/// By how much the time of ids jumps ahead when another server has taken over: more than its clock
/// is behind that of the one before, and than both believe to be in charge.
const MARGIN: Duration = Duration::from_secs(60);
/// How long a generator that is not used is remembered. After that the clock is far past its last
/// id.
const TTL: Duration = Duration::from_secs(24 * 60 * 60);

/// A unique id of 63 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id(u64);

impl Id {
    /// For a column of a database: it fits a signed one.
    pub fn value(self) -> u64 {
        self.0
    }

    /// About when it was made: within a second, or a minute after a failover; since 1970.
    pub fn made_at(self) -> Duration {
        Duration::from_millis((self.0 >> POSITION_BITS) + EPOCH_MS)
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A generator of ids, shared by all processes that name it the same. It takes blocks from the
/// store and gives them out one by one; what is left of a block after a second is thrown away.
///
/// No id is given out twice, whatever the load, and though the clock is set back, the server is
/// restarted, all data is lost, or a replica takes over that lacks the last writes: the server's
/// `run_id` tells that, and the time of ids jumps a minute ahead. What it takes for granted: clocks
/// of servers differ by less than a minute, and no two primaries of a slot serve for longer.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let kit = russet::Kit::embedded(russet::Options::default())?;
/// let orders = russet::counter::Ids::new(&kit, "orders", 100)?;
/// assert_ne!(orders.next().await?, orders.next().await?);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Ids {
    inner: Arc<Inner>,
}

struct Inner {
    kit: Kit,
    key: Key,
    block: u32,
    held: Mutex<Option<Block>>,
    /// Held while a block is fetched, so that all who need one wait for one call.
    fetching: tokio::sync::Mutex<()>,
    counts: Counts,
}

stats! {
    /// What a handle and its clones have seen in this process.
    IdStats counted by Counts {
        /// Ids that callers got.
        given_out,
        /// Blocks that were fetched: two calls each.
        blocks,
    }
}

/// Ids that are ours to give out.
#[derive(Clone, Copy)]
struct Block {
    time_ms: u64,
    next: u64,
    end: u64,
    fetched_at: Duration,
}

impl Block {
    fn next(&mut self, now: Duration) -> Option<Id> {
        if self.next >= self.end || now.saturating_sub(self.fetched_at) > BLOCK_AGE_MAX {
            return None;
        }
        let position = scrambled(self.next, self.time_ms);
        self.next += 1;
        Some(Id((self.time_ms - EPOCH_MS) << POSITION_BITS | position))
    }
}

/// A permutation of the positions of a millisecond: neighbours are far apart, so that ids spread
/// over shards and two of them do not show how many were made in between.
fn scrambled(position: u64, time_ms: u64) -> u64 {
    (position * 2_654_435 + time_ms * 40_503) % POSITIONS
}

impl Ids {
    /// `block` is how many ids one call fetches: about as many as a process needs in a second.
    pub fn new(kit: &Kit, name: &str, block: u32) -> Result<Ids> {
        check_name(name)?;
        if !(1..=BLOCK_MAX).contains(&block) {
            return Err(Error::invalid(format!("a block has 1 to {BLOCK_MAX} ids")));
        }
        let key = kit.keys(FAMILY, name)?.key("ids");
        let (kit, held) = (kit.clone(), Mutex::default());
        let (fetching, counts) = (tokio::sync::Mutex::default(), Counts::default());
        let inner = Inner { kit, key, block, held, fetching, counts };
        Ok(Ids { inner: Arc::new(inner) })
    }

    /// What this handle and its clones have seen.
    pub fn stats(&self) -> IdStats {
        self.inner.counts.stats()
    }

    /// One that nobody else gets: from the block at hand, or a new one that is fetched.
    pub async fn next(&self) -> Result<Id> {
        let id = self.take().await?;
        self.inner.counts.given_out.add(1);
        Ok(id)
    }

    async fn take(&self) -> Result<Id> {
        if let Some(id) = self.held() {
            return Ok(id);
        }
        let _only_one = self.inner.fetching.lock().await;
        if let Some(id) = self.held() {
            return Ok(id);
        }
        let mut block = self.fetch().await?;
        self.inner.counts.blocks.add(1);
        let id = block.next(block.fetched_at);
        *self.inner.held.lock().unwrap_or_else(|poison| poison.into_inner()) = Some(block);
        id.ok_or_else(|| Error::Corrupt("a block of ids is empty".into()))
    }

    fn held(&self) -> Option<Id> {
        let now = self.inner.kit.time().elapsed();
        let mut held = self.inner.held.lock().unwrap_or_else(|poison| poison.into_inner());
        held.as_mut().and_then(|block| block.next(now))
    }

    /// A block that was taken and did not arrive is lost, which does no harm: so another is taken.
    async fn fetch(&self) -> Result<Block> {
        let kit = &self.inner.kit;
        let policy = kit.settings().retry;
        let mut attempt = 1;
        loop {
            match self.fetch_once().await {
                Err(error) if policy.allows(attempt, true, &error) => {
                    kit.time().sleep(policy.pause(attempt)).await;
                    attempt += 1;
                }
                other => return other,
            }
        }
    }

    /// Asks the server who it is and takes a block, on one connection: so both are answered by the
    /// same server.
    async fn fetch_once(&self) -> Result<Block> {
        let Inner { kit, key, block, .. } = &*self.inner;
        let mut own = kit.connection(key.slot()).await?;
        let info = own.call(&Request::new("INFO").arg("server"), kit.timeout()).await?;
        let server = run_id(info.as_bytes().unwrap_or_default())
            .ok_or_else(|| Error::Corrupt("INFO has no run_id".into()))?;
        let call = kit.step(&IDS).key(key.clone()).arg(*block).arg(server);
        let envelope = call.arg(MARGIN).arg(TTL).run_on(&mut *own).await?;
        let (time_ms, first) = (envelope.count("time_ms")?, envelope.count("first")?);
        if time_ms < EPOCH_MS {
            return Err(Error::Unavailable("the server's clock is before 2025".into()));
        }
        let end = first + envelope.count("count")?;
        Ok(Block { time_ms, next: first, end, fetched_at: kit.time().elapsed() })
    }
}

fn run_id(info: &[u8]) -> Option<&[u8]> {
    let mut lines = info.split(|byte| *byte == b'\n');
    let id = lines.find_map(|line| line.strip_prefix(b"run_id:".as_slice()))?;
    Some(id.strip_suffix(b"\r").unwrap_or(id)).filter(|id| !id.is_empty())
}

impl fmt::Debug for Ids {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ids").field("block", &self.inner.block).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scrambling_keeps_positions_apart() {
        for time_ms in [EPOCH_MS, EPOCH_MS + 1, EPOCH_MS * 2] {
            let mut seen = vec![false; POSITIONS as usize];
            for position in 0..POSITIONS {
                let at = scrambled(position, time_ms) as usize;
                assert!(!seen[at]);
                seen[at] = true;
            }
        }
    }

    #[test]
    fn the_run_id_is_found() {
        assert_eq!(run_id(b"# Server\r\nrun_id:abc\r\nx:1\r\n"), Some(b"abc".as_slice()));
        assert_eq!(run_id(b"# Server\r\n"), None);
    }
}
