//! Tokens are known until they end, can be revoked, and those for one use are used once.

use russet::key::{Family, Scope};
use russet::session::User;
use russet::token::reset::{Consumed, ResetToken, ResetTokens};
use russet::token::{Action, Check, Issued, NewToken, Policy, Revoked, Token, Tokens};
use russet::{Error, Kit, ManualTime, Options, Request, RequestId};
use std::sync::{Arc, Mutex};
use std::time::Duration;

russet_toolkit_tests::on_every_backend! {
    a_token_is_valid_until_it_is_revoked
    what_is_not_known_is_said_to_be_unknown
    a_token_of_another_can_be_denied
    all_tokens_of_a_user_are_revoked_at_once
    a_user_has_no_more_tokens_than_allowed
    a_token_expires_in_real_time
    a_half_token_is_corrupt
    a_reset_token_is_used_once_among_many
    a_retried_consume_says_the_same
    a_newer_reset_token_replaces_the_older
    tokens_are_not_stored
}

const HOUR: Duration = Duration::from_secs(3600);
const API: NewToken<'static> = NewToken { kind: "api", scopes: "read write", ttl: HOUR };

fn tokens(kit: &Kit) -> Tokens {
    Tokens::new(kit, Policy { tokens_max: 3, safety: Duration::from_secs(60) }).unwrap()
}

fn resets(kit: &Kit) -> ResetTokens {
    ResetTokens::new(kit, "password", Duration::from_secs(900)).unwrap()
}

fn ann() -> User {
    User::new("acme", "ann")
}

async fn issued(tokens: &Tokens, new: &NewToken<'_>) -> Token {
    match tokens.issue(&ann(), new).await.unwrap() {
        Issued::Issued(token) => token,
        Issued::Full => panic!("full"),
    }
}

async fn a_token_is_valid_until_it_is_revoked(kit: Kit) {
    let audited = Arc::new(Mutex::new(Vec::new()));
    let tokens = tokens(&kit).audited({
        let audited = audited.clone();
        move |event| audited.lock().unwrap().push(event.clone())
    });
    let token = issued(&tokens, &API).await;
    let parsed = Token::parse(token.as_str()).unwrap();
    let Check::Valid(info) = tokens.check(&parsed).await.unwrap() else { panic!("not valid") };
    assert_eq!((info.user, info.scopes.as_str()), (ann(), "read write"));
    assert!(info.expires_in <= HOUR);
    assert_eq!(tokens.revoke(&token, "lost").await, Ok(Revoked { count: 1 }));
    assert_eq!(tokens.revoke(&token, "lost").await, Ok(Revoked { count: 0 }));
    assert_eq!(tokens.check(&token).await, Ok(Check::Revoked));
    assert_eq!(tokens.list(&ann()).await, Ok(Vec::new()));
    let audited: Vec<Action> = audited.lock().unwrap().iter().map(|event| event.action).collect();
    assert_eq!(audited[..2], [Action::Issued, Action::Revoked]);
}

/// S4 §16: whether a missing key is a valid token or a revoked one was not defined.
async fn what_is_not_known_is_said_to_be_unknown(kit: Kit) {
    let tokens = tokens(&kit);
    let token = issued(&tokens, &API).await;
    let handle = tokens.list(&ann()).await.unwrap().remove(0);
    let family = Family { purpose: "token", version: 1 };
    let keys = kit.keys(family, Scope::from(&token.as_str()[..32])).unwrap();
    let metadata = keys.item("metadata", handle.member());
    kit.call(&Request::new("DEL").key(&metadata)).await.unwrap();
    assert_eq!(tokens.check(&token).await, Ok(Check::Unknown));
    // Revoking it makes no half a token.
    assert_eq!(tokens.revoke(&token, "lost").await, Ok(Revoked { count: 0 }));
    assert_eq!(tokens.check(&token).await, Ok(Check::Unknown));
    assert!(Token::parse("eyJhbGciOiJIUzI1NiIs").is_none());
}

async fn a_token_of_another_can_be_denied(kit: Kit) {
    let tokens = tokens(&kit);
    let handle = tokens.external(&ann(), "jti-1").unwrap();
    assert_eq!(tokens.check_handle(&handle).await, Ok(Check::Unknown));
    tokens.deny(&handle, HOUR, "logout").await.unwrap();
    tokens.deny(&handle, Duration::from_secs(1), "logout").await.unwrap();
    assert_eq!(tokens.check_handle(&handle).await, Ok(Check::Revoked));
    let other = tokens.external(&ann(), "jti-2").unwrap();
    assert_eq!(tokens.check_handle(&other).await, Ok(Check::Unknown));
    assert!(matches!(tokens.external(&ann(), ""), Err(Error::Invalid(_))));
}

async fn all_tokens_of_a_user_are_revoked_at_once(kit: Kit) {
    let tokens = tokens(&kit);
    let (one, two) = (issued(&tokens, &API).await, issued(&tokens, &API).await);
    assert_eq!(tokens.revoke_all(&ann(), "stolen").await, Ok(Revoked { count: 2 }));
    assert_eq!(tokens.revoke_all(&ann(), "stolen").await, Ok(Revoked { count: 0 }));
    for token in [one, two] {
        assert_eq!(tokens.check(&token).await, Ok(Check::Revoked));
    }
}

/// S4 §7.2: the tokens of a tenant in one place without a bound.
async fn a_user_has_no_more_tokens_than_allowed(kit: Kit) {
    let tokens = tokens(&kit);
    let tasks: Vec<_> = (0..16)
        .map(|_| {
            let tokens = tokens.clone();
            tokio::spawn(async move { tokens.issue(&ann(), &API).await.unwrap() })
        })
        .collect();
    let mut issued = 0;
    for task in tasks {
        issued += u32::from(matches!(task.await.unwrap(), Issued::Issued(_)));
    }
    assert_eq!((issued, tokens.list(&ann()).await.unwrap().len()), (3, 3));
    let first = tokens.list(&ann()).await.unwrap().remove(0);
    assert_eq!(tokens.revoke_handle(&first, "old").await, Ok(Revoked { count: 1 }));
    assert!(matches!(tokens.issue(&ann(), &API).await, Ok(Issued::Issued(_))));
}

async fn a_token_expires_in_real_time(kit: Kit) {
    let tokens = tokens(&kit);
    let short = NewToken { ttl: Duration::from_millis(100), ..API };
    let token = issued(&tokens, &short).await;
    while tokens.check(&token).await.unwrap() != Check::Expired {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(tokens.list(&ann()).await, Ok(Vec::new()));
    // A TTL of nothing is refused before anything is written.
    let none = NewToken { ttl: Duration::ZERO, ..API };
    assert!(matches!(tokens.issue(&ann(), &none).await, Err(Error::Invalid(_))));
}

async fn a_half_token_is_corrupt(kit: Kit) {
    let tokens = tokens(&kit);
    let token = issued(&tokens, &API).await;
    let handle = tokens.list(&ann()).await.unwrap().remove(0);
    let family = Family { purpose: "token", version: 1 };
    let keys = kit.keys(family, Scope::from(&token.as_str()[..32])).unwrap();
    let metadata = keys.item("metadata", handle.member());
    kit.call(&Request::new("HDEL").key(&metadata).arg("expires_at_ms")).await.unwrap();
    assert_eq!(tokens.check(&token).await, Ok(Check::Corrupt("expires_at_ms".into())));
}

async fn a_reset_token_is_used_once_among_many(kit: Kit) {
    let resets = resets(&kit);
    let token = resets.issue(&ann()).await.unwrap();
    let tasks: Vec<_> = (0..32)
        .map(|_| {
            let (resets, token) = (resets.clone(), token.clone());
            tokio::spawn(async move { resets.consume(&token, None).await.unwrap() })
        })
        .collect();
    let mut consumed = 0;
    for task in tasks {
        match task.await.unwrap() {
            Consumed::Consumed(user) => {
                assert_eq!(user, ann());
                consumed += 1;
            }
            Consumed::Unknown => {}
        }
    }
    assert_eq!(consumed, 1);
}

/// S0 §25: consuming was not safe to retry, and its reply was 0 or a text.
async fn a_retried_consume_says_the_same(kit: Kit) {
    let resets = resets(&kit);
    let token = resets.issue(&ann()).await.unwrap();
    let (id, other) = (RequestId::random(), RequestId::random());
    assert_eq!(resets.consume(&token, Some(&id)).await, Ok(Consumed::Consumed(ann())));
    assert_eq!(resets.consume(&token, Some(&id)).await, Ok(Consumed::Consumed(ann())));
    assert_eq!(resets.consume(&token, Some(&other)).await, Ok(Consumed::Unknown));
    // Who knows the id of the request but not the token is told nothing.
    let (tag, _secret) = token.as_str().split_once('.').unwrap();
    let forged = ResetToken::parse(&format!("{tag}.{}", "0".repeat(32))).unwrap();
    assert_eq!(resets.consume(&forged, Some(&id)).await, Ok(Consumed::Unknown));
}

async fn a_newer_reset_token_replaces_the_older(kit: Kit) {
    let resets = resets(&kit);
    let (old, new) = (resets.issue(&ann()).await.unwrap(), resets.issue(&ann()).await.unwrap());
    assert_eq!(resets.consume(&old, None).await, Ok(Consumed::Unknown));
    // A token for something else is not one for this.
    let mail = ResetTokens::new(&kit, "change-mail", HOUR).unwrap();
    assert_eq!(mail.consume(&new, None).await, Ok(Consumed::Unknown));
    assert_eq!(resets.consume(&new, None).await, Ok(Consumed::Consumed(ann())));
    let revoked = resets.issue(&ann()).await.unwrap();
    resets.revoke(&ann()).await.unwrap();
    assert_eq!(resets.consume(&revoked, None).await, Ok(Consumed::Unknown));
}

/// S4 §16.2, S0 §28: raw tokens in keys and logs.
async fn tokens_are_not_stored(kit: Kit) {
    let (tokens, resets) = (tokens(&kit), resets(&kit));
    let token = issued(&tokens, &API).await;
    let reset = resets.issue(&ann()).await.unwrap();
    let shown = format!("{token:?} {reset:?} {tokens:?} {resets:?}");
    for secret in [&token.as_str()[33..], &reset.as_str()[33..]] {
        assert!(!shown.contains(secret));
    }
    let handle = tokens.list(&ann()).await.unwrap().remove(0);
    assert_ne!(handle.member(), &token.as_str().as_bytes()[33..]);
}

#[tokio::test]
async fn nothing_of_a_token_stays_for_ever() {
    let time = ManualTime::new();
    let kit = Kit::builder().embedded_at(Options::default(), &time).unwrap();
    let (tokens, resets) = (tokens(&kit), resets(&kit));
    let token = issued(&tokens, &API).await;
    let reset = resets.issue(&ann()).await.unwrap();
    time.advance(Duration::from_secs(900));
    assert_eq!(resets.consume(&reset, None).await, Ok(Consumed::Unknown));
    assert_eq!(tokens.revoke(&token, "lost").await, Ok(Revoked { count: 1 }));
    // A revoked one is known as such for as long as it could have been used.
    time.advance(HOUR - Duration::from_secs(900));
    assert_eq!(tokens.check(&token).await, Ok(Check::Revoked));
    time.advance(Duration::from_secs(60));
    assert_eq!(tokens.check(&token).await, Ok(Check::Unknown));
    let left = kit.call(&Request::new("DBSIZE")).await.unwrap();
    assert_eq!(left.as_int(), Some(0));
}
