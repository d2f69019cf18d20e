//! Source text to a tree of statements, with every name resolved.

mod error;
mod expr;
mod lexer;
mod parser;
mod scope;
mod token;
pub(crate) mod tree;

pub use error::SyntaxError;
pub(crate) use parser::parse;
