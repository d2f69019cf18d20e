//! Limits as time goes by, and as it goes wrong: on the embedded engine, by a clock moved by hand.

use russet::limit::{Limit, Limiter, Outage, Period};
use russet::{Kit, ManualTime, Options};
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);
const DAY: Duration = Duration::from_secs(86_400);

/// 2027-01-01 00:00 UTC.
const NEW_YEAR_MS: i64 = 1_798_761_600_000;

fn start(limit: Limit) -> (ManualTime, Limiter) {
    let time = ManualTime::new();
    time.set_ms(NEW_YEAR_MS);
    let kit = Kit::builder().embedded_at(Options::default(), &time).unwrap();
    let limiter = Limiter::new(&kit, "test", [limit], Outage::Deny).unwrap();
    (time, limiter)
}

/// How many of cost 1 are admitted now.
async fn room(limiter: &Limiter) -> usize {
    let mut admitted = 0;
    while limiter.check("a", 1, None).await.unwrap().is_allowed() {
        admitted += 1;
    }
    admitted
}

async fn retry_after(limiter: &Limiter, cost: u64) -> Duration {
    limiter.peek("a", cost).await.unwrap().retry_after()
}

#[tokio::test]
async fn a_bucket_fills_steadily() {
    let (time, limiter) = start(Limit::bucket("b", 10, SECOND).unwrap().burst(20).unwrap());
    assert_eq!(room(&limiter).await, 20);
    assert_eq!(retry_after(&limiter, 1).await, SECOND / 10);
    assert_eq!(retry_after(&limiter, 5).await, SECOND / 2);
    for _ in 0..50 {
        time.advance(SECOND / 10);
        assert_eq!(room(&limiter).await, 1);
    }
    time.advance(SECOND / 20);
    assert_eq!(room(&limiter).await, 0, "half a token is none");
    time.advance(MINUTE);
    assert_eq!(room(&limiter).await, 20, "a bucket holds no more than its burst");
}

#[tokio::test]
async fn a_bucket_of_thirds_loses_nothing() {
    let (time, limiter) = start(Limit::bucket("b", 3, SECOND).unwrap());
    let mut admitted = room(&limiter).await;
    for _ in 0..10_000 {
        time.advance(Duration::from_millis(70));
        admitted += room(&limiter).await;
    }
    assert_eq!(admitted, 3 + 2_100);
}

/// Redisson 2931: permits taken at the end of an interval and the start of the next exceeded it.
#[tokio::test]
async fn a_log_has_no_edge() {
    let (time, limiter) = start(Limit::log("l", 10, SECOND).unwrap());
    time.advance(SECOND * 9 / 10);
    assert_eq!(room(&limiter).await, 10);
    time.advance(SECOND / 5);
    assert_eq!(room(&limiter).await, 0);
    assert_eq!(retry_after(&limiter, 10).await, SECOND * 4 / 5);
    time.advance(SECOND * 4 / 5);
    assert_eq!(room(&limiter).await, 10);
}

#[tokio::test]
async fn a_sliding_counter_weighs_the_window_before() {
    let (time, limiter) = start(Limit::sliding("s", 100, MINUTE).unwrap());
    assert_eq!(room(&limiter).await, 100);
    let wait = retry_after(&limiter, 1).await;
    time.advance(wait - Duration::from_millis(1));
    assert_eq!(room(&limiter).await, 0, "before its time");
    time.advance(Duration::from_millis(1));
    assert_eq!(room(&limiter).await, 1);
    time.advance(MINUTE / 2);
    let half = room(&limiter).await;
    assert!((49..=51).contains(&half), "{half}");
    time.advance(3 * MINUTE);
    assert_eq!(room(&limiter).await, 100);
}

#[tokio::test]
async fn a_window_begins_with_the_first() {
    let (time, limiter) = start(Limit::window("w", 5, MINUTE).unwrap());
    time.advance(MINUTE * 3 / 4);
    assert_eq!(room(&limiter).await, 5);
    time.advance(MINUTE - Duration::from_millis(1));
    assert_eq!(room(&limiter).await, 0);
    assert_eq!(retry_after(&limiter, 1).await, Duration::from_millis(1));
    time.advance(Duration::from_millis(1));
    assert_eq!(room(&limiter).await, 5);
}

/// Bull 1875: what was denied counted too, so that a busy caller was never let in again. S1 §5:
/// each success made the window longer.
#[tokio::test]
async fn a_busy_caller_is_not_shut_out() {
    for limit in [
        Limit::window("w", 5, MINUTE).unwrap(),
        Limit::log("l", 5, MINUTE).unwrap(),
        Limit::bucket("b", 5, MINUTE).unwrap(),
        Limit::sliding("s", 5, MINUTE).unwrap(),
    ] {
        let (time, limiter) = start(limit);
        let mut admitted = 0;
        for _ in 0..600 {
            time.advance(SECOND);
            admitted += room(&limiter).await;
        }
        // A sliding counter of five counts whole ones of what it estimates.
        assert!((40..=55).contains(&admitted), "{:?}: {admitted}", limiter.limits());
    }
}

#[tokio::test]
async fn quotas_end_with_the_calendar() {
    let ends = |period, days: u64| {
        (Limit::quota("q", 5, period).unwrap(), DAY * u32::try_from(days).unwrap())
    };
    // January 1, 2027 is a Friday.
    for (limit, rest) in [ends(Period::Day, 1), ends(Period::Week, 3), ends(Period::Month, 31)] {
        let (time, limiter) = start(limit);
        assert_eq!(room(&limiter).await, 5);
        assert_eq!(retry_after(&limiter, 1).await, rest);
        time.advance(rest - Duration::from_millis(1));
        assert_eq!(room(&limiter).await, 0);
        time.advance(Duration::from_millis(1));
        assert_eq!(room(&limiter).await, 5);
    }
    let ahead = Limit::quota("q", 5, Period::Day).unwrap().utc_offset_minutes(330).unwrap();
    let (_time, limiter) = start(ahead);
    assert_eq!(room(&limiter).await, 5);
    assert_eq!(retry_after(&limiter, 1).await, DAY - Duration::from_secs(330 * 60));
}

#[tokio::test]
async fn months_have_their_lengths() {
    let (time, limiter) = start(Limit::quota("q", 1, Period::Month).unwrap());
    let lengths = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31, 31, 29, 31];
    for days in lengths {
        assert_eq!(room(&limiter).await, 1);
        assert_eq!(retry_after(&limiter, 1).await, DAY * days);
        time.advance(DAY * days);
    }
}

/// A clock that is set back an hour, or a replica whose clock is behind: nobody waits for longer
/// than a window, and no more is admitted than the limit.
#[tokio::test]
async fn a_clock_set_back_blocks_for_a_window_at_most() {
    for limit in [
        Limit::window("w", 5, MINUTE).unwrap(),
        Limit::log("l", 5, MINUTE).unwrap(),
        Limit::bucket("b", 5, MINUTE).unwrap(),
        Limit::sliding("s", 5, MINUTE).unwrap(),
        Limit::concurrency("c", 5, MINUTE).unwrap(),
    ] {
        let (time, limiter) = start(limit);
        assert_eq!(room(&limiter).await, 5);
        time.set_ms(NEW_YEAR_MS - 3_600_000);
        assert_eq!(room(&limiter).await, 0, "{:?}", limiter.limits());
        assert!(retry_after(&limiter, 1).await <= 2 * MINUTE);
        time.advance(2 * MINUTE);
        assert_eq!(room(&limiter).await, 5, "{:?}", limiter.limits());
    }
}

#[tokio::test]
async fn a_late_refund_gives_nothing_to_the_next_window() {
    for limit in [
        Limit::window("w", 5, MINUTE).unwrap(),
        Limit::quota("q", 5, Period::Hour).unwrap(),
        Limit::log("l", 5, MINUTE).unwrap(),
        Limit::bucket("b", 5, MINUTE).unwrap(),
        Limit::sliding("s", 5, MINUTE).unwrap(),
    ] {
        let (time, limiter) = start(limit);
        let old = limiter.check("a", 5, None).await.unwrap();
        time.advance(2 * 60 * MINUTE);
        assert_eq!(room(&limiter).await, 5);
        let refunded = limiter.refund(old.charge().unwrap()).await.unwrap();
        assert_eq!(refunded.returned, [0]);
        assert_eq!(room(&limiter).await, 0, "{:?}", limiter.limits());
    }
}
