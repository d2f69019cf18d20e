//! One value that is only replaced if it is what one expects.

use super::{FAMILY, checked_ttl};
use crate::error::Result;
use crate::key::{Keys, Scope};
use crate::kit::Kit;
use crate::observe::stats;
use crate::retry::RequestId;
use crate::step::{Step, WithRequestId};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

pub(super) static CREATE: Step<WithRequestId> =
    Step::new("state_create", include_str!("create.lua"));
pub(super) static SWAP: Step<WithRequestId> = Step::new("state_swap", include_str!("swap.lua"));

/// What came of creating a value.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum Created {
    /// It is the value.
    Created,
    /// There is one, and it stays as it is.
    Exists {
        /// That one.
        current: Vec<u8>,
    },
}

/// What came of replacing a value.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum Swap {
    /// It was as expected, and is replaced.
    Swapped,
    /// It is the new value already: perhaps by an earlier attempt of the same call. A request id
    /// tells the two apart.
    Already,
    /// It is another value, and stays as it is.
    Differs {
        /// That one.
        current: Vec<u8>,
    },
    /// There is none, or no longer: none was made.
    Missing,
}

stats! {
    /// What a handle and its clones have seen in this process.
    MarkerStats counted by Counts {
        /// Values that are new.
        created,
        /// Values that were not created, for one was there.
        exists,
        /// Values that were replaced.
        swapped,
        /// Values that were the new ones already.
        already,
        /// Values that were not what was expected.
        differs,
        /// Values that were not there.
        missing,
    }
}

/// A small state under one key, as `PROCESSING`.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use russet::state::{Marker, Swap};
/// use std::time::Duration;
///
/// let kit = russet::Kit::embedded(Default::default())?;
/// let import = Marker::new(&kit, "import 7", Duration::from_secs(600))?;
/// let _ = import.create("PROCESSING", None).await?;
/// assert_eq!(import.swap("PROCESSING", "COMPLETED", None).await?, Swap::Swapped);
/// let late = import.swap("PROCESSING", "FAILED", None).await?;
/// assert_eq!(late, Swap::Differs { current: b"COMPLETED".to_vec() });
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Marker {
    kit: Kit,
    keys: Keys,
    ttl: Duration,
    counts: Arc<Counts>,
}

impl Marker {
    /// `ttl` is how long it lives from its creation; changes do not prolong it.
    pub fn new(kit: &Kit, scope: impl Into<Scope>, ttl: Duration) -> Result<Self> {
        let (keys, ttl) = (kit.keys(FAMILY, scope)?, checked_ttl(ttl)?);
        Ok(Marker { kit: kit.clone(), keys, ttl, counts: Arc::default() })
    }

    /// What this handle and its clones have seen.
    pub fn stats(&self) -> MarkerStats {
        self.counts.stats()
    }

    /// Sets the value, unless there is one.
    pub async fn create(
        &self,
        value: impl AsRef<[u8]>,
        request: Option<&RequestId>,
    ) -> Result<Created> {
        let call = self.kit.step_of_request(&CREATE, &self.keys, request);
        let call = call.key(self.keys.key("marker")).arg(value.as_ref()).arg(self.ttl);
        let mut envelope = call.run().await?;
        let (created, counter) = match envelope.status() {
            "CREATED" => (Created::Created, &self.counts.created),
            "EXISTS" => {
                (Created::Exists { current: envelope.text("current")? }, &self.counts.exists)
            }
            _ => return Err(envelope.unexpected()),
        };
        counter.add(1);
        Ok(created)
    }

    /// Replaces `expected` by `next` and keeps its time to live. It never creates the value.
    pub async fn swap(
        &self,
        expected: impl AsRef<[u8]>,
        next: impl AsRef<[u8]>,
        request: Option<&RequestId>,
    ) -> Result<Swap> {
        let call = self.kit.step_of_request(&SWAP, &self.keys, request);
        let call = call.key(self.keys.key("marker")).arg(expected.as_ref()).arg(next.as_ref());
        let mut envelope = call.run().await?;
        let (swap, counter) = match envelope.status() {
            "SWAPPED" => (Swap::Swapped, &self.counts.swapped),
            "ALREADY" => (Swap::Already, &self.counts.already),
            "DIFFERS" => {
                (Swap::Differs { current: envelope.text("current")? }, &self.counts.differs)
            }
            "MISSING" => (Swap::Missing, &self.counts.missing),
            _ => return Err(envelope.unexpected()),
        };
        counter.add(1);
        Ok(swap)
    }

    /// The value; None if there is none.
    pub async fn read(&self) -> Result<Option<Vec<u8>>> {
        let request = crate::Request::new("GET").key(&self.keys.key("marker"));
        self.kit.call_safe(&request).await?.into_bytes()
    }
}

impl fmt::Debug for Marker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Marker").field("ttl", &self.ttl).finish_non_exhaustive()
    }
}
