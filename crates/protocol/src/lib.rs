#![forbid(unsafe_code)]
//! RESP2 and RESP3 without sockets: a parser of requests, writers of replies, and replies as values.
//! It knows no command and does no input or output.

pub mod sink;

pub use sink::{Mark, Resp, Sink};
