//! Dead letters: jobs that have failed too often, kept to be looked at and to be tried anew.

use super::{DISCARD, Inner, Jobs, LETTERS, REQUEUE};
use crate::error::{Error, Result};
use crate::queue::receipts::Core;
use crate::queue::{CLAIM_MAX, JobId};
use crate::reply::{Envelope, Reply};
use crate::retry::RequestId;
use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A job that was given up.
#[derive(Clone, PartialEq, Eq)]
pub struct DeadLetter {
    /// Names the letter: the id of its job, with a number behind it if a letter of an earlier job
    /// of that id is there too.
    pub id: JobId,
    /// The job that it was, and will be if it is requeued. Empty in a stream, where it gets
    /// another.
    pub job: JobId,
    /// Of the job.
    pub payload: Vec<u8>,
    /// How often it was tried.
    pub attempts: u32,
    /// Why the last attempt failed.
    pub reason: String,
    /// Empty if it has none.
    pub group: Vec<u8>,
    /// By the server's clock.
    pub died_at: SystemTime,
}

impl DeadLetter {
    pub(in crate::queue) fn read(reply: Reply) -> Result<DeadLetter> {
        let parts: Result<Vec<Vec<u8>>> = reply
            .into_list()?
            .into_iter()
            .map(|part| Ok(part.into_bytes()?.unwrap_or_default()))
            .collect();
        let corrupt = || Error::Corrupt("a dead letter lacks a part".into());
        let parts: [Vec<u8>; 7] = parts?.try_into().map_err(|_parts| corrupt())?;
        let [id, payload, attempts, reason, group, died_ms, job] = parts;
        let number = |text: &[u8]| -> Result<u64> {
            let text = std::str::from_utf8(text).map_err(|_bytes| corrupt())?;
            text.parse().map_err(|_text| corrupt())
        };
        Ok(DeadLetter {
            id: JobId(id),
            job: JobId(job),
            payload,
            attempts: u32::try_from(number(&attempts)?).unwrap_or(u32::MAX),
            reason: String::from_utf8_lossy(&reason).into_owned(),
            group,
            died_at: UNIX_EPOCH + Duration::from_millis(number(&died_ms)?),
        })
    }
}

/// Says nothing of its payload.
impl fmt::Debug for DeadLetter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeadLetter")
            .field("attempts", &self.attempts)
            .field("reason", &self.reason)
            .finish_non_exhaustive()
    }
}

/// What became of a dead letter that is to be tried anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Requeued {
    /// It is a job again, with all its attempts before it.
    Requeued,
    /// A job of that id waits or runs: the letter stays.
    Duplicate,
    /// The queue has no room: the letter stays.
    Full,
    /// There is no such letter.
    Missing,
}

/// What became of a dead letter that nobody wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Discarded {
    /// It is gone.
    Discarded,
    /// There is no such letter.
    Missing,
}

impl Requeued {
    pub(in crate::queue) fn read(envelope: &Envelope) -> Result<Requeued> {
        match envelope.status() {
            "REQUEUED" => Ok(Requeued::Requeued),
            "DUPLICATE" => Ok(Requeued::Duplicate),
            "FULL" => Ok(Requeued::Full),
            "MISSING" => Ok(Requeued::Missing),
            _ => Err(envelope.unexpected()),
        }
    }
}

impl Discarded {
    pub(in crate::queue) fn read(envelope: &Envelope) -> Result<Discarded> {
        match envelope.status() {
            "DISCARDED" => Ok(Discarded::Discarded),
            "MISSING" => Ok(Discarded::Missing),
            _ => Err(envelope.unexpected()),
        }
    }
}

impl Jobs {
    /// Some dead letters, the oldest first, at most [`CLAIM_MAX`].
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use russet::queue::{Bounds, Claimed, Discarded, Jobs, NewJob, Requeued};
    /// use std::time::Duration;
    ///
    /// let kit = russet::Kit::embedded(Default::default())?;
    /// let bounds = Bounds { capacity: 100, ttl: Duration::from_secs(3600) };
    /// let mails = Jobs::builder(&kit, "mails", bounds).attempts_max(1).build()?;
    /// let _ = mails.schedule(&NewJob::new("to nowhere").id("mail-1"), None).await?;
    /// let Claimed::Jobs(jobs) = mails.claim_due(1, None).await? else { return Ok(()) };
    /// let _ = mails.retry(&jobs[0], "no such address", None).await?;
    ///
    /// let letters = mails.dead_letters(0, 10).await?;
    /// assert_eq!((letters[0].attempts, letters[0].reason.as_str()), (1, "no such address"));
    /// assert_eq!(mails.requeue(&letters[0].id, None).await?, Requeued::Requeued);
    /// // It is a job again.
    /// assert_eq!(mails.discard(&letters[0].id).await?, Discarded::Missing);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn dead_letters(&self, offset: u32, limit: u32) -> Result<Vec<DeadLetter>> {
        let Inner { core: Core { kit, .. }, parts, .. } = &*self.inner;
        let call = kit
            .step(&LETTERS)
            .key(parts.dead.clone())
            .key(parts.graves.clone())
            .arg(offset)
            .arg(limit.min(CLAIM_MAX));
        let letters = call.run().await?.list("letters")?;
        letters.into_iter().map(DeadLetter::read).collect()
    }

    /// Makes a job of a dead letter; [`Jobs::dead_letters`] has an example.
    pub async fn requeue(&self, id: &JobId, request: Option<&RequestId>) -> Result<Requeued> {
        let Inner { core: Core { kit, keys, bounds, .. }, parts, aging, .. } = &*self.inner;
        let call = self
            .with_stored(kit.step_of_request(&REQUEUE, keys, request))
            .key(parts.bell.clone())
            .about(id.as_bytes())
            .arg(bounds.capacity)
            .arg(bounds.ttl)
            .arg(*aging);
        Requeued::read(&call.run().await?)
    }

    /// Forgets a dead letter; [`Jobs::dead_letters`] has an example.
    pub async fn discard(&self, id: &JobId) -> Result<Discarded> {
        let Inner { core: Core { kit, .. }, parts, .. } = &*self.inner;
        let call =
            kit.step(&DISCARD).key(parts.dead.clone()).key(parts.graves.clone()).arg(id.as_bytes());
        Discarded::read(&call.run().await?)
    }
}
