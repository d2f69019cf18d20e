//! Replies as values: what the embedded library hands out, and what a client decodes.

use crate::decimal::Digits;
use crate::sink::{Mark, Resp, Sink};
use russet_base::float::format_f64;
use std::fmt;

/// One reply of any kind that RESP2 or RESP3 knows.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Status(Vec<u8>),
    /// The code included: `ERR ...`.
    Error(Vec<u8>),
    Integer(i64),
    Bulk(Vec<u8>),
    Null,
    /// RESP2 only: the array that is not there. RESP3 has one null for both.
    NullArray,
    Array(Vec<Value>),
    Map(Vec<(Value, Value)>),
    Set(Vec<Value>),
    Push(Vec<Value>),
    Double(f64),
    Boolean(bool),
    Verbatim {
        format: [u8; 3],
        text: Vec<u8>,
    },
    BigNumber(Vec<u8>),
    /// What is said about the value that follows it.
    Attribute {
        pairs: Vec<(Value, Value)>,
        value: Box<Value>,
    },
}

impl Value {
    pub fn bulk(bytes: impl AsRef<[u8]>) -> Value {
        Value::Bulk(bytes.as_ref().to_vec())
    }

    /// Answers with this value.
    pub fn write(&self, sink: &mut dyn Sink) {
        let pairs = |pairs: &[(Value, Value)], sink: &mut dyn Sink| {
            for (key, value) in pairs {
                key.write(sink);
                value.write(sink);
            }
        };
        match self {
            Value::Status(text) => sink.status(&String::from_utf8_lossy(text)),
            Value::Error(text) => sink.error(&String::from_utf8_lossy(text)),
            Value::Integer(value) => sink.int(*value),
            Value::Bulk(bytes) => sink.bulk(bytes),
            Value::Null => sink.null(),
            Value::NullArray => sink.null_array(),
            Value::Array(items) | Value::Set(items) | Value::Push(items) => {
                match self {
                    Value::Set(_) => sink.set(items.len()),
                    Value::Push(_) => sink.push(items.len()),
                    _ => sink.array(items.len()),
                }
                items.iter().for_each(|item| item.write(sink));
            }
            Value::Map(entries) => {
                sink.map(entries.len());
                pairs(entries, sink);
            }
            Value::Double(value) => sink.double(*value),
            Value::Boolean(value) => sink.boolean(*value),
            Value::Verbatim { format, text } => sink.verbatim(format, text),
            Value::BigNumber(digits) => sink.big_number(&String::from_utf8_lossy(digits)),
            Value::Attribute { pairs: about, value } => {
                sink.attribute(about.len());
                pairs(about, sink);
                value.write(sink);
            }
        }
    }

    pub fn status(text: impl AsRef<[u8]>) -> Value {
        Value::Status(text.as_ref().to_vec())
    }

    pub fn error(text: impl AsRef<[u8]>) -> Value {
        Value::Error(text.as_ref().to_vec())
    }

    pub fn is_null(&self) -> bool {
        matches!(self, Value::Null | Value::NullArray)
    }

    pub fn is_error(&self) -> bool {
        matches!(self, Value::Error(_))
    }

    /// The bytes of a value that is text in one of its forms.
    pub fn as_bytes(&self) -> Option<&[u8]> {
        match self {
            Value::Status(text)
            | Value::Error(text)
            | Value::Bulk(text)
            | Value::BigNumber(text)
            | Value::Verbatim { text, .. } => Some(text),
            _ => None,
        }
    }

    pub fn as_integer(&self) -> Option<i64> {
        match self {
            Value::Integer(value) => Some(*value),
            _ => None,
        }
    }

    /// The elements of an array, a set or a push.
    pub fn as_elements(&self) -> Option<&[Value]> {
        match self {
            Value::Array(elements) | Value::Set(elements) | Value::Push(elements) => Some(elements),
            _ => None,
        }
    }
}

impl From<i64> for Value {
    fn from(value: i64) -> Self {
        Value::Integer(value)
    }
}

/// One line, each kind told apart, bytes that are not text escaped.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Status(text) => write!(f, "+{}", text.escape_ascii()),
            Value::Error(text) => write!(f, "-{}", text.escape_ascii()),
            Value::Integer(value) => write!(f, "{value}"),
            Value::Bulk(bytes) => write!(f, "\"{}\"", bytes.escape_ascii()),
            Value::Null => f.write_str("nil"),
            Value::NullArray => f.write_str("nil-array"),
            Value::Array(elements) => show_elements(f, "[", elements),
            Value::Set(elements) => show_elements(f, "~[", elements),
            Value::Push(elements) => show_elements(f, ">[", elements),
            Value::Map(pairs) => show_pairs(f, "{", pairs),
            Value::Double(value) => {
                let mut text = Vec::new();
                format_f64(*value, &mut text);
                write!(f, ",{}", text.escape_ascii())
            }
            Value::Boolean(value) => f.write_str(if *value { "#t" } else { "#f" }),
            Value::Verbatim { format, text } => {
                write!(f, "{}:\"{}\"", format.escape_ascii(), text.escape_ascii())
            }
            Value::BigNumber(digits) => write!(f, "({}", digits.escape_ascii()),
            Value::Attribute { pairs, value } => {
                show_pairs(f, "|{", pairs)?;
                write!(f, " {value}")
            }
        }
    }
}

fn show_elements(f: &mut fmt::Formatter<'_>, open: &str, elements: &[Value]) -> fmt::Result {
    f.write_str(open)?;
    for (index, element) in elements.iter().enumerate() {
        write!(f, "{}{element}", if index == 0 { "" } else { ", " })?;
    }
    f.write_str("]")
}

fn show_pairs(f: &mut fmt::Formatter<'_>, open: &str, pairs: &[(Value, Value)]) -> fmt::Result {
    f.write_str(open)?;
    for (index, (key, value)) in pairs.iter().enumerate() {
        write!(f, "{}{key}: {value}", if index == 0 { "" } else { ", " })?;
    }
    f.write_str("}")
}

/// Pairs of a flat list; an odd value at the end is dropped.
pub(crate) fn paired(flat: Vec<Value>) -> Vec<(Value, Value)> {
    let mut values = flat.into_iter();
    let mut pairs = Vec::with_capacity(values.len() / 2);
    while let (Some(key), Some(value)) = (values.next(), values.next()) {
        pairs.push((key, value));
    }
    pairs
}

/// Elements that a collection makes room for before any arrives.
const ROOM_MAX: usize = 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Array,
    Map,
    Set,
    Push,
    /// Its pairs, and then the value that they are about.
    Attribute,
}

impl Kind {
    fn close(self, mut elements: Vec<Value>) -> Value {
        match self {
            Kind::Attribute => {
                let value = Box::new(elements.pop().unwrap_or(Value::Null));
                Value::Attribute { pairs: paired(elements), value }
            }
            Kind::Array => Value::Array(elements),
            Kind::Map => Value::Map(paired(elements)),
            Kind::Set => Value::Set(elements),
            Kind::Push => Value::Push(elements),
        }
    }
}

/// A collection that still waits for elements.
#[derive(Debug)]
struct Open {
    kind: Kind,
    /// Elements to come; `None` until the collection is ended by hand.
    left: Option<usize>,
    elements: Vec<Value>,
}

/// Builds values. What it builds is what a client would decode from a [`crate::RespWriter`] of the
/// same protocol: ask for [`Resp::V3`] to keep maps, doubles and booleans apart.
#[derive(Debug, Default)]
pub struct ValueSink {
    resp: Resp,
    open: Vec<Open>,
    replies: Vec<Value>,
}

impl ValueSink {
    pub fn new(resp: Resp) -> Self {
        ValueSink { resp, ..ValueSink::default() }
    }

    /// The one reply of a command. `None` if there was none, or one that was left unfinished.
    pub fn into_value(self) -> Option<Value> {
        self.into_values().into_iter().next()
    }

    /// All finished replies: SUBSCRIBE, for one, gives a reply for each channel.
    pub fn into_values(self) -> Vec<Value> {
        self.replies
    }

    fn add(&mut self, value: Value) {
        let mut value = value;
        // A value may be the last of its collection, which may be the last of the one around it.
        while let Some(open) = self.open.last_mut() {
            open.elements.push(value);
            match &mut open.left {
                None => return,
                Some(left) if *left > 1 => {
                    *left -= 1;
                    return;
                }
                Some(_last) => {}
            }
            let Some(full) = self.open.pop() else { return };
            value = full.kind.close(full.elements);
        }
        self.replies.push(value);
    }

    fn begin(&mut self, kind: Kind, len: usize) {
        if len == 0 {
            return self.add(kind.close(Vec::new()));
        }
        let elements = Vec::with_capacity(len.min(ROOM_MAX));
        self.open.push(Open { kind, left: Some(len), elements });
    }

    fn begin_unknown(&mut self, kind: Kind) -> Mark {
        self.open.push(Open { kind, left: None, elements: Vec::new() });
        Mark(self.open.len() - 1)
    }

    fn end_unknown(&mut self, mark: Mark, elements_len: usize) {
        assert_eq!(mark.0 + 1, self.open.len(), "collections end in the order they were begun");
        let Some(open) = self.open.pop() else { return };
        debug_assert_eq!(open.elements.len(), elements_len, "as many elements as the handler says");
        self.add(open.kind.close(open.elements));
    }

    fn map_kind(&self) -> Kind {
        if self.resp == Resp::V2 { Kind::Array } else { Kind::Map }
    }
}

impl Sink for ValueSink {
    fn resp(&self) -> Resp {
        self.resp
    }

    fn set_resp(&mut self, resp: Resp) {
        self.resp = resp;
    }

    fn status(&mut self, text: &str) {
        self.add(Value::status(text));
    }

    fn error(&mut self, text: &str) {
        let text = text.trim_matches(['\r', '\n']);
        self.add(Value::error(text.replace(['\r', '\n'], " ")));
    }

    fn int(&mut self, value: i64) {
        self.add(Value::Integer(value));
    }

    fn bulk(&mut self, bytes: &[u8]) {
        self.add(Value::bulk(bytes));
    }

    fn bulk_int(&mut self, value: i64) {
        self.add(Value::bulk(Digits::signed(value).as_bytes()));
    }

    fn null(&mut self) {
        self.add(Value::Null);
    }

    fn null_array(&mut self) {
        self.add(if self.resp == Resp::V2 { Value::NullArray } else { Value::Null });
    }

    fn array(&mut self, len: usize) {
        self.begin(Kind::Array, len);
    }

    fn map(&mut self, pairs: usize) {
        self.begin(self.map_kind(), pairs * 2);
    }

    fn set(&mut self, len: usize) {
        self.begin(if self.resp == Resp::V2 { Kind::Array } else { Kind::Set }, len);
    }

    fn push(&mut self, len: usize) {
        self.begin(if self.resp == Resp::V2 { Kind::Array } else { Kind::Push }, len);
    }

    fn attribute(&mut self, pairs: usize) {
        self.begin(Kind::Attribute, pairs * 2 + 1);
    }

    fn double(&mut self, value: f64) {
        if self.resp == Resp::V3 {
            return self.add(Value::Double(value));
        }
        let mut text = Vec::new();
        format_f64(value, &mut text);
        self.add(Value::Bulk(text));
    }

    fn boolean(&mut self, value: bool) {
        self.add(match self.resp {
            Resp::V2 => Value::Integer(i64::from(value)),
            Resp::V3 => Value::Boolean(value),
        });
    }

    fn verbatim(&mut self, format: &[u8; 3], text: &[u8]) {
        self.add(match self.resp {
            Resp::V2 => Value::bulk(text),
            Resp::V3 => Value::Verbatim { format: *format, text: text.to_vec() },
        });
    }

    fn big_number(&mut self, digits: &str) {
        self.add(match self.resp {
            Resp::V2 => Value::bulk(digits),
            Resp::V3 => Value::BigNumber(digits.as_bytes().to_vec()),
        });
    }

    fn begin_array(&mut self) -> Mark {
        self.begin_unknown(Kind::Array)
    }

    fn end_array(&mut self, mark: Mark, len: usize) {
        self.end_unknown(mark, len);
    }

    fn begin_map(&mut self) -> Mark {
        self.begin_unknown(self.map_kind())
    }

    fn end_map(&mut self, mark: Mark, pairs: usize) {
        self.end_unknown(mark, pairs * 2);
    }

    fn begin_set(&mut self) -> Mark {
        self.begin_unknown(if self.resp == Resp::V2 { Kind::Array } else { Kind::Set })
    }
}
