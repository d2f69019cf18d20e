//! Counts per window of time.

use super::{ADD, FAMILY, READ, check_name};
use crate::error::{Error, Result};
use crate::key::{Keys, Scope};
use crate::kit::Kit;
use crate::observe::{self, stats};
use crate::reply::Envelope;
use crate::retry::RequestId;
use std::sync::Arc;
use std::time::Duration;

/// Windows of one counter that can be kept.
const KEEP_MAX: u32 = 400;
/// The longest window: about thirty years.
const LENGTH_MAX: Duration = Duration::from_secs(1_000_000_000);
/// The most that one call adds or takes away.
pub(super) const BY_MAX: u64 = 1_000_000_000_000_000;

/// How time is cut: into windows that begin at multiples of their length, by the server's clock in
/// UTC. A counter lives as long as its windows are kept, and then is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Windows {
    pub(super) length: Duration,
    pub(super) keep: u32,
}

impl Windows {
    /// Windows of this length; the present one and one before are kept.
    pub fn of(length: Duration) -> Result<Windows> {
        if length < Duration::from_millis(1) || length > LENGTH_MAX {
            return Err(Error::invalid("a window is from a millisecond to thirty years"));
        }
        Ok(Windows { length, keep: 2 })
    }

    /// How many windows are kept, the present one being the first.
    pub fn keep(mut self, windows: u32) -> Result<Windows> {
        if !(1..=KEEP_MAX).contains(&windows) {
            return Err(Error::invalid(format!("1 to {KEEP_MAX} windows can be kept")));
        }
        self.keep = windows;
        Ok(self)
    }

    pub(super) fn check_ago(&self, ago: u32) -> Result<()> {
        match ago < self.keep {
            true => Ok(()),
            false => Err(Error::invalid(format!("only {} windows are kept", self.keep))),
        }
    }
}

/// What a window has counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count {
    /// What was added, less what was taken away.
    pub count: i64,
    /// Which window: how many of its length went by since 1970.
    pub window: u64,
    /// How long the present window still lasts.
    pub ends_after: Duration,
}

impl Count {
    pub(super) fn new(envelope: &Envelope) -> Result<Count> {
        Ok(Count {
            count: envelope.int("count")?,
            window: envelope.count("window")?,
            ends_after: envelope.duration("rest_ms")?,
        })
    }
}

stats! {
    /// What a handle and its clones have seen in this process.
    CounterStats counted by Counts {
        /// Calls that have added something.
        added,
        /// Calls that have read a count.
        read,
        /// Of these, those that an earlier sum has answered.
        read_fast,
        /// Calls that were refused because a field would have left its width.
        overflowed,
    }
}

/// Counts per subject and window.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use russet::counter::{WindowCounter, Windows};
/// use std::time::Duration;
///
/// let kit = russet::Kit::embedded(russet::Options::default())?;
/// let minutes = Windows::of(Duration::from_secs(365 * 86400))?.keep(10)?;
/// let orders = WindowCounter::new(&kit, "orders", minutes)?;
/// orders.add("user-1", 2, None).await?;
/// assert_eq!(orders.add("user-1", 1, None).await?.count, 3);
/// assert_eq!(orders.read("user-1", 0).await?.count, 3);
/// assert_eq!(orders.read("user-1", 1).await?.count, 0, "in the window before");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct WindowCounter {
    kit: Kit,
    name: String,
    windows: Windows,
    counts: Arc<Counts>,
}

impl WindowCounter {
    /// The counter of this name, for any number of subjects.
    pub fn new(kit: &Kit, name: &str, windows: Windows) -> Result<WindowCounter> {
        check_name(name)?;
        let (name, counts) = (name.to_owned(), Arc::default());
        Ok(WindowCounter { kit: kit.clone(), name, windows, counts })
    }

    /// What this handle and its clones have seen.
    pub fn stats(&self) -> CounterStats {
        self.counts.stats()
    }

    /// Adds to the present window, and says what it has counted. Less than nothing takes away.
    pub async fn add(
        &self,
        subject: impl Into<Scope>,
        by: i64,
        request: Option<&RequestId>,
    ) -> Result<Count> {
        check_by(by)?;
        let keys = self.kit.keys(FAMILY, subject)?;
        let call = self.kit.step_of_request(&ADD, &keys, request).bound_to(&self.name);
        let call = call.key(keys.item("windows", &self.name)).arg(by);
        let envelope = call.arg(self.windows.length).arg(self.windows.keep).run().await?;
        self.counts.added.add(1);
        observe::count("redis.counter.increment.count", "counter", 1);
        Count::new(&envelope)
    }

    /// What the present window has counted, or the one `ago` windows before.
    pub async fn read(&self, subject: impl Into<Scope>, ago: u32) -> Result<Count> {
        self.windows.check_ago(ago)?;
        let keys = self.kit.keys(FAMILY, subject)?;
        self.counts.read.add(1);
        read(&self.kit, &keys, &self.name, (self.windows, ago)).await
    }
}

pub(super) async fn read(
    kit: &Kit,
    keys: &Keys,
    name: &str,
    (windows, ago): (Windows, u32),
) -> Result<Count> {
    let call = kit.step(&READ).key(keys.item("windows", name));
    Count::new(&call.arg(windows.length).arg(ago).run().await?)
}

pub(super) fn check_by(by: i64) -> Result<()> {
    match by == 0 || by.unsigned_abs() > BY_MAX {
        true => Err(Error::invalid(format!("what is added is from 1 to {BY_MAX}, or negative"))),
        false => Ok(()),
    }
}
