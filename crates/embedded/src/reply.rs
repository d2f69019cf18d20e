//! From the bytes of replies to values.

use crate::error::Error;
use russet_protocol::{Output, Value, decode};

/// Room for replies that is kept between calls.
const KEPT_BYTES_MAX: usize = 64 * 1024;
/// Longer arrays are left to the decoder.
const PLAIN_ELEMENTS_MAX: usize = 1024;

/// What the replies that most calls get are made into, without a [`Value`] in between: texts,
/// integers that are not negative, null, OK, and arrays of these.
pub trait PlainReply: Sized {
    /// The status OK.
    fn ok() -> Self;
    /// Nothing, as for a key that is not there.
    fn null() -> Self;
    /// An integer, which is not negative.
    fn integer(number: i64) -> Self;
    /// A string, of which the bytes are copied from the reply.
    fn text(text: &[u8]) -> Self;
    /// An array.
    fn list(items: Vec<Self>) -> Self;
}

impl PlainReply for Value {
    fn ok() -> Self {
        Value::status("OK")
    }

    fn null() -> Self {
        Value::Null
    }

    fn integer(number: i64) -> Self {
        Value::Integer(number)
    }

    fn text(text: &[u8]) -> Self {
        Value::bulk(text)
    }

    fn list(items: Vec<Self>) -> Self {
        Value::Array(items)
    }
}

/// A reply that is plain, or any other.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer<T> {
    /// It went straight into the caller's type.
    Plain(T),
    /// It is no plain one: a map, a negative integer, a push.
    Other(Value),
}

/// The replies of one client's call, on their way from the command to its caller.
#[derive(Default)]
pub(crate) struct Replies {
    pub out: Output,
}

impl Replies {
    /// The reply of one command, which is not plain. One that answers several times gives an array
    /// of its replies; one that does not answer (CLIENT REPLY OFF) gives null.
    pub fn take_one(&mut self) -> Result<Value, Error> {
        let value = match self.out.only_run() {
            Some(bytes) => one(bytes),
            None => one(&self.out.bytes_from(0)),
        };
        self.clear();
        value
    }

    /// As [`Replies::take_one`], of one that is plain; `None`, and it stays, if it is not.
    #[inline]
    pub fn take_plain<T: PlainReply>(&mut self) -> Option<T> {
        let bytes = self.out.only_run()?;
        let (value, len) = plain(bytes)?;
        if len != bytes.len() {
            return None;
        }
        self.clear();
        Some(value)
    }

    pub fn take_all(&mut self) -> Result<Vec<Value>, Error> {
        let values = all(&self.out.bytes_from(0));
        self.clear();
        values
    }

    pub fn is_empty(&self) -> bool {
        self.out.is_empty()
    }

    #[inline]
    pub fn clear(&mut self) {
        self.out.clear();
        if self.out.capacity() > KEPT_BYTES_MAX {
            self.out = Output::default();
        }
    }
}

fn one(bytes: &[u8]) -> Result<Value, Error> {
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
    while let Some((value, len)) = first(bytes)? {
        values.push(value);
        bytes = &bytes[len..];
    }
    debug_assert!(bytes.is_empty(), "replies are whole");
    Ok(values)
}

/// The first reply and its size.
fn first(bytes: &[u8]) -> Result<Option<(Value, usize)>, Error> {
    match plain(bytes) {
        Some(found) => Ok(Some(found)),
        None => decode(bytes).map_err(Error::Decode),
    }
}

/// The replies that most calls get, without the care that bytes from elsewhere would need.
#[inline]
fn plain<T: PlainReply>(bytes: &[u8]) -> Option<(T, usize)> {
    match bytes {
        [b'+', b'O', b'K', b'\r', b'\n', ..] => Some((T::ok(), 5)),
        [b'_', b'\r', b'\n', ..] => Some((T::null(), 3)),
        [b'$', ..] => {
            let (len, start) = number(bytes)?;
            let end = start + usize::try_from(len).ok()?;
            let is_whole = bytes.get(end..end + 2)? == b"\r\n";
            is_whole.then(|| (T::text(&bytes[start..end]), end + 2))
        }
        [b':', ..] => number(bytes).map(|(number, len)| (T::integer(number), len)),
        [b'*', ..] => plain_array(bytes),
        _ => None,
    }
}

/// An array of such replies.
fn plain_array<T: PlainReply>(bytes: &[u8]) -> Option<(T, usize)> {
    let (len, mut at) = number(bytes)?;
    let len = usize::try_from(len).ok().filter(|len| *len <= PLAIN_ELEMENTS_MAX)?;
    let mut values = Vec::with_capacity(len);
    for _ in 0..len {
        let (value, taken) = plain::<T>(bytes.get(at..)?)?;
        values.push(value);
        at += taken;
    }
    Some((T::list(values), at))
}

/// A number that is not negative behind the kind of a reply, and the size of the line.
#[inline]
fn number(bytes: &[u8]) -> Option<(i64, usize)> {
    // So many always fit.
    const DIGITS_MAX: usize = 18;
    let (mut number, mut at) = (0, 1);
    loop {
        match bytes.get(at)? {
            digit @ b'0'..=b'9' if at <= DIGITS_MAX => {
                number = number * 10 + i64::from(digit - b'0');
            }
            b'\r' if at > 1 => return Some((number, at + 2)),
            _ => return None,
        }
        at += 1;
    }
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
            Value::Integer(999_999_999_999_999_999),
            Value::Integer(1_000_000_000_000_000_000),
            Value::Integer(i64::MAX),
            Value::Integer(i64::MIN),
            Value::Array(vec![Value::Integer(1), Value::bulk("a")]),
            Value::Array(Vec::new()),
            Value::Array(vec![
                Value::Null,
                Value::Array(vec![Value::Integer(-1)]),
                Value::bulk(""),
            ]),
            Value::Array(vec![Value::Integer(1); 1025]),
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
