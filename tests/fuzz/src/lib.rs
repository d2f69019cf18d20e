//! The drivers that fuzz targets and seeded tests share: arbitrary bytes in, a panic if something
//! that must hold does not.
#![forbid(unsafe_code)]

pub mod commands;
mod pipeline;
pub mod request;
pub mod scripts;
mod source;
mod stage;
mod words;
