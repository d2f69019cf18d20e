//! Replies: as values, and as the envelope that every step answers with.

use crate::error::{Error, Result};

/// A reply without the differences of protocols: maps and sets are lists, texts are bytes.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// Nothing: a key that is not there, say.
    Nil,
    /// A whole number; also true and false, as 1 and 0.
    Int(i64),
    /// A number of RESP3.
    Double(f64),
    /// A string, a status or a large number.
    Text(Vec<u8>),
    /// An array or set, or a map as keys and values in turn.
    List(Vec<Reply>),
}

impl Reply {
    /// As a whole number, also if it is one as text.
    pub fn as_int(&self) -> Option<i64> {
        match self {
            Reply::Int(number) => Some(*number),
            Reply::Text(text) => std::str::from_utf8(text).ok()?.parse().ok(),
            _ => None,
        }
    }

    /// As a number, also if it is one as text.
    pub fn as_double(&self) -> Option<f64> {
        match self {
            Reply::Double(number) => Some(*number),
            Reply::Int(number) => Some(*number as f64),
            Reply::Text(text) => std::str::from_utf8(text).ok()?.parse().ok(),
            _ => None,
        }
    }

    /// Its bytes, if it is a text.
    pub fn as_bytes(&self) -> Option<&[u8]> {
        match self {
            Reply::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Its items, if it is a list.
    pub fn as_list(&self) -> Option<&[Reply]> {
        match self {
            Reply::List(items) => Some(items),
            _ => None,
        }
    }

    /// As text; None for nil.
    pub fn into_bytes(self) -> Result<Option<Vec<u8>>> {
        match self {
            Reply::Nil => Ok(None),
            Reply::Text(text) => Ok(Some(text)),
            Reply::Int(number) => Ok(Some(number.to_string().into_bytes())),
            other => Err(other.is_not("a text")),
        }
    }

    /// As a whole number, or [`Error::Corrupt`].
    pub fn into_int(self) -> Result<i64> {
        self.as_int().ok_or_else(|| self.is_not("an integer"))
    }

    /// Its items, none for nil, or [`Error::Corrupt`].
    pub fn into_list(self) -> Result<Vec<Reply>> {
        match self {
            Reply::List(items) => Ok(items),
            Reply::Nil => Ok(Vec::new()),
            other => Err(other.is_not("a list")),
        }
    }

    /// Without its content, which may be sensitive.
    pub(crate) fn is_not(&self, wanted: &str) -> Error {
        let found = match self {
            Reply::Nil => "nil",
            Reply::Int(_) => "an integer",
            Reply::Double(_) => "a double",
            Reply::Text(_) => "a text",
            Reply::List(_) => "a list",
        };
        Error::Corrupt(format!("the reply is {found}, not {wanted}"))
    }
}

/// What a step answers: a status, then names and values.
///
/// On the wire it is a flat list, `["OK", "remaining", 3, "retry_after_ms", 0]`, so that every
/// client of every language can read it.
#[derive(Clone, Debug, PartialEq)]
pub struct Envelope {
    items: Vec<Reply>,
}

impl Envelope {
    /// Reads what a step replied; [`Error::Corrupt`] if that is no status with fields.
    pub fn new(reply: Reply) -> Result<Self> {
        let items = match reply {
            Reply::List(items) if matches!(items.first(), Some(Reply::Text(_))) => items,
            other => return Err(other.is_not("a status with fields")),
        };
        if items.len() % 2 == 0 {
            return Err(Error::Corrupt("the reply has a field without a value".into()));
        }
        Ok(Envelope { items })
    }

    /// The first item: `OK`, or what it was refused for.
    pub fn status(&self) -> &str {
        let status = self.items.first().and_then(Reply::as_bytes);
        status.and_then(|text| std::str::from_utf8(text).ok()).unwrap_or("")
    }

    /// Whether this is its status.
    pub fn is(&self, status: &str) -> bool {
        self.status() == status
    }

    /// The value of a field, if it has it.
    pub fn field(&self, name: &str) -> Option<&Reply> {
        let fields = self.items.get(1..).unwrap_or_default();
        let found = fields.chunks_exact(2).find(|it| it[0].as_bytes() == Some(name.as_bytes()));
        found.map(|it| &it[1])
    }

    /// Moves a field out of it.
    pub fn take(&mut self, name: &str) -> Option<Reply> {
        let fields = self.items.get_mut(1..).unwrap_or_default();
        let mut pairs = fields.chunks_exact_mut(2);
        let found = pairs.find(|it| it[0].as_bytes() == Some(name.as_bytes()))?;
        Some(std::mem::replace(&mut found[1], Reply::Nil))
    }

    /// A field that is a whole number, or [`Error::Corrupt`].
    pub fn int(&self, name: &'static str) -> Result<i64> {
        let value = self.field(name).and_then(Reply::as_int);
        value.ok_or_else(|| missing(name, "an integer"))
    }

    /// An integer that is not negative.
    pub fn count(&self, name: &'static str) -> Result<u64> {
        u64::try_from(self.int(name)?).map_err(|_negative| missing(name, "a count"))
    }

    /// A time in milliseconds.
    pub fn duration(&self, name: &'static str) -> Result<std::time::Duration> {
        self.count(name).map(std::time::Duration::from_millis)
    }

    /// A field that is a number, or [`Error::Corrupt`].
    pub fn double(&self, name: &'static str) -> Result<f64> {
        let value = self.field(name).and_then(Reply::as_double);
        value.ok_or_else(|| missing(name, "a number"))
    }

    /// Moves a text out of it, or gives [`Error::Corrupt`].
    pub fn text(&mut self, name: &'static str) -> Result<Vec<u8>> {
        match self.take(name) {
            Some(Reply::Text(text)) => Ok(text),
            Some(Reply::Int(number)) => Ok(number.to_string().into_bytes()),
            _ => Err(missing(name, "a text")),
        }
    }

    /// A text of UTF-8.
    pub fn string(&mut self, name: &'static str) -> Result<String> {
        String::from_utf8(self.text(name)?).map_err(|_bytes| missing(name, "UTF-8 text"))
    }

    /// Moves a list out of it, or gives [`Error::Corrupt`].
    pub fn list(&mut self, name: &'static str) -> Result<Vec<Reply>> {
        match self.take(name) {
            Some(Reply::List(items)) => Ok(items),
            _ => Err(missing(name, "a list")),
        }
    }

    /// The error for a status that the step does not have.
    pub fn unexpected(&self) -> Error {
        Error::Corrupt(format!("the step replied with the unknown status {:?}", self.status()))
    }
}

fn missing(name: &str, wanted: &str) -> Error {
    Error::Corrupt(format!("field {name} of the reply is not {wanted}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Reply {
        Reply::Text(text.into())
    }

    #[test]
    fn an_envelope_has_a_status_and_fields() {
        let items = vec![text("OK"), text("left"), Reply::Int(3), text("id"), text("a")];
        let mut envelope = Envelope::new(Reply::List(items)).unwrap();
        assert!(envelope.is("OK"));
        assert_eq!(envelope.count("left"), Ok(3));
        assert_eq!(envelope.string("id"), Ok("a".to_owned()));
        assert!(matches!(envelope.int("id"), Err(Error::Corrupt(_))));
        assert!(matches!(envelope.list("none"), Err(Error::Corrupt(_))));
    }

    #[test]
    fn what_is_no_envelope_is_corrupt() {
        for reply in [
            Reply::Nil,
            Reply::Int(1),
            Reply::List(Vec::new()),
            Reply::List(vec![Reply::Int(1)]),
            Reply::List(vec![text("OK"), text("left")]),
        ] {
            assert!(matches!(Envelope::new(reply), Err(Error::Corrupt(_))));
        }
    }
}
