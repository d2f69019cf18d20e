//! A request is carried out once.

use russet::idempotency::{
    Claim, ClaimStatus, Failure, Fingerprint, Idempotency, IdempotencyKey, Mark, Outcome, Run,
    Status, Ttls,
};
use russet::{Error, Kit, ManualTime, Options, RequestId};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

russet_toolkit_tests::on_every_backend! {
    one_of_many_is_claimed
    a_closure_runs_once_among_many_tasks
    a_completed_request_is_replayed
    the_same_owner_may_claim_complete_and_fail_again
    a_retryable_failure_lets_the_next_try
    a_final_failure_is_said_again
    another_request_under_the_same_key_is_a_mismatch
    tenants_do_not_share_keys
    a_stale_worker_can_not_complete
    an_abandoned_claim_is_taken_over_in_real_time
    a_marker_is_set_once
    a_waiting_caller_gets_the_replay
}

const DAY: Duration = Duration::from_secs(86_400);
const TTLS: Ttls = Ttls { claim: Duration::from_secs(30), result: DAY };

fn orders(kit: &Kit) -> Idempotency {
    Idempotency::new(kit, "create-order", TTLS).unwrap()
}

fn key(text: &str) -> IdempotencyKey {
    IdempotencyKey::new("acme", text)
}

async fn claimed(store: &Idempotency, key: &IdempotencyKey) -> Claim {
    match store.claim(key, "request").await.unwrap() {
        Outcome::Claimed(claim) => claim,
        other => panic!("{other:?}"),
    }
}

async fn one_of_many_is_claimed(kit: Kit) {
    let store = orders(&kit);
    let tasks: Vec<_> = (0..32)
        .map(|_| {
            let store = store.clone();
            tokio::spawn(async move { store.claim(&key("a"), "request").await.unwrap() })
        })
        .collect();
    let (mut claims, mut busy) = (0, 0);
    for task in tasks {
        match task.await.unwrap() {
            Outcome::Claimed(_) => claims += 1,
            Outcome::InFlight { retry_after } => {
                assert!(retry_after <= TTLS.claim);
                busy += 1;
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!((claims, busy), (1, 31));
    assert_eq!(store.stats().claimed, 1);
}

/// idempot-js issue 182: two requests at the same time overwrote each other's record, and both ran.
async fn a_closure_runs_once_among_many_tasks(kit: Kit) {
    let store = orders(&kit).waiting(Duration::from_secs(60));
    let runs = Arc::new(AtomicU32::new(0));
    let tasks: Vec<_> = (0..32)
        .map(|_| {
            let (store, runs) = (store.clone(), runs.clone());
            tokio::spawn(async move {
                let work = || async move {
                    tokio::task::yield_now().await;
                    Ok(runs.fetch_add(1, Ordering::SeqCst) + 1)
                };
                store.idempotent(&key("a"), "request", work).await.unwrap()
            })
        })
        .collect();
    let mut done = 0;
    for task in tasks {
        match task.await.unwrap() {
            Run::Done(1) => done += 1,
            Run::Replay(1) => {}
            other => panic!("{other:?}"),
        }
    }
    assert_eq!((done, runs.load(Ordering::SeqCst)), (1, 1));
}

async fn a_completed_request_is_replayed(kit: Kit) {
    let store = orders(&kit);
    let claim = claimed(&store, &key("a")).await;
    assert_eq!(claim.complete(b"order 1").await, Ok(ClaimStatus::Kept));
    let outcome = store.claim(&key("a"), "request").await.unwrap();
    assert!(matches!(outcome, Outcome::Replay(body) if body == b"order 1"));
    assert_eq!(store.status(&key("a")).await, Ok(Status::Completed { attempt: 1 }));
    store.forget(&key("a")).await.unwrap();
    assert_eq!(store.status(&key("a")).await, Ok(Status::Absent));
    let too_large = vec![0; russet::idempotency::BODY_BYTES_MAX + 1];
    let claim = claimed(&store, &key("b")).await;
    assert!(matches!(claim.complete(too_large).await, Err(Error::Invalid(_))));
}

/// S1 §9: the owner's own repetition was BUSY, and a repeated complete failed. Both are what a
/// retry after a lost reply looks like.
async fn the_same_owner_may_claim_complete_and_fail_again(kit: Kit) {
    let store = orders(&kit);
    let claim = claimed(&store, &key("a")).await;
    assert_eq!(claim.renew().await, Ok(ClaimStatus::Kept));
    assert_eq!(claim.complete("first").await, Ok(ClaimStatus::Kept));
    assert_eq!(claim.complete("second").await, Ok(ClaimStatus::Kept));
    let outcome = store.claim(&key("a"), "request").await.unwrap();
    assert!(matches!(outcome, Outcome::Replay(body) if body == b"first"));
    // What is completed does not fail any more, nor is it renewed.
    assert_eq!(claim.fail(&Failure::terminal("late")).await, Ok(ClaimStatus::Lost));
    assert_eq!(claim.renew().await, Ok(ClaimStatus::Lost));

    let failed = claimed(&store, &key("b")).await;
    let failure = Failure::retryable("upstream_timeout");
    assert_eq!(failed.fail(&failure).await, Ok(ClaimStatus::Kept));
    assert_eq!(failed.fail(&failure).await, Ok(ClaimStatus::Kept));
    assert_eq!(store.status(&key("b")).await, Ok(Status::Failed { attempt: 1, failure }));
}

/// S1 §9: FAILED_RETRYABLE answered BUSY for ever; there was no way to claim again.
async fn a_retryable_failure_lets_the_next_try(kit: Kit) {
    let store = orders(&kit);
    let first = store
        .idempotent::<u32, _>(&key("a"), "request", || async { Err(Failure::retryable("down")) })
        .await;
    assert_eq!(first, Ok(Run::Failed(Failure::retryable("down"))));
    let claim = claimed(&store, &key("a")).await;
    assert_eq!((claim.attempt(), claim.is_takeover()), (2, false));
    assert_eq!(claim.complete("7").await, Ok(ClaimStatus::Kept));
    let replay = store.idempotent(&key("a"), "request", || async { Ok(8) }).await;
    assert_eq!(replay, Ok(Run::Replay(7)));
}

/// S1 §9: FAILED_FINAL answered BUSY, so that clients waited for what never came.
async fn a_final_failure_is_said_again(kit: Kit) {
    let store = orders(&kit);
    let failure = Failure::terminal("card_declined");
    let claim = claimed(&store, &key("a")).await;
    assert_eq!(claim.fail(&failure).await, Ok(ClaimStatus::Kept));
    let outcome = store.claim(&key("a"), "request").await.unwrap();
    assert!(matches!(outcome, Outcome::Failed(said) if said == failure));
    let again = store.idempotent(&key("a"), "request", || async { Ok(1) }).await;
    assert_eq!(again, Ok(Run::Failed(failure)));
}

/// S1 §9: no fingerprint, so that another request got the response of the first.
async fn another_request_under_the_same_key_is_a_mismatch(kit: Kit) {
    let store = orders(&kit);
    let claim = claimed(&store, &key("a")).await;
    let same_key = key("a");
    let other = || store.claim(&same_key, "another request");
    assert!(matches!(other().await.unwrap(), Outcome::Mismatch));
    assert_eq!(claim.complete("done").await, Ok(ClaimStatus::Kept));
    assert!(matches!(other().await.unwrap(), Outcome::Mismatch));
    let one = Fingerprint::of_json(&std::collections::HashMap::from([("a", 1), ("b", 2)]));
    let two = Fingerprint::of_json(&std::collections::BTreeMap::from([("b", 2), ("a", 1)]));
    assert_eq!(one, two);
}

/// S1 §3: the raw key of a client without its tenant.
async fn tenants_do_not_share_keys(kit: Kit) {
    let store = orders(&kit);
    let (one, two) = (IdempotencyKey::new("acme", "a"), IdempotencyKey::new("bolt", "a"));
    let claim = claimed(&store, &one).await;
    assert_eq!(claim.complete("of acme").await, Ok(ClaimStatus::Kept));
    let _of_bolt = claimed(&store, &two).await;
    let payments = Idempotency::new(&kit, "pay", TTLS).unwrap();
    let _of_another_operation = claimed(&payments, &one).await;
    assert!(!format!("{one:?} {store:?}").contains("acme"));
    let empty = store.claim(&key(""), "request").await;
    assert!(matches!(empty, Err(Error::Invalid(_))));
}

/// S0 §5, §18: without an owner a stale worker completes the claim of another.
async fn a_stale_worker_can_not_complete(kit: Kit) {
    let ttls = Ttls { claim: Duration::from_millis(50), result: DAY };
    let store = Idempotency::new(&kit, "create-order", ttls).unwrap();
    let stale = claimed(&store, &key("a")).await;
    let fresh = taken_over(&store, &key("a")).await;
    assert!(fresh.is_takeover());
    assert_eq!(stale.renew().await, Ok(ClaimStatus::Lost));
    assert_eq!(stale.complete("of the stale one").await, Ok(ClaimStatus::Lost));
    assert_eq!(stale.fail(&Failure::terminal("late")).await, Ok(ClaimStatus::Lost));
    assert_eq!(fresh.complete("of the fresh one").await, Ok(ClaimStatus::Kept));
    let outcome = store.claim(&key("a"), "request").await.unwrap();
    assert!(matches!(outcome, Outcome::Replay(body) if body == b"of the fresh one"));
}

/// Claims until the claim before is over.
async fn taken_over(store: &Idempotency, key: &IdempotencyKey) -> Claim {
    loop {
        match store.claim(key, "request").await.unwrap() {
            Outcome::Claimed(claim) => return claim,
            Outcome::InFlight { retry_after } => tokio::time::sleep(retry_after).await,
            other => panic!("{other:?}"),
        }
    }
}

async fn an_abandoned_claim_is_taken_over_in_real_time(kit: Kit) {
    let ttls = Ttls { claim: Duration::from_millis(100), result: DAY };
    let store = Idempotency::new(&kit, "create-order", ttls).unwrap();
    drop(claimed(&store, &key("b")).await);
    let claim = taken_over(&store, &key("b")).await;
    assert_eq!((claim.attempt(), claim.is_takeover()), (2, true));
    // Nothing is kept for ever.
    let ttls = Ttls { result: Duration::from_millis(150), ..ttls };
    let store = Idempotency::new(&kit, "create-order", ttls).unwrap();
    drop(claimed(&store, &key("a")).await);
    while store.status(&key("a")).await != Ok(Status::Absent) {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// S0 §30: exactly one is claimed, others are told so; S1 §16: a claim may be tried again.
async fn a_marker_is_set_once(kit: Kit) {
    let store = orders(&kit);
    let id = RequestId::random();
    assert_eq!(store.try_claim(&key("a"), DAY, Some(&id)).await, Ok(Mark::Claimed));
    assert_eq!(store.try_claim(&key("a"), DAY, Some(&id)).await, Ok(Mark::Claimed));
    let second = store.try_claim(&key("a"), DAY, None).await.unwrap();
    assert!(matches!(second, Mark::AlreadyExists { expires_in } if expires_in <= DAY));
    // A TTL of nothing is refused before anything is written (S0 §7).
    let refused = store.try_claim(&key("b"), Duration::ZERO, None).await;
    assert!(matches!(refused, Err(Error::Invalid(_))));
    assert_eq!(store.try_claim(&key("b"), DAY, None).await, Ok(Mark::Claimed));
}

async fn a_waiting_caller_gets_the_replay(kit: Kit) {
    let store = orders(&kit);
    let claim = claimed(&store, &key("a")).await;
    let busy = store.idempotent(&key("a"), "request", || async { Ok(2) }).await.unwrap();
    assert!(matches!(busy, Run::InFlight { .. }));
    let waiting = store.clone().waiting(Duration::from_secs(60));
    let waiter = tokio::spawn(async move {
        waiting.idempotent(&key("a"), "request", || async { Ok(2) }).await.unwrap()
    });
    assert_eq!(claim.complete("1").await, Ok(ClaimStatus::Kept));
    assert_eq!(waiter.await.unwrap(), Run::Replay(1));
}

/// actor-ts issue 984, S0 §5: the claim had the TTL of the response, so that a crash blocked the
/// key for a day; powertools-lambda-typescript issue 5678: a running claim must not count as
/// abandoned.
#[tokio::test]
async fn a_crash_blocks_no_longer_than_the_claim() {
    let time = ManualTime::new();
    let kit = Kit::builder().embedded_at(Options::default(), &time).unwrap();
    let store = orders(&kit);
    drop(claimed(&store, &key("a")).await);
    time.advance(TTLS.claim - Duration::from_millis(1));
    let outcome = store.claim(&key("a"), "request").await.unwrap();
    assert!(
        matches!(outcome, Outcome::InFlight { retry_after } if retry_after.as_millis() == 1),
        "{outcome:?}"
    );
    time.advance(Duration::from_millis(1));
    // The fingerprint outlives the claim.
    assert!(matches!(store.claim(&key("a"), "other").await.unwrap(), Outcome::Mismatch));
    let claim = claimed(&store, &key("a")).await;
    assert!(claim.is_takeover());
    assert_eq!(store.stats().taken_over, 1);
    assert_eq!(claim.complete("done").await, Ok(ClaimStatus::Kept));
    time.advance(DAY - Duration::from_millis(1));
    assert!(matches!(store.claim(&key("a"), "request").await.unwrap(), Outcome::Replay(_)));
    time.advance(Duration::from_millis(1));
    assert_eq!(store.status(&key("a")).await, Ok(Status::Absent));
}

/// A clock that was set back made the claim of a worker that had died last longer by the step.
#[tokio::test]
async fn a_clock_set_back_makes_no_claim_longer() {
    let time = ManualTime::new();
    let kit = Kit::builder().embedded_at(Options::default(), &time).unwrap();
    let store = orders(&kit);
    drop(claimed(&store, &key("a")).await);
    time.set_ms(time.now_ms() - 3_600_000);
    let status = store.status(&key("a")).await.unwrap();
    let is_right = |retry_after: Duration| retry_after == TTLS.claim;
    assert!(
        matches!(status, Status::InProgress { retry_after, .. } if is_right(retry_after)),
        "{status:?}"
    );
    let outcome = store.claim(&key("a"), "request").await.unwrap();
    assert!(
        matches!(outcome, Outcome::InFlight { retry_after } if is_right(retry_after)),
        "{outcome:?}"
    );
    time.advance(TTLS.claim);
    assert!(claimed(&store, &key("a")).await.is_takeover());
}

/// S1 §9: no renewal, so that work longer than the claim ran twice.
#[tokio::test]
async fn long_work_keeps_its_claim() {
    let time = ManualTime::new();
    let kit = Kit::builder().embedded_at(Options::default(), &time).unwrap();
    let store = orders(&kit);
    let (finish, finished) = tokio::sync::oneshot::channel::<()>();
    let worker = tokio::spawn({
        let store = store.clone();
        let work = || async { finished.await.map_err(|_| Failure::retryable("gone")) };
        async move { store.idempotent(&key("a"), "request", work).await.unwrap() }
    });
    for _ in 0..20 {
        // Lets the worker renew before time moves on.
        for _ in 0..20 {
            tokio::task::yield_now().await;
        }
        time.advance(TTLS.claim / 3);
    }
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
    let outcome = store.claim(&key("a"), "request").await.unwrap();
    assert!(matches!(outcome, Outcome::InFlight { .. }), "{outcome:?}");
    finish.send(()).unwrap();
    assert_eq!(worker.await.unwrap(), Run::Done(()));
}

#[tokio::test]
async fn what_makes_no_sense_is_refused() {
    let kit = Kit::embedded(Options::default()).unwrap();
    let (none, short) = (Duration::ZERO, Duration::from_millis(1));
    for ttls in [Ttls { claim: none, result: DAY }, Ttls { claim: DAY, result: short }] {
        assert!(matches!(Idempotency::new(&kit, "pay", ttls), Err(Error::Invalid(_))));
    }
    assert!(matches!(Idempotency::new(&kit, "", TTLS), Err(Error::Invalid(_))));
}
