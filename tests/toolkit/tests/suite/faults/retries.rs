//! Which calls are tried again, and how often they have an effect.

use super::{HASTE, LATE, count, counter, until_done};
use russet::{Error, Kit, RequestId};
use russet_toolkit_tests::{Proxy, ProxyFault};
use std::sync::Arc;
use std::time::Duration;

russet_toolkit_tests::behind_a_proxy! {
    a_late_reply_is_unknown_and_the_call_is_not_tried_again
    a_cut_call_without_an_id_is_unknown_and_sent_once
    a_request_with_an_id_counts_once_whatever_happens
    a_safe_call_is_tried_again
    a_dropped_future_hurts_nobody
}

async fn a_late_reply_is_unknown_and_the_call_is_not_tried_again(kit: Kit, proxy: Arc<Proxy>) {
    let (patient, hasty) = (counter(&kit), counter(&kit.with_timeout(HASTE)));
    patient.add("a", 1, None).await.unwrap();
    proxy.plan_one(0, ProxyFault::Late(LATE));
    assert!(matches!(hasty.add("a", 1, None).await, Err(Error::Unknown(_))));
    proxy.wait_for_late().await;
    assert_eq!(proxy.requests(), 1);
    assert_eq!(count(&patient).await, 2, "it ran all the same");
}

async fn a_cut_call_without_an_id_is_unknown_and_sent_once(kit: Kit, proxy: Arc<Proxy>) {
    let counter = counter(&kit);
    counter.add("a", 1, None).await.unwrap();
    for (fault, counted) in [(ProxyFault::CutBefore, 1), (ProxyFault::CutAfter, 2)] {
        proxy.plan_one(0, fault);
        let result = counter.add("a", 1, None).await;
        assert!(matches!(result, Err(Error::Unknown(_))), "{fault:?}: {result:?}");
        assert_eq!(proxy.requests(), 1, "{fault:?}");
        assert_eq!(count(&counter).await, counted, "{fault:?}");
    }
}

async fn a_request_with_an_id_counts_once_whatever_happens(kit: Kit, proxy: Arc<Proxy>) {
    let counter = counter(&kit);
    counter.add("a", 1, None).await.unwrap();
    let faults = [ProxyFault::CutBefore, ProxyFault::CutAfter, ProxyFault::Twice];
    for (done, fault) in (1..).zip(faults) {
        let id = RequestId::random();
        proxy.plan_one(0, fault);
        assert_eq!(counter.add("a", 1, Some(&id)).await.unwrap().count, done + 1, "{fault:?}");
        assert_eq!(counter.add("a", 1, Some(&id)).await.unwrap().count, done + 1, "{fault:?}");
        assert_eq!(count(&counter).await, done + 1, "{fault:?}");
    }
    let (id, hasty) = (RequestId::random(), super::counter(&kit.with_timeout(HASTE)));
    proxy.plan_one(0, ProxyFault::Late(LATE));
    assert_eq!(until_done(|| hasty.add("a", 1, Some(&id))).await.count, 5);
    assert_eq!(count(&counter).await, 5);
}

async fn a_safe_call_is_tried_again(kit: Kit, proxy: Arc<Proxy>) {
    let counter = counter(&kit);
    counter.add("a", 3, None).await.unwrap();
    assert_eq!(count(&counter).await, 3);
    for fault in [ProxyFault::CutBefore, ProxyFault::CutAfter] {
        proxy.plan_one(0, fault);
        assert_eq!(count(&counter).await, 3);
        assert!(proxy.requests() >= 2);
    }
}

/// Its outcome is unknown; the connection that it shared goes on, and nobody gets its reply.
async fn a_dropped_future_hurts_nobody(kit: Kit, _proxy: Arc<Proxy>) {
    let counter = counter(&kit);
    for done in 1..=50 {
        let dropped = tokio::time::timeout(Duration::ZERO, counter.add("dropped", 1, None)).await;
        drop(dropped);
        assert_eq!(counter.add("a", 1, None).await.unwrap().count, done);
    }
    assert!(counter.read("dropped", 0).await.unwrap().count <= 50);
}
