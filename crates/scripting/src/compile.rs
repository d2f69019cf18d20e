//! A tree of statements to instructions.

mod assign;
mod condition;
mod expr;
mod function;
mod stat;
mod value;

use crate::keys;
use crate::proto::Chunk;
use crate::syntax::{SyntaxError, parse};
use std::sync::Arc;

/// Compiles a source text. The name is as Lua takes it: `@user_script`, `=name`, or the text.
pub fn compile(source: &[u8], name: &[u8]) -> Result<Chunk, SyntaxError> {
    let tree = parse(source, name)?;
    let keys = keys::analyse(&tree);
    let main = function::compile_tree(&tree)?;
    Ok(Chunk { main: Arc::new(main), keys: Arc::new(keys) })
}
