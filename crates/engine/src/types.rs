//! The stored types, one room each. Only a type's room knows its encodings.
#![forbid(unsafe_code)]

pub mod bits;
pub mod blob;
pub mod bloom;
pub mod capacity;
pub mod cells;
mod cow_map;
pub(crate) mod cow_vec;
pub mod element;
pub mod geo;
pub mod hash;
pub mod hyperloglog;
pub mod lcs;
pub mod list;
mod murmur;
mod scan;
pub mod set;
pub mod stream;
pub mod string;
pub mod zset;
