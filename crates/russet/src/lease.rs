//! Leases: one holder at a time, for a time, with a number that tells its writes from those of
//! holders before it.
//!
//! A lease is not a mutex: its time can run out while the holder still works. So a [`Guard`] says
//! when it is [`lost`](Guard::lost), by a clock that errs on the safe side, and every lease comes
//! with a [fencing number](Fence) by which whatever is written to can refuse a holder that is too
//! late, as [`Fenced`] does.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use russet::Kit;
//! use russet::lease::{Attempt, Lease, Release, Terms};
//! use std::time::Duration;
//!
//! let kit = Kit::embedded(Default::default())?;
//! let terms = Terms::new(Duration::from_secs(10)).keep_alive(Duration::from_secs(600));
//! let lease = Lease::new(&kit, "nightly report", terms)?;
//!
//! let Attempt::Held(guard) = lease.try_acquire().await? else {
//!     return Ok(()); // Another process makes the report.
//! };
//! assert!(matches!(lease.try_acquire().await?, Attempt::Busy { .. }));
//! let report = guard.while_held(async { "the report" }).await;
//! assert_eq!(report, Some("the report"));
//! assert_eq!(guard.release().await?, Release::Released);
//! # Ok(())
//! # }
//! ```
//!
//! | type | what it is for |
//! |---|---|
//! | [`Lease`] | one holder |
//! | [`FairLease`] | one holder, in the order of arrival |
//! | [`ReentrantLease`] | one owner, which may take it many times |
//! | [`ReadWriteLease`] | many readers or one writer |
//! | [`Semaphore`] | a number of holders |
//! | [`MultiLease`] | one holder, on all of several independent servers |
//! | [`QuorumLease`] | one holder, on most of several independent servers |
//! | [`Fenced`] | a value that holders who are too late can't overwrite |

mod fair;
mod fenced;
mod guard;
mod many;
mod read_write;
mod resource;
mod semaphore;
mod terms;

pub use fair::{FairLease, FairTerms};
pub use fenced::{Fenced, FencedStats, FencedValue, FencedWrite, Stamp};
pub use guard::{Guard, Release, Renewal};
pub use many::{ManyLeaseStats, MultiLease, QuorumLease};
pub use read_write::{Owner, ReadWriteLease, ReentrantLease};
pub use resource::LeaseStats;
pub use semaphore::{Semaphore, SemaphoreStats, WEIGHT_MAX};
pub use terms::Terms;

use crate::error::{Error, Result};
use crate::key::{Family, Scope};
use crate::kit::Kit;
use crate::step::{Safe, Step, StepInfo};
use resource::{Ask, Resource, Steps};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

const FAMILY: Family = Family { purpose: "lease", version: 1 };

static ACQUIRE: Step<Safe> = Step::new("lease_acquire", include_str!("lease/acquire.lua"));
static RENEW: Step<Safe> = Step::new("lease_renew", include_str!("lease/renew.lua"));
static RELEASE: Step<Safe> = Step::new("lease_release", include_str!("lease/release.lua"));
static PEEK: Step<Safe> = Step::read_only("lease_peek", include_str!("lease/peek.lua"));
static LIVE: Step<Safe> = Step::read_only("lease_live", include_str!("lease/live.lua"));

static STEPS_OF_LEASE: Steps =
    Steps { acquire: &ACQUIRE, renew: &RENEW, release: &RELEASE, wakes_all: false };

pub(crate) static STEPS: &[&StepInfo] = &[
    ACQUIRE.info(),
    RENEW.info(),
    RELEASE.info(),
    PEEK.info(),
    LIVE.info(),
    fair::ACQUIRE.info(),
    fair::RELEASE.info(),
    read_write::READ.info(),
    read_write::WRITE.info(),
    read_write::RENEW.info(),
    read_write::RELEASE.info(),
    semaphore::ACQUIRE.info(),
    semaphore::RENEW.info(),
    semaphore::RELEASE.info(),
    fenced::WRITE.info(),
    fenced::READ.info(),
];

/// The number of a holder: each holder of a lease has a higher one than those before it.
///
/// It is the server's time in microseconds, and a counter where the clock does not move on. So it
/// does not go back when a failover loses the last acquisitions, as long as the clock of the new
/// primary is not behind by more than the failover took.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fence(u64);

impl Fence {
    /// A number that came from elsewhere: a message, a column of a database.
    pub fn from_number(number: u64) -> Self {
        Fence(number)
    }

    /// For a message, or a column of a database.
    pub fn number(self) -> u64 {
        self.0
    }
}

impl fmt::Display for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What proves that one is the holder. Whoever has it can renew and release.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(Arc<[u8]>);

impl Token {
    fn random() -> Self {
        Token(crate::retry::token().as_slice().into())
    }

    /// Of a holder of several permits.
    fn weighted(permits: u32) -> Self {
        let mut token = crate::retry::token().to_vec();
        token.extend_from_slice(format!("*{permits}").as_bytes());
        Token(token.into())
    }

    /// A token that another process has handed over.
    pub fn from_bytes(bytes: &[u8]) -> Self {
        Token(bytes.into())
    }

    /// For the process that it is handed over to. Not for logs: who knows it can use it.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// Says nothing of its content.
impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}

/// What came of an attempt to take a lease.
#[derive(Debug)]
#[must_use = "a lease that is not looked at is released at once"]
pub enum Attempt {
    /// It is the caller's, until the guard is dropped or its time is over.
    Held(Guard),
    /// Others have it, for no longer than this unless they renew.
    Busy {
        /// The time that is left to them.
        retry_after: Duration,
    },
    /// As many hold it, or wait for it, as are allowed to.
    Full,
}

impl Attempt {
    /// The guard, if it is held.
    pub fn held(self) -> Option<Guard> {
        match self {
            Attempt::Held(guard) => Some(guard),
            Attempt::Busy { .. } | Attempt::Full => None,
        }
    }

    /// Whether there is a guard.
    pub fn is_held(&self) -> bool {
        matches!(self, Attempt::Held(_))
    }
}

/// Whether a lease is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holder {
    /// It is free.
    Nobody,
    /// It is held.
    Somebody {
        /// The holder's number.
        fence: Fence,
        /// By the server's clock, unless it is renewed.
        remaining: Duration,
    },
}

/// A lease that one holder has at a time. Clones are handles to the same.
#[derive(Clone)]
pub struct Lease {
    resource: Arc<Resource>,
}

impl Lease {
    /// The lease of this name, on these terms: a [`Duration`] is a time without keep-alive.
    pub fn new(kit: &Kit, scope: impl Into<Scope>, terms: impl Into<Terms>) -> Result<Self> {
        let keys = vec![kit.keys(FAMILY, scope)?.key("holder")];
        let resource = Resource::new(kit, keys, &STEPS_OF_LEASE, terms.into())?;
        Ok(Lease { resource: Arc::new(resource) })
    }

    /// Takes it, if it is free now.
    pub async fn try_acquire(&self) -> Result<Attempt> {
        self.resource.take(Token::random(), Ask::once(&[])).await
    }

    /// Takes it as soon as it is free, for as long as it takes or `wait` is over.
    ///
    /// Who is the first to ask when it is free gets it; see [`FairLease`] for order.
    pub async fn acquire(&self, wait: Duration) -> Result<Attempt> {
        self.resource.take(Token::random(), Ask::within(wait, &[])).await
    }

    /// Goes on with a lease that another process has taken and [handed over](Guard::hand_over).
    /// Busy if its time is over.
    pub async fn adopt(&self, token: Token) -> Result<Attempt> {
        self.resource.adopt(token).await
    }

    /// Who has it. That may have changed by the time that one looks at it: for dashboards.
    pub async fn holder(&self) -> Result<Holder> {
        let envelope = self.resource.kit().step(&PEEK).key(self.resource.key(0)).run().await?;
        match envelope.status() {
            "FREE" => Ok(Holder::Nobody),
            "HELD" => Ok(Holder::Somebody {
                fence: Fence(envelope.count("fence")?),
                remaining: envelope.duration("remaining_ms")?,
            }),
            _ => Err(envelope.unexpected()),
        }
    }

    /// What this handle, its clones and its guards have seen.
    pub fn stats(&self) -> LeaseStats {
        self.resource.stats()
    }

    fn resource(&self) -> &Arc<Resource> {
        &self.resource
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease").field("terms", self.resource.terms()).finish_non_exhaustive()
    }
}

/// A count that must be between 1 and a bound.
fn bounded(what: &str, value: u32, most: u32) -> Result<u32> {
    if value == 0 || value > most {
        return Err(Error::invalid(format!("{what} must be between 1 and {most}")));
    }
    Ok(value)
}
