#![forbid(unsafe_code)]
//! Every command's one home, and the way there: dispatch, sessions, transactions, blocking,
//! publish/subscribe, configuration. It knows no sockets.

mod bitmap;
pub mod blocking;
pub mod clients;
pub mod config;
pub mod connection;
pub mod ctx;
pub mod dispatch;
pub mod error;
mod gate;
mod generic;
mod handlers;
mod help;
pub mod latency;
mod list;
pub mod mail;
pub mod monitor;
pub mod node;
pub mod pause;
pub mod pubsub;
mod server;
pub mod session;
pub mod slowlog;
pub mod stats;
mod string;
#[cfg(test)]
mod testing;
pub mod together;
pub mod transactions;
