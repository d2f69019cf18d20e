//! Bloom filters.

#[allow(unused_imports)]
use super::*;
