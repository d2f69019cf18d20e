//! Leases that know their owner: many readers or one writer, and the same owner many times.

use super::resource::{Ask, LeaseStats, Resource, Steps};
use super::{Attempt, FAMILY, LIVE, Terms, Token, bounded};
use crate::error::{Error, Result};
use crate::key::Scope;
use crate::kit::Kit;
use crate::step::{Safe, Step};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

pub(super) static READ: Step<Safe> = Step::new("lease_read", include_str!("read.lua"));
pub(super) static WRITE: Step<Safe> = Step::new("lease_write", include_str!("write.lua"));
pub(super) static RENEW: Step<Safe> = Step::new("lease_hold_renew", include_str!("hold_renew.lua"));
pub(super) static RELEASE: Step<Safe> =
    Step::new("lease_hold_release", include_str!("hold_release.lua"));

static STEPS: Steps = Steps { acquire: &WRITE, renew: &RENEW, release: &RELEASE, wakes_all: true };

/// How many holds there may be, of all owners.
const HOLDS_MAX: u32 = 10_000;
/// How often an owner may take a reentrant lease.
const DEPTH_MAX: u32 = 100;
/// How long new readers wait for a writer that was heard of last then. It asks more often.
const INTENT_MS: u64 = 1000;
/// The longest name of an owner.
const OWNER_BYTES_MAX: usize = 64;

/// Who holds a lease, however often. A thread's number will not do: other processes have the same.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Owner(Vec<u8>);

impl Owner {
    /// One that nobody else is.
    pub fn random() -> Self {
        Owner(crate::retry::token().to_vec())
    }

    /// One that several processes agree on, as the id of a job that they work on in turn: up to 64
    /// letters, digits, `.`, `-` and `_`.
    pub fn named(name: &str) -> Result<Self> {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
        if name.is_empty() || name.len() > OWNER_BYTES_MAX || !name.bytes().all(is_plain) {
            return Err(Error::invalid("the name of an owner is not of letters and digits"));
        }
        Ok(Owner(name.as_bytes().to_vec()))
    }

    /// A hold of its own, so that a repeated attempt does not count twice.
    fn hold(&self) -> Token {
        let mut token = self.0.clone();
        token.push(b':');
        token.extend_from_slice(&crate::retry::token());
        Token(token.into())
    }
}

/// Says nothing of its content.
impl fmt::Debug for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Owner")
    }
}

fn resource(kit: &Kit, scope: Scope, part: [&'static str; 4], terms: Terms) -> Result<Resource> {
    let keys = kit.keys(FAMILY, scope)?;
    Resource::new(kit, part.map(|part| keys.key(part)).into(), &STEPS, terms)
}

/// A lease of many readers or one writer. Reentrant: the owner of a hold may take more, and may
/// read while it writes; it may write while it reads if nobody else does.
///
/// Each hold has its own time. A writer that waits comes before readers who hold nothing yet.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use russet::lease::{Attempt, Owner, ReadWriteLease};
/// use std::time::Duration;
///
/// let kit = russet::Kit::embedded(Default::default())?;
/// let lease = ReadWriteLease::new(&kit, "catalogue", Duration::from_secs(5), 100)?;
/// let (ann, ben) = (Owner::random(), Owner::random());
/// let reading = lease.try_read(&ann).await?;
/// let also_reading = lease.try_read(&ben).await?;
/// assert!(reading.is_held() && also_reading.is_held());
/// assert!(matches!(lease.try_write(&ann).await?, Attempt::Busy { .. }));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct ReadWriteLease {
    resource: Arc<Resource>,
    holds_max: u32,
}

impl ReadWriteLease {
    /// `holds_max` is how many holds there may be on either side; whoever comes then gets
    /// [`Attempt::Full`].
    pub fn new(
        kit: &Kit,
        scope: impl Into<Scope>,
        terms: impl Into<Terms>,
        holds_max: u32,
    ) -> Result<Self> {
        let holds_max = bounded("holds_max", holds_max, HOLDS_MAX)?;
        let parts = ["writers", "readers", "intent", "fence"];
        let resource = Arc::new(resource(kit, scope.into(), parts, terms.into())?);
        Ok(ReadWriteLease { resource, holds_max })
    }

    /// What this handle, its clones and its guards have seen.
    pub fn stats(&self) -> LeaseStats {
        self.resource.stats()
    }

    /// Reads beside others, if nobody writes or waits to.
    pub async fn try_read(&self, owner: &Owner) -> Result<Attempt> {
        let extra = [u64::from(self.holds_max)];
        self.resource.take(owner.hold(), Ask::once(&extra).by(&READ)).await
    }

    /// Reads beside others, as soon as nobody writes or waits to, or until `wait` is over.
    pub async fn read(&self, owner: &Owner, wait: Duration) -> Result<Attempt> {
        let extra = [u64::from(self.holds_max)];
        self.resource.take(owner.hold(), Ask::within(wait, &extra).by(&READ)).await
    }

    /// Writes, if no other owner reads or writes.
    pub async fn try_write(&self, owner: &Owner) -> Result<Attempt> {
        let extra = [u64::from(self.holds_max), 0];
        self.resource.take(owner.hold(), Ask::once(&extra)).await
    }

    /// Writes as soon as no other owner reads or writes. Two readers that both wait to write wait
    /// for each other, until their time is over.
    pub async fn write(&self, owner: &Owner, wait: Duration) -> Result<Attempt> {
        let extra = [u64::from(self.holds_max), INTENT_MS];
        self.resource.take(owner.hold(), Ask::within(wait, &extra).leaves_trace()).await
    }

    /// How many holds readers have.
    pub async fn readers(&self) -> Result<u64> {
        self.resource.kit().step(&LIVE).key(self.resource.key(1)).run().await?.count("count")
    }

    /// How many holds the writer has.
    pub async fn writers(&self) -> Result<u64> {
        self.resource.kit().step(&LIVE).key(self.resource.key(0)).run().await?.count("count")
    }
}

impl fmt::Debug for ReadWriteLease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let terms = self.resource.terms();
        f.debug_struct("ReadWriteLease").field("terms", terms).finish_non_exhaustive()
    }
}

/// A lease that its owner may take again while it has it. It is free when the last of the owner's
/// guards is gone.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use russet::lease::{Owner, ReentrantLease};
/// use std::time::Duration;
///
/// let kit = russet::Kit::embedded(Default::default())?;
/// let lease = ReentrantLease::new(&kit, "order 17", Duration::from_secs(5))?;
/// let (ann, ben) = (Owner::random(), Owner::random());
/// let outer = lease.try_acquire(&ann).await?.held().ok_or("busy")?;
/// let inner = lease.try_acquire(&ann).await?.held().ok_or("busy")?;
/// let _ = outer.release().await?;
/// assert!(!lease.try_acquire(&ben).await?.is_held());
/// let _ = inner.release().await?;
/// assert!(lease.try_acquire(&ben).await?.is_held());
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct ReentrantLease {
    resource: Arc<Resource>,
}

impl ReentrantLease {
    /// The lease of this name, which its owner may take 100 times at once.
    pub fn new(kit: &Kit, scope: impl Into<Scope>, terms: impl Into<Terms>) -> Result<Self> {
        // Nobody reads, and there is no need to wait for a writer: the second key stays empty.
        let parts = ["holds", "none", "turn", "holds-fence"];
        let resource = resource(kit, scope.into(), parts, terms.into())?;
        Ok(ReentrantLease { resource: Arc::new(resource) })
    }

    /// What this handle, its clones and its guards have seen.
    pub fn stats(&self) -> LeaseStats {
        self.resource.stats()
    }

    /// Takes it, if no other owner has it now.
    pub async fn try_acquire(&self, owner: &Owner) -> Result<Attempt> {
        self.resource.take(owner.hold(), Ask::once(&[u64::from(DEPTH_MAX), 0])).await
    }

    /// Takes it as soon as no other owner has it, or until `wait` is over.
    pub async fn acquire(&self, owner: &Owner, wait: Duration) -> Result<Attempt> {
        self.resource.take(owner.hold(), Ask::within(wait, &[u64::from(DEPTH_MAX), 0])).await
    }

    /// How often its owner has it.
    pub async fn depth(&self) -> Result<u64> {
        self.resource.kit().step(&LIVE).key(self.resource.key(0)).run().await?.count("count")
    }
}

impl fmt::Debug for ReentrantLease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let terms = self.resource.terms();
        f.debug_struct("ReentrantLease").field("terms", terms).finish_non_exhaustive()
    }
}
