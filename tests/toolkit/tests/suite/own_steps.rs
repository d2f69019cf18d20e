//! Steps that a program declares for itself: atomic, and under a request id done once, whatever
//! becomes of the replies.

use russet::key::{Family, Keys};
use russet::step::{Safe, Step, Takes, Unsafe, WithRequestId};
use russet::{Error, Kit, RequestId, Result};
use russet_toolkit_tests::{Proxy, ProxyFault};
use std::sync::Arc;
use std::time::Duration;

const HOUR: Duration = Duration::from_secs(3600);
const ACCOUNTS: Family = Family { purpose: "accounts", version: 1 };

static PAY: Step<WithRequestId> = Step::declare(
    "account_pay",
    Takes { keys: &["from", "to"], args: &["sum", "ttl_ms"] },
    "local sum, ttl = whole(sum, 1, 1e9), whole(ttl_ms, 1, 1e12)
     if not sum or not ttl then return refuse('sum, ttl_ms') end
     local left = (tonumber(redis.call('GET', from)) or 0) - sum
     if left < 0 then return {'SHORT', 'missing', -left}, true end
     redis.call('SET', from, string.format('%.0f', left), 'PX', ttl)
     local received = redis.call('INCRBY', to, sum)
     redis.call('PEXPIRE', to, ttl)
     return {'OK', 'left', left, 'received', received}",
);
static FILL: Step<Safe> = Step::declare(
    "account_fill",
    Takes { keys: &["account"], args: &["sum", "ttl_ms"] },
    "redis.call('SET', account, sum, 'PX', ttl_ms)
     return {'OK'}",
);
static ADD: Step<Unsafe> = Step::declare(
    "account_add",
    Takes { keys: &["account"], args: &["sum", "ttl_ms"] },
    "local total = redis.call('INCRBY', account, sum)
     redis.call('PEXPIRE', account, ttl_ms)
     return {'OK', 'total', total}",
);

mod every {
    use super::{many_requests_are_paid_once, requests_are_paid_once};
    russet_toolkit_tests::on_every_backend! {
        requests_are_paid_once
        many_requests_are_paid_once
    }
}

mod proxied {
    use super::{only_what_may_run_twice_is_tried_again, replies_that_are_lost_are_found};
    russet_toolkit_tests::behind_a_proxy! {
        replies_that_are_lost_are_found
        only_what_may_run_twice_is_tried_again
    }
}

mod faulty {
    use super::many_requests_are_paid_once;
    russet_toolkit_tests::under_faults! {
        many_requests_are_paid_once
    }
}

async fn fill(kit: &Kit, keys: &Keys, sum: u32) -> Result<()> {
    let call = kit.step(&FILL).key(keys.key("from")).arg(sum).arg(HOUR);
    call.run().await.map(drop)
}

/// What is left, or what is missing.
async fn pay(kit: &Kit, keys: &Keys, id: &RequestId, sum: u32) -> Result<(i64, i64)> {
    let call = kit.dedup(id, &PAY, keys).key(keys.key("from")).key(keys.key("to"));
    let reply = call.arg(sum).arg(HOUR).run().await?;
    match reply.status() {
        "OK" => Ok((reply.int("left")?, reply.int("received")?)),
        "SHORT" => Ok((-reply.int("missing")?, 0)),
        _ => Err(reply.unexpected()),
    }
}

async fn requests_are_paid_once(kit: Kit) {
    let keys = kit.keys(ACCOUNTS, "ann").unwrap();
    let [first, second] = [(); 2].map(|()| RequestId::random());
    // Refused, it has changed nothing, and the same request can be tried again.
    assert_eq!(pay(&kit, &keys, &first, 30).await, Ok((-30, 0)));
    fill(&kit, &keys, 100).await.unwrap();
    for _ in 0..3 {
        assert_eq!(pay(&kit, &keys, &first, 30).await, Ok((70, 30)));
    }
    assert_eq!(pay(&kit, &keys, &second, 30).await, Ok((40, 60)));
    assert_eq!(pay(&kit, &keys, &first, 30).await, Ok((70, 30)));
    let bad = pay(&kit, &keys, &RequestId::random(), 0).await;
    assert_eq!(bad, Err(Error::Invalid("sum, ttl_ms".into())));
}

/// Each request comes from several tasks at once.
async fn many_requests_are_paid_once(kit: Kit) {
    const REQUESTS: i64 = 20;
    let keys = kit.keys(ACCOUNTS, "many").unwrap();
    fill(&kit, &keys, 1000).await.unwrap();
    let mut tasks = Vec::new();
    for number in (0..REQUESTS).flat_map(|number| [number; 4]) {
        let (kit, keys) = (kit.clone(), keys.clone());
        let id = RequestId::from(&format!("{number}"));
        tasks.push(tokio::spawn(async move { pay(&kit, &keys, &id, 1).await }));
    }
    let mut replies = Vec::new();
    for task in tasks {
        replies.push(task.await.unwrap().unwrap());
    }
    replies.sort_unstable();
    replies.dedup();
    assert_eq!(replies.len() as i64, REQUESTS);
    let (left, received) = pay(&kit, &keys, &RequestId::random(), 1).await.unwrap();
    assert_eq!((left, received), (1000 - REQUESTS - 1, REQUESTS + 1));
}

/// The step has run and its reply is lost: the kit's next attempt finds it.
async fn replies_that_are_lost_are_found(kit: Kit, proxy: Arc<Proxy>) {
    let keys = kit.keys(ACCOUNTS, "ann").unwrap();
    fill(&kit, &keys, 100).await.unwrap();
    // So that the server knows the script, and one request is one run.
    assert_eq!(pay(&kit, &keys, &RequestId::random(), 10).await, Ok((90, 10)));
    for (fault, left) in [(ProxyFault::CutAfter, 80), (ProxyFault::Twice, 70)] {
        let id = RequestId::random();
        proxy.plan_one(0, fault);
        assert_eq!(pay(&kit, &keys, &id, 10).await, Ok((left, 100 - left)), "{fault:?}");
        // A second process that was told to carry it out too.
        assert_eq!(pay(&kit, &keys, &id, 10).await, Ok((left, 100 - left)), "{fault:?}");
    }
}

async fn only_what_may_run_twice_is_tried_again(kit: Kit, proxy: Arc<Proxy>) {
    let keys = kit.keys(ACCOUNTS, "ann").unwrap();
    let add = async || {
        let call = kit.step(&ADD).key(keys.key("from")).arg(1).arg(HOUR);
        call.run().await?.int("total")
    };
    fill(&kit, &keys, 0).await.unwrap();
    assert_eq!(add().await, Ok(1));
    proxy.plan_one(0, ProxyFault::CutAfter);
    assert!(matches!(add().await, Err(Error::Unknown(_))));
    assert_eq!(add().await, Ok(3));
    proxy.plan_one(0, ProxyFault::CutAfter);
    fill(&kit, &keys, 7).await.unwrap();
    assert_eq!(add().await, Ok(8));
}
