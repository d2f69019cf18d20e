#![forbid(unsafe_code)]
//! The command catalog.
pub mod spec;
