//! What can go wrong around a measurement: each says what was being done to what.

use std::{fmt, io};

#[derive(Debug)]
pub enum Failure {
    /// The command line makes no sense.
    Usage(String),
    /// The system refused something.
    System { doing: String, error: io::Error },
    /// A server did not start, or stopped answering.
    Server { who: String, what: String },
}

pub type Result<T> = std::result::Result<T, Failure>;

impl Failure {
    pub fn server(who: impl Into<String>, what: impl Into<String>) -> Failure {
        Failure::Server { who: who.into(), what: what.into() }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Usage(what) => write!(f, "{what} (see --help)"),
            Failure::System { doing, error } => write!(f, "{doing}: {error}"),
            Failure::Server { who, what } => write!(f, "{who}: {what}"),
        }
    }
}

impl std::error::Error for Failure {}

/// Adds what was being done to an error of the system.
pub trait Doing<T> {
    fn doing(self, what: impl Into<String>) -> Result<T>;
}

impl<T> Doing<T> for io::Result<T> {
    fn doing(self, what: impl Into<String>) -> Result<T> {
        self.map_err(|error| Failure::System { doing: what.into(), error })
    }
}
