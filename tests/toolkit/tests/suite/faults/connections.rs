//! Connections that break, hang, or can't be made.

use super::{HASTE, LATE, count_patiently, counter, until_done};
use russet::key::Family;
use russet::queue::{Bounds, Due, Jobs, NewJob, Worker};
use russet::{Error, Kit, Request, RequestId};
use russet_toolkit_tests::{Proxy, ProxyFault, ProxyMode};
use std::sync::Arc;
use std::time::Duration;

/// How long an attempt to connect takes that comes to nothing.
const ATTEMPT: Duration = Duration::from_millis(100);

russet_toolkit_tests::behind_a_proxy! {
    nobody_waits_behind_a_reply_that_is_overdue
    a_connection_that_still_blocks_is_not_used_again
    callers_share_the_attempts_to_connect
    a_server_that_says_nothing_is_unavailable_in_time
    connections_are_made_anew
    a_worker_goes_on_after_an_outage
}

/// The shared connection was kept after a timeout: when it had hung, every call after it timed out
/// too, until the system gave the connection up.
async fn nobody_waits_behind_a_reply_that_is_overdue(kit: Kit, proxy: Arc<Proxy>) {
    let (patient, hasty) = (counter(&kit), counter(&kit.with_timeout(HASTE)));
    patient.add("a", 1, None).await.unwrap();
    proxy.plan_one(0, ProxyFault::Late(LATE));
    assert!(matches!(hasty.add("a", 1, None).await, Err(Error::Unknown(_))));
    proxy.wait_for_late().await;
    for done in 3..10 {
        assert_eq!(patient.add("a", 1, None).await.unwrap().count, done);
    }
}

/// A connection of one's own went back to the idle ones after a timeout, with a blocking call still
/// running on it.
async fn a_connection_that_still_blocks_is_not_used_again(kit: Kit, _proxy: Arc<Proxy>) {
    let keys = kit.keys(Family { purpose: "test", version: 1 }, "a").unwrap();
    let key = keys.key("list");
    let mut own = kit.connection(key.slot()).await.unwrap();
    let blocked = own.call(&Request::new("BLPOP").key(&key).arg(0), HASTE).await;
    assert!(matches!(blocked, Err(Error::Unknown(_))));
    drop(own);
    let mut next = kit.connection(key.slot()).await.unwrap();
    next.call(&Request::new("PING"), kit.timeout()).await.unwrap();
}

/// Each caller tried to connect by itself, one after the other, so that the last of many waited for
/// all attempts.
async fn callers_share_the_attempts_to_connect(kit: Kit, proxy: Arc<Proxy>) {
    // All calls are made while the first attempt is under way.
    proxy.set_mode(ProxyMode::ShutAfter(ATTEMPT));
    proxy.cut_all();
    // The first to call finds the connection broken.
    assert!(kit.ping().await.is_err());
    let before = proxy.connections();
    let calls: Vec<_> = (0..50).map(|_| Box::pin(kit.ping())).collect();
    for result in all(calls).await {
        assert!(matches!(result, Err(Error::Unavailable(_))), "{result:?}");
    }
    let attempts = proxy.connections() - before;
    assert!(attempts <= 6, "{attempts} attempts to connect for 50 calls");
    proxy.set_mode(ProxyMode::Open);
    until_done(|| kit.ping()).await;
}

/// The results of futures that run side by side in one task.
async fn all<T, F: Future<Output = T> + Unpin>(mut futures: Vec<F>) -> Vec<T> {
    let mut results: Vec<Option<T>> = futures.iter().map(|_| None).collect();
    std::future::poll_fn(|context| {
        for (future, result) in futures.iter_mut().zip(&mut results) {
            if result.is_none()
                && let std::task::Poll::Ready(value) = std::pin::Pin::new(future).poll(context)
            {
                *result = Some(value);
            }
        }
        if results.iter().all(Option::is_some) {
            std::task::Poll::Ready(())
        } else {
            std::task::Poll::Pending
        }
    })
    .await;
    results.into_iter().flatten().collect()
}

async fn a_server_that_says_nothing_is_unavailable_in_time(kit: Kit, proxy: Arc<Proxy>) {
    proxy.set_mode(ProxyMode::Silent);
    proxy.cut_all();
    assert!(kit.with_timeout(HASTE).ping().await.is_err());
    // Nothing was sent, so that it is known that nothing ran.
    let result = kit.with_timeout(HASTE).ping().await;
    assert!(matches!(result, Err(Error::Unavailable(_))), "{result:?}");
    proxy.set_mode(ProxyMode::Open);
    until_done(|| kit.ping()).await;
}

async fn connections_are_made_anew(kit: Kit, proxy: Arc<Proxy>) {
    let counter = counter(&kit);
    for _ in 0..10 {
        proxy.cut_all();
        let id = RequestId::random();
        until_done(|| counter.add("a", 1, Some(&id))).await;
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(count_patiently(&counter).await, 10);
}

/// BullMQ issues 452 and 1658, Bull issue 1873: after the server had been away, workers took
/// nothing any more, or what was delayed only hours later.
async fn a_worker_goes_on_after_an_outage(kit: Kit, proxy: Arc<Proxy>) {
    let bounds = Bounds { capacity: 100, ttl: Duration::from_secs(3600) };
    let jobs = Jobs::builder(&kit, "jobs", bounds).build().unwrap();
    let (done, mut all) = tokio::sync::mpsc::unbounded_channel();
    let handler = move |job: russet::queue::Job| {
        let done = done.clone();
        async move {
            done.send(job.payload)?;
            Ok(())
        }
    };
    let worker = Worker::builder(jobs.clone()).poll(HASTE).run(handler).unwrap();
    for round in 0..3 {
        let later = NewJob::new(format!("later {round}")).due(Due::In(HASTE));
        let _ = jobs.schedule(&later, None).await.unwrap();
        proxy.set_mode(ProxyMode::Shut);
        proxy.cut_all();
        tokio::time::sleep(HASTE * 2).await;
        proxy.set_mode(ProxyMode::Open);
        let (now, id) = (NewJob::new(format!("now {round}")), RequestId::random());
        let _ = until_done(|| jobs.schedule(&now, Some(&id))).await;
        let mut seen = [all.recv().await.unwrap(), all.recv().await.unwrap()];
        seen.sort_unstable();
        let wanted = [format!("later {round}"), format!("now {round}")];
        assert_eq!(seen, wanted.map(String::into_bytes));
    }
    drop(worker);
}
