//! The job queue: delays, retries, priorities, groups, dead letters. Each operation is one step.

mod dead;
mod schedule;

pub use dead::{DeadLetter, Discarded, Requeued};
pub use schedule::{Cancelled, Due, NewJob, Scheduled};

use super::receipts::{self, Call, Core, Setup, Unfinished, WithReceipts};
use super::source::{Claimed, wait_for_bell};
use super::{
    Acked, Backoff, Bounds, CLAIM_MAX, Ending, Extended, Job, Receipt, Returned, delivery_settings,
};
use crate::backend::Pending;
use crate::error::{Error, Result};
use crate::key::{Family, Key, Keys, Scope};
use crate::kit::Kit;
use crate::observe;
use crate::retry::{RequestId, token};
use crate::step::{Safe, Step, StepCall, StepInfo, WithRequestId};
use std::sync::Arc;
use std::time::Duration;

const FAMILY: Family = Family { purpose: "jobs", version: 1 };
const WORKFLOW: &str = "jobs";
/// The longest that priorities count for: 255 of them must not reach before the year 1970.
const AGING_MAX: Duration = Duration::from_secs(24 * 60 * 60);

pub(super) const SHARED: &str = include_str!("jobs/shared.lua");
static SCHEDULE: Step<WithRequestId> =
    Step::new("jobs_schedule", include_str!("jobs/schedule.lua")).sharing(SHARED);
static CLAIM: Step<WithRequestId> =
    Step::new("jobs_claim", include_str!("jobs/claim.lua")).sharing(SHARED);
pub(super) static ACK: Step<WithRequestId> =
    Step::new("jobs_ack", include_str!("jobs/ack.lua")).sharing(SHARED);
static RETRY: Step<WithRequestId> =
    Step::new("jobs_retry", include_str!("jobs/retry.lua")).sharing(SHARED);
pub(super) static EXTEND: Step<Safe> =
    Step::new("jobs_extend", include_str!("jobs/extend.lua")).sharing(SHARED);
static CANCEL: Step<Safe> =
    Step::new("jobs_cancel", include_str!("jobs/cancel.lua")).sharing(SHARED);
static REQUEUE: Step<WithRequestId> =
    Step::new("jobs_requeue", include_str!("jobs/requeue.lua")).sharing(SHARED);
pub(super) static LETTERS: Step<Safe> =
    Step::read_only("jobs_letters", include_str!("jobs/letters.lua")).sharing(SHARED);
pub(super) static DISCARD: Step<Safe> =
    Step::new("jobs_discard", include_str!("jobs/discard.lua")).sharing(SHARED);
static STATS: Step<Safe> =
    Step::read_only("jobs_stats", include_str!("jobs/stats.lua")).sharing(SHARED);

pub(super) static CRON: Step<Safe> =
    Step::new("jobs_cron", include_str!("jobs/cron.lua")).sharing(SHARED);
pub(super) static PLANNED: Step<Safe> =
    Step::read_only("jobs_planned", include_str!("jobs/planned.lua")).sharing(SHARED);
pub(super) static FORGET: Step<Safe> =
    Step::new("jobs_forget", include_str!("jobs/forget.lua")).sharing(SHARED);

pub(crate) static STEPS: &[&StepInfo] = &[
    SCHEDULE.info(),
    CLAIM.info(),
    ACK.info(),
    RETRY.info(),
    EXTEND.info(),
    CANCEL.info(),
    REQUEUE.info(),
    LETTERS.info(),
    DISCARD.info(),
    STATS.info(),
    CRON.info(),
    PLANNED.info(),
    FORGET.info(),
];

/// A queue of jobs. Clones are handles to the same queue.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use russet::queue::{Acked, Bounds, Jobs, NewJob};
/// use std::time::Duration;
///
/// let kit = russet::Kit::embedded(Default::default())?;
/// let bounds = Bounds { capacity: 10_000, ttl: Duration::from_secs(7 * 86_400) };
/// let mails = Jobs::builder(&kit, "mails", bounds).build()?;
/// let _ = mails.schedule(&NewJob::new("to ann"), None).await?;
///
/// for job in mails.claim_due(10, None).await?.jobs() {
///     assert_eq!(job.payload, b"to ann");
///     assert_eq!(mails.ack(&job.receipt, None).await?, Acked::Acked);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Jobs {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    core: Core,
    parts: Parts,
    backoff: Backoff,
    aging: Duration,
    group_limit: u32,
}

/// The keys of a queue, in the order in which steps take them.
#[derive(Debug)]
struct Parts {
    meta: Key,
    jobs: Key,
    ready: Key,
    delayed: Key,
    taken: Key,
    parked: Key,
    dead: Key,
    graves: Key,
    bell: Key,
}

impl Parts {
    fn new(keys: &Keys) -> Self {
        Parts {
            meta: keys.key("meta"),
            jobs: keys.key("jobs"),
            ready: keys.key("ready"),
            delayed: keys.key("delayed"),
            taken: keys.key("taken"),
            parked: keys.key("parked"),
            dead: keys.key("dead"),
            graves: keys.key("graves"),
            bell: keys.key("bell"),
        }
    }

    /// All but the bell.
    fn stored(&self) -> [&Key; 8] {
        [
            &self.meta,
            &self.jobs,
            &self.ready,
            &self.delayed,
            &self.taken,
            &self.parked,
            &self.dead,
            &self.graves,
        ]
    }
}

attempt_endings!(Jobs);

impl Jobs {
    /// Begins to describe the queue of this name. Nothing is sent before it is used.
    pub fn builder(kit: &Kit, name: impl Into<Scope>, bounds: Bounds) -> JobsBuilder {
        JobsBuilder {
            setup: Setup::new(kit, name, bounds),
            backoff: Backoff::default(),
            aging: Duration::from_secs(60),
            group_limit: 0,
        }
    }

    /// Takes up to `limit` jobs that are due, and at most [`CLAIM_MAX`]. Without a request id a
    /// call whose reply is lost may hold jobs until their visibility is over.
    pub async fn claim_due(&self, limit: u32, request: Option<&RequestId>) -> Result<Claimed> {
        receipts::claim_once(self, limit, request).await
    }

    /// Ends a job that is done.
    pub async fn ack(&self, receipt: &Receipt, request: Option<&RequestId>) -> Result<Acked> {
        receipts::ack(self, receipt, request).await
    }

    /// Gives a job back that has failed: it runs again after a pause that grows with its attempts.
    pub async fn retry(
        &self,
        job: &Job,
        reason: &str,
        request: Option<&RequestId>,
    ) -> Result<Returned> {
        let delay = self.pause(job.attempt);
        self.retry_after(&job.receipt, delay, reason, request).await
    }

    /// As [`Jobs::retry`], after a pause of the caller's.
    pub async fn retry_after(
        &self,
        receipt: &Receipt,
        delay: Duration,
        reason: &str,
        request: Option<&RequestId>,
    ) -> Result<Returned> {
        receipts::end_attempt(self, (receipt, reason), Ending::Retry(delay), request).await
    }

    /// Keeps a job for another visibility, counted from now.
    pub async fn extend(&self, receipt: &Receipt) -> Result<Extended> {
        receipts::extend(self, receipt).await
    }

    /// How many jobs there are of each kind, and what has happened to them.
    pub async fn stats(&self) -> Result<JobsStats> {
        let Inner { core, parts, aging, .. } = &*self.inner;
        let mut call = core.kit.step(&STATS);
        for key in &parts.stored()[..7] {
            call = call.key(*key);
        }
        let envelope = call.arg(*aging).run().await?;
        let stats = JobsStats {
            ready: envelope.count("ready")?,
            delayed: envelope.count("delayed")?,
            due: envelope.count("due")?,
            running: envelope.count("running")?,
            parked: envelope.count("parked")?,
            dead: envelope.count("dead")?,
            oldest_ready: envelope.duration("oldest_ready_ms")?,
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
        observe::gauge("redis.zset.scheduler.delayed.count", WORKFLOW, stats.delayed);
        observe::gauge("redis.zset.scheduler.due.count", WORKFLOW, stats.due);
        observe::gauge("redis.zset.scheduler.processing.count", WORKFLOW, stats.running);
        Ok(stats)
    }

    #[cfg(feature = "cron")]
    pub(super) fn stored(&self) -> [&Key; 8] {
        self.inner.parts.stored()
    }

    #[cfg(feature = "cron")]
    pub(super) fn bell(&self) -> &Key {
        &self.inner.parts.bell
    }

    #[cfg(feature = "cron")]
    pub(super) fn check_payload(&self, payload: &[u8]) -> Result<()> {
        self.inner.core.delivery.check_payload(payload)
    }

    #[cfg(feature = "cron")]
    pub(super) fn bounds(&self) -> &Bounds {
        &self.inner.core.bounds
    }

    fn with_stored<'k, C: crate::step::Class>(&self, call: StepCall<'k, C>) -> StepCall<'k, C> {
        call.keys(self.inner.parts.stored())
    }
}

/// See [`Jobs::stats`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct JobsStats {
    /// They can be claimed.
    pub ready: u64,
    /// They wait for their time; those of [`due`](JobsStats::due) are among them.
    pub delayed: u64,
    /// Their time has come; the next claim makes them ready.
    pub due: u64,
    /// They are claimed.
    pub running: u64,
    /// They wait for room in their group.
    pub parked: u64,
    /// Dead letters that are kept.
    pub dead: u64,
    /// How long the next job to be claimed has been ready: the lag of the workers.
    pub oldest_ready: Duration,
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

/// What a [`Jobs`] is made with.
#[derive(Clone, Debug)]
#[must_use]
pub struct JobsBuilder {
    setup: Setup,
    backoff: Backoff,
    aging: Duration,
    group_limit: u32,
}

impl JobsBuilder {
    delivery_settings!();

    /// How long a job rests after it has failed.
    pub fn backoff(mut self, backoff: Backoff) -> Self {
        self.backoff = backoff;
        self
    }

    /// What one step of priority is worth: a job goes before those of the next lower priority that
    /// are up to this much older. So none waits for ever. A minute by default.
    pub fn aging(mut self, aging: Duration) -> Self {
        self.aging = aging;
        self
    }

    /// How many jobs of one group run at a time; any number by default.
    pub fn group_limit(mut self, jobs: u32) -> Self {
        self.group_limit = jobs;
        self
    }

    /// The queue, unless its settings make no sense.
    pub fn build(self) -> Result<Jobs> {
        let JobsBuilder { setup, backoff, aging, group_limit } = self;
        if aging > AGING_MAX {
            return Err(Error::invalid("aging must be a day at most"));
        }
        let core = setup.build(FAMILY)?;
        let parts = Parts::new(&core.keys);
        Ok(Jobs { inner: Arc::new(Inner { core, parts, backoff, aging, group_limit }) })
    }
}

impl WithReceipts for Jobs {
    const NAME: &'static str = WORKFLOW;
    const EXPIRED: &'static str = "redis.zset.scheduler.visibility_expired.count";
    const CLAIM_LATENCY: &'static str = "redis.zset.scheduler.claim.latency";

    fn core(&self) -> &Core {
        &self.inner.core
    }

    fn claim_step(&self) -> &'static Step<WithRequestId> {
        &CLAIM
    }

    fn claim_call<'k>(&self, call: Call<'k>, answered: Option<Key>, limit: u32) -> Call<'k> {
        let Core { delivery, bounds, .. } = self.core();
        self.with_stored(call)
            .keys(&answered)
            .arg(token())
            .arg(limit.min(CLAIM_MAX))
            .arg(delivery.visibility)
            .arg(delivery.attempts_max)
            .arg(self.inner.group_limit)
            .arg(bounds.ttl)
            .arg(self.inner.aging)
            .arg(delivery.dead_max)
    }

    fn ack_call(&self, request: Option<&RequestId>) -> Call<'_> {
        let Parts { meta, jobs, ready, taken, parked, bell, .. } = &self.inner.parts;
        self.core().step(&ACK, request).keys([meta, jobs, ready, taken, parked, bell])
    }

    fn end_call(&self, how: &Unfinished<'_>, request: Option<&RequestId>) -> Call<'_> {
        let Core { delivery, bounds, .. } = self.core();
        self.with_stored(self.core().step(&RETRY, request))
            .key(&self.inner.parts.bell)
            .about(how.receipt.as_bytes())
            .arg(how.ending.delay())
            .arg(how.reason)
            .arg(how.ending.attempts_max(delivery))
            .arg(bounds.ttl)
            .arg(self.inner.aging)
            .arg(delivery.dead_max)
            .arg(how.ending.is_uncounted())
    }

    fn extend_call(&self, receipt: &Receipt) -> StepCall<'_, Safe> {
        let Core { kit, delivery, bounds, .. } = self.core();
        let call = self.with_stored(kit.step(&EXTEND));
        call.arg(receipt.as_bytes()).arg(delivery.visibility).arg(bounds.ttl)
    }

    fn pause(&self, attempt: u32) -> Duration {
        self.inner.backoff.delay(attempt)
    }

    fn wait_for_jobs(&self, at_most: Duration) -> Pending<'_, ()> {
        Box::pin(async move {
            wait_for_bell(&self.core().kit, &self.inner.parts.bell, at_most).await;
            Ok(())
        })
    }
}
