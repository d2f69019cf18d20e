//! What can go wrong with a call, and with opening an engine.

use crate::convert::ConversionError;
use russet_commands::node::config::ConfigError;
use russet_protocol::{DecodeError, Value};
use std::fmt;

/// Why a call has no result.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Error {
    /// The command was refused, or failed.
    Reply(ReplyError),
    /// The reply is of another type than was asked for.
    Conversion(ConversionError),
    /// The call can't be made as it stands, for this reason. Nothing was run.
    Request(&'static str),
    /// A watched key was changed, so EXEC has run nothing.
    Aborted,
    /// This client is gone: QUIT, CLIENT KILL, or more unread messages than
    /// `client-output-buffer-limit` allows.
    Disconnected,
    /// The engine is closed.
    Closed,
    /// The reply is nested too deep, or too long, to be made into a value.
    Decode(DecodeError),
}

/// An error reply, such as `WRONGTYPE Operation against a key ...`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplyError {
    text: String,
}

impl ReplyError {
    pub(crate) fn new(text: &[u8]) -> Self {
        ReplyError { text: String::from_utf8_lossy(text).into_owned() }
    }

    /// Its first word: `ERR`, `WRONGTYPE`, `NOSCRIPT`.
    pub fn code(&self) -> &str {
        self.text.split(' ').next().unwrap_or_default()
    }

    /// All of it, the code included.
    pub fn text(&self) -> &str {
        &self.text
    }
}

impl Error {
    /// The code of an error reply.
    pub fn code(&self) -> Option<&str> {
        match self {
            Error::Reply(reply) => Some(reply.code()),
            _ => None,
        }
    }
}

/// A reply that is an error becomes one.
pub(crate) fn checked(value: Value) -> Result<Value, Error> {
    match value {
        Value::Error(text) => Err(Error::Reply(ReplyError::new(&text))),
        other => Ok(other),
    }
}

impl fmt::Display for ReplyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for ReplyError {}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Reply(reply) => reply.fmt(f),
            Error::Conversion(fault) => fault.fmt(f),
            Error::Request(reason) => f.write_str(reason),
            Error::Aborted => f.write_str("a watched key was changed"),
            Error::Disconnected => f.write_str("the client was disconnected"),
            Error::Closed => f.write_str("the engine is closed"),
            Error::Decode(fault) => write!(f, "the reply can't be read: {fault}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Reply(reply) => Some(reply),
            Error::Conversion(fault) => Some(fault),
            Error::Decode(fault) => Some(fault),
            _ => None,
        }
    }
}

impl From<ConversionError> for Error {
    fn from(fault: ConversionError) -> Self {
        Error::Conversion(fault)
    }
}

/// Why an engine can't be opened.
#[derive(Debug)]
#[non_exhaustive]
pub enum OpenError {
    /// A directive is unknown, or its value makes no sense.
    Options(ConfigError),
    /// The system gave no thread for housekeeping.
    Thread(std::io::Error),
    /// The directory can't be made.
    Directory(std::io::Error),
    /// What the directory holds can't be loaded, for this reason. It is left as it is.
    Data(String),
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpenError::Options(fault) => fault.fmt(f),
            OpenError::Thread(fault) => write!(f, "cannot start a thread: {fault}"),
            OpenError::Directory(fault) => write!(f, "cannot make the directory: {fault}"),
            OpenError::Data(reason) => write!(f, "cannot load the data: {reason}"),
        }
    }
}

impl std::error::Error for OpenError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            OpenError::Options(fault) => Some(fault),
            OpenError::Thread(fault) | OpenError::Directory(fault) => Some(fault),
            OpenError::Data(_) => None,
        }
    }
}

impl From<ConfigError> for OpenError {
    fn from(fault: ConfigError) -> Self {
        OpenError::Options(fault)
    }
}
