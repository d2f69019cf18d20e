#![forbid(unsafe_code)]
//! The stored types, one room each. Only a type's room knows its encodings.

pub mod blob;
pub mod list;
