//! The house rules as code: what a source file, a manifest and a page of documentation must look
//! like. Each rule gives a list of offences as `file:line: what is wrong`; which files it is asked
//! about, and which are excused, is decided in `tests/tests/tidy.rs`.

pub mod functions;
pub mod manifests;
pub mod markdown;
pub mod mask;
pub mod rules;
pub mod tree;

pub use functions::{Function, functions};
pub use tree::{SourceFile, Tree};

use std::fmt;

/// One breach of one rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offence {
    pub path: String,
    /// Counted from 1; 0 for the file as a whole.
    pub line: usize,
    pub text: String,
}

impl Offence {
    pub fn new(path: &str, line: usize, text: impl Into<String>) -> Offence {
        Offence { path: path.to_owned(), line, text: text.into() }
    }
}

impl fmt::Display for Offence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.path, self.text),
            line => write!(f, "{}:{line}: {}", self.path, self.text),
        }
    }
}
