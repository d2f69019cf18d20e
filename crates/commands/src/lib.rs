#![forbid(unsafe_code)]
//! Every command's one home, and the way there. It knows no sockets.
//!
//! `call` is the pipeline of a call, `node` what all clients of a node share, `groups` the
//! commands.

pub mod call;
pub mod error;
mod groups;
pub mod node;
#[cfg(test)]
mod testing;
