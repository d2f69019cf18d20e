//! The replies of commands as Lua values: what `redis.call` returns.
//!
//! | reply | in RESP2 | after `redis.setresp(3)` |
//! |---|---|---|
//! | status, error | `{ok=...}`, `{err=...}` | the same |
//! | null | `false` | `nil` |
//! | map, set | an array | `{map={...}}`, `{set={member=true}}` |
//! | double | a string | `{double=...}` |
//! | boolean | 1 or 0 | `true` or `false` |

use russet_base::escape::unescape;
use russet_base::float::format_f64;
use russet_base::num;
use russet_protocol::{Mark, Resp, Sink};
use russet_scripting::{Fault, Heap, TableRef, Value};
use smallvec::SmallVec;

/// Elements that a table makes room for at once: a reply's claim is not to be trusted with more.
const ROOM_MAX: usize = 1024;

/// How the elements of a collection go into its table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Array,
    Map,
    Set,
}

/// A collection that is not complete.
#[derive(Debug)]
struct Open {
    table: TableRef,
    kind: Kind,
    next: usize,
    /// None while the length is not known.
    left: Option<usize>,
    /// A map's key that waits for its value.
    key: Option<Value>,
}

pub struct LuaSink<'h> {
    heap: &'h mut Heap,
    resp: Resp,
    /// The script does something with the reply, unless it is an error.
    is_wanted: bool,
    open: SmallVec<[Open; 4]>,
    result: Value,
    error: Option<String>,
    fault: Option<Fault>,
}

impl<'h> LuaSink<'h> {
    /// A reply that is not wanted is not made, as far as it is one value.
    pub fn new(heap: &'h mut Heap, resp: Resp, is_wanted: bool) -> Self {
        let (open, result) = (SmallVec::new(), Value::Bool(false));
        LuaSink { heap, resp, is_wanted, open, result, error: None, fault: None }
    }

    /// Whether the value that comes next is the whole of a reply that nobody wants.
    #[inline]
    fn is_dropped(&self) -> bool {
        !self.is_wanted && self.open.is_empty()
    }

    /// The reply, or the text of the error that it is.
    pub fn finish(&mut self) -> Result<Result<Value, String>, Fault> {
        match (self.fault.take(), self.error.take()) {
            (Some(fault), _) => Err(fault),
            (None, Some(error)) => Ok(Err(error)),
            (None, None) => Ok(Ok(self.result)),
        }
    }

    /// Does what may need memory; after a refusal nothing more is done.
    fn attempt<R>(&mut self, action: impl FnOnce(&mut Heap) -> Result<R, Fault>) -> Option<R> {
        if self.fault.is_some() {
            return None;
        }
        action(self.heap).map_err(|fault| self.fault = Some(fault)).ok()
    }

    fn put(&mut self, value: Value) {
        let Some(top) = self.open.last_mut() else {
            self.result = value;
            return;
        };
        let (table, at) = (top.table, top.next);
        if top.kind == Kind::Array
            && let Some(slot) = self.heap.run_array_mut(table).and_then(|it| it.get_mut(at - 1))
        {
            *slot = value;
            top.next += 1;
            return self.count_element();
        }
        let entry = match (top.kind, top.key.take()) {
            (Kind::Array, _) => {
                top.next += 1;
                Some((Value::Number(at as f64), value))
            }
            (Kind::Set, _) => Some((value, Value::Bool(true))),
            (Kind::Map, Some(key)) => Some((key, value)),
            (Kind::Map, None) => {
                top.key = Some(value);
                None
            }
        };
        if let Some((key, value)) = entry {
            // What can't be a key (nil in a set) is left out.
            if !key.is_nil() {
                self.attempt(|heap| heap.set(table, key, value));
            }
        }
        self.count_element();
    }

    /// One more element of the innermost collection is there.
    fn count_element(&mut self) {
        if let Some(left) = self.open.last_mut().and_then(|top| top.left.as_mut()) {
            *left -= 1;
        }
        self.close();
    }

    /// Leaves the collections that are complete.
    fn close(&mut self) {
        while self.open.last().is_some_and(|top| top.left == Some(0)) {
            self.open.pop();
        }
    }

    fn put_text(&mut self, text: &[u8]) {
        if self.is_dropped() {
            return;
        }
        if let Some(string) = self.attempt(|heap| heap.string(text)) {
            self.put(Value::Str(string));
        }
    }

    /// A table with one field, such as `{ok=...}`.
    fn put_field(&mut self, name: &str, value: Value) -> Option<TableRef> {
        let made = self.attempt(|heap| {
            let table = heap.table(0, 1)?;
            heap.set_field(table, name.as_bytes(), value)?;
            Ok(table)
        })?;
        self.put(Value::Table(made));
        Some(made)
    }

    fn put_text_field(&mut self, name: &str, text: &[u8]) {
        if let Some(string) = self.attempt(|heap| heap.string(text)) {
            self.put_field(name, Value::Str(string));
        }
    }

    /// Begins a collection; `left` counts what goes into it, keys and values alike.
    fn begin(&mut self, kind: Kind, left: Option<usize>) -> Mark {
        let room = left.unwrap_or(0).min(ROOM_MAX);
        let (array, hash) = if kind == Kind::Array { (room, 0) } else { (0, room) };
        let Some(table) = self.attempt(|heap| heap.table(array, hash)) else {
            return Mark(self.open.len());
        };
        // This may complete the collection that it is put into, which is then left first.
        match kind {
            Kind::Array => self.put(Value::Table(table)),
            Kind::Map => drop(self.put_field("map", Value::Table(table))),
            Kind::Set => drop(self.put_field("set", Value::Table(table))),
        }
        let depth = self.open.len();
        self.open.push(Open { table, kind, next: 1, left, key: None });
        self.close();
        Mark(depth)
    }

    fn end(&mut self, mark: Mark) {
        self.open.truncate(mark.0);
        self.close();
    }

    fn is_resp3(&self) -> bool {
        self.resp == Resp::V3
    }
}

impl Sink for LuaSink<'_> {
    fn resp(&self) -> Resp {
        self.resp
    }

    fn set_resp(&mut self, resp: Resp) {
        self.resp = resp;
    }

    fn status(&mut self, text: &str) {
        if self.is_dropped() {
            return;
        }
        if text == "OK" {
            if let Some(table) = self.attempt(Heap::ok_table) {
                self.put(Value::Table(table));
            }
            return;
        }
        self.put_text_field("ok", &unescape(text));
    }

    fn error(&mut self, text: &str) {
        let text: String = text.trim_matches(['\r', '\n']).replace(['\r', '\n'], " ");
        if self.open.is_empty() {
            self.error = Some(text);
        } else {
            self.put_text_field("err", &unescape(&text));
        }
    }

    fn int(&mut self, value: i64) {
        self.put(Value::Number(value as f64));
    }

    fn bulk(&mut self, bytes: &[u8]) {
        self.put_text(bytes);
    }

    fn bulk_int(&mut self, value: i64) {
        let mut digits = [0; num::I64_TEXT_BYTES_MAX];
        self.put_text(num::i64_bytes(value, &mut digits));
    }

    fn null(&mut self) {
        self.put(if self.is_resp3() { Value::Nil } else { Value::Bool(false) });
    }

    fn null_array(&mut self) {
        self.null();
    }

    fn array(&mut self, len: usize) {
        let _ends_by_itself = self.begin(Kind::Array, Some(len));
    }

    fn map(&mut self, pairs: usize) {
        let kind = if self.is_resp3() { Kind::Map } else { Kind::Array };
        let _ends_by_itself = self.begin(kind, Some(pairs * 2));
    }

    fn set(&mut self, len: usize) {
        let kind = if self.is_resp3() { Kind::Set } else { Kind::Array };
        let _ends_by_itself = self.begin(kind, Some(len));
    }

    fn push(&mut self, len: usize) {
        self.array(len);
    }

    fn attribute(&mut self, pairs: usize) {
        self.map(pairs);
    }

    fn double(&mut self, value: f64) {
        if self.is_resp3() {
            self.put_field("double", Value::Number(value));
            return;
        }
        let mut text = Vec::new();
        format_f64(value, &mut text);
        self.put_text(&text);
    }

    fn boolean(&mut self, value: bool) {
        match self.is_resp3() {
            true => self.put(Value::Bool(value)),
            false => self.int(i64::from(value)),
        }
    }

    fn verbatim(&mut self, format: &[u8; 3], text: &[u8]) {
        if !self.is_resp3() {
            return self.put_text(text);
        }
        let made = self.attempt(|heap| {
            let inner = heap.table(0, 2)?;
            let (format, text) = (heap.string(format)?, heap.string(text)?);
            heap.set_field(inner, b"format", Value::Str(format))?;
            heap.set_field(inner, b"string", Value::Str(text))?;
            Ok(inner)
        });
        if let Some(inner) = made {
            self.put_field("verbatim_string", Value::Table(inner));
        }
    }

    fn big_number(&mut self, digits: &str) {
        match self.is_resp3() {
            true => self.put_text_field("big_number", digits.as_bytes()),
            false => self.put_text(digits.as_bytes()),
        }
    }

    fn begin_array(&mut self) -> Mark {
        self.begin(Kind::Array, None)
    }

    fn end_array(&mut self, mark: Mark, _len: usize) {
        self.end(mark);
    }

    fn begin_map(&mut self) -> Mark {
        let kind = if self.is_resp3() { Kind::Map } else { Kind::Array };
        self.begin(kind, None)
    }

    fn end_map(&mut self, mark: Mark, _pairs: usize) {
        self.end(mark);
    }
}
