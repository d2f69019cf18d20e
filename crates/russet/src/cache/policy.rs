//! How long values are kept, and what is done about those that end.

use super::encoding::Format;
use super::near::Near;
use crate::error::{Error, Result};
use std::time::Duration;

const LOCK_TTL: Duration = Duration::from_secs(5);
const WAIT_MAX: Duration = Duration::from_secs(10);
const LOAD_MAX: Duration = Duration::from_secs(60);
const JITTER: f64 = 0.1;

/// How a cache keeps its values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Policy {
    pub(super) ttl: Duration,
    pub(super) stale: Duration,
    pub(super) null_ttl: Duration,
    pub(super) jitter: f64,
    pub(super) early: Option<f64>,
    pub(super) lock_ttl: Duration,
    pub(super) wait_max: Duration,
    pub(super) load_max: Duration,
    pub(super) format: Format,
    pub(super) schema_version: u32,
    pub(super) outage: Outage,
    pub(super) near: Option<Near>,
}

/// What a cache does when its store does not answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outage {
    /// It loads each time: right if the source can bear it.
    Load,
    /// It fails: right if the source would break down without the cache.
    Fail,
}

impl Policy {
    /// Values are fresh for this long, less up to a tenth at random.
    pub fn new(ttl: Duration) -> Self {
        Policy {
            ttl,
            stale: Duration::ZERO,
            null_ttl: Duration::ZERO,
            jitter: JITTER,
            early: None,
            lock_ttl: LOCK_TTL,
            wait_max: WAIT_MAX,
            load_max: LOAD_MAX,
            format: Format::Json,
            schema_version: 1,
            outage: Outage::Load,
            near: None,
        }
    }

    /// Logical expiry: for so long after it was fresh a value is served still, while one caller
    /// loads it anew in the background.
    pub fn stale_for(mut self, span: Duration) -> Self {
        self.stale = span;
        self
    }

    /// Remembers for so long that something does not exist. Without, it is asked for each time.
    pub fn null_for(mut self, ttl: Duration) -> Self {
        self.null_ttl = ttl;
        self
    }

    /// The random part of the TTL, from 0 to 1.
    pub fn jitter(mut self, part: f64) -> Self {
        self.jitter = part;
        self
    }

    /// Early refresh (XFetch): a caller now and then loads a value anew before it ends, the more
    /// likely the nearer its end and the longer a load takes. 1.0 suits most; more is earlier.
    pub fn early(mut self, beta: f64) -> Self {
        self.early = Some(beta);
        self
    }

    /// How long a loader that gives no sign of life keeps others from loading; 5 seconds.
    pub fn lock_for(mut self, ttl: Duration) -> Self {
        self.lock_ttl = ttl;
        self
    }

    /// How long a caller waits for the loader of another before it loads by itself, without
    /// storing; 10 seconds.
    pub fn wait_at_most(mut self, span: Duration) -> Self {
        self.wait_max = span;
        self
    }

    /// How long a loader may take before it is given up and its lock released; a minute.
    pub fn load_at_most(mut self, span: Duration) -> Self {
        self.load_max = span;
        self
    }

    /// How values are written. Values in another format are still read.
    pub fn format(mut self, format: Format) -> Self {
        self.format = format;
        self
    }

    /// Values that were written under another number are loaded anew.
    pub fn schema_version(mut self, version: u32) -> Self {
        self.schema_version = version;
        self
    }

    /// What is done while the store does not answer; values are loaded by default.
    pub fn on_outage(mut self, outage: Outage) -> Self {
        self.outage = outage;
        self
    }

    /// Keeps copies of what was read in this process too, until the server says that they have
    /// changed: a look-up that finds one asks nobody. After a change by another process a copy may
    /// be served for as long as its message takes, and for 2 seconds if the connection has silently
    /// died. Needs a Russet, Redis or Valkey that is no cluster; an embedded engine has no use for
    /// it. Off by default.
    pub fn near(mut self, near: Near) -> Self {
        self.near = Some(near);
        self
    }

    /// The longest that an entry is kept.
    pub(super) fn keep_max(&self) -> Duration {
        (self.ttl + self.stale).max(self.null_ttl)
    }

    pub(super) fn check(&self) -> Result<()> {
        if self.ttl.is_zero() || self.lock_ttl.is_zero() || self.load_max.is_zero() {
            return Err(Error::invalid("ttl, lock_for and load_at_most must not be zero"));
        }
        if !(0.0..=1.0).contains(&self.jitter) {
            return Err(Error::invalid("jitter must be from 0 to 1"));
        }
        if self.early.is_some_and(|beta| !(0.0..=100.0).contains(&beta)) {
            return Err(Error::invalid("early must be from 0 to 100"));
        }
        self.near.map_or(Ok(()), |near| near.check())
    }
}
