//! Leases: one holder at a time, whatever is repeated, lost, late or dead.

mod kinds;
mod many;
mod time;

use russet::lease::{Attempt, Fenced, FencedWrite, Guard, Holder, Lease, Release, Renewal, Terms};
use russet::{Error, Kit, Result};
use russet_toolkit_tests::{Fault, faulty};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const LONG: Duration = Duration::from_secs(60);

russet_toolkit_tests::on_every_backend! {
    one_holder_at_a_time
    only_the_holder_releases
    a_lease_runs_out
    the_next_holder_is_let_in_at_once
    a_lost_reply_does_not_lose_the_lease
    a_lost_reply_of_a_release_is_a_release
    an_attempt_of_unknown_outcome_is_given_back
    a_dropped_attempt_holds_nothing
    a_dropped_guard_is_released
    a_release_that_fails_or_is_cancelled_is_made_good
    a_lease_is_handed_over
    a_stale_holder_can_not_write
    of_many_writers_the_last_holder_stays
    a_late_write_of_the_same_holder_is_refused
    keep_alive_goes_on_after_an_outage
    keep_alive_does_not_outlive_its_guard
    a_watcher_hears_of_a_loss
}

fn held(attempt: Attempt) -> Guard {
    attempt.held().expect("the lease is free")
}

fn is_busy(attempt: &Attempt) -> bool {
    matches!(attempt, Attempt::Busy { .. })
}

/// A lease of a short time may be over before a busy machine has heard of it: then it is asked for
/// again.
async fn briefly<F: Future<Output = Result<Attempt>>>(ask: impl Fn() -> F) -> Guard {
    loop {
        match ask().await {
            Ok(Attempt::Held(guard)) => return guard,
            Ok(_) | Err(Error::Unavailable(_)) => {
                tokio::time::sleep(Duration::from_millis(5)).await
            }
            Err(error) => panic!("{error}"),
        }
    }
}

/// Tries until it is held.
async fn soon(lease: &Lease) -> Guard {
    held(lease.acquire(Duration::from_secs(30)).await.unwrap())
}

/// Pattern 13: 32 tasks, one holder at a time, each with a higher number than those before it.
async fn one_holder_at_a_time(kit: Kit) {
    let (inside, last, done) = (AtomicUsize::new(0), AtomicU64::new(0), AtomicUsize::new(0));
    let shared = Arc::new((inside, last, done));
    let mut tasks = Vec::new();
    for _ in 0..32 {
        let (kit, shared) = (kit.clone(), shared.clone());
        tasks.push(tokio::spawn(async move {
            let lease = Lease::new(&kit, "counter", LONG).unwrap();
            for _ in 0..3 {
                let guard = soon(&lease).await;
                let (inside, last, done) = &*shared;
                assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
                let before = last.swap(guard.fence().number(), Ordering::SeqCst);
                assert!(before < guard.fence().number());
                tokio::task::yield_now().await;
                inside.fetch_sub(1, Ordering::SeqCst);
                done.fetch_add(1, Ordering::SeqCst);
                assert_eq!(guard.release().await.unwrap(), Release::Released);
            }
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(shared.2.load(Ordering::SeqCst), 96);
}

/// S1 §8: a holder whose time was over deletes the lock of the next one. S3, cache and locks: no
/// owner, or one (the number of a thread) that another process has too.
async fn only_the_holder_releases(kit: Kit) {
    let short = Lease::new(&kit, "a", Duration::from_millis(60)).unwrap();
    let late = briefly(|| short.try_acquire()).await;
    let long = Lease::new(&kit, "a", LONG).unwrap();
    let next = soon(&long).await;
    assert!(next.fence() > late.fence());
    assert_eq!(late.renew().await.unwrap(), Renewal::Lost);
    assert_eq!(late.release().await.unwrap(), Release::NotHeld);
    assert!(is_busy(&short.try_acquire().await.unwrap()));
    assert_eq!(next.release().await.unwrap(), Release::Released);
}

/// The server forgets a holder that says nothing; the holder knows it before.
async fn a_lease_runs_out(kit: Kit) {
    let lease = Lease::new(&kit, "a", LONG).unwrap();
    let guard = held(lease.try_acquire().await.unwrap());
    assert!(matches!(lease.holder().await.unwrap(), Holder::Somebody { fence, .. }
        if fence == guard.fence()));
    let Attempt::Busy { retry_after } = lease.try_acquire().await.unwrap() else {
        panic!("two holders");
    };
    assert!(retry_after <= LONG);
    let _ = guard.release().await.unwrap();
    let short = Lease::new(&kit, "a", Duration::from_millis(100)).unwrap();
    let guard = briefly(|| short.try_acquire()).await;
    guard.lost().await;
    assert!(!guard.is_held());
    let next = soon(&lease).await;
    assert!(next.fence() > guard.fence());
}

/// Redisson issues 3730 and 3891: a waiter that missed the message waits for the end of the lease.
async fn the_next_holder_is_let_in_at_once(kit: Kit) {
    let lease = Lease::new(&kit, "a", LONG).unwrap();
    let guard = held(lease.try_acquire().await.unwrap());
    let mut waiting = Vec::new();
    for _ in 0..4 {
        // Each with a handle of its own, as in another process.
        let lease = Lease::new(&kit, "a", LONG).unwrap();
        waiting.push(tokio::spawn(async move { soon(&lease).await.release().await.unwrap() }));
    }
    tokio::task::yield_now().await;
    let started = Instant::now();
    let _ = guard.release().await.unwrap();
    for task in waiting {
        assert_eq!(task.await.unwrap(), Release::Released);
    }
    assert!(started.elapsed() < LONG);
}

/// A reply that is lost does not make the holder wait for itself: the kit asks again with the same
/// token. S1 §9: the same owner's retried claim is BUSY.
async fn a_lost_reply_does_not_lose_the_lease(kit: Kit) {
    let (kit, faults) = faulty(&kit);
    let lease = Lease::new(&kit, "a", LONG).unwrap();
    faults.set(|number| if number == 0 { Fault::ReplyLost } else { Fault::None });
    let guard = held(lease.try_acquire().await.unwrap());
    assert!(faults.calls() >= 2);
    faults.set(|number| if number == 0 { Fault::ReplyLost } else { Fault::None });
    assert!(matches!(guard.renew().await.unwrap(), Renewal::Renewed { .. }));
}

async fn a_lost_reply_of_a_release_is_a_release(kit: Kit) {
    let (kit, faults) = faulty(&kit);
    let lease = Lease::new(&kit, "a", LONG).unwrap();
    // Both scripts are known to the server then.
    let _ = held(lease.try_acquire().await.unwrap()).release().await.unwrap();
    let guard = held(lease.try_acquire().await.unwrap());
    faults.set(|number| if number == 0 { Fault::ReplyLost } else { Fault::None });
    assert_eq!(guard.release().await.unwrap(), Release::Released);
    assert!(lease.try_acquire().await.unwrap().is_held());
}

/// Redisson issue 1606: only locks that were surely taken are given back. Here all that may be.
async fn an_attempt_of_unknown_outcome_is_given_back(kit: Kit) {
    let (kit, faults) = faulty(&kit);
    let lease = Lease::new(&kit, "a", LONG).unwrap();
    let _ = held(lease.try_acquire().await.unwrap()).release().await.unwrap();
    faults.set(|number| if number < 3 { Fault::ReplyLost } else { Fault::None });
    assert!(matches!(lease.try_acquire().await, Err(Error::Unknown(_))));
    let guard = soon(&lease).await;
    assert_eq!(guard.release().await.unwrap(), Release::Released);
}

/// Redisson issue 4456: an acquisition that is interrupted leaves locks, and a watchdog that keeps
/// them.
async fn a_dropped_attempt_holds_nothing(kit: Kit) {
    let terms = Terms::new(LONG).keep_alive(LONG);
    let lease = Lease::new(&kit, "a", terms).unwrap();
    for round in 0..20 {
        let attempt = tokio::spawn({
            let lease = lease.clone();
            async move {
                let guard = held(lease.acquire(LONG).await.unwrap());
                std::future::pending::<()>().await;
                drop(guard);
            }
        });
        for _ in 0..round {
            tokio::task::yield_now().await;
        }
        attempt.abort();
    }
    let guard = soon(&lease).await;
    assert_eq!(guard.release().await.unwrap(), Release::Released);
}

async fn a_dropped_guard_is_released(kit: Kit) {
    let lease = Lease::new(&kit, "a", LONG).unwrap();
    drop(held(lease.try_acquire().await.unwrap()));
    let guard = soon(&lease).await;
    assert!(guard.is_held());
}

/// redis-py issue 3847: a release that was cancelled, or failed, had forgotten the token
/// already, and the lock stayed for good.
async fn a_release_that_fails_or_is_cancelled_is_made_good(kit: Kit) {
    let (kit, faults) = faulty(&kit);
    let lease = Lease::new(&kit, "a", LONG).unwrap();
    let guard = held(lease.try_acquire().await.unwrap());
    // As often as the kit tries it.
    faults.set(|number| if number < 3 { Fault::NotRun } else { Fault::None });
    assert!(matches!(guard.release().await, Err(Error::Unavailable(_))));
    let guard = soon(&lease).await;
    let released = tokio::time::timeout(Duration::ZERO, guard.release()).await;
    drop(released);
    assert!(soon(&lease).await.is_held());
}

/// Pattern 31: whoever has the token completes, nobody else.
async fn a_lease_is_handed_over(kit: Kit) {
    let lease = Lease::new(&kit, "job", LONG).unwrap();
    let guard = held(lease.try_acquire().await.unwrap());
    let fence = guard.fence();
    let token = guard.hand_over().unwrap();
    let elsewhere = Lease::new(&kit, "job", LONG).unwrap();
    assert!(is_busy(&elsewhere.try_acquire().await.unwrap()));
    let guard = held(elsewhere.adopt(token.clone()).await.unwrap());
    assert_eq!(guard.fence(), fence);
    assert_eq!(guard.release().await.unwrap(), Release::Released);
    assert!(is_busy(&elsewhere.adopt(token).await.unwrap()));
    let other = russet::lease::Token::from_bytes(b"not the token");
    assert!(is_busy(&elsewhere.adopt(other).await.unwrap()));
}

/// Pattern 15, Redisson issue 3636: a worker that was cut off from the server goes on, and writes
/// over what the next one wrote.
async fn a_stale_holder_can_not_write(kit: Kit) {
    let lease = Lease::new(&kit, "a", Duration::from_millis(50)).unwrap();
    let record = Fenced::new(&kit, "record", LONG).unwrap();
    let stale = briefly(|| lease.try_acquire()).await;
    assert_eq!(record.write(&stale, "1").await.unwrap(), FencedWrite::Written);
    stale.lost().await;
    let next = soon(&Lease::new(&kit, "a", LONG).unwrap()).await;
    assert_eq!(record.write(&next, "2").await.unwrap(), FencedWrite::Written);
    let refused = record.write(&stale, "3").await.unwrap();
    assert!(matches!(refused, FencedWrite::Stale { latest } if latest.fence == next.fence()));
    let found = record.read().await.unwrap().unwrap();
    assert_eq!((found.fence, found.value), (next.fence(), b"2".to_vec()));
    assert_eq!(record.clear(&next).await.unwrap(), FencedWrite::Written);
    assert!(matches!(record.clear(&stale).await.unwrap(), FencedWrite::Stale { .. }));
    assert_eq!(record.read().await.unwrap(), None);
}

/// Pattern 15: holders write in any order; what the last of them wrote stays.
async fn of_many_writers_the_last_holder_stays(kit: Kit) {
    let lease = Lease::new(&kit, "a", LONG).unwrap();
    let record = Fenced::new(&kit, "record", LONG).unwrap();
    let mut stamps = Vec::new();
    for _ in 0..16 {
        let guard = soon(&lease).await;
        stamps.push(guard.stamp());
        let _ = guard.release().await.unwrap();
    }
    let last = stamps.last().unwrap().fence;
    let mut tasks = tokio::task::JoinSet::new();
    for stamp in stamps.into_iter().rev() {
        let record = record.clone();
        tasks.spawn(async move {
            let value = stamp.fence.number().to_string();
            let _ = record.write_at(stamp, Some(value.as_bytes())).await.unwrap();
        });
    }
    while let Some(ended) = tasks.join_next().await {
        ended.unwrap();
    }
    let found = record.read().await.unwrap().unwrap();
    assert_eq!((found.fence, found.value), (last, last.number().to_string().into_bytes()));
}

/// A write whose time was over may reach the server after the next one of the same holder.
async fn a_late_write_of_the_same_holder_is_refused(kit: Kit) {
    let lease = Lease::new(&kit, "a", LONG).unwrap();
    let record = Fenced::new(&kit, "record", LONG).unwrap();
    let guard = held(lease.try_acquire().await.unwrap());
    let early = guard.stamp();
    let _ = record.write(&guard, "new").await.unwrap();
    let late = record.write_at(early, Some(b"old")).await.unwrap();
    assert!(matches!(late, FencedWrite::Stale { .. }));
    assert_eq!(record.read().await.unwrap().unwrap().value, b"new");
}

/// Redisson issues 3194 and 5698: after an error the watchdog renews no more.
async fn keep_alive_goes_on_after_an_outage(kit: Kit) {
    crate::given_time(Duration::from_millis(600), async |ttl| {
        let (kit, faults) = faulty(&kit);
        let terms = Terms::new(ttl).keep_alive(LONG);
        let lease = Lease::new(&kit, "a", terms).unwrap();
        let guard = briefly(|| lease.try_acquire()).await;
        // The first renewal fails, with all that the kit tries by itself.
        faults.set(|number| if number < 3 { Fault::NotRun } else { Fault::None });
        let started = Instant::now();
        while guard.is_held() && (faults.calls() < 8 || started.elapsed() <= ttl) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        guard.is_held() && guard.release().await.unwrap() == Release::Released
    })
    .await;
}

/// Redisson issues 7272 and 1626: renewal outlives the release, and the lock is held for ever.
async fn keep_alive_does_not_outlive_its_guard(kit: Kit) {
    let terms = Terms::new(Duration::from_millis(30)).keep_alive(LONG);
    for _ in 0..20 {
        let lease = Lease::new(&kit, "a", terms).unwrap();
        let guard = briefly(|| lease.acquire(LONG)).await;
        tokio::time::sleep(Duration::from_millis(10)).await;
        drop(guard);
    }
    let lease = Lease::new(&kit, "a", LONG).unwrap();
    let guard = soon(&lease).await;
    // Renewals that are still on their way renew nothing.
    tokio::time::sleep(Duration::from_millis(40)).await;
    assert!(matches!(lease.holder().await.unwrap(), Holder::Somebody { fence, .. }
        if fence == guard.fence()));
}

/// Redisson issue 4698: nobody hears that a renewal has failed.
async fn a_watcher_hears_of_a_loss(kit: Kit) {
    let (kit, faults) = faulty(&kit);
    let terms = Terms::new(Duration::from_millis(90)).keep_alive(LONG);
    let lease = Lease::new(&kit, "a", terms).unwrap();
    let guard = briefly(|| lease.try_acquire()).await;
    faults.set(|_number| Fault::NotRun);
    let work = guard.while_held(std::future::pending::<()>()).await;
    assert_eq!(work, None);
    assert!(!guard.is_held());
}
