//! What is wrong with a source text.

use std::fmt;

/// A refused source text; the message has name and line, as in `user_script:1: ...`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SyntaxError {
    pub(crate) message: Vec<u8>,
}

impl SyntaxError {
    pub fn message(&self) -> &[u8] {
        &self.message
    }
}

impl fmt::Display for SyntaxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.message))
    }
}

impl std::error::Error for SyntaxError {}
