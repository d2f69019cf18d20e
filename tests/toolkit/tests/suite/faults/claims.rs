//! A claim that has run and whose reply is lost: no handler ran, so no attempt is to count.

use super::HOUR;
use russet::queue::{Acked, Bounds, ClaimId, Claimed, Job, Jobs, NewJob, Reliable, Source, Stream};
use russet::queue::{Worker, WorkerStats};
use russet::retry::RetryPolicy;
use russet::{Kit, RequestId};
use russet_toolkit_tests::{Proxy, ProxyFault};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

russet_toolkit_tests::behind_a_proxy! {
    a_claim_of_jobs_is_answered_again
    a_claim_of_a_list_is_answered_again
    a_claim_of_a_stream_is_answered_again
    a_worker_repeats_a_claim_until_it_is_answered
}

const BOUNDS: Bounds = Bounds { capacity: 1000, ttl: HOUR };
const DEADLINE: Duration = Duration::from_secs(120);
const JOBS: usize = 3;
/// The payloads of all jobs, each in its first attempt.
const EACH_ONCE: [(&str, u32); JOBS] = [("0", 1), ("1", 1), ("2", 1)];

fn claim_id(answered: Option<&ClaimId>) -> ClaimId {
    let answered = answered.map(|claim| claim.request.clone());
    ClaimId { request: RequestId::random(), answered }
}

async fn claim(source: &impl Source, id: &ClaimId) -> Vec<Job> {
    source.claim(10, id).await.map(Claimed::jobs).unwrap()
}

/// The connection is cut behind the next script that is called by its digest.
fn cut_after_the_next(proxy: &Proxy) {
    let mut is_cut = false;
    proxy.plan(move |call| match call.command.as_str() {
        "EVALSHA" if !std::mem::replace(&mut is_cut, true) => ProxyFault::CutAfter,
        _ => ProxyFault::None,
    });
}

async fn is_answered_again(source: &impl Source, proxy: &Proxy, put: impl AsyncFn(String)) {
    // The server has the script from here on.
    assert_eq!(claim(source, &claim_id(None)).await, []);
    for number in 0..JOBS {
        put(number.to_string()).await;
    }
    let id = claim_id(None);
    cut_after_the_next(proxy);
    let jobs = claim(source, &id).await;
    assert!(proxy.requests() >= 2, "the first call was not cut");
    let seen: Vec<_> = jobs.iter().map(|job| (job.payload.clone(), job.attempt)).collect();
    assert_eq!(seen, EACH_ONCE.map(|(payload, attempt)| (payload.into(), attempt)));
    assert_eq!(claim(source, &id).await, jobs, "the same jobs, and the same receipts");
    // What is remembered of it goes with the next claim.
    assert_eq!(claim(source, &claim_id(Some(&id))).await, []);
    assert_eq!(claim(source, &id).await, []);
    for job in &jobs {
        assert_eq!(source.ack(&job.receipt).await, Ok(Acked::Acked));
    }
}

async fn a_claim_of_jobs_is_answered_again(kit: Kit, proxy: Arc<Proxy>) {
    let jobs = Jobs::builder(&kit, "jobs", BOUNDS).visibility(HOUR).build().unwrap();
    is_answered_again(&jobs, &proxy, async |payload| {
        let _ = jobs.schedule(&NewJob::new(payload), None).await.unwrap();
    })
    .await;
    assert_eq!(jobs.stats().await.unwrap().acked, JOBS as u64);
}

async fn a_claim_of_a_list_is_answered_again(kit: Kit, proxy: Arc<Proxy>) {
    let list = Reliable::builder(&kit, "list", BOUNDS).visibility(HOUR).build().unwrap();
    is_answered_again(&list, &proxy, async |payload| {
        let _ = list.push(payload, None).await.unwrap();
    })
    .await;
    assert_eq!(list.stats().await.unwrap().acked, JOBS as u64);
}

async fn a_claim_of_a_stream_is_answered_again(kit: Kit, proxy: Arc<Proxy>) {
    let stream = Stream::builder(&kit, "stream", BOUNDS).visibility(HOUR).build().unwrap();
    is_answered_again(&stream, &proxy, async |payload| {
        let _ = stream.add(payload, None).await.unwrap();
    })
    .await;
    assert_eq!(stream.stats().await.unwrap().running, 0);
}

/// A worker whose claim was lost asked for other jobs; those of the claim waited until their
/// visibility was over, and had lost an attempt. Here the kit tries nothing twice: the worker does.
async fn a_worker_repeats_a_claim_until_it_is_answered(kit: Kit, proxy: Arc<Proxy>) {
    let jobs = Jobs::builder(&kit, "jobs", BOUNDS).visibility(HOUR).build().unwrap();
    assert_eq!(claim(&jobs, &claim_id(None)).await, []);
    for number in 0..JOBS {
        let _ = jobs.schedule(&NewJob::new(number.to_string()), None).await.unwrap();
    }
    let hasty = kit.with_retry(RetryPolicy::NONE);
    let source = Jobs::builder(&hasty, "jobs", BOUNDS).visibility(HOUR).build().unwrap();
    let (done, mut attempts) = mpsc::unbounded_channel();
    cut_after_the_next(&proxy);
    let worker = Worker::builder(source).concurrency(JOBS as u32).run(move |job| {
        let done = done.clone();
        async move {
            done.send((job.payload, job.attempt))?;
            Ok(())
        }
    });
    let worker = worker.unwrap();
    let mut ran = Vec::new();
    for _ in 0..JOBS {
        let one = tokio::time::timeout(DEADLINE, attempts.recv()).await;
        ran.push(one.expect("the jobs of the lost claim are hidden from all").unwrap());
    }
    ran.sort();
    assert_eq!(ran, EACH_ONCE.map(|(payload, attempt)| (payload.into(), attempt)));
    let WorkerStats { done, lost, .. } = worker.shutdown(DEADLINE).await;
    assert_eq!((done, lost), (JOBS as u64, 0));
}
