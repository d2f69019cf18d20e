//! Workloads of limits, leases, jobs, requests, sales, ids, boards, reset tokens and machines.

use super::{HOUR, TASKS, at_once};
use russet::counter::{Ids, ShardedCounter, Windows};
use russet::idempotency::{Failure, Idempotency, IdempotencyKey, Run, Ttls};
use russet::lease::{Attempt, Lease, Terms};
use russet::limit::{Decision, Limit, Limiter, Outage};
use russet::queue::{Acked, Bounds, Jobs, NewJob, Scheduled};
use russet::ranking::{Leaderboard, Settings};
use russet::sale::{self, Bought, Sale, Window};
use russet::session::User;
use russet::state::{Applied, Change, Machine, Opened};
use russet::token::reset::{Consumed, ResetTokens};
use russet::{Kit, RequestId};
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

pub(super) async fn a_limit_admits_exactly_its_number(kit: Kit) {
    let limits = [Limit::log("l", 50, HOUR).unwrap()];
    let limiter = Arc::new(Limiter::new(&kit, "api", limits, Outage::Deny).unwrap());
    let admitted = Arc::new(AtomicUsize::new(0));
    at_once(|_number| {
        let (limiter, admitted) = (limiter.clone(), admitted.clone());
        async move {
            for _ in 0..15 {
                let id = RequestId::random();
                if let Decision::Allowed(_) = limiter.check("a", 1, Some(&id)).await.unwrap() {
                    admitted.fetch_add(1, Ordering::SeqCst);
                }
            }
        }
    })
    .await;
    assert_eq!(admitted.load(Ordering::SeqCst), 50);
}

/// A request that was thought lost may still arrive after its token was given back and forgotten:
/// then nobody has the lease, until its TTL is over.
pub(super) async fn a_lease_has_one_holder_and_its_numbers_grow(kit: Kit) {
    let terms = Terms::new(Duration::from_secs(10));
    let lease = Arc::new(Lease::new(&kit, "report", terms).unwrap());
    let (inside, last) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicU64::new(0)));
    at_once(|_number| {
        let (lease, inside, last) = (lease.clone(), inside.clone(), last.clone());
        async move {
            for _ in 0..5 {
                let guard = match lease.acquire(Duration::from_secs(100)).await.unwrap() {
                    Attempt::Held(guard) => guard,
                    other => panic!("{other:?}"),
                };
                assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "two hold it");
                let fence = guard.fence().number();
                assert!(last.swap(fence, Ordering::SeqCst) < fence);
                inside.fetch_sub(1, Ordering::SeqCst);
                let _ = guard.release().await.unwrap();
            }
        }
    })
    .await;
}

pub(super) async fn every_job_is_acknowledged_once(kit: Kit) {
    const JOBS: usize = 60;
    let bounds = Bounds { capacity: 1000, ttl: HOUR };
    let jobs = Arc::new(Jobs::builder(&kit, "jobs", bounds).visibility(HOUR).build().unwrap());
    for number in 0..JOBS {
        let (job, id) = (NewJob::new(number.to_string()), RequestId::random());
        let scheduled = jobs.schedule(&job, Some(&id)).await.unwrap();
        assert!(matches!(scheduled, Scheduled::Scheduled(_)), "{scheduled:?}");
    }
    let done = Arc::new(Mutex::new(HashSet::new()));
    at_once(|_number| {
        let (jobs, done) = (jobs.clone(), done.clone());
        async move {
            loop {
                let claim = jobs.claim_due(3, Some(&RequestId::random())).await.unwrap().jobs();
                if claim.is_empty() {
                    return;
                }
                for job in claim {
                    assert!(done.lock().unwrap().insert(job.payload.clone()), "claimed twice");
                    let acked = jobs.ack(&job.receipt, Some(&RequestId::random())).await;
                    assert_eq!(acked, Ok(Acked::Acked));
                }
            }
        }
    })
    .await;
    assert_eq!(done.lock().unwrap().len(), JOBS);
    let stats = jobs.stats().await.unwrap();
    assert_eq!((stats.acked, stats.ready, stats.running), (60, 0, 0));
}

pub(super) async fn a_request_runs_once(kit: Kit) {
    const KEYS: usize = 10;
    let ttls = Ttls { claim: HOUR, result: HOUR };
    let orders = Arc::new(Idempotency::new(&kit, "order", ttls).unwrap());
    let runs: Arc<Mutex<HashMap<usize, usize>>> = Arc::default();
    at_once(|_number| {
        let (orders, runs) = (orders.clone(), runs.clone());
        async move {
            for number in 0..KEYS {
                let key = IdempotencyKey::new("acme", number.to_string());
                loop {
                    let runs = runs.clone();
                    let work = || async move {
                        *runs.lock().unwrap().entry(number).or_default() += 1;
                        Ok::<_, Failure>(number)
                    };
                    match orders.idempotent(&key, "the request", work).await.unwrap() {
                        Run::Done(it) | Run::Replay(it) => {
                            assert_eq!(it, number);
                            break;
                        }
                        Run::InFlight { .. } => tokio::time::sleep(Duration::from_millis(5)).await,
                        other => panic!("{other:?}"),
                    }
                }
            }
        }
    })
    .await;
    let runs = runs.lock().unwrap();
    assert!(runs.len() == KEYS && runs.values().all(|count| *count == 1), "{runs:?}");
}

pub(super) async fn exactly_the_stock_is_sold(kit: Kit) {
    let sale = Arc::new(Sale::new(&kit, "console").unwrap());
    let window = Window::ForNext(HOUR);
    let terms = sale::Terms { stock: 40, window, hold: None, keep: HOUR, outbox_max: 1000 };
    let _ = sale.open(&terms).await.unwrap();
    let orders = Arc::new(Mutex::new(HashSet::new()));
    at_once(|task| {
        let (sale, orders) = (sale.clone(), orders.clone());
        async move {
            for number in 0..10 {
                let (user, id) = (format!("user {task} {number}"), RequestId::random());
                match sale.buy(&user, Some(&id)).await.unwrap() {
                    Bought::Ordered { order, .. } => {
                        assert!(orders.lock().unwrap().insert(order.as_bytes().to_vec()));
                    }
                    Bought::SoldOut { .. } => {}
                    other => panic!("{other:?}"),
                }
            }
        }
    })
    .await;
    assert_eq!(orders.lock().unwrap().len(), 40);
    let stats = sale.stats().await.unwrap().unwrap();
    assert_eq!((stats.stock, stats.paid), (0, 40));
}

pub(super) async fn counters_are_exact(kit: Kit) {
    let windows = Windows::of(HOUR * 24 * 365).unwrap();
    let views = Arc::new(ShardedCounter::new(&kit, "views", windows, 4).unwrap());
    at_once(|_number| {
        let views = views.clone();
        async move {
            for _ in 0..15 {
                views.add("page", 2, Some(&RequestId::random())).await.unwrap();
            }
        }
    })
    .await;
    assert_eq!(views.exact("page", 0).await.unwrap().count, 240);
}

pub(super) async fn no_id_is_given_out_twice(kit: Kit) {
    let seen = Arc::new(Mutex::new(HashSet::new()));
    at_once(|_number| {
        // Each has a block of its own, as a process has.
        let (ids, seen) = (Ids::new(&kit, "orders", 5).unwrap(), seen.clone());
        async move {
            for _ in 0..20 {
                let id = ids.next().await.unwrap().value();
                assert!(seen.lock().unwrap().insert(id), "{id} twice");
            }
        }
    })
    .await;
    assert_eq!(seen.lock().unwrap().len(), 20 * TASKS);
}

pub(super) async fn a_score_counts_once(kit: Kit) {
    let period = russet::Period::Endless;
    let settings = Settings { period, members_max: 100, ttl: HOUR, shards: 2 };
    let board = Arc::new(Leaderboard::new(&kit, "game", settings).unwrap());
    at_once(|_number| {
        let board = board.clone();
        async move {
            for _ in 0..10 {
                let _ = board.add("ann", 3, Some(&RequestId::random())).await.unwrap();
            }
        }
    })
    .await;
    assert_eq!(board.current().top(1).await.unwrap()[0].score, 240);
}

pub(super) async fn a_reset_token_is_used_once(kit: Kit) {
    let resets = Arc::new(ResetTokens::new(&kit, "password", HOUR).unwrap());
    let link = Arc::new(resets.issue(&User::new("acme", "ann")).await.unwrap());
    let used = Arc::new(AtomicUsize::new(0));
    at_once(|_number| {
        let (resets, link, used) = (resets.clone(), link.clone(), used.clone());
        async move {
            let click = RequestId::random();
            if let Consumed::Consumed(_) = resets.consume(&link, Some(&click)).await.unwrap() {
                used.fetch_add(1, Ordering::SeqCst);
            }
        }
    })
    .await;
    assert_eq!(used.load(Ordering::SeqCst), 1);
}

russet::machine! {
    /// What a case goes through.
    enum Case { Open, Closed }
    Close: Open => Closed;
}

pub(super) async fn a_transition_is_made_once(kit: Kit) {
    let cases = Arc::new(Machine::<Case>::new(&kit, HOUR).unwrap());
    let none: [(&str, &str); 0] = [];
    for number in 0..10 {
        let (id, request) = (number.to_string(), RequestId::random());
        let opened = cases.open(&id, Case::Open, none, Some(&request)).await;
        assert_eq!(opened, Ok(Opened::Opened));
    }
    let closed = Arc::new(AtomicUsize::new(0));
    at_once(|_number| {
        let (cases, closed) = (cases.clone(), closed.clone());
        async move {
            for number in 0..10 {
                let (id, request) = (number.to_string(), RequestId::random());
                let applied = cases.apply(&id, Change::new(Close), Some(&request)).await;
                if let Applied::Moved(_) = applied.unwrap() {
                    closed.fetch_add(1, Ordering::SeqCst);
                }
            }
        }
    })
    .await;
    assert_eq!(closed.load(Ordering::SeqCst), 10);
}
