//! Tokens: what is known of those that programs carry, so that they can be revoked; and
//! [single-use ones](reset) for resetting a password.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use russet::session::User;
//! use russet::token::{Check, Issued, NewToken, Policy, Tokens};
//! use std::time::Duration;
//!
//! let kit = russet::Kit::embedded(Default::default())?;
//! let tokens = Tokens::new(&kit, Policy { tokens_max: 10, safety: Duration::from_secs(60) })?;
//! let user = User::new("acme", "user-1");
//! let new = NewToken { kind: "api", scopes: "read", ttl: Duration::from_secs(3600) };
//! let Issued::Issued(token) = tokens.issue(&user, &new).await? else { return Ok(()) };
//! assert!(matches!(tokens.check(&token).await?, Check::Valid(info) if info.scopes == "read"));
//! tokens.revoke(&token, "lost").await?;
//! assert_eq!(tokens.check(&token).await?, Check::Revoked);
//! # Ok(())
//! # }
//! ```
//!
//! Nothing that is stored can be used as a token: digests stand for them. Tokens of a user lie in
//! one slot, so that all are revoked in one step.

mod audit;
pub mod reset;

use crate::bearer::Bearer;
use crate::error::{Error, Result};
use crate::key::{Family, Keys, Scope};
use crate::kit::Kit;
use crate::observe::{self, stats};
use crate::reply::Envelope;
use crate::session::User;
use crate::step::{Safe, Step, StepInfo};
use audit::Sink;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

pub use audit::{Action, AuditEvent};

const FAMILY: Family = Family { purpose: "token", version: 1 };
/// Tokens of one user, at most.
pub const TOKENS_MAX: u32 = 256;
/// The longest text of a kind, of scopes, of a reason.
const TEXT_BYTES_MAX: usize = 512;
/// How often the list of a user's tokens may change while all are being revoked.
const REVOKE_ATTEMPTS_MAX: u32 = 16;

static ISSUE: Step<Safe> = Step::new("token_issue", include_str!("token/issue.lua"));
static CHECK: Step<Safe> = Step::read_only("token_check", include_str!("token/check.lua"));
static LIST: Step<Safe> = Step::read_only("token_list", include_str!("token/list.lua"));
static REVOKE: Step<Safe> = Step::new("token_revoke", include_str!("token/revoke.lua"));
static DENY: Step<Safe> = Step::new("token_deny", include_str!("token/deny.lua"));

pub(crate) static STEPS: &[&StepInfo] = &[
    ISSUE.info(),
    CHECK.info(),
    LIST.info(),
    REVOKE.info(),
    DENY.info(),
    reset::ISSUE.info(),
    reset::CONSUME.info(),
];

/// How tokens are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Per user.
    pub tokens_max: u32,
    /// How long a token that has expired is still known as such.
    pub safety: Duration,
}

/// What a token is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewToken<'a> {
    /// As `api` or `refresh`.
    pub kind: &'a str,
    /// What it may be used for, in the program's own words.
    pub scopes: &'a str,
    /// How long it is valid.
    pub ttl: Duration,
}

/// A token of ours: a secret, for the client and nothing else. It is not stored.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Token(Bearer);

impl Token {
    /// What a client sent, or None if it is no token of ours.
    ///
    /// ```
    /// assert!(russet::token::Token::parse("guess").is_none());
    /// ```
    pub fn parse(text: &str) -> Option<Self> {
        Bearer::parse(text).map(Token)
    }

    /// For the client. Not for logs.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

/// Says nothing of its content.
impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}

/// Names a token without being able to use it.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct TokenHandle {
    tag: Vec<u8>,
    member: Vec<u8>,
}

impl TokenHandle {
    /// The digest of the token, as text.
    pub fn member(&self) -> &[u8] {
        &self.member
    }
}

impl fmt::Debug for TokenHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TokenHandle({})", String::from_utf8_lossy(&self.member))
    }
}

/// Whether a token was issued.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum Issued {
    /// For the client: it can't be had again.
    Issued(Token),
    /// The user has all that are allowed: revoke one first.
    Full,
}

/// What a token is worth.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum Check {
    /// It is in force.
    Valid(TokenInfo),
    /// It was revoked, or denied.
    Revoked,
    /// Its time is over.
    Expired,
    /// Nothing is known of it: never issued, or gone for long. For tokens of ours that means no;
    /// for those that another issues, and that are only denied here, that they were not denied.
    Unknown,
    /// The field that is missing or wrong.
    Corrupt(String),
}

/// Whose token it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenInfo {
    /// Whom it was issued to.
    pub user: User,
    /// As it was issued with.
    pub scopes: String,
    /// How long it is still valid.
    pub expires_in: Duration,
}

/// How many tokens were revoked; those that were so before do not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Revoked {
    /// By this call.
    pub count: u64,
}

stats! {
    /// What a handle and its clones have seen in this process.
    TokenStats counted by Counts {
        /// Tokens that were issued.
        issued,
        /// Tokens that were not issued because the user had all that are allowed.
        rejected,
        /// Checks of tokens in force.
        valid,
        /// Checks of tokens that are revoked or expired, or that nothing is known of.
        refused,
        /// Checks of tokens whose record could not be read.
        corrupt,
        /// Tokens revoked, of other issuers too.
        revoked,
    }
}

/// The tokens of an application.
#[derive(Clone)]
pub struct Tokens {
    kit: Kit,
    policy: Policy,
    audit: Sink,
    counts: Arc<Counts>,
}

impl Tokens {
    /// Tokens by this policy. Refuses one that allows a user no token, or too many.
    pub fn new(kit: &Kit, policy: Policy) -> Result<Self> {
        if policy.tokens_max == 0 || policy.tokens_max > TOKENS_MAX {
            return Err(Error::invalid(format!("tokens_max must be from 1 to {TOKENS_MAX}")));
        }
        let (audit, counts) = (Sink::default(), Arc::default());
        Ok(Tokens { kit: kit.clone(), policy, audit, counts })
    }

    /// Tells a sink of everything that is issued or revoked, after it has happened. The store is no
    /// place for an audit: it forgets.
    pub fn audited(mut self, sink: impl Fn(&AuditEvent) + Send + Sync + 'static) -> Self {
        self.audit = Sink::new(sink);
        self
    }

    /// Makes a token, which only the client keeps.
    pub async fn issue(&self, user: &User, new: &NewToken<'_>) -> Result<Issued> {
        user.check()?;
        if [new.kind, new.scopes].iter().any(|text| text.len() > TEXT_BYTES_MAX) {
            return Err(Error::invalid(format!("kind or scopes over {TEXT_BYTES_MAX} bytes")));
        }
        let token = Token(Bearer::random(&user.tag(&self.kit)?));
        let handle = self.handle(&token);
        let keys = self.keys(&handle.tag)?;
        let call = self.kit.step(&ISSUE).key(keys.item("metadata", &handle.member));
        let call = call.key(keys.key("index")).arg(&handle.member);
        let call = call.arg(user.tenant_id()).arg(user.user_id()).arg(new.kind).arg(new.scopes);
        let reply = call.arg(new.ttl).arg(self.policy.safety).arg(self.policy.tokens_max);
        let reply = reply.run().await?;
        match reply.status() {
            "ISSUED" => {
                self.counts.issued.add(1);
                self.audit.emit(Action::Issued, &handle);
                Ok(Issued::Issued(token))
            }
            "FULL" => {
                self.counts.rejected.add(1);
                Ok(Issued::Full)
            }
            _ => Err(reply.unexpected()),
        }
    }

    /// What a token is worth: one round trip, and nothing is written.
    pub async fn check(&self, token: &Token) -> Result<Check> {
        self.check_handle(&self.handle(token)).await
    }

    /// The same for a token by its handle: of one that another issues, see [`Tokens::external`].
    pub async fn check_handle(&self, handle: &TokenHandle) -> Result<Check> {
        let metadata = self.keys(&handle.tag)?.item("metadata", &handle.member);
        let mut reply = self.kit.step(&CHECK).key(metadata).run().await?;
        observe::count("redis.token.check.count", "token", 1);
        let check = match reply.status() {
            "VALID" => {
                let user = User::new(reply.string("tenant_id")?, reply.string("subject_id")?);
                let expires_in = reply.duration("expires_in_ms")?;
                Check::Valid(TokenInfo { user, scopes: reply.string("scopes")?, expires_in })
            }
            "REVOKED" => Check::Revoked,
            "EXPIRED" => Check::Expired,
            "UNKNOWN" => Check::Unknown,
            "CORRUPT" => {
                observe::count("redis.token.check.corrupt.count", "token", 1);
                Check::Corrupt(reply.string("field")?)
            }
            _ => return Err(reply.unexpected()),
        };
        let counter = match &check {
            Check::Valid(_) => &self.counts.valid,
            Check::Revoked | Check::Expired | Check::Unknown => &self.counts.refused,
            Check::Corrupt(_) => &self.counts.corrupt,
        };
        counter.add(1);
        Ok(check)
    }

    /// The handle of a token that another issues, as a JWT, by its subject and its `jti`.
    pub fn external(&self, user: &User, jti: &str) -> Result<TokenHandle> {
        if jti.is_empty() {
            return Err(Error::invalid("jti is empty"));
        }
        let member = self.kit.digest("jti", jti.as_bytes());
        Ok(TokenHandle { tag: user.tag(&self.kit)?, member })
    }

    /// Revokes a token that another issued. `ttl` is how long it would be valid still: for so long
    /// it is known.
    pub async fn deny(&self, handle: &TokenHandle, ttl: Duration, reason: &str) -> Result<()> {
        let metadata = self.keys(&handle.tag)?.item("metadata", &handle.member);
        let call = self.kit.step(&DENY).key(metadata);
        call.arg(ttl + self.policy.safety).arg(cut(reason)).run().await?;
        self.counts.revoked.add(1);
        self.audit.emit(Action::Revoked, handle);
        Ok(())
    }

    /// Makes a token invalid. The reason is kept with it.
    pub async fn revoke(&self, token: &Token, reason: &str) -> Result<Revoked> {
        self.revoke_handle(&self.handle(token), reason).await
    }

    /// As [`Tokens::revoke`], for those who have the handle only.
    pub async fn revoke_handle(&self, handle: &TokenHandle, reason: &str) -> Result<Revoked> {
        let handles = std::slice::from_ref(handle);
        let reply = self.try_revoke(&handle.tag, handles, reason, "some").await?;
        self.revoked(&reply, handles)
    }

    /// Revokes all tokens of a user at once.
    pub async fn revoke_all(&self, user: &User, reason: &str) -> Result<Revoked> {
        let tag = user.tag(&self.kit)?;
        for _ in 0..REVOKE_ATTEMPTS_MAX {
            let handles = self.list(user).await?;
            let reply = self.try_revoke(&tag, &handles, reason, "all").await?;
            if !reply.is("CHANGED") {
                return self.revoked(&reply, &handles);
            }
        }
        Err(Error::Contention { attempts: REVOKE_ATTEMPTS_MAX })
    }

    /// The tokens of a user that have not ended, at most as many as are allowed.
    pub async fn list(&self, user: &User) -> Result<Vec<TokenHandle>> {
        let tag = user.tag(&self.kit)?;
        let call = self.kit.step(&LIST).key(self.keys(&tag)?.key("index"));
        let handle = |member: crate::Reply| match member.into_bytes()? {
            Some(member) => Ok(TokenHandle { tag: tag.clone(), member }),
            None => Err(Error::Corrupt("a token without a name".into())),
        };
        call.run().await?.list("members")?.into_iter().map(handle).collect()
    }

    async fn try_revoke(
        &self,
        tag: &[u8],
        handles: &[TokenHandle],
        reason: &str,
        mode: &str,
    ) -> Result<Envelope> {
        let keys = self.keys(tag)?;
        let mut call = self.kit.step(&REVOKE).key(keys.key("index"));
        for handle in handles {
            call = call.key(keys.item("metadata", &handle.member));
        }
        let mut call = call.arg(cut(reason)).arg(mode);
        for handle in handles {
            call = call.arg(&handle.member);
        }
        call.run().await
    }

    fn revoked(&self, reply: &Envelope, handles: &[TokenHandle]) -> Result<Revoked> {
        if !reply.is("REVOKED") {
            return Err(reply.unexpected());
        }
        handles.iter().for_each(|handle| self.audit.emit(Action::Revoked, handle));
        let count = reply.count("revoked_count")?;
        self.counts.revoked.add(count);
        Ok(Revoked { count })
    }

    /// What this handle and its clones have seen.
    pub fn stats(&self) -> TokenStats {
        self.counts.stats()
    }

    fn handle(&self, Token(bearer): &Token) -> TokenHandle {
        let member = self.kit.digest("token", bearer.secret());
        TokenHandle { tag: bearer.tag().to_vec(), member }
    }

    fn keys(&self, tag: &[u8]) -> Result<Keys> {
        self.kit.keys(FAMILY, Scope::from(tag))
    }
}

fn cut(reason: &str) -> &str {
    &reason[..reason.floor_char_boundary(TEXT_BYTES_MAX)]
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tokens").field("policy", &self.policy).finish_non_exhaustive()
    }
}
