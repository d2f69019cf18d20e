//! Work for later, and for others: what one process puts in, another takes out and does.
//!
//! | type | delivery | structure | choose it for |
//! |---|---|---|---|
//! | [`List`] | at most once | a list | work that may be lost with the worker that has it |
//! | [`Reliable`] | at least once | a list, receipts | work in strict order, no delays |
//! | [`Jobs`] | at least once | sorted sets, receipts | delays, retries, priorities, groups, cron |
//! | [`Stream`] | at least once | a stream, one group | work that other programs read as a stream |
//!
//! The last three are a [`Source`] of a [`Worker`], which runs a handler for each job.
//!
//! A job that was claimed is invisible to others until its *visibility* is over. Whoever claimed it
//! has a [`Receipt`]; with it the job is acknowledged, given back, or kept for longer. After its
//! time others get the job and another receipt, and the old one is refused: no job is acknowledged
//! by two. A job may run twice, when its worker was too slow to say that it still works: handlers
//! must be able to bear that (see [`idempotency`](crate) or fencing by [`Job::attempt`]).

/// How an attempt ends without a success, in each queue with receipts.
macro_rules! attempt_endings {
    ($queue:ident) => {
        impl $queue {
            /// Makes a dead letter of a job that can't be done.
            pub async fn dead_letter(
                &self,
                receipt: &Receipt,
                reason: &str,
                request: Option<&RequestId>,
            ) -> Result<Returned> {
                receipts::end_attempt(self, (receipt, reason), Ending::DeadLetter, request).await
            }

            /// Gives a job back that was not worked on, or not to the end, through no fault of its
            /// own: it can be claimed again at once, and the attempt does not count. Whoever gives
            /// it back has stopped.
            pub async fn give_back(
                &self,
                receipt: &Receipt,
                request: Option<&RequestId>,
            ) -> Result<Returned> {
                let why = (receipt, super::GIVEN_BACK);
                receipts::end_attempt(self, why, Ending::Uncounted, request).await
            }
        }
    };
}

#[cfg(feature = "cron")]
mod cron;
mod jobs;
mod list;
mod receipts;
mod reliable;
mod source;
mod stream;
mod worker;

#[cfg(feature = "cron")]
pub use cron::{Cron, CronStats, Planned};
pub use jobs::{
    Cancelled, DeadLetter, Discarded, Due, Jobs, JobsBuilder, JobsStats, NewJob, Requeued,
    Scheduled,
};
pub use list::{List, ListBuilder, ListStats, OnFull, Order, Pushed};
pub use reliable::{Reliable, ReliableBuilder, ReliableStats};
pub use source::{ClaimId, Claimed, Source};
pub use stream::{Stream, StreamBuilder, StreamStats};
pub use worker::{Failure, Worker, WorkerBuilder, WorkerStats};

pub(crate) use jobs::STEPS as JOBS_STEPS;
pub(crate) use list::STEPS as LIST_STEPS;
pub(crate) use reliable::STEPS as RELIABLE_STEPS;
pub(crate) use stream::STEPS as STREAM_STEPS;

use crate::error::{Error, Result};
use crate::kit::Kit;
use crate::reply::{Envelope, Reply};
use crate::retry::{RequestId, jittered};
use std::fmt;
use std::time::Duration;

/// The longest name of a job.
pub const ID_BYTES_MAX: usize = 256;
/// The longest name of a group.
pub const GROUP_BYTES_MAX: usize = 128;
/// The most jobs of one claim.
pub const CLAIM_MAX: u32 = 100;
/// The longest reason that is kept with a dead letter.
const REASON_BYTES_MAX: usize = 1024;
/// Why an attempt ended that does not count.
const GIVEN_BACK: &str = "given back";
/// The largest payload, unless the queue says otherwise.
const PAYLOAD_BYTES_MAX: usize = 64 * 1024;

/// What no queue is without.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// The most jobs that wait or run; more are not taken.
    pub capacity: u32,
    /// How long jobs are kept beyond their due time if nobody touches the queue.
    pub ttl: Duration,
}

impl Bounds {
    fn check(&self) -> Result<()> {
        if self.capacity == 0 {
            return Err(Error::invalid("capacity must not be zero"));
        }
        if self.ttl < Duration::from_millis(1) {
            return Err(Error::invalid("ttl must be a millisecond or more"));
        }
        Ok(())
    }
}

/// The name of a job, unique in its queue while the job is not done.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct JobId(Vec<u8>);

impl JobId {
    /// A new one, of 128 random bits.
    pub fn random() -> Self {
        JobId(crate::retry::token().to_vec())
    }

    /// The same for every attempt to carry out this request.
    fn of_request(kit: &Kit, request: &RequestId, payload: &[u8]) -> Self {
        JobId(request.bound_to(kit, payload).as_bytes().to_vec())
    }

    /// For a log or a table of the program's own.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    fn check(&self) -> Result<()> {
        match self.0.len() {
            1..=ID_BYTES_MAX => Ok(()),
            _ => Err(Error::invalid(format!("an id has 1 to {ID_BYTES_MAX} bytes"))),
        }
    }
}

impl<T: AsRef<[u8]> + ?Sized> From<&T> for JobId {
    fn from(id: &T) -> Self {
        JobId(id.as_ref().to_vec())
    }
}

impl AsRef<[u8]> for JobId {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

/// Says nothing of its content, which may come from users.
impl fmt::Debug for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JobId")
    }
}

/// The right to end a job, for as long as nobody else has claimed it.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Receipt(Vec<u8>);

impl Receipt {
    /// For a program that hands it on to another.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl<T: AsRef<[u8]> + ?Sized> From<&T> for Receipt {
    fn from(receipt: &T) -> Self {
        Receipt(receipt.as_ref().to_vec())
    }
}

/// Says nothing: who knows a receipt can use it.
impl fmt::Debug for Receipt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Receipt")
    }
}

/// A job that was claimed.
#[derive(Clone, PartialEq, Eq)]
#[must_use = "a job that is not acknowledged comes back"]
pub struct Job {
    /// The same in every attempt.
    pub id: JobId,
    /// What it was made with.
    pub payload: Vec<u8>,
    /// 1 when it runs for the first time. It grows with each claim, so that a store can refuse
    /// what an earlier, slower worker writes.
    pub attempt: u32,
    /// What this attempt is ended with.
    pub receipt: Receipt,
    /// Empty if it has none.
    pub group: Vec<u8>,
}

impl Job {
    /// As steps reply with it: id, payload, attempt, receipt, group.
    fn read(reply: Reply) -> Result<Job> {
        let corrupt = || Error::Corrupt("a claimed job lacks a part".into());
        let mut parts = reply.into_list()?.into_iter();
        let bytes = |part| match part {
            Some(Reply::Int(number)) => Ok(number.to_string().into_bytes()),
            Some(Reply::Text(text)) => Ok(text),
            _ => Err(corrupt()),
        };
        let (id, payload) = (JobId(bytes(parts.next())?), bytes(parts.next())?);
        let attempt = parts.next().as_ref().and_then(Reply::as_int);
        let attempt = attempt.and_then(|number| u32::try_from(number).ok()).ok_or_else(corrupt)?;
        let (receipt, group) = (Receipt(bytes(parts.next())?), bytes(parts.next())?);
        Ok(Job { id, payload, attempt, receipt, group })
    }

    fn read_all(envelope: &mut Envelope) -> Result<Vec<Job>> {
        envelope.list("jobs")?.into_iter().map(Job::read).collect()
    }
}

/// Says nothing of its content.
impl fmt::Debug for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Job")
            .field("attempt", &self.attempt)
            .field("payload_bytes", &self.payload.len())
            .finish_non_exhaustive()
    }
}

/// How an attempt ends that has not done its job.
#[derive(Clone, Copy, Debug)]
enum Ending {
    /// Another follows after a while, unless there were too many.
    Retry(Duration),
    /// It was the last.
    DeadLetter,
    /// It does not count: another follows at once.
    Uncounted,
}

impl Ending {
    fn delay(self) -> Duration {
        match self {
            Ending::Retry(delay) => delay,
            Ending::DeadLetter | Ending::Uncounted => Duration::ZERO,
        }
    }

    /// After how many attempts no other follows.
    fn attempts_max(self, delivery: &Delivery) -> u32 {
        match self {
            Ending::DeadLetter => 0,
            Ending::Retry(_) | Ending::Uncounted => delivery.attempts_max,
        }
    }

    fn is_uncounted(self) -> bool {
        matches!(self, Ending::Uncounted)
    }
}

/// What became of an acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Acked {
    /// The job is done, by this call.
    Acked,
    /// Its time was over, and it runs again: what was done is done twice.
    Stale,
    /// It was ended before: by an earlier call with this receipt whose reply was lost, or by
    /// whoever claimed it later. Only a call with a request id tells the one from the other.
    Gone,
}

impl Acked {
    fn read(envelope: &Envelope) -> Result<Acked> {
        match envelope.status() {
            "ACKED" => Ok(Acked::Acked),
            "STALE" => Ok(Acked::Stale),
            "GONE" => Ok(Acked::Gone),
            _ => Err(envelope.unexpected()),
        }
    }
}

/// What became of a job that was given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Returned {
    /// It runs again after a pause.
    Retried {
        /// How often it was tried.
        attempts: u32,
    },
    /// It is a dead letter: it has failed too often, or for good.
    Dead {
        /// How often it was tried.
        attempts: u32,
    },
    /// It was cancelled meanwhile.
    Cancelled,
    /// Its time was over, and others have it or will.
    Stale,
    /// It was ended before.
    Gone,
}

impl Returned {
    fn read(envelope: &Envelope) -> Result<Returned> {
        let attempts = || {
            let count = envelope.count("attempts")?;
            Ok(u32::try_from(count).unwrap_or(u32::MAX))
        };
        match envelope.status() {
            "RETRIED" => Ok(Returned::Retried { attempts: attempts()? }),
            "DEAD" => Ok(Returned::Dead { attempts: attempts()? }),
            "CANCELLED" => Ok(Returned::Cancelled),
            "STALE" => Ok(Returned::Stale),
            "GONE" => Ok(Returned::Gone),
            _ => Err(envelope.unexpected()),
        }
    }
}

/// Whether a job is kept for longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Extended {
    /// Nobody else gets it before its visibility is over, counted from now.
    Extended,
    /// It is no longer held by this receipt: stop the work.
    Stale,
}

impl Extended {
    fn read(envelope: &Envelope) -> Result<Extended> {
        match envelope.status() {
            "EXTENDED" => Ok(Extended::Extended),
            "STALE" => Ok(Extended::Stale),
            _ => Err(envelope.unexpected()),
        }
    }
}

/// How long a job rests after it has failed: `first`, then twice that, and so on up to `most`, each
/// made longer or shorter at random by up to a half, so that jobs that failed together do not come
/// back together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// After the first failure.
    pub first: Duration,
    /// However often it has failed.
    pub most: Duration,
}

impl Default for Backoff {
    /// From a second to ten minutes.
    fn default() -> Self {
        Backoff { first: Duration::from_secs(1), most: Duration::from_secs(600) }
    }
}

impl Backoff {
    /// After attempt number `attempt`, the first being 1.
    pub fn delay(&self, attempt: u32) -> Duration {
        let doubled = self.first.saturating_mul(1 << attempt.saturating_sub(1).min(30));
        let span = doubled.min(self.most);
        (span / 2 + jittered(span)).min(self.most)
    }
}

/// What holds for every claim of a queue with receipts.
#[derive(Clone, Debug)]
struct Delivery {
    visibility: Duration,
    attempts_max: u32,
    dead_max: u32,
    payload_bytes_max: usize,
    min_replicas: u32,
}

impl Default for Delivery {
    fn default() -> Self {
        Delivery {
            visibility: Duration::from_secs(30),
            attempts_max: 10,
            dead_max: 1000,
            payload_bytes_max: PAYLOAD_BYTES_MAX,
            min_replicas: 0,
        }
    }
}

impl Delivery {
    fn check(&self) -> Result<()> {
        if self.visibility < Duration::from_millis(1) {
            return Err(Error::invalid("visibility must be a millisecond or more"));
        }
        if self.attempts_max == 0 || self.dead_max == 0 {
            return Err(Error::invalid("attempts_max and dead_max must not be zero"));
        }
        Ok(())
    }

    fn check_payload(&self, payload: &[u8]) -> Result<()> {
        match self.payload_bytes_max {
            most if payload.len() > most => {
                Err(Error::invalid(format!("a payload is over {most} bytes")))
            }
            _ => Ok(()),
        }
    }
}

/// The methods that set [`Delivery`], the same for each builder.
macro_rules! delivery_settings {
    () => {
        /// How long a claimed job is invisible to others; 30 seconds by default.
        pub fn visibility(mut self, visibility: Duration) -> Self {
            self.setup.delivery.visibility = visibility;
            self
        }

        /// How often a job is tried before it is a dead letter; 10 by default.
        pub fn attempts_max(mut self, attempts: u32) -> Self {
            self.setup.delivery.attempts_max = attempts;
            self
        }

        /// How many dead letters are kept, the newest; 1000 by default.
        pub fn dead_max(mut self, letters: u32) -> Self {
            self.setup.delivery.dead_max = letters;
            self
        }

        /// The largest payload; 64 KiB by default.
        pub fn payload_bytes_max(mut self, bytes: usize) -> Self {
            self.setup.delivery.payload_bytes_max = bytes;
            self
        }

        /// How many replicas must have a new job, or the end of one, before the call returns; none
        /// by default. If fewer say so in time the outcome is unknown.
        pub fn min_replicas(mut self, replicas: u32) -> Self {
            self.setup.delivery.min_replicas = replicas;
            self
        }
    };
}
use delivery_settings;

/// A reason as it is stored: not longer than there is room for.
fn short_reason(reason: &str) -> &str {
    let mut end = reason.len().min(REASON_BYTES_MAX);
    while !reason.is_char_boundary(end) {
        end -= 1;
    }
    &reason[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_and_differ() {
        let backoff = Backoff { first: Duration::from_secs(1), most: Duration::from_secs(60) };
        for (attempt, least) in [(1, 500), (2, 1000), (3, 2000), (40, 30_000)] {
            let delay = backoff.delay(attempt);
            assert!(delay >= Duration::from_millis(least) && delay <= backoff.most, "{delay:?}");
        }
        assert_ne!(backoff.delay(5), backoff.delay(5));
    }

    #[test]
    fn a_long_reason_is_cut_between_characters() {
        let reason = "é".repeat(REASON_BYTES_MAX);
        assert_eq!(short_reason(&reason).len(), REASON_BYTES_MAX);
        assert_eq!(short_reason(&format!("a{reason}")).len(), REASON_BYTES_MAX - 1);
    }
}
