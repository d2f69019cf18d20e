#![forbid(unsafe_code)]
//! The commands.
pub mod config;
