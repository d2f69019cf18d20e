//! Leases and time, with a clock that is moved by hand.

use super::{held, is_busy};
use russet::key::Family;
use russet::lease::{Attempt, FairLease, FairTerms, Lease, Release, Renewal, Terms};
use russet::{Kit, ManualTime, Options, Request};
use std::time::Duration;

const TTL: Duration = Duration::from_secs(10);

fn at(time: &ManualTime) -> Kit {
    Kit::builder().embedded_at(Options::default(), time).unwrap()
}

/// Lets the tasks in the background do what the time has come for.
async fn let_run() {
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }
}

/// Redlock: a holder must not count on the whole TTL, as clocks drift apart.
#[tokio::test]
async fn the_holder_stops_before_the_next_one_starts() {
    let time = ManualTime::new();
    let lease = Lease::new(&at(&time), "a", TTL).unwrap();
    let guard = held(lease.try_acquire().await.unwrap());
    time.advance(TTL - Duration::from_millis(101));
    assert!(!guard.is_held());
    assert!(is_busy(&lease.try_acquire().await.unwrap()));
    time.advance(Duration::from_millis(101));
    assert!(lease.try_acquire().await.unwrap().is_held());
}

/// redlock-rb issue 36: a lock whose time is over can be extended.
#[tokio::test]
async fn what_is_lost_is_not_renewed() {
    let time = ManualTime::new();
    let lease = Lease::new(&at(&time), "a", TTL).unwrap();
    let guard = held(lease.try_acquire().await.unwrap());
    let token = guard.hand_over().unwrap();
    time.advance(TTL);
    assert!(is_busy(&lease.adopt(token).await.unwrap()));
    let guard = held(lease.try_acquire().await.unwrap());
    time.advance(TTL);
    assert_eq!(guard.renew().await.unwrap(), Renewal::Lost);
    // Nobody had it since: to give it back late does no harm.
    assert_eq!(guard.release().await.unwrap(), Release::Released);
}

#[tokio::test]
async fn keep_alive_renews_for_as_long_as_allowed() {
    let time = ManualTime::new();
    let terms = Terms::new(TTL).keep_alive(Duration::from_secs(60));
    let lease = Lease::new(&at(&time), "a", terms).unwrap();
    let guard = held(lease.try_acquire().await.unwrap());
    let_run().await;
    for _ in 0..55 {
        time.advance(Duration::from_secs(1));
        let_run().await;
        assert!(guard.is_held());
        assert!(is_busy(&lease.try_acquire().await.unwrap()));
    }
    for _ in 0..15 {
        time.advance(Duration::from_secs(1));
        let_run().await;
    }
    assert!(!guard.is_held());
    guard.lost().await;
    assert!(lease.try_acquire().await.unwrap().is_held());
}

/// A number that goes back lets a stale holder write.
#[tokio::test]
async fn the_number_does_not_go_back_with_the_clock() {
    let time = ManualTime::new();
    let lease = Lease::new(&at(&time), "a", TTL).unwrap();
    let mut last = None;
    for step in 0..4 {
        let guard = held(lease.try_acquire().await.unwrap());
        assert!(Some(guard.fence()) > last);
        last = Some(guard.fence());
        let _ = guard.release().await.unwrap();
        time.set_ms(time.now_ms() - 1000 * step);
    }
}

/// The holder has died, and the clock was set back by an hour: nobody got the lease for an hour.
#[tokio::test]
async fn a_clock_that_is_set_back_blocks_nobody_for_longer_than_the_ttl() {
    for is_fair in [false, true] {
        let time = ManualTime::new();
        let kit = at(&time);
        let plain = Lease::new(&kit, "a", TTL).unwrap();
        let fair = FairLease::new(&kit, "a", TTL).unwrap();
        let attempt = async || match is_fair {
            true => fair.try_acquire().await.unwrap(),
            false => plain.try_acquire().await.unwrap(),
        };
        let first = held(attempt().await);
        let fence = first.fence();
        let _token = first.hand_over().unwrap();
        time.set_ms(time.now_ms() - 3_600_000);
        match attempt().await {
            Attempt::Busy { retry_after } => assert!(retry_after <= TTL, "{retry_after:?}"),
            other => panic!("{other:?}"),
        }
        time.advance(TTL + Duration::from_millis(1));
        assert!(held(attempt().await).fence() > fence);
    }
}

/// A waiter has died, and the clock was set back: those behind it waited for as long.
#[tokio::test]
async fn a_dead_waiter_is_passed_over_after_the_clock_was_set_back() {
    let time = ManualTime::new();
    let kit = at(&time);
    let lease = FairLease::new(&kit, "a", TTL).unwrap();
    let first = held(lease.try_acquire().await.unwrap());
    let keys = kit.keys(Family { purpose: "lease", version: 1 }, "a").unwrap();
    let dead_until = (time.now_ms() + 3000).to_string();
    for (part, score) in [("queue", "1"), ("waiters", dead_until.as_str())] {
        let add = Request::new("ZADD").key(&keys.key(part)).arg(score).arg("dead");
        kit.call(&add).await.unwrap();
        kit.call(&Request::new("PEXPIRE").key(&keys.key(part)).arg(3_600_000)).await.unwrap();
    }
    let _ = first.release().await.unwrap();
    time.set_ms(time.now_ms() - 3_600_000);
    assert!(is_busy(&lease.try_acquire().await.unwrap()));
    time.advance(Duration::from_secs(4));
    assert!(lease.try_acquire().await.unwrap().is_held());
}

/// A failover that loses the last acquisitions: the replica knows nothing of the lease.
#[tokio::test]
async fn the_number_does_not_go_back_over_a_failover_that_forgets() {
    let time = ManualTime::new();
    let before = Lease::new(&at(&time), "a", TTL).unwrap();
    let mut last = held(before.try_acquire().await.unwrap());
    for _ in 0..1000 {
        let _ = last.release().await.unwrap();
        last = held(before.try_acquire().await.unwrap());
    }
    time.advance(Duration::from_millis(2));
    let after = Lease::new(&at(&time), "a", TTL).unwrap();
    let guard = held(after.try_acquire().await.unwrap());
    assert!(guard.fence() > last.fence());
}

/// rslock pull request 36: after the last attempt it slept once more before it gave up.
#[tokio::test]
async fn who_gives_up_does_not_wait_any_longer() {
    let time = ManualTime::new();
    let lease = Lease::new(&at(&time), "a", Duration::from_secs(100)).unwrap();
    let _guard = held(lease.try_acquire().await.unwrap());
    let waiting = tokio::spawn({
        let lease = lease.clone();
        async move { is_busy(&lease.acquire(TTL).await.unwrap()) }
    });
    let_run().await;
    time.advance(TTL - Duration::from_millis(1));
    let_run().await;
    assert!(!waiting.is_finished());
    time.advance(Duration::from_millis(1));
    let_run().await;
    assert!(waiting.is_finished() && waiting.await.unwrap());
}

/// Redisson issues 1104, 2099 and 6150: each dead waiter costs its time, and the times add up.
/// Issue 3004: one that is alive is taken for dead.
#[tokio::test]
async fn all_dead_waiters_are_passed_over_at_once() {
    let time = ManualTime::new();
    let kit = at(&time);
    let terms = FairTerms::new(Duration::from_secs(100)).patience(Duration::from_secs(3));
    let lease = FairLease::new(&kit, "a", terms).unwrap();
    let guard = held(lease.try_acquire().await.unwrap());
    // A process with 300 waiters, which dies.
    let other = tokio::task::LocalSet::new();
    for _ in 0..300 {
        let lease = lease.clone();
        other.spawn_local(async move {
            let _ = lease.acquire(Duration::from_secs(1000)).await;
        });
    }
    other.run_until(let_run()).await;
    assert_eq!(lease.waiters().await.unwrap(), 300);
    let alive = tokio::spawn({
        let lease = lease.clone();
        async move { lease.acquire(Duration::from_secs(1000)).await.unwrap().held() }
    });
    let_run().await;
    assert_eq!(lease.waiters().await.unwrap(), 301);
    // Longer than anyone's patience: who is alive asks again meanwhile.
    for _ in 0..100 {
        time.advance(Duration::from_millis(50));
        let_run().await;
    }
    assert_eq!(lease.waiters().await.unwrap(), 1);
    let _ = guard.release().await.unwrap();
    for _ in 0..10 {
        time.advance(Duration::from_millis(50));
        let_run().await;
    }
    assert!(alive.is_finished());
    assert!(alive.await.unwrap().is_some());
    drop(other);
}
