//! Leases over several servers that know nothing of each other, so that the loss of one server, or
//! a failover that forgets a lease, does not give it to two.

use super::guard::{Claim, Guard, each};
use super::resource::{Answer, Ask, Pending};
use super::{Attempt, Fence, Lease, Terms, Token};
use crate::error::{Error, Result};
use crate::key::Scope;
use crate::kit::Kit;
use crate::observe::{self, stats};
use crate::retry::{RetryPolicy, jittered};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;

/// Of how many servers a lease may be.
const NODES_MAX: usize = 16;
/// Most of fewer than three servers is all of them.
const QUORUM_NODES_MIN: usize = 3;
/// How much of the TTL one server may take to answer.
const TIMEOUTS_PER_TTL: u32 = 8;
/// How long a refused attempt pauses at most before the next, so that two do not keep each other
/// from it.
const PAUSE: Duration = Duration::from_millis(50);

stats! {
    /// What a handle of a lease of several servers, and its clones, have seen in this process.
    ManyLeaseStats counted by Counts {
        /// Leases that were held on as many servers as it takes.
        acquired,
        /// Calls that came to nothing because others had it, on too many of the servers.
        busy,
        /// Calls that failed: too few servers have answered, or too late.
        failed,
    }
}

impl Counts {
    fn count(&self, result: Result<Attempt>) -> Result<Attempt> {
        let Counts { acquired, busy, failed } = self;
        match &result {
            Ok(Attempt::Held(_)) => acquired.add(1),
            Ok(Attempt::Busy { .. } | Attempt::Full) => busy.add(1),
            Err(_) => failed.add(1),
        }
        result
    }
}

/// A lease that is held on *all* of several independent servers: while one of them is down nobody
/// gets it, and as long as one of them remembers, nobody gets it twice.
///
/// All processes name the servers in the same order: they are asked in that order, so that of two
/// who want the lease one gets it.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use russet::Kit;
/// use russet::lease::MultiLease;
/// use std::time::Duration;
///
/// let servers = [Kit::embedded(Default::default())?, Kit::embedded(Default::default())?];
/// let lease = MultiLease::new(&servers, "ledger", Duration::from_secs(5))?;
/// let guard = lease.try_acquire().await?.held().ok_or("busy")?;
/// assert!(!lease.try_acquire().await?.is_held());
/// # drop(guard);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct MultiLease {
    nodes: Vec<Lease>,
    counts: Arc<Counts>,
}

impl MultiLease {
    /// The lease of this name on these servers, of which there may be 16. Each of them has an
    /// eighth of the lease's time to answer.
    pub fn new<'k>(
        servers: impl IntoIterator<Item = &'k Kit>,
        scope: impl Into<Scope>,
        terms: impl Into<Terms>,
    ) -> Result<Self> {
        let nodes = nodes(servers, scope.into(), terms.into())?;
        if nodes.is_empty() {
            return Err(Error::invalid("a multi-lease needs a server"));
        }
        Ok(MultiLease { nodes, counts: Arc::default() })
    }

    /// Takes it, if it is free on all servers now. What was taken is given back if it is not.
    pub async fn try_acquire(&self) -> Result<Attempt> {
        self.counts.count(all(&self.nodes).await)
    }

    /// Takes it as soon as it is free on all servers, or until `wait` is over. A server that can't
    /// be reached is asked again for as long.
    pub async fn acquire(&self, wait: Duration) -> Result<Attempt> {
        self.counts.count(within(&self.nodes[0], wait, || all(&self.nodes)).await)
    }

    /// What this handle and its clones have seen.
    pub fn stats(&self) -> ManyLeaseStats {
        self.counts.stats()
    }
}

/// A lease that is held on *most* of several independent servers, for the time that is left once
/// they have answered: the validity time, [`Guard::remaining`]. It is there while most of them
/// are.
///
/// The fencing number is higher than that of every earlier holder, as any two majorities have a
/// server in common that remembers it.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use russet::Kit;
/// use russet::lease::QuorumLease;
/// use std::time::Duration;
///
/// let server = || Kit::embedded(Default::default());
/// let servers = [server()?, server()?, server()?];
/// let lease = QuorumLease::new(&servers, "ledger", Duration::from_secs(5))?;
/// let guard = lease.try_acquire().await?.held().ok_or("busy")?;
/// assert!(guard.remaining() < Some(Duration::from_secs(5)));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct QuorumLease {
    nodes: Vec<Lease>,
    counts: Arc<Counts>,
}

impl QuorumLease {
    /// Three servers or more; an odd number is best.
    pub fn new<'k>(
        servers: impl IntoIterator<Item = &'k Kit>,
        scope: impl Into<Scope>,
        terms: impl Into<Terms>,
    ) -> Result<Self> {
        let nodes = nodes(servers, scope.into(), terms.into())?;
        if nodes.len() < QUORUM_NODES_MIN {
            return Err(Error::invalid("a quorum needs three servers or more"));
        }
        Ok(QuorumLease { nodes, counts: Arc::default() })
    }

    /// Takes it, if it is free on most servers now. What was taken is given back if it is not.
    pub async fn try_acquire(&self) -> Result<Attempt> {
        self.counts.count(most(&self.nodes).await)
    }

    /// Takes it as soon as it is free on most servers, or until `wait` is over.
    pub async fn acquire(&self, wait: Duration) -> Result<Attempt> {
        self.counts.count(within(&self.nodes[0], wait, || most(&self.nodes)).await)
    }

    /// What this handle and its clones have seen.
    pub fn stats(&self) -> ManyLeaseStats {
        self.counts.stats()
    }
}

/// Each server is asked once, and not for long: one that hangs must not use up the time.
fn nodes<'k>(
    servers: impl IntoIterator<Item = &'k Kit>,
    scope: Scope,
    terms: Terms,
) -> Result<Vec<Lease>> {
    let terms = terms.checked()?;
    let node = |kit: &Kit| {
        let timeout = kit.timeout().min(terms.ttl / TIMEOUTS_PER_TTL);
        let kit = kit.with_timeout(timeout).with_retry(RetryPolicy::NONE);
        Lease::new(&kit, &scope, terms)
    };
    let nodes: Result<Vec<Lease>> = servers.into_iter().map(node).collect();
    let nodes = nodes?;
    if nodes.len() > NODES_MAX {
        return Err(Error::invalid(format!("a lease is of {NODES_MAX} servers at most")));
    }
    Ok(nodes)
}

/// Tokens differ from server to server: a server that is named twice refuses the second.
fn pending(nodes: &[Lease]) -> impl Iterator<Item = Pending> {
    nodes.iter().map(|node| Pending::new(node.resource(), Token::random()))
}

/// One after the other, in order. Whatever fails, all are given back, also where nobody knows
/// whether they were taken.
async fn all(nodes: &[Lease]) -> Result<Attempt> {
    let mut held = Vec::new();
    for mut pending in pending(nodes) {
        let answer = pending.attempt(Ask::once(&[])).await;
        let (fence, deadline) = match answer {
            Ok(Answer::Held { fence, deadline }) => (fence, deadline),
            refused => {
                for (pending, _, _) in held {
                    Pending::give_up(pending).await;
                }
                pending.give_up().await;
                return match refused? {
                    Answer::Busy { retry_after } => Ok(Attempt::Busy { retry_after }),
                    _ => Ok(Attempt::Full),
                };
            }
        };
        held.push((pending, fence, deadline));
    }
    let needed = nodes.len();
    hold_all(held, needed).await
}

/// All at the same time.
async fn most(nodes: &[Lease]) -> Result<Attempt> {
    let needed = nodes.len() / 2 + 1;
    let mut tasks = JoinSet::new();
    for mut pending in pending(nodes) {
        tasks.spawn(async move {
            let answer = pending.attempt(Ask::once(&[])).await;
            (pending, answer)
        });
    }
    let (mut held, mut refused, mut failed) = (Vec::new(), Vec::new(), None);
    let mut retry_after = Duration::ZERO;
    while let Some(joined) = tasks.join_next().await {
        let (pending, answer) = joined.map_err(|error| Error::Unknown(error.to_string()))?;
        match answer {
            Ok(Answer::Held { fence, deadline }) => held.push((pending, fence, deadline)),
            Ok(Answer::Busy { retry_after: after }) => {
                retry_after = retry_after.max(after);
                refused.push(pending);
            }
            Ok(Answer::Full) => refused.push(pending),
            // Dropped: it is given back in the background, if the server can be reached.
            Err(error) => failed = Some(error),
        }
    }
    if held.len() >= needed {
        return hold_all(held, needed).await;
    }
    let could_be_held = held.len() + refused.len() >= needed;
    for (pending, _, _) in held {
        pending.give_up().await;
    }
    match failed {
        Some(error) if !could_be_held => Err(error),
        _ => Ok(Attempt::Busy { retry_after }),
    }
}

/// The highest number is made that of all, so that each later holder gets a higher one.
async fn hold_all(held: Vec<(Pending, Fence, Duration)>, needed: usize) -> Result<Attempt> {
    let fence = held.iter().map(|(_, fence, _)| *fence).max().unwrap_or(Fence(0));
    // The time runs on all of them; what counts is the one that is over first.
    let deadline = held.iter().map(|(_, _, deadline)| *deadline).min().unwrap_or_default();
    let numbers: Vec<Fence> = held.iter().map(|(_, fence, _)| *fence).collect();
    let claims: Vec<Claim> = held.into_iter().map(|(pending, _, _)| pending.into_claim()).collect();
    let first = claims[0].clone();
    // From here on the guard gives them back.
    let guard = Guard::new(claims.clone(), needed, fence, deadline)?;
    if numbers.iter().any(|number| *number != fence) {
        let raised = each(&claims, |claim| async move { claim.renew(Some(fence)).await }).await;
        let count = raised.iter().filter(|it| matches!(it, Ok(Some(_)))).count();
        if count < needed {
            return Err(Error::Unavailable("too few servers have kept the lease".into()));
        }
    }
    if first.resource().kit().time().elapsed() >= deadline {
        return Err(Error::Unavailable("the lease was over before all had answered".into()));
    }
    observe::count("redis.lease.acquired.count", "lease", 1);
    Ok(Attempt::Held(guard))
}

/// Tries until it is held or the time is over.
async fn within<F: Future<Output = Result<Attempt>>>(
    node: &Lease,
    wait: Duration,
    attempt: impl Fn() -> F,
) -> Result<Attempt> {
    let time = node.resource().kit().time();
    let until = time.elapsed() + wait;
    loop {
        let result = attempt().await;
        let may_go_on = match &result {
            Ok(attempt) => !attempt.is_held(),
            Err(error) => !matches!(error.advice(), crate::Advice::GiveUp),
        };
        let left = until.saturating_sub(time.elapsed());
        if !may_go_on || left.is_zero() {
            return result;
        }
        time.sleep(jittered(PAUSE).min(left)).await;
    }
}

impl fmt::Debug for MultiLease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MultiLease").field("servers", &self.nodes.len()).finish_non_exhaustive()
    }
}

impl fmt::Debug for QuorumLease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QuorumLease").field("servers", &self.nodes.len()).finish_non_exhaustive()
    }
}
