//! Where keys live: shards behind locks, each with a table per database.

pub mod raw;
pub mod shard_set;
