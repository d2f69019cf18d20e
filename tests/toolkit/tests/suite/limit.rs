//! Limits: exact under many tasks, never charged twice, all or nothing, with a policy for outages.

use russet::key::Scope;
use russet::limit::policy::{Login, LoginThrottle, OtpAttempts};
use russet::limit::{
    Basis, Decision, Entry, Limit, Limiter, Outage, Period, Renewal, Spent, Subject, WatchQuota,
};
use russet::{Error, Kit, RequestId};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

russet_toolkit_tests::on_every_backend! {
    an_id_is_charged_once_by_each_limiter
    exactly_the_limit_is_admitted
    several_limits_are_charged_together_or_not_at_all
    a_request_is_charged_once
    a_denied_request_may_come_back
    a_peek_charges_nothing
    a_refund_gives_back_once
    a_refund_never_exceeds_the_limit
    a_refunded_request_is_charged_anew
    a_reset_forgets
    keys_have_a_ttl
    a_window_ends_by_the_servers_clock
    slots_are_given_up
    a_slot_of_a_crashed_holder_runs_out
    a_new_maximum_holds_at_once
    arguments_are_refused_before_anything_is_written
    a_key_without_ttl_is_mended
    parts_of_a_subject_have_their_own_limit
    one_step_has_one_slot
    one_time_passwords
    logins_are_throttled
    a_watched_quota_is_exact
    a_watched_quota_charges_a_request_once
    a_watched_window_does_not_slide
}

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);

fn kinds(max: u64) -> [Limit; 6] {
    [
        Limit::window("window", max, HOUR).unwrap(),
        Limit::log("log", max, HOUR).unwrap(),
        Limit::sliding("sliding", max, 1000 * HOUR).unwrap(),
        Limit::bucket("bucket", max, 1000 * HOUR).unwrap(),
        Limit::concurrency("concurrency", max, HOUR).unwrap(),
        Limit::quota("quota", max, Period::Month).unwrap(),
    ]
}

fn limiter(kit: &Kit, limit: Limit) -> Limiter {
    Limiter::new(kit, "test", [limit], Outage::Deny).unwrap()
}

async fn is_allowed(limiter: &Limiter, subject: &str, cost: u64) -> bool {
    limiter.check(subject, cost, None).await.unwrap().is_allowed()
}

/// S1 §19: its test asserts at most 100. Redisson 2072 allowed more than the rate in the first
/// call, Sidekiq 2617 more than one at a time. Here: exactly 100 of 1,000, whatever the kind.
async fn exactly_the_limit_is_admitted(kit: Kit) {
    for limit in kinds(100) {
        let (name, limiter) = (limit.name().to_owned(), limiter(&kit, limit));
        let admitted = Arc::new(AtomicU32::new(0));
        let tasks: Vec<_> = (0..20)
            .map(|_| {
                let (limiter, admitted) = (limiter.clone(), admitted.clone());
                tokio::spawn(async move {
                    for _ in 0..50 {
                        if is_allowed(&limiter, "user", 1).await {
                            admitted.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
        assert_eq!(admitted.load(Ordering::Relaxed), 100, "{name}");
        let stats = limiter.stats();
        assert_eq!((stats.allowed, stats.denied), (100, 900), "{name}");
    }
}

async fn several_limits_are_charged_together_or_not_at_all(kit: Kit) {
    let limits = [
        Limit::bucket("many", 10, HOUR).unwrap(),
        Limit::log("few", 2, HOUR).unwrap(),
        Limit::window("more", 5, HOUR).unwrap(),
    ];
    let limiter = Limiter::new(&kit, "api", limits, Outage::Deny).unwrap();
    assert!(is_allowed(&limiter, "a", 1).await);
    assert!(is_allowed(&limiter, "a", 1).await);
    for _ in 0..5 {
        let Decision::Denied(denied) = limiter.check("a", 1, None).await.unwrap() else {
            panic!("two are few");
        };
        let exceeded: Vec<&str> =
            denied.limits.iter().filter(|it| it.is_exceeded()).map(|it| it.name()).collect();
        assert_eq!(exceeded, ["few"]);
        let remaining: Vec<u64> = denied.limits.iter().map(|it| it.remaining).collect();
        assert_eq!(remaining, [8, 0, 3], "what was denied has cost nothing");
        assert!(denied.retry_after > Duration::ZERO && denied.retry_after <= HOUR);
    }
}

/// S1 §10 and its retry table: a retry consumed extra quota, and at the limit it was denied though
/// the first call had been admitted.
async fn a_request_is_charged_once(kit: Kit) {
    for limit in kinds(2) {
        let (name, limiter) = (limit.name().to_owned(), limiter(&kit, limit));
        let (first, second) = (RequestId::random(), RequestId::random());
        for _ in 0..3 {
            assert!(limiter.check("a", 1, Some(&first)).await.unwrap().is_allowed(), "{name}");
        }
        for _ in 0..3 {
            assert!(limiter.check("a", 1, Some(&second)).await.unwrap().is_allowed(), "{name}");
        }
        assert!(!is_allowed(&limiter, "a", 1).await, "{name}: two requests are two");
        assert!(limiter.check("a", 1, Some(&first)).await.unwrap().is_allowed(), "{name}");
    }
}

async fn a_denied_request_may_come_back(kit: Kit) {
    let limiter = limiter(&kit, Limit::window("w", 1, HOUR).unwrap());
    assert!(is_allowed(&limiter, "a", 1).await);
    let request = RequestId::random();
    assert!(!limiter.check("a", 1, Some(&request)).await.unwrap().is_allowed());
    limiter.reset("a").await.unwrap();
    assert!(limiter.check("a", 1, Some(&request)).await.unwrap().is_allowed());
}

async fn a_peek_charges_nothing(kit: Kit) {
    for limit in kinds(3) {
        let (name, limiter) = (limit.name().to_owned(), limiter(&kit, limit));
        for _ in 0..5 {
            let decision = limiter.peek("a", 3).await.unwrap();
            assert!(decision.is_allowed() && decision.charge().is_none(), "{name}");
            assert_eq!(decision.limits()[0].remaining, 3, "{name}");
        }
        assert!(is_allowed(&limiter, "a", 2).await, "{name}");
        assert!(!limiter.peek("a", 2).await.unwrap().is_allowed(), "{name}");
        assert!(limiter.peek("a", 1).await.unwrap().is_allowed(), "{name}");
    }
}

async fn a_refund_gives_back_once(kit: Kit) {
    for limit in kinds(5) {
        let (name, limiter) = (limit.name().to_owned(), limiter(&kit, limit));
        let decision = limiter.check("a", 3, None).await.unwrap();
        assert!(is_allowed(&limiter, "a", 2).await, "{name}");
        let charge = decision.charge().unwrap();
        for _ in 0..3 {
            let refunded = limiter.refund_part(charge, 2).await.unwrap();
            assert_eq!(refunded.returned, [2], "{name}: the same answer each time");
        }
        let left = limiter.peek("a", 1).await.unwrap().limits()[0].remaining;
        assert_eq!(left, 2, "{name}");
        assert!(matches!(limiter.refund_part(charge, 4).await, Err(Error::Invalid(_))));
    }
}

/// Redisson 7329: after a release more was available than the rate.
async fn a_refund_never_exceeds_the_limit(kit: Kit) {
    for limit in kinds(5) {
        let (name, limiter) = (limit.name().to_owned(), limiter(&kit, limit));
        let decision = limiter.check("a", 3, None).await.unwrap();
        limiter.reset("a").await.unwrap();
        let _refunded = limiter.refund(decision.charge().unwrap()).await.unwrap();
        assert_eq!(limiter.peek("a", 1).await.unwrap().limits()[0].remaining, 5, "{name}");
        assert!(is_allowed(&limiter, "a", 5).await, "{name}");
        assert!(!is_allowed(&limiter, "a", 1).await, "{name}");
    }
}

async fn a_refunded_request_is_charged_anew(kit: Kit) {
    let limiter = limiter(&kit, Limit::bucket("b", 5, HOUR).unwrap());
    let request = RequestId::random();
    for _ in 0..3 {
        let decision = limiter.check("a", 2, Some(&request)).await.unwrap();
        assert_eq!(limiter.peek("a", 1).await.unwrap().limits()[0].remaining, 3);
        let _refunded = limiter.refund(decision.charge().unwrap()).await.unwrap();
        assert_eq!(limiter.peek("a", 1).await.unwrap().limits()[0].remaining, 5);
    }
}

async fn a_reset_forgets(kit: Kit) {
    for limit in kinds(1) {
        let (name, limiter) = (limit.name().to_owned(), limiter(&kit, limit));
        assert!(is_allowed(&limiter, "a", 1).await && is_allowed(&limiter, "b", 1).await);
        limiter.reset("a").await.unwrap();
        assert!(is_allowed(&limiter, "a", 1).await, "{name}");
        assert!(!is_allowed(&limiter, "b", 1).await, "{name}");
    }
}

/// The key under which a limit of `limiter` in these tests is kept.
fn key(kit: &Kit, subject: &str, part: &'static str, name: &str) -> russet::key::Key {
    let family = russet::key::Family { purpose: "limit", version: 1 };
    kit.keys(family, subject).unwrap().item(part, format!("test/{name}"))
}

async fn ttl_ms(kit: &Kit, key: &russet::key::Key) -> i64 {
    kit.call(&russet::Request::new("PTTL").key(key)).await.unwrap().into_int().unwrap()
}

/// Bucket4j 305 and Redisson 3756, 4007, 4301: keys of limiters that stayed for ever. S1 §10: no
/// key of ours outlives its window twice.
async fn keys_have_a_ttl(kit: Kit) {
    for limit in [
        Limit::window("window", 5, MINUTE).unwrap(),
        Limit::log("log", 5, MINUTE).unwrap(),
        Limit::sliding("sliding", 5, MINUTE).unwrap(),
        Limit::bucket("bucket", 5, MINUTE).unwrap(),
        Limit::concurrency("concurrency", 5, MINUTE).unwrap(),
        Limit::quota("quota", 5, Period::Hour).unwrap(),
    ] {
        let name = limit.name().to_owned();
        let limiter = limiter(&kit, limit);
        let decision = limiter.check("a", 2, None).await.unwrap();
        assert!(is_allowed(&limiter, "a", 1).await);
        let part: &'static str = match name.as_str() {
            "window" => "window",
            "log" => "log",
            "sliding" => "sliding",
            "bucket" => "bucket",
            "concurrency" => "concurrency",
            _ => "quota",
        };
        let key = key(&kit, "a", part, &name);
        let longest = if name == "quota" { 3_600_000 } else { 120_000 };
        let ttl = ttl_ms(&kit, &key).await;
        assert!(ttl > 0 && ttl <= longest, "{name}: {ttl}");
        let _refunded = limiter.refund(decision.charge().unwrap()).await.unwrap();
        let ttl = ttl_ms(&kit, &key).await;
        assert!(ttl > 0 && ttl <= longest, "{name} after a refund: {ttl}");
    }
}

/// S1 §10, S2 §13: a client whose clock was fast purged the entries of others. No time is sent at
/// all. BullMQ 269 and Bucket4j 48: it never started anew.
async fn a_window_ends_by_the_servers_clock(kit: Kit) {
    let window = Duration::from_millis(150);
    for limit in [
        Limit::window("window", 2, window).unwrap(),
        Limit::log("log", 2, window).unwrap(),
        Limit::sliding("sliding", 2, window).unwrap(),
        Limit::bucket("bucket", 2, window).unwrap(),
        Limit::concurrency("concurrency", 2, window).unwrap(),
    ] {
        let (name, limiter) = (limit.name().to_owned(), limiter(&kit, limit));
        assert!(is_allowed(&limiter, "a", 2).await, "{name}");
        let deadline = tokio::time::Instant::now() + MINUTE;
        while !is_allowed(&limiter, "a", 2).await {
            assert!(tokio::time::Instant::now() < deadline, "{name} never starts anew");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

async fn slots_are_given_up(kit: Kit) {
    let limiter = limiter(&kit, Limit::concurrency("c", 2, HOUR).unwrap());
    let request = RequestId::random();
    let Entry::Admitted(first) = limiter.enter("a", 1, Some(&request)).await.unwrap() else {
        panic!("there is a place");
    };
    let Entry::Admitted(second) = limiter.enter("a", 1, None).await.unwrap() else {
        panic!("there is a place");
    };
    assert!(matches!(limiter.enter("a", 1, None).await.unwrap(), Entry::Denied(_)));
    assert_eq!(first.renew().await.unwrap(), Renewal::Renewed);
    let charge = first.charge().unwrap().clone();
    first.release().await.unwrap();
    assert_eq!(limiter.renew(&charge).await.unwrap(), Renewal::Lost);
    // The request does not hold a place any more: it takes one again.
    let Entry::Admitted(again) = limiter.enter("a", 1, Some(&request)).await.unwrap() else {
        panic!("there is a place");
    };
    assert_eq!(limiter.peek("a", 1).await.unwrap().limits()[0].remaining, 0);
    // A release that is repeated late takes nobody's place away.
    limiter.release(&charge).await.unwrap();
    assert_eq!(limiter.peek("a", 1).await.unwrap().limits()[0].remaining, 0);
    drop((again, second));
    let deadline = tokio::time::Instant::now() + MINUTE;
    while limiter.peek("a", 2).await.unwrap().limits()[0].remaining < 2 {
        assert!(tokio::time::Instant::now() < deadline, "dropped permits keep their places");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Redisson 4176: the permits of a thread that crashed were never available again.
async fn a_slot_of_a_crashed_holder_runs_out(kit: Kit) {
    let limiter = limiter(&kit, Limit::concurrency("c", 1, Duration::from_millis(100)).unwrap());
    let request = RequestId::random();
    let Decision::Allowed(held) = limiter.check("a", 1, Some(&request)).await.unwrap() else {
        panic!("there is a place");
    };
    let deadline = tokio::time::Instant::now() + MINUTE;
    while !is_allowed(&limiter, "a", 1).await {
        assert!(tokio::time::Instant::now() < deadline, "the place is never free again");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(limiter.renew(&held.charge.unwrap()).await.unwrap(), Renewal::Lost);
}

/// Redisson 5098: a new rate was stored, and the old one went on to hold.
async fn a_new_maximum_holds_at_once(kit: Kit) {
    for (old, new) in kinds(2).into_iter().zip(kinds(4)) {
        let name = old.name().to_owned();
        let (old, new) = (limiter(&kit, old), limiter(&kit, new));
        assert!(is_allowed(&old, "a", 2).await && !is_allowed(&old, "a", 1).await, "{name}");
        // What was used of a bucket is a time: half of the old is half of the new.
        if name != "bucket" {
            assert!(is_allowed(&new, "a", 2).await, "{name}");
        }
        assert!(!is_allowed(&new, "a", 1).await, "{name}");
        assert!(!is_allowed(&old, "a", 1).await, "{name}");
    }
}

/// S0 §7, §24, S1 §7, §14: the counter was written before the TTL was looked at, so that a bad one
/// left an immortal counter, and a TTL of 0 never limited.
async fn arguments_are_refused_before_anything_is_written(kit: Kit) {
    let invalid = |made: Result<Limit, Error>| matches!(made, Err(Error::Invalid(_)));
    assert!(invalid(Limit::window("w", 5, Duration::ZERO)));
    assert!(invalid(Limit::bucket("b", 0, MINUTE)));
    let limiter = limiter(&kit, Limit::window("w", 5, MINUTE).unwrap());
    for cost in [0, 6] {
        assert!(matches!(limiter.check("a", cost, None).await, Err(Error::Invalid(_))));
    }
    // And so says the step itself, to other languages.
    let key = key(&kit, "a", "window", "w");
    let check = russet::step::all().find(|step| step.name() == "limit_check").unwrap();
    for args in [
        ["0", "id", "TAKE", "1", "WINDOW", "5", "0", "0"],
        ["0", "id", "TAKE", "1", "WINDOW", "5", "-1", "0"],
        ["0", "id", "TAKE", "1", "WINDOW", "five", "60000", "0"],
        ["0", "id", "TAKE", "0", "WINDOW", "5", "60000", "0"],
        ["0", "id", "TAKE", "1", "NONE", "5", "60000", "0"],
        ["0", "id", "LOOK", "1", "WINDOW", "5", "60000", "0"],
        ["x", "id", "TAKE", "1", "WINDOW", "5", "60000", "0"],
        ["0", "", "TAKE", "1", "WINDOW", "5", "60000", "0"],
        ["0", "id", "TAKE", "1", "QUOTA", "5", "YEAR", "0"],
        ["0", "id", "TAKE", "1", "BUCKET", "5", "60000", "0"],
    ] {
        let request = russet::Request::new("EVAL").arg(check.source()).arg(2).key(&key).key(&key);
        let request = args.iter().fold(request, |request, arg| request.arg(*arg));
        let refused = kit.call(&request).await;
        assert!(matches!(refused, Err(Error::Invalid(_))), "{args:?}: {refused:?}");
    }
    assert_eq!(ttl_ms(&kit, &key).await, -2, "nothing was written");
}

/// Sidekiq 2704: a window's key had lost its expiry, stood at three million, and blocked for ever.
async fn a_key_without_ttl_is_mended(kit: Kit) {
    let window = Duration::from_millis(100);
    let limiter = limiter(&kit, Limit::window("w", 2, window).unwrap());
    assert!(is_allowed(&limiter, "a", 1).await);
    let key = key(&kit, "a", "window", "w");
    for stuck in [1, 3_000_000] {
        kit.call(&russet::Request::new("SET").key(&key).arg(stuck)).await.unwrap();
        let _mends_it = is_allowed(&limiter, "a", 1).await;
        let ttl = ttl_ms(&kit, &key).await;
        assert!((-2..=100).contains(&ttl) && ttl != -1, "{ttl}");
    }
    let deadline = tokio::time::Instant::now() + MINUTE;
    while !is_allowed(&limiter, "a", 1).await {
        assert!(tokio::time::Instant::now() < deadline, "it blocks for ever");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

async fn parts_of_a_subject_have_their_own_limit(kit: Kit) {
    let limits =
        [Limit::window("tenant", 3, HOUR).unwrap(), Limit::window("per-user", 2, HOUR).unwrap()];
    let limiter = Limiter::new(&kit, "api", limits, Outage::Deny).unwrap();
    let user = |name: &str| Subject::from("acme").of("per-user", name);
    let mut admitted = Vec::new();
    for name in ["ann", "ann", "ann", "bob", "bob", "cat"] {
        admitted.push(limiter.check(user(name), 1, None).await.unwrap().is_allowed());
    }
    assert_eq!(admitted, [true, true, false, true, false, false]);
    let unknown = Subject::from("acme").of("nothing", "x");
    assert!(matches!(limiter.check(unknown, 1, None).await, Err(Error::Invalid(_))));
}

/// S1 §4: keys of one step in different slots. Those of a limiter share that of the subject.
async fn one_step_has_one_slot(kit: Kit) {
    let limiter = Limiter::new(&kit, "all", kinds(5), Outage::Deny).unwrap();
    for subject in ["a", "b", "{c}", "", "d:e"] {
        let request = RequestId::from("{x}");
        let decision = limiter.check(subject, 1, Some(&request)).await.unwrap();
        let _refunded = limiter.refund(decision.charge().unwrap()).await.unwrap();
        limiter.reset(subject).await.unwrap();
    }
}

/// S0 §24: the minute stood in the key beside a TTL of ten minutes: five per minute, not per ten.
async fn one_time_passwords(kit: Kit) {
    let otp = OtpAttempts::new(&kit).unwrap();
    for _ in 0..5 {
        assert!(otp.attempt("acme", "+49 30 901820", None).await.unwrap().is_allowed());
    }
    let denied = otp.attempt("acme", "0049-30-901820", None).await.unwrap();
    assert!(!denied.is_allowed());
    assert!(denied.retry_after() > 9 * MINUTE && denied.retry_after() <= 10 * MINUTE);
    assert!(otp.attempt("other", "+49 30 901820", None).await.unwrap().is_allowed());
    assert!(matches!(otp.attempt("acme", "901820", None).await, Err(Error::Invalid(_))));
    otp.succeeded("acme", "+4930901820").await.unwrap();
    assert!(otp.attempt("acme", "+49 30 901820", None).await.unwrap().is_allowed());
}

async fn logins_are_throttled(kit: Kit) {
    let throttle = LoginThrottle::new(&kit).unwrap();
    let here = Login { tenant: "acme", account: "ann", address: "192.0.2.1" };
    let elsewhere = Login { address: "192.0.2.2", ..here };
    let attempt = async |login: &Login<'_>| throttle.attempt(login, None).await.unwrap();
    for _ in 0..5 {
        assert!(attempt(&here).await.is_allowed());
    }
    assert!(!attempt(&here).await.is_allowed());
    // The owner, at home, is not locked out.
    let decision = attempt(&elsewhere).await;
    assert!(decision.is_allowed());
    throttle.succeeded(&elsewhere, &decision).await.unwrap();
    assert!(!attempt(&here).await.is_allowed(), "nor is the stranger let in by that");
    let other = Login { account: "bob", ..here };
    assert!(attempt(&other).await.is_allowed());
}

/// S1 §5: the quota by WATCH, under contention.
async fn a_watched_quota_is_exact(kit: Kit) {
    let quota = WatchQuota::new(&kit, "exports", 20, HOUR).unwrap();
    let tasks: Vec<_> = (0..8)
        .map(|_| {
            let quota = quota.clone();
            tokio::spawn(async move {
                let mut spent = 0;
                for _ in 0..8 {
                    match quota.spend("a", 1, None).await {
                        Ok(Spent::Within { .. }) => spent += 1,
                        Ok(_) | Err(Error::Contention { .. }) => {}
                        Err(error) => panic!("{error}"),
                    }
                }
                spent
            })
        })
        .collect();
    let mut spent = 0;
    for task in tasks {
        spent += task.await.unwrap();
    }
    assert!(spent <= 20, "{spent}");
    // What contention left is there for who comes alone.
    while let Spent::Within { .. } = quota.spend("a", 1, None).await.unwrap() {
        spent += 1;
    }
    assert_eq!(spent, 20);
}

async fn a_watched_quota_charges_a_request_once(kit: Kit) {
    let quota = WatchQuota::new(&kit, "exports", 5, HOUR).unwrap();
    let request = RequestId::random();
    let first = quota.spend("a", 3, Some(&request)).await.unwrap();
    assert_eq!(first, Spent::Within { remaining: 2 });
    assert_eq!(quota.spend("a", 3, Some(&request)).await.unwrap(), Spent::Already);
    assert!(matches!(quota.spend("a", 3, None).await.unwrap(), Spent::Exceeded { .. }));
    assert_eq!(quota.spend("a", 2, None).await.unwrap(), Spent::Within { remaining: 0 });
}

/// S1 §5: EXPIRE on each success made the window slide: who came often was never let in again.
async fn a_watched_window_does_not_slide(kit: Kit) {
    let quota = WatchQuota::new(&kit, "exports", 10_000, Duration::from_millis(300)).unwrap();
    let deadline = tokio::time::Instant::now() + MINUTE;
    let mut last = u64::MAX;
    // Each spends before the window ends; it ends all the same.
    loop {
        let Spent::Within { remaining } = quota.spend("a", 1, None).await.unwrap() else {
            panic!("there is plenty");
        };
        // As much as before: each of them was the first of a window, on a machine that is so slow.
        if remaining >= last {
            break;
        }
        last = remaining;
        assert!(tokio::time::Instant::now() < deadline, "the window slides");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[test]
fn a_limiter_needs_sense() {
    let kit = Kit::embedded(russet::Options::default()).unwrap();
    let refused = |limits: Vec<Limit>, outage| {
        matches!(Limiter::new(&kit, "test", limits, outage), Err(Error::Invalid(_)))
    };
    let limit = || Limit::window("w", 5, MINUTE).unwrap();
    assert!(refused(vec![], Outage::Deny));
    assert!(refused(vec![limit(), limit()], Outage::Deny));
    assert!(refused(vec![limit()], Outage::LocalShare { processes: 0 }));
    assert!(Limiter::new(&kit, "Test", [limit()], Outage::Deny).is_err());
    let debug = format!("{:?}", Scope::sensitive("ann@example.org"));
    assert!(!debug.contains("ann"));
}

#[tokio::test]
async fn a_pre_limit_spares_the_store() {
    let time = russet::ManualTime::new();
    let kit = Kit::builder().embedded_at(russet::Options::default(), &time).unwrap();
    let limiter = limiter(&kit, Limit::window("w", 100, HOUR).unwrap());
    let limiter = limiter.with_pre_limit(10, Duration::from_secs(1)).unwrap();
    let mut allowed = 0;
    for _ in 0..50 {
        let decision = limiter.check("a", 1, None).await.unwrap();
        match decision.is_allowed() {
            true => allowed += 1,
            false => assert_eq!(decision.basis(), Basis::PreLimit),
        }
    }
    assert_eq!(allowed, 10);
    assert_eq!(limiter.stats().pre_limited, 40);
    time.advance(Duration::from_secs(1));
    assert!(is_allowed(&limiter, "a", 10).await);
}

/// A request id was remembered without the limiter: a second limiter of the same subject allowed
/// what the first had allowed, and charged nothing.
async fn an_id_is_charged_once_by_each_limiter(kit: Kit) {
    let request = RequestId::from("one id");
    let hour = Duration::from_secs(3600);
    for name in ["api", "sms"] {
        let limits = [Limit::window("w", 1, hour).unwrap()];
        let limiter = Limiter::new(&kit, name, limits, Outage::Deny).unwrap();
        for _ in 0..2 {
            let decision = limiter.check("ann", 1, Some(&request)).await.unwrap();
            assert!(decision.is_allowed(), "{name}");
        }
        assert_eq!(limiter.peek("ann", 1).await.unwrap().limits()[0].remaining, 0, "{name}");
    }
}
