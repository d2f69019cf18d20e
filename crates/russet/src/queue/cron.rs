//! Repeated jobs: which moments a cron expression names, and that each of them is one job.

use super::jobs::{CRON, FORGET, PLANNED};
use super::{Jobs, NewJob, Source};
use crate::error::{Error, Result};
use crate::observe::stats;
use chrono::{DateTime, Utc};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The most repeated jobs of one queue.
const ENTRIES_MAX: usize = 1000;
/// How long [`Cron::run`] rests at most.
const REST_MAX: Duration = Duration::from_secs(60);
/// How long [`Cron::run`] rests after an error.
const TROUBLE_REST: Duration = Duration::from_secs(5);

/// Jobs that repeat. Every process may have the same list and run it: each occurrence is one job,
/// by the server's clock. It is planned ahead, so that it also runs if these processes are gone
/// meanwhile; occurrences that nobody planned are not made up for.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use russet::queue::{Bounds, Cron, Jobs, NewJob};
/// use std::time::Duration;
///
/// let kit = russet::Kit::embedded(Default::default())?;
/// let bounds = Bounds { capacity: 1000, ttl: Duration::from_secs(86_400) };
/// let jobs = Jobs::builder(&kit, "reports", bounds).build()?;
/// let cron = Cron::new(&jobs).every("nightly", "0 3 * * *", NewJob::new("report"))?;
/// cron.tick().await?; // or `tokio::spawn(cron.run())`
/// assert_eq!(jobs.stats().await?.delayed, 1);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Cron {
    jobs: Jobs,
    entries: Vec<Entry>,
    counts: Arc<Counts>,
}

stats! {
    /// What a handle and its clones have planned in this process. What became of the jobs is in
    /// the stats of their queue.
    CronStats counted by Counts {
        /// Occurrences that this process has planned; others plan the rest.
        scheduled,
        /// Attempts to plan one that failed, and are made again.
        failed,
    }
}

#[derive(Clone, Debug)]
struct Entry {
    name: String,
    schedule: croner::Cron,
    job: NewJob,
}

/// What a round of planning has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Planned {
    /// Occurrences that this round has planned.
    pub scheduled: u32,
    /// When the next one has to be planned.
    pub next_in: Duration,
}

impl Cron {
    /// A list without jobs, for a queue.
    pub fn new(jobs: &Jobs) -> Self {
        Cron { jobs: jobs.clone(), entries: Vec::new(), counts: Arc::default() }
    }

    /// Adds a job that repeats, by an expression of five fields (or six, the first being seconds)
    /// in UTC. Its id and due time come from the occurrence.
    pub fn every(mut self, name: &str, expression: &str, job: NewJob) -> Result<Self> {
        let schedule = expression
            .parse()
            .map_err(|error| Error::Invalid(format!("the expression of {name}: {error}")))?;
        if name.is_empty() || name.len() > super::ID_BYTES_MAX / 2 {
            return Err(Error::invalid("the name of a repeated job is too short or too long"));
        }
        self.jobs.check_payload(job.payload())?;
        if self.entries.len() >= ENTRIES_MAX || self.entries.iter().any(|it| it.name == name) {
            return Err(Error::invalid("too many repeated jobs, or two of one name"));
        }
        let entry = Entry { name: name.to_owned(), schedule, job };
        // One that never comes, as the 30th of February, would be found out by whoever plans it.
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        entry.next_after(i64::try_from(now.as_millis()).unwrap_or(0))?;
        self.entries.push(entry);
        Ok(self)
    }

    /// Plans the next occurrence of each job, unless it is planned. One that can't be planned keeps
    /// none of the others from it: the first error is given when all were tried.
    pub async fn tick(&self) -> Result<Planned> {
        let mut planned = Planned { scheduled: 0, next_in: REST_MAX };
        let mut failed = None;
        for entry in &self.entries {
            match self.plan(entry).await {
                Ok((is_new, in_ms)) => {
                    planned.scheduled += u32::from(is_new);
                    self.counts.scheduled.add(u64::from(is_new));
                    planned.next_in = planned.next_in.min(Duration::from_millis(in_ms + 1));
                }
                Err(error) => {
                    self.counts.failed.add(1);
                    tracing::warn!(name = entry.name, %error, "a repeated job is not planned");
                    failed.get_or_insert(error);
                }
            }
        }
        failed.map_or(Ok(planned), Err)
    }

    /// What this handle and its clones have planned.
    pub fn stats(&self) -> CronStats {
        self.counts.stats()
    }

    /// Plans for ever; to be spawned. Errors are logged, and tried again.
    pub async fn run(self) {
        loop {
            let rest = match self.tick().await {
                Ok(planned) => planned.next_in,
                Err(error) => {
                    tracing::warn!(%error, "repeated jobs could not be planned");
                    TROUBLE_REST
                }
            };
            self.jobs.kit().time().sleep(rest).await;
        }
    }

    /// Ends the repetition of a job, of whatever process. One that still has it in its list plans
    /// it anew.
    pub async fn forget(&self, name: &str) -> Result<()> {
        let stored = self.jobs.stored();
        let mut call = self.jobs.kit().step(&FORGET);
        for key in &stored[..6] {
            call = call.key((*key).clone());
        }
        call.key(self.jobs.bell().clone()).arg(name).run().await.map(drop)
    }

    /// Whether the next occurrence had to be planned, and in how many milliseconds it is.
    async fn plan(&self, entry: &Entry) -> Result<(bool, u64)> {
        let kit = self.jobs.kit();
        let stored = self.jobs.stored();
        let asked = kit.step(&PLANNED).key(stored[0].clone()).arg(&entry.name).run().await?;
        let (now_ms, planned_ms) = (asked.int("now_ms")?, asked.int("planned_ms")?);
        if planned_ms > now_ms {
            return Ok((false, u64::try_from(planned_ms - now_ms).unwrap_or(0)));
        }
        let next_ms = entry.next_after(now_ms)?;
        let mut call = kit.step(&CRON);
        for key in stored {
            call = call.key(key.clone());
        }
        let call = call
            .key(self.jobs.bell().clone())
            .arg(&entry.name)
            .arg(next_ms)
            .arg(entry.job.payload())
            .arg(u32::from(entry.job.priority_of()))
            .arg(entry.job.group_of())
            .arg(self.jobs.bounds().capacity)
            .arg(self.jobs.bounds().ttl);
        let envelope = call.run().await?;
        let in_ms = u64::try_from(next_ms - now_ms).unwrap_or(0);
        match envelope.status() {
            "SCHEDULED" => Ok((true, in_ms)),
            "PLANNED" => Ok((false, in_ms)),
            "FULL" => Err(Error::Unavailable("the queue is full".into())),
            _ => Err(envelope.unexpected()),
        }
    }
}

impl Entry {
    fn next_after(&self, now_ms: i64) -> Result<i64> {
        let invalid = |why: String| Error::Invalid(format!("the schedule of {}: {why}", self.name));
        let now: DateTime<Utc> = DateTime::from_timestamp_millis(now_ms)
            .ok_or_else(|| invalid("the server's time makes no sense".into()))?;
        let next = self.schedule.find_next_occurrence(&now, false);
        next.map(|it| it.timestamp_millis()).map_err(|error| invalid(error.to_string()))
    }
}
