//! A script's result as a reply.

use russet_base::escape::escape;
use russet_protocol::Sink;
use russet_scripting::number::to_integer;
use russet_scripting::{Heap, TableRef, Value};

/// Tables in tables that a reply follows.
const LEVELS_MAX: usize = 512;

/// The field of an error that was counted where it arose.
pub const COUNTED: &[u8] = b"ignore_error_stats_update";

/// Called for every error in a reply: its text, unless it was counted before.
type Count<'c> = &'c dyn Fn(Option<&str>);

/// Answers with a value that a script returned. `has_resp3` says that it chose RESP3.
pub fn write(
    heap: &Heap,
    (value, has_resp3): (Value, bool),
    reply: &mut dyn Sink,
    count: Count<'_>,
) {
    Writer { heap, has_resp3, count }.value(value, reply, 0);
}

/// Whether an error was counted before.
pub fn was_counted(heap: &Heap, table: TableRef) -> bool {
    matches!(heap.field(table, COUNTED), Value::Bool(true))
}

struct Writer<'h> {
    heap: &'h Heap,
    has_resp3: bool,
    count: Count<'h>,
}

impl Writer<'_> {
    fn value(&self, value: Value, reply: &mut dyn Sink, level: usize) {
        match value {
            Value::Str(string) => reply.bulk(self.heap.bytes(string)),
            Value::Number(number) => reply.int(to_integer(number)),
            Value::Bool(value) if self.has_resp3 => reply.boolean(value),
            Value::Bool(true) => reply.int(1),
            Value::Table(_) if level == LEVELS_MAX => {
                let text = "ERR reached lua stack limit";
                (self.count)(Some(text));
                reply.error(text);
            }
            Value::Table(table) => self.table(table, reply, level + 1),
            _ => reply.null(),
        }
    }

    /// A table with a field that gives it a meaning, or else an array.
    fn table(&self, table: TableRef, reply: &mut dyn Sink, level: usize) {
        if !self.heap.has_hash_part(table) {
            return self.array(table, reply, level);
        }
        let field = |name: &str| self.heap.field(table, name.as_bytes());
        let bytes = |value: Value| match value {
            Value::Str(string) => Some(self.heap.bytes(string)),
            _ => None,
        };
        let text = |value: Value| bytes(value).map(up_to_nul);
        if let Some(error) = text(field("err")) {
            let error = escape(error);
            (self.count)(Some(&*error).filter(|_| !was_counted(self.heap, table)));
            return reply.error(&error);
        }
        if let Some(status) = text(field("ok")) {
            return reply.status(&one_line(status));
        }
        if let Value::Number(number) = field("double") {
            return reply.double(number);
        }
        if let Value::Table(map) = field("map") {
            return self.map(map, reply, level);
        }
        if let Value::Table(set) = field("set") {
            return self.set(set, reply, level);
        }
        if let Some(digits) = text(field("big_number")) {
            return reply.big_number(&one_line(digits));
        }
        if let Value::Table(verbatim) = field("verbatim_string")
            && let Some(content) = bytes(self.heap.field(verbatim, b"string"))
            && let Some(format) = text(self.heap.field(verbatim, b"format"))
        {
            return reply.verbatim(&three_letters(format), content);
        }
        self.array(table, reply, level);
    }

    fn map(&self, table: TableRef, reply: &mut dyn Sink, level: usize) {
        let mark = reply.begin_map();
        let (mut cursor, mut pairs) = (0, 0);
        while let Some((next, key, value)) = self.heap.entry_from(table, cursor) {
            cursor = next;
            self.value(key, reply, level);
            self.value(value, reply, level);
            pairs += 1;
        }
        reply.end_map(mark, pairs);
    }

    fn set(&self, table: TableRef, reply: &mut dyn Sink, level: usize) {
        let members = |visit: &mut dyn FnMut(Value)| {
            let mut cursor = 0;
            while let Some((next, key, _)) = self.heap.entry_from(table, cursor) {
                cursor = next;
                visit(key);
            }
        };
        let mut len = 0;
        members(&mut |_| len += 1);
        reply.set(len);
        members(&mut |key| self.value(key, reply, level));
    }

    /// The elements up to the first nil.
    fn array(&self, table: TableRef, reply: &mut dyn Sink, level: usize) {
        let part = self.heap.array_part(table);
        let mut len = part.iter().take_while(|value| !value.is_nil()).count();
        if len == part.len() && self.heap.has_hash_part(table) {
            while !self.heap.element(table, len + 1).is_nil() {
                len += 1;
            }
        }
        reply.array(len);
        for at in 1..=len {
            let value = part.get(at - 1).copied();
            let value = value.unwrap_or_else(|| self.heap.element(table, at));
            self.value(value, reply, level);
        }
    }
}

/// COMPAT: a text that goes out as one line ends at its first zero byte, as every string of C
/// does; test tests/wire/scripting/conversions.wire, "zero bytes".
pub fn up_to_nul(text: &[u8]) -> &[u8] {
    let end = text.iter().position(|byte| *byte == 0).unwrap_or(text.len());
    &text[..end]
}

/// COMPAT: a format is cut or filled up to three letters; test
/// tests/wire/scripting/conversions.wire, "formats of verbatim strings".
fn three_letters(format: &[u8]) -> [u8; 3] {
    let mut letters = [b' '; 3];
    for (letter, byte) in letters.iter_mut().zip(format) {
        *letter = *byte;
    }
    letters
}

/// Text that can't break a line: line ends are turned into spaces.
fn one_line(text: &[u8]) -> String {
    escape(text).replace(['\r', '\n'], " ")
}
