//! Which keys a chunk can reach, read from its source tree.

/// What the analysis could prove.
#[derive(Clone, Debug, Default)]
pub struct KeysUse;
