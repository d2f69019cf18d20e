//! Sessions: who is logged in, with which rights, until when.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use russet::session::{Authorization, Created, NewSession, Policy, Sessions, Timeouts, User};
//! use std::time::Duration;
//!
//! let kit = russet::Kit::embedded(Default::default())?;
//! let timeouts =
//!     Timeouts { idle: Duration::from_secs(1800), absolute: Duration::from_secs(43_200) };
//! let sessions = Sessions::new(&kit, Policy::new(timeouts, 5))?;
//!
//! let user = User::new("acme", "user-1");
//! let created = sessions.create(&NewSession::of(&user)).await?;
//! let Created::Created(id) = created else { return Ok(()) };
//! let Authorization::Granted(context) = sessions.authorize(&id).await? else { return Ok(()) };
//! assert_eq!(context.user, user);
//! sessions.revoke(&id, "logout").await?;
//! assert_eq!(sessions.authorize(&id).await?, Authorization::Revoked);
//! # Ok(())
//! # }
//! ```
//!
//! An id carries the tag of its user, so that a session and the list of the user's sessions lie in
//! one slot and are changed in one step. What is stored of an id is its digest.

mod id;
mod mfa;
mod record;
mod revoke;
mod stats;

use crate::error::{Error, Result};
use crate::key::{Family, Key, Keys, Scope};
use crate::kit::Kit;
use crate::observe;
use crate::reply::Envelope;
use crate::step::{Safe, Step, StepInfo, WithRequestId};
use stats::Counts;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

pub use id::{SessionHandle, SessionId, User};
pub use mfa::MfaOutcome;
pub use record::{AuthContext, AuthLevel, Authorization, Lookup, Session, Status};
pub use revoke::Revoked;
pub use stats::SessionStats;

const FAMILY: Family = Family { purpose: "session", version: 1 };
/// Sessions of one user, at most.
pub const SESSIONS_MAX: u32 = 256;
/// The TTL is renewed when less than this part of the idle timeout is left.
const REFRESH_BELOW_PERCENT: u32 = 25;
const CHALLENGE_TTL: Duration = Duration::from_secs(300);
const ATTEMPTS_MAX: u32 = 5;
/// How long a revoked session is known as such.
const REVOKED_FOR: Duration = Duration::from_secs(3600);

static CREATE: Step<Safe> = Step::new("session_create", include_str!("session/create.lua"));
static AUTHORIZE: Step<Safe> =
    Step::read_only("session_authorize", include_str!("session/authorize.lua"));
static TOUCH: Step<Safe> = Step::new("session_touch", include_str!("session/touch.lua"));
static FIND: Step<Safe> = Step::read_only("session_find", include_str!("session/find.lua"));
static LIST: Step<Safe> = Step::read_only("session_list", include_str!("session/list.lua"));
static MFA_BEGIN: Step<Safe> =
    Step::new("session_mfa_begin", include_str!("session/mfa_begin.lua"));
static MFA_VERIFY: Step<WithRequestId> =
    Step::new("session_mfa_verify", include_str!("session/mfa_verify.lua"));
static MFA_FAIL: Step<WithRequestId> =
    Step::new("session_mfa_fail", include_str!("session/mfa_fail.lua"));
static REVOKE: Step<Safe> = Step::new("session_revoke", include_str!("session/revoke.lua"));
static SUCCESSOR: Step<Safe> =
    Step::read_only("session_successor", include_str!("session/successor.lua"));
static ROTATE: Step<Safe> = Step::new("session_rotate", include_str!("session/rotate.lua"));

pub(crate) static STEPS: &[&StepInfo] = &[
    CREATE.info(),
    AUTHORIZE.info(),
    TOUCH.info(),
    FIND.info(),
    LIST.info(),
    MFA_BEGIN.info(),
    MFA_VERIFY.info(),
    MFA_FAIL.info(),
    REVOKE.info(),
    ROTATE.info(),
    SUCCESSOR.info(),
];

/// When sessions end by themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// After this long without a request.
    pub idle: Duration,
    /// After this long in any case.
    pub absolute: Duration,
}

/// How sessions are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    timeouts: Timeouts,
    sessions_max: u32,
    when_full: WhenFull,
    challenge_ttl: Duration,
    attempts_max: u32,
}

/// What is done when a user who has all the sessions that are allowed logs in once more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenFull {
    /// The session that would end first ends now.
    Evict,
    /// The log-in is refused: [`Created::Full`].
    Reject,
}

impl Policy {
    /// `sessions_max` is per user.
    pub fn new(timeouts: Timeouts, sessions_max: u32) -> Self {
        Policy {
            timeouts,
            sessions_max,
            when_full: WhenFull::Evict,
            challenge_ttl: CHALLENGE_TTL,
            attempts_max: ATTEMPTS_MAX,
        }
    }

    /// What is done when a user has all sessions; the one that would end first ends by default.
    pub fn when_full(mut self, when_full: WhenFull) -> Self {
        self.when_full = when_full;
        self
    }

    /// How long a challenge can be met, 5 minutes, and how many attempts may fail before the
    /// session is locked, 5.
    pub fn mfa(mut self, challenge_ttl: Duration, attempts_max: u32) -> Self {
        (self.challenge_ttl, self.attempts_max) = (challenge_ttl, attempts_max);
        self
    }
}

/// Who logs in.
#[derive(Clone)]
pub struct NewSession<'a> {
    user: &'a User,
    status: Status,
    ip: &'a str,
    user_agent: &'a str,
}

impl<'a> NewSession<'a> {
    /// A log-in that needs no second factor.
    pub fn of(user: &'a User) -> Self {
        NewSession { user, status: Status::Active, ip: "", user_agent: "" }
    }

    /// Nothing is granted before a challenge is met: see [`Sessions::begin_mfa`].
    pub fn mfa_required(mut self) -> Self {
        self.status = Status::MfaRequired;
        self
    }

    /// Where it comes from. Digests of both are stored.
    pub fn from(mut self, ip: &'a str, user_agent: &'a str) -> Self {
        (self.ip, self.user_agent) = (ip, user_agent);
        self
    }
}

/// Says nothing of who it is.
impl fmt::Debug for NewSession<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NewSession").field("status", &self.status).finish_non_exhaustive()
    }
}

/// What came of a log-in.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum Created {
    /// The id is for the client, and is not stored.
    Created(SessionId),
    /// The user has all sessions that are allowed, and none is evicted.
    Full,
}

/// What a touch found.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct Touched {
    /// What the session is worth now.
    pub authorization: Authorization,
    /// The TTL was renewed; else nothing was written.
    pub is_refreshed: bool,
}

/// Whether a session has a new id.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum Rotated {
    /// The new id; the old one is valid no longer.
    Rotated(SessionId),
    /// It was revoked before: nothing has changed.
    Revoked,
    /// There is no such session.
    Missing,
}

/// The sessions of an application.
#[derive(Clone)]
pub struct Sessions {
    kit: Kit,
    policy: Policy,
    counts: Arc<Counts>,
}

impl Sessions {
    /// Sessions by this policy. Refuses one without sense, as an idle time of zero.
    pub fn new(kit: &Kit, policy: Policy) -> Result<Self> {
        let Timeouts { idle, absolute } = policy.timeouts;
        if idle.is_zero() || absolute < idle {
            return Err(Error::invalid("timeouts: idle must not be zero, nor absolute less"));
        }
        if policy.sessions_max == 0 || policy.sessions_max > SESSIONS_MAX {
            return Err(Error::invalid(format!("sessions_max must be from 1 to {SESSIONS_MAX}")));
        }
        if policy.challenge_ttl.is_zero() || policy.attempts_max == 0 {
            return Err(Error::invalid("mfa: neither may be zero"));
        }
        Ok(Sessions { kit: kit.clone(), policy, counts: Arc::default() })
    }

    /// Makes a session and its id, which only the client keeps.
    pub async fn create(&self, new: &NewSession<'_>) -> Result<Created> {
        new.user.check()?;
        let tag = new.user.tag(&self.kit)?;
        let id = SessionId::random(&tag);
        let mut evicted: Option<SessionHandle> = None;
        for _ in 0..=SESSIONS_MAX {
            let mut reply = self.try_create(new, &id, evicted.as_ref()).await?;
            match reply.status() {
                "CREATED" => {
                    self.counts.created.add(1);
                    self.counts.evicted.add(u64::from(evicted.is_some()));
                    return Ok(Created::Created(id));
                }
                "FULL" => {
                    self.counts.rejected.add(1);
                    return Ok(Created::Full);
                }
                "EVICT" => evicted = Some(SessionHandle::new(&tag, reply.text("member")?)),
                _ => return Err(reply.unexpected()),
            }
        }
        Err(Error::Contention { attempts: SESSIONS_MAX })
    }

    async fn try_create(
        &self,
        new: &NewSession<'_>,
        id: &SessionId,
        evicted: Option<&SessionHandle>,
    ) -> Result<Envelope> {
        let Policy { timeouts, sessions_max, when_full, .. } = self.policy;
        let (session_keys, digest) =
            (self.session_keys(&id.handle(&self.kit))?, |label, text: &str| match text {
                "" => Vec::new(),
                text => self.kit.digest(label, text.as_bytes()),
            });
        let (victim, member) = match evicted {
            Some(handle) => (self.session_keys(handle)?.state, handle.member().to_vec()),
            None => (session_keys.state.clone(), Vec::new()),
        };
        let when_full = match when_full {
            WhenFull::Evict => "evict",
            WhenFull::Reject => "reject",
        };
        let rotated = session_keys.keys.item("rotated", &session_keys.member);
        let call =
            self.kit.step(&CREATE).key(session_keys.state).key(session_keys.index).key(victim);
        let call = call.key(rotated);
        let call = call.arg(&session_keys.member).arg(new.user.user_id()).arg(new.user.tenant_id());
        let call = call.arg(new.status.name()).arg(AuthLevel::Basic.name());
        let call = call.arg(timeouts.idle).arg(timeouts.absolute).arg(sessions_max);
        let call = call.arg(when_full).arg(member);
        call.arg(digest("ip", new.ip)).arg(digest("user agent", new.user_agent)).run().await
    }

    /// What a request needs: four fields in one round trip, and nothing is written.
    pub async fn authorize(&self, id: &SessionId) -> Result<Authorization> {
        let session_keys = self.session_keys(&id.handle(&self.kit))?;
        let watch = observe::Stopwatch::start();
        let reply = self.kit.step(&AUTHORIZE).key(session_keys.state).run().await?;
        observe::latency("redis.session.hmget.latency", "session", watch);
        let authorization = record::authorization(reply)?;
        self.counts.count_authorization(&authorization);
        Ok(authorization)
    }

    /// The same, and the session stays alive: its TTL is renewed when less than a quarter of it is
    /// left. Mostly nothing is written.
    pub async fn touch(&self, id: &SessionId) -> Result<Touched> {
        self.keep_alive(id, false).await
    }

    /// The same, and the time is recorded as the last that the session was seen.
    pub async fn heartbeat(&self, id: &SessionId) -> Result<Touched> {
        self.keep_alive(id, true).await
    }

    async fn keep_alive(&self, id: &SessionId, is_heartbeat: bool) -> Result<Touched> {
        let session_keys = self.session_keys(&id.handle(&self.kit))?;
        let call = self
            .kit
            .step(&TOUCH)
            .key(session_keys.state)
            .key(session_keys.index)
            .arg(session_keys.member);
        let call = call.arg(self.policy.timeouts.idle).arg(REFRESH_BELOW_PERCENT);
        let reply = call.arg(is_heartbeat).run().await?;
        let is_refreshed = reply.is("FOUND") && reply.int("is_refreshed")? == 1;
        if is_refreshed {
            self.counts.refreshed.add(1);
            observe::count("redis.session.ttl.refresh.count", "session", 1);
        }
        let authorization = record::authorization(reply)?;
        self.counts.count_authorization(&authorization);
        Ok(Touched { authorization, is_refreshed })
    }

    /// The whole session.
    pub async fn find(&self, id: &SessionId) -> Result<Lookup> {
        self.find_by_handle(&id.handle(&self.kit)).await
    }

    /// The whole session, for whoever administers sessions and does not know their ids.
    pub async fn find_by_handle(&self, handle: &SessionHandle) -> Result<Lookup> {
        let session_keys = self.session_keys(handle)?;
        let mut call = self.kit.step(&FIND).key(session_keys.state);
        for field in record::FIELDS {
            call = call.arg(field.name());
        }
        let lookup = record::lookup(handle, call.run().await?)?;
        self.counts.count_lookup(&lookup);
        Ok(lookup)
    }

    /// The sessions of a user that have not ended, at most as many as are allowed.
    pub async fn list(&self, user: &User) -> Result<Vec<SessionHandle>> {
        let tag = user.tag(&self.kit)?;
        let index = self.keys(&tag)?.key("index");
        let members = self.kit.step(&LIST).key(index).run().await?.list("members")?;
        let handle = |member: crate::Reply| match member.into_bytes()? {
            Some(member) => Ok(SessionHandle::new(&tag, member)),
            None => Err(Error::Corrupt("a session without a name".into())),
        };
        members.into_iter().map(handle).collect()
    }

    /// Gives a session a new id, as after every change of its rights, so that an id that was known
    /// to others before is worth nothing.
    pub async fn rotate(&self, id: &SessionId) -> Result<Rotated> {
        let fresh = SessionId::random(id.tag());
        let (old, new) = (
            self.session_keys(&id.handle(&self.kit))?,
            self.session_keys(&fresh.handle(&self.kit))?,
        );
        let rotated = old.keys.item("rotated", &old.member);
        let call = self.kit.step(&ROTATE).key(old.state).key(new.state).key(old.index).key(rotated);
        let reply = call.arg(old.member).arg(new.member).run().await?;
        match reply.status() {
            "ROTATED" => {
                self.counts.rotated.add(1);
                Ok(Rotated::Rotated(fresh))
            }
            "REVOKED" => Ok(Rotated::Revoked),
            "MISSING" => Ok(Rotated::Missing),
            _ => Err(reply.unexpected()),
        }
    }

    /// What this handle and its clones have seen.
    pub fn stats(&self) -> SessionStats {
        self.counts.stats()
    }

    fn keys(&self, tag: &[u8]) -> Result<Keys> {
        self.kit.keys(FAMILY, Scope::from(tag))
    }

    fn session_keys(&self, handle: &SessionHandle) -> Result<SessionKeys> {
        let keys = self.keys(handle.tag())?;
        let member = handle.member().to_vec();
        Ok(SessionKeys {
            state: keys.item("state", &member),
            index: keys.key("index"),
            member,
            keys,
        })
    }
}

/// Where a session is.
struct SessionKeys {
    keys: Keys,
    state: Key,
    index: Key,
    member: Vec<u8>,
}

impl fmt::Debug for Sessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sessions").field("policy", &self.policy).finish_non_exhaustive()
    }
}
