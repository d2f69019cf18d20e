//! A tree of statements to instructions.

mod assign;
mod chain;
mod condition;
mod expr;
mod function;
mod stat;
mod value;

use crate::host::Tick;
use crate::keys::{self, KeysUse};
use crate::meter::Meter;
use crate::proto::Chunk;
use crate::syntax::{SyntaxError, parse};
use std::sync::Arc;

/// What a source text is compiled for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Purpose {
    /// It runs by itself and finds its keys in KEYS.
    Script,
    /// It registers functions, which are given their keys.
    Library,
    /// A script made it: nobody will ask how it reaches keys. Its levels come on top of those that
    /// calls are nested.
    Part { depth: usize },
}

/// Compiles a script. The name is as Lua takes it: `@user_script`, `=name`, or the text.
pub fn compile(source: &[u8], name: &[u8]) -> Result<Chunk, SyntaxError> {
    compile_for(Purpose::Script, source, name, &|| Tick::Continue)
}

/// Compiles a source text, which ends in the middle if `tick` says so.
pub fn compile_for(
    purpose: Purpose,
    source: &[u8],
    name: &[u8],
    tick: &dyn Fn() -> Tick,
) -> Result<Chunk, SyntaxError> {
    let meter = Meter::new(tick);
    let depth = match purpose {
        Purpose::Part { depth } => depth,
        _ => 0,
    };
    let tree = parse(source, name, depth, &meter)?;
    let keys = match purpose {
        Purpose::Part { .. } => KeysUse::default(),
        purpose => keys::analyse(&tree, purpose == Purpose::Library, &meter)?,
    };
    let main = function::compile_tree(&tree, &meter)?;
    Ok(Chunk { main: Arc::new(main), keys: Arc::new(keys) })
}
