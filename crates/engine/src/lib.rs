#![deny(unsafe_code)]
//! The keyspace: values, one room per type; shards behind locks; expiry, effects, watchers and
//! waiters. It knows no protocol, no sockets and no clock but the time that it is given.
pub mod access;
mod by_key;
mod effects;
pub mod event;
mod expiry;
mod field_expiry;
pub mod keys;
pub mod keyspace;
mod lifetime;
pub mod once;
pub mod placement;
pub mod reclaim;
pub mod record;
pub mod shard;
pub mod store;
pub mod types;
pub mod used_memory;
pub mod value;
pub mod waiting;
pub mod watch;
pub mod whole;
