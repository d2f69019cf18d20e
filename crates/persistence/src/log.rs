//! The append-only log: a directory with a base, increments and a manifest, in the format of
//! Redis 7. The formats of the lines that are ours are in `log/sums.rs` and `log/once.rs`; the
//! whole is described in docs/durability.md.
//!
//! `directory` knows the files, `file` and `read` what is in one, `view` how they are looked at
//! without being changed, `render` how records are written, `writer` the thread that writes and
//! syncs. What commands do, whoever loads a log knows.

pub(crate) mod base;
mod directory;
mod error;
mod file;
mod items;
pub mod manifest;
pub(crate) mod once;
mod read;
mod render;
mod sums;
#[cfg(test)]
mod tests;
mod trusted;
mod view;
mod window;
mod writer;

pub use directory::{LoadReport, LogDirectory, LogNames};
pub use error::LogError;
pub use file::starts_as_rdb;
pub use read::{Refused, Target};
pub use view::{FileFound, LogView};
pub use writer::{BaseFile, Log, LogEvents, LogStatus, Policy};
