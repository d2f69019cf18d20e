#![forbid(unsafe_code)]
//! The command catalog: what every command is, as const data, and what follows from that data
//! alone: which command a name means and which of its arguments are keys. It doesn't know how a
//! command runs.

mod access;
pub mod arg;
mod command;
mod groups;
mod keys;
mod lookup;
pub mod spec;

pub use access::{ChannelUse, Channels, channels, uses_database};
pub use command::Command;
pub use keys::{
    KeyAt, KeysError, LegacyRange, ONCE_ARGS, has_keys, is_first_arg_only_key, keys,
    migrate_keyword,
};
pub use lookup::{Unknown, lookup, lookup_full, lookup_subcommand, resolve};
pub use spec::Spec;

#[cfg(test)]
mod tests;
