//! The work stream.

use super::{BOUNDS, SHORT, is_new, one, until};
use russet::queue::{
    Acked, Bounds, Claimed, Extended, Receipt, Requeued, Returned, Scheduled, Stream,
};
use russet::{Error, Kit, Request, RequestId};
use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

russet_toolkit_tests::on_every_backend! {
    entries_are_claimed_and_acknowledged
    a_stale_delivery_is_not_acknowledged
    entries_of_a_lost_worker_are_delivered_again
    entries_are_given_back_or_become_dead_letters
    entries_of_other_programs_are_taken_too
    a_full_stream_refuses_and_trims_nothing
    a_repeated_request_on_a_stream_has_one_effect
    many_workers_share_a_stream
}

async fn entries_are_claimed_and_acknowledged(kit: Kit) {
    let stream = Stream::builder(&kit, "stream", BOUNDS).build().unwrap();
    assert_eq!(stream.claim(10, None).await, Ok(Claimed::Empty { next_in: None }));
    for payload in ["a", "b", "c"] {
        assert!(is_new(&stream.add(payload, None).await.unwrap()));
    }
    assert_eq!(stream.stats().await.unwrap().lag, 3);
    let jobs = stream.claim(2, None).await.unwrap().jobs();
    let payloads: Vec<&[u8]> = jobs.iter().map(|job| job.payload.as_slice()).collect();
    assert_eq!(payloads, [b"a", b"b"]);
    let stats = stream.stats().await.unwrap();
    assert_eq!((stats.lag, stats.running, stats.dead), (1, 2, 0));
    assert_eq!(stream.ack(&jobs[0].receipt, None).await, Ok(Acked::Acked));
    assert_eq!(stream.ack(&jobs[0].receipt, None).await, Ok(Acked::Gone));
    let stats = stream.stats().await.unwrap();
    assert_eq!((stats.lag, stats.running), (1, 1));
    let wrong = stream.ack(&Receipt::from("1-0"), None).await;
    assert!(matches!(wrong, Err(Error::Invalid(_))));
}

/// XACK does not ask who calls: a worker whose entry was given to another acknowledged it for both.
async fn a_stale_delivery_is_not_acknowledged(kit: Kit) {
    let stream = Stream::builder(&kit, "stream", BOUNDS).visibility(SHORT).build().unwrap();
    let _ = stream.add("a", None).await.unwrap();
    let slow = one(stream.claim(1, None).await.unwrap());
    let again = until(async || stream.claim(1, None).await.unwrap().jobs().pop()).await;
    assert_eq!((again.attempt, &again.id), (2, &slow.id));
    assert_eq!(stream.ack(&slow.receipt, None).await, Ok(Acked::Stale));
    assert_eq!(stream.extend(&slow.receipt).await, Ok(Extended::Stale));
    assert_eq!(stream.dead_letter(&slow.receipt, "slow", None).await, Ok(Returned::Stale));
    assert_eq!(stream.extend(&again.receipt).await, Ok(Extended::Extended));
    assert_eq!(stream.ack(&again.receipt, None).await, Ok(Acked::Acked));
}

/// S2 §20, S3: pending entries of a dead consumer stay with it unless somebody claims them; one
/// that kills every worker must not go round for ever.
async fn entries_of_a_lost_worker_are_delivered_again(kit: Kit) {
    let builder = Stream::builder(&kit, "stream", BOUNDS).visibility(SHORT);
    let stream = builder.attempts_max(2).build().unwrap();
    let _ = stream.add("poison", None).await.unwrap();
    drop(stream.claim(1, None).await.unwrap());
    let again = until(async || stream.claim(1, None).await.unwrap().jobs().pop()).await;
    assert_eq!(again.attempt, 2);
    let letter = until(async || {
        assert!(stream.claim(1, None).await.unwrap().jobs().is_empty());
        stream.dead_letters(None, 10).await.unwrap().pop()
    })
    .await;
    assert_eq!((letter.payload.as_slice(), letter.attempts), (&b"poison"[..], 2));
    assert_eq!(letter.reason, "visibility expired");
    let stats = stream.stats().await.unwrap();
    assert_eq!((stats.lag, stats.running, stats.dead), (0, 0, 1));
}

async fn entries_are_given_back_or_become_dead_letters(kit: Kit) {
    let stream = Stream::builder(&kit, "stream", BOUNDS).attempts_max(2).build().unwrap();
    let _ = stream.add("a", None).await.unwrap();
    let first = one(stream.claim(1, None).await.unwrap());
    let returned = stream.retry_after(&first.receipt, Duration::ZERO, "down", None).await;
    assert_eq!(returned, Ok(Returned::Retried { attempts: 1 }));
    let second = until(async || stream.claim(1, None).await.unwrap().jobs().pop()).await;
    assert_eq!(second.attempt, 2);
    let returned = stream.retry_after(&second.receipt, Duration::ZERO, "still down", None).await;
    assert_eq!(returned, Ok(Returned::Dead { attempts: 2 }));
    assert_eq!(stream.dead_letter(&second.receipt, "no", None).await, Ok(Returned::Gone));
    let letter = stream.dead_letters(None, 1).await.unwrap().pop().unwrap();
    assert_eq!(letter.reason, "still down");
    assert!(stream.dead_letters(Some(&letter.id), 1).await.unwrap().is_empty());
    assert_eq!(stream.requeue(&letter.id, None).await, Ok(Requeued::Requeued));
    assert_eq!(stream.requeue(&letter.id, None).await, Ok(Requeued::Missing));
    assert_eq!(one(stream.claim(1, None).await.unwrap()).attempt, 1);
}

async fn entries_of_other_programs_are_taken_too(kit: Kit) {
    let stream = Stream::builder(&kit, "stream", BOUNDS).build().unwrap();
    let family = russet::key::Family { purpose: "stream", version: 1 };
    let key = kit.keys(family, "stream").unwrap().key("entries");
    let add = |field: &str| Request::new("XADD").key(&key).arg("*").arg(field).arg("x");
    kit.call(&add("something")).await.unwrap();
    kit.call(&add("payload")).await.unwrap();
    let job = one(stream.claim(10, None).await.unwrap());
    assert_eq!(job.payload, b"x");
    let letter = stream.dead_letters(None, 1).await.unwrap().pop().unwrap();
    assert_eq!(letter.reason, "it has no field payload");
    let left = kit.call(&Request::new("PTTL").key(&key)).await.unwrap().into_int().unwrap();
    assert!(left > 0);
}

/// A stream that is trimmed to a length loses entries that nobody has seen.
async fn a_full_stream_refuses_and_trims_nothing(kit: Kit) {
    let bounds = Bounds { capacity: 2, ttl: Duration::from_secs(60) };
    let stream = Stream::builder(&kit, "stream", bounds).build().unwrap();
    for payload in ["a", "b"] {
        assert!(is_new(&stream.add(payload, None).await.unwrap()));
    }
    assert_eq!(stream.add("c", None).await, Ok(Scheduled::Full));
    let job = one(stream.claim(1, None).await.unwrap());
    assert_eq!(
        (job.payload.as_slice(), stream.add("c", None).await),
        (&b"a"[..], Ok(Scheduled::Full))
    );
    assert_eq!(stream.ack(&job.receipt, None).await, Ok(Acked::Acked));
    assert!(is_new(&stream.add("c", None).await.unwrap()));
}

async fn a_repeated_request_on_a_stream_has_one_effect(kit: Kit) {
    let stream = Stream::builder(&kit, "stream", BOUNDS).build().unwrap();
    let [add, claim, ack] = [RequestId::random(), RequestId::random(), RequestId::random()];
    let first = stream.add("a", Some(&add)).await.unwrap();
    assert_eq!(stream.add("a", Some(&add)).await, Ok(first));
    let job = one(stream.claim(1, Some(&claim)).await.unwrap());
    assert_eq!(one(stream.claim(1, Some(&claim)).await.unwrap()), job);
    for _ in 0..2 {
        assert_eq!(stream.ack(&job.receipt, Some(&ack)).await, Ok(Acked::Acked));
    }
    assert_eq!(stream.stats().await.unwrap().lag, 0);
}

async fn many_workers_share_a_stream(kit: Kit) {
    const JOBS: usize = 200;
    let stream = Stream::builder(&kit, "stream", BOUNDS).build().unwrap();
    for number in 0..JOBS {
        let _ = stream.add(number.to_string(), None).await.unwrap();
    }
    let done = Arc::new(Mutex::new(Vec::new()));
    let workers: Vec<_> = (0..16)
        .map(|worker| {
            let (stream, done) = (stream.clone(), done.clone());
            tokio::spawn(async move {
                loop {
                    let jobs = stream.claim(1 + worker % 3, None).await.unwrap().jobs();
                    if jobs.is_empty() {
                        return;
                    }
                    for job in jobs {
                        assert_eq!(stream.ack(&job.receipt, None).await, Ok(Acked::Acked));
                        done.lock().unwrap().push(job.payload);
                    }
                }
            })
        })
        .collect();
    for worker in workers {
        worker.await.unwrap();
    }
    let done = done.lock().unwrap();
    assert_eq!((done.len(), done.iter().collect::<HashSet<_>>().len()), (JOBS, JOBS));
}
