//! Connections, and callers that go away, on every kind of server.

use super::HOUR;
use crate::eventually;
use russet::key::Family;
use russet::limit::{Limit, Limiter, Outage};
use russet::queue::{Bounds, Stream, Worker};
use russet::{Kit, Request};
use russet_toolkit_tests::{Proxy, ProxyFault, ProxyMode};
use std::sync::Arc;
use std::time::Duration;

russet_toolkit_tests::behind_a_proxy! {
    a_call_shorter_than_connecting_gets_there
    the_first_connection_is_the_shared_one
    a_broken_connection_takes_the_idle_ones_with_it
    a_worker_of_a_stream_keeps_its_connection
    a_caller_that_goes_away_holds_no_slot
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
    proxy.plan_one(0, ProxyFault::Late(Duration::from_millis(300)));
    tokio::select! {
        biased;
        entry = limiter.enter("ann", 1, None) => panic!("{entry:?}"),
        () = proxy.wait_for_late() => {}
    }
    eventually(async || limiter.peek("ann", 1).await.unwrap().is_allowed()).await;
}
