//! The keyspace table of one shard of one database, and the memory it lives in. Everything that is
//! exported can be used from safe code only.
//!
//! From the bottom up: `pages` maps memory and hands out pages, `slab` cuts pages into blocks,
//! `blocks` lends them to several tables at once, `account` counts what they take, `bytes` compares
//! and copies few bytes, `entry` is the layout of one key in one block, `segment` is a small
//! open-addressed table of tagged pointers to entries, `core` is a directory of segments that grows
//! and shrinks, `ahead` asks for the memory of both, `handle` lends entries out, `removed` is what
//! is left of an entry outside the table, `walk` goes through many entries, and `face` is what
//! callers see.
//! Locks, clocks, value types and eviction policies are left to the callers.

mod account;
mod ahead;
mod blocks;
mod bytes;
mod core;
mod entry;
mod face;
mod handle;
mod pages;
mod removed;
mod segment;
mod slab;
mod walk;
mod word;

#[cfg(test)]
mod tests;

pub use account::{Changed, Measured};
pub use ahead::Home;
pub use blocks::Blocks;
pub use entry::{INLINE_VALUE_MAX, KEY_BYTES_MAX, VALUE_BYTES_MAX};
pub use face::Table;
pub use handle::{BlobMut, EntryMut, EntryRef, NewValue, Slot, VacantEntry, View};
pub use pages::PagePool;
pub use removed::{Deleted, Gone, Inline, Removed};
pub use segment::Likely;
pub use walk::Cursor;
