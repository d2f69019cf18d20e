//! A slot under a limit of concurrency, held by a value.

use super::decision::{Allowed, Charge, Denied, LimitStatus};
use super::{Limiter, Renewal};
use crate::error::Result;

/// What came of asking for a slot.
#[derive(Debug)]
#[must_use = "who was denied must not go on"]
pub enum Entry {
    /// Until the permit is dropped.
    Admitted(Permit),
    /// There is none, or another limit denies.
    Denied(Denied),
}

/// A slot. It is given up in the background when this is dropped; if that fails it runs out by
/// itself.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use russet::limit::{Entry, Limit, Limiter, Outage};
/// use std::time::Duration;
///
/// let kit = russet::Kit::embedded(Default::default())?;
/// let limit = Limit::concurrency("exports", 1, Duration::from_secs(60))?;
/// let exports = Limiter::new(&kit, "exports", [limit], Outage::Deny)?;
/// let Entry::Admitted(permit) = exports.enter("user-1", 1, None).await? else {
///     return Ok(()); // Another export of this user runs.
/// };
/// assert!(matches!(exports.enter("user-1", 1, None).await?, Entry::Denied(_)));
/// permit.release().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use = "the slot is given up when the permit is dropped"]
pub struct Permit {
    limiter: Limiter,
    allowed: Allowed,
}

impl Permit {
    pub(super) fn new(limiter: Limiter, allowed: Allowed) -> Self {
        Permit { limiter, allowed }
    }

    /// What was charged; none if the store could not be asked.
    pub fn charge(&self) -> Option<&Charge> {
        self.allowed.charge.as_ref()
    }

    /// The state of each limit when it was admitted.
    pub fn limits(&self) -> &[LimitStatus] {
        &self.allowed.limits
    }

    /// Holds the slot for another while. What lasts longer than the limit's `hold` must call this
    /// in time.
    pub async fn renew(&self) -> Result<Renewal> {
        match &self.allowed.charge {
            Some(charge) => self.limiter.renew(charge).await,
            None => Ok(Renewal::Lost),
        }
    }

    /// How long it is held without being renewed; None if there is no slot.
    #[cfg(feature = "tower")]
    pub(crate) fn hold_min(&self) -> Option<std::time::Duration> {
        self.limiter.hold_min().filter(|_hold| self.allowed.charge.is_some())
    }

    #[cfg(feature = "tower")]
    pub(crate) fn time(&self) -> &crate::Time {
        self.limiter.inner.kit.time()
    }

    /// Gives up the slot now, and waits until that is done.
    pub async fn release(mut self) -> Result<()> {
        if let Some(charge) = &self.allowed.charge {
            // If this future is dropped here, the permit is, and gives up the slot.
            self.limiter.release(charge).await?;
            self.allowed.charge = None;
        }
        Ok(())
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if let Some(charge) = self.allowed.charge.take() {
            release_apart(&self.limiter, charge);
        }
    }
}

/// A question whose answer nobody knows: it may hold a slot, which is given up if whoever asked
/// goes away before it is answered, or the answer is lost.
pub(super) struct Unanswered<'l> {
    limiter: &'l Limiter,
    charge: Option<Charge>,
}

impl<'l> Unanswered<'l> {
    pub fn new(limiter: &'l Limiter, charge: &Charge) -> Self {
        let charge = limiter.has_slots().then(|| charge.clone());
        Unanswered { limiter, charge }
    }

    pub fn answered(mut self) {
        self.charge = None;
    }
}

impl Drop for Unanswered<'_> {
    fn drop(&mut self) {
        if let Some(charge) = self.charge.take() {
            release_apart(self.limiter, charge);
        }
    }
}

/// Gives up slots in the background. Without a runtime they run out by themselves.
fn release_apart(limiter: &Limiter, charge: Charge) {
    if limiter.has_slots() {
        let (limiter, kit) = (limiter.clone(), limiter.inner.kit.clone());
        let _ = kit.spawn(async move {
            let _ = limiter.release(&charge).await;
        });
    }
}
