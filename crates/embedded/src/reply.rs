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
    match plain(bytes) {
        Some(value) => Ok(value),
        None => any(bytes),
    }
}

/// The replies that most calls get, without the care that bytes from elsewhere would need.
#[inline]
fn plain(bytes: &[u8]) -> Option<Value> {
    match bytes {
        b"+OK\r\n" => Some(Value::status("OK")),
        b"_\r\n" => Some(Value::Null),
        [b'$', rest @ ..] => {
            let (len, rest) = length(rest)?;
            let text = rest.strip_suffix(b"\r\n")?;
            (text.len() == len).then(|| Value::bulk(text))
        }
        [b':', rest @ ..] => {
            let (number, rest) = length(rest)?;
            (rest.is_empty()).then(|| i64::try_from(number).ok().map(Value::Integer))?
        }
        _ => None,
    }
}

/// A number of few digits that ends its line, and what is behind the line.
#[inline]
fn length(bytes: &[u8]) -> Option<(usize, &[u8])> {
    const DIGITS_MAX: usize = 10;
    let mut number = 0;
    for (at, byte) in bytes.iter().take(DIGITS_MAX + 1).enumerate() {
        match byte {
            b'0'..=b'9' => number = number * 10 + usize::from(byte - b'0'),
            b'\r' if at > 0 => return Some((number, bytes.get(at + 2..)?)),
            _ => return None,
        }
    }
    None
}

#[inline(never)]
fn any(bytes: &[u8]) -> Result<Value, Error> {
    match decode(bytes).map_err(Error::Decode)? {
        Some((value, len)) if len == bytes.len() => Ok(value),
        _ => {
            let values = all(bytes)?;
            Ok(if values.is_empty() { Value::Null } else { Value::Array(values) })
        }
    }
}

fn all(mut bytes: &[u8]) -> Result<Vec<Value>, Error> {
    let mut values = Vec::new();
    while let Some((value, len)) = decode(bytes).map_err(Error::Decode)? {
        values.push(value);
        bytes = &bytes[len..];
    }
    debug_assert!(bytes.is_empty(), "replies are whole");
    Ok(values)
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
