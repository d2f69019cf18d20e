//! Counters: per window, spread over slots, packed into bits; and unique ids.
//!
//! | type | for |
//! |---|---|
//! | [`WindowCounter`] | how often something happened in this minute, hour or day |
//! | [`ShardedCounter`] | the same for what happens so often that one slot would be too hot |
//! | [`PackedCounters`] | many small numbers of one subject in a few bytes |
//! | [`Ids`] | numbers that are never given out twice |
//!
//! Counts are not a ledger: what the store loses is lost.

mod ids;
mod packed;
mod sharded;
mod windows;

pub use ids::{Id, IdStats, Ids};
pub use packed::{Overflow, PackedCounters, PackedOutcome, Width};
pub use sharded::ShardedCounter;
pub use windows::{Count, CounterStats, WindowCounter, Windows};

use crate::error::{Error, Result};
use crate::key::Family;
use crate::step::{Safe, Step, StepInfo, WithRequestId};

const FAMILY: Family = Family { purpose: "counter", version: 1 };
/// The longest name of a counter.
const NAME_BYTES_MAX: usize = 64;

static ADD: Step<WithRequestId> = Step::new("counter_add", include_str!("counter/add.lua"));
static READ: Step<Safe> = Step::read_only("counter_read", include_str!("counter/read.lua"));
static PACKED: Step<WithRequestId> =
    Step::new("counter_packed", include_str!("counter/packed.lua"));
static IDS: Step<Safe> = Step::new("counter_ids", include_str!("counter/ids.lua"));

pub(crate) static STEPS: &[&StepInfo] = &[ADD.info(), READ.info(), PACKED.info(), IDS.info()];

fn check_name(name: &str) -> Result<()> {
    if name.is_empty() || name.len() > NAME_BYTES_MAX {
        return Err(Error::invalid(format!("a name has 1 to {NAME_BYTES_MAX} bytes")));
    }
    Ok(())
}
