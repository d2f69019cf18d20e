//! What the system offers by unsafe code only. Each file here gives the rest of the crate, where
//! such code is denied, something that can't be used wrongly.

pub mod arg_memory;
pub mod crash;
