//! Workers, on every kind of source.

use super::{BOUNDS, SHORT, until};
use russet::queue::{Failure, Jobs, NewJob, Reliable, Stream, Worker};
use russet::{Kit, ManualTime, Options};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{Notify, mpsc, watch};

russet_toolkit_tests::on_every_backend! {
    a_worker_does_what_it_is_given
    a_worker_of_a_list_and_of_a_stream
    a_slow_handler_keeps_its_job
    a_handler_that_fails_or_panics_is_tried_again
    a_shutdown_waits_and_then_gives_back
    two_workers_run_each_job_once
}

const GRACE: Duration = Duration::from_secs(60);

async fn a_worker_does_what_it_is_given(kit: Kit) {
    let jobs = Jobs::builder(&kit, "jobs", BOUNDS).build().unwrap();
    let (done, mut all) = mpsc::unbounded_channel();
    let (now, most) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let seen = most.clone();
    let worker = Worker::builder(jobs.clone()).concurrency(4).run(move |job| {
        let (done, now, most) = (done.clone(), now.clone(), most.clone());
        async move {
            most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            tokio::task::yield_now().await;
            now.fetch_sub(1, Ordering::SeqCst);
            done.send(job.payload)?;
            Ok(())
        }
    });
    let worker = worker.unwrap();
    for number in 0..50 {
        let _ = jobs.schedule(&NewJob::new(number.to_string()), None).await.unwrap();
    }
    for _ in 0..50 {
        assert!(all.recv().await.is_some());
    }
    let stats = worker.shutdown(GRACE).await;
    assert_eq!((stats.done, stats.failed, stats.lost, stats.running), (50, 0, 0, 0));
    assert!(seen.load(Ordering::SeqCst) <= 4);
    assert_eq!(jobs.stats().await.unwrap().acked, 50);
}

async fn a_worker_of_a_list_and_of_a_stream(kit: Kit) {
    let list = Reliable::builder(&kit, "jobs", BOUNDS).build().unwrap();
    let stream = Stream::builder(&kit, "jobs", BOUNDS).build().unwrap();
    let (done, mut all) = mpsc::unbounded_channel();
    let handler = move |job: russet::queue::Job| {
        let done = done.clone();
        async move {
            done.send(job.payload)?;
            Ok(())
        }
    };
    let poll = Duration::from_millis(200);
    let workers = [
        Worker::builder(list.clone()).concurrency(2).run(handler.clone()).unwrap(),
        Worker::builder(stream.clone()).concurrency(2).poll(poll).run(handler).unwrap(),
    ];
    for number in 0..10 {
        let _ = list.push(format!("list {number}"), None).await.unwrap();
        let _ = stream.add(format!("stream {number}"), None).await.unwrap();
    }
    for _ in 0..20 {
        assert!(all.recv().await.is_some());
    }
    for worker in workers {
        assert_eq!(worker.shutdown(GRACE).await.done, 10);
    }
    assert_eq!(list.stats().await.unwrap().acked, 10);
    assert_eq!(stream.stats().await.unwrap().running, 0);
}

/// BullMQ issues 652 and 1497, apalis issue 530: jobs that took longer than their lock were run
/// twice, and failed with "missing lock".
async fn a_slow_handler_keeps_its_job(kit: Kit) {
    let visibility = Duration::from_millis(600);
    let jobs = Jobs::builder(&kit, "jobs", BOUNDS).visibility(visibility).build().unwrap();
    let runs = Arc::new(AtomicU32::new(0));
    let (finish, finished) = watch::channel(false);
    let counted = runs.clone();
    let worker = Worker::builder(jobs.clone()).concurrency(2).run(move |_job| {
        let (runs, mut finished) = (counted.clone(), finished.clone());
        async move {
            runs.fetch_add(1, Ordering::SeqCst);
            let _ = finished.wait_for(|is_so| *is_so).await;
            Ok(())
        }
    });
    let worker = worker.unwrap();
    let _ = jobs.schedule(&NewJob::new("slow"), None).await.unwrap();
    until(async || (runs.load(Ordering::SeqCst) > 0).then_some(())).await;
    tokio::time::sleep(visibility * 3).await;
    finish.send(true).unwrap();
    let stats = worker.shutdown(GRACE).await;
    // A machine that was too busy to be heard for 600 ms has lost it, and been told so.
    if stats.lost == 0 {
        assert_eq!((stats.done, runs.load(Ordering::SeqCst)), (1, 1));
    }
}

async fn a_handler_that_fails_or_panics_is_tried_again(kit: Kit) {
    let jobs = Jobs::builder(&kit, "jobs", BOUNDS).attempts_max(3).build().unwrap();
    let worker = Worker::builder(jobs.clone()).concurrency(3).run(|job| async move {
        match (job.payload.as_slice(), job.attempt) {
            (b"fails", 1) => Err(Failure::retry_after(Duration::ZERO, "not yet")),
            (b"panics", 1 | 2) => Err(Failure::retry_after(Duration::ZERO, "not yet")),
            (b"panics", _) => panic!("a handler of a test"),
            (b"never", _) => Err(Failure::fatal("it makes no sense")),
            _ => Ok(()),
        }
    });
    let worker = worker.unwrap();
    for payload in ["fails", "panics", "never"] {
        let _ = jobs.schedule(&NewJob::new(payload), None).await.unwrap();
    }
    let stats = until(async || {
        let stats = jobs.stats().await.unwrap();
        (stats.acked == 1 && stats.dead == 2).then_some(stats)
    })
    .await;
    assert_eq!((stats.retried, stats.died), (3, 2));
    let reasons: Vec<String> =
        jobs.dead_letters(0, 10).await.unwrap().into_iter().map(|it| it.reason).collect();
    assert!(reasons.contains(&"the handler panicked".to_owned()), "{reasons:?}");
    assert!(reasons.contains(&"it makes no sense".to_owned()), "{reasons:?}");
    assert_eq!(worker.shutdown(GRACE).await.failed, 5);
}

/// Sidekiq issue 4441: a job that outlived a restart ran beside its own copy.
async fn a_shutdown_waits_and_then_gives_back(kit: Kit) {
    crate::given_time(Duration::from_secs(2), async |grace| {
        waits_and_gives_back(&kit, grace).await
    })
    .await;
}

/// Whether the job that ends has had time enough to.
async fn waits_and_gives_back(kit: &Kit, grace: Duration) -> bool {
    let jobs = Jobs::builder(kit, format!("jobs-{grace:?}"), BOUNDS).build().unwrap();
    let (started, mut starts) = mpsc::unbounded_channel();
    let finish = Arc::new(Notify::new());
    let finished = finish.clone();
    let worker = Worker::builder(jobs.clone()).concurrency(2).run(move |job| {
        let (started, finish) = (started.clone(), finished.clone());
        async move {
            started.send(())?;
            match job.payload.as_slice() {
                b"ends" => finish.notified().await,
                _ => std::future::pending().await,
            }
            Ok(())
        }
    });
    let worker = worker.unwrap();
    for payload in ["ends", "hangs"] {
        let _ = jobs.schedule(&NewJob::new(payload), None).await.unwrap();
    }
    for _ in 0..2 {
        assert!(starts.recv().await.is_some());
    }
    let shutdown = worker.shutdown(grace);
    tokio::pin!(shutdown);
    // Once it was polled the worker takes no more, however soon it has room.
    tokio::select! {
        biased;
        _ = &mut shutdown => panic!("two jobs run"),
        () = std::future::ready(()) => {}
    }
    finish.notify_one();
    let _ = jobs.schedule(&NewJob::new("not taken any more"), None).await.unwrap();
    let stats = shutdown.await;
    assert_eq!((stats.done + stats.given_back, stats.failed, stats.running), (2, 0, 0));
    if stats.done == 0 {
        return false;
    }
    let left = jobs.claim_due(10, None).await.unwrap().jobs();
    let mut left: Vec<(&[u8], u32)> =
        left.iter().map(|job| (job.payload.as_slice(), job.attempt)).collect();
    left.sort_unstable();
    // Through no fault of its own: the attempt does not count.
    assert_eq!(left, [(&b"hangs"[..], 1), (b"not taken any more", 1)]);
    true
}

async fn two_workers_run_each_job_once(kit: Kit) {
    let jobs = Jobs::builder(&kit, "jobs", BOUNDS).group_limit(2).build().unwrap();
    let runs: Arc<Mutex<HashMap<Vec<u8>, u32>>> = Arc::default();
    let workers: Vec<Worker> = (0..2)
        .map(|_| {
            let runs = runs.clone();
            let builder = Worker::builder(jobs.clone()).concurrency(8);
            let worker = builder.run(move |job| {
                *runs.lock().unwrap().entry(job.payload).or_default() += 1;
                async { Ok(()) }
            });
            worker.unwrap()
        })
        .collect();
    for number in 0..100 {
        let new = NewJob::new(number.to_string()).group(format!("g{}", number % 5));
        let _ = jobs.schedule(&new, None).await.unwrap();
    }
    until(async || (jobs.stats().await.unwrap().acked == 100).then_some(())).await;
    for worker in workers {
        let _ = worker.shutdown(GRACE).await;
    }
    let runs = runs.lock().unwrap();
    assert_eq!((runs.len(), runs.values().all(|&count| count == 1)), (100, true));
}

/// A worker that was stopped for longer than its jobs are its own must not go on with them.
#[tokio::test]
async fn a_worker_that_lost_its_job_cancels_the_handler() {
    let time = ManualTime::new();
    let kit = Kit::builder().embedded_at(Options::default(), &time).unwrap();
    let jobs = Jobs::builder(&kit, "jobs", BOUNDS).visibility(SHORT).build().unwrap();
    let (started, mut starts) = mpsc::unbounded_channel();
    struct Cancelled(mpsc::UnboundedSender<&'static str>);
    impl Drop for Cancelled {
        fn drop(&mut self) {
            let _ = self.0.send("cancelled");
        }
    }
    let worker = Worker::builder(jobs.clone()).run(move |_job| {
        let started = started.clone();
        async move {
            started.send("started")?;
            let _cancelled = Cancelled(started);
            std::future::pending().await
        }
    });
    let worker = worker.unwrap();
    let _ = jobs.schedule(&NewJob::new("x"), None).await.unwrap();
    assert_eq!(starts.recv().await, Some("started"));
    // Another claims the job in the very moment in which the clock jumps.
    time.advance(SHORT * 2);
    let other = jobs.claim_due(1, None).await.unwrap().jobs().pop();
    assert_eq!(other.map(|job| job.attempt), Some(2));
    assert_eq!(starts.recv().await, Some("cancelled"));
    until(async || (worker.stats().lost == 1).then_some(())).await;
}

/// S2 §22: workers wake up for what is due later, without anybody who rings.
#[tokio::test]
async fn a_worker_wakes_for_what_is_due() {
    let time = ManualTime::new();
    let kit = Kit::builder().embedded_at(Options::default(), &time).unwrap();
    let jobs = Jobs::builder(&kit, "jobs", BOUNDS).build().unwrap();
    let (done, mut all) = mpsc::unbounded_channel();
    let worker = Worker::builder(jobs.clone()).poll(GRACE).run(move |job| {
        let done = done.clone();
        async move {
            done.send(job.payload)?;
            Ok(())
        }
    });
    let _worker = worker.unwrap();
    let later = NewJob::new("later").due(russet::queue::Due::In(Duration::from_secs(30)));
    let _ = jobs.schedule(&later, None).await.unwrap();
    let payload = until(async || {
        time.advance(Duration::from_secs(1));
        tokio::task::yield_now().await;
        all.try_recv().ok()
    })
    .await;
    assert_eq!(payload, b"later");
}
