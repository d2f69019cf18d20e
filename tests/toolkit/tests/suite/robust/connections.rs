//! Connections, and callers that go away, on every kind of server.

use super::HOUR;
use crate::eventually;
use russet::key::Family;
use russet::limit::{Limit, Limiter, Outage, Spent, WatchQuota};
use russet::queue::{Bounds, Stream, Worker};
use russet::state::{Current, Decision, Optimistic, Updated, Writes};
use russet::{Error, Kit, Request};
use russet_toolkit_tests::{Proxy, ProxyFault, ProxyMode};
use std::sync::Arc;
use std::time::Duration;

russet_toolkit_tests::behind_a_proxy! {
    a_call_shorter_than_connecting_gets_there
    the_first_connection_is_the_shared_one
    a_broken_connection_takes_the_idle_ones_with_it
    a_worker_of_a_stream_keeps_its_connection
    a_caller_that_goes_away_holds_no_slot
    a_watch_that_breaks_before_it_writes_begins_anew
}

/// Each call began to connect anew and gave up before it was done: with a time of its own that is
/// shorter than connecting, none ever got there.
async fn a_call_shorter_than_connecting_gets_there(kit: Kit, proxy: Arc<Proxy>) {
    let slowness = Duration::from_millis(400);
    proxy.set_mode(ProxyMode::Slow(slowness));
    proxy.cut_all();
    let hasty = kit.with_timeout(slowness / 4);
    eventually(async || hasty.ping().await.is_ok()).await;
    let key = kit.keys(Family { purpose: "test", version: 1 }, "a").unwrap().key("x");
    eventually(async || hasty.connection(key.slot()).await.is_ok()).await;
    proxy.set_mode(ProxyMode::Open);
}

/// The connection that a kit was made with lay idle, and the first call made another.
async fn the_first_connection_is_the_shared_one(_kit: Kit, proxy: Arc<Proxy>) {
    let before = proxy.connections();
    let kit = Kit::connect(&proxy.url()).await.unwrap();
    kit.ping().await.unwrap();
    assert_eq!(proxy.connections() - before, 1);
}

/// Whoever found a connection of its own broken left the idle ones that had broken with it to the
/// next.
async fn a_broken_connection_takes_the_idle_ones_with_it(kit: Kit, proxy: Arc<Proxy>) {
    let key = kit.keys(Family { purpose: "test", version: 1 }, "a").unwrap().key("x");
    let ping = Request::new("PING");
    let (mut one, mut two, mut three) = (
        kit.connection(key.slot()).await.unwrap(),
        kit.connection(key.slot()).await.unwrap(),
        kit.connection(key.slot()).await.unwrap(),
    );
    for own in [&mut one, &mut two, &mut three] {
        own.call(&ping, kit.timeout()).await.unwrap();
    }
    drop((two, three));
    proxy.cut_all();
    assert!(one.call(&ping, kit.timeout()).await.is_err());
    let mut next = kit.connection(key.slot()).await.unwrap();
    next.call(&ping, kit.timeout()).await.unwrap();
}

/// A worker of a stream left each wait before its answer came, and needed a new connection for the
/// next.
async fn a_worker_of_a_stream_keeps_its_connection(kit: Kit, proxy: Arc<Proxy>) {
    let bounds = Bounds { capacity: 100, ttl: HOUR };
    let stream = Stream::builder(&kit, "events", bounds).build().unwrap();
    let before = proxy.connections();
    proxy.plan(|_call| ProxyFault::None);
    let poll = Duration::from_millis(20);
    let worker = Worker::builder(stream).poll(poll).run(|_job| async { Ok(()) }).unwrap();
    eventually(async || proxy.requests() > 40).await;
    assert!(proxy.connections() - before <= 3, "{} new", proxy.connections() - before);
    let _ = worker.shutdown(HOUR).await;
}

/// A caller that was dropped before the answer came held its slot for the whole time that one can
/// be held.
async fn a_caller_that_goes_away_holds_no_slot(kit: Kit, proxy: Arc<Proxy>) {
    let limits = [Limit::concurrency("uploads", 1, HOUR).unwrap()];
    let limiter = Limiter::new(&kit, "uploads", limits, Outage::Deny).unwrap();
    let allowed = limiter.check("ann", 1, None).await.unwrap();
    drop(limiter.hold(allowed));
    eventually(async || limiter.peek("ann", 1).await.unwrap().is_allowed()).await;
    // Late enough that a busy machine looks at the other end of the select first.
    proxy.plan_one(0, ProxyFault::Late(Duration::from_secs(3)));
    tokio::select! {
        biased;
        entry = limiter.enter("ann", 1, None) => panic!("{entry:?}"),
        () = proxy.wait_for_late() => {}
    }
    eventually(async || limiter.peek("ann", 1).await.unwrap().is_allowed()).await;
}

/// A connection that had broken while it lay idle, or broke before EXEC was sent, left the outcome
/// unknown, though nothing can have been written; nor was it tried again.
async fn a_watch_that_breaks_before_it_writes_begins_anew(kit: Kit, proxy: Arc<Proxy>) {
    fn add_one(now: &Current) -> Decision<i64> {
        let next = now.int("n").unwrap_or(0) + 1;
        Decision::Write(Writes::new().set_int("n", next), next)
    }
    let quota = WatchQuota::new(&kit, "exports", 100, HOUR).unwrap();
    let counter = Optimistic::new(&kit, "a", &["n"], HOUR).unwrap();
    for done in 1..=3 {
        let spent = quota.spend("a", 1, None).await;
        assert_eq!(spent, Ok(Spent::Within { remaining: 100 - done }));
        assert_eq!(counter.update(None, add_one).await, Ok(Updated::Written(done as i64)));
        proxy.cut_all();
    }
    // WATCH, EXISTS, GET, PTTL, MULTI, SET; then EXEC.
    for number in 0..6 {
        proxy.plan_one(number, ProxyFault::CutAfter);
        let spent = quota.spend("a", 1, None).await;
        assert_eq!(spent, Ok(Spent::Within { remaining: 96 - number as u64 }), "{number}");
    }
    proxy.plan_one(6, ProxyFault::CutAfter);
    assert!(matches!(quota.spend("a", 1, None).await, Err(Error::Unknown(_))));
    // WATCH, MGET, MULTI, SET; then EXEC.
    for number in 0..4 {
        proxy.plan_one(number, ProxyFault::CutAfter);
        let written = counter.update(None, add_one).await;
        assert_eq!(written, Ok(Updated::Written(4 + number as i64)), "{number}");
    }
    proxy.plan_one(4, ProxyFault::CutAfter);
    assert!(matches!(counter.update(None, add_one).await, Err(Error::Unknown(_))));
    proxy.plan(|_call| ProxyFault::None);
}
