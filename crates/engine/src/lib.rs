#![deny(unsafe_code)]
//! The keyspace: values, one room per type; shards behind locks; expiry, effects, watchers and
//! waiters. It knows no protocol, no sockets and no clock but the time that it is given.
pub mod access;
pub mod barrier;
mod by_key;
mod effects;
pub mod event;
pub mod evict;
mod expiry;
mod field_expiry;
pub mod journal;
pub mod key_counts;
pub mod keys;
pub mod keyspace;
mod lifetime;
pub mod moving;
pub mod once;
pub mod placement;
pub mod reclaim;
pub mod record;
pub mod shard;
pub mod snapshot;
pub mod store;
pub mod tracked;
pub mod types;
pub mod used_memory;
pub mod value;
pub mod waiting;
pub mod watch;
pub mod whole;
