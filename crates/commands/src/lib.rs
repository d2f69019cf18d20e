#![forbid(unsafe_code)]
//! The commands.
