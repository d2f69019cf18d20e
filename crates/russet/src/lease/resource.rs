//! What can be held on one server: its keys and steps, and how one waits for it. All kinds of
//! leases are made of this.

use super::guard::{Claim, Guard};
use super::{Attempt, Fence, Release, Terms, Token};
use crate::error::{Error, Result};
use crate::key::Key;
use crate::kit::Kit;
use crate::observe::{self, stats};
use crate::step::{Safe, Step};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;

/// The first pause between two attempts; it doubles up to the longest. Whoever waits in the same
/// process is woken when the lease is released.
const PAUSE_MIN: Duration = Duration::from_millis(1);
const PAUSE_MAX: Duration = Duration::from_millis(50);

/// The steps of one kind. All of them have the token first; see the heads of their files.
#[derive(Debug)]
pub(super) struct Steps {
    pub acquire: &'static Step<Safe>,
    pub renew: &'static Step<Safe>,
    pub release: &'static Step<Safe>,
    /// A release may let more than one go on, or one in particular.
    pub wakes_all: bool,
}

stats! {
    /// What a handle, its clones and its guards have seen in this process.
    LeaseStats counted by Counts {
        /// Attempts that succeeded.
        acquired,
        /// Attempts that came to nothing because others had it.
        busy,
        /// Attempts that came to nothing because as many held it, or waited for it, as may.
        rejected,
        /// Renewals, by hand and by keep-alive.
        renewed,
        /// Releases of what was held until then.
        released,
        /// Renewals and releases of what was not held any more.
        lost,
    }
}

/// Something that can be held on one server.
#[derive(Debug)]
pub(super) struct Resource {
    kit: Kit,
    keys: Vec<Key>,
    steps: &'static Steps,
    terms: Terms,
    freed: Notify,
    counts: Counts,
}

/// How one asks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ask<'a> {
    wait: Option<Duration>,
    /// What the kind's acquire step takes behind token, ttl and memory.
    extra: &'a [u64],
    /// A refusal leaves something behind: a place in a queue.
    leaves_trace: bool,
    /// Another step than the kind's usual one.
    step: Option<&'static Step<Safe>>,
}

impl<'a> Ask<'a> {
    /// Now or not at all.
    pub fn once(extra: &'a [u64]) -> Self {
        Ask { wait: None, extra, leaves_trace: false, step: None }
    }

    pub fn within(wait: Duration, extra: &'a [u64]) -> Self {
        Ask { wait: Some(wait), ..Ask::once(extra) }
    }

    pub fn leaves_trace(mut self) -> Self {
        self.leaves_trace = true;
        self
    }

    pub fn by(mut self, step: &'static Step<Safe>) -> Self {
        self.step = Some(step);
        self
    }
}

/// The server's word.
#[derive(Clone, Copy, Debug)]
pub(super) enum Answer {
    /// Held until the kit's time is this.
    Held {
        fence: Fence,
        deadline: Duration,
    },
    Busy {
        retry_after: Duration,
    },
    Full,
}

impl Resource {
    pub fn new(kit: &Kit, keys: Vec<Key>, steps: &'static Steps, terms: Terms) -> Result<Self> {
        let terms = terms.checked()?;
        let (freed, counts) = (Notify::new(), Counts::default());
        Ok(Resource { kit: kit.clone(), keys, steps, terms, freed, counts })
    }

    pub fn stats(&self) -> LeaseStats {
        self.counts.stats()
    }

    pub fn kit(&self) -> &Kit {
        &self.kit
    }

    pub fn terms(&self) -> &Terms {
        &self.terms
    }

    pub fn key(&self, index: usize) -> Key {
        self.keys[index].clone()
    }

    /// Takes it for a token, which is released again if this future is dropped before it is done.
    pub async fn take(self: &Arc<Self>, token: Token, ask: Ask<'_>) -> Result<Attempt> {
        let mut pending = Pending::new(self, token);
        let started = ask.wait.map(|_wait| self.kit.time().elapsed());
        let mut pause = PAUSE_MIN;
        loop {
            let freed = self.freed.notified();
            tokio::pin!(freed);
            // From here on, so that a release during the attempt is not missed.
            if ask.wait.is_some() {
                freed.as_mut().enable();
            }
            let retry_after = match pending.attempt(ask).await? {
                Answer::Held { fence, deadline } => {
                    self.counts.acquired.add(1);
                    observe::count("redis.lease.acquired.count", "lease", 1);
                    let claim = pending.into_claim();
                    return Guard::new(vec![claim], 1, fence, deadline).map(Attempt::Held);
                }
                Answer::Full => {
                    self.counts.rejected.add(1);
                    return Ok(Attempt::Full);
                }
                Answer::Busy { retry_after } => retry_after,
            };
            let left = match (ask.wait, started) {
                (Some(wait), Some(started)) => {
                    wait.saturating_sub(self.kit.time().elapsed().saturating_sub(started))
                }
                _ => Duration::ZERO,
            };
            if left.is_zero() {
                self.counts.busy.add(1);
                observe::count("redis.lease.busy.count", "lease", 1);
                pending.give_up().await;
                return Ok(Attempt::Busy { retry_after });
            }
            pause = (pause * 2).min(PAUSE_MAX);
            let nap = (pause / 2 + crate::retry::jittered(pause / 2)).min(left);
            // Or when the holder's time is over, if that is sooner.
            let nap = if retry_after.is_zero() { nap } else { nap.min(retry_after) };
            tokio::select! {
                () = self.kit.time().sleep(nap) => {}
                () = &mut freed => pause = PAUSE_MIN,
            }
        }
    }

    /// Goes on with what a token holds.
    pub async fn adopt(self: &Arc<Self>, token: Token) -> Result<Attempt> {
        let claim = Claim::new(self, token);
        let started = self.kit.time().elapsed();
        match claim.renew(None).await? {
            Some(fence) => {
                let deadline = started + self.terms.safe_ttl();
                Guard::new(vec![claim], 1, fence, deadline).map(Attempt::Held)
            }
            None => Ok(Attempt::Busy { retry_after: Duration::ZERO }),
        }
    }

    /// Asks the server once.
    async fn ask(&self, token: &Token, ask: Ask<'_>) -> Result<Answer> {
        let started = self.kit.time().elapsed();
        let Terms { ttl, memory, .. } = self.terms;
        let mut call = self.kit.step(ask.step.unwrap_or(self.steps.acquire)).keys(&self.keys);
        call = call.arg(token.as_bytes()).arg(ttl).arg(memory);
        for number in ask.extra {
            call = call.arg(*number);
        }
        let envelope = call.run().await?;
        match envelope.status() {
            "HELD" => Ok(Answer::Held {
                fence: Fence(envelope.count("fence")?),
                deadline: started + self.terms.safe_ttl(),
            }),
            "BUSY" => Ok(Answer::Busy { retry_after: envelope.duration("retry_after_ms")? }),
            "RELEASED" => Ok(Answer::Busy { retry_after: Duration::ZERO }),
            "FULL" => Ok(Answer::Full),
            _ => Err(envelope.unexpected()),
        }
    }

    /// Gives the holder more time; None if it has lost it.
    pub async fn renew(&self, token: &Token, fence_min: Option<Fence>) -> Result<Option<Fence>> {
        let Terms { ttl, memory, .. } = self.terms;
        let call = self.kit.step(self.steps.renew).keys(&self.keys);
        let fence_min = fence_min.map_or(0, Fence::number);
        let call = call.arg(token.as_bytes()).arg(ttl).arg(memory).arg(fence_min);
        let envelope = call.run().await?;
        match envelope.status() {
            "RENEWED" => {
                self.counts.renewed.add(1);
                envelope.count("fence").map(|number| Some(Fence(number)))
            }
            "NOT_HELD" => {
                self.counts.lost.add(1);
                Ok(None)
            }
            _ => Err(envelope.unexpected()),
        }
    }

    pub async fn release(&self, token: &Token) -> Result<Release> {
        let call = self.kit.step(self.steps.release).keys(&self.keys);
        let envelope = call.arg(token.as_bytes()).arg(self.terms.memory).run().await?;
        if self.steps.wakes_all {
            self.freed.notify_waiters();
        } else {
            self.freed.notify_one();
        }
        match envelope.status() {
            "RELEASED" => {
                self.counts.released.add(1);
                Ok(Release::Released)
            }
            "NOT_HELD" => {
                self.counts.lost.add(1);
                Ok(Release::NotHeld)
            }
            _ => Err(envelope.unexpected()),
        }
    }
}

/// A token that may hold something on the server, and is released there unless a guard takes it.
#[derive(Debug)]
pub(super) struct Pending {
    claim: Option<Claim>,
    may_hold: bool,
}

impl Pending {
    pub fn new(resource: &Arc<Resource>, token: Token) -> Self {
        Pending { claim: Some(Claim::new(resource, token)), may_hold: false }
    }

    /// Asks once. Only a refusal that leaves nothing behind ends the doubt whether it holds.
    pub async fn attempt(&mut self, ask: Ask<'_>) -> Result<Answer> {
        let Some(claim) = &self.claim else {
            return Err(Error::invalid("the token is used already"));
        };
        self.may_hold = true;
        let answer = claim.resource().ask(claim.token(), ask).await?;
        match answer {
            Answer::Held { deadline, .. } if claim.resource().kit.time().elapsed() >= deadline => {
                Err(Error::Unavailable("the lease was over before the reply came".into()))
            }
            Answer::Held { .. } => Ok(answer),
            Answer::Busy { .. } => {
                self.may_hold = ask.leaves_trace;
                Ok(answer)
            }
            Answer::Full => {
                self.may_hold = false;
                Ok(answer)
            }
        }
    }

    /// Leaves nothing behind.
    pub async fn give_up(mut self) {
        if self.may_hold
            && let Some(claim) = &self.claim
            && claim.release().await.is_ok()
        {
            self.may_hold = false;
        }
    }

    pub fn into_claim(mut self) -> Claim {
        self.may_hold = false;
        self.claim.take().expect("a pending token has its claim until it is taken")
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if let (true, Some(claim)) = (self.may_hold, self.claim.take()) {
            claim.release_in_background();
        }
    }
}

#[cfg(feature = "embedded")]
#[cfg(test)]
mod tests {
    use super::*;
    use crate::lease::Lease;

    fn lease() -> Lease {
        let kit = Kit::embedded(crate::Options::default()).unwrap();
        Lease::new(&kit, "a", Duration::from_secs(60)).unwrap()
    }

    /// A lost reply makes the kit ask again with the same token.
    #[tokio::test]
    async fn a_repeated_attempt_has_the_same_number() {
        let lease = lease();
        let mut pending = Pending::new(lease.resource(), Token::random());
        let mut fences = Vec::new();
        for _ in 0..2 {
            match pending.attempt(Ask::once(&[])).await.unwrap() {
                Answer::Held { fence, .. } => fences.push(fence),
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(fences[0], fences[1]);
        let claim = pending.into_claim();
        assert_eq!(claim.release().await, Ok(Release::Released));
        assert_eq!(claim.release().await, Ok(Release::Released));
    }

    /// An attempt that was given up may arrive after its release.
    #[tokio::test]
    async fn an_attempt_that_comes_after_its_release_holds_nothing() {
        let lease = lease();
        let mut pending = Pending::new(lease.resource(), Token::random());
        let _ = pending.attempt(Ask::once(&[])).await.unwrap();
        let claim = pending.into_claim();
        assert_eq!(claim.release().await, Ok(Release::Released));
        let mut late = Pending::new(lease.resource(), claim.token().clone());
        assert!(matches!(late.attempt(Ask::once(&[])).await, Ok(Answer::Busy { .. })));
        assert!(lease.try_acquire().await.unwrap().is_held());
    }

    #[tokio::test]
    async fn arguments_that_make_no_sense_are_refused_before_anything_is_written() {
        let lease = lease();
        let resource = lease.resource();
        let kit = resource.kit();
        for (token, ttl, memory) in [("", "1", "1"), ("a", "0", "1"), ("a", "1", "x")] {
            let call = kit.step(&super::super::ACQUIRE).key(resource.key(0));
            let refused = call.arg(token).arg(ttl).arg(memory).run().await;
            assert!(matches!(refused, Err(Error::Invalid(_))), "{refused:?}");
        }
        let exists = kit.call(&crate::Request::new("EXISTS").key(&resource.key(0))).await;
        assert_eq!(exists.unwrap().as_int(), Some(0));
        kit.call(&crate::Request::new("SET").key(&resource.key(0)).arg("?")).await.unwrap();
        assert!(matches!(lease.try_acquire().await, Err(Error::Corrupt(_))));
    }
}
