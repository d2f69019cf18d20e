//! All the unsafe code of the engine: the locks of the shards, the table with its slab, and loops
//! for wide vectors.

pub mod lock;
#[cfg(test)]
mod lock_model;
#[cfg(test)]
mod lock_orders;
#[cfg(test)]
mod lock_tests;
pub mod popcount;
pub mod prefetch;
mod sync;
pub mod table;
mod threads;
pub mod wide;
