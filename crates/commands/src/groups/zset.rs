//! Sorted sets: what their commands share. Each family of verbs has a file of its own.

mod access;
mod add;
mod blocking;
mod bounds;
mod combine;
mod lookup;
mod pop;
mod random;
mod range;
mod remove;
mod reply;
mod scan;
#[cfg(test)]
mod tests;

pub(crate) use access::record_all;
pub use add::{zadd, zincrby};
pub use blocking::{bzmpop, bzpopmax, bzpopmin};
pub use combine::{zdiff, zdiffstore, zinter, zintercard, zinterstore, zunion, zunionstore};
pub use lookup::{zcard, zcount, zlexcount, zmscore, zrank, zrevrank, zscore};
pub use pop::{zmpop, zpopmax, zpopmin};
pub use random::zrandmember;
pub use range::{
    zrange, zrangebylex, zrangebyscore, zrangestore, zrevrange, zrevrangebylex, zrevrangebyscore,
};
pub use remove::{zrem, zremrangebylex, zremrangebyrank, zremrangebyscore};
pub use scan::zscan;

use crate::call::ctx::Ctx;
use crate::error::Refusal;
use crate::node::Node;
use crate::node::config::Directive;
use russet_base::num;
use russet_engine::types::zset::ZsetLimits;

/// What the `zset-max-listpack-*` directives say now.
#[inline]
pub(crate) fn limits(ctx: &Ctx) -> ZsetLimits {
    limits_of(ctx.node)
}

#[inline]
pub(crate) fn limits_of(node: &Node) -> ZsetLimits {
    let config = &node.config;
    ZsetLimits {
        entries_max: config.int(Directive::ZsetMaxListpackEntries) as usize,
        member_bytes_max: config.memory(Directive::ZsetMaxListpackValue) as usize,
    }
}

fn integer(arg: &[u8]) -> Result<i64, Refusal> {
    num::parse_i64(arg).ok_or(Refusal::NotInteger)
}

/// A score or an increment, or else `refusal`.
#[inline]
pub(crate) fn float(arg: &[u8], refusal: Refusal) -> Result<f64, Refusal> {
    // Whole numbers are most of what comes, and are read faster.
    match num::parse_i64(arg) {
        Some(value) => Ok(value as f64),
        None => decimal(arg).ok_or(refusal),
    }
}

/// COMPAT: no hexadecimal digits here, as in Redis 8 and Valkey 9; tests/wire/zset/zadd.wire.
fn decimal(arg: &[u8]) -> Option<f64> {
    let is_hexadecimal = arg.iter().any(|byte| matches!(byte, b'x' | b'X'));
    num::parse_f64(arg).filter(|_| !is_hexadecimal)
}
