//! Idempotency: a request is carried out once, however often it is sent, and whoever sends it again
//! gets the response of the first time.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use russet::idempotency::{Idempotency, IdempotencyKey, Run, Ttls};
//! use std::time::Duration;
//!
//! let kit = russet::Kit::embedded(Default::default())?;
//! let ttls = Ttls { claim: Duration::from_secs(30), result: Duration::from_secs(86_400) };
//! let orders = Idempotency::new(&kit, "create-order", ttls)?;
//! let key = IdempotencyKey::new("acme", "7c0e4a1f");
//!
//! let first = orders.idempotent(&key, "3 apples", || async { Ok("order 1".to_owned()) }).await?;
//! assert_eq!(first, Run::Done("order 1".to_owned()));
//! let again = orders.idempotent(&key, "3 apples", || async { Ok("order 2".to_owned()) }).await?;
//! assert_eq!(again, Run::Replay("order 1".to_owned()));
//! # Ok(())
//! # }
//! ```
//!
//! The record of a request is one hash. It can't cover what the work does elsewhere: if the worker
//! dies after its database has committed and before [`Claim::complete`], the next one takes over
//! and must find out ([`Claim::is_takeover`]).

mod run;

use crate::error::{Error, Result};
use crate::key::{Family, Key, Scope};
use crate::kit::Kit;
use crate::observe;
use crate::reply::{Envelope, Reply};
use crate::retry::{RequestId, token};
use crate::step::{Safe, Step, StepInfo};
use serde::Serialize;
use sha2::{Digest, Sha256};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

pub use run::Run;

const FAMILY: Family = Family { purpose: "idempotency", version: 1 };
/// The largest response that is stored.
pub const BODY_BYTES_MAX: usize = 1 << 20;
/// The longest reason of a failure; the rest is cut off.
pub const REASON_BYTES_MAX: usize = 512;

static CLAIM: Step<Safe> = Step::new("idempotency_claim", include_str!("idempotency/claim.lua"));
static RENEW: Step<Safe> = Step::new("idempotency_renew", include_str!("idempotency/renew.lua"));
static COMPLETE: Step<Safe> =
    Step::new("idempotency_complete", include_str!("idempotency/complete.lua"));
static FAIL: Step<Safe> = Step::new("idempotency_fail", include_str!("idempotency/fail.lua"));
static READ: Step<Safe> = Step::read_only("idempotency_read", include_str!("idempotency/read.lua"));
static MARK: Step<Safe> = Step::new("idempotency_mark", include_str!("idempotency/mark.lua"));

pub(crate) static STEPS: &[&StepInfo] =
    &[CLAIM.info(), RENEW.info(), COMPLETE.info(), FAIL.info(), READ.info(), MARK.info()];

/// How long a claim and a result are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ttls {
    /// After this without a renewal, another worker may take over: short, as the longest pause of a
    /// worker that is alive.
    pub claim: Duration,
    /// How long a request is known: as long as clients may send it again.
    pub result: Duration,
}

/// The requests of one operation.
#[derive(Clone)]
pub struct Idempotency {
    kit: Kit,
    operation: Arc<str>,
    ttls: Ttls,
    wait: Duration,
    counts: Arc<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    claimed: AtomicU64,
    replayed: AtomicU64,
    in_flight: AtomicU64,
    mismatched: AtomicU64,
    taken_over: AtomicU64,
    lost: AtomicU64,
}

/// What this handle and its clones have seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Claims that were given to callers.
    pub claimed: u64,
    /// Calls that got the stored response, or the final failure.
    pub replayed: u64,
    /// Calls that came while another was at the request.
    pub in_flight: u64,
    /// Calls whose key had been used for another request.
    pub mismatched: u64,
    /// Claims whose owner had given no sign of life.
    pub taken_over: u64,
    /// Claims of ours that another has taken over.
    pub lost: u64,
}

/// The name that a client gave its request, within its tenant. It is digested before it is stored.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct IdempotencyKey {
    tenant: Scope,
    key: Vec<u8>,
}

impl IdempotencyKey {
    /// Without the tenant, one customer could read the responses of another.
    pub fn new(tenant: impl Into<Scope>, key: impl AsRef<[u8]>) -> Self {
        IdempotencyKey { tenant: tenant.into(), key: key.as_ref().to_vec() }
    }
}

/// Says nothing of its content.
impl fmt::Debug for IdempotencyKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("IdempotencyKey")
    }
}

/// What was asked for, as a digest: the same key with another request is a mistake of the client.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Fingerprint(Vec<u8>);

impl Fingerprint {
    /// The digest of a request as it was sent.
    pub fn of(request: impl AsRef<[u8]>) -> Self {
        Fingerprint(crate::key::hex(&Sha256::digest(request.as_ref())))
    }

    /// Of a value; the order of its fields does not matter.
    pub fn of_json(request: &impl Serialize) -> Result<Self> {
        let value =
            serde_json::to_value(request).map_err(|error| Error::invalid(error.to_string()))?;
        Ok(Fingerprint::of(value.to_string()))
    }
}

impl<T: AsRef<[u8]> + ?Sized> From<&T> for Fingerprint {
    fn from(request: &T) -> Self {
        Fingerprint::of(request)
    }
}

/// What became of a claim.
#[derive(Debug)]
#[must_use]
pub enum Outcome {
    /// The request is the caller's to carry out.
    Claimed(Claim),
    /// It was carried out: this is what was answered.
    Replay(Vec<u8>),
    /// It has failed for good.
    Failed(Failure),
    /// Another is at it.
    InFlight {
        /// When its claim runs out, unless it is renewed.
        retry_after: Duration,
    },
    /// The key was used for another request.
    Mismatch,
}

/// Why a request failed, and whether the next claim may try again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Whether the next claim may try again.
    pub kind: FailureKind,
    /// In a word, as `upstream_timeout`.
    pub reason: String,
}

/// What a failure means for the next claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// It gets the request, and tries again.
    Retryable,
    /// It gets the failure: [`Outcome::Failed`].
    Final,
}

impl Failure {
    /// A failure that may pass, as `upstream_timeout`.
    pub fn retryable(reason: impl Into<String>) -> Self {
        Failure { kind: FailureKind::Retryable, reason: reason.into() }
    }

    /// A failure that stays, as `card_declined`.
    pub fn terminal(reason: impl Into<String>) -> Self {
        Failure { kind: FailureKind::Final, reason: reason.into() }
    }
}

/// Whether the caller still had the claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum ClaimStatus {
    /// It had, and what it asked for was done.
    Kept,
    /// Another has taken it over, or the record is gone: nothing was changed.
    Lost,
}

/// What [`Idempotency::try_claim`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Mark {
    /// The caller is the first.
    Claimed,
    /// Another was, or the caller itself.
    AlreadyExists {
        /// Until it is forgotten.
        expires_in: Duration,
    },
}

/// Where a request stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Status {
    /// Nothing is known of it: never claimed, or forgotten.
    Absent,
    /// With `retry_after` zero it was abandoned.
    InProgress {
        /// How often it was claimed.
        attempt: u64,
        /// When its claim runs out, unless it is renewed.
        retry_after: Duration,
    },
    /// It was carried out, and its response is kept.
    Completed {
        /// The attempt that did it, the first being 1.
        attempt: u64,
    },
    /// It has failed.
    Failed {
        /// The attempt that failed, the first being 1.
        attempt: u64,
        /// Why, and whether it may be tried again.
        failure: Failure,
    },
}

impl Idempotency {
    /// `operation` keeps the keys of different operations apart, as `create-order`.
    pub fn new(kit: &Kit, operation: &str, ttls: Ttls) -> Result<Self> {
        if operation.is_empty() {
            return Err(Error::invalid("operation is empty"));
        }
        if ttls.claim.is_zero() || ttls.result < ttls.claim {
            return Err(Error::invalid("ttls: claim must not be zero, nor result less than it"));
        }
        let (operation, counts) = (operation.into(), Arc::default());
        Ok(Idempotency { kit: kit.clone(), operation, ttls, wait: Duration::ZERO, counts })
    }

    /// Lets [`Idempotency::idempotent`] wait so long for another who carries the request out.
    pub fn waiting(mut self, at_most: Duration) -> Self {
        self.wait = at_most;
        self
    }

    /// Claims a request. A claim that is dropped stays until its TTL is over: what its owner has
    /// done by then is unknown, as after a crash.
    pub async fn claim(
        &self,
        key: &IdempotencyKey,
        request: impl Into<Fingerprint>,
    ) -> Result<Outcome> {
        let (record, owner, Fingerprint(print)) =
            (self.key(key, "record")?, token().to_vec(), request.into());
        let call = self.kit.step(&CLAIM).key(record.clone()).arg(&owner).arg(&print);
        let mut reply = call.arg(self.ttls.claim).arg(self.ttls.result).run().await?;
        let (count, outcome) = match reply.status() {
            "CLAIMED" => {
                let (attempt, is_takeover) =
                    (reply.count("attempt")?, reply.int("is_takeover")? == 1);
                if is_takeover {
                    self.counts.taken_over.fetch_add(1, Relaxed);
                    observe::count("redis.idempotency.claim.takeover.count", "idempotency", 1);
                }
                let store = self.clone();
                let claim = Claim { store, record, owner, attempt, is_takeover };
                (&self.counts.claimed, Outcome::Claimed(claim))
            }
            "REPLAY" => (&self.counts.replayed, Outcome::Replay(reply.text("body")?)),
            "FAILED" => {
                let failure = Failure::terminal(reply.string("reason")?);
                (&self.counts.replayed, Outcome::Failed(failure))
            }
            "IN_FLIGHT" => {
                let retry_after = reply.duration("retry_after_ms")?;
                (&self.counts.in_flight, Outcome::InFlight { retry_after })
            }
            "MISMATCH" => (&self.counts.mismatched, Outcome::Mismatch),
            _ => return Err(reply.unexpected()),
        };
        count.fetch_add(1, Relaxed);
        let name = match outcome {
            Outcome::Claimed(_) => "redis.idempotency.claim.success.count",
            _ => "redis.idempotency.claim.conflict.count",
        };
        observe::count(name, "idempotency", 1);
        Ok(outcome)
    }

    /// The simplest form: the first to call within `ttl` may act, and nothing is stored of how it
    /// ended. A caller who must ask again, after a crash for example, gives the same request id.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use russet::idempotency::*;
    /// # use std::time::Duration;
    /// # let kit = russet::Kit::embedded(Default::default())?;
    /// # let ttls = Ttls { claim: Duration::from_secs(30), result: Duration::from_secs(60) };
    /// let mails = Idempotency::new(&kit, "welcome-mail", ttls)?;
    /// let key = IdempotencyKey::new("acme", "user 1");
    /// let week = Duration::from_secs(7 * 86_400);
    /// assert_eq!(mails.try_claim(&key, week, None).await?, Mark::Claimed);
    /// assert!(matches!(mails.try_claim(&key, week, None).await?, Mark::AlreadyExists { .. }));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn try_claim(
        &self,
        key: &IdempotencyKey,
        ttl: Duration,
        request: Option<&RequestId>,
    ) -> Result<Mark> {
        let own = || token().to_vec();
        let token = request.map_or_else(own, |id| self.kit.digest("mark", id.as_bytes()));
        let call = self.kit.step(&MARK).key(self.key(key, "mark")?).arg(token).arg(ttl);
        let reply = call.run().await?;
        match reply.status() {
            "CLAIMED" => {
                observe::count("redis.idempotency.claim.success.count", "idempotency", 1);
                Ok(Mark::Claimed)
            }
            "EXISTS" => {
                observe::count("redis.idempotency.claim.conflict.count", "idempotency", 1);
                if reply.field("has_ttl").and_then(Reply::as_int) == Some(0) {
                    observe::ttl_missing("idempotency");
                }
                Ok(Mark::AlreadyExists { expires_in: reply.duration("expires_in_ms")? })
            }
            _ => Err(reply.unexpected()),
        }
    }

    /// Where a request stands.
    pub async fn status(&self, key: &IdempotencyKey) -> Result<Status> {
        let mut reply = self.kit.step(&READ).key(self.key(key, "record")?).run().await?;
        if reply.is("ABSENT") {
            return Ok(Status::Absent);
        }
        let attempt = reply.count("attempt")?;
        let kind = match reply.status() {
            "IN_PROGRESS" => {
                let retry_after = reply.duration("retry_after_ms")?;
                return Ok(Status::InProgress { attempt, retry_after });
            }
            "COMPLETED" => return Ok(Status::Completed { attempt }),
            "FAILED_RETRYABLE" => FailureKind::Retryable,
            "FAILED_FINAL" => FailureKind::Final,
            _ => return Err(Error::Corrupt("the state of an idempotency record".into())),
        };
        let failure = Failure { kind, reason: reply.string("reason")? };
        Ok(Status::Failed { attempt, failure })
    }

    /// Forgets a request, for an operator who knows that it may be carried out again.
    pub async fn forget(&self, key: &IdempotencyKey) -> Result<()> {
        let request =
            crate::Request::new("DEL").key(&self.key(key, "record")?).key(&self.key(key, "mark")?);
        self.kit.call_safe(&request).await.map(drop)
    }

    /// What this handle and its clones have seen.
    pub fn stats(&self) -> Stats {
        let Counts { claimed, replayed, in_flight, mismatched, taken_over, lost } = &*self.counts;
        Stats {
            claimed: claimed.load(Relaxed),
            replayed: replayed.load(Relaxed),
            in_flight: in_flight.load(Relaxed),
            mismatched: mismatched.load(Relaxed),
            taken_over: taken_over.load(Relaxed),
            lost: lost.load(Relaxed),
        }
    }

    pub(crate) fn key(&self, key: &IdempotencyKey, part: &'static str) -> Result<Key> {
        if key.key.is_empty() {
            return Err(Error::invalid("the idempotency key is empty"));
        }
        let scope = Scope::from(&*self.operation).join(&key.tenant).and_digest(&key.key);
        Ok(self.kit.keys(FAMILY, scope)?.key(part))
    }
}

impl fmt::Debug for Idempotency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Idempotency").field("operation", &self.operation).finish_non_exhaustive()
    }
}

/// The right to carry a request out. Who has it must [`complete`](Claim::complete) it or let it
/// [`fail`](Claim::fail), and [`renew`](Claim::renew) it meanwhile if it takes long.
#[must_use]
pub struct Claim {
    store: Idempotency,
    record: Key,
    owner: Vec<u8>,
    attempt: u64,
    is_takeover: bool,
}

impl Claim {
    /// Which attempt this is, the first being 1.
    pub fn attempt(&self) -> u64 {
        self.attempt
    }

    /// The owner before gave no sign of life: it may have done all, half or nothing of the work.
    pub fn is_takeover(&self) -> bool {
        self.is_takeover
    }

    /// A sign of life: the claim lasts its TTL from now.
    pub async fn renew(&self) -> Result<ClaimStatus> {
        self.claim_status(self.step(&RENEW).arg(self.store.ttls.claim).run().await?)
    }

    /// Stores the response, which is replayed from now on. What is too large is refused: let the
    /// claim fail then, or keep a reference instead.
    pub async fn complete(&self, body: impl AsRef<[u8]>) -> Result<ClaimStatus> {
        let body = body.as_ref();
        if body.len() > BODY_BYTES_MAX {
            return Err(Error::invalid(format!("the response is over {BODY_BYTES_MAX} bytes")));
        }
        self.claim_status(self.step(&COMPLETE).arg(body).arg(self.store.ttls.result).run().await?)
    }

    /// Records that it failed; if it is retryable, the next claim is granted.
    pub async fn fail(&self, failure: &Failure) -> Result<ClaimStatus> {
        let kind = match failure.kind {
            FailureKind::Retryable => "FAILED_RETRYABLE",
            FailureKind::Final => "FAILED_FINAL",
        };
        let reason = &failure.reason;
        let cut = reason.floor_char_boundary(REASON_BYTES_MAX);
        let call = self.step(&FAIL).arg(kind).arg(&reason[..cut]).arg(self.store.ttls.result);
        self.claim_status(call.run().await?)
    }

    fn step(&self, step: &'static Step<Safe>) -> crate::step::StepCall<'_, Safe> {
        self.store.kit.step(step).key(self.record.clone()).arg(&self.owner)
    }

    fn claim_status(&self, reply: Envelope) -> Result<ClaimStatus> {
        match reply.status() {
            "KEPT" => Ok(ClaimStatus::Kept),
            "LOST" => {
                self.store.counts.lost.fetch_add(1, Relaxed);
                observe::count("redis.idempotency.claim.lost.count", "idempotency", 1);
                Ok(ClaimStatus::Lost)
            }
            _ => Err(reply.unexpected()),
        }
    }
}

impl fmt::Debug for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Claim")
            .field("attempt", &self.attempt)
            .field("is_takeover", &self.is_takeover)
            .finish_non_exhaustive()
    }
}
