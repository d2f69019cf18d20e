//! A session lives as long as it should, is never half there, and ends for all at once.

use russet::key::{Family, Scope};
use russet::session::{
    AuthLevel, Authorization, Created, Lookup, MfaOutcome, NewSession, Policy, Revoked, Rotated,
    Session, SessionHandle, SessionId, Sessions, Status, Timeouts, User, WhenFull,
};
use russet::{Error, Kit, ManualTime, Options, Request, RequestId};
use std::collections::HashSet;
use std::time::Duration;

russet_toolkit_tests::on_every_backend! {
    a_session_is_found_until_it_is_revoked
    no_write_brings_a_revoked_session_back
    what_is_gone_is_not_made_anew
    half_a_session_is_corrupt
    ids_are_not_stored
    a_challenge_is_met_once_and_only_by_its_answer
    attempts_have_an_end
    a_retried_failure_counts_once
    a_challenge_ends_in_real_time
    all_sessions_are_revoked_at_once
    all_sessions_but_one
    log_ins_and_revoke_all_at_the_same_time
    rotation_makes_the_old_id_worthless
    an_old_id_still_logs_out
    a_user_has_no_more_sessions_than_allowed
    an_index_never_leaks
    keys_of_a_user_share_a_slot_and_users_spread
}

const TIMEOUTS: Timeouts =
    Timeouts { idle: Duration::from_secs(1000), absolute: Duration::from_secs(10_000) };

fn sessions(kit: &Kit) -> Sessions {
    Sessions::new(kit, Policy::new(TIMEOUTS, 5)).unwrap()
}

fn ann() -> User {
    User::new("acme", "ann")
}

async fn log_in(sessions: &Sessions, new: &NewSession<'_>) -> SessionId {
    match sessions.create(new).await.unwrap() {
        Created::Created(id) => id,
        Created::Full => panic!("full"),
    }
}

async fn found(sessions: &Sessions, id: &SessionId) -> Session {
    match sessions.find(id).await.unwrap() {
        Lookup::Found(session) | Lookup::ExpiredChallenge(session) => session,
        other => panic!("{other:?}"),
    }
}

fn is_granted(authorization: &Authorization) -> bool {
    matches!(authorization, Authorization::Granted(_))
}

/// All keys of the kit, as texts, on a backend of one node.
async fn keys(kit: &Kit) -> Vec<Vec<u8>> {
    let scanned = kit.call(&Request::new("KEYS").arg("*")).await.unwrap().into_list().unwrap();
    scanned.into_iter().map(|key| key.into_bytes().unwrap().unwrap()).collect()
}

/// connect-redis issue 328: a request that ended after the log-out brought the session back.
async fn a_session_is_found_until_it_is_revoked(kit: Kit) {
    let sessions = sessions(&kit);
    let id = log_in(&sessions, &NewSession::of(&ann()).from("10.1.2.3", "a browser")).await;
    let parsed = SessionId::parse(id.as_str()).unwrap();
    let Authorization::Granted(context) = sessions.authorize(&parsed).await.unwrap() else {
        panic!("not granted");
    };
    assert_eq!((context.user, context.auth_level), (ann(), AuthLevel::Basic));
    let session = found(&sessions, &id).await;
    assert_eq!((session.status, session.failed_mfa_attempts), (Status::Active, 0));
    assert!(session.created_at_ms > 1_600_000_000_000 && session.expires_in <= TIMEOUTS.idle);

    let touched = sessions.touch(&id).await.unwrap();
    assert!(is_granted(&touched.authorization) && !touched.is_refreshed);
    assert_eq!(sessions.revoke(&id, "logout").await, Ok(Revoked { count: 1 }));
    // A retry changes nothing, and a touch does not bring it back.
    assert_eq!(sessions.revoke(&id, "again").await, Ok(Revoked { count: 0 }));
    assert_eq!(sessions.authorize(&id).await, Ok(Authorization::Revoked));
    assert_eq!(sessions.heartbeat(&id).await.unwrap().authorization, Authorization::Revoked);
    let session = found(&sessions, &id).await;
    assert_eq!(session.status, Status::Revoked);
    assert_eq!(session.revoked_reason.as_deref(), Some("logout"));
    assert!(session.expires_in <= Duration::from_secs(3600));
    assert_eq!(sessions.list(&ann()).await, Ok(Vec::new()));
}

/// S4 §10: saving a session that was read before it was revoked overwrote REVOKED. Nothing here
/// saves a whole session; whatever else writes, at the same time or later, leaves it revoked.
async fn no_write_brings_a_revoked_session_back(kit: Kit) {
    let sessions = sessions(&kit);
    let id = log_in(&sessions, &NewSession::of(&ann()).mfa_required()).await;
    async fn write(sessions: &Sessions, id: &SessionId, number: u32) {
        let written = match number % 4 {
            0 => sessions.heartbeat(id).await.map(|_touched| ()),
            1 => sessions.begin_mfa(id, "right").await.map(|_outcome| ()),
            2 => sessions.verify_mfa(id, "right", None).await.map(|_outcome| ()),
            _ => sessions.touch(id).await.map(|_touched| ()),
        };
        written.unwrap();
    }
    let mut tasks = tokio::task::JoinSet::new();
    for task in 0..16 {
        let (sessions, id) = (sessions.clone(), id.clone());
        tasks.spawn(async move {
            for number in 0..8 {
                write(&sessions, &id, task + number).await;
                if (task, number) == (0, 4) {
                    let _ = sessions.revoke(&id, "stolen").await.unwrap();
                }
            }
        });
    }
    while let Some(ended) = tasks.join_next().await {
        ended.unwrap();
    }
    for number in 0..4 {
        write(&sessions, &id, number).await;
        assert_eq!(sessions.authorize(&id).await, Ok(Authorization::Revoked));
    }
    assert_eq!(sessions.rotate(&id).await, Ok(Rotated::Revoked));
    assert_eq!(found(&sessions, &id).await.revoked_reason.as_deref(), Some("stolen"));
}

/// S3, S4 §12: the interceptor read the whole hash with every request.
#[test]
fn the_hot_path_reads_no_whole_hash() {
    for name in ["session_authorize", "session_touch"] {
        let step = russet::step::all().find(|step| step.name() == name).unwrap();
        let source = step.source();
        assert!(source.contains("HMGET") && !source.contains("HGETALL"), "{name}");
    }
}

/// S4 §11: updateLastSeen, increment and revoke on an expired session made a hash of one field
/// without a TTL.
async fn what_is_gone_is_not_made_anew(kit: Kit) {
    let sessions = sessions(&kit);
    let id = log_in(&sessions, &NewSession::of(&ann())).await;
    let handle = sessions.list(&ann()).await.unwrap().remove(0);
    let family = Family { purpose: "session", version: 1 };
    let tag = &id.as_str()[..32];
    let state = kit.keys(family, Scope::from(tag)).unwrap().item("state", handle.member());
    kit.call(&Request::new("DEL").key(&state)).await.unwrap();

    assert_eq!(sessions.authorize(&id).await, Ok(Authorization::Missing));
    assert_eq!(sessions.touch(&id).await.unwrap().authorization, Authorization::Missing);
    assert_eq!(sessions.heartbeat(&id).await.unwrap().authorization, Authorization::Missing);
    assert_eq!(sessions.fail_mfa(&id, None).await, Ok(MfaOutcome::Missing));
    assert_eq!(sessions.begin_mfa(&id, "1").await, Ok(MfaOutcome::Missing));
    assert_eq!(sessions.verify_mfa(&id, "1", None).await, Ok(MfaOutcome::Missing));
    assert_eq!(sessions.rotate(&id).await, Ok(Rotated::Missing));
    assert_eq!(sessions.revoke(&id, "logout").await, Ok(Revoked { count: 0 }));
    let exists = kit.call(&Request::new("EXISTS").key(&state)).await.unwrap();
    assert_eq!(exists.as_int(), Some(0));
}

/// S4 §10, §18: half a session threw, or had defaults, as a creation in 1970.
async fn half_a_session_is_corrupt(kit: Kit) {
    let sessions = sessions(&kit);
    let id = log_in(&sessions, &NewSession::of(&ann())).await;
    let member = sessions.list(&ann()).await.unwrap().remove(0).member().to_vec();
    let family = Family { purpose: "session", version: 1 };
    let keys = kit.keys(family, Scope::from(&id.as_str()[..32])).unwrap();
    let state = keys.item("state", &member);
    let remove = |field: &str| Request::new("HDEL").key(&state).arg(field);
    kit.call(&remove("created_at_ms")).await.unwrap();
    assert_eq!(sessions.find(&id).await, Ok(Lookup::Corrupt("created_at_ms")));
    assert!(is_granted(&sessions.authorize(&id).await.unwrap()));
    kit.call(&remove("user_id")).await.unwrap();
    assert_eq!(sessions.authorize(&id).await, Ok(Authorization::Corrupt("user_id")));
    kit.call(&Request::new("SET").key(&state).arg("x").arg("PX").arg(60_000)).await.unwrap();
    assert_eq!(sessions.authorize(&id).await, Ok(Authorization::Corrupt("type")));
    assert_eq!(sessions.find(&id).await, Ok(Lookup::Corrupt("type")));
}

/// S4 §16.2, S3: the raw token stood in the key.
async fn ids_are_not_stored(kit: Kit) {
    let sessions = sessions(&kit);
    let id = log_in(&sessions, &NewSession::of(&ann()).from("10.1.2.3", "a browser")).await;
    let handle: SessionHandle = sessions.list(&ann()).await.unwrap().remove(0);
    let secret = &id.as_str()[33..];
    assert_ne!(handle.member(), secret.as_bytes());
    assert!(!format!("{id:?} {handle:?} {sessions:?} {:?}", ann()).contains(secret));
    assert!(matches!(sessions.find_by_handle(&handle).await, Ok(Lookup::Found(_))));
    for text in ["", "a.b", "no dot", &"a".repeat(65), &format!("{}x", id.as_str())] {
        assert!(SessionId::parse(text).is_none());
    }
    // The same secret under the tag of another user is another session.
    let other = User::new("acme", "bob");
    let of_bob = log_in(&sessions, &NewSession::of(&other)).await;
    let forged = format!("{}.{secret}", &of_bob.as_str()[..32]);
    let forged = SessionId::parse(&forged).unwrap();
    assert_eq!(sessions.authorize(&forged).await, Ok(Authorization::Missing));
}

/// S4 §13: an empty challenge verified even a revoked session, and nothing looked at the status.
async fn a_challenge_is_met_once_and_only_by_its_answer(kit: Kit) {
    let sessions = sessions(&kit);
    let id = log_in(&sessions, &NewSession::of(&ann()).mfa_required()).await;
    assert!(matches!(sessions.authorize(&id).await, Ok(Authorization::MfaRequired(_))));
    assert!(matches!(sessions.find(&id).await, Ok(Lookup::ExpiredChallenge(_))));
    let verify = async |challenge: &str| sessions.verify_mfa(&id, challenge, None).await;
    assert_eq!(verify("123456").await, Ok(MfaOutcome::ExpiredChallenge));
    assert_eq!(sessions.begin_mfa(&id, "123456").await, Ok(MfaOutcome::Challenged));
    assert!(matches!(sessions.find(&id).await, Ok(Lookup::Found(_))));
    assert!(matches!(verify("").await, Err(Error::Invalid(_))));
    assert!(matches!(sessions.begin_mfa(&id, "").await, Err(Error::Invalid(_))));
    assert_eq!(verify("654321").await, Ok(MfaOutcome::Mismatch { attempts_left: 4 }));
    assert_eq!(verify("123456").await, Ok(MfaOutcome::Verified));
    let session = found(&sessions, &id).await;
    assert_eq!((session.status, session.auth_level), (Status::MfaVerified, AuthLevel::Mfa));
    assert!(session.mfa_verified_at_ms.is_some() && session.failed_mfa_attempts == 0);
    // Again after a lost reply it is still so; another answer is none.
    assert_eq!(verify("123456").await, Ok(MfaOutcome::Verified));
    assert_eq!(verify("654321").await, Ok(MfaOutcome::NotRequired));
    assert!(is_granted(&sessions.authorize(&id).await.unwrap()));
    // Asked once more, as before a payment.
    assert_eq!(sessions.begin_mfa(&id, "777").await, Ok(MfaOutcome::Challenged));
    assert!(matches!(sessions.authorize(&id).await, Ok(Authorization::MfaRequired(_))));
    assert_eq!(verify("123456").await, Ok(MfaOutcome::Mismatch { attempts_left: 4 }));
    assert_eq!(sessions.revoke(&id, "admin").await, Ok(Revoked { count: 1 }));
    assert_eq!(verify("777").await, Ok(MfaOutcome::Revoked));
    assert_eq!(sessions.begin_mfa(&id, "1").await, Ok(MfaOutcome::Revoked));
}

/// S4 §13: no cap on attempts.
async fn attempts_have_an_end(kit: Kit) {
    let sessions = sessions(&kit);
    let id = log_in(&sessions, &NewSession::of(&ann()).mfa_required()).await;
    assert_eq!(sessions.begin_mfa(&id, "right").await, Ok(MfaOutcome::Challenged));
    let tasks: Vec<_> = (0..32)
        .map(|number| {
            let (sessions, id) = (sessions.clone(), id.clone());
            let guess = format!("guess {number}");
            tokio::spawn(async move { sessions.verify_mfa(&id, &guess, None).await.unwrap() })
        })
        .collect();
    let (mut mismatches, mut locked) = (0, 0);
    for task in tasks {
        match task.await.unwrap() {
            MfaOutcome::Mismatch { .. } => mismatches += 1,
            MfaOutcome::Locked => locked += 1,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!((mismatches, locked), (4, 28));
    assert_eq!(found(&sessions, &id).await.failed_mfa_attempts, 5);
    assert_eq!(sessions.verify_mfa(&id, "right", None).await, Ok(MfaOutcome::Locked));
    assert_eq!(sessions.begin_mfa(&id, "anew").await, Ok(MfaOutcome::Locked));
}

async fn a_retried_failure_counts_once(kit: Kit) {
    let sessions = sessions(&kit);
    let id = log_in(&sessions, &NewSession::of(&ann()).mfa_required()).await;
    assert_eq!(sessions.begin_mfa(&id, "right").await, Ok(MfaOutcome::Challenged));
    let (one, two) = (RequestId::random(), RequestId::random());
    let mismatch = |attempts_left| Ok(MfaOutcome::Mismatch { attempts_left });
    assert_eq!(sessions.verify_mfa(&id, "wrong", Some(&one)).await, mismatch(4));
    assert_eq!(sessions.verify_mfa(&id, "wrong", Some(&one)).await, mismatch(4));
    assert_eq!(sessions.fail_mfa(&id, Some(&two)).await, mismatch(3));
    assert_eq!(sessions.fail_mfa(&id, Some(&two)).await, mismatch(3));
    assert_eq!(sessions.fail_mfa(&id, None).await, mismatch(2));
    assert_eq!(found(&sessions, &id).await.failed_mfa_attempts, 3);
}

/// S4 §6, S4 §13: the TTL of a field, which a later HSET clears, or none at all on an older
/// server.
async fn a_challenge_ends_in_real_time(kit: Kit) {
    let policy = Policy::new(TIMEOUTS, 5).mfa(Duration::from_millis(100), 5);
    let sessions = Sessions::new(&kit, policy).unwrap();
    let id = log_in(&sessions, &NewSession::of(&ann()).mfa_required()).await;
    assert_eq!(sessions.begin_mfa(&id, "first").await, Ok(MfaOutcome::Challenged));
    assert_eq!(sessions.begin_mfa(&id, "second").await, Ok(MfaOutcome::Challenged));
    assert!(!sessions.heartbeat(&id).await.unwrap().is_refreshed);
    while !matches!(sessions.find(&id).await.unwrap(), Lookup::ExpiredChallenge(_)) {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let late = sessions.verify_mfa(&id, "second", None).await;
    assert_eq!(late, Ok(MfaOutcome::ExpiredChallenge));
    // The session itself goes on.
    assert!(matches!(sessions.authorize(&id).await, Ok(Authorization::MfaRequired(_))));
}

async fn all_sessions_are_revoked_at_once(kit: Kit) {
    let sessions = sessions(&kit);
    let bob = User::new("acme", "bob");
    let of_bob = log_in(&sessions, &NewSession::of(&bob)).await;
    let mut ids = Vec::new();
    for _ in 0..5 {
        ids.push(log_in(&sessions, &NewSession::of(&ann())).await);
    }
    assert_eq!(sessions.list(&ann()).await.unwrap().len(), 5);
    assert_eq!(sessions.revoke_all(&ann(), "stolen").await, Ok(Revoked { count: 5 }));
    assert_eq!(sessions.revoke_all(&ann(), "stolen").await, Ok(Revoked { count: 0 }));
    for id in &ids {
        assert_eq!(sessions.authorize(id).await, Ok(Authorization::Revoked));
    }
    assert!(is_granted(&sessions.authorize(&of_bob).await.unwrap()));
    let again = log_in(&sessions, &NewSession::of(&ann())).await;
    assert!(is_granted(&sessions.authorize(&again).await.unwrap()));
}

async fn all_sessions_but_one(kit: Kit) {
    let sessions = sessions(&kit);
    let stays = log_in(&sessions, &NewSession::of(&ann())).await;
    let goes = log_in(&sessions, &NewSession::of(&ann())).await;
    let revoked = sessions.revoke_all_but(&ann(), &stays, "password").await;
    assert_eq!(revoked, Ok(Revoked { count: 1 }));
    assert!(is_granted(&sessions.authorize(&stays).await.unwrap()));
    assert_eq!(sessions.authorize(&goes).await, Ok(Authorization::Revoked));
}

/// Whoever is granted after both is over was created after the revocation, and stands in the list.
async fn log_ins_and_revoke_all_at_the_same_time(kit: Kit) {
    let sessions = Sessions::new(&kit, Policy::new(TIMEOUTS, 100)).unwrap();
    let user = ann();
    let logins: Vec<_> = (0..32)
        .map(|_| {
            let (sessions, user) = (sessions.clone(), user.clone());
            tokio::spawn(async move { log_in(&sessions, &NewSession::of(&user)).await })
        })
        .collect();
    let revoked = loop {
        match sessions.revoke_all(&user, "stolen").await {
            Ok(revoked) => break revoked.count,
            Err(Error::Contention { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    };
    let mut granted = HashSet::new();
    for login in logins {
        let id = login.await.unwrap();
        match sessions.authorize(&id).await.unwrap() {
            Authorization::Granted(_) => granted.insert(found(&sessions, &id).await.handle),
            Authorization::Revoked => continue,
            other => panic!("{other:?}"),
        };
    }
    assert_eq!(granted.len() as u64 + revoked, 32);
    let listed: HashSet<_> = sessions.list(&user).await.unwrap().into_iter().collect();
    assert_eq!(listed, granted);
}

async fn rotation_makes_the_old_id_worthless(kit: Kit) {
    let sessions = sessions(&kit);
    let old = log_in(&sessions, &NewSession::of(&ann()).mfa_required()).await;
    assert_eq!(sessions.begin_mfa(&old, "123456").await, Ok(MfaOutcome::Challenged));
    let Ok(Rotated::Rotated(new)) = sessions.rotate(&old).await else { panic!("not rotated") };
    assert_eq!(sessions.authorize(&old).await, Ok(Authorization::Missing));
    assert_eq!(sessions.verify_mfa(&new, "123456", None).await, Ok(MfaOutcome::Verified));
    let session = found(&sessions, &new).await;
    assert!(session.last_rotated_at_ms.is_some());
    assert!(!session.expires_in.is_zero() && session.expires_in <= TIMEOUTS.idle);
    assert_eq!(sessions.list(&ann()).await, Ok(vec![session.handle]));
    assert_eq!(sessions.rotate(&old).await, Ok(Rotated::Missing));
    assert_eq!(sessions.revoke(&new, "logout").await, Ok(Revoked { count: 1 }));
    assert_eq!(sessions.rotate(&new).await, Ok(Rotated::Revoked));
}

/// Two tabs: one has a new id, the other logs out with the one that it knows. The user is
/// logged out.
async fn an_old_id_still_logs_out(kit: Kit) {
    let sessions = sessions(&kit);
    let first = log_in(&sessions, &NewSession::of(&ann())).await;
    let mut last = first.clone();
    for _ in 0..3 {
        let Ok(Rotated::Rotated(new)) = sessions.rotate(&last).await else { panic!("not rotated") };
        last = new;
    }
    let other = log_in(&sessions, &NewSession::of(&ann())).await;
    // It is worth nothing else.
    assert_eq!(sessions.authorize(&first).await, Ok(Authorization::Missing));
    assert_eq!(sessions.rotate(&first).await, Ok(Rotated::Missing));
    assert_eq!(sessions.revoke(&first, "logout").await, Ok(Revoked { count: 1 }));
    assert_eq!(sessions.authorize(&last).await, Ok(Authorization::Revoked));
    assert!(is_granted(&sessions.authorize(&other).await.unwrap()));
    assert_eq!(sessions.revoke(&first, "logout").await, Ok(Revoked { count: 0 }));
}

async fn a_user_has_no_more_sessions_than_allowed(kit: Kit) {
    let evicts = Sessions::new(&kit, Policy::new(TIMEOUTS, 3)).unwrap();
    let user = ann();
    let tasks: Vec<_> = (0..16)
        .map(|_| {
            let (sessions, user) = (evicts.clone(), user.clone());
            tokio::spawn(async move { log_in(&sessions, &NewSession::of(&user)).await })
        })
        .collect();
    let mut granted = 0;
    let mut ids = Vec::new();
    for task in tasks {
        ids.push(task.await.unwrap());
    }
    for id in &ids {
        granted += u32::from(is_granted(&evicts.authorize(id).await.unwrap()));
    }
    assert_eq!((granted, evicts.list(&user).await.unwrap().len()), (3, 3));
    let rejects = Policy::new(TIMEOUTS, 3).when_full(WhenFull::Reject);
    let rejects = Sessions::new(&kit, rejects).unwrap();
    assert_eq!(rejects.create(&NewSession::of(&user)).await, Ok(Created::Full));
    // A policy that allows fewer than there are.
    let fewer = Sessions::new(&kit, Policy::new(TIMEOUTS, 1)).unwrap();
    let last = log_in(&fewer, &NewSession::of(&user)).await;
    assert!(is_granted(&fewer.authorize(&last).await.unwrap()));
    assert_eq!(fewer.list(&user).await.unwrap().len(), 1);
}

/// S1 §11, spring-session issues 1118, 1843 and 2230: the list of a user's sessions kept the
/// ids of those that had expired or been deleted.
async fn an_index_never_leaks(kit: Kit) {
    let timeouts =
        Timeouts { idle: Duration::from_millis(100), absolute: Duration::from_millis(200) };
    let sessions = Sessions::new(&kit, Policy::new(timeouts, 5)).unwrap();
    let id = log_in(&sessions, &NewSession::of(&ann())).await;
    let index = kit
        .keys(Family { purpose: "session", version: 1 }, Scope::from(&id.as_str()[..32]))
        .unwrap()
        .key("index");
    while kit.call(&Request::new("EXISTS").key(&index)).await.unwrap().as_int() != Some(0) {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(sessions.list(&ann()).await, Ok(Vec::new()));
    assert_eq!(sessions.authorize(&id).await, Ok(Authorization::Missing));
}

/// S1 §11: a session was tagged by user and looked up by session.
async fn keys_of_a_user_share_a_slot_and_users_spread(kit: Kit) {
    let sessions = sessions(&kit);
    let mut slots = HashSet::new();
    for number in 0..32 {
        let user = User::new("acme", format!("user {number}"));
        let id = log_in(&sessions, &NewSession::of(&user)).await;
        let family = Family { purpose: "session", version: 1 };
        let keys = kit.keys(family, Scope::from(&id.as_str()[..32])).unwrap();
        let slot = keys.key("index").slot();
        let marker = keys.marker(&RequestId::random());
        assert_eq!((keys.item("state", "a").slot(), marker.slot()), (slot, slot));
        slots.insert(slot);
    }
    assert!(slots.len() > 24);
}

fn at(time: &ManualTime) -> Kit {
    Kit::builder().embedded_at(Options::default(), time).unwrap()
}

/// S3, S4 §14.2: EXPIRE with each request. S4 §11, connect-redis issue 251: the idle refresh went
/// past the absolute deadline.
#[tokio::test]
async fn the_ttl_is_renewed_when_little_is_left_and_never_past_the_deadline() {
    let time = ManualTime::new();
    let kit = at(&time);
    let sessions = sessions(&kit);
    let id = log_in(&sessions, &NewSession::of(&ann())).await;
    time.advance(Duration::from_secs(740));
    let touched = sessions.touch(&id).await.unwrap();
    assert!(is_granted(&touched.authorization) && !touched.is_refreshed);
    time.advance(Duration::from_secs(20));
    assert!(sessions.touch(&id).await.unwrap().is_refreshed);
    assert_eq!(found(&sessions, &id).await.expires_in, TIMEOUTS.idle);
    // The list knows of it: else it would end before the session (S1 §11).
    time.advance(Duration::from_secs(300));
    assert_eq!(sessions.list(&ann()).await.unwrap().len(), 1);
    time.advance(Duration::from_secs(701));
    assert_eq!(sessions.touch(&id).await.unwrap().authorization, Authorization::Missing);

    let busy = log_in(&sessions, &NewSession::of(&ann())).await;
    let mut lived = Duration::ZERO;
    while is_granted(&sessions.heartbeat(&busy).await.unwrap().authorization) {
        time.advance(Duration::from_secs(100));
        lived += Duration::from_secs(100);
    }
    assert_eq!(lived, TIMEOUTS.absolute);
    assert!(keys(&kit).await.is_empty());
}

#[tokio::test]
async fn a_heartbeat_records_the_time() {
    let time = ManualTime::new();
    let kit = at(&time);
    let sessions = sessions(&kit);
    let id = log_in(&sessions, &NewSession::of(&ann())).await;
    let before = found(&sessions, &id).await.last_seen_at_ms;
    time.advance(Duration::from_secs(10));
    assert!(!sessions.touch(&id).await.unwrap().is_refreshed);
    assert_eq!(found(&sessions, &id).await.last_seen_at_ms, before);
    assert!(!sessions.heartbeat(&id).await.unwrap().is_refreshed);
    assert_eq!(found(&sessions, &id).await.last_seen_at_ms, before + 10_000);
}

#[tokio::test]
async fn a_policy_without_sense_is_refused() {
    let kit = Kit::embedded(Options::default()).unwrap();
    let none = Duration::ZERO;
    for policy in [
        Policy::new(Timeouts { idle: none, ..TIMEOUTS }, 5),
        Policy::new(Timeouts { absolute: Duration::from_secs(1), ..TIMEOUTS }, 5),
        Policy::new(TIMEOUTS, 0),
        Policy::new(TIMEOUTS, 257),
        Policy::new(TIMEOUTS, 5).mfa(none, 5),
        Policy::new(TIMEOUTS, 5).mfa(Duration::from_secs(1), 0),
    ] {
        assert!(matches!(Sessions::new(&kit, policy), Err(Error::Invalid(_))));
    }
    let sessions = sessions(&kit);
    for user in [User::new("", "ann"), User::new("acme", ""), User::new("acme", "a".repeat(201))] {
        let refused = sessions.create(&NewSession::of(&user)).await;
        assert!(matches!(refused, Err(Error::Invalid(_))));
    }
}
