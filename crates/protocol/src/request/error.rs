//! What is said to a client whose request can't be understood, before its connection is closed.

use crate::output::Wire;
use std::fmt;

/// A request that breaks the protocol. After it nothing on the stream can be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProtocolError {
    InvalidMultibulkLength,
    TooBigMultibulkCount,
    UnauthenticatedMultibulkLength,
    /// What stood where a bulk string should begin.
    ExpectedDollar(u8),
    TooBigBulkCount,
    InvalidBulkLength,
    UnauthenticatedBulkLength,
    /// A header or a bulk string that CR LF does not follow.
    InvalidLineEnd,
    TooBigInline,
    UnbalancedQuotes,
}

impl ProtocolError {
    /// The error as a reply, its line end included. The byte that stood in place of a `$` goes out
    /// as it came, so this is not always text.
    pub fn write_reply<'o>(self, out: impl Into<Wire<'o>>) {
        let mut out = out.into();
        match self {
            ProtocolError::ExpectedDollar(found) => {
                // A line break would end the error early.
                let shown = if matches!(found, b'\r' | b'\n') { b' ' } else { found };
                out.extend_from_slice(b"-ERR Protocol error: expected '$', got '");
                out.extend_from_slice(&[shown, b'\'']);
            }
            other => {
                out.extend_from_slice(b"-ERR Protocol error: ");
                out.extend_from_slice(other.problem().as_bytes());
            }
        }
        out.extend_from_slice(b"\r\n");
    }

    fn problem(self) -> &'static str {
        match self {
            ProtocolError::InvalidMultibulkLength => "invalid multibulk length",
            ProtocolError::TooBigMultibulkCount => "too big mbulk count string",
            ProtocolError::UnauthenticatedMultibulkLength => "unauthenticated multibulk length",
            ProtocolError::ExpectedDollar(_) => "expected '$'",
            ProtocolError::TooBigBulkCount => "too big bulk count string",
            ProtocolError::InvalidBulkLength => "invalid bulk length",
            ProtocolError::UnauthenticatedBulkLength => "unauthenticated bulk length",
            ProtocolError::InvalidLineEnd => "invalid CRLF in request",
            ProtocolError::TooBigInline => "too big inline request",
            ProtocolError::UnbalancedQuotes => "unbalanced quotes in request",
        }
    }
}

impl fmt::Display for ProtocolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProtocolError::ExpectedDollar(found) => {
                write!(f, "Protocol error: expected '$', got '{}'", char::from(*found))
            }
            other => write!(f, "Protocol error: {}", other.problem()),
        }
    }
}

impl std::error::Error for ProtocolError {}
