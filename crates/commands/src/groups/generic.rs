//! Commands about keys, whatever they hold: one file for each family.

mod delete;
mod expiry;
mod inspect;
mod listing;
mod moving;
mod object;
mod scan;
mod sort;
#[cfg(test)]
mod tests;
mod whole;

pub use delete::{del, delex, delifeq};
pub use expiry::{
    expire, expireat, expiretime, persist, pexpire, pexpireat, pexpiretime, pttl, ttl,
};
pub use inspect::{exists, touch, type_};
pub use listing::{keys, randomkey};
pub use moving::{copy, move_, rename, renamenx};
pub use object::{object_encoding, object_freq, object_help, object_idletime, object_refcount};
pub use scan::scan;
pub use sort::{sort, sort_ro};
pub use whole::{dbsize, flushall, flushdb, swapdb};

use crate::error::Refusal;
use russet_base::{Args, num};
use russet_catalog::Command;
use russet_engine::keyspace::Keyspace;
use russet_engine::store::shard_set::ShardSet;

/// The shards of a command whose keys don't tell them all: every one, unless its arguments show
/// that fewer do.
pub(crate) fn shards_of(keyspace: &Keyspace, command: Command, args: Args) -> ShardSet {
    match command {
        Command::Scan => scan::first_shard(keyspace, args),
        Command::Keys => listing::shards(keyspace, args.at(1)),
        Command::Sort | Command::SortRo => sort::shards(keyspace, command, args),
        _ => keyspace.all_shards(),
    }
}

/// The index of a database, as COPY and MOVE take it.
fn database(keyspace: &Keyspace, arg: &[u8]) -> Result<usize, Refusal> {
    let index = num::parse_i64(arg).ok_or(Refusal::NotInteger)?;
    if i32::try_from(index).is_err() {
        return Err(Refusal::text(
            "ERR value is out of range, value must between -2147483648 and 2147483647",
        ));
    }
    database_in_range(keyspace, index)
}

fn database_in_range(keyspace: &Keyspace, index: i64) -> Result<usize, Refusal> {
    let index = usize::try_from(index).ok();
    index.filter(|&index| index < keyspace.databases()).ok_or(Refusal::DbIndexOutOfRange)
}
