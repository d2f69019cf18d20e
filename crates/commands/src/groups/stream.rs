//! Streams: what their commands share. Each family of verbs has a file of its own.

mod access;
mod ack;
mod add;
mod blocking;
mod claim;
mod delete;
mod group;
mod info;
mod pending;
mod range;
mod read;
mod reading;
mod record;
mod reply;
mod settings;
#[cfg(test)]
mod tests;
mod trim;

pub use ack::{xack, xackdel, xnack};
pub use add::xadd;
pub use claim::{xautoclaim, xclaim};
pub use delete::{xdel, xdelex};
pub use group::{create, createconsumer, delconsumer, destroy, setid};
pub use info::{info_consumers, info_groups, info_stream};
pub use pending::xpending;
pub use range::{xlen, xrange, xrevrange};
pub use read::{xread, xreadgroup};
pub use settings::{xcfgset, xsetid};
pub use trim::xtrim;

use crate::call::ctx::Ctx;
use crate::error::Refusal;
use crate::node::config::Directive;
use russet_base::escape::escape;
use russet_base::num;
use russet_engine::types::stream::{BlockLimits, IdRange, StreamId};

/// Longest ID that is looked at.
const ID_ARG_BYTES_MAX: usize = 127;

/// What `stream-node-max-bytes` and `stream-node-max-entries` say now.
fn limits(ctx: &Ctx) -> BlockLimits {
    let config = &ctx.node.config;
    BlockLimits {
        bytes_max: usize::try_from(config.int(Directive::StreamNodeMaxBytes)).unwrap_or(0),
        entries_max: u64::try_from(config.int(Directive::StreamNodeMaxEntries)).unwrap_or(0),
    }
}

fn integer(arg: &[u8]) -> Result<i64, Refusal> {
    num::parse_i64(arg).ok_or(Refusal::NotInteger)
}

/// An integer, or else this text.
fn integer_or(arg: &[u8], refusal: &'static str) -> Result<i64, Refusal> {
    num::parse_i64(arg).ok_or(Refusal::text(refusal))
}

/// An ID in which the number may be left to the server: `5-*`.
enum GivenId {
    Whole(StreamId),
    /// Milliseconds only.
    Open(u64),
}

/// `missing_seq` is the number of an ID that is milliseconds alone.
fn given_id(arg: &[u8], missing_seq: u64) -> Result<GivenId, Refusal> {
    if arg.len() > ID_ARG_BYTES_MAX {
        return Err(Refusal::InvalidStreamId);
    }
    // COMPAT: what stands behind a NUL byte is not seen; tests/wire/stream/xadd.wire.
    let arg = arg.split(|byte| *byte == 0).next().unwrap_or(arg);
    let number = |arg| num::parse_u64_loose(arg).ok_or(Refusal::InvalidStreamId);
    match arg.iter().position(|byte| *byte == b'-') {
        None => Ok(GivenId::Whole(StreamId::new(number(arg)?, missing_seq))),
        Some(dash) => {
            let ms = number(&arg[..dash])?;
            match &arg[dash + 1..] {
                b"*" => Ok(GivenId::Open(ms)),
                seq => Ok(GivenId::Whole(StreamId::new(ms, number(seq)?))),
            }
        }
    }
}

/// An ID that names one entry: `-` and `+` do not.
fn strict_id(arg: &[u8], missing_seq: u64) -> Result<StreamId, Refusal> {
    match given_id(arg, missing_seq)? {
        GivenId::Whole(id) => Ok(id),
        GivenId::Open(_) => Err(Refusal::InvalidStreamId),
    }
}

/// An ID, or `-` or `+` for the least and the greatest.
fn any_id(arg: &[u8], missing_seq: u64) -> Result<StreamId, Refusal> {
    match arg {
        b"-" => Ok(StreamId::MIN),
        b"+" => Ok(StreamId::MAX),
        _ => strict_id(arg, missing_seq),
    }
}

/// The start of a range; `(` in front leaves that ID itself out.
fn range_start(arg: &[u8]) -> Result<StreamId, Refusal> {
    match arg {
        [b'(', id @ ..] if !id.is_empty() => {
            strict_id(id, 0)?.next().ok_or(Refusal::text("ERR invalid start ID for the interval"))
        }
        _ => any_id(arg, 0),
    }
}

/// The end of a range; see [`range_start`].
fn range_end(arg: &[u8]) -> Result<StreamId, Refusal> {
    match arg {
        [b'(', id @ ..] if !id.is_empty() => strict_id(id, u64::MAX)?
            .previous()
            .ok_or(Refusal::text("ERR invalid end ID for the interval")),
        _ => any_id(arg, u64::MAX),
    }
}

fn id_range(start: &[u8], end: &[u8]) -> Result<IdRange, Refusal> {
    Ok(IdRange { first: range_start(start)?, last: range_end(end)? })
}

/// Bytes as a C string prints them in an error: nothing behind a NUL byte.
fn shown(arg: &[u8]) -> String {
    let arg = arg.split(|byte| *byte == 0).next().unwrap_or(arg);
    escape(arg).into_owned()
}

/// Neither the key nor the group: which of the two is not told.
fn no_group(key: &[u8], group: &[u8]) -> Refusal {
    let (key, group) = (shown(key), shown(group));
    Refusal::text(format!("NOGROUP No such key '{key}' or consumer group '{group}'"))
}

/// The key is there, but not the group.
fn no_such_group(key: &[u8], group: &[u8]) -> Refusal {
    let (key, group) = (shown(key), shown(group));
    Refusal::text(format!("NOGROUP No such consumer group '{group}' for key name '{key}'"))
}

/// A subcommand called with arguments that it does not know.
fn bad_subcommand(container: &'static str, given: &[u8]) -> Refusal {
    let given = shown(given);
    Refusal::text(format!(
        "ERR unknown subcommand or wrong number of arguments for '{given}'. Try {container} HELP."
    ))
}
