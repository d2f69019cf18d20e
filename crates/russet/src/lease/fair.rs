//! A lease that is given in the order of arrival.

use super::resource::{Ask, LeaseStats, Resource, Steps};
use super::{Attempt, FAMILY, LIVE, RENEW, Terms, Token, bounded};
use crate::error::{Error, Result};
use crate::key::Scope;
use crate::kit::Kit;
use crate::step::{Safe, Step};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

pub(super) static ACQUIRE: Step<Safe> =
    Step::new("lease_fair_acquire", include_str!("fair_acquire.lua"));
pub(super) static RELEASE: Step<Safe> =
    Step::new("lease_fair_release", include_str!("fair_release.lua"));

static STEPS: Steps =
    Steps { acquire: &ACQUIRE, renew: &RENEW, release: &RELEASE, wakes_all: true };

/// How long a waiter that says nothing is waited for.
const PATIENCE: Duration = Duration::from_secs(3);
const PATIENCE_MIN: Duration = Duration::from_millis(200);
const PATIENCE_MAX: Duration = Duration::from_secs(3600);
const WAITERS: u32 = 1000;
const WAITERS_MAX: u32 = 100_000;

/// The terms of a [`FairLease`].
#[derive(Clone, Copy, Debug)]
pub struct FairTerms {
    terms: Terms,
    patience: Duration,
    waiters_max: u32,
}

impl FairTerms {
    /// With the usual patience and number of waiters.
    pub fn new(terms: impl Into<Terms>) -> Self {
        FairTerms { terms: terms.into(), patience: PATIENCE, waiters_max: WAITERS }
    }

    /// How long a waiter that has died holds up those behind it; 3 seconds by default. Waiters ask
    /// again many times within it.
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// How many may wait; 1,000 by default. Whoever comes then gets [`Attempt::Full`].
    pub fn waiters_max(mut self, waiters_max: u32) -> Self {
        self.waiters_max = waiters_max;
        self
    }
}

impl<T: Into<Terms>> From<T> for FairTerms {
    fn from(terms: T) -> Self {
        FairTerms::new(terms)
    }
}

/// A lease that whoever waits longest gets next.
///
/// A waiter that dies is passed over when its patience is over, counted from when it was last
/// heard of; any number of dead ones go at once.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use russet::lease::{FairLease, FairTerms};
/// use std::time::Duration;
///
/// let kit = russet::Kit::embedded(Default::default())?;
/// let lease = FairLease::new(&kit, "printer", Duration::from_secs(5))?;
/// let guard = lease.acquire(Duration::from_secs(1)).await?.held().ok_or("busy")?;
/// assert_eq!(lease.waiters().await?, 0);
/// # drop(guard);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct FairLease {
    resource: Arc<Resource>,
    patience_ms: u64,
    waiters_max: u32,
}

impl FairLease {
    /// The lease of this name. All processes give the same terms.
    pub fn new(kit: &Kit, scope: impl Into<Scope>, terms: impl Into<FairTerms>) -> Result<Self> {
        let FairTerms { terms, patience, waiters_max } = terms.into();
        if patience < PATIENCE_MIN || patience > PATIENCE_MAX {
            let bounds = format!("patience must be between {PATIENCE_MIN:?} and {PATIENCE_MAX:?}");
            return Err(Error::Invalid(bounds));
        }
        let waiters_max = bounded("waiters_max", waiters_max, WAITERS_MAX)?;
        let keys = kit.keys(FAMILY, scope)?;
        let keys = vec![keys.key("fair"), keys.key("queue"), keys.key("waiters")];
        let resource = Arc::new(Resource::new(kit, keys, &STEPS, terms)?);
        Ok(FairLease { resource, patience_ms: crate::time::millis(patience), waiters_max })
    }

    /// What this handle, its clones and its guards have seen.
    pub fn stats(&self) -> LeaseStats {
        self.resource.stats()
    }

    /// Takes it if it is free and nobody waits.
    pub async fn try_acquire(&self) -> Result<Attempt> {
        let extra = [0, u64::from(self.waiters_max)];
        self.resource.take(Token::random(), Ask::once(&extra)).await
    }

    /// Waits for its turn, but no longer than this.
    pub async fn acquire(&self, wait: Duration) -> Result<Attempt> {
        let extra = [self.patience_ms, u64::from(self.waiters_max)];
        self.resource.take(Token::random(), Ask::within(wait, &extra).leaves_trace()).await
    }

    /// Goes on with a lease that was [handed over](super::Guard::hand_over).
    pub async fn adopt(&self, token: Token) -> Result<Attempt> {
        self.resource.adopt(token).await
    }

    /// How many wait now.
    pub async fn waiters(&self) -> Result<u64> {
        self.resource.kit().step(&LIVE).key(self.resource.key(2)).run().await?.count("count")
    }
}

impl fmt::Debug for FairLease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FairLease").field("terms", self.resource.terms()).finish_non_exhaustive()
    }
}
