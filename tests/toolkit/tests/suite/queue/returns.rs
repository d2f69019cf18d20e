//! Jobs that come back: what a receipt, a letter and an attempt are worth then.

use super::{BOUNDS, SHORT, one, until};
use russet::Kit;
use russet::queue::{
    Acked, Extended, Jobs, NewJob, Receipt, Reliable, Requeued, Returned, Stream, Worker,
};
use std::time::Duration;
use tokio::sync::mpsc;

russet_toolkit_tests::on_every_backend! {
    a_receipt_of_a_stream_is_worth_nothing_after_a_retry
    dead_letters_of_one_id_are_all_kept
    dead_letters_of_one_id_of_a_list_are_all_kept
    what_is_given_back_costs_no_attempt
    a_shutdown_costs_no_attempt
}

/// Whoever gave an entry back could still acknowledge it: it was lost, though it had failed.
async fn a_receipt_of_a_stream_is_worth_nothing_after_a_retry(kit: Kit) {
    let stream = Stream::builder(&kit, "s", BOUNDS).build().unwrap();
    let _ = stream.add("work", None).await.unwrap();
    let first = one(stream.claim(1, None).await.unwrap());
    let _ = stream.retry_after(&first.receipt, Duration::ZERO, "no", None).await.unwrap();
    let stats = stream.stats().await.unwrap();
    assert_eq!((stats.running, stats.waiting), (0, 1));
    let stale = async |receipt: &Receipt| {
        assert_eq!(stream.ack(receipt, None).await, Ok(Acked::Stale));
        assert_eq!(stream.extend(receipt).await, Ok(Extended::Stale));
        let again = stream.retry_after(receipt, Duration::ZERO, "no", None).await;
        assert_eq!(again, Ok(Returned::Stale));
    };
    stale(&first.receipt).await;
    let second = one(stream.claim(1, None).await.unwrap());
    assert_eq!(second.attempt, 2);
    stale(&first.receipt).await;
    assert_eq!(stream.ack(&second.receipt, None).await, Ok(Acked::Acked));
}

/// The second job of an id that died took the place of the first, which nobody had looked at.
async fn dead_letters_of_one_id_are_all_kept(kit: Kit) {
    let jobs = Jobs::builder(&kit, "q", BOUNDS).build().unwrap();
    for payload in ["first", "second", "third"] {
        let _ = jobs.schedule(&NewJob::new(payload).id("same"), None).await.unwrap();
        let job = one(jobs.claim_due(1, None).await.unwrap());
        let _ = jobs.dead_letter(&job.receipt, payload, None).await.unwrap();
    }
    let letters = jobs.dead_letters(0, 10).await.unwrap();
    let mut payloads: Vec<_> = letters.iter().map(|letter| letter.payload.clone()).collect();
    payloads.sort_unstable();
    assert_eq!(payloads, [b"first".to_vec(), b"second".to_vec(), b"third".to_vec()]);
    assert!(letters.iter().all(|letter| letter.job.as_bytes() == b"same"));
    for letter in letters {
        assert_eq!(jobs.requeue(&letter.id, None).await, Ok(Requeued::Requeued));
        let job = one(jobs.claim_due(1, None).await.unwrap());
        assert_eq!((job.id.as_bytes(), job.payload), (&b"same"[..], letter.payload));
        assert_eq!(jobs.ack(&job.receipt, None).await, Ok(Acked::Acked));
    }
}

async fn dead_letters_of_one_id_of_a_list_are_all_kept(kit: Kit) {
    let list = Reliable::builder(&kit, "q", BOUNDS).build().unwrap();
    for payload in ["first", "second"] {
        let _ = list.push_unique(&"same".into(), payload, None).await.unwrap();
        let job = one(list.take(1, None).await.unwrap());
        let _ = list.dead_letter(&job.receipt, payload, None).await.unwrap();
    }
    for letter in list.dead_letters(0, 10).await.unwrap() {
        assert_eq!(list.requeue(&letter.id, None).await, Ok(Requeued::Requeued));
        let job = one(list.take(1, None).await.unwrap());
        assert_eq!((job.id.as_bytes(), job.payload), (&b"same"[..], letter.payload));
        assert_eq!(list.ack(&job.receipt, None).await, Ok(Acked::Acked));
    }
    assert!(list.dead_letters(0, 10).await.unwrap().is_empty());
}

async fn what_is_given_back_costs_no_attempt(kit: Kit) {
    let jobs = Jobs::builder(&kit, "q", BOUNDS).attempts_max(1).build().unwrap();
    let list = Reliable::builder(&kit, "q", BOUNDS).attempts_max(1).build().unwrap();
    let stream = Stream::builder(&kit, "q", BOUNDS).attempts_max(1).build().unwrap();
    let _ = jobs.schedule(&NewJob::new("work"), None).await.unwrap();
    let _ = list.push("work", None).await.unwrap();
    let _ = list.push("behind it", None).await.unwrap();
    let _ = stream.add("work", None).await.unwrap();
    for _ in 0..3 {
        let job = one(jobs.claim_due(1, None).await.unwrap());
        assert_eq!(job.attempt, 1);
        assert!(matches!(jobs.give_back(&job.receipt, None).await, Ok(Returned::Retried { .. })));
        assert_eq!(jobs.ack(&job.receipt, None).await, Ok(Acked::Stale));
        // In its place, before all others.
        let job = one(list.take(1, None).await.unwrap());
        assert_eq!((job.attempt, job.payload), (1, b"work".to_vec()));
        assert!(matches!(list.give_back(&job.receipt, None).await, Ok(Returned::Retried { .. })));
        let job = one(stream.claim(1, None).await.unwrap());
        assert_eq!(job.attempt, 1);
        assert!(matches!(stream.give_back(&job.receipt, None).await, Ok(Returned::Retried { .. })));
        assert_eq!(stream.ack(&job.receipt, None).await, Ok(Acked::Stale));
    }
    let job = one(jobs.claim_due(1, None).await.unwrap());
    let failed = jobs.retry_after(&job.receipt, Duration::ZERO, "no", None).await;
    assert!(matches!(failed, Ok(Returned::Dead { .. })), "{failed:?}");
}

/// A deployment in the middle of a long job, and another, and the job was a dead letter.
async fn a_shutdown_costs_no_attempt(kit: Kit) {
    let jobs = Jobs::builder(&kit, "q", BOUNDS).attempts_max(2).build().unwrap();
    let _ = jobs.schedule(&NewJob::new("long"), None).await.unwrap();
    for _ in 0..3 {
        let (begun, mut has_begun) = mpsc::unbounded_channel();
        let worker = Worker::builder(jobs.clone()).poll(SHORT).run(move |job| {
            let _ = begun.send(job.attempt);
            std::future::pending()
        });
        let worker = worker.unwrap();
        assert_eq!(has_begun.recv().await, Some(1));
        let stats = worker.shutdown(Duration::ZERO).await;
        assert_eq!((stats.given_back, stats.failed, stats.lost), (1, 0, 0));
    }
    let job = until(async || jobs.claim_due(1, None).await.unwrap().jobs().pop()).await;
    assert_eq!(job.attempt, 1);
    assert_eq!(jobs.stats().await.unwrap().dead, 0);
}
