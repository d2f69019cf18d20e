//! The standard libraries of scripts, and the algorithms under them.

pub mod format;
pub mod json;
pub mod layout;
pub mod msgpack;
pub mod number;
pub mod pattern;
pub mod random;
