//! Places on a map, kept in sorted sets.

#[allow(unused_imports)]
use super::*;
