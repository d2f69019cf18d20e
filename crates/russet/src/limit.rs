//! Limits: how often, how many at once, how much per day. Each subject has its own; several limits
//! are decided in one step, all or nothing, and the same request is never charged twice.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use russet::limit::{Decision, Limit, Limiter, Outage, Period};
//! use std::time::Duration;
//!
//! let kit = russet::Kit::embedded(russet::Options::default())?;
//! let limits = [
//!     Limit::bucket("burst", 5, Duration::from_secs(1))?,
//!     Limit::quota("daily", 1000, Period::Day)?,
//! ];
//! let api = Limiter::new(&kit, "api", limits, Outage::Deny)?;
//!
//! for _ in 0..5 {
//!     assert!(api.check("user-1", 1, None).await?.is_allowed());
//! }
//! let Decision::Denied(denied) = api.check("user-1", 1, None).await? else {
//!     panic!("the burst is over");
//! };
//! assert!(denied.retry_after <= Duration::from_millis(200));
//! assert!(api.check("user-2", 1, None).await?.is_allowed());
//! # Ok(())
//! # }
//! ```

mod decision;
mod local;
mod outage;
mod permit;
pub mod policy;
mod rule;
mod watch;

pub use decision::{Allowed, Basis, Charge, Decision, Denied, LimitStatus};
pub use outage::Outage;
pub use permit::{Entry, Permit};
pub use rule::{Limit, Period};
pub use watch::{Spent, WatchQuota, WatchQuotaStats};

use crate::error::{Error, Result};
use crate::key::{Family, Key, Keys, Scope};
use crate::kit::Kit;
use crate::observe;
use crate::reply::{Envelope, Reply};
use crate::retry::{RequestId, token};
use crate::step::{Safe, Step, StepCall, StepInfo, WithRequestId};
use local::LocalBuckets;
use outage::Circuit;
use permit::Unanswered;
use russet_base::num::write_u64;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const FAMILY: Family = Family { purpose: "limit", version: 1 };
/// Limits that one step can decide.
const LIMITS_MAX: usize = 16;
/// Room for the digits of most costs.
const COST_ROOM: usize = 7;

static CHECK: Step<WithRequestId> = Step::new("limit_check", include_str!("limit/check.lua"));
static BUCKET: Step<WithRequestId> = Step::new("limit_bucket", include_str!("limit/bucket.lua"));
static REFUND: Step<WithRequestId> = Step::new("limit_refund", include_str!("limit/refund.lua"));
static RELEASE: Step<Safe> = Step::new("limit_release", include_str!("limit/release.lua"));
static RENEW: Step<Safe> = Step::new("limit_renew", include_str!("limit/renew.lua"));
static RESET: Step<Safe> = Step::new("limit_reset", include_str!("limit/reset.lua"));

pub(crate) static STEPS: &[&StepInfo] =
    &[BUCKET.info(), CHECK.info(), REFUND.info(), RELEASE.info(), RENEW.info(), RESET.info()];

/// Whose limits they are: a user, a tenant, an address. Any [`Scope`] is one.
///
/// All limits of a limiter are kept in the subject's slot. One of them can count for a part of the
/// subject only, so that limits of a tenant and of one of its users are decided together:
///
/// ```
/// # use russet::{key::Scope, limit::Subject};
/// let subject = Subject::from("tenant-1").of("per-user", "user-7");
/// let private = Subject::from(Scope::sensitive("ann@example.org"));
/// # let _ = (subject, private);
/// ```
#[derive(Clone, Debug)]
pub struct Subject {
    scope: Scope,
    parts: Vec<(String, Scope)>,
}

impl Subject {
    /// The limit of this name counts for a part of the subject.
    pub fn of(mut self, limit: &str, part: impl Into<Scope>) -> Self {
        self.parts.push((limit.to_owned(), part.into()));
        self
    }
}

impl<T: Into<Scope>> From<T> for Subject {
    fn from(scope: T) -> Self {
        Subject { scope: scope.into(), parts: Vec::new() }
    }
}

/// A set of limits. Clones share their counts and what they know of an outage.
#[derive(Clone)]
pub struct Limiter {
    inner: Arc<Inner>,
}

struct Inner {
    kit: Kit,
    name: String,
    limits: Arc<[Limit]>,
    /// What tells the key of each limit from others of its kind.
    ids: Vec<String>,
    outage: Outage,
    circuit: Circuit,
    /// Per limit, if the outage policy needs them.
    shares: Vec<LocalBuckets>,
    pre_limit: Option<LocalBuckets>,
    counts: Counts,
}

#[derive(Debug, Default)]
struct Counts {
    allowed: AtomicU64,
    denied: AtomicU64,
    pre_limited: AtomicU64,
    outages: AtomicU64,
}

/// What a limiter has decided since it was made, in this process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LimiterStats {
    /// Calls that were allowed, by whatever it was decided.
    pub allowed: u64,
    /// Calls that were denied, by whatever it was decided.
    pub denied: u64,
    /// Of those denied, how many were so without asking the store.
    pub pre_limited: u64,
    /// Decisions by the outage policy.
    pub outages: u64,
}

/// What came of giving back.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct Refunded {
    /// How much each limit got back: less than asked where the charge had run out by itself.
    pub returned: Vec<u64>,
}

/// Whether a slot is still held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Renewal {
    /// For another while, from now on.
    Renewed,
    /// It had run out, or was given up.
    Lost,
}

impl Limiter {
    /// Limits that are decided together, under a name that stands in their keys. What happens while
    /// the store can't be reached has no default: it depends on what the limits protect.
    pub fn new(
        kit: &Kit,
        name: &str,
        limits: impl IntoIterator<Item = Limit>,
        outage: Outage,
    ) -> Result<Limiter> {
        rule::check_name(name)?;
        let limits: Arc<[Limit]> = limits.into_iter().collect();
        if limits.is_empty() || limits.len() > LIMITS_MAX {
            return Err(Error::invalid(format!("a limiter has 1 to {LIMITS_MAX} limits")));
        }
        let mut names: Vec<&str> = limits.iter().map(Limit::name).collect();
        names.sort_unstable();
        if names.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(Error::invalid("two limits of a limiter have the same name"));
        }
        let shares = outage.shares(&limits)?;
        // A request that held a slot must be able to take one again when that has run out.
        let holds = limits.iter().filter(|limit| limit.is_concurrency()).map(Limit::length);
        let kit = match holds.min() {
            Some(hold) => kit.with_request_ttl(hold.min(kit.settings().request_ttl)),
            None => kit.clone(),
        };
        let ids = limits.iter().map(|limit| format!("{name}/{}", limit.name())).collect();
        let inner = Inner {
            kit,
            name: name.to_owned(),
            limits,
            ids,
            outage,
            circuit: Circuit::default(),
            shares,
            pre_limit: None,
            counts: Counts::default(),
        };
        Ok(Limiter { inner: Arc::new(inner) })
    }

    /// The same with a limit of this process in front: what exceeds it is denied without asking the
    /// store. For subjects so busy that their slot would be.
    pub fn with_pre_limit(self, max: u32, window: Duration) -> Result<Limiter> {
        if max == 0 || window.is_zero() {
            return Err(Error::invalid("a pre-limit has a maximum and a window"));
        }
        let buckets = LocalBuckets::new(f64::from(max), f64::from(max), window);
        let Inner { kit, name, limits, outage, .. } = &*self.inner;
        let mut made = Limiter::new(kit, name, limits.iter().cloned(), *outage)?;
        if let Some(inner) = Arc::get_mut(&mut made.inner) {
            inner.pre_limit = Some(buckets);
        }
        Ok(made)
    }

    /// As it stands in keys.
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// In the order in which they were given, and in which decisions list them.
    pub fn limits(&self) -> &[Limit] {
        &self.inner.limits
    }

    /// Asks for `cost`, and charges it if all limits allow it. With a request id, calling again
    /// gives the first answer if that was to allow, and charges nothing.
    ///
    /// If the store can't be reached the limiter's [`Outage`] policy decides.
    pub async fn check(
        &self,
        subject: impl Into<Subject>,
        cost: u64,
        request: Option<&RequestId>,
    ) -> Result<Decision> {
        let inner = &*self.inner;
        self.check_cost(cost)?;
        let (keys, each) = self.keys(&subject.into())?;
        let now = inner.kit.time().elapsed();
        if let Some(pre_limit) = &inner.pre_limit
            && let Some(Err(wait)) = pre_limit.take(each[0].as_bytes(), cost, now)
        {
            inner.counts.pre_limited.fetch_add(1, Ordering::Relaxed);
            return Ok(self.count(self.unasked(Err(wait), Basis::PreLimit)));
        }
        if !inner.circuit.asks(now) {
            return Ok(self.count(self.in_outage(&each, cost, now)));
        }
        let id = token();
        let mut call = self.question(&keys, &each, (cost, "TAKE", &id), request);
        let marker = call.marker().unwrap_or_else(|| keys.key("request"));
        let id = charge_id(&id, cost);
        let (scope, windows) = (keys, Vec::new());
        let charge = Charge { id, cost, scope, marker, keys: each, windows };
        let unanswered = Unanswered::new(self, &charge);
        let asked = call.run().await;
        if !matches!(asked, Err(Error::Unknown(_))) {
            unanswered.answered();
        }
        inner.circuit.heard(&asked, || inner.kit.time().elapsed());
        let mut envelope = match asked {
            Ok(envelope) => envelope,
            Err(error @ (Error::Unavailable(_) | Error::Unknown(_))) => {
                tracing::warn!(limiter = inner.name, %error, "the store can't be asked");
                return Ok(self.count(self.in_outage(&charge.keys, cost, now)));
            }
            Err(error) => return Err(error),
        };
        if let (Some(pre_limit), true) = (&inner.pre_limit, envelope.is("DENIED")) {
            pre_limit.give_back(charge.keys[0].as_bytes(), cost);
        }
        let decision = self.decision(&mut envelope, |id, windows| {
            // With a request id it may be that of an earlier call.
            Some(Charge { id, windows, ..charge })
        })?;
        Ok(self.count(decision))
    }

    /// What [`Limiter::check`] would answer now. Nothing is charged.
    pub async fn peek(&self, subject: impl Into<Subject>, cost: u64) -> Result<Decision> {
        self.check_cost(cost)?;
        let (keys, each) = self.keys(&subject.into())?;
        let call = self.question(&keys, &each, (cost, "PEEK", &token()), None);
        let mut envelope = call.run().await?;
        self.decision(&mut envelope, |_id, _windows| None)
    }

    /// Like [`Limiter::check`], for limits of concurrency: the slot is given up when the permit is
    /// dropped.
    pub async fn enter(
        &self,
        subject: impl Into<Subject>,
        cost: u64,
        request: Option<&RequestId>,
    ) -> Result<Entry> {
        Ok(self.hold(self.check(subject, cost, request).await?))
    }

    /// Makes a permit of a decision.
    pub fn hold(&self, decision: Decision) -> Entry {
        match decision {
            Decision::Allowed(allowed) => Entry::Admitted(Permit::new(self.clone(), allowed)),
            Decision::Denied(denied) => Entry::Denied(denied),
        }
    }

    /// Gives back a charge, once: the request has failed and shall not count. It may then be
    /// charged anew.
    pub async fn refund(&self, charge: &Charge) -> Result<Refunded> {
        self.refund_part(charge, charge.cost).await
    }

    /// Gives back part of a charge, once: it has cost less than expected.
    pub async fn refund_part(&self, charge: &Charge, amount: u64) -> Result<Refunded> {
        let Inner { kit, limits, .. } = &*self.inner;
        if amount == 0 || amount > charge.cost {
            return Err(Error::invalid("a refund is from 1 to what was charged"));
        }
        // The charge is the request: however often it is given back, it counts once, and is known
        // as given back for as long as it could count.
        let longest = limits.iter().map(Limit::length).max().unwrap_or_default();
        let kit = kit.with_request_ttl(longest.saturating_mul(2).max(kit.settings().request_ttl));
        let request = RequestId::from(&charge.id);
        let call = kit.step_of_request(&REFUND, &charge.scope, Some(&request));
        let call = call.key(&charge.marker);
        let call = charge.keys.iter().fold(call, |call, key| call.key(key));
        let mut call = call.arg(&charge.id).arg(amount);
        for (limit, window) in limits.iter().zip(&charge.windows) {
            call = limit.add_to(call).arg(*window);
        }
        let mut envelope = call.run().await?;
        let numbers = envelope.list("returned")?;
        let count = |it: &Reply| it.as_int().and_then(|it| u64::try_from(it).ok());
        let returned: Option<Vec<u64>> = numbers.iter().map(count).collect();
        let corrupt = || Error::Corrupt("field returned of the reply is not counts".into());
        observe::count("redis.limit.refund.count", "limit", 1);
        Ok(Refunded { returned: returned.ok_or_else(corrupt)? })
    }

    /// Gives up the slots that a charge holds under limits of concurrency. What it has cost under
    /// others stays charged.
    pub async fn release(&self, charge: &Charge) -> Result<()> {
        if !self.has_slots() {
            return Ok(());
        }
        let call = self.inner.kit.step(&RELEASE).key(&charge.marker);
        let call = self.slots(charge).fold(call, |call, (_limit, key)| call.key(key));
        call.arg(&charge.id).arg(charge.cost).run().await.map(drop)
    }

    /// Holds these slots for another while.
    pub async fn renew(&self, charge: &Charge) -> Result<Renewal> {
        if !self.has_slots() {
            return Err(Error::invalid("the limiter has no limit of concurrency"));
        }
        let call = self.inner.kit.step(&RENEW).key(&charge.marker);
        let call = self.slots(charge).fold(call, |call, (_limit, key)| call.key(key));
        let call = call.arg(&charge.id).arg(charge.cost);
        let call = self.slots(charge).fold(call, |call, (limit, _key)| call.arg(limit.length()));
        let envelope = call.run().await?;
        match envelope.status() {
            "RENEWED" => Ok(Renewal::Renewed),
            "LOST" => Ok(Renewal::Lost),
            _ => Err(envelope.unexpected()),
        }
    }

    /// Forgets all that was charged to a subject.
    pub async fn reset(&self, subject: impl Into<Subject>) -> Result<()> {
        let (_keys, each) = self.keys(&subject.into())?;
        let call = self.inner.kit.step(&RESET);
        each.into_iter().fold(call, |call, key| call.key(key)).run().await.map(drop)
    }

    /// Forgets what was charged to a subject under one of the limits.
    pub async fn reset_limit(&self, subject: impl Into<Subject>, limit: &str) -> Result<()> {
        let (_keys, each) = self.keys(&subject.into())?;
        let index = self.inner.limits.iter().position(|it| it.name() == limit);
        let unknown = || Error::invalid("the limiter has no limit of this name");
        let key = each[index.ok_or_else(unknown)?].clone();
        self.inner.kit.step(&RESET).key(key).run().await.map(drop)
    }

    /// What this handle and its clones have decided.
    pub fn stats(&self) -> LimiterStats {
        let Counts { allowed, denied, pre_limited, outages } = &self.inner.counts;
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        LimiterStats {
            allowed: read(allowed),
            denied: read(denied),
            pre_limited: read(pre_limited),
            outages: read(outages),
        }
    }

    fn check_cost(&self, cost: u64) -> Result<()> {
        match self.inner.limits.iter().find(|limit| cost == 0 || cost > limit.cost_max()) {
            None => Ok(()),
            Some(limit) => {
                let (name, most) = (limit.name(), limit.cost_max());
                Err(Error::invalid(format!("limit {name} allows a cost from 1 to {most}")))
            }
        }
    }

    /// The keys of a subject, and that of each limit.
    fn keys(&self, subject: &Subject) -> Result<(Keys, Vec<Key>)> {
        let Inner { kit, ids, limits, .. } = &*self.inner;
        let keys = kit.keys_of(FAMILY, &subject.scope)?;
        let mut each = Vec::with_capacity(limits.len());
        for (limit, id) in limits.iter().zip(ids) {
            let part = subject.parts.iter().find(|it| it.0 == limit.name());
            each.push(match part {
                None => keys.item(limit.part(), id),
                Some((_limit, part)) => {
                    let id = [id.as_bytes(), b"/", &kit.scope_text(part)?].concat();
                    keys.item(limit.part(), id)
                }
            });
        }
        let is_known = |part: &(String, Scope)| limits.iter().any(|it| it.name() == part.0);
        if !subject.parts.iter().all(is_known) {
            return Err(Error::invalid("the subject names a limit that the limiter does not have"));
        }
        Ok((keys, each))
    }

    fn question(
        &self,
        keys: &Keys,
        each: &[Key],
        (cost, mode, id): (u64, &str, &[u8]),
        request: Option<&RequestId>,
    ) -> StepCall<'_, WithRequestId> {
        let Inner { kit, limits, name, .. } = &*self.inner;
        if let ([limit], [key], "TAKE") = (&**limits, each, mode)
            && let Some((window, burst)) = limit.as_bucket()
        {
            let call = kit.step_of_request(&BUCKET, keys, request).key(key);
            let call = call.arg(id).arg(cost).arg(limit.max()).arg(window).arg(burst);
            return call.bound_to(name);
        }
        let mut call = kit.step_of_request(&CHECK, keys, request).bound_to(name);
        call = each.iter().fold(call, |call, key| call.key(key));
        call = call.arg(id).arg(mode).arg(cost);
        for limit in limits.iter() {
            call = limit.add_to(call).arg(limit.extra());
        }
        call
    }

    fn decision(
        &self,
        envelope: &mut Envelope,
        charge: impl FnOnce(Vec<u8>, Vec<i64>) -> Option<Charge>,
    ) -> Result<Decision> {
        let basis = Basis::Store;
        match envelope.status() {
            "ALLOWED" => {
                let (limits, windows) = decision::limit_statuses(envelope, &self.inner.limits)?;
                let charge = charge(envelope.text("charge")?, windows);
                Ok(Decision::Allowed(Allowed { charge, limits, basis }))
            }
            "DENIED" => {
                let (limits, _windows) = decision::limit_statuses(envelope, &self.inner.limits)?;
                let retry_after = envelope.duration("retry_after_ms")?;
                Ok(Decision::Denied(Denied { retry_after, limits, basis }))
            }
            _ => Err(envelope.unexpected()),
        }
    }

    /// Decides without the store.
    fn in_outage(&self, each: &[Key], cost: u64, now: Duration) -> Decision {
        self.inner.counts.outages.fetch_add(1, Ordering::Relaxed);
        observe::count("redis.limit.outage.count", "limit", 1);
        let decided = self.inner.outage.decide(&self.inner.shares, each, (cost, now));
        self.unasked(decided, Basis::Outage)
    }

    fn unasked(&self, decided: Result<(), Duration>, basis: Basis) -> Decision {
        let limits = |wait| decision::unasked(&self.inner.limits, wait);
        match decided {
            Ok(()) => {
                Decision::Allowed(Allowed { charge: None, limits: limits(Duration::ZERO), basis })
            }
            Err(retry_after) => {
                Decision::Denied(Denied { retry_after, limits: limits(retry_after), basis })
            }
        }
    }

    fn count(&self, decision: Decision) -> Decision {
        let Counts { allowed, denied, .. } = &self.inner.counts;
        if decision.is_allowed() {
            allowed.fetch_add(1, Ordering::Relaxed);
            observe::count("redis.limit.allowed.count", "limit", 1);
        } else {
            denied.fetch_add(1, Ordering::Relaxed);
            observe::count("redis.limit.exceeded.count", "limit", 1);
        }
        decision
    }

    fn has_slots(&self) -> bool {
        self.hold_min().is_some()
    }

    /// How long a slot is held without being renewed; None without limits of concurrency.
    pub(crate) fn hold_min(&self) -> Option<Duration> {
        self.inner.limits.iter().filter(|it| it.is_concurrency()).map(Limit::length).min()
    }

    /// The limits of concurrency, with the keys that a charge has there.
    fn slots<'a>(&'a self, charge: &'a Charge) -> impl Iterator<Item = (&'a Limit, &'a Key)> {
        self.inner.limits.iter().zip(&charge.keys).filter(|(limit, _key)| limit.is_concurrency())
    }
}

/// What a step calls a charge: the id of the call, and the cost.
fn charge_id(id: &[u8], cost: u64) -> Vec<u8> {
    let mut text = Vec::with_capacity(id.len() + 1 + COST_ROOM);
    text.extend_from_slice(id);
    text.push(b'/');
    write_u64(&mut text, cost);
    text
}

impl fmt::Debug for Limiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Limiter")
            .field("name", &self.inner.name)
            .field("limits", &self.inner.limits)
            .field("outage", &self.inner.outage)
            .finish_non_exhaustive()
    }
}
