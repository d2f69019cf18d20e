//! All the unsafe code of the engine: the locks of the shards, the table with its slab, and loops
//! compiled for instructions that not every machine has.

pub mod lock;
#[cfg(test)]
mod lock_model;
pub mod popcount;
mod sync;
