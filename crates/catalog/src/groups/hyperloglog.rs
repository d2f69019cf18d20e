//! HyperLogLogs, kept in strings.

#[allow(unused_imports)]
use super::*;
