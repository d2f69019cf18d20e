//! Commands about keys, whatever they hold: one file for each family.

mod delete;
mod dump;
mod expiry;
mod inspect;
mod listing;
pub(crate) mod migrate;
mod moving;
mod object;
mod scan;
mod sort;
#[cfg(test)]
mod tests;

pub use delete::del;
pub use dump::{dump, restore};
pub use expiry::{
    expire, expireat, expiretime, persist, pexpire, pexpireat, pexpiretime, pttl, ttl,
};
pub use inspect::{exists, touch, type_};
pub(crate) use listing::Walk;
pub use listing::{keys, randomkey};
pub use migrate::migrate;
pub use moving::{copy, move_, rename, renamenx};
pub use object::{object_encoding, object_freq, object_help, object_idletime, object_refcount};
pub use scan::scan;
pub use sort::{sort, sort_ro};

use crate::call::session::Session;
use crate::error::Refusal;
use crate::groups::server;
use russet_base::{Args, num};
use russet_catalog::Command;
use russet_engine::keyspace::Keyspace;
use russet_engine::store::shard_set::ShardSet;

/// The shards of a command whose keys don't determine them all: every one, unless its args show
/// that fewer do.
pub(crate) fn shards_of(keyspace: &Keyspace, command: Command, args: Args) -> ShardSet {
    match command {
        Command::Scan => scan::first_shard(keyspace, args),
        Command::ConfigSet => crate::groups::server::config_shards(keyspace, args),
        Command::Shutdown => server::shards_of_shutdown(keyspace, args),
        Command::Keys => listing::shards(keyspace, args.at(1)),
        Command::Sort | Command::SortRo => sort::shards(keyspace, command, args),
        _ => keyspace.all_shards(),
    }
}

/// Whether a call walks the keyspace, or counts it: by itself it needs one shard at a time.
#[inline]
pub(crate) fn walks_alone(command: Command, args: Args) -> bool {
    match command {
        Command::Keys | Command::Randomkey | Command::Dbsize | Command::Shutdown => true,
        Command::Info => server::key_sizes::is_asked(args),
        _ => false,
    }
}

/// The shards that a call which walks the keyspace needs next when it is neither in a transaction
/// nor in a script: one at a time where that is enough.
pub(crate) fn next_shards_alone(
    keyspace: &Keyspace,
    session: &Session,
    (command, args): (Command, Args),
) -> ShardSet {
    match command {
        // What a script or a transaction that is under way has published of its changes is not in
        // the journal yet.
        Command::Dbsize if keyspace.journal().is_strict() => keyspace.all_shards(),
        Command::Dbsize => ShardSet::EMPTY,
        Command::Shutdown if session.save.is_some() => ShardSet::EMPTY,
        Command::Shutdown => shards_of(keyspace, command, args),
        _ => listing::next_shards(keyspace, (session.walk.as_deref(), session.db), (command, args)),
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

pub(crate) fn database_in_range(keyspace: &Keyspace, index: i64) -> Result<usize, Refusal> {
    let index = usize::try_from(index).ok();
    index.filter(|&index| index < keyspace.databases()).ok_or(Refusal::DbIndexOutOfRange)
}
