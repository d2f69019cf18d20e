//! The reliable list queue: strict order, and no job is lost with its worker.

use super::jobs::{ACK, DISCARD, EXTEND, LETTERS, SHARED};
use super::receipts::{self, Call, Core, Setup, Unfinished, WithReceipts};
use super::source::{Claimed, wait_for_bell};
use super::{
    Acked, Bounds, CLAIM_MAX, DeadLetter, Discarded, Ending, Extended, JobId, Receipt, Requeued,
    Returned, Scheduled, delivery_settings,
};
use crate::backend::Pending;
use crate::error::Result;
use crate::key::{Family, Key, Scope};
use crate::kit::Kit;
use crate::observe;
use crate::retry::{RequestId, token};
use crate::step::{Class, Safe, Step, StepCall, StepInfo, WithRequestId};
use std::sync::Arc;
use std::time::Duration;

const FAMILY: Family = Family { purpose: "reliable", version: 1 };
const WORKFLOW: &str = "reliable";

static PUSH: Step<WithRequestId> =
    Step::new("reliable_push", include_str!("reliable/push.lua")).sharing(SHARED);
static TAKE: Step<WithRequestId> =
    Step::new("reliable_take", include_str!("reliable/take.lua")).sharing(SHARED);
static RETRY: Step<WithRequestId> =
    Step::new("reliable_retry", include_str!("reliable/retry.lua")).sharing(SHARED);
static REQUEUE: Step<WithRequestId> =
    Step::new("reliable_requeue", include_str!("reliable/requeue.lua")).sharing(SHARED);
static STATS: Step<Safe> = Step::read_only("reliable_stats", include_str!("reliable/stats.lua"));

pub(crate) static STEPS: &[&StepInfo] =
    &[PUSH.info(), TAKE.info(), RETRY.info(), REQUEUE.info(), STATS.info()];

/// The keys of a queue, in the order in which most steps take them.
const PARTS: [&str; 6] = ["meta", "jobs", "ready", "taken", "dead", "graves"];

/// A list of jobs in strict order. What is taken stays with its taker until it is acknowledged; if
/// that takes too long the next who asks gets it, before all others. Clones are handles to the same
/// queue.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use russet::queue::{Acked, Bounds, Reliable};
/// use std::time::Duration;
///
/// let kit = russet::Kit::embedded(Default::default())?;
/// let bounds = Bounds { capacity: 1000, ttl: Duration::from_secs(86_400) };
/// let bills = Reliable::builder(&kit, "bills", bounds).build()?;
/// let _ = bills.push("bill 1", None).await?;
/// for job in bills.take(1, None).await?.jobs() {
///     assert_eq!(bills.ack(&job.receipt, None).await?, Acked::Acked);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Reliable {
    core: Arc<Core>,
}

attempt_endings!(Reliable);

impl Reliable {
    /// Begins to describe the queue of this name. Nothing is sent before it is used.
    pub fn builder(kit: &Kit, name: impl Into<Scope>, bounds: Bounds) -> ReliableBuilder {
        ReliableBuilder { setup: Setup::new(kit, name, bounds) }
    }

    /// Adds a job with a random id, or with one that is made of the id of its request.
    pub async fn push(
        &self,
        payload: impl AsRef<[u8]>,
        request: Option<&RequestId>,
    ) -> Result<Scheduled> {
        let id = match request {
            Some(request) => JobId::of_request(&self.core.kit, request, payload.as_ref()),
            None => JobId::random(),
        };
        self.push_unique(&id, payload, request).await
    }

    /// Adds a job whose id is unique as long as it is not done.
    pub async fn push_unique(
        &self,
        id: &JobId,
        payload: impl AsRef<[u8]>,
        request: Option<&RequestId>,
    ) -> Result<Scheduled> {
        id.check()?;
        let Core { kit, keys, bounds, delivery } = &*self.core;
        delivery.check_payload(payload.as_ref())?;
        let call = self
            .with_parts(kit.step_of_request(&PUSH, keys, request))
            .key(keys.key("bell"))
            .about(id.as_bytes())
            .arg(payload.as_ref())
            .arg(bounds.capacity)
            .arg(bounds.ttl)
            .replicas_min(delivery.min_replicas);
        let envelope = call.run().await?;
        match envelope.status() {
            "SCHEDULED" => Ok(Scheduled::Scheduled(id.clone())),
            "DUPLICATE" => Ok(Scheduled::Duplicate),
            "FULL" => Ok(Scheduled::Full),
            _ => Err(envelope.unexpected()),
        }
    }

    /// Takes up to `limit` jobs, and at most [`CLAIM_MAX`].
    pub async fn take(&self, limit: u32, request: Option<&RequestId>) -> Result<Claimed> {
        receipts::claim_once(self, limit, request).await
    }

    /// Ends a job that is done.
    pub async fn ack(&self, receipt: &Receipt, request: Option<&RequestId>) -> Result<Acked> {
        receipts::ack(self, receipt, request).await
    }

    /// Gives a job back that has failed: to the end of the queue.
    pub async fn retry(
        &self,
        receipt: &Receipt,
        reason: &str,
        request: Option<&RequestId>,
    ) -> Result<Returned> {
        let ending = Ending::Retry(Duration::ZERO);
        receipts::end_attempt(self, (receipt, reason), ending, request).await
    }

    /// Keeps a job for another visibility, counted from now.
    pub async fn extend(&self, receipt: &Receipt) -> Result<Extended> {
        receipts::extend(self, receipt).await
    }

    /// Some dead letters, the oldest first, at most [`CLAIM_MAX`].
    pub async fn dead_letters(&self, offset: u32, limit: u32) -> Result<Vec<DeadLetter>> {
        let Core { kit, keys, .. } = &*self.core;
        let call = kit
            .step(&LETTERS)
            .key(keys.key("dead"))
            .key(keys.key("graves"))
            .arg(offset)
            .arg(limit.min(CLAIM_MAX));
        let letters = call.run().await?.list("letters")?;
        letters.into_iter().map(DeadLetter::read).collect()
    }

    /// Makes a job of a dead letter.
    pub async fn requeue(&self, id: &JobId, request: Option<&RequestId>) -> Result<Requeued> {
        let Core { kit, keys, bounds, .. } = &*self.core;
        let call = self
            .with_parts(kit.step_of_request(&REQUEUE, keys, request))
            .key(keys.key("bell"))
            .about(id.as_bytes())
            .arg(bounds.capacity)
            .arg(bounds.ttl);
        Requeued::read(&call.run().await?)
    }

    /// Forgets a dead letter.
    pub async fn discard(&self, id: &JobId) -> Result<Discarded> {
        let Core { kit, keys, .. } = &*self.core;
        let call = kit.step(&DISCARD).key(keys.key("dead")).key(keys.key("graves"));
        Discarded::read(&call.arg(id.as_bytes()).run().await?)
    }

    /// How many jobs there are of each kind, and what has happened to them.
    pub async fn stats(&self) -> Result<ReliableStats> {
        let Core { kit, keys, .. } = &*self.core;
        let mut call = kit.step(&STATS);
        for part in ["meta", "ready", "taken", "dead"] {
            call = call.key(keys.key(part));
        }
        let envelope = call.run().await?;
        let stats = ReliableStats {
            ready: envelope.count("ready")?,
            running: envelope.count("running")?,
            dead: envelope.count("dead")?,
            scheduled: envelope.count("scheduled")?,
            acked: envelope.count("acked")?,
            retried: envelope.count("retried")?,
            expired: envelope.count("expired")?,
            died: envelope.count("died")?,
            dropped: envelope.count("dropped")?,
            requeued: envelope.count("requeued")?,
            lost: envelope.count("lost")?,
        };
        observe::gauge("redis.queue.length", WORKFLOW, stats.ready);
        observe::gauge("redis.queue.processing.length", WORKFLOW, stats.running);
        Ok(stats)
    }

    fn with_parts<'k, C: Class>(&self, call: StepCall<'k, C>) -> StepCall<'k, C> {
        PARTS.into_iter().fold(call, |call, part| call.key(self.core.keys.key(part)))
    }
}

/// See [`Reliable::stats`]; the fields are those of [`JobsStats`](super::JobsStats).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReliableStats {
    /// They can be claimed.
    pub ready: u64,
    /// They are claimed.
    pub running: u64,
    /// Dead letters that are kept.
    pub dead: u64,
    /// Jobs that were added since the queue was made, as are all counts from here on.
    pub scheduled: u64,
    /// Jobs that were done.
    pub acked: u64,
    /// Attempts that failed and were given back.
    pub retried: u64,
    /// Claims that nobody ended in time.
    pub expired: u64,
    /// Jobs that have become dead letters.
    pub died: u64,
    /// Dead letters that were dropped because there were too many.
    pub dropped: u64,
    /// Dead letters that were made jobs again.
    pub requeued: u64,
    /// Jobs whose content the store had lost, as by eviction.
    pub lost: u64,
}

/// What a [`Reliable`] is made with.
#[derive(Clone, Debug)]
#[must_use]
pub struct ReliableBuilder {
    setup: Setup,
}

impl ReliableBuilder {
    delivery_settings!();

    /// The queue, unless its settings make no sense.
    pub fn build(self) -> Result<Reliable> {
        Ok(Reliable { core: Arc::new(self.setup.build(FAMILY)?) })
    }
}

/// A failed job goes to the end of the queue: its pause is how long the others take.
impl WithReceipts for Reliable {
    const NAME: &'static str = WORKFLOW;
    const EXPIRED: &'static str = "redis.queue.requeue.count";
    const CLAIM_LATENCY: &'static str = "redis.queue.pop.latency";

    fn core(&self) -> &Core {
        &self.core
    }

    fn claim_step(&self) -> &'static Step<WithRequestId> {
        &TAKE
    }

    fn claim_call<'k>(&self, call: Call<'k>, answered: Option<Key>, limit: u32) -> Call<'k> {
        let Core { bounds, delivery, .. } = &*self.core;
        self.with_parts(call)
            .keys(&answered)
            .arg(token())
            .arg(limit.min(CLAIM_MAX))
            .arg(delivery.visibility)
            .arg(delivery.attempts_max)
            .arg(bounds.ttl)
            .arg(delivery.dead_max)
    }

    fn ack_call(&self, request: Option<&RequestId>) -> Call<'_> {
        let parts = ["meta", "jobs", "ready", "taken", "parked"];
        let call = self.core.step(&ACK, request);
        parts.into_iter().fold(call, |call, part| call.key(self.core.keys.key(part)))
    }

    fn end_call(&self, how: &Unfinished<'_>, request: Option<&RequestId>) -> Call<'_> {
        let Core { keys, bounds, delivery, .. } = &*self.core;
        self.with_parts(self.core.step(&RETRY, request))
            .key(keys.key("bell"))
            .about(how.receipt.as_bytes())
            .arg(how.reason)
            .arg(how.ending.attempts_max(delivery))
            .arg(bounds.ttl)
            .arg(delivery.dead_max)
            .arg(how.ending.is_uncounted())
    }

    fn extend_call(&self, receipt: &Receipt) -> StepCall<'_, Safe> {
        let Core { kit, keys, bounds, delivery } = &*self.core;
        let parts = ["meta", "jobs", "ready", "delayed", "taken", "parked", "dead", "graves"];
        let call = kit.step(&EXTEND);
        let call = parts.into_iter().fold(call, |call, part| call.key(keys.key(part)));
        call.arg(receipt.as_bytes()).arg(delivery.visibility).arg(bounds.ttl)
    }

    fn pause(&self, _attempt: u32) -> Duration {
        Duration::ZERO
    }

    fn wait_for_jobs(&self, at_most: Duration) -> Pending<'_, ()> {
        Box::pin(async move {
            let Core { kit, keys, .. } = &*self.core;
            wait_for_bell(kit, &keys.key("bell"), at_most).await;
            Ok(())
        })
    }
}
