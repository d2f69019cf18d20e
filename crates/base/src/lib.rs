#![forbid(unsafe_code)]
//! The ground everything stands on: arguments, time, randomness, numbers and every named limit.
//! It knows nothing of commands, sockets or storage.

pub mod args;
pub mod float;
pub mod limits;

pub use args::{Args, OwnedArgs, Span};
