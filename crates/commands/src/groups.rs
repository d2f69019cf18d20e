//! The commands, one room for each group of the catalog, and what several groups share.

pub mod acl;
pub mod bitmap;
pub mod bloom;
pub mod cluster;
pub mod connection;
pub mod deadline;
pub mod generic;
pub mod geo;
pub mod hash;
pub mod help;
pub mod hyperloglog;
pub mod list;
pub mod many_keys;
pub mod pubsub;
pub mod replication;
pub mod scanning;
pub mod scripting;
pub mod server;
pub mod set;
pub mod stream;
pub mod string;
pub mod transactions;
pub mod zset;
