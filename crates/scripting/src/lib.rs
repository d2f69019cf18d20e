#![forbid(unsafe_code)]
//! Lua 5.1 for scripts and functions.

pub mod library;
