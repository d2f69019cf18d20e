//! What a worker takes jobs from.

use super::{Acked, Extended, Failure, Job, Receipt, Returned};
use crate::backend::Pending;
use crate::error::Result;
use crate::key::{Key, Keys};
use crate::kit::Kit;
use crate::reply::Envelope;
use crate::request::Request;
use crate::retry::RequestId;
use crate::step::{Step, StepCall, WithRequestId};
use std::time::Duration;

/// Jobs, or when to ask again.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum Claimed {
    /// One or more, to be ended within the visibility.
    Jobs(Vec<Job>),
    /// Nothing is due. Something will be in that time, if it is known.
    Empty {
        /// None if nothing is planned, or the queue can't tell.
        next_in: Option<Duration>,
    },
}

impl Claimed {
    pub(super) fn read(envelope: &mut Envelope) -> Result<Self> {
        match envelope.status() {
            "CLAIMED" => Job::read_all(envelope).map(Claimed::Jobs),
            "EMPTY" => {
                // Not every queue knows, or something is planned.
                let next_ms = envelope.int("next_in_ms").ok().and_then(|ms| u64::try_from(ms).ok());
                Ok(Claimed::Empty { next_in: next_ms.map(Duration::from_millis) })
            }
            _ => Err(envelope.unexpected()),
        }
    }

    /// The jobs, of which there may be none.
    pub fn jobs(self) -> Vec<Job> {
        match self {
            Claimed::Jobs(jobs) => jobs,
            Claimed::Empty { .. } => Vec::new(),
        }
    }
}

/// One claim of a worker: the same in every attempt to get its answer.
#[derive(Clone, Debug)]
pub struct ClaimId {
    /// A claim with this id that has run gives the same jobs again, and counts no attempt of them,
    /// as long as their visibility lasts.
    pub request: RequestId,
    /// The claim before it, whose answer has arrived: the store need not remember it any longer.
    pub answered: Option<RequestId>,
}

impl ClaimId {
    /// Of a worker that has claimed nothing yet.
    pub(super) fn first() -> Self {
        ClaimId { request: RequestId::random(), answered: None }
    }

    /// Once this one is answered.
    pub(super) fn next(&self) -> Self {
        ClaimId { request: RequestId::random(), answered: Some(self.request.clone()) }
    }

    /// The call of a step that claims, and the marker that it may forget, its last key. What it
    /// claims is worth nothing after the visibility, and so is the memory of it.
    pub(super) fn step<'k>(
        &self,
        kit: &'k Kit,
        step: &'static Step<WithRequestId>,
        (keys, visibility): (&Keys, Duration),
    ) -> (StepCall<'k, WithRequestId>, Option<Key>) {
        let call = kit.remembered_step(step, keys.marker(&self.request), visibility);
        (call, self.answered.as_ref().map(|request| step.marker(keys, request)))
    }
}

/// A queue whose jobs are claimed and acknowledged.
pub trait Source: Send + Sync + 'static {
    /// Takes up to `limit` jobs. A worker that has got no answer asks again with the same id: an
    /// answer that was lost must not cost the jobs an attempt.
    fn claim<'a>(&'a self, limit: u32, id: &'a ClaimId) -> Pending<'a, Claimed>;

    /// A job is done.
    fn ack<'a>(&'a self, receipt: &'a Receipt) -> Pending<'a, Acked>;

    /// A job has failed.
    fn fail<'a>(&'a self, job: &'a Job, failure: &'a Failure) -> Pending<'a, Returned>;

    /// A job was not worked on, or not to the end, because its worker stops: others may have it at
    /// once. A source that can tell does not count the attempt.
    fn give_back<'a>(&'a self, job: &'a Job) -> Pending<'a, Returned> {
        Box::pin(async move {
            let failure = Failure::retry_after(Duration::ZERO, "shut down");
            self.fail(job, &failure).await
        })
    }

    /// A job is still worked on.
    fn extend<'a>(&'a self, receipt: &'a Receipt) -> Pending<'a, Extended>;

    /// Until there may be something to claim, and no longer than this.
    fn wait(&self, at_most: Duration) -> Pending<'_, ()>;

    /// How long a claim holds.
    fn visibility(&self) -> Duration;

    /// By whose clock a worker waits.
    fn kit(&self) -> &Kit;

    /// For logs and metrics.
    fn name(&self) -> &'static str;
}

/// Waits for the bell of a queue. It is only a hint: whoever misses it asks again in time.
pub(super) async fn wait_for_bell(kit: &Kit, bell: &Key, at_most: Duration) {
    let seconds = at_most.as_secs_f64().max(0.01);
    let request = Request::new("BLPOP").key(bell).arg(seconds);
    wait_for(kit, bell, &request, at_most).await;
}

/// Waits for the answer to a command that blocks for so long.
pub(super) async fn wait_for(kit: &Kit, key: &Key, request: &Request, at_most: Duration) {
    let notification = async {
        let mut own = kit.connection(key.slot()).await?;
        own.call(request, at_most + kit.timeout()).await
    };
    tokio::select! {
        notified = notification => if notified.is_err() {
            kit.time().sleep(at_most).await;
        },
        // Longer than the call, which is answered when its time is over: a connection with a reply
        // on its way could not be used again. A clock that is moved by hand ends it as well.
        () = kit.time().sleep(at_most + kit.timeout()) => {}
    }
}
