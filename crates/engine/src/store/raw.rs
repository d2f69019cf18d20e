//! All the unsafe code of the engine: the locks of the shards, and the table with its slab.

pub mod lock;
#[cfg(test)]
mod lock_model;
pub mod popcount;
mod prefetch;
mod sync;
pub mod table;
