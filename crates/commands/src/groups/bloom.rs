//! Bloom filters: what the arguments of their commands mean. The texts are those of the Bloom
//! module of Redis, some of them without a code.

mod add;
mod look;
#[cfg(test)]
mod tests;

pub use add::{bf_add, bf_insert, bf_madd, bf_reserve};
pub use look::{bf_card, bf_exists, bf_info, bf_mexists};

use crate::error::Refusal;
use russet_engine::types::bloom::Wish;

/// The filter that an item is added to if there is none.
const DEFAULT_WISH: Wish = Wish { error_rate: 0.01, capacity: 100, expansion: Some(2) };

fn not_found() -> Refusal {
    Refusal::text("ERR not found")
}
