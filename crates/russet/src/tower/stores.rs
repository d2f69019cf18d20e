//! The kit's own stores behind the layers: responses with their idempotency keys, sessions by a
//! cookie.

use super::{Begun, Responses, SessionSource};
use crate::backend::Pending;
use crate::idempotency::{Claim, Failure, Fingerprint, Idempotency, IdempotencyKey, Outcome};
use crate::key::Scope;
use crate::session::{AuthContext, Authorization, SessionId, Sessions};
use http::header::{AUTHORIZATION, COOKIE};
use http::request::Parts;

impl Responses for Idempotency {
    type Claim = Claim;

    fn begin<'a>(
        &'a self,
        subject: Scope,
        key: &'a [u8],
        fingerprint: &'a [u8],
    ) -> Pending<'a, Begun<Claim>> {
        Box::pin(async move {
            let key = IdempotencyKey::new(subject, key);
            Ok(match self.claim(&key, Fingerprint::of(fingerprint)).await? {
                Outcome::Claimed(claim) => Begun::Claimed(claim),
                Outcome::Replay(response) => Begun::Replay(response),
                Outcome::InFlight { retry_after } => Begun::InFlight { retry_after },
                // The layer lets no request fail for good: someone else has used the key.
                Outcome::Mismatch | Outcome::Failed(_) => Begun::Mismatch,
            })
        })
    }

    fn complete<'a>(&'a self, claim: &'a Claim, response: Vec<u8>) -> Pending<'a, ()> {
        // A claim that was lost meanwhile is another's to complete.
        Box::pin(async move { claim.complete(response).await.map(drop) })
    }

    fn keep_alive<'a>(&'a self, claim: &'a Claim) -> Pending<'a, ()> {
        Box::pin(async move {
            claim.keep_alive().await;
            Ok(())
        })
    }

    fn abandon<'a>(&'a self, claim: &'a Claim, reason: &'a str) -> Pending<'a, ()> {
        Box::pin(async move { claim.fail(&Failure::retryable(reason)).await.map(drop) })
    }
}

/// Sessions whose id is in a cookie, or in `Authorization: Bearer`. Loading keeps a session alive.
/// Handlers find an [`AuthContext`]; one that still has a challenge to meet is not loaded.
#[derive(Clone)]
pub struct SessionsByCookie {
    sessions: Sessions,
    cookie: String,
}

impl SessionsByCookie {
    /// `cookie` is its name.
    pub fn new(sessions: Sessions, cookie: &str) -> Self {
        SessionsByCookie { sessions, cookie: cookie.to_owned() }
    }

    fn id(&self, head: &Parts) -> Option<SessionId> {
        let cookies = head.headers.get_all(COOKIE).iter();
        let cookies = cookies.filter_map(|value| value.to_str().ok());
        let mut pairs = cookies.flat_map(|value| value.split(';')).map(str::trim);
        let by_cookie = pairs.find_map(|pair| {
            let (name, value) = pair.split_once('=')?;
            (name == self.cookie).then(|| SessionId::parse(value)).flatten()
        });
        by_cookie.or_else(|| {
            let value = head.headers.get(AUTHORIZATION)?.to_str().ok()?;
            SessionId::parse(value.strip_prefix("Bearer ")?.trim())
        })
    }
}

impl std::fmt::Debug for SessionsByCookie {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SessionsByCookie")
    }
}

impl SessionSource for SessionsByCookie {
    type Session = AuthContext;

    fn load<'a>(&'a self, head: &'a Parts) -> Pending<'a, Option<AuthContext>> {
        Box::pin(async move {
            let Some(id) = self.id(head) else { return Ok(None) };
            Ok(match self.sessions.touch(&id).await?.authorization {
                Authorization::Granted(context) => Some(context),
                _ => None,
            })
        })
    }
}
