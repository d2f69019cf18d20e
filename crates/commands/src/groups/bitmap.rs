//! Strings as bits: what the arguments of the commands mean. The bits themselves are the engine's.

pub mod bit;
pub mod field;
pub mod operation;
pub mod range;
