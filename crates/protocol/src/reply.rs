//! Replies read back from bytes: for clients, differential tests and benches. A reply from a
//! stranger may say anything, so depth and lengths are bounded.

use crate::value::{Value, paired};
use russet_base::limits::BULK_BYTES_MAX;
use std::fmt;

#[cfg(test)]
mod tests;

/// Deepest nesting of collections.
pub const DEPTH_MAX: usize = 128;
/// Longest line: statuses, errors, numbers and headers.
pub const LINE_BYTES_MAX: usize = 1024 * 1024;
/// Most elements of one collection.
pub const ELEMENTS_MAX: usize = u32::MAX as usize;
/// Elements that a collection makes room for before any has been read.
const ROOM_MAX: usize = 1024;

/// Bytes that are no reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecodeError {
    UnknownKind(u8),
    /// A length or an integer that is none, or lies outside its limit.
    InvalidNumber,
    InvalidBoolean,
    InvalidVerbatim,
    LineTooLong,
    /// A line or a bulk string that CR LF does not end.
    LineEndMissing,
    TooDeep,
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DecodeError::UnknownKind(kind) => {
                write!(f, "no kind of reply begins with '{}'", kind.escape_ascii())
            }
            DecodeError::InvalidNumber => f.write_str("a number is malformed or beyond its limit"),
            DecodeError::InvalidBoolean => f.write_str("a boolean is neither t nor f"),
            DecodeError::InvalidVerbatim => f.write_str("a verbatim string names no format"),
            DecodeError::LineTooLong => f.write_str("a line is too long"),
            DecodeError::LineEndMissing => f.write_str("CR LF is missing"),
            DecodeError::TooDeep => f.write_str("collections are nested too deep"),
        }
    }
}

impl std::error::Error for DecodeError {}

/// The first reply in `buffer` and its size, or `None` if it has not all arrived. It begins anew
/// each time: a [`Decoder`] does not, and suits replies that arrive in many pieces.
pub fn decode(buffer: &[u8]) -> Result<Option<(Value, usize)>, DecodeError> {
    let mut reader = Reader { buffer, position: 0 };
    Ok(reader.value(0)?.map(|value| (value, reader.position)))
}

/// Takes bytes as they come and gives the replies that are complete, without scanning the
/// beginning of a long reply again for each piece.
#[derive(Debug, Default)]
pub struct Decoder {
    buffer: Vec<u8>,
    /// Where the reply in progress begins.
    start: usize,
    /// Up to where it is known to be well framed.
    framed: usize,
    /// Values that it still lacks; 0 between replies.
    values_left: u64,
}

impl Decoder {
    pub fn new() -> Self {
        Decoder::default()
    }

    pub fn feed(&mut self, bytes: &[u8]) {
        if self.start > 0 {
            self.buffer.drain(..self.start);
            self.framed -= self.start;
            self.start = 0;
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// The next complete reply.
    pub fn next_reply(&mut self) -> Result<Option<Value>, DecodeError> {
        if self.values_left == 0 {
            self.values_left = 1;
            self.framed = self.start;
        }
        while self.values_left > 0 {
            let mut reader = Reader { buffer: &self.buffer, position: self.framed };
            let Some(frame) = reader.frame()? else { return Ok(None) };
            let inner = match frame {
                Frame::Collection { values, .. } => values as u64,
                Frame::Attribute { values } => values as u64 + 1,
                _ => 0,
            };
            self.framed = reader.position;
            self.values_left = self.values_left - 1 + inner;
        }
        let decoded = decode(&self.buffer[self.start..self.framed])?;
        self.start = self.framed;
        Ok(decoded.map(|(value, _size)| value))
    }
}

#[derive(Clone, Copy)]
enum Kind {
    Array,
    Map,
    Set,
    Push,
}

/// One step into a reply: a value, or the header of a collection with the number of values in it.
enum Frame {
    Value(Value),
    Collection { kind: Kind, values: usize },
    Attribute { values: usize },
}

struct Reader<'a> {
    buffer: &'a [u8],
    position: usize,
}

impl<'a> Reader<'a> {
    fn value(&mut self, depth: usize) -> Result<Option<Value>, DecodeError> {
        if depth > DEPTH_MAX {
            return Err(DecodeError::TooDeep);
        }
        let Some(frame) = self.frame()? else { return Ok(None) };
        let values = match frame {
            Frame::Value(value) => return Ok(Some(value)),
            Frame::Collection { values, .. } | Frame::Attribute { values } => values,
        };
        let mut elements = Vec::with_capacity(values.min(ROOM_MAX));
        for _ in 0..values {
            let Some(element) = self.value(depth + 1)? else { return Ok(None) };
            elements.push(element);
        }
        Ok(Some(match frame {
            Frame::Collection { kind: Kind::Array, .. } => Value::Array(elements),
            Frame::Collection { kind: Kind::Map, .. } => Value::Map(paired(elements)),
            Frame::Collection { kind: Kind::Set, .. } => Value::Set(elements),
            Frame::Collection { kind: Kind::Push, .. } => Value::Push(elements),
            Frame::Attribute { .. } | Frame::Value(_) => {
                let Some(value) = self.value(depth + 1)? else { return Ok(None) };
                Value::Attribute { pairs: paired(elements), value: Box::new(value) }
            }
        }))
    }

    /// Reads one scalar or one header. `None` leaves the position where it was.
    fn frame(&mut self) -> Result<Option<Frame>, DecodeError> {
        let start = self.position;
        let Some(&kind) = self.buffer.get(start) else { return Ok(None) };
        if !b"+-:$*_,#!=(%~>|".contains(&kind) {
            return Err(DecodeError::UnknownKind(kind));
        }
        let Some(line) = self.line()? else { return Ok(None) };
        let collection = |kind, values| Frame::Collection { kind, values };
        let frame = match kind {
            b'$' | b'!' | b'=' if line != b"-1" => {
                let Some(bytes) = self.bytes(length(line, BULK_BYTES_MAX)?)? else {
                    self.position = start;
                    return Ok(None);
                };
                Frame::Value(blob(kind, bytes)?)
            }
            b'*' if line == b"-1" => Frame::Value(Value::NullArray),
            b'*' => collection(Kind::Array, length(line, ELEMENTS_MAX)?),
            b'~' => collection(Kind::Set, length(line, ELEMENTS_MAX)?),
            b'>' => collection(Kind::Push, length(line, ELEMENTS_MAX)?),
            b'%' => collection(Kind::Map, length(line, ELEMENTS_MAX / 2)? * 2),
            b'|' => Frame::Attribute { values: length(line, ELEMENTS_MAX / 2)? * 2 },
            _ => Frame::Value(scalar(kind, line)?),
        };
        Ok(Some(frame))
    }

    /// What stands after the kind, up to the line end.
    fn line(&mut self) -> Result<Option<&'a [u8]>, DecodeError> {
        let rest = &self.buffer[self.position + 1..];
        let window = &rest[..rest.len().min(LINE_BYTES_MAX)];
        let Some(len) = memchr::memchr(b'\r', window) else {
            let is_too_long = rest.len() > LINE_BYTES_MAX;
            return if is_too_long { Err(DecodeError::LineTooLong) } else { Ok(None) };
        };
        match rest.get(len + 1) {
            None => Ok(None),
            Some(b'\n') => {
                self.position += len + 3;
                Ok(Some(&rest[..len]))
            }
            Some(_) => Err(DecodeError::LineEndMissing),
        }
    }

    fn bytes(&mut self, len: usize) -> Result<Option<&'a [u8]>, DecodeError> {
        let rest = &self.buffer[self.position..];
        let Some(end) = rest.get(len..len + 2) else { return Ok(None) };
        if end != b"\r\n" {
            return Err(DecodeError::LineEndMissing);
        }
        self.position += len + 2;
        Ok(Some(&rest[..len]))
    }
}

/// A value that is one line.
fn scalar(kind: u8, line: &[u8]) -> Result<Value, DecodeError> {
    Ok(match kind {
        b'+' => Value::status(line),
        b'-' => Value::error(line),
        b':' => Value::Integer(parse(line)?),
        b',' => Value::Double(double(line)?),
        b'#' => match line {
            b"t" => Value::Boolean(true),
            b"f" => Value::Boolean(false),
            _ => return Err(DecodeError::InvalidBoolean),
        },
        b'(' => Value::BigNumber(line.to_vec()),
        b'_' | b'$' => Value::Null,
        other => return Err(DecodeError::UnknownKind(other)),
    })
}

/// A value that is a length and so many bytes.
fn blob(kind: u8, bytes: &[u8]) -> Result<Value, DecodeError> {
    Ok(match (kind, bytes) {
        (b'!', _) => Value::error(bytes),
        (b'=', [a, b, c, b':', text @ ..]) => {
            Value::Verbatim { format: [*a, *b, *c], text: text.to_vec() }
        }
        (b'=', _) => return Err(DecodeError::InvalidVerbatim),
        _ => Value::bulk(bytes),
    })
}

fn parse<T: std::str::FromStr>(line: &[u8]) -> Result<T, DecodeError> {
    let text = std::str::from_utf8(line).map_err(|_| DecodeError::InvalidNumber)?;
    text.parse().map_err(|_| DecodeError::InvalidNumber)
}

fn double(line: &[u8]) -> Result<f64, DecodeError> {
    // Some servers spell it with a sign; there is only one.
    if matches!(line, b"nan" | b"-nan") { Ok(f64::NAN) } else { parse(line) }
}

fn length(line: &[u8], max: usize) -> Result<usize, DecodeError> {
    let len: usize = parse(line)?;
    if len > max { Err(DecodeError::InvalidNumber) } else { Ok(len) }
}
