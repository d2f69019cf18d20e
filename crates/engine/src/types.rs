//! The stored types, one room each. Only a type's room knows its encodings.
#![forbid(unsafe_code)]

pub mod bits;
pub mod blob;
pub mod lcs;
pub mod list;
pub mod string;
