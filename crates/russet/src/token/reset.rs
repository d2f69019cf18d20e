//! Single-use tokens: sent to a user once, as a link to set a new password, and worth nothing after
//! they were used, after their time, or after a newer one was sent.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use russet::session::User;
//! use russet::token::reset::{Consumed, ResetTokens};
//! use std::time::Duration;
//!
//! let kit = russet::Kit::embedded(Default::default())?;
//! let resets = ResetTokens::new(&kit, "password", Duration::from_secs(900))?;
//! let token = resets.issue(&User::new("acme", "user-1")).await?;
//! let consumed = resets.consume(&token, None).await?;
//! assert!(matches!(consumed, Consumed::Consumed(user) if user.user_id() == "user-1"));
//! assert_eq!(resets.consume(&token, None).await?, Consumed::Unknown);
//! # Ok(())
//! # }
//! ```

use super::TokenHandle;
use super::audit::{Action, AuditEvent, Sink};
use crate::bearer::Bearer;
use crate::error::{Error, Result};
use crate::key::{Family, Keys, Scope};
use crate::kit::Kit;
use crate::observe::stats;
use crate::request::Request;
use crate::retry::RequestId;
use crate::session::User;
use crate::step::{Safe, Step, WithRequestId};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

const FAMILY: Family = Family { purpose: "reset", version: 1 };

const SHARED: &str = include_str!("reset_shared.lua");
pub(super) static ISSUE: Step<Safe> =
    Step::new("reset_issue", include_str!("reset_issue.lua")).sharing(SHARED);
pub(super) static CONSUME: Step<WithRequestId> =
    Step::new("reset_consume", include_str!("reset_consume.lua")).sharing(SHARED);

/// A single-use token: a secret, for the mail to the user and nothing else.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct ResetToken(Bearer);

impl ResetToken {
    /// What a client sent, or None if it is no token of ours.
    pub fn parse(text: &str) -> Option<Self> {
        Bearer::parse(text).map(ResetToken)
    }

    /// For the user. Not for logs.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

/// Says nothing of its content.
impl fmt::Debug for ResetToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ResetToken")
    }
}

/// What a token was worth.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum Consumed {
    /// It was good, for this user, and is used up.
    Consumed(User),
    /// It was used, replaced or revoked, has expired, or never was.
    Unknown,
}

stats! {
    /// What a handle and its clones have seen in this process.
    ResetStats counted by Counts {
        /// Tokens that were made.
        issued,
        /// Tokens that were good, and are used up.
        consumed,
        /// Tokens that were worth nothing.
        refused,
    }
}

/// Single-use tokens for one purpose. A user has one at a time.
#[derive(Clone)]
pub struct ResetTokens {
    kit: Kit,
    purpose: String,
    ttl: Duration,
    audit: Sink,
    counts: Arc<Counts>,
}

impl ResetTokens {
    /// Tokens for a purpose, as `password-reset`, that are good for `ttl`.
    pub fn new(kit: &Kit, purpose: &str, ttl: Duration) -> Result<Self> {
        if purpose.is_empty() || ttl.is_zero() {
            return Err(Error::invalid("neither purpose nor ttl may be empty"));
        }
        let (audit, counts) = (Sink::default(), Arc::default());
        Ok(ResetTokens { kit: kit.clone(), purpose: purpose.into(), ttl, audit, counts })
    }

    /// Tells a sink of every token that is issued or consumed, after it has happened.
    pub fn audited(mut self, sink: impl Fn(&AuditEvent) + Send + Sync + 'static) -> Self {
        self.audit = Sink::new(sink);
        self
    }

    /// Makes the token of a user. One that was made before is worth nothing from now on.
    pub async fn issue(&self, user: &User) -> Result<ResetToken> {
        user.check()?;
        let token = ResetToken(Bearer::random(&user.tag(&self.kit)?));
        let handle = self.handle(&token);
        let call = self.kit.step(&ISSUE).key(self.keys(&handle.tag)?.key("token"));
        let call = call.arg(&handle.member).arg(user.tenant_id()).arg(user.user_id());
        call.arg(self.ttl).run().await?;
        self.counts.issued.add(1);
        self.audit.emit(Action::Issued, &handle);
        Ok(token)
    }

    /// What this handle and its clones have seen.
    pub fn stats(&self) -> ResetStats {
        self.counts.stats()
    }

    /// Uses a token up. Whoever asks again with the same token and request id, after a lost reply,
    /// is told the same.
    pub async fn consume(
        &self,
        token: &ResetToken,
        request: Option<&RequestId>,
    ) -> Result<Consumed> {
        let handle = self.handle(token);
        let keys = self.keys(&handle.tag)?;
        // Bound to the token: who knows the request id alone is told nothing.
        let request = request.map(|id| id.bound_to(&self.kit, &handle.member));
        let call = self.kit.step_of_request(&CONSUME, &keys, request.as_ref());
        let mut reply = call.key(keys.key("token")).arg(&handle.member).run().await?;
        match reply.status() {
            "CONSUMED" => {
                self.counts.consumed.add(1);
                self.audit.emit(Action::Consumed, &handle);
                let tenant_id = reply.string("tenant_id")?;
                Ok(Consumed::Consumed(User::new(tenant_id, reply.string("subject_id")?)))
            }
            "UNKNOWN" => {
                self.counts.refused.add(1);
                Ok(Consumed::Unknown)
            }
            _ => Err(reply.unexpected()),
        }
    }

    /// Makes the token of a user worthless, if there is one, as after a log-in.
    pub async fn revoke(&self, user: &User) -> Result<()> {
        let keys = self.keys(&user.tag(&self.kit)?)?;
        self.kit.call_safe(&Request::new("DEL").key(&keys.key("token"))).await.map(drop)
    }

    fn handle(&self, ResetToken(bearer): &ResetToken) -> TokenHandle {
        let member = self.kit.digest("reset", bearer.secret());
        TokenHandle { tag: bearer.tag().to_vec(), member }
    }

    fn keys(&self, tag: &[u8]) -> Result<Keys> {
        self.kit.keys(FAMILY, Scope::from(&self.purpose).and(tag))
    }
}

impl fmt::Debug for ResetTokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResetTokens").field("purpose", &self.purpose).finish_non_exhaustive()
    }
}
