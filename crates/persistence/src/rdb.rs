//! RDB: values as bytes, alone (DUMP and RESTORE) or in a file with all others. Every encoding that
//! Redis or Valkey has ever written is read; what is written is the oldest one that says it, so
//! that many servers can read it.
//!
//! Nothing that is read is believed: a length is a wish until the bytes are there, and a packed
//! value is looked through to its last byte before anything is made of it.

mod bloom;
mod error;
mod hash;
mod input;
mod intset;
mod kind;
mod list;
mod listpack;
pub mod load;
mod module;
mod output;
pub mod payload;
pub mod save;
mod set;
mod skim;
mod stream;
mod string;
#[cfg(test)]
mod tests;
mod value;
mod ziplist;
mod zipmap;
mod zset;

pub use error::{Cause, RdbError};
pub use value::{FieldTtlFormat, Rules};

/// What Redis 7.0 writes, which it and all later ones read, Valkey too.
pub const VERSION: u16 = 10;
/// What Valkey 9 writes: the first in which the fields of hashes have deadlines.
pub const VERSION_VALKEY: u16 = 80;
/// What Redis 7.4 writes, where the fields of hashes have deadlines in another way.
pub const VERSION_REDIS_FIELD_TTL: u16 = 12;
/// The newest of Redis that is read.
pub const VERSION_REDIS_MAX: u16 = 14;

/// Whose numbers for the kinds of values are meant: from 22 on they differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    Redis,
    Valkey,
}

impl Dialect {
    /// The dialect of a version; `None` if it is not known.
    pub fn of_version(version: u16) -> Option<Dialect> {
        match version {
            0..=VERSION_REDIS_MAX => Some(Dialect::Redis),
            VERSION_VALKEY => Some(Dialect::Valkey),
            _ => None,
        }
    }
}
