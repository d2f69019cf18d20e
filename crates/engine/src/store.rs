//! Where keys live: shards behind locks, each with a table per database.

#[allow(unsafe_code)]
pub mod raw;
pub mod shard_set;
