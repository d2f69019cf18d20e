//! The standard libraries of scripts, and the algorithms under them.

pub mod format;
pub mod number;
pub mod pattern;
