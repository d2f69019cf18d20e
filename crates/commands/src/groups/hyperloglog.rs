//! HyperLogLogs: strings that count different elements. What their bytes mean is the engine's.

mod count;
mod debug;
#[cfg(test)]
mod tests;

pub use count::{pfadd, pfcount, pfmerge};
pub use debug::{pfdebug, pfselftest};

use crate::call::ctx::Ctx;
use crate::call::invoke::Origin;
use crate::error::Refusal;
use crate::node::config::Directive;
use russet_engine::types::hyperloglog::{Fault, REGISTERS};

/// More bytes than the sparse form of any value has.
const SPARSE_BYTES_ENOUGH: usize = 2 * REGISTERS;

/// What `hll-sparse-max-bytes` says now. When a call is run again there is no limit: whether the
/// value became dense is a record of its own.
fn sparse_bytes_max(ctx: &Ctx) -> usize {
    if ctx.origin == Origin::Load {
        return SPARSE_BYTES_ENOUGH;
    }
    usize::try_from(ctx.node.config.memory(Directive::HllSparseMaxBytes)).unwrap_or(usize::MAX)
}

impl From<Fault> for Refusal {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::WrongType => Refusal::WrongType,
            Fault::NotHyperLogLog => Refusal::NotHyperLogLog,
            Fault::Corrupt => Refusal::CorruptHyperLogLog,
        }
    }
}
