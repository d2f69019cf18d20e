//! Cases that rise level by level, until they are closed.

use super::machine::{Applied, Change, Condition, Machine, MachineStats, Moved, Opened};
use crate::error::{Error, Result};
use crate::key::Scope;
use crate::kit::Kit;
use crate::retry::RequestId;
use std::time::Duration;

const LEVEL: &str = "level";
const LEVEL_MAX: u32 = 100;

crate::machine! {
    /// Where a case stands.
    pub enum CaseState {
        /// On level 0.
        Open,
        /// On a higher level.
        Escalated,
        /// For good.
        Closed,
    }
    Escalate: Open | Escalated => Escalated;
    Close: Open | Escalated => Closed;
}

/// What came of a step of a case. All but the first two have changed nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Escalation {
    /// It is one level up.
    Escalated {
        /// After the step.
        level: u32,
        /// After the step.
        version: u64,
    },
    /// It is over.
    Closed {
        /// After the step.
        version: u64,
    },
    /// It is on the highest level.
    AtTop,
    /// It was closed before.
    NotOpen,
    /// Another change came before.
    Changed {
        /// As it is now.
        version: u64,
    },
    /// There is no such case, or no longer.
    Missing,
}

/// A case as it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Case {
    /// Where it stands.
    pub state: CaseState,
    /// From 0 to `level_max`.
    pub level: u32,
    /// Raised by every change.
    pub version: u64,
}

/// Cases that are open, escalated to some level, or closed. Level and version rise together.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use russet::state::{Escalation, Escalations};
/// use std::time::Duration;
///
/// let kit = russet::Kit::embedded(Default::default())?;
/// let cases = Escalations::new(&kit, 3, Duration::from_secs(3600))?;
/// cases.open("case-7", None).await?;
/// let risen = cases.escalate("case-7", None, None).await?;
/// assert_eq!(risen, Escalation::Escalated { level: 1, version: 2 });
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Escalations {
    machine: Machine<CaseState>,
    level_max: u32,
}

impl Escalations {
    /// Cases with this many levels, kept for `ttl` from when they are opened.
    pub fn new(kit: &Kit, level_max: u32, ttl: Duration) -> Result<Self> {
        if level_max == 0 || level_max > LEVEL_MAX {
            return Err(Error::invalid(format!("level_max must be between 1 and {LEVEL_MAX}")));
        }
        Ok(Escalations { machine: Machine::new(kit, ttl)?, level_max })
    }

    /// Opens a case on level 0; one that is there stays as it is.
    pub async fn open(
        &self,
        case: impl Into<Scope>,
        request: Option<&RequestId>,
    ) -> Result<Opened<CaseState>> {
        self.machine.open(case, CaseState::Open, [(LEVEL, "0")], request).await
    }

    /// One level up. With `at_version` only if nothing has changed since; with a request id once,
    /// however often it is called.
    pub async fn escalate(
        &self,
        case: impl Into<Scope>,
        at_version: Option<u64>,
        request: Option<&RequestId>,
    ) -> Result<Escalation> {
        let below_top = Condition::less(LEVEL, i64::from(self.level_max));
        let mut change = Change::new(Escalate).require(below_top).add(LEVEL, 1);
        if let Some(version) = at_version {
            change = change.at_version(version);
        }
        let applied = self.machine.apply(case, change, request).await?;
        outcome(applied, |moved| {
            let level = moved.sums.first().and_then(|level| u32::try_from(*level).ok());
            let level = level.ok_or_else(|| Error::Corrupt("record: level".into()))?;
            Ok(Escalation::Escalated { level, version: moved.version })
        })
    }

    /// Closes a case, on whatever level it is.
    pub async fn close(
        &self,
        case: impl Into<Scope>,
        request: Option<&RequestId>,
    ) -> Result<Escalation> {
        let applied = self.machine.apply(case, Change::new(Close), request).await?;
        outcome(applied, |moved| Ok(Escalation::Closed { version: moved.version }))
    }

    /// What this handle and its clones have seen; a case on the highest level is a condition that
    /// failed.
    pub fn stats(&self) -> MachineStats {
        self.machine.stats()
    }

    /// How a case stands; None if there is none.
    pub async fn load(&self, case: impl Into<Scope>) -> Result<Option<Case>> {
        let Some(record) = self.machine.load(case).await? else {
            return Ok(None);
        };
        let level = record.fields.get(LEVEL).and_then(|level| std::str::from_utf8(level).ok());
        let level = level.and_then(|level| level.parse().ok());
        let level = level.ok_or_else(|| Error::Corrupt("record: level".into()))?;
        Ok(Some(Case { state: record.state, level, version: record.version }))
    }
}

fn outcome(
    applied: Applied<CaseState>,
    moved: impl FnOnce(Moved<CaseState>) -> Result<Escalation>,
) -> Result<Escalation> {
    match applied {
        Applied::Moved(it) => moved(it),
        Applied::WrongState { .. } => Ok(Escalation::NotOpen),
        Applied::WrongVersion { version, .. } => Ok(Escalation::Changed { version }),
        Applied::Refused { .. } => Ok(Escalation::AtTop),
        Applied::Missing => Ok(Escalation::Missing),
    }
}
