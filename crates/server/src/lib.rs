#![deny(unsafe_code)]
//! The server: event loops, listening sockets, the process around an embedded engine. What commands
//! do is in `russet-commands`; how values are stored is in `russet-engine`.

mod check;
mod command_line;
mod cpu;
mod crash_report;
mod daemon;
pub mod event_loop;
mod host;
mod idle_pages;
mod listen;
mod load_display;
mod log;
mod metrics;
mod oom_score;
mod open_files;
mod outbound;
pub mod run;
mod sampled;
mod service;
mod signals;
mod supervisor;
#[allow(unsafe_code)]
mod sys;
pub mod tls;
mod tools;
