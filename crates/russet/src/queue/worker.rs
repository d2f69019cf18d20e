//! A worker: takes jobs from a source, runs a handler for each, and ends them.

use super::source::{ClaimId, Claimed, Source};
use super::{Acked, CLAIM_MAX, Extended, Job, Returned};
use crate::backend::Pending;
use crate::error::{Error, Result};
use crate::observe;
use crate::retry::RetryPolicy;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::{JoinError, JoinHandle, JoinSet};

/// How long a worker waits before it asks again, unless a setting says otherwise.
const POLL: Duration = Duration::from_secs(1);
/// The pauses of a worker whose source does not answer.
const TROUBLE: RetryPolicy = RetryPolicy {
    attempts_max: u32::MAX,
    pause_min: Duration::from_millis(100),
    pause_max: Duration::from_secs(5),
};
/// How often it is tried to record the end of a job.
const ENDS_MAX: u32 = 5;

/// Why a handler has not done its job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Kept with the job if it becomes a dead letter.
    pub reason: String,
    again: Again,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Again {
    AfterBackoff,
    After(Duration),
    Never,
}

impl Failure {
    /// It may work another time.
    pub fn retry(reason: impl Into<String>) -> Self {
        Failure { reason: reason.into(), again: Again::AfterBackoff }
    }

    /// It may work after that time.
    pub fn retry_after(delay: Duration, reason: impl Into<String>) -> Self {
        Failure { reason: reason.into(), again: Again::After(delay) }
    }

    /// It will never work: a dead letter at once.
    pub fn fatal(reason: impl Into<String>) -> Self {
        Failure { reason: reason.into(), again: Again::Never }
    }

    /// How long the job rests; None if it is not tried again.
    pub fn delay(&self, backoff: impl FnOnce() -> Duration) -> Option<Duration> {
        match self.again {
            Again::AfterBackoff => Some(backoff()),
            Again::After(delay) => Some(delay),
            Again::Never => None,
        }
    }
}

/// It may work another time.
impl<E: std::error::Error> From<E> for Failure {
    fn from(error: E) -> Self {
        Failure::retry(error.to_string())
    }
}

type Handler =
    dyn Fn(Job) -> Pin<Box<dyn Future<Output = Result<(), Failure>> + Send>> + Send + Sync;

/// A worker that runs. When it is dropped it takes no more jobs; those that run are ended.
///
/// While a handler runs the worker says so to the source, three times per visibility. If the job is
/// lost all the same (the process was stopped for too long, the source did not answer), the handler
/// is cancelled: from then on another worker may have the job. A handler that panics has failed.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use russet::queue::{Bounds, Jobs, NewJob, Worker};
/// use std::time::Duration;
///
/// let kit = russet::Kit::embedded(Default::default())?;
/// let bounds = Bounds { capacity: 10_000, ttl: Duration::from_secs(86_400) };
/// let mails = Jobs::builder(&kit, "mails", bounds).build()?;
/// let (sent, mut mail) = tokio::sync::mpsc::channel(1);
/// let worker = Worker::builder(mails.clone()).concurrency(8).run(move |job| {
///     let sent = sent.clone();
///     async move {
///         sent.send(job.payload).await?;
///         Ok(())
///     }
/// })?;
/// let _ = mails.schedule(&NewJob::new("to ann"), None).await?;
/// assert_eq!(mail.recv().await, Some(b"to ann".to_vec()));
/// let stats = worker.shutdown(Duration::from_secs(10)).await;
/// assert_eq!(stats.done, 1);
/// # Ok(())
/// # }
/// ```
#[must_use = "a worker that is dropped takes no more jobs"]
pub struct Worker {
    stop: watch::Sender<Stop>,
    task: JoinHandle<()>,
    counters: Arc<Counters>,
    time: crate::Time,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stop {
    /// Not yet.
    No,
    /// No more jobs.
    Drain,
    /// Those that run are cancelled and given back.
    Abort,
}

#[derive(Debug, Default)]
struct Counters {
    running: AtomicU64,
    done: AtomicU64,
    failed: AtomicU64,
    given_back: AtomicU64,
    lost: AtomicU64,
}

/// What a worker has done so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WorkerStats {
    /// Jobs that it works on now.
    pub running: u64,
    /// Jobs that it has acknowledged.
    pub done: u64,
    /// Attempts that failed.
    pub failed: u64,
    /// Jobs that were cancelled by a shutdown; their attempts do not count.
    pub given_back: u64,
    /// Jobs that others got because this worker was too slow, or could not be heard.
    pub lost: u64,
}

impl Worker {
    /// Begins to describe a worker of a queue: one job at a time, unless told otherwise.
    pub fn builder(source: impl Source) -> WorkerBuilder {
        WorkerBuilder { source: Arc::new(source), concurrency: 1, poll: POLL }
    }

    /// What it has done since it was started.
    pub fn stats(&self) -> WorkerStats {
        let Counters { running, done, failed, given_back, lost } = &*self.counters;
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        WorkerStats {
            running: read(running),
            done: read(done),
            failed: read(failed),
            given_back: read(given_back),
            lost: read(lost),
        }
    }

    /// Takes no more jobs and waits for those that run. After `grace` they are cancelled and given
    /// back, for others to take at once; that costs them no attempt.
    pub async fn shutdown(mut self, grace: Duration) -> WorkerStats {
        self.stop.send_replace(Stop::Drain);
        let is_done = tokio::select! {
            _ = &mut self.task => true,
            () = self.time.sleep(grace) => false,
        };
        if !is_done {
            self.stop.send_replace(Stop::Abort);
            // It ends by itself: whatever it waits for has a limit.
            let _ = (&mut self.task).await;
        }
        self.stats()
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.stop.send_if_modified(|stop| {
            let was_running = *stop == Stop::No;
            *stop = if was_running { Stop::Drain } else { *stop };
            was_running
        });
    }
}

impl fmt::Debug for Worker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker").field("stats", &self.stats()).finish_non_exhaustive()
    }
}

/// What a [`Worker`] is made with.
#[must_use]
pub struct WorkerBuilder {
    source: Arc<dyn Source>,
    concurrency: u32,
    poll: Duration,
}

impl WorkerBuilder {
    /// How many jobs run at a time; one by default.
    pub fn concurrency(mut self, jobs: u32) -> Self {
        self.concurrency = jobs;
        self
    }

    /// How long it waits at most before it asks for jobs again; a second by default. New jobs wake
    /// it earlier.
    pub fn poll(mut self, poll: Duration) -> Self {
        self.poll = poll;
        self
    }

    /// Starts it. Must be called within a tokio runtime.
    pub fn run<F>(self, handler: impl Fn(Job) -> F + Send + Sync + 'static) -> Result<Worker>
    where
        F: Future<Output = Result<(), Failure>> + Send + 'static,
    {
        if self.concurrency == 0 || self.poll.is_zero() {
            return Err(Error::invalid("concurrency and poll must not be zero"));
        }
        let runtime = tokio::runtime::Handle::try_current()
            .map_err(|_none| Error::invalid("called outside a tokio runtime"))?;
        let (stop, stopped) = watch::channel(Stop::No);
        let counters = Arc::new(Counters::default());
        let time = self.source.kit().time().clone();
        let shop = Shop {
            source: self.source,
            handler: Arc::new(move |job| Box::pin(handler(job))),
            counters: counters.clone(),
            stopped,
        };
        let task = runtime.spawn(work(shop, self.concurrency, self.poll));
        Ok(Worker { stop, task, counters, time })
    }
}

impl fmt::Debug for WorkerBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { concurrency, poll, .. } = self;
        f.debug_struct("WorkerBuilder")
            .field("concurrency", concurrency)
            .field("poll", poll)
            .finish_non_exhaustive()
    }
}

/// What every job of a worker needs.
#[derive(Clone)]
struct Shop {
    source: Arc<dyn Source>,
    handler: Arc<Handler>,
    counters: Arc<Counters>,
    stopped: watch::Receiver<Stop>,
}

/// The claim that a worker makes, and when it first asked for it: what an attempt gets may have
/// been claimed by an earlier one.
struct Claim {
    id: ClaimId,
    asked_at: Option<Duration>,
}

impl Claim {
    /// When it was first asked for. After the visibility what it may have got is lost to it, and it
    /// becomes another claim.
    fn ask(&mut self, now: Duration, visibility: Duration) -> Duration {
        if self.asked_at.is_some_and(|at| now >= at + visibility) {
            *self = self.next();
        }
        *self.asked_at.get_or_insert(now)
    }

    fn next(&self) -> Claim {
        Claim { id: self.id.next(), asked_at: None }
    }
}

async fn work(mut shop: Shop, concurrency: u32, poll: Duration) {
    let source = shop.source.clone();
    let time = source.kit().time().clone();
    let mut running = JoinSet::new();
    let mut troubles = 0;
    let mut claim = Claim { id: ClaimId::first(), asked_at: None };
    while *shop.stopped.borrow_and_update() == Stop::No {
        while running.try_join_next().is_some() {}
        let used = u32::try_from(running.len()).unwrap_or(u32::MAX);
        let room = concurrency.saturating_sub(used).min(CLAIM_MAX);
        if room == 0 {
            tokio::select! {
                _ = running.join_next() => {}
                _ = shop.stopped.changed() => {}
            }
            continue;
        }
        let asked_at = claim.ask(time.elapsed(), source.visibility());
        // Not cancelled by a shutdown: what it claims would be nobody's for a while.
        let answer = source.claim(room, &claim.id).await;
        if answer.is_ok() {
            (claim, troubles) = (claim.next(), 0);
        }
        let wait: Pin<Box<dyn Future<Output = ()> + Send>> = match answer {
            Ok(Claimed::Jobs(jobs)) => {
                for job in jobs {
                    running.spawn(run_one(shop.clone(), job, asked_at));
                }
                continue;
            }
            Ok(Claimed::Empty { next_in }) => {
                let span = next_in.map_or(poll, |it| it.clamp(Duration::from_millis(1), poll));
                let notified = source.wait(span);
                Box::pin(async { drop(notified.await) })
            }
            Err(error) => {
                troubles += 1;
                tracing::warn!(source = source.name(), %error, "no jobs could be claimed");
                Box::pin(time.sleep(TROUBLE.pause(troubles)))
            }
        };
        tokio::pin!(wait);
        loop {
            tokio::select! {
                () = &mut wait => break,
                Some(_) = running.join_next() => {}
                _ = shop.stopped.changed() => break,
            }
        }
    }
    while running.join_next().await.is_some() {}
}

/// How the work on a job has ended.
enum Ended {
    Done,
    Failed(Failure),
    /// It was cancelled: that is no failure of the job.
    Cancelled,
    /// Others may have it.
    Lost,
}

impl Ended {
    /// Of a handler that has returned, or was stopped.
    fn of(ended: Result<Result<(), Failure>, JoinError>) -> Ended {
        match ended {
            Ok(Ok(())) => Ended::Done,
            Ok(Err(failure)) => Ended::Failed(failure),
            Err(stop) if stop.is_panic() => Ended::Failed(Failure::retry("the handler panicked")),
            Err(_cancelled) => Ended::Cancelled,
        }
    }
}

async fn run_one(shop: Shop, job: Job, claimed_at: Duration) {
    let Shop { source, counters, .. } = &shop;
    counters.running.fetch_add(1, Ordering::Relaxed);
    let handler = Running(tokio::spawn((shop.handler)(job.clone())));
    let counter = match attend(handler, &shop, &job, claimed_at).await {
        Ended::Done => match until_recorded(&**source, || source.ack(&job.receipt)).await {
            Some(Acked::Acked | Acked::Gone) => &counters.done,
            Some(Acked::Stale) | None => &counters.lost,
        },
        Ended::Failed(failure) => {
            match until_recorded(&**source, || source.fail(&job, &failure)).await {
                Some(Returned::Stale) | None => &counters.lost,
                Some(_) => &counters.failed,
            }
        }
        Ended::Cancelled => match until_recorded(&**source, || source.give_back(&job)).await {
            Some(Returned::Stale) | None => &counters.lost,
            Some(_) => &counters.given_back,
        },
        Ended::Lost => &counters.lost,
    };
    if std::ptr::eq(counter, &counters.lost) {
        observe::count("redis.queue.lost.count", source.name(), 1);
    }
    counter.fetch_add(1, Ordering::Relaxed);
    counters.running.fetch_sub(1, Ordering::Relaxed);
}

/// Waits for a handler, and keeps its job meanwhile.
async fn attend(mut handler: Running, shop: &Shop, job: &Job, claimed_at: Duration) -> Ended {
    let Shop { source, stopped, .. } = shop;
    let (time, visibility) = (source.kit().time(), source.visibility());
    let mut stopped = stopped.clone();
    let mut deadline = claimed_at + visibility;
    let mut next_beat = claimed_at + visibility / 3;
    loop {
        tokio::select! {
            ended = &mut handler.0 => return Ended::of(ended),
            () = aborted(&mut stopped) => {
                handler.0.abort();
                // Given back once it has stopped, so that no other runs beside it.
                return tokio::select! {
                    ended = &mut handler.0 => Ended::of(ended),
                    () = time.sleep_until(deadline) => Ended::Lost,
                };
            }
            () = time.sleep_until(next_beat) => {
                let asked_at = time.elapsed();
                let answer = tokio::select! {
                    answer = source.extend(&job.receipt) => answer,
                    () = time.sleep_until(deadline) => return Ended::Lost,
                };
                match answer {
                    Ok(Extended::Extended) => {
                        deadline = asked_at + visibility;
                        next_beat = asked_at + visibility / 3;
                    }
                    Ok(Extended::Stale) => return Ended::Lost,
                    Err(_) if time.elapsed() >= deadline => return Ended::Lost,
                    Err(_) => next_beat = time.elapsed() + visibility / 20,
                }
            }
        }
    }
}

/// Until the worker is to abort; a worker that was dropped gets no further signal.
async fn aborted(stopped: &mut watch::Receiver<Stop>) {
    if stopped.wait_for(|stop| *stop == Stop::Abort).await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// A handler that is cancelled when nobody waits for it any more.
struct Running(JoinHandle<Result<(), Failure>>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Records how a job has ended, in several attempts if need be: None if all failed.
async fn until_recorded<'a, T>(
    source: &dyn Source,
    record: impl Fn() -> Pending<'a, T>,
) -> Option<T> {
    let mut attempt = 1;
    loop {
        match record().await {
            Ok(recorded) => return Some(recorded),
            Err(error) if !worth_another(attempt, &error) => return None,
            Err(_) => source.kit().time().sleep(TROUBLE.pause(attempt)).await,
        }
        attempt += 1;
    }
}

fn worth_another(attempt: u32, error: &Error) -> bool {
    attempt < ENDS_MAX && error.advice() != crate::Advice::GiveUp
}
