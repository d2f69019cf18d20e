//! What the queues with receipts have in common: their settings, how a claim is made and how it
//! ends, and that workers take jobs from them. What is left to each are its steps.

use super::source::{ClaimId, Claimed, Source};
use super::{
    Acked, Bounds, Delivery, Ending, Extended, Failure, Job, Receipt, Returned, short_reason,
};
use crate::backend::Pending;
use crate::error::Result;
use crate::key::{Family, Key, Keys, Scope};
use crate::kit::Kit;
use crate::observe;
use crate::retry::RequestId;
use crate::step::{Safe, Step, StepCall, WithRequestId};
use std::time::Duration;

/// A call of a step that may run twice if it has a request id.
pub(super) type Call<'k> = StepCall<'k, WithRequestId>;

/// What each of them is made of.
#[derive(Debug)]
pub(super) struct Core {
    pub kit: Kit,
    pub keys: Keys,
    pub bounds: Bounds,
    pub delivery: Delivery,
}

/// The settings of all of them.
#[derive(Clone, Debug)]
pub(super) struct Setup {
    kit: Kit,
    name: Scope,
    bounds: Bounds,
    pub delivery: Delivery,
}

impl Setup {
    pub fn new(kit: &Kit, name: impl Into<Scope>, bounds: Bounds) -> Self {
        Setup { kit: kit.clone(), name: name.into(), bounds, delivery: Delivery::default() }
    }

    /// Unless they make no sense.
    pub fn build(self, family: Family) -> Result<Core> {
        let Setup { kit, name, bounds, delivery } = self;
        bounds.check()?;
        delivery.check()?;
        let keys = kit.keys(family, name)?;
        Ok(Core { kit, keys, bounds, delivery })
    }
}

impl Core {
    /// A call of one of its steps.
    pub fn step(
        &self,
        step: &'static Step<WithRequestId>,
        request: Option<&RequestId>,
    ) -> Call<'_> {
        self.kit.step_of_request(step, &self.keys, request)
    }
}

/// What ends an attempt that has not done its job, as its step is told.
pub(super) struct Unfinished<'a> {
    pub receipt: &'a Receipt,
    /// Not longer than it is kept.
    pub reason: &'a str,
    pub ending: Ending,
}

/// A queue with receipts.
pub(super) trait WithReceipts: Send + Sync + 'static {
    /// For logs and metrics.
    const NAME: &'static str;
    /// The metric of claims that nobody ended in time.
    const EXPIRED: &'static str;
    /// The histogram of how long claims take.
    const CLAIM_LATENCY: &'static str;

    fn core(&self) -> &Core;

    fn claim_step(&self) -> &'static Step<WithRequestId>;

    /// Its keys, behind them that of an earlier claim that is answered, and its arguments.
    fn claim_call<'k>(&self, call: Call<'k>, answered: Option<Key>, limit: u32) -> Call<'k>;

    /// Its keys.
    fn ack_call(&self, request: Option<&RequestId>) -> Call<'_>;

    /// Its keys and arguments.
    fn end_call(&self, how: &Unfinished<'_>, request: Option<&RequestId>) -> Call<'_>;

    /// Its keys and arguments.
    fn extend_call(&self, receipt: &Receipt) -> StepCall<'_, Safe>;

    /// How long a job rests after this attempt.
    fn pause(&self, attempt: u32) -> Duration;

    /// Until there may be something to claim, and no longer than this.
    fn wait_for_jobs(&self, at_most: Duration) -> Pending<'_, ()>;

    /// What a claim that found nothing tells beside that.
    fn heard_empty(&self, envelope: &mut crate::Envelope) -> Result<()> {
        let _ = envelope;
        Ok(())
    }
}

/// Runs a claim.
pub(super) async fn claim<Q: WithReceipts + ?Sized>(queue: &Q, call: Call<'_>) -> Result<Claimed> {
    let watch = observe::Stopwatch::start();
    let mut envelope = call.run().await?;
    observe::latency(Q::CLAIM_LATENCY, Q::NAME, watch);
    let expired = envelope.count("expired")?;
    if expired > 0 {
        observe::count(Q::EXPIRED, Q::NAME, expired);
    }
    if envelope.is("EMPTY") {
        queue.heard_empty(&mut envelope)?;
    }
    Claimed::read(&mut envelope)
}

/// Runs a claim of the caller's.
pub(super) async fn claim_once<Q: WithReceipts + ?Sized>(
    queue: &Q,
    limit: u32,
    request: Option<&RequestId>,
) -> Result<Claimed> {
    let call = queue.core().step(queue.claim_step(), request);
    claim(queue, queue.claim_call(call, None, limit)).await
}

/// Ends a job that is done.
pub(super) async fn ack<Q: WithReceipts + ?Sized>(
    queue: &Q,
    receipt: &Receipt,
    request: Option<&RequestId>,
) -> Result<Acked> {
    let call = queue.ack_call(request).about(receipt.as_bytes());
    let call = call.replicas_min(queue.core().delivery.min_replicas);
    Acked::read(&call.run().await?)
}

/// Ends an attempt that has not done its job.
pub(super) async fn end_attempt<Q: WithReceipts + ?Sized>(
    queue: &Q,
    (receipt, reason): (&Receipt, &str),
    ending: Ending,
    request: Option<&RequestId>,
) -> Result<Returned> {
    let how = Unfinished { receipt, reason: short_reason(reason), ending };
    let call = queue.end_call(&how, request);
    let call = call.replicas_min(queue.core().delivery.min_replicas);
    let returned = Returned::read(&call.run().await?)?;
    match returned {
        Returned::Retried { .. } => observe::count("redis.queue.requeue.count", Q::NAME, 1),
        Returned::Dead { .. } => observe::count("redis.queue.failed.count", Q::NAME, 1),
        _ => {}
    }
    Ok(returned)
}

/// Keeps a job for another visibility, counted from now.
pub(super) async fn extend<Q: WithReceipts + ?Sized>(
    queue: &Q,
    receipt: &Receipt,
) -> Result<Extended> {
    Extended::read(&queue.extend_call(receipt).run().await?)
}

#[allow(private_bounds, reason = "which queues these are is our affair; others may be sources too")]
impl<Q: WithReceipts> Source for Q {
    fn claim<'a>(&'a self, limit: u32, id: &'a ClaimId) -> Pending<'a, Claimed> {
        let Core { kit, keys, delivery, .. } = self.core();
        let (call, answered) = id.step(kit, self.claim_step(), (keys, delivery.visibility));
        Box::pin(claim(self, self.claim_call(call, answered, limit)))
    }

    fn ack<'a>(&'a self, receipt: &'a Receipt) -> Pending<'a, Acked> {
        Box::pin(ack(self, receipt, None))
    }

    fn fail<'a>(&'a self, job: &'a Job, failure: &'a Failure) -> Pending<'a, Returned> {
        let ending = match failure.delay(|| self.pause(job.attempt)) {
            Some(delay) => Ending::Retry(delay),
            None => Ending::DeadLetter,
        };
        Box::pin(end_attempt(self, (&job.receipt, failure.reason.as_str()), ending, None))
    }

    fn give_back<'a>(&'a self, job: &'a Job) -> Pending<'a, Returned> {
        let why = (&job.receipt, super::GIVEN_BACK);
        Box::pin(end_attempt(self, why, Ending::Uncounted, None))
    }

    fn extend<'a>(&'a self, receipt: &'a Receipt) -> Pending<'a, Extended> {
        Box::pin(extend(self, receipt))
    }

    fn wait(&self, at_most: Duration) -> Pending<'_, ()> {
        self.wait_for_jobs(at_most)
    }

    fn visibility(&self) -> Duration {
        self.core().delivery.visibility
    }

    fn kit(&self) -> &Kit {
        &self.core().kit
    }

    fn name(&self) -> &'static str {
        Q::NAME
    }
}
