#![forbid(unsafe_code)]
//! Every command's one home, and the way there: dispatch, sessions, transactions, blocking,
//! publish/subscribe, configuration. It knows no sockets.

mod acl;
mod bitmap;
pub mod blocking;
mod bloom;
pub mod client;
pub mod clients;
mod cluster;
pub mod config;
pub mod connection;
pub mod ctx;
mod deadline;
pub mod dispatch;
pub mod error;
mod gate;
mod generic;
mod geo;
mod handlers;
mod hash;
mod help;
pub mod http_guard;
mod hyperloglog;
pub mod invoke;
pub mod latency;
mod list;
pub mod mail;
mod many_keys;
pub mod monitor;
pub mod node;
pub mod once;
pub mod pause;
pub mod pubsub;
mod replication;
mod scanning;
pub mod scripting;
mod server;
pub mod session;
mod set;
pub mod slowlog;
pub mod stats;
mod stream;
mod string;
pub mod tally;
#[cfg(test)]
mod testing;
pub mod together;
pub mod transactions;
mod zset;
