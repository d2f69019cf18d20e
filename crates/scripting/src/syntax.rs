//! Source text to a tree of statements, with every name resolved.

pub use error::SyntaxError;

mod error;
