#![forbid(unsafe_code)]
//! The server: event loops, listening sockets, the process. What commands do is in
//! `russet-commands`; how values are stored is in `russet-engine`.

mod daemon;
pub mod event_loop;
mod host;
mod housekeeping;
mod idle_pages;
mod listen;
mod log;
mod open_files;
pub mod run;
mod service;
