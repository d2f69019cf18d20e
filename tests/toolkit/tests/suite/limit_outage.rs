//! Limits while the store can't be reached. Many limiters let everything through then, without a
//! word (cron-job.org 446, hiero-json-rpc-relay 5684), or wait without end (Bucket4j 406): here the
//! caller has said what shall be.

use russet::backend::{Backend, Connection, Pending};
use russet::limit::{Basis, Decision, Limit, Limiter, Outage};
use russet::retry::RetryPolicy;
use russet::{Engine, Error, Kit, Options, Reply, Request};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

/// A store that is away when told so.
struct Flaky {
    kit: Kit,
    is_away: Arc<AtomicBool>,
    calls: Arc<AtomicU32>,
}

impl Backend for Flaky {
    fn call<'a>(&'a self, request: &'a Request, _timeout: Duration) -> Pending<'a, Reply> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        if self.is_away.load(Ordering::Relaxed) {
            return Box::pin(std::future::ready(Err(Error::Unavailable("away".into()))));
        }
        Box::pin(self.kit.call(request))
    }

    fn connection(&self, _slot: u16) -> Pending<'_, Box<dyn Connection>> {
        Box::pin(std::future::ready(Err(Error::Unavailable("away".into()))))
    }

    fn name(&self) -> &'static str {
        "flaky"
    }
}

struct Test {
    limiter: Limiter,
    is_away: Arc<AtomicBool>,
    calls: Arc<AtomicU32>,
}

fn start(outage: Outage) -> Test {
    let engine = Engine::open(Options::default()).unwrap();
    let kit = Kit::builder().engine(&engine).unwrap();
    let (is_away, calls) = (Arc::new(AtomicBool::new(true)), Arc::new(AtomicU32::new(0)));
    let flaky = Flaky { kit, is_away: is_away.clone(), calls: calls.clone() };
    let kit = Kit::builder().retry(RetryPolicy::NONE).on(flaky).unwrap();
    let limits = [
        Limit::bucket("b", 100, Duration::from_secs(3600)).unwrap(),
        Limit::window("w", 200, Duration::from_secs(3600)).unwrap(),
    ];
    let limiter = Limiter::new(&kit, "test", limits, outage).unwrap();
    Test { limiter, is_away, calls }
}

async fn admitted(limiter: &Limiter, of: u32) -> u32 {
    let mut admitted = 0;
    for _ in 0..of {
        let decision = limiter.check("a", 1, None).await.unwrap();
        assert_eq!(decision.basis(), Basis::Outage);
        admitted += u32::from(decision.is_allowed());
    }
    admitted
}

/// Sidekiq issue 4807, Bucket4j issue 339: what a limiter does without its store was left to
/// chance.
#[tokio::test]
async fn an_outage_is_decided_by_the_policy() {
    assert_eq!(admitted(&start(Outage::Deny).limiter, 1000).await, 0);
    assert_eq!(admitted(&start(Outage::Allow).limiter, 1000).await, 1000);
    let share = start(Outage::LocalShare { processes: 4 });
    assert_eq!(admitted(&share.limiter, 1000).await, 25);
    assert_eq!(share.limiter.stats().outages, 1000);
}

#[tokio::test]
async fn an_outage_does_not_cost_a_call_each() {
    let test = start(Outage::Deny);
    admitted(&test.limiter, 1000).await;
    let calls = test.calls.load(Ordering::Relaxed);
    assert!(calls < 500, "{calls} of 1,000 asked in vain");
}

#[tokio::test]
async fn the_store_decides_again_when_it_is_back() {
    let test = start(Outage::Deny);
    admitted(&test.limiter, 10).await;
    test.is_away.store(false, Ordering::Relaxed);
    let deadline = tokio::time::Instant::now() + Duration::from_secs(60);
    loop {
        let decision = test.limiter.check("a", 1, None).await.unwrap();
        if let Decision::Allowed(allowed) = decision {
            assert_eq!(allowed.basis, Basis::Store);
            break;
        }
        assert!(tokio::time::Instant::now() < deadline, "the store is never asked again");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn a_denial_in_an_outage_says_when_to_come_back() {
    let decision = start(Outage::Deny).limiter.check("a", 1, None).await.unwrap();
    let headers = decision.headers();
    assert!(headers.contains(&("Retry-After", "1".to_owned())));
    // What is left is not known, and not made up.
    assert!(headers.iter().all(|(name, _value)| *name != "RateLimit"));
}
