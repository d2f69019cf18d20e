//! HyperLogLog: how many different elements a set has, from 16,384 small registers. The value is a
//! string in the layout that Redis made public, so it counts on wherever its bytes are carried:
//! sixteen bytes of header, then the registers, dense (6 bits each) or sparse (runs).
//!
//! A string can be written by anyone. What it claims is checked wherever it is read.

mod dense;
mod estimate;
mod hash;
mod header;
mod registers;
mod self_test;
mod sparse;
pub mod stored;
#[cfg(test)]
mod tests;

pub use header::Encoding;
pub use registers::Registers;
pub use self_test::self_test;
pub use sparse::{Run, runs};

/// Bits of the hash that choose the register.
const REGISTER_BITS: u32 = 14;
/// Bits of the hash that are left to look for a run of zeros in.
const RUN_BITS: u32 = 64 - REGISTER_BITS;
/// Registers of each HyperLogLog.
pub const REGISTERS: usize = 1 << REGISTER_BITS;
/// Bytes of the registers in the dense layout, 6 bits each.
const DENSE_REGISTER_BYTES: usize = REGISTERS * 6 / 8;

/// Why a value can't be read as a HyperLogLog.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It is not even a string.
    WrongType,
    /// It is a string, but not one of ours.
    NotHyperLogLog,
    /// Its header is right, but its registers make no sense.
    Corrupt,
}
