//! What is wrong with a source text.

use std::fmt;

/// A refused source text; the message has name and line, as in `user_script:1: ...`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SyntaxError {
    message: Vec<u8>,
    is_killed: bool,
}

impl SyntaxError {
    pub(crate) fn new(message: Vec<u8>) -> Self {
        SyntaxError { message, is_killed: false }
    }

    /// Nothing is wrong with it, but the host wanted no more of it.
    pub(crate) fn killed() -> Self {
        SyntaxError { message: b"the compilation was ended".to_vec(), is_killed: true }
    }

    pub fn message(&self) -> &[u8] {
        &self.message
    }

    /// Whether the host ended the compilation.
    pub fn is_killed(&self) -> bool {
        self.is_killed
    }
}

impl fmt::Display for SyntaxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.message))
    }
}

impl std::error::Error for SyntaxError {}
