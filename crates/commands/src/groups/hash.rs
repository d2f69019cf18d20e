//! Hashes: what their commands share. Each family of verbs has a file of its own.

mod args;
mod counter;
mod expiry;
mod lease;
mod random;
mod read;
mod scan;
#[cfg(test)]
mod tests;
mod write;

pub use counter::{hincrby, hincrbyfloat};
pub use expiry::{
    hexpire, hexpireat, hexpiretime, hpersist, hpexpire, hpexpireat, hpexpiretime, hpttl, httl,
};
pub use lease::{hgetex, hsetex};
pub use random::hrandfield;
pub use read::{hexists, hget, hgetall, hkeys, hlen, hmget, hstrlen, hvals};
pub use scan::hscan;
pub use write::{hdel, hgetdel, hmset, hset, hsetnx};

use crate::call::ctx::Ctx;
use crate::error::Refusal;
use crate::node::Node;
use crate::node::config::Directive;
use russet_base::{Args, OwnedArgs};
use russet_engine::event::Event;
use russet_engine::keys::Keys;
use russet_engine::types::element::{Element, IntText};
use russet_engine::types::hash::stored::{self, Pair};
use russet_engine::types::hash::{HashLimits, HashRef};
use russet_protocol::Sink;

/// What `hash-max-listpack-entries` and `hash-max-listpack-value` say now.
#[inline]
fn limits(ctx: &Ctx) -> HashLimits {
    limits_of(ctx.node)
}

#[inline]
pub(crate) fn limits_of(node: &Node) -> HashLimits {
    let size = |directive| usize::try_from(node.config.int(directive)).unwrap_or(0);
    HashLimits {
        entries: size(Directive::HashMaxListpackEntries),
        value_bytes: size(Directive::HashMaxListpackValue),
    }
}

/// The hash under a key, to read.
#[inline]
fn read<'k>(keys: &'k mut Keys<'_>, key: &[u8]) -> Result<Option<HashRef<'k>>, Refusal> {
    let hides_ms = keys.hides_fields_ms();
    match keys.read(key) {
        None => Ok(None),
        Some(entry) => Ok(Some(stored::hash(&entry)?.hiding(hides_ms))),
    }
}

#[inline]
fn reply_element(reply: &mut dyn Sink, element: Element<'_>) {
    match element {
        Element::Bytes(bytes) => reply.bulk(bytes),
        Element::Int(value) => reply.bulk_int(value),
    }
}

#[inline]
fn reply_value(reply: &mut dyn Sink, value: Option<Element<'_>>) {
    match value {
        Some(element) => reply_element(reply, element),
        None => reply.null(),
    }
}

fn reply_nulls(reply: &mut dyn Sink, count: usize) {
    reply.array(count);
    (0..count).for_each(|_| reply.null());
}

/// Arguments taken two by two.
#[inline]
fn pairs(args: Args<'_>) -> impl ExactSizeIterator<Item = Pair<'_>> + Clone {
    (0..args.len() / 2).map(move |at| (args.at(2 * at), args.at(2 * at + 1)))
}

/// Publishes a change to several fields, which count one by one.
#[inline]
fn wrote_fields(ctx: &mut Ctx, key: &[u8], (event, fields): (Event, usize)) {
    ctx.keys.wrote_many(key, event, fields as u64);
}

/// Fields that a call has changed, for its record: none are gathered while nobody listens.
struct Changed<'a> {
    is_recording: bool,
    names: Vec<&'a [u8]>,
    count: usize,
}

impl<'a> Changed<'a> {
    fn new(keys: &Keys) -> Self {
        Changed { is_recording: keys.is_recording(), names: Vec::new(), count: 0 }
    }

    fn add(&mut self, name: &'a [u8]) {
        self.count += 1;
        if self.is_recording {
            self.names.push(name);
        }
    }

    fn record_removed(&self, keys: &mut Keys, key: &[u8]) {
        keys.record_list(&[b"HDEL", key], &self.names);
    }

    /// Records that the fields have this deadline, or none.
    fn record_deadline(&self, keys: &mut Keys, key: &[u8], deadline_ms: Option<i64>) {
        record_deadline(keys, key, (deadline_ms, self.names.iter().copied()));
    }
}

/// Records that fields were given a deadline, or have none any more.
fn record_deadline<'a>(
    keys: &mut Keys,
    key: &[u8],
    (deadline_ms, names): (Option<i64>, impl ExactSizeIterator<Item = &'a [u8]>),
) {
    if !keys.is_recording() || names.len() == 0 {
        return;
    }
    let mut args = match deadline_ms {
        Some(_) => [b"HPEXPIREAT", key].into_iter().collect(),
        None => [b"HPERSIST", key].into_iter().collect::<OwnedArgs>(),
    };
    deadline_ms.into_iter().for_each(|at_ms| args.push(IntText::new(at_ms).as_bytes()));
    args.push(b"FIELDS");
    args.push(IntText::new(names.len() as i64).as_bytes());
    names.for_each(|name| args.push(name));
    keys.effects.records.push_owned(keys.db, args);
}

/// Deletes a hash that has lost its last field.
fn delete_emptied(ctx: &mut Ctx, key: &[u8]) {
    ctx.keys.remove(key);
    ctx.keys.also(key, Event::DEL);
}
