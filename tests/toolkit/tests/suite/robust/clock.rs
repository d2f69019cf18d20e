//! What hangs on time, on the embedded engine, whose clock is moved by hand.

use super::{HOUR, keys};
use crate::raw_step;
use russet::cache::{Cache, LoadError, Policy};
use russet::limit::{Limit, Limiter, Outage};
use russet::queue::{Bounds, Cron, Jobs, NewJob};
use russet::sale::{Bought, Cancelled, EventKind, Sale, Terms, Window};
use russet::{Kit, ManualTime, Options};
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

fn kit() -> (Kit, ManualTime) {
    let time = ManualTime::new();
    (Kit::builder().embedded_at(Options::default(), &time).unwrap(), time)
}

/// A charge that had drained could be given back, at the cost of those made since; one that
/// counted for longer than a window could not.
#[tokio::test]
async fn a_bucket_gives_back_what_has_not_drained() {
    let (kit, time) = kit();
    let limits = [Limit::bucket("api", 10, SECOND).unwrap()];
    let limiter = Limiter::new(&kit, "api", limits, Outage::Deny).unwrap();
    let charge = async |cost: u64| match limiter.check("ann", cost, None).await.unwrap() {
        russet::limit::Decision::Allowed(allowed) => allowed.charge,
        russet::limit::Decision::Denied(_) => None,
    };
    let drained = charge(1).await.unwrap();
    time.advance(SECOND / 2);
    let present = charge(10).await.unwrap();
    assert_eq!(limiter.refund(&drained).await.unwrap().returned, [0]);
    assert!(charge(1).await.is_none());
    time.advance(SECOND / 2);
    assert_eq!(limiter.refund(&present).await.unwrap().returned, [5]);
    assert!(charge(10).await.is_some());

    let limits = [Limit::bucket("slow", 5, SECOND).unwrap().burst(20).unwrap()];
    let limiter = Limiter::new(&kit, "slow", limits, Outage::Deny).unwrap();
    let decision = limiter.check("ann", 20, None).await.unwrap();
    let russet::limit::Decision::Allowed(allowed) = decision else { panic!("{decision:?}") };
    time.advance(SECOND * 2);
    let refunded = limiter.refund(&allowed.charge.unwrap()).await.unwrap();
    assert_eq!(refunded.returned, [10]);
    assert!(limiter.check("ann", 20, None).await.unwrap().is_allowed());
}

/// Behind more than a hundred waiters that had died the next in line was told to wait, again and
/// again.
#[tokio::test]
async fn all_dead_waiters_are_passed_over_at_once() {
    let (kit, time) = kit();
    let keys = keys(&kit, ["lease", "queue", "alive"]);
    let acquire = async |token: &str, ttl_ms: &str, patience_ms: &str| {
        let args = [token, ttl_ms, "1000", patience_ms, "1000"];
        let reply = raw_step(&kit, "lease_fair_acquire", &keys, &args).await.unwrap();
        super::flat(&reply).split(' ').next().unwrap().to_owned()
    };
    assert_eq!(acquire("holder", "1500", "0").await, "HELD");
    for number in 0..250 {
        assert_eq!(acquire(&format!("dead-{number}"), "1000", "1000").await, "BUSY");
    }
    assert_eq!(acquire("alive", "1000", "9000").await, "BUSY");
    time.advance(SECOND * 2);
    assert_eq!(acquire("alive", "1000", "9000").await, "HELD");
}

/// A reservation that was over could be cancelled, and its database was told so.
#[tokio::test]
async fn a_reservation_that_is_over_is_not_cancelled() {
    let (kit, time) = kit();
    let sale = Sale::new(&kit, "sale").unwrap();
    let window = Window::ForNext(HOUR);
    let terms = Terms { stock: 1, window, hold: Some(SECOND), keep: HOUR, outbox_max: 100 };
    let _ = sale.open(&terms).await.unwrap();
    let Bought::Ordered { order, .. } = sale.buy("ann", None).await.unwrap() else { panic!() };
    time.advance(SECOND * 2);
    assert_eq!(sale.cancel("ann", &order).await.unwrap(), Cancelled::Gone);
    let events = sale.outbox(None, 10).await.unwrap();
    assert_eq!(events.last().unwrap().kind, EventKind::Expired);
    assert!(matches!(sale.buy("bob", None).await.unwrap(), Bought::Ordered { .. }));
}

/// An occurrence that was ready already ran although its repetition had been forgotten.
#[tokio::test]
async fn a_repetition_that_is_forgotten_does_not_run() {
    let (kit, time) = kit();
    let bounds = Bounds { capacity: 100, ttl: HOUR };
    let jobs = Jobs::builder(&kit, "jobs", bounds).build().unwrap();
    let cron = Cron::new(&jobs).every("a", "* * * * *", NewJob::new("a")).unwrap();
    let cron = cron.every("b", "* * * * *", NewJob::new("b")).unwrap();
    cron.tick().await.unwrap();
    time.advance(SECOND * 61);
    let first = jobs.claim_due(1, None).await.unwrap().jobs().remove(0);
    let other = if first.payload == b"a" { "b" } else { "a" };
    assert_eq!(jobs.stats().await.unwrap().ready, 1);
    cron.forget(other).await.unwrap();
    assert!(jobs.claim_due(1, None).await.unwrap().jobs().is_empty());
}

/// A loader that hung kept all others from its key for ever.
#[tokio::test]
async fn a_loader_that_hangs_is_given_up() {
    let (kit, time) = kit();
    let policy = Policy::new(HOUR).wait_at_most(SECOND).load_at_most(SECOND * 10);
    let cache: Cache<u32> = Cache::new(&kit, "numbers", policy).unwrap();
    let hung = tokio::spawn({
        let cache = cache.clone();
        let hangs = std::future::pending::<Result<Option<u32>, LoadError>>;
        async move { cache.fetch("a", hangs).await }
    });
    let other = tokio::spawn({
        let cache = cache.clone();
        async move {
            while cache.stats().loads == 0 {
                tokio::task::yield_now().await;
            }
            cache.fetch("a", || async { Ok::<_, LoadError>(Some(7)) }).await
        }
    });
    let step = SECOND / 4;
    while !other.is_finished() {
        time.advance(step);
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(other.await.unwrap().unwrap(), Some(7));
    while !hung.is_finished() {
        time.advance(step);
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert!(matches!(hung.await.unwrap(), Err(LoadError::TimedOut(_))));
    assert_eq!(cache.fetch("a", || async { Ok::<_, LoadError>(Some(8)) }).await.unwrap(), Some(8));
}
