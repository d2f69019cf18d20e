//! Sorted sets.

#[allow(unused_imports)]
use super::*;
