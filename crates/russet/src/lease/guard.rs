//! The guard of a lease: renews it, says when it is lost, gives it back.

use super::resource::Resource;
use super::{Fence, Stamp, Token};
use crate::error::{Error, Result};
use crate::observe;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::task::JoinSet;

/// How often within its TTL a lease is renewed.
const RENEWALS_PER_TTL: u32 = 3;
/// How often within the pause between two renewals one that failed is tried again.
const RETRIES_PER_RENEWAL: u32 = 4;

/// What came of giving a lease back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Release {
    /// It is free, and nobody else has had it since.
    Released,
    /// It was not held any more: its time was over, and another may have worked meanwhile.
    NotHeld,
}

/// What came of a renewal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Renewal {
    /// Held for this long by the holder's own clock.
    Renewed {
        /// From now on.
        remaining: Duration,
    },
    /// Another may have it: nothing that only the holder may do is to be begun.
    Lost,
}

/// A token on one server.
#[derive(Clone, Debug)]
pub(super) struct Claim {
    resource: Arc<Resource>,
    token: Token,
}

impl Claim {
    pub fn new(resource: &Arc<Resource>, token: Token) -> Self {
        Claim { resource: resource.clone(), token }
    }

    pub fn resource(&self) -> &Arc<Resource> {
        &self.resource
    }

    pub fn token(&self) -> &Token {
        &self.token
    }

    pub async fn renew(&self, fence_min: Option<Fence>) -> Result<Option<Fence>> {
        self.resource.renew(&self.token, fence_min).await
    }

    pub async fn release(&self) -> Result<Release> {
        self.resource.release(&self.token).await
    }

    /// Without a runtime there is no background: then it is free when its time is over.
    pub fn release_in_background(self) {
        let kit = self.resource.kit().clone();
        let _ = kit.spawn(async move {
            // Whatever this can't reach runs out by itself.
            let _ = self.release().await;
        });
    }
}

/// A lease that is held. Dropping it gives the lease back, in the background.
///
/// It answers from the holder's own clock, started before the lease was asked for and less what
/// clocks may drift apart: it says that the lease is lost before anyone else can have it.
#[must_use = "dropping the guard releases the lease"]
pub struct Guard {
    hold: Arc<Hold>,
    /// Nothing is left to be given back.
    is_given_back: bool,
}

/// What guard and keep-alive share.
struct Hold {
    claims: Vec<Claim>,
    /// On how many servers it must be held.
    needed: usize,
    fence: Fence,
    /// In microseconds of the kit's time.
    deadline_us: AtomicU64,
    /// Released, handed over, or known to be lost.
    is_over: AtomicBool,
    changed: Notify,
    turns: AtomicU64,
}

impl Guard {
    pub(super) fn new(
        claims: Vec<Claim>,
        needed: usize,
        fence: Fence,
        deadline: Duration,
    ) -> Result<Self> {
        let hold = Arc::new(Hold {
            claims,
            needed,
            fence,
            deadline_us: AtomicU64::new(micros(deadline)),
            is_over: AtomicBool::new(false),
            changed: Notify::new(),
            turns: AtomicU64::new(0),
        });
        let guard = Guard { hold, is_given_back: false };
        let (kit, terms) = (guard.hold.resource().kit(), guard.hold.resource().terms());
        if let Some(hold_max) = terms.hold_max {
            let until = kit.time().elapsed() + hold_max;
            kit.spawn(keep_alive(guard.hold.clone(), until))?;
        }
        Ok(guard)
    }

    /// The number to send along with every write that only the holder may make.
    pub fn fence(&self) -> Fence {
        self.hold.fence
    }

    /// The fencing number and the count of this holder's writes, for [`Fenced`](super::Fenced).
    pub fn stamp(&self) -> Stamp {
        Stamp { fence: self.hold.fence, turn: self.hold.turns.fetch_add(1, Ordering::Relaxed) }
    }

    /// For how long it is surely held; none if it is lost.
    pub fn remaining(&self) -> Option<Duration> {
        self.hold.remaining()
    }

    /// Whether it is surely held now.
    pub fn is_held(&self) -> bool {
        self.remaining().is_some()
    }

    /// Done when the lease is lost: its time is over, or the server has said so.
    pub async fn lost(&self) {
        self.hold.lost().await;
    }

    /// Runs the work of the holder. None if the lease was lost before it was done: the work is
    /// dropped then, wherever it was.
    pub async fn while_held<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            () = self.lost() => None,
            done = work => Some(done),
        }
    }

    /// Renews it by hand. Not needed with [`keep_alive`](super::Terms::keep_alive).
    pub async fn renew(&self) -> Result<Renewal> {
        self.hold.renew().await
    }

    /// Gives it back, and says whether it was still held.
    pub async fn release(mut self) -> Result<Release> {
        // First, so that no renewal is begun any more; one under way finds nothing to renew.
        self.hold.end();
        let released = self.hold.release().await;
        self.is_given_back = released.is_ok();
        released
    }

    /// Ends the guard but not the lease: another process goes on with the token, by
    /// [`adopt`](super::Lease::adopt), before the time is over. A lease of several servers is
    /// refused, and released.
    pub fn hand_over(mut self) -> Result<Token> {
        let [claim] = self.hold.claims.as_slice() else {
            return Err(Error::invalid("a lease of several servers is not handed over"));
        };
        let token = claim.token().clone();
        self.hold.end();
        self.is_given_back = true;
        Ok(token)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.hold.end();
        if !self.is_given_back {
            for claim in &self.hold.claims {
                claim.clone().release_in_background();
            }
        }
    }
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard")
            .field("fence", &self.hold.fence)
            .field("remaining", &self.remaining())
            .finish_non_exhaustive()
    }
}

impl Hold {
    fn resource(&self) -> &Resource {
        self.claims[0].resource()
    }

    fn remaining(&self) -> Option<Duration> {
        if self.is_over.load(Ordering::Acquire) {
            return None;
        }
        let deadline = Duration::from_micros(self.deadline_us.load(Ordering::Acquire));
        let left = deadline.saturating_sub(self.resource().kit().time().elapsed());
        Some(left).filter(|left| !left.is_zero())
    }

    async fn lost(&self) {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            let Some(left) = self.remaining() else {
                return;
            };
            tokio::select! {
                () = self.resource().kit().time().sleep(left) => {}
                () = changed => {}
            }
        }
    }

    /// From here on it counts as lost.
    fn end(&self) {
        self.is_over.store(true, Ordering::Release);
        self.changed.notify_waiters();
    }

    /// The time of a renewal counts from before it was asked for.
    async fn renew(&self) -> Result<Renewal> {
        if self.remaining().is_none() {
            return Ok(Renewal::Lost);
        }
        let started = self.resource().kit().time().elapsed();
        let results = self.on_each(|claim| async move { claim.renew(None).await }).await;
        let held = results.iter().filter(|it| matches!(it, Ok(Some(_)))).count();
        let gone = results.iter().filter(|it| matches!(it, Ok(None))).count();
        if held >= self.needed {
            let deadline = started + self.resource().terms().safe_ttl();
            self.deadline_us.fetch_max(micros(deadline), Ordering::AcqRel);
            self.changed.notify_waiters();
            return Ok(self
                .remaining()
                .map_or(Renewal::Lost, |remaining| Renewal::Renewed { remaining }));
        }
        if gone > self.claims.len() - self.needed {
            observe::count("redis.lease.lost.count", "lease", 1);
            self.end();
            return Ok(Renewal::Lost);
        }
        observe::count("redis.lease.renewal.failed.count", "lease", 1);
        let error = results.into_iter().find_map(Result::err);
        Err(error.unwrap_or_else(|| Error::Unavailable("too few servers have answered".into())))
    }

    async fn release(&self) -> Result<Release> {
        let results = self.on_each(|claim| async move { claim.release().await }).await;
        let released = results.iter().filter(|it| matches!(it, Ok(Release::Released))).count();
        let gone = results.iter().filter(|it| matches!(it, Ok(Release::NotHeld))).count();
        if released >= self.needed {
            return Ok(Release::Released);
        }
        if gone > self.claims.len() - self.needed {
            return Ok(Release::NotHeld);
        }
        let error = results.into_iter().find_map(Result::err);
        Err(error.unwrap_or_else(|| Error::Unavailable("too few servers have answered".into())))
    }

    async fn on_each<T, F>(&self, run: impl Fn(Claim) -> F) -> Vec<Result<T>>
    where
        T: Send + 'static,
        F: Future<Output = Result<T>> + Send + 'static,
    {
        each(&self.claims, run).await
    }
}

/// Runs something for each claim, on all servers at the same time.
pub(super) async fn each<T, F>(claims: &[Claim], run: impl Fn(Claim) -> F) -> Vec<Result<T>>
where
    T: Send + 'static,
    F: Future<Output = Result<T>> + Send + 'static,
{
    if let [claim] = claims {
        return vec![run(claim.clone()).await];
    }
    let mut tasks = JoinSet::new();
    for claim in claims {
        tasks.spawn(run(claim.clone()));
    }
    let mut results = Vec::with_capacity(claims.len());
    while let Some(joined) = tasks.join_next().await {
        results.push(joined.unwrap_or_else(|error| Err(Error::Unknown(error.to_string()))));
    }
    results
}

/// Renews until the guard ends, the lease is lost, or it was held for as long as allowed.
async fn keep_alive(hold: Arc<Hold>, until: Duration) {
    let (kit, ttl) = (hold.resource().kit().clone(), hold.resource().terms().ttl);
    let period = ttl / RENEWALS_PER_TTL;
    let mut pause = period;
    loop {
        let next = kit.time().elapsed() + pause;
        if next > until || !wait_until(&hold, next).await {
            return;
        }
        pause = match hold.renew().await {
            Ok(Renewal::Renewed { .. }) => period,
            Ok(Renewal::Lost) => return,
            // The server may be back before the time is over.
            Err(_) => period / RETRIES_PER_RENEWAL,
        };
    }
}

/// Whether the lease is still held at that moment.
async fn wait_until(hold: &Hold, moment: Duration) -> bool {
    let time = hold.resource().kit().time();
    loop {
        let changed = hold.changed.notified();
        tokio::pin!(changed);
        changed.as_mut().enable();
        if hold.remaining().is_none() {
            return false;
        }
        if time.elapsed() >= moment {
            return true;
        }
        tokio::select! {
            () = time.sleep_until(moment) => {}
            () = changed => {}
        }
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}
