//! A number of permits, each of which runs out by itself.

use super::resource::{Ask, Resource, Steps};
use super::{Attempt, FAMILY, LIVE, Terms, Token, bounded};
use crate::error::Result;
use crate::key::Scope;
use crate::kit::Kit;
use crate::step::{Safe, Step};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

const SHARED: &str = include_str!("permit_shared.lua");
pub(super) static ACQUIRE: Step<Safe> =
    Step::new("lease_permit_acquire", include_str!("permit_acquire.lua")).sharing(SHARED);
pub(super) static RENEW: Step<Safe> =
    Step::new("lease_permit_renew", include_str!("permit_renew.lua")).sharing(SHARED);
pub(super) static RELEASE: Step<Safe> =
    Step::new("lease_permit_release", include_str!("permit_release.lua")).sharing(SHARED);

static STEPS: Steps =
    Steps { acquire: &ACQUIRE, renew: &RENEW, release: &RELEASE, wakes_all: true };

const PERMITS_MAX: u32 = 1_000_000;
/// The most permits that one holder takes at once.
pub const WEIGHT_MAX: u32 = 1000;

/// At most so many holders at a time. The permit of a holder that crashed comes back when its time
/// is over.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use russet::lease::{Attempt, Semaphore};
/// use std::time::Duration;
///
/// let kit = russet::Kit::embedded(Default::default())?;
/// let exports = Semaphore::new(&kit, "exports", Duration::from_secs(60), 2)?;
/// let one = exports.try_acquire().await?;
/// let two = exports.try_acquire().await?;
/// assert!(matches!(exports.try_acquire().await?, Attempt::Busy { .. }));
/// assert_eq!(exports.stats().await?.in_use, 2);
/// # drop((one, two));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Semaphore {
    resource: Arc<Resource>,
    permits_max: u32,
}

/// How many permits of a semaphore are in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SemaphoreStats {
    /// Of all holders.
    pub in_use: u64,
    /// Of as many as this handle was made with.
    pub available: u64,
}

impl Semaphore {
    /// `permits_max` may differ between versions of a program: those who ask with less are refused
    /// earlier, and nobody loses a permit.
    pub fn new(
        kit: &Kit,
        scope: impl Into<Scope>,
        terms: impl Into<Terms>,
        permits_max: u32,
    ) -> Result<Self> {
        let permits_max = bounded("permits_max", permits_max, PERMITS_MAX)?;
        let keys = kit.keys(FAMILY, scope)?;
        let keys = vec![keys.key("permits"), keys.key("permits-fence")];
        let resource = Arc::new(Resource::new(kit, keys, &STEPS, terms.into())?);
        Ok(Semaphore { resource, permits_max })
    }

    /// Takes a permit, if one is free now.
    pub async fn try_acquire(&self) -> Result<Attempt> {
        self.try_acquire_many(1).await
    }

    /// Takes a permit as soon as one is free, or until `wait` is over.
    pub async fn acquire(&self, wait: Duration) -> Result<Attempt> {
        self.acquire_many(1, wait).await
    }

    /// Takes several permits at once, all or none; they are renewed and released together. At most
    /// [`WEIGHT_MAX`], and no more than there are.
    pub async fn try_acquire_many(&self, permits: u32) -> Result<Attempt> {
        let extra = [u64::from(self.permits_max)];
        self.resource.take(self.token(permits)?, Ask::once(&extra)).await
    }

    /// Waits until several permits are free at once. Whoever wants fewer meanwhile may come
    /// before: a semaphore keeps no queue.
    pub async fn acquire_many(&self, permits: u32, wait: Duration) -> Result<Attempt> {
        let extra = [u64::from(self.permits_max)];
        self.resource.take(self.token(permits)?, Ask::within(wait, &extra)).await
    }

    /// The token says how many permits it stands for, wherever it is handed over to.
    fn token(&self, permits: u32) -> Result<Token> {
        bounded("permits", permits, self.permits_max.min(WEIGHT_MAX))?;
        match permits {
            1 => Ok(Token::random()),
            _ => Ok(Token::weighted(permits)),
        }
    }

    /// Goes on with a permit that was [handed over](super::Guard::hand_over).
    pub async fn adopt(&self, token: Token) -> Result<Attempt> {
        self.resource.adopt(token).await
    }

    /// How many permits are in use, in the store: of all processes.
    pub async fn stats(&self) -> Result<SemaphoreStats> {
        let call = self.resource.kit().step(&LIVE).key(self.resource.key(0));
        let in_use = call.run().await?.count("count")?;
        let available = u64::from(self.permits_max).saturating_sub(in_use);
        Ok(SemaphoreStats { in_use, available })
    }
}

impl fmt::Debug for Semaphore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Semaphore")
            .field("terms", self.resource.terms())
            .field("permits_max", &self.permits_max)
            .finish_non_exhaustive()
    }
}
