//! A quota that needs no scripts: WATCH, MULTI and EXEC. For servers where EVAL is not allowed, and
//! for changes that a script can't make; under contention a [`Limiter`](super::Limiter) is cheaper.

use super::FAMILY;
use super::rule::check_name;
use crate::backend::Connection;
use crate::error::{Error, Result};
use crate::key::{Key, Scope};
use crate::kit::Kit;
use crate::observe::{self, stats};
use crate::reply::Reply;
use crate::request::Request;
use crate::retry::{RequestId, RetryPolicy};
use std::sync::Arc;
use std::time::Duration;

/// Tries before it is given up.
const ATTEMPTS_MAX: u32 = 5;
/// Pauses between them.
const PAUSES: RetryPolicy = RetryPolicy {
    attempts_max: ATTEMPTS_MAX,
    pause_min: Duration::from_millis(2),
    pause_max: Duration::from_millis(50),
};

/// At most so much in the window that begins with the first of it.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use russet::limit::{Spent, WatchQuota};
/// use std::time::Duration;
///
/// let kit = russet::Kit::embedded(russet::Options::default())?;
/// let quota = WatchQuota::new(&kit, "exports", 2, Duration::from_secs(3600))?;
/// assert_eq!(quota.spend("user-1", 2, None).await?, Spent::Within { remaining: 0 });
/// assert!(matches!(quota.spend("user-1", 1, None).await?, Spent::Exceeded { .. }));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct WatchQuota {
    kit: Kit,
    name: String,
    max: u64,
    window: Duration,
    counts: Arc<Counts>,
}

stats! {
    /// What a handle and its clones have seen in this process.
    WatchQuotaStats counted by Counts {
        /// Calls that were charged.
        within,
        /// Calls whose request had been charged before.
        already,
        /// Calls that were refused.
        exceeded,
        /// Attempts that others were faster than: with many of them a
        /// [`Limiter`](super::Limiter) is cheaper.
        aborted,
        /// Calls that were given up after too many such attempts.
        contended,
    }
}

/// What came of spending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "what is exceeded must not happen"]
pub enum Spent {
    /// It was charged.
    Within {
        /// What is left of the window's maximum.
        remaining: u64,
    },
    /// The request was charged before, and was not now.
    Already,
    /// There is less left than it costs: nothing was charged.
    Exceeded {
        /// Until the window ends.
        retry_after: Duration,
    },
}

/// One look at the counter, with WATCH on.
enum Seen {
    Decided(Spent),
    Room { used: u64, rest: Option<Duration> },
}

impl WatchQuota {
    /// A quota of `max` in each `window`, per subject. Quotas of different names share nothing.
    pub fn new(kit: &Kit, name: &str, max: u64, window: Duration) -> Result<WatchQuota> {
        check_name(name)?;
        if max == 0 || max > i64::MAX as u64 || window.is_zero() {
            return Err(Error::invalid("a quota has a maximum and a window"));
        }
        let (kit, name, counts) = (kit.clone(), name.to_owned(), Arc::default());
        Ok(WatchQuota { kit, name, max, window, counts })
    }

    /// What this handle and its clones have seen.
    pub fn stats(&self) -> WatchQuotaStats {
        self.counts.stats()
    }

    /// Spends `cost`, or fails with [`Error::Contention`] if others spend at the same time again
    /// and again. A request id is charged once.
    pub async fn spend(
        &self,
        subject: impl Into<Scope>,
        cost: u64,
        request: Option<&RequestId>,
    ) -> Result<Spent> {
        if cost == 0 || cost > self.max {
            return Err(Error::invalid(format!("a cost is from 1 to {}", self.max)));
        }
        let keys = self.kit.keys(FAMILY, subject)?;
        let key = keys.item("watch", &self.name);
        let marker = match request {
            // Of this quota alone, and of no limiter.
            Some(request) => {
                keys.item("spent", [self.name.as_bytes(), b"/", request.as_bytes()].concat())
            }
            None => keys.key("spent"),
        };
        let (mut failures, failures_max) = (0, self.kit.settings().retry.attempts_max);
        for attempt in 1..=ATTEMPTS_MAX {
            // A connection that breaks, or whose call is dropped, is not used again: what it
            // watches is forgotten with it.
            let mut own = self.kit.connection(key.slot()).await?;
            let mut attempt_of =
                Attempt { quota: self, own: &mut *own, key: &key, marker: &marker };
            let spent = match attempt_of.look(cost).await {
                Ok(Seen::Decided(spent)) => {
                    // If that fails the connection is closed, and forgets what it watches.
                    let _ = attempt_of.call(&Request::new("UNWATCH")).await;
                    return Ok(self.counted(spent));
                }
                Ok(Seen::Room { used, rest }) => {
                    let spent = attempt_of.commit(cost, used, rest, request).await;
                    if spent.is_err() {
                        // The connection goes to someone else: not with half a transaction.
                        let _ = attempt_of.call(&Request::new("DISCARD")).await;
                    }
                    spent
                }
                Err(error) => {
                    let _ = attempt_of.call(&Request::new("UNWATCH")).await;
                    Err(error.before_any_change())
                }
            };
            match spent {
                Ok(Some(spent)) => return Ok(self.counted(spent)),
                Ok(None) => {
                    self.counts.aborted.add(1);
                    observe::count("redis.limit.watch.abort.count", "limit", 1);
                }
                // Nothing was spent: a connection had broken, or the slot is elsewhere by now.
                Err(Error::Unavailable(_)) if failures + 1 < failures_max => failures += 1,
                Err(error) => return Err(error),
            }
            self.kit.time().sleep(PAUSES.pause(attempt)).await;
        }
        self.counts.contended.add(1);
        Err(Error::Contention { attempts: ATTEMPTS_MAX })
    }

    fn counted(&self, spent: Spent) -> Spent {
        let Counts { within, already, exceeded, .. } = &*self.counts;
        match spent {
            Spent::Within { .. } => within.add(1),
            Spent::Already => already.add(1),
            Spent::Exceeded { .. } => exceeded.add(1),
        }
        spent
    }
}

struct Attempt<'a> {
    quota: &'a WatchQuota,
    own: &'a mut dyn Connection,
    key: &'a Key,
    marker: &'a Key,
}

impl Attempt<'_> {
    async fn call(&mut self, request: &Request) -> Result<Reply> {
        self.own.call(request, self.quota.kit.timeout()).await
    }

    async fn look(&mut self, cost: u64) -> Result<Seen> {
        self.call(&Request::new("WATCH").key(self.key).key(self.marker)).await?;
        if self.call(&Request::new("EXISTS").key(self.marker)).await?.into_int()? == 1 {
            return Ok(Seen::Decided(Spent::Already));
        }
        let stored = self.call(&Request::new("GET").key(self.key)).await?;
        if stored == Reply::Nil {
            return Ok(Seen::Room { used: 0, rest: None });
        }
        let used = stored.as_int().and_then(|it| u64::try_from(it).ok());
        let used = used.ok_or_else(|| Error::Corrupt("a quota is not a count".into()))?;
        let rest = self.call(&Request::new("PTTL").key(self.key)).await?.into_int()?;
        // Without a TTL it would limit for ever: it gets one.
        let rest = u64::try_from(rest).map_or(self.quota.window, Duration::from_millis);
        let rest = rest.clamp(Duration::from_millis(1), self.quota.window);
        match used.saturating_add(cost) > self.quota.max {
            true => Ok(Seen::Decided(Spent::Exceeded { retry_after: rest })),
            false => Ok(Seen::Room { used, rest: Some(rest) }),
        }
    }

    /// None: someone else was faster.
    async fn commit(
        &mut self,
        cost: u64,
        used: u64,
        rest: Option<Duration>,
        request: Option<&RequestId>,
    ) -> Result<Option<Spent>> {
        let rest = rest.unwrap_or(self.quota.window);
        self.call(&Request::new("MULTI")).await.map_err(Error::before_any_change)?;
        // The window ends when it would have: spending does not make it longer.
        let set = Request::new("SET").key(self.key).arg(used + cost).arg("PX").arg(rest);
        self.call(&set).await.map_err(Error::before_any_change)?;
        if request.is_some() {
            let ttl = self.quota.kit.settings().request_ttl;
            let mark = Request::new("SET").key(self.marker).arg("spent").arg("PX").arg(ttl);
            self.call(&mark).await.map_err(Error::before_any_change)?;
        }
        match self.call(&Request::new("EXEC")).await? {
            Reply::Nil => Ok(None),
            _ => Ok(Some(Spent::Within { remaining: self.quota.max - used - cost })),
        }
    }
}
