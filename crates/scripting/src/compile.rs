//! A tree of statements to instructions.

use crate::proto::Chunk;
use crate::syntax::SyntaxError;

/// Compiles a source text. The name is as Lua takes it: `@user_script`, `=name`, or the text itself.
pub fn compile(source: &[u8], name: &[u8]) -> Result<Chunk, SyntaxError> {
    let _ = (source, name);
    Err(SyntaxError { message: b"not yet".to_vec() })
}
