//! Jobs go in: now, later, once.

use super::{CANCEL, Inner, Jobs, SCHEDULE};
use crate::error::{Error, Result};
use crate::queue::receipts::Core;
use crate::queue::{GROUP_BYTES_MAX, JobId};
use crate::retry::RequestId;
use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// When a job runs. The server's clock decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Due {
    /// As soon as a worker is free.
    #[default]
    Now,
    /// So long after it was scheduled.
    In(Duration),
    /// Not before that moment.
    At(SystemTime),
}

/// A job to be.
///
/// ```
/// use russet::queue::{Due, NewJob};
/// use std::time::Duration;
///
/// let job = NewJob::new("send the mail")
///     .id("mail-17") // unique while it is not done
///     .due(Due::In(Duration::from_secs(60)))
///     .priority(5)
///     .group("customer-1");
/// # let _ = job;
/// ```
#[derive(Clone)]
pub struct NewJob {
    id: JobId,
    /// Nobody has given it a name.
    is_random: bool,
    payload: Vec<u8>,
    due: Due,
    priority: u8,
    group: Vec<u8>,
}

impl NewJob {
    /// One that is due now, with a random id, or one that is made of the id of its request.
    pub fn new(payload: impl Into<Vec<u8>>) -> Self {
        NewJob {
            id: JobId::random(),
            is_random: true,
            payload: payload.into(),
            due: Due::Now,
            priority: 0,
            group: Vec::new(),
        }
    }

    /// Unique in the queue as long as the job is not done: a second one is refused.
    pub fn id(mut self, id: impl Into<JobId>) -> Self {
        self.id = id.into();
        self.is_random = false;
        self
    }

    /// When it runs; as soon as possible by default.
    pub fn due(mut self, due: Due) -> Self {
        self.due = due;
        self
    }

    /// Higher goes first; see [`JobsBuilder::aging`](super::JobsBuilder::aging).
    pub fn priority(mut self, priority: u8) -> Self {
        self.priority = priority;
        self
    }

    /// See [`JobsBuilder::group_limit`](super::JobsBuilder::group_limit).
    pub fn group(mut self, group: impl AsRef<[u8]>) -> Self {
        self.group = group.as_ref().to_vec();
        self
    }

    #[cfg(feature = "cron")]
    pub(in crate::queue) fn payload(&self) -> &[u8] {
        &self.payload
    }

    #[cfg(feature = "cron")]
    pub(in crate::queue) fn priority_of(&self) -> u8 {
        self.priority
    }

    #[cfg(feature = "cron")]
    pub(in crate::queue) fn group_of(&self) -> &[u8] {
        &self.group
    }

    fn check(&self) -> Result<()> {
        self.id.check()?;
        if self.group.len() > GROUP_BYTES_MAX || self.group.contains(&0) {
            return Err(Error::invalid(format!(
                "a group has at most {GROUP_BYTES_MAX} bytes, none of them zero"
            )));
        }
        Ok(())
    }

    /// Milliseconds from now, and since 1970: one of them is 0.
    fn due_ms(&self) -> (u64, u64) {
        match self.due {
            Due::Now => (0, 0),
            Due::In(span) => (crate::time::millis(span), 0),
            Due::At(moment) => {
                let since = moment.duration_since(UNIX_EPOCH).unwrap_or_default();
                (0, crate::time::millis(since).max(1))
            }
        }
    }
}

/// Says nothing of its content.
impl fmt::Debug for NewJob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NewJob").field("due", &self.due).finish_non_exhaustive()
    }
}

/// What became of a new job.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum Scheduled {
    /// It will run. The same request gets the same id.
    Scheduled(JobId),
    /// A job of that id waits or runs.
    Duplicate,
    /// There are as many jobs as the queue has room for.
    Full,
}

/// What became of a job that is to be cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Cancelled {
    /// It will not run.
    Cancelled,
    /// It is claimed, or waits for room in its group: if this attempt fails there is no other.
    Running,
    /// There is no such job.
    Missing,
}

impl Jobs {
    /// Adds a job. With a request id the same request adds it once, even if it is done meanwhile.
    pub async fn schedule(&self, job: &NewJob, request: Option<&RequestId>) -> Result<Scheduled> {
        job.check()?;
        let Inner { core: Core { kit, keys, bounds, delivery }, parts, .. } = &*self.inner;
        delivery.check_payload(&job.payload)?;
        let (delay_ms, due_ms) = job.due_ms();
        // A request that is repeated must name the same job.
        let id = match request {
            Some(request) if job.is_random => JobId::of_request(kit, request, &job.payload),
            _ => job.id.clone(),
        };
        let call = self
            .with_stored(kit.step_of_request(&SCHEDULE, keys, request))
            .key(parts.bell.clone())
            .about(id.as_bytes())
            .arg(&job.payload)
            .arg(delay_ms)
            .arg(due_ms)
            .arg(u32::from(job.priority))
            .arg(&job.group)
            .arg(bounds.capacity)
            .arg(bounds.ttl)
            .arg(self.inner.aging)
            .replicas_min(delivery.min_replicas);
        let envelope = call.run().await?;
        match envelope.status() {
            "SCHEDULED" => Ok(Scheduled::Scheduled(id)),
            "DUPLICATE" => Ok(Scheduled::Duplicate),
            "FULL" => Ok(Scheduled::Full),
            _ => Err(envelope.unexpected()),
        }
    }

    /// Takes a job back.
    pub async fn cancel(&self, id: &JobId) -> Result<Cancelled> {
        let Inner { core: Core { kit, .. }, parts, .. } = &*self.inner;
        let call = kit
            .step(&CANCEL)
            .key(parts.meta.clone())
            .key(parts.jobs.clone())
            .key(parts.ready.clone())
            .key(parts.delayed.clone())
            .key(parts.parked.clone())
            .key(parts.taken.clone())
            .key(parts.bell.clone())
            .arg(id.as_bytes());
        let envelope = call.run().await?;
        match envelope.status() {
            "CANCELLED" => Ok(Cancelled::Cancelled),
            "RUNNING" => Ok(Cancelled::Running),
            "MISSING" => Ok(Cancelled::Missing),
            _ => Err(envelope.unexpected()),
        }
    }
}
