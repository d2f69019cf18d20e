//! The drivers that fuzz targets and seeded tests share: arbitrary bytes in, a panic if something
//! that must hold does not.
#![forbid(unsafe_code)]

mod calls;
pub mod commands;
pub mod log;
mod pipeline;
pub mod rdb;
pub mod request;
pub mod scripts;
mod server;
mod source;
