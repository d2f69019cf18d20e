//! Lists: what their commands share. Each family of verbs has a file of its own.

mod access;
mod blocking;
mod edit;
mod ends;
mod find;
mod moves;
mod range;
#[cfg(test)]
mod tests;

pub use blocking::{blmove, blmovem, blmpop, blpop, brpop, brpoplpush};
pub use edit::{linsert, lrem, lset, ltrim};
pub use ends::{lmpop, lpop, lpush, lpushx, rpop, rpush, rpushx};
pub use find::{lindex, llen, lpos};
pub use moves::{lmove, lmovem, rpoplpush};
pub use range::lrange;

use crate::call::ctx::Ctx;
use crate::error::Refusal;
use crate::node::Node;
use crate::node::config::Directive;
use russet_base::num;
use russet_base::text::eq_ignore_case;
use russet_engine::types::list::{Element, End, ListLimits};
use russet_protocol::Sink;

/// What `list-max-listpack-size` says now.
#[inline]
pub(crate) fn limits(ctx: &Ctx) -> ListLimits {
    limits_of(ctx.node)
}

#[inline]
pub(crate) fn limits_of(node: &Node) -> ListLimits {
    ListLimits { listpack_size: node.config.int(Directive::ListMaxListpackSize) }
}

fn integer(arg: &[u8]) -> Result<i64, Refusal> {
    num::parse_i64(arg).ok_or(Refusal::NotInteger)
}

/// A count of zero or more, or else `refusal`.
fn natural(arg: &[u8], refusal: Refusal) -> Result<usize, Refusal> {
    num::parse_i64(arg).and_then(|value| usize::try_from(value).ok()).ok_or(refusal)
}

/// An integer whose negation is one, too.
fn symmetric(arg: &[u8]) -> Result<i64, Refusal> {
    match integer(arg)? {
        i64::MIN => Err(Refusal::text(
            "ERR value is out of range, \
             value must between -9223372036854775807 and 9223372036854775807",
        )),
        value => Ok(value),
    }
}

/// LEFT or RIGHT.
fn end(arg: &[u8]) -> Result<End, Refusal> {
    if eq_ignore_case(arg, b"left") {
        Ok(End::Front)
    } else if eq_ignore_case(arg, b"right") {
        Ok(End::Back)
    } else {
        Err(Refusal::Syntax)
    }
}

#[inline]
fn reply_element(reply: &mut dyn Sink, element: Element<'_>) {
    match element {
        Element::Bytes(bytes) => reply.bulk(bytes),
        Element::Int(value) => reply.bulk_int(value),
    }
}
