//! Why something could not be read: where, and what was wrong.

use std::borrow::Cow;
use std::{fmt, io};

#[derive(Debug)]
pub struct RdbError {
    /// Bytes that were read before.
    pub offset: u64,
    pub cause: Cause,
}

#[derive(Debug)]
pub enum Cause {
    Read(io::Error),
    /// The bytes end before what they began.
    Ended,
    Corrupt(Cow<'static, str>),
    /// It may be right, but not for us.
    Unsupported(Cow<'static, str>),
}

impl RdbError {
    /// It can be read, but not used.
    pub fn unusable(why: String) -> Self {
        RdbError { offset: 0, cause: Cause::Unsupported(why.into()) }
    }
}

pub type Result<T> = std::result::Result<T, RdbError>;

/// What is wrong with a packed value, before anyone knows where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed(pub &'static str);

impl fmt::Display for RdbError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let offset = self.offset;
        match &self.cause {
            Cause::Read(error) => write!(f, "cannot be read behind byte {offset}: {error}"),
            Cause::Ended => write!(f, "ends at byte {offset}, in the middle of something"),
            Cause::Corrupt(reason) => write!(f, "corrupt at byte {offset}: {reason}"),
            Cause::Unsupported(what) => write!(f, "not supported, at byte {offset}: {what}"),
        }
    }
}

impl std::error::Error for RdbError {}
