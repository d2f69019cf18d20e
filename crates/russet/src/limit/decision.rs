//! What a limiter answers: a decision, the state of each limit, and what HTTP clients are answered.

use crate::error::{Error, Result};
use crate::key::{Key, Keys};
use crate::limit::rule::Limit;
use crate::reply::Envelope;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Whether it may happen.
#[derive(Clone, Debug)]
#[must_use = "what is denied must not happen"]
pub enum Decision {
    /// It may.
    Allowed(Allowed),
    /// It must not.
    Denied(Denied),
}

/// It may happen, and was charged.
#[derive(Clone, Debug)]
pub struct Allowed {
    /// What was charged; none if the store was not asked.
    pub charge: Option<Charge>,
    /// In the limiter's order.
    pub limits: Vec<LimitStatus>,
    /// Who has decided.
    pub basis: Basis,
}

/// It must not happen, and nothing was charged.
#[derive(Clone, Debug)]
pub struct Denied {
    /// When the same would be allowed, if nothing else happens meanwhile.
    pub retry_after: Duration,
    /// In the limiter's order.
    pub limits: Vec<LimitStatus>,
    /// Who has decided.
    pub basis: Basis,
}

/// Who has decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// The store, for all processes.
    Store,
    /// The limit that this process has before it asks the store.
    PreLimit,
    /// The policy for the time that the store can't be reached.
    Outage,
}

/// The state of one limit after a decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitStatus {
    limit: Arc<[Limit]>,
    index: usize,
    /// What is left of it.
    pub remaining: u64,
    /// When all of it is there again.
    pub reset_after: Duration,
    /// How long this limit denies what was asked; zero if it does not.
    pub retry_after: Duration,
}

impl LimitStatus {
    /// Of the limit.
    pub fn name(&self) -> &str {
        self.limit().name()
    }

    /// Which one it is.
    pub fn limit(&self) -> &Limit {
        &self.limit[self.index]
    }

    /// Whether this limit denies what was asked.
    pub fn is_exceeded(&self) -> bool {
        !self.retry_after.is_zero()
    }
}

/// What a check has charged. It can be given back once; see
/// [`Limiter::refund`](super::Limiter::refund).
#[derive(Clone)]
pub struct Charge {
    pub(super) id: Vec<u8>,
    pub(super) cost: u64,
    /// The keys of its subject.
    pub(super) scope: Keys,
    /// The marker of its request, or of none.
    pub(super) marker: Key,
    pub(super) keys: Vec<Key>,
    /// When each limit was charged, as the store gave it.
    pub(super) windows: Vec<i64>,
}

impl Charge {
    /// What was asked for.
    pub fn cost(&self) -> u64 {
        self.cost
    }
}

/// Says nothing of whose it is.
impl fmt::Debug for Charge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Charge({})", self.cost)
    }
}

/// Numbers per limit in a reply.
const NUMBERS: usize = 4;

/// The limits of a reply, and the windows that were charged.
pub(super) fn limit_statuses(
    envelope: &mut Envelope,
    limits: &Arc<[Limit]>,
) -> Result<(Vec<LimitStatus>, Vec<i64>)> {
    let corrupt = || Error::Corrupt("field limits of the reply is not four numbers each".into());
    let numbers = envelope.list("limits")?;
    if numbers.len() != NUMBERS * limits.len() {
        return Err(corrupt());
    }
    let span = |number: i64| Duration::from_millis(u64::try_from(number).unwrap_or(0));
    let mut limit_statuses = Vec::with_capacity(limits.len());
    let mut windows = Vec::with_capacity(limits.len());
    for (index, of) in numbers.chunks_exact(NUMBERS).enumerate() {
        let number = |at: usize| of[at].as_int().ok_or_else(corrupt);
        limit_statuses.push(LimitStatus {
            limit: limits.clone(),
            index,
            remaining: u64::try_from(number(0)?).unwrap_or(0),
            reset_after: span(number(1)?),
            retry_after: span(number(2)?),
        });
        windows.push(number(3)?);
    }
    Ok((limit_statuses, windows))
}

/// Statuses that no store was asked for.
pub(super) fn unasked(limits: &Arc<[Limit]>, retry_after: Duration) -> Vec<LimitStatus> {
    let limit_status = |index| LimitStatus {
        limit: limits.clone(),
        index,
        remaining: 0,
        reset_after: retry_after,
        retry_after,
    };
    (0..limits.len()).map(limit_status).collect()
}

impl Decision {
    /// Whether it may happen.
    pub fn is_allowed(&self) -> bool {
        matches!(self, Decision::Allowed(_))
    }

    /// The state of each limit, in the limiter's order.
    pub fn limits(&self) -> &[LimitStatus] {
        match self {
            Decision::Allowed(allowed) => &allowed.limits,
            Decision::Denied(denied) => &denied.limits,
        }
    }

    /// Who has decided.
    pub fn basis(&self) -> Basis {
        match self {
            Decision::Allowed(allowed) => allowed.basis,
            Decision::Denied(denied) => denied.basis,
        }
    }

    /// What was charged, if it was allowed by the store.
    pub fn charge(&self) -> Option<&Charge> {
        match self {
            Decision::Allowed(allowed) => allowed.charge.as_ref(),
            Decision::Denied(_) => None,
        }
    }

    /// How long to wait; zero if it is allowed.
    pub fn retry_after(&self) -> Duration {
        match self {
            Decision::Allowed(_) => Duration::ZERO,
            Decision::Denied(denied) => denied.retry_after,
        }
    }

    /// Headers for an HTTP response, with their values: `RateLimit-Policy` and `RateLimit` as in
    /// the IETF's draft (draft-ietf-httpapi-ratelimit-headers), and `Retry-After` if it is denied.
    ///
    /// Limits of concurrency are not named in them: they have no window.
    pub fn headers(&self) -> Vec<(&'static str, String)> {
        let rates: Vec<&LimitStatus> =
            self.limits().iter().filter(|it| !it.limit().is_concurrency()).collect();
        let list = |item: &dyn Fn(&LimitStatus) -> String| {
            rates.iter().map(|it| item(it)).collect::<Vec<_>>().join(", ")
        };
        let mut headers = Vec::new();
        if !rates.is_empty() {
            let policy = list(&|it| {
                let window = seconds(it.limit().length());
                format!("\"{}\";q={};w={window}", it.name(), it.limit().cost_max())
            });
            headers.push(("RateLimit-Policy", policy));
        }
        // What the store was not asked for is not known.
        if !rates.is_empty() && self.basis() == Basis::Store {
            let state = list(&|it| {
                format!("\"{}\";r={};t={}", it.name(), it.remaining, seconds(it.reset_after))
            });
            headers.push(("RateLimit", state));
        }
        if let Decision::Denied(denied) = self {
            headers.push(("Retry-After", seconds(denied.retry_after).max(1).to_string()));
        }
        headers
    }
}

/// Rounded up: who comes then is not too early.
fn seconds(span: Duration) -> u64 {
    u64::try_from(span.as_millis().div_ceil(1000)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reply::Reply;

    fn denied() -> Decision {
        let minute = Duration::from_secs(60);
        let limits: Arc<[Limit]> = Arc::new([
            Limit::bucket("burst", 10, Duration::from_secs(1)).unwrap().burst(20).unwrap(),
            Limit::window("minute", 100, minute).unwrap(),
            Limit::concurrency("at-once", 3, minute).unwrap(),
        ]);
        let text = |text: &str| Reply::Text(text.into());
        let numbers = [5, 1500, 0, 7, 0, 42_001, 42_001, 8, 2, 0, 0, 9];
        let numbers = numbers.into_iter().map(Reply::Int).collect();
        let items = vec![text("DENIED"), text("limits"), Reply::List(numbers)];
        let mut envelope = Envelope::new(Reply::List(items)).unwrap();
        let (limits, windows) = limit_statuses(&mut envelope, &limits).unwrap();
        assert_eq!(windows, [7, 8, 9]);
        let retry_after = Duration::from_millis(42_001);
        Decision::Denied(Denied { retry_after, limits, basis: Basis::Store })
    }

    #[test]
    fn headers_say_what_is_left_and_when_to_come_back() {
        let headers = denied().headers();
        assert_eq!(headers[0].1, "\"burst\";q=20;w=1, \"minute\";q=100;w=60");
        assert_eq!(headers[1].1, "\"burst\";r=5;t=2, \"minute\";r=0;t=43");
        assert_eq!(headers[2], ("Retry-After", "43".to_owned()));
    }
}
