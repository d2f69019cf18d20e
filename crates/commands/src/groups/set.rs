//! Sets: what their commands share. Each family of verbs has a file of its own.

mod access;
mod combine;
mod members;
mod random;
mod scan;
#[cfg(test)]
mod tests;

pub use combine::{sdiff, sdiffcard, sdiffstore, sinter, sintercard, sinterstore};
pub use combine::{sunion, sunioncard, sunionstore};
pub use members::{sadd, scard, sismember, smembers, smismember, smove, srem};
pub use random::{spop, srandmember};
pub use scan::sscan;

use crate::call::ctx::Ctx;
use crate::node::Node;
use crate::node::config::Directive;
use russet_base::random::Random;
use russet_engine::types::element::Element;
use russet_engine::types::set::{SetRef, SetRules};
use russet_protocol::{BulkWriter, Sink};

/// What the directives say now.
#[inline]
fn rules(ctx: &Ctx) -> SetRules {
    rules_of(ctx.node)
}

#[inline]
pub(crate) fn rules_of(node: &Node) -> SetRules {
    let max = |directive| usize::try_from(node.config.int(directive)).unwrap_or(usize::MAX);
    SetRules {
        intset_entries_max: max(Directive::SetMaxIntsetEntries),
        listpack_entries_max: max(Directive::SetMaxListpackEntries),
        listpack_value_bytes_max: max(Directive::SetMaxListpackValue),
        hasher: node.keyspace.hasher(),
    }
}

fn new_random(ctx: &Ctx) -> Random {
    Random::from_seed(ctx.keys.keyspace().draw_u64())
}

#[inline]
fn reply_member(reply: &mut dyn Sink, member: Element<'_>) {
    match member {
        Element::Bytes(bytes) => reply.bulk(bytes),
        Element::Int(value) => reply.bulk_int(value),
    }
}

/// From here on members are written past the sink: a call of it for each costs more than its bytes.
const DIRECT_MEMBERS_MIN: usize = 32;

/// Writes the members that `each` shows, about `expected` of them; how many they were.
fn reply_members(
    reply: &mut dyn Sink,
    expected: usize,
    each: impl FnOnce(&mut dyn FnMut(Element<'_>)),
) -> usize {
    let mut count = 0;
    match reply.wire() {
        Some(out) if expected >= DIRECT_MEMBERS_MIN => {
            let mut bulks = BulkWriter::new(out);
            each(&mut |member| {
                count += 1;
                match member {
                    Element::Bytes(bytes) => bulks.bulk(bytes),
                    Element::Int(value) => bulks.bulk_int(value),
                }
            });
            bulks.finish();
        }
        _ => each(&mut |member| {
            count += 1;
            reply_member(reply, member);
        }),
    }
    count
}

/// Answers with all members of a set.
fn reply_all(reply: &mut dyn Sink, set: SetRef<'_>) {
    reply.set(set.len());
    reply_members(reply, set.len(), |visit| set.for_each(visit));
}
