//! A stream as a queue: one consumer group; entries leave when they are acknowledged, so that none
//! is trimmed before it is done.

use super::receipts::{self, Call, Core, Setup, Unfinished, WithReceipts};
use super::source::{Claimed, wait_for};
use super::{
    Acked, Backoff, Bounds, CLAIM_MAX, DeadLetter, Ending, Extended, JobId, Receipt, Requeued,
    Returned, Scheduled, delivery_settings,
};
use crate::backend::Pending;
use crate::error::Result;
use crate::key::{Family, Key, Scope};
use crate::kit::Kit;
use crate::observe;
use crate::reply::Envelope;
use crate::request::Request;
use crate::retry::RequestId;
use crate::step::{Safe, Step, StepCall, StepInfo, WithRequestId};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

const FAMILY: Family = Family { purpose: "stream", version: 1 };
const WORKFLOW: &str = "stream";

const SHARED: &str = include_str!("stream/shared.lua");
static ADD: Step<WithRequestId> =
    Step::new("stream_add", include_str!("stream/add.lua")).sharing(SHARED);
static CLAIM: Step<WithRequestId> =
    Step::new("stream_claim", include_str!("stream/claim.lua")).sharing(SHARED);
static ACK: Step<WithRequestId> =
    Step::new("stream_ack", include_str!("stream/ack.lua")).sharing(SHARED);
static RETRY: Step<WithRequestId> =
    Step::new("stream_retry", include_str!("stream/retry.lua")).sharing(SHARED);
static EXTEND: Step<Safe> =
    Step::new("stream_extend", include_str!("stream/extend.lua")).sharing(SHARED);
static LETTERS: Step<Safe> =
    Step::read_only("stream_letters", include_str!("stream/letters.lua")).sharing(SHARED);
static REQUEUE: Step<WithRequestId> =
    Step::new("stream_requeue", include_str!("stream/requeue.lua")).sharing(SHARED);
static STATS: Step<Safe> =
    Step::read_only("stream_stats", include_str!("stream/stats.lua")).sharing(SHARED);

pub(crate) static STEPS: &[&StepInfo] = &[
    ADD.info(),
    CLAIM.info(),
    ACK.info(),
    RETRY.info(),
    EXTEND.info(),
    LETTERS.info(),
    REQUEUE.info(),
    STATS.info(),
];

/// A stream of work. Clones are handles to the same stream.
///
/// Any program may add entries with a field `payload`, and read them with XRANGE or XREAD. To
/// acknowledge them is up to the workers: XACK alone does not ask whether its caller still has the
/// entry, the steps here do.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use russet::queue::{Acked, Bounds, Stream};
/// use std::time::Duration;
///
/// let kit = russet::Kit::embedded(Default::default())?;
/// let bounds = Bounds { capacity: 100_000, ttl: Duration::from_secs(7 * 86_400) };
/// let events = Stream::builder(&kit, "events", bounds).build()?;
/// let _ = events.add("signed up", None).await?;
/// for job in events.claim(10, None).await?.jobs() {
///     assert_eq!(events.ack(&job.receipt, None).await?, Acked::Acked);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Stream {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    core: Core,
    /// The last entry that there was when nothing could be claimed: what comes behind it is new.
    last_id: Mutex<Vec<u8>>,
}

attempt_endings!(Stream);

impl Stream {
    /// Begins to describe the stream of this name. Nothing is sent before it is used.
    pub fn builder(kit: &Kit, name: impl Into<Scope>, bounds: Bounds) -> StreamBuilder {
        StreamBuilder { setup: Setup::new(kit, name, bounds) }
    }

    /// Adds an entry.
    pub async fn add(
        &self,
        payload: impl AsRef<[u8]>,
        request: Option<&RequestId>,
    ) -> Result<Scheduled> {
        let Core { kit, keys, bounds, delivery } = self.core();
        delivery.check_payload(payload.as_ref())?;
        let call = kit
            .step_of_request(&ADD, keys, request)
            .key(keys.key("entries"))
            .about(payload.as_ref())
            .arg(bounds.capacity)
            .arg(bounds.ttl)
            .replicas_min(delivery.min_replicas);
        let mut envelope = call.run().await?;
        match envelope.status() {
            "ADDED" => Ok(Scheduled::Scheduled(JobId(envelope.text("id")?))),
            "FULL" => Ok(Scheduled::Full),
            _ => Err(envelope.unexpected()),
        }
    }

    fn last_id(&self) -> MutexGuard<'_, Vec<u8>> {
        self.inner.last_id.lock().unwrap_or_else(|poison| poison.into_inner())
    }

    /// Takes up to `limit` entries, and at most [`CLAIM_MAX`]; those that others had for too long
    /// come first.
    pub async fn claim(&self, limit: u32, request: Option<&RequestId>) -> Result<Claimed> {
        receipts::claim_once(self, limit, request).await
    }

    /// Ends an entry that is done.
    pub async fn ack(&self, receipt: &Receipt, request: Option<&RequestId>) -> Result<Acked> {
        receipts::ack(self, receipt, request).await
    }

    /// Gives an entry back, to be delivered again after a pause that is not longer than the
    /// visibility.
    pub async fn retry_after(
        &self,
        receipt: &Receipt,
        delay: Duration,
        reason: &str,
        request: Option<&RequestId>,
    ) -> Result<Returned> {
        receipts::end_attempt(self, (receipt, reason), Ending::Retry(delay), request).await
    }

    /// Keeps an entry for another visibility, counted from now.
    pub async fn extend(&self, receipt: &Receipt) -> Result<Extended> {
        receipts::extend(self, receipt).await
    }

    /// Dead letters behind one, or from the oldest on, at most [`CLAIM_MAX`].
    pub async fn dead_letters(&self, after: Option<&JobId>, limit: u32) -> Result<Vec<DeadLetter>> {
        let Core { kit, keys, .. } = self.core();
        let after = after.map_or(b"-".as_slice(), JobId::as_bytes);
        let call = kit.step(&LETTERS).key(keys.key("dead")).arg(after).arg(limit.min(CLAIM_MAX));
        let letters = call.run().await?.list("letters")?;
        letters.into_iter().map(DeadLetter::read).collect()
    }

    /// Adds a dead letter to the stream again, as a new entry.
    pub async fn requeue(&self, id: &JobId, request: Option<&RequestId>) -> Result<Requeued> {
        let Core { kit, keys, bounds, .. } = self.core();
        let call = kit
            .step_of_request(&REQUEUE, keys, request)
            .key(keys.key("entries"))
            .key(keys.key("dead"))
            .about(id.as_bytes())
            .arg(bounds.capacity)
            .arg(bounds.ttl);
        Requeued::read(&call.run().await?)
    }

    /// How the stream stands, in the store: for all processes.
    pub async fn stats(&self) -> Result<StreamStats> {
        let Core { kit, keys, .. } = self.core();
        let call = kit.step(&STATS).key(keys.key("entries")).key(keys.key("dead"));
        let envelope = call.run().await?;
        let stats = StreamStats {
            lag: envelope.count("lag")?,
            running: envelope.count("running")?,
            waiting: envelope.count("waiting")?,
            dead: envelope.count("dead")?,
            oldest: envelope.duration("oldest_ms")?,
        };
        observe::gauge("redis.queue.length", WORKFLOW, stats.lag);
        observe::gauge("redis.queue.processing.length", WORKFLOW, stats.running);
        Ok(stats)
    }
}

/// How a stream stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StreamStats {
    /// Entries that nobody has got yet.
    pub lag: u64,
    /// Entries that were delivered and not acknowledged.
    pub running: u64,
    /// Entries that were given back and wait for their time.
    pub waiting: u64,
    /// Dead letters that are kept.
    pub dead: u64,
    /// The age of the oldest entry.
    pub oldest: Duration,
}

/// What a [`Stream`] is made with.
#[derive(Clone, Debug)]
#[must_use]
pub struct StreamBuilder {
    setup: Setup,
}

impl StreamBuilder {
    delivery_settings!();

    /// The stream, unless its settings make no sense.
    pub fn build(self) -> Result<Stream> {
        let (core, last_id) = (self.setup.build(FAMILY)?, Mutex::new(b"0-0".to_vec()));
        Ok(Stream { inner: Arc::new(Inner { core, last_id }) })
    }
}

impl WithReceipts for Stream {
    const NAME: &'static str = WORKFLOW;
    const EXPIRED: &'static str = "redis.queue.requeue.count";
    const CLAIM_LATENCY: &'static str = "redis.queue.pop.latency";

    fn core(&self) -> &Core {
        &self.inner.core
    }

    fn claim_step(&self) -> &'static Step<WithRequestId> {
        &CLAIM
    }

    fn claim_call<'k>(&self, call: Call<'k>, answered: Option<Key>, limit: u32) -> Call<'k> {
        let Core { keys, bounds, delivery, .. } = self.core();
        call.key(keys.key("entries"))
            .key(keys.key("dead"))
            .keys(&answered)
            .arg(limit.min(CLAIM_MAX))
            .arg(delivery.visibility)
            .arg(delivery.attempts_max)
            .arg(bounds.ttl)
            .arg(delivery.dead_max)
    }

    fn heard_empty(&self, envelope: &mut Envelope) -> Result<()> {
        *self.last_id() = envelope.text("last_id")?;
        Ok(())
    }

    fn ack_call(&self, request: Option<&RequestId>) -> Call<'_> {
        self.core().step(&ACK, request).key(self.core().keys.key("entries"))
    }

    fn end_call(&self, how: &Unfinished<'_>, request: Option<&RequestId>) -> Call<'_> {
        let Core { keys, bounds, delivery, .. } = self.core();
        let call = self.core().step(&RETRY, request);
        call.key(keys.key("entries"))
            .key(keys.key("dead"))
            .about(how.receipt.as_bytes())
            .arg(how.ending.delay())
            .arg(how.reason)
            .arg(how.ending.attempts_max(delivery))
            .arg(delivery.visibility)
            .arg(bounds.ttl)
            .arg(delivery.dead_max)
            .arg(how.ending.is_uncounted())
    }

    fn extend_call(&self, receipt: &Receipt) -> StepCall<'_, Safe> {
        let Core { kit, keys, bounds, delivery } = self.core();
        let call = kit.step(&EXTEND).key(keys.key("entries"));
        call.arg(receipt.as_bytes()).arg(bounds.ttl).arg(delivery.visibility)
    }

    fn pause(&self, attempt: u32) -> Duration {
        Backoff::default().delay(attempt)
    }

    /// XREAD takes nothing: it only tells that there is something new.
    fn wait_for_jobs(&self, at_most: Duration) -> Pending<'_, ()> {
        Box::pin(async move {
            let Core { kit, keys, .. } = self.core();
            let (key, last_id) = (keys.key("entries"), self.last_id().clone());
            let request = Request::new("XREAD").arg("COUNT").arg(1).arg("BLOCK").arg(at_most);
            let request = request.arg("STREAMS").key(&key).arg(last_id);
            wait_for(kit, &key, &request, at_most).await;
            Ok(())
        })
    }
}
