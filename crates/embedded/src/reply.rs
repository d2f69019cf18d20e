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
    match decode(bytes).map_err(Error::Decode)? {
        Some((value, len)) if len == bytes.len() => Ok(value),
        _ => {
            let mut values = all(bytes)?;
            Ok(if values.is_empty() {
                Value::Null
            } else {
                Value::Array(std::mem::take(&mut values))
            })
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
