//! Which keys a chunk can reach, read from its source tree.

use crate::syntax::tree::Tree;

/// What the analysis could prove.
#[derive(Clone, Debug, Default)]
pub struct KeysUse;

pub(crate) fn analyse(tree: &Tree) -> KeysUse {
    let _ = tree;
    KeysUse
}
