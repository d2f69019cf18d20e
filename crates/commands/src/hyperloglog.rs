//! HyperLogLogs: strings that count different elements. What their bytes mean is the engine's.

mod count;
mod debug;
#[cfg(test)]
mod tests;

pub use count::{pfadd, pfcount, pfmerge};
pub use debug::{pfdebug, pfselftest};

use crate::config::Directive;
use crate::ctx::Ctx;
use crate::error::Refusal;
use russet_engine::types::hyperloglog::Fault;

/// What `hll-sparse-max-bytes` says now.
fn sparse_bytes_max(ctx: &Ctx) -> usize {
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
