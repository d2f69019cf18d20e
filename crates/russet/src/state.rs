//! States and how they change: never from a state that one did not expect, and never in part.
//!
//! | type | what it is for |
//! |---|---|
//! | [`Marker`] | one value that is replaced if it is what one expects; its time to live stays |
//! | [`Machine`] | a record with a declared state, version and fields that change together |
//! | [`Escalations`] | a ready machine: cases that rise level by level |
//! | [`Optimistic`] | values that a program changes by WATCH, when a step is not enough |
//! | [`Indexed`] | objects that are found by a value of theirs |
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use russet::state::{Applied, Change, Machine};
//! use std::time::Duration;
//!
//! russet::machine! {
//!     /// The life of an order.
//!     pub enum Order { Draft, Placed, Paid, Cancelled }
//!     pub Place: Draft => Placed;
//!     pub Pay: Placed => Paid;
//!     pub Cancel: Draft | Placed => Cancelled;
//! }
//!
//! let kit = russet::Kit::embedded(Default::default())?;
//! let orders = Machine::<Order>::new(&kit, Duration::from_secs(3600))?;
//! let _ = orders.open("order-1", Order::Draft, [("total_minor", "990")], None).await?;
//! let placed = orders.apply("order-1", Change::new(Place), None).await?;
//! assert!(matches!(placed, Applied::Moved(it) if it.state == Order::Placed && it.version == 2));
//! let again = orders.apply("order-1", Change::new(Place), None).await?;
//! assert!(matches!(again, Applied::WrongState { state: Order::Placed, version: 2 }));
//! # Ok(())
//! # }
//! ```
//!
//! A transition that is not declared does not compile:
//!
//! ```compile_fail
//! russet::machine! {
//!     pub enum Door { Open, Shut }
//!     pub Close: Open => Shut;
//! }
//! let change = russet::state::Change::new(Slam);
//! ```

mod escalation;
mod indexed;
mod machine;
mod marker;
mod optimistic;

pub use escalation::{Case, CaseState, Escalation, Escalations};
pub use indexed::{Indexed, IndexedStats, Object, Page, Put, Sweep};
pub use machine::{
    Applied, Change, Condition, Machine, MachineStats, Moved, Opened, Record, States, Transition,
};
pub use marker::{Created, Marker, MarkerStats, Swap};
pub use optimistic::{Current, Decision, Optimistic, OptimisticStats, Updated, Writes};

use crate::error::{Error, Result};
use crate::key::Family;
use crate::step::StepInfo;
use std::time::Duration;

const FAMILY: Family = Family { purpose: "state", version: 1 };
/// Nothing lives longer.
const TTL_MAX: Duration = Duration::from_secs(366 * 24 * 60 * 60);
/// How many fields one call may write.
const FIELDS_MAX: usize = 64;

pub(crate) static STEPS: &[&StepInfo] = &[
    marker::CREATE.info(),
    marker::SWAP.info(),
    machine::OPEN.info(),
    machine::APPLY.info(),
    machine::LOAD.info(),
    indexed::PUT.info(),
    indexed::REMOVE.info(),
    indexed::FIND.info(),
    indexed::SWEEP.info(),
];

fn checked_ttl(ttl: Duration) -> Result<Duration> {
    if ttl.is_zero() || ttl > TTL_MAX {
        return Err(Error::invalid(format!("ttl must be between 1 ms and {TTL_MAX:?}")));
    }
    Ok(ttl)
}
