//! Every second reply is lost after its call has run: what is tried again must not happen twice.

use russet::cache::{Cache, Invalidation, LoadError, Lookup, Policy as CachePolicy};
use russet::counter::{Overflow, PackedCounters, ShardedCounter, Width, Windows};
use russet::flag::{FlagTerms, Flags};
use russet::idempotency::{ClaimStatus, Failure, Idempotency, IdempotencyKey, Outcome, Run, Ttls};
use russet::queue::{Bounds, List};
use russet::session::{
    Created, Lookup as Found, MfaOutcome, NewSession, Policy as SessionPolicy, Revoked, Rotated,
    Sessions, Timeouts, User,
};
use russet::state::{Indexed, Marker};
use russet::token::reset::{Consumed, ResetTokens};
use russet::token::{Check, Issued, NewToken, Policy as TokenPolicy, Tokens};
use russet::{Error, Kit, Options, RequestId};
use russet_toolkit_tests::{Fault, faulty};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::time::Duration;

const MINUTE: Duration = Duration::from_secs(60);

/// A kit that runs every call, and loses every second reply.
fn kit() -> Kit {
    let (kit, faults) = faulty(&Kit::embedded(Options::default()).unwrap());
    faults.set(|number| if number.is_multiple_of(2) { Fault::ReplyLost } else { Fault::None });
    kit
}

#[tokio::test]
async fn a_request_is_carried_out_once() {
    let kit = kit();
    let ttls = Ttls { claim: MINUTE, result: MINUTE };
    let store = Idempotency::new(&kit, "pay", ttls).unwrap();
    let runs = AtomicU32::new(0);
    for number in 0..20 {
        let key = IdempotencyKey::new("acme", format!("{number}"));
        let pay = || async {
            runs.fetch_add(1, SeqCst);
            Ok::<_, Failure>(number)
        };
        assert_eq!(store.idempotent(&key, "pay", pay).await, Ok(Run::Done(number)));
        assert_eq!(store.idempotent(&key, "pay", pay).await, Ok(Run::Replay(number)));
    }
    assert_eq!(runs.load(SeqCst), 20);
    let failing = IdempotencyKey::new("acme", "failing");
    let Outcome::Claimed(claim) = store.claim(&failing, "pay").await.unwrap() else {
        panic!("not claimed");
    };
    assert_eq!((claim.attempt(), claim.is_takeover()), (1, false));
    assert_eq!(claim.renew().await, Ok(ClaimStatus::Kept));
    assert_eq!(claim.fail(&Failure::retryable("down")).await, Ok(ClaimStatus::Kept));
}

#[tokio::test]
async fn a_value_is_loaded_once_and_stored() {
    let kit = kit();
    let cache: Cache<u32> = Cache::new(&kit, "numbers", CachePolicy::new(MINUTE)).unwrap();
    for number in 0..20 {
        let load = move || async move { Ok::<_, LoadError>(Some(number)) };
        let id = format!("{number}");
        assert_eq!(cache.fetch(id.clone(), load).await.unwrap(), Some(number));
        assert_eq!(cache.fetch(id.clone(), load).await.unwrap(), Some(number));
        assert_eq!(cache.invalidate(id.clone()).await, Ok(Invalidation::Done));
        assert_eq!(cache.get(id, &[]).await, Ok(Lookup::Missing));
    }
    let stats = cache.stats();
    assert_eq!((stats.loads, stats.stale_writes, stats.direct_loads), (20, 0, 0));
    // A tag is invalidated by a plain command, which is tried in the background.
    let load = move || async move { Ok::<_, LoadError>(Some(1)) };
    assert_eq!(cache.fetch_tagged("a", &["tag"], load).await.unwrap(), Some(1));
    let _ = cache.invalidate_tag("tag").await.unwrap();
    cache.flush_invalidations().await;
    assert_eq!(cache.get("a", &["tag"]).await, Ok(Lookup::Missing));
}

/// What is read, or set, by one plain command was not tried again, though its class is safe.
#[tokio::test]
async fn plain_commands_are_tried_again() {
    let kit = kit();
    let list = List::builder(&kit, "list", Bounds { capacity: 10, ttl: MINUTE }).build().unwrap();
    let marker = Marker::new(&kit, "marker", MINUTE).unwrap();
    let objects = Indexed::new(&kit, "objects", MINUTE, 10).unwrap();
    let flags = Flags::new(&kit, "acme", FlagTerms::new(MINUTE)).unwrap();
    let width = [("a", Width::unsigned(8).unwrap())];
    let packed = PackedCounters::new(&kit, "packed", width, Overflow::Wrap, MINUTE).unwrap();
    let sharded = ShardedCounter::new(&kit, "n", Windows::of(MINUTE).unwrap(), 2).unwrap();
    let resets = ResetTokens::new(&kit, "password", MINUTE).unwrap();
    let ttls = Ttls { claim: MINUTE, result: MINUTE };
    let store = Idempotency::new(&kit, "pay", ttls).unwrap();
    for _ in 0..4 {
        assert_eq!(list.len().await, Ok(0));
        assert_eq!(marker.read().await, Ok(None));
        assert_eq!(objects.load("o").await, Ok(None));
        assert_eq!(flags.is_member("beta", "ann").await, Ok(false));
        assert_eq!(flags.leave("beta", "ann").await, Ok(false));
        assert_eq!(packed.read("a").await, Ok(vec![0]));
        assert_eq!(sharded.fast("a", 0, MINUTE).await, Ok(0));
        assert_eq!(resets.revoke(&User::new("acme", "ann")).await, Ok(()));
        assert_eq!(store.forget(&IdempotencyKey::new("acme", "a")).await, Ok(()));
    }
}

#[tokio::test]
async fn sessions_are_made_rotated_and_revoked_once() {
    let kit = kit();
    let timeouts = Timeouts { idle: MINUTE, absolute: MINUTE };
    let sessions = Sessions::new(&kit, SessionPolicy::new(timeouts, 3)).unwrap();
    let user = User::new("acme", "ann");
    for number in 0..10 {
        let new = NewSession::of(&user).mfa_required();
        let Created::Created(id) = sessions.create(&new).await.unwrap() else { panic!("full") };
        assert_eq!(sessions.begin_mfa(&id, "right").await, Ok(MfaOutcome::Challenged));
        let request = RequestId::random();
        let wrong = sessions.verify_mfa(&id, "wrong", Some(&request)).await;
        assert_eq!(wrong, Ok(MfaOutcome::Mismatch { attempts_left: 4 }));
        let right = sessions.verify_mfa(&id, "right", Some(&RequestId::random())).await;
        assert_eq!(right, Ok(MfaOutcome::Verified));
        let Ok(Rotated::Rotated(id)) = sessions.rotate(&id).await else { panic!("not rotated") };
        assert!(matches!(sessions.find(&id).await, Ok(Found::Found(_))));
        assert_eq!(sessions.list(&user).await.unwrap().len(), 3.min(number + 1));
    }
    // Without a request id nothing that counts is tried again: whether it ran is not known.
    let Created::Created(id) = sessions.create(&NewSession::of(&user)).await.unwrap() else {
        panic!("full");
    };
    let mut known = 0;
    for _ in 0..4 {
        match sessions.fail_mfa(&id, None).await {
            Ok(MfaOutcome::Mismatch { .. }) => known += 1,
            Err(Error::Unknown(_)) => {}
            other => panic!("{other:?}"),
        }
    }
    let Ok(Found::Found(session)) = sessions.find(&id).await else { panic!("not found") };
    assert!(known < 4 && (known..=4).contains(&session.failed_mfa_attempts));
    // All end, though the count of those that did is that of the last attempt.
    assert!(matches!(sessions.revoke_all(&user, "stolen").await, Ok(Revoked { count: 0 | 3 })));
    assert_eq!(sessions.list(&user).await, Ok(Vec::new()));
}

#[tokio::test]
async fn tokens_are_issued_and_consumed_once() {
    let kit = kit();
    let audited = Arc::new(AtomicU32::new(0));
    let policy = TokenPolicy { tokens_max: 10, safety: MINUTE };
    let tokens = Tokens::new(&kit, policy).unwrap().audited({
        let audited = audited.clone();
        move |_event| {
            audited.fetch_add(1, SeqCst);
        }
    });
    let user = User::new("acme", "ann");
    let new = NewToken { kind: "api", scopes: "read", ttl: MINUTE };
    for number in 1..=10 {
        let Issued::Issued(token) = tokens.issue(&user, &new).await.unwrap() else {
            panic!("full");
        };
        assert!(matches!(tokens.check(&token).await, Ok(Check::Valid(_))));
        assert_eq!(tokens.list(&user).await.unwrap().len(), number);
    }
    assert_eq!((tokens.issue(&user, &new).await, audited.load(SeqCst)), (Ok(Issued::Full), 10));

    let resets = ResetTokens::new(&kit, "password", MINUTE).unwrap();
    for _ in 0..10 {
        let token = resets.issue(&user).await.unwrap();
        let (one, two) = (RequestId::random(), RequestId::random());
        let consumed = resets.consume(&token, Some(&one)).await;
        assert_eq!(consumed, Ok(Consumed::Consumed(user.clone())));
        assert_eq!(resets.consume(&token, Some(&two)).await, Ok(Consumed::Unknown));
    }
}
