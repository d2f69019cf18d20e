//! From the bytes of replies to values.

use crate::error::Error;
use russet_protocol::{Output, Value, decode};

/// Room for replies that is kept between calls.
const KEPT_BYTES_MAX: usize = 64 * 1024;

/// The replies of one client's call, on their way from the command to its caller.
#[derive(Default)]
pub(crate) struct Replies {
    pub out: Output,
}

impl Replies {
    /// The reply of one command. One that answers several times gives an array of its replies; one
    /// that does not answer (CLIENT REPLY OFF) gives null.
    #[inline]
    pub fn take_one(&mut self) -> Result<Value, Error> {
        let value = match self.out.only_run() {
            Some(bytes) => one(bytes),
            None => one(&self.out.bytes_from(0)),
        };
        self.clear();
        value
    }

    pub fn take_all(&mut self) -> Result<Vec<Value>, Error> {
        let values = all(&self.out.bytes_from(0));
        self.clear();
        values
    }

    pub fn is_empty(&self) -> bool {
        self.out.is_empty()
    }

    pub fn clear(&mut self) {
        self.out.truncate(0);
        if self.out.capacity() > KEPT_BYTES_MAX {
            self.out = Output::default();
        }
    }
}

#[inline]
fn one(bytes: &[u8]) -> Result<Value, Error> {
    match first(bytes)? {
        Some((value, len)) if len == bytes.len() => Ok(value),
        _ => {
            let values = all(bytes)?;
            Ok(if values.is_empty() { Value::Null } else { Value::Array(values) })
        }
    }
}

fn all(mut bytes: &[u8]) -> Result<Vec<Value>, Error> {
    let mut values = Vec::new();
    while let Some((value, len)) = first(bytes)? {
        values.push(value);
        bytes = &bytes[len..];
    }
    debug_assert!(bytes.is_empty(), "replies are whole");
    Ok(values)
}

/// The first reply and its size.
#[inline]
fn first(bytes: &[u8]) -> Result<Option<(Value, usize)>, Error> {
    match plain(bytes) {
        Some(found) => Ok(Some(found)),
        None => decode(bytes).map_err(Error::Decode),
    }
}

/// The replies that most calls get, without the care that bytes from elsewhere would need.
#[inline]
fn plain(bytes: &[u8]) -> Option<(Value, usize)> {
    match bytes {
        [b'+', b'O', b'K', b'\r', b'\n', ..] => Some((Value::status("OK"), 5)),
        [b'_', b'\r', b'\n', ..] => Some((Value::Null, 3)),
        [b'$', ..] => {
            let (len, start) = number(bytes)?;
            let end = start + usize::try_from(len).ok()?;
            let is_whole = bytes.get(end..end + 2)? == b"\r\n";
            is_whole.then(|| (Value::bulk(&bytes[start..end]), end + 2))
        }
        [b':', ..] => number(bytes).map(|(number, len)| (Value::Integer(number), len)),
        _ => None,
    }
}

/// A number of few digits behind the kind of a reply, and the size of the line.
#[inline]
fn number(bytes: &[u8]) -> Option<(i64, usize)> {
    const DIGITS_MAX: usize = 10;
    let mut number = 0;
    for (at, byte) in bytes.iter().enumerate().skip(1).take(DIGITS_MAX + 1) {
        match byte {
            b'0'..=b'9' => number = number * 10 + i64::from(byte - b'0'),
            b'\r' if at > 1 => return Some((number, at + 2)),
            _ => return None,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use russet_protocol::{Resp, RespWriter};

    /// What is read quickly is what the decoder reads.
    #[test]
    fn plain_replies_are_those_that_the_decoder_gives() {
        let long = vec![b'x'; 70_000];
        let values = [
            Value::status("OK"),
            Value::status("PONG"),
            Value::error("ERR no"),
            Value::Null,
            Value::bulk(""),
            Value::bulk("\r\n"),
            Value::bulk("$3\r\nabc\r\n"),
            Value::bulk(&long),
            Value::Integer(0),
            Value::Integer(-1),
            Value::Integer(9_999_999_999),
            Value::Integer(i64::MAX),
            Value::Integer(i64::MIN),
            Value::Array(vec![Value::Integer(1), Value::bulk("a")]),
            Value::Double(0.5),
            Value::Boolean(true),
        ];
        for value in values {
            let mut bytes = Vec::new();
            value.write(&mut RespWriter::new(&mut bytes, Resp::V3));
            assert_eq!(one(&bytes), Ok(value.clone()));
            let twice = [bytes.as_slice(), &bytes].concat();
            assert_eq!(one(&twice), Ok(Value::Array(vec![value.clone(), value])));
        }
        assert_eq!(one(b""), Ok(Value::Null));
    }
}
