//! The files that are made from the toolkit's steps: the function library and the page about it.

use crate::generated;

/// Writes both, or with `--check` compares them; false: one is not current.
pub fn main(args: &[String]) -> Result<bool, String> {
    let files = [
        ("functions/russet.lua", russet::functions()),
        ("docs/functions.md", russet::step::reference()),
    ];
    generated::main(args, "functions", &files)
}
