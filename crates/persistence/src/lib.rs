#![forbid(unsafe_code)]
//! Files: the disk they are on, RDB, the log, and data as other programs read it. What a command
//! is, nobody here knows.

pub mod data_file;
pub mod disk;
pub mod export;
pub mod log;
pub mod rdb;
