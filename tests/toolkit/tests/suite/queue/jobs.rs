//! The job queue.

use super::{BOUNDS, SHORT, is_new, one, until};
use russet::key::Scope;
use russet::queue::{
    Acked, Bounds, Cancelled, Claimed, Discarded, Due, Extended, Jobs, NewJob, Receipt, Reliable,
    Requeued, Returned, Scheduled,
};
use russet::{Error, Kit, Request, RequestId};
use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

russet_toolkit_tests::on_every_backend! {
    a_job_is_claimed_and_acknowledged_once
    jobs_run_in_the_order_in_which_they_came
    a_stale_worker_acknowledges_nothing
    a_lost_worker_loses_no_job
    the_payload_does_not_expire_before_the_job_is_due
    every_key_expires
    a_job_that_fails_too_often_is_a_dead_letter_that_can_be_requeued
    dead_letters_are_bounded
    a_unique_job_leaves_no_lock_behind
    a_dead_job_does_not_count_as_a_duplicate
    a_retried_request_has_one_effect
    a_retried_request_of_a_job_without_a_name_has_one_effect
    a_full_queue_refuses
    a_group_runs_no_more_than_its_limit
    a_cancelled_job_does_not_run
    nonsense_is_refused_before_anything_is_written
    replicas_confirm_or_the_outcome_is_unknown
    many_workers_share_the_jobs
    keys_of_a_queue_share_a_slot_and_shards_spread
}

fn jobs(kit: &Kit) -> Jobs {
    Jobs::builder(kit, "jobs", BOUNDS).build().unwrap()
}

async fn a_job_is_claimed_and_acknowledged_once(kit: Kit) {
    let jobs = jobs(&kit);
    assert_eq!(jobs.claim_due(10, None).await, Ok(Claimed::Empty { next_in: None }));
    let payload: Vec<u8> = (0..=255).collect();
    assert!(is_new(&jobs.schedule(&NewJob::new(payload.clone()).id("a"), None).await.unwrap()));
    let job = one(jobs.claim_due(10, None).await.unwrap());
    assert_eq!((job.payload.clone(), job.attempt), (payload, 1));
    assert!(jobs.claim_due(10, None).await.unwrap().jobs().is_empty());
    assert_eq!(jobs.ack(&job.receipt, None).await, Ok(Acked::Acked));
    assert_eq!(jobs.ack(&job.receipt, None).await, Ok(Acked::Gone));
    let stats = jobs.stats().await.unwrap();
    assert_eq!((stats.ready, stats.running, stats.scheduled, stats.acked), (0, 0, 1, 1));
}

/// Ids are random and clocks are coarse: the order must not hang on either.
async fn jobs_run_in_the_order_in_which_they_came(kit: Kit) {
    let jobs = jobs(&kit);
    for number in 0..30 {
        assert!(is_new(&jobs.schedule(&NewJob::new(number.to_string()), None).await.unwrap()));
    }
    let urgent = NewJob::new("urgent").priority(1);
    assert!(is_new(&jobs.schedule(&urgent, None).await.unwrap()));
    let mut order = Vec::new();
    while let Claimed::Jobs(some) = jobs.claim_due(7, None).await.unwrap() {
        order.extend(some.into_iter().map(|job| String::from_utf8(job.payload).unwrap()));
    }
    let mut wanted = vec!["urgent".to_owned()];
    wanted.extend((0..30).map(|number| number.to_string()));
    assert_eq!(order, wanted);
}

/// S2 §12: `ack(jobId)` of a worker whose time is over acknowledged the claim of another. Bull
/// issue 1416 tells of the same: the first worker wrote to the job of the second.
async fn a_stale_worker_acknowledges_nothing(kit: Kit) {
    let jobs = Jobs::builder(&kit, "jobs", BOUNDS).visibility(SHORT).build().unwrap();
    let _ = jobs.schedule(&NewJob::new("x").id("a"), None).await.unwrap();
    let slow = one(jobs.claim_due(1, None).await.unwrap());
    let again = until(async || jobs.claim_due(1, None).await.unwrap().jobs().pop()).await;
    assert_eq!((again.attempt, &again.id), (2, &slow.id));
    assert_eq!(jobs.ack(&slow.receipt, None).await, Ok(Acked::Stale));
    assert_eq!(jobs.extend(&slow.receipt).await, Ok(Extended::Stale));
    assert_eq!(jobs.retry(&slow, "slow", None).await, Ok(Returned::Stale));
    assert_eq!(jobs.dead_letter(&slow.receipt, "slow", None).await, Ok(Returned::Stale));
    assert_eq!(jobs.ack(&again.receipt, None).await, Ok(Acked::Acked));
    assert_eq!(jobs.ack(&slow.receipt, None).await, Ok(Acked::Gone));
    assert_eq!(jobs.stats().await.unwrap().acked, 1);
}

/// S2 §12: the claim had no reaper; apalis issue 504: jobs of a server that dies stay in flight
/// for ever; apalis pull request 507: a worker that comes back under its old name keeps them
/// there. Here nobody has to be known as dead: the time of the claim decides.
async fn a_lost_worker_loses_no_job(kit: Kit) {
    let builder = Jobs::builder(&kit, "jobs", BOUNDS).visibility(SHORT).attempts_max(2);
    let jobs = builder.build().unwrap();
    let _ = jobs.schedule(&NewJob::new("x").id("a"), None).await.unwrap();
    drop(jobs.claim_due(1, None).await.unwrap());
    let again = until(async || jobs.claim_due(1, None).await.unwrap().jobs().pop()).await;
    assert_eq!(again.attempt, 2);
    // It was the last attempt: a job that kills its workers ends as a dead letter.
    let letter = until(async || {
        drop(jobs.claim_due(1, None).await.unwrap());
        jobs.dead_letters(0, 10).await.unwrap().pop()
    })
    .await;
    assert_eq!((letter.attempts, letter.reason.as_str()), (2, "visibility expired"));
    assert_eq!(jobs.stats().await.unwrap().expired, 2);
}

async fn ttl_ms(kit: &Kit, jobs: &str, part: &'static str) -> i64 {
    let family = russet::key::Family { purpose: "jobs", version: 1 };
    let key = kit.keys(family, jobs).unwrap().key(part);
    kit.call(&Request::new("PTTL").key(&key)).await.unwrap().into_int().unwrap()
}

/// S2 §12: the payload had a TTL of its own, and could be gone when the job was due.
async fn the_payload_does_not_expire_before_the_job_is_due(kit: Kit) {
    let bounds = Bounds { capacity: 10, ttl: Duration::from_secs(60) };
    let jobs = Jobs::builder(&kit, "later", bounds).build().unwrap();
    let hour = Duration::from_secs(3600);
    let _ = jobs.schedule(&NewJob::new("x").due(Due::In(hour)), None).await.unwrap();
    // A later job that is due earlier must not shorten it.
    let _ = jobs.schedule(&NewJob::new("y"), None).await.unwrap();
    for part in ["jobs", "delayed"] {
        let left = ttl_ms(&kit, "later", part).await;
        assert!(left > 3_600_000, "{part}: {left}");
    }
    let Claimed::Jobs(now) = jobs.claim_due(10, None).await.unwrap() else { panic!("none") };
    assert_eq!(now.len(), 1);
    let Claimed::Empty { next_in: Some(next_in) } = jobs.claim_due(10, None).await.unwrap() else {
        panic!("the delayed job was claimed")
    };
    assert!(next_in <= Duration::from_secs(30), "the claim ends first: {next_in:?}");
}

/// S2 §5, §17: no collection without an end.
async fn every_key_expires(kit: Kit) {
    let builder = Jobs::builder(&kit, "ends", BOUNDS).attempts_max(1).group_limit(1);
    let jobs = builder.build().unwrap();
    for group in ["a", "a", "a"] {
        let _ = jobs.schedule(&NewJob::new("x").group(group), None).await.unwrap();
    }
    let later = NewJob::new("x").due(Due::In(Duration::from_secs(100)));
    let _ = jobs.schedule(&later, None).await.unwrap();
    let first = one(jobs.claim_due(3, None).await.unwrap());
    let _ = jobs.dead_letter(&first.receipt, "no", None).await.unwrap();
    let _held = one(jobs.claim_due(3, None).await.unwrap());
    let parts = ["meta", "jobs", "delayed", "taken", "parked", "dead", "graves", "bell"];
    for part in parts {
        let left = ttl_ms(&kit, "ends", part).await;
        assert!((3_600_000..=3_600_000 * 3 / 2).contains(&left), "{part}: {left}");
    }
}

/// BullMQ issue 3555: a job that had stalled too often failed at once when it was tried again by
/// hand, because its count was kept.
async fn a_job_that_fails_too_often_is_a_dead_letter_that_can_be_requeued(kit: Kit) {
    let jobs = Jobs::builder(&kit, "jobs", BOUNDS).attempts_max(2).build().unwrap();
    let new = NewJob::new("x").id("a").group("g").priority(3);
    let _ = jobs.schedule(&new, None).await.unwrap();
    let first = one(jobs.claim_due(1, None).await.unwrap());
    let returned = jobs.retry_after(&first.receipt, Duration::ZERO, "down", None).await;
    assert_eq!(returned, Ok(Returned::Retried { attempts: 1 }));
    let second = one(jobs.claim_due(1, None).await.unwrap());
    assert_eq!(second.attempt, 2);
    let returned = jobs.retry_after(&second.receipt, Duration::ZERO, "still down", None).await;
    assert_eq!(returned, Ok(Returned::Dead { attempts: 2 }));
    let letter = jobs.dead_letters(0, 10).await.unwrap().pop().unwrap();
    assert_eq!((letter.payload.as_slice(), letter.reason.as_str()), (&b"x"[..], "still down"));
    assert_eq!(letter.group, b"g");
    assert_eq!(jobs.requeue(&letter.id, None).await, Ok(Requeued::Requeued));
    assert_eq!(jobs.requeue(&letter.id, None).await, Ok(Requeued::Missing));
    let third = one(jobs.claim_due(1, None).await.unwrap());
    assert_eq!((third.attempt, third.group.as_slice()), (1, &b"g"[..]));
    assert_eq!(jobs.ack(&third.receipt, None).await, Ok(Acked::Acked));
    assert_eq!(jobs.discard(&letter.id).await, Ok(Discarded::Missing));
}

async fn dead_letters_are_bounded(kit: Kit) {
    let jobs = Jobs::builder(&kit, "jobs", BOUNDS).dead_max(3).build().unwrap();
    for number in 0..5 {
        let _ = jobs.schedule(&NewJob::new(number.to_string()), None).await.unwrap();
        let job = one(jobs.claim_due(1, None).await.unwrap());
        let _ = jobs.dead_letter(&job.receipt, "no", None).await.unwrap();
    }
    assert_eq!(jobs.dead_letters(0, 10).await.unwrap().len(), 3);
    let stats = jobs.stats().await.unwrap();
    assert_eq!((stats.dead, stats.died, stats.dropped), (3, 5, 2));
}

/// sidekiq-unique-jobs issues 861 and 560: the lock of a unique job outlived the job, and no other
/// of its kind could be added. Here the job itself is the lock.
async fn a_unique_job_leaves_no_lock_behind(kit: Kit) {
    let jobs = jobs(&kit);
    let new = NewJob::new("x").id("only");
    assert!(is_new(&jobs.schedule(&new, None).await.unwrap()));
    assert_eq!(jobs.schedule(&new, None).await, Ok(Scheduled::Duplicate));
    let job = one(jobs.claim_due(1, None).await.unwrap());
    assert_eq!(jobs.schedule(&new, None).await, Ok(Scheduled::Duplicate));
    assert_eq!(jobs.ack(&job.receipt, None).await, Ok(Acked::Acked));
    assert!(is_new(&jobs.schedule(&new, None).await.unwrap()));
    // A receipt of the first life of an id does not end its second.
    let second = one(jobs.claim_due(1, None).await.unwrap());
    assert_eq!(jobs.ack(&job.receipt, None).await, Ok(Acked::Stale));
    assert_eq!(jobs.ack(&second.receipt, None).await, Ok(Acked::Acked));
}

/// BullMQ issues 1146 and 3232: a failed job kept its id, and new ones were taken for duplicates.
async fn a_dead_job_does_not_count_as_a_duplicate(kit: Kit) {
    let jobs = jobs(&kit);
    let new = NewJob::new("x").id("only");
    let _ = jobs.schedule(&new, None).await.unwrap();
    let job = one(jobs.claim_due(1, None).await.unwrap());
    assert_eq!(
        jobs.dead_letter(&job.receipt, "no", None).await,
        Ok(Returned::Dead { attempts: 1 })
    );
    assert!(is_new(&jobs.schedule(&new, None).await.unwrap()));
    assert_eq!(jobs.requeue(&job.id, None).await, Ok(Requeued::Duplicate));
    assert_eq!(jobs.discard(&job.id).await, Ok(Discarded::Discarded));
}

/// S1 §16: a claim is only safe to repeat with the id of its request.
async fn a_retried_request_has_one_effect(kit: Kit) {
    let jobs = jobs(&kit);
    let [add, claim, ack] = [RequestId::random(), RequestId::random(), RequestId::random()];
    let new = NewJob::new("x").id("a");
    for _ in 0..2 {
        assert!(is_new(&jobs.schedule(&new, Some(&add)).await.unwrap()));
    }
    let job = one(jobs.claim_due(5, Some(&claim)).await.unwrap());
    assert_eq!(one(jobs.claim_due(5, Some(&claim)).await.unwrap()), job);
    for _ in 0..2 {
        assert_eq!(jobs.ack(&job.receipt, Some(&ack)).await, Ok(Acked::Acked));
    }
    // The same request does not add it again after it is done.
    assert!(is_new(&jobs.schedule(&new, Some(&add)).await.unwrap()));
    assert!(jobs.claim_due(5, None).await.unwrap().jobs().is_empty());
    assert_eq!(jobs.stats().await.unwrap().scheduled, 1);
}

/// A job without an id of the caller's had a random one, and the request was remembered with
/// it: who repeated the request, after a crash for example, added a second job.
async fn a_retried_request_of_a_job_without_a_name_has_one_effect(kit: Kit) {
    let (jobs, list) = (jobs(&kit), Reliable::builder(&kit, "list", BOUNDS).build().unwrap());
    let request = RequestId::random();
    let first = jobs.schedule(&NewJob::new("x"), Some(&request)).await.unwrap();
    let pushed = list.push("x", Some(&request)).await.unwrap();
    assert!(is_new(&first) && is_new(&pushed));
    for _ in 0..2 {
        assert_eq!(jobs.schedule(&NewJob::new("x"), Some(&request)).await.as_ref(), Ok(&first));
        assert_eq!(list.push("x", Some(&request)).await.as_ref(), Ok(&pushed));
    }
    // Another payload is another request.
    assert!(is_new(&jobs.schedule(&NewJob::new("y"), Some(&request)).await.unwrap()));
    assert!(is_new(&list.push("y", Some(&request)).await.unwrap()));
    assert_eq!(jobs.stats().await.unwrap().ready, 2);
    assert_eq!(list.stats().await.unwrap().ready, 2);
}

async fn a_full_queue_refuses(kit: Kit) {
    let bounds = Bounds { capacity: 2, ttl: Duration::from_secs(60) };
    let jobs = Jobs::builder(&kit, "small", bounds).payload_bytes_max(3).build().unwrap();
    for _ in 0..2 {
        assert!(is_new(&jobs.schedule(&NewJob::new("x"), None).await.unwrap()));
    }
    assert_eq!(jobs.schedule(&NewJob::new("x"), None).await, Ok(Scheduled::Full));
    let job = one(jobs.claim_due(1, None).await.unwrap());
    assert_eq!(jobs.schedule(&NewJob::new("x"), None).await, Ok(Scheduled::Full));
    assert_eq!(jobs.ack(&job.receipt, None).await, Ok(Acked::Acked));
    let too_large = jobs.schedule(&NewJob::new("xxxx"), None).await;
    assert!(matches!(too_large, Err(Error::Invalid(_))));
    assert!(is_new(&jobs.schedule(&NewJob::new("x"), None).await.unwrap()));
}

async fn a_group_runs_no_more_than_its_limit(kit: Kit) {
    let jobs = Jobs::builder(&kit, "jobs", BOUNDS).group_limit(2).build().unwrap();
    for number in 0..6 {
        let new = NewJob::new(number.to_string()).group("busy");
        let _ = jobs.schedule(&new, None).await.unwrap();
    }
    let _ = jobs.schedule(&NewJob::new("other").group("idle"), None).await.unwrap();
    let _ = jobs.schedule(&NewJob::new("none"), None).await.unwrap();
    let mut running = jobs.claim_due(10, None).await.unwrap().jobs();
    let payloads: Vec<&[u8]> = running.iter().map(|job| job.payload.as_slice()).collect();
    assert_eq!(payloads, [&b"0"[..], b"1", b"other", b"none"]);
    assert_eq!(jobs.stats().await.unwrap().parked, 4);
    assert!(jobs.claim_due(10, None).await.unwrap().jobs().is_empty());
    running.truncate(2);
    let mut order = Vec::new();
    while let Some(job) = running.pop() {
        // Whatever ends a job makes room.
        if order.is_empty() {
            let _ = jobs.dead_letter(&job.receipt, "no", None).await.unwrap();
        } else {
            assert_eq!(jobs.ack(&job.receipt, None).await, Ok(Acked::Acked));
        }
        order.push(job.payload);
        let more = jobs.claim_due(10, None).await.unwrap().jobs();
        assert!(more.len() <= 1);
        running.extend(more);
    }
    assert_eq!(order.len(), 6);
    let stats = jobs.stats().await.unwrap();
    assert_eq!((stats.parked, stats.ready, stats.running), (0, 0, 2));
}

async fn a_cancelled_job_does_not_run(kit: Kit) {
    let jobs = Jobs::builder(&kit, "jobs", BOUNDS).group_limit(1).build().unwrap();
    let later = NewJob::new("x").id("later").due(Due::In(Duration::from_secs(60)));
    let _ = jobs.schedule(&later, None).await.unwrap();
    assert_eq!(jobs.cancel(&"later".into()).await, Ok(Cancelled::Cancelled));
    assert_eq!(jobs.cancel(&"later".into()).await, Ok(Cancelled::Missing));
    for id in ["a", "b", "c"] {
        let _ = jobs.schedule(&NewJob::new("x").id(id).group("g"), None).await.unwrap();
    }
    let running = one(jobs.claim_due(3, None).await.unwrap());
    // One that runs, and one that waits for its group.
    assert_eq!(jobs.cancel(&"a".into()).await, Ok(Cancelled::Running));
    assert_eq!(jobs.cancel(&"b".into()).await, Ok(Cancelled::Running));
    assert_eq!(jobs.retry(&running, "failed", None).await, Ok(Returned::Cancelled));
    let next = one(jobs.claim_due(3, None).await.unwrap());
    assert_eq!(next.id, "c".into());
    assert_eq!(jobs.ack(&next.receipt, None).await, Ok(Acked::Acked));
    let stats = jobs.stats().await.unwrap();
    assert_eq!((stats.ready, stats.delayed, stats.running, stats.parked), (0, 0, 0, 0));
}

/// S2 §5, S2 §11, S2 §12: no TTL, a bound of nothing, and a claim without a limit were all
/// accepted.
async fn nonsense_is_refused_before_anything_is_written(kit: Kit) {
    let refused = |bounds: Bounds| Jobs::builder(&kit, "jobs", bounds).build().is_err();
    assert!(refused(Bounds { capacity: 0, ..BOUNDS }));
    assert!(refused(Bounds { ttl: Duration::ZERO, ..BOUNDS }));
    let builder = || Jobs::builder(&kit, "jobs", BOUNDS);
    assert!(builder().visibility(Duration::ZERO).build().is_err());
    assert!(builder().attempts_max(0).build().is_err());
    let jobs = jobs(&kit);
    assert!(matches!(jobs.claim_due(0, None).await, Err(Error::Invalid(_))));
    let empty = jobs.schedule(&NewJob::new("x").id(""), None).await;
    assert!(matches!(empty, Err(Error::Invalid(_))));
    let zero = jobs.schedule(&NewJob::new("x").group("a\0"), None).await;
    assert!(matches!(zero, Err(Error::Invalid(_))));
    for receipt in ["", "x", "00:5:a", "zz:0:a"] {
        let ack = jobs.ack(&Receipt::from(receipt), None).await;
        assert!(matches!(ack, Err(Error::Invalid(_))), "{receipt}: {ack:?}");
    }
    let stats = jobs.stats().await.unwrap();
    assert_eq!((stats.ready, stats.scheduled), (0, 0));
}

/// With WAIT a caller knows what a failover can't lose. Where nobody confirms it is told so; with
/// its request id it may ask again.
async fn replicas_confirm_or_the_outcome_is_unknown(kit: Kit) {
    let hasty = kit.with_timeout(Duration::from_millis(500));
    let jobs = Jobs::builder(&hasty, "jobs", BOUNDS).min_replicas(1).build().unwrap();
    let request = RequestId::random();
    let new = NewJob::new("x").id("a");
    if format!("{kit:?}").contains("cluster") {
        // Its replicas may still be on their way to their primaries.
        let confirmed = until(async || jobs.schedule(&new, Some(&request)).await.ok()).await;
        assert!(is_new(&confirmed));
    } else {
        // Unless it was not even sent: a busy machine may take longer to connect.
        let unconfirmed = until(async || {
            let result = jobs.schedule(&new, Some(&request)).await;
            Some(result).filter(|it| !matches!(it, Err(Error::Unavailable(_))))
        })
        .await;
        assert!(matches!(unconfirmed, Err(Error::Unknown(_))), "{unconfirmed:?}");
    }
    // It ran, once, whatever the replicas said.
    let jobs = Jobs::builder(&kit, "jobs", BOUNDS).build().unwrap();
    let scheduled = until(async || match jobs.stats().await.unwrap().scheduled {
        0 => None,
        scheduled => Some(scheduled),
    });
    assert_eq!(scheduled.await, 1);
}

/// 16 tasks, jobs that fail and workers that die: each job is acknowledged exactly once.
async fn many_workers_share_the_jobs(kit: Kit) {
    const JOBS: usize = 200;
    let visibility = Duration::from_millis(300);
    let builder = Jobs::builder(&kit, "jobs", BOUNDS).visibility(visibility).group_limit(3);
    let jobs = builder.attempts_max(1000).build().unwrap();
    for number in 0..JOBS {
        let new = NewJob::new(number.to_string()).group(format!("g{}", number % 7));
        assert!(is_new(&jobs.schedule(&new, None).await.unwrap()));
    }
    let acked = Arc::new(Mutex::new(Vec::new()));
    let workers: Vec<_> = (0..16u32)
        .map(|worker| {
            let (jobs, acked) = (jobs.clone(), acked.clone());
            tokio::spawn(async move {
                let mut turn = worker;
                while acked.lock().unwrap().len() < JOBS {
                    for job in jobs.claim_due(1 + worker % 4, None).await.unwrap().jobs() {
                        turn += 1;
                        match turn % 5 {
                            // It dies.
                            0 if turn < 40 => {}
                            1 => {
                                let again =
                                    jobs.retry_after(&job.receipt, Duration::ZERO, "failed", None);
                                let _ = again.await.unwrap();
                            }
                            _ => {
                                if jobs.ack(&job.receipt, None).await.unwrap() == Acked::Acked {
                                    acked.lock().unwrap().push(job.payload);
                                }
                            }
                        }
                    }
                    tokio::time::sleep(Duration::from_millis(2)).await;
                }
            })
        })
        .collect();
    for worker in workers {
        worker.await.unwrap();
    }
    let acked = acked.lock().unwrap().clone();
    let different: HashSet<&Vec<u8>> = acked.iter().collect();
    assert_eq!((acked.len(), different.len()), (JOBS, JOBS));
    let stats = jobs.stats().await.unwrap();
    assert_eq!(stats.acked, JOBS as u64);
    assert_eq!((stats.ready, stats.running, stats.parked, stats.dead), (0, 0, 0, 0));
}

async fn keys_of_a_queue_share_a_slot_and_shards_spread(kit: Kit) {
    let family = russet::key::Family { purpose: "jobs", version: 1 };
    let slots: HashSet<u16> = (0..16)
        .map(|shard| {
            let keys = kit.keys(family, Scope::from("mails").shard(shard)).unwrap();
            let slot = keys.key("meta").slot();
            for part in ["jobs", "ready", "delayed", "taken", "parked", "dead", "graves", "bell"] {
                assert_eq!(keys.key(part).slot(), slot);
            }
            slot
        })
        .collect();
    assert!(slots.len() > 12);
    let jobs = Jobs::builder(&kit, Scope::from("mails").shard(3), BOUNDS).build().unwrap();
    assert!(is_new(&jobs.schedule(&NewJob::new("x"), None).await.unwrap()));
}
