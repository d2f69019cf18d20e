//! The table itself, one file per group, and the vocabulary that all of them use.

pub mod acl;
pub mod bitmap;
pub mod bloom;
pub mod cluster;
pub mod connection;
pub mod generic;
pub mod geo;
pub mod hash;
pub mod hyperloglog;
pub mod list;
pub mod pubsub;
pub mod replication;
pub mod scripting;
pub mod server;
pub mod set;
pub mod stream;
pub mod string;
pub mod transactions;
pub mod zset;

use crate::arg;
use crate::arg::Arg;
use crate::spec::Arity::{AtLeast, Exactly};
use crate::spec::{
    Access, Batching, Categories, Change, Deprecation, Flags, Group, KeySpec, Recorded, Shape, Spec,
};

// What a command does to its keys, in one word.

/// Answers what the value holds.
const READS: Access = Access::RO.or(Access::ACCESS);
/// Looks at the key or at facts about the value, not at what it holds.
const INSPECTS: Access = Access::RO;
/// Answers something of the old value and writes a new one.
const CHANGES: Access = Access::RW.or(Access::ACCESS).or(Access::UPDATE);
/// Writes into the value without telling what it held.
const UPDATES: Access = Access::RW.or(Access::UPDATE);
/// Adds to the value.
const INSERTS: Access = Access::RW.or(Access::INSERT);
/// Answers what it removes from the value.
const TAKES: Access = Access::RW.or(Access::ACCESS).or(Access::DELETE);
/// Removes from the value without telling what.
const TRIMS: Access = Access::RW.or(Access::DELETE);
/// Replaces the value, whatever it was.
const OVERWRITES: Access = Access::OW.or(Access::UPDATE);
/// Writes where nothing was.
const CREATES: Access = Access::OW.or(Access::INSERT);
/// Deletes the key, whatever it holds.
const REMOVES: Access = Access::RM.or(Access::DELETE);
/// Not a key: a shard channel, routed like one.
const CHANNEL: Access = Access::NOT_KEY;

/// Runs while the data is being loaded, and on a replica that has lost its primary.
const ANYTIME: Flags = Flags::LOADING.or(Flags::STALE);

const fn change(version: &'static str, note: &'static str) -> Change {
    Change { version, note }
}
