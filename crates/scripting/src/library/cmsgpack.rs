//! `cmsgpack`: Lua values to MessagePack and back.

use super::msgpack::{
    Piece, Reader, append_array_header, append_bool, append_map_header, append_nil, append_number,
    append_text,
};
use super::{Entry, RESULT_SLOTS_MAX, charge_bytes, grow};
use crate::call::{Call, Outcome};
use crate::fault::{Fault, Refusal};
use crate::value::{StrRef, TableRef, Value};

/// Tables within tables; what lies deeper is nil.
const NESTING_MAX: usize = 16;
/// What the header of a string or a number may take.
const SCALAR_BYTES_MAX: usize = 9;

pub(super) const ENTRIES: &[Entry] = &[
    ("pack", pack),
    ("unpack", unpack),
    ("unpack_limit", unpack_limit),
    ("unpack_one", unpack_one),
];

pub(super) const TEXTS: &[(&str, &str)] = &[
    ("_NAME", "cmsgpack"),
    ("_VERSION", "lua-cmsgpack 0.4.0"),
    ("_COPYRIGHT", "Copyright (C) 2012, Redis Ltd."),
    ("_DESCRIPTION", "MessagePack C implementation for Lua"),
];

fn pack(call: &mut Call) -> Outcome {
    if call.arg_count() == 0 {
        return Err(call.arg_error(0, "MessagePack pack needs input."));
    }
    let mut out = Vec::new();
    for position in 1..=call.arg_count() {
        append_value(call, call.arg(position), 0, &mut out)?;
    }
    call.give_owned(out)
}

fn append_value(
    call: &mut Call,
    value: Value,
    level: usize,
    out: &mut Vec<u8>,
) -> Result<(), Fault> {
    grow(call, out, SCALAR_BYTES_MAX)?;
    match value {
        Value::Bool(value) => append_bool(value, out),
        Value::Number(number) => append_number(number, out),
        Value::Str(text) => {
            let len = call.bytes(text).len();
            grow(call, out, len + SCALAR_BYTES_MAX)?;
            append_text(call.bytes(text), out);
        }
        Value::Table(table) if level < NESTING_MAX => {
            if is_array(call, table)? {
                append_array(call, table, level, out)?;
            } else {
                append_map(call, table, level, out)?;
            }
        }
        _ => append_nil(out),
    }
    Ok(())
}

/// Whether all keys are the numbers from 1 to as many as there are.
fn is_array(call: &mut Call, table: TableRef) -> Result<bool, Fault> {
    let (mut greatest, mut count) = (0, 0);
    let mut cursor = 0;
    while let Some((next, key, _)) = call.heap().entry_from(table, cursor) {
        call.charge(1)?;
        cursor = next;
        let Value::Number(number) = key else { return Ok(false) };
        let index = number as i32;
        if f64::from(index) != number || index <= 0 {
            return Ok(false);
        }
        greatest = greatest.max(index);
        count += 1;
    }
    Ok(greatest == count)
}

/// The elements from 1 on are all there, so no metamethod has a say in reading them.
fn append_array(
    call: &mut Call,
    table: TableRef,
    level: usize,
    out: &mut Vec<u8>,
) -> Result<(), Fault> {
    let len = call.heap().len(table);
    append_array_header(len, out);
    for index in 1..=len {
        let value = call.heap().element(table, index);
        append_value(call, value, level + 1, out)?;
    }
    Ok(())
}

fn append_map(
    call: &mut Call,
    table: TableRef,
    level: usize,
    out: &mut Vec<u8>,
) -> Result<(), Fault> {
    let mut entries = Vec::new();
    let mut cursor = 0;
    while let Some((next, key, value)) = call.heap().entry_from(table, cursor) {
        call.charge(1)?;
        cursor = next;
        entries.push((key, value));
    }
    append_map_header(entries.len(), out);
    for (key, value) in entries {
        append_value(call, key, level + 1, out)?;
        append_value(call, value, level + 1, out)?;
    }
    Ok(())
}

fn unpack(call: &mut Call) -> Outcome {
    unpack_some(call, 0, 0)
}

fn unpack_one(call: &mut Call) -> Outcome {
    let offset = call.integer_or(2, 0)?;
    unpack_some(call, 1, offset)
}

fn unpack_limit(call: &mut Call) -> Outcome {
    let limit = call.integer(2)?;
    let offset = call.integer_or(3, 0)?;
    unpack_some(call, limit, offset)
}

/// Unpacks up to `limit` values from `offset` on; all if both are zero. Unless it is all, the
/// first result is where to go on, or -1 at the end.
///
/// COMPAT: the message about a negative number shows the length in place of the limit.
fn unpack_some(call: &mut Call, limit: i64, offset: i64) -> Outcome {
    let message = call.string(1)?;
    let len = call.bytes(message).len();
    let (Ok(limit), Ok(offset)) = (usize::try_from(limit), usize::try_from(offset)) else {
        let offset = offset as i32;
        let text = format!("Invalid request to unpack with offset of {offset} and limit of {len}.");
        return Err(call.error(text));
    };
    if offset > len {
        let offset = offset as i32;
        let text = format!("Start offset {offset} greater than input length {len}.");
        return Err(call.error(text));
    }
    let is_all = limit == 0 && offset == 0;
    let limit = if is_all { i32::MAX as usize } else { limit };
    let mut unpacking =
        Unpacking { message, at: offset, open: Vec::new(), waiting: Vec::new(), slots: 1 };
    let mut results = Vec::new();
    while unpacking.at < len && results.len() < limit {
        results.push(unpacking.value(call)?);
    }
    if !is_all {
        if results.len() + 2 > RESULT_SLOTS_MAX {
            return Err(call.error("stack overflow (in function mp_unpack_full)"));
        }
        let next = if unpacking.at == len { -1.0 } else { unpacking.at as f64 };
        call.push(Value::Number(next))?;
    }
    for value in &results {
        call.push(*value)?;
    }
    Ok(results.len() + usize::from(!is_all))
}

/// A table that is not complete. Its values wait until it is, since what a message says of its
/// length is not to be believed.
struct Open {
    kind: Kind,
    /// Values that are missing, and keys.
    left: usize,
    /// Where among the waiting values its own begin.
    start: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Array,
    /// Keys and values by turns.
    Map,
}

/// How many values may come to wait before there must be room for them.
const WAITING_PER_CHECK: usize = 1024;

/// A message as it is unpacked. The tables that are open are kept here and not on the stack of
/// the thread, which a message must not be able to exhaust.
struct Unpacking {
    message: StrRef,
    at: usize,
    open: Vec<Open>,
    waiting: Vec<Value>,
    /// Places on the stack of the C library that values and open tables would take.
    slots: usize,
}

impl Unpacking {
    /// The next value, whole.
    fn value(&mut self, call: &mut Call) -> Result<Value, Fault> {
        loop {
            let mut value = self.piece(call)?;
            while let Some(done) = value {
                match self.store(call, done)? {
                    Stored::Last => {
                        self.slots += 1;
                        return Ok(done);
                    }
                    Stored::More => value = None,
                    Stored::Full(table) => value = Some(table),
                }
            }
        }
    }

    /// A scalar or an empty table; nothing if a table was opened.
    fn piece(&mut self, call: &mut Call) -> Result<Option<Value>, Fault> {
        const TOO_MANY: &str =
            "too many return values at once; use unpack_one or unpack_limit instead.";
        call.charge(1)?;
        let mut reader = Reader::new(call.bytes(self.message), self.at);
        let piece = reader.piece();
        self.at = reader.at();
        let piece = piece.map_err(|fault| call.error(fault.text()))?;
        self.need_slot(call, TOO_MANY)?;
        let (len, kind) = match piece {
            Piece::Nil => return Ok(Some(Value::Nil)),
            Piece::Bool(value) => return Ok(Some(Value::Bool(value))),
            Piece::Number(number) => return Ok(Some(Value::Number(number))),
            Piece::Text(range) => {
                charge_bytes(call, range.len())?;
                let text = call.heap().substring(self.message, range)?;
                return Ok(Some(Value::Str(text)));
            }
            Piece::Array(len) => (len, Kind::Array),
            Piece::Map(len) => (2 * len, Kind::Map),
        };
        // The table, and in an array the index of the value that comes next.
        self.slots += 1;
        if kind == Kind::Array {
            self.need_slot(call, "in function mp_decode_to_lua_array")?;
            self.slots += 1;
        }
        self.open.push(Open { kind, left: len, start: self.waiting.len() });
        if len == 0 { self.complete(call).map(Some) } else { Ok(None) }
    }

    fn need_slot(&self, call: &mut Call, what: &str) -> Result<(), Fault> {
        if self.slots + 1 > RESULT_SLOTS_MAX {
            return Err(call.error(format!("stack overflow ({what})")));
        }
        Ok(())
    }

    /// Gives a value to the innermost open table.
    fn store(&mut self, call: &mut Call, value: Value) -> Result<Stored, Fault> {
        let Some(open) = self.open.last_mut() else { return Ok(Stored::Last) };
        open.left -= 1;
        let (left, kind) = (open.left, open.kind);
        self.waiting.push(value);
        if self.waiting.len().is_multiple_of(WAITING_PER_CHECK) {
            call.heap().check_room(self.waiting.len() * size_of::<Value>())?;
        }
        if kind == Kind::Map {
            // A key takes a place until its value is there.
            if left % 2 == 1 {
                self.slots += 1;
            } else {
                self.slots -= 1;
                let key = self.waiting[self.waiting.len() - 2];
                check_key(call, key)?;
            }
        }
        if left > 0 { Ok(Stored::More) } else { self.complete(call).map(Stored::Full) }
    }

    /// Makes the innermost open table of the values that waited for it.
    fn complete(&mut self, call: &mut Call) -> Result<Value, Fault> {
        let open = self.open.pop().expect("only an open table is completed");
        let values = self.waiting.drain(open.start..);
        let table = match open.kind {
            Kind::Array => {
                let table = call.heap().table(values.len(), 0)?;
                for (index, value) in values.enumerate() {
                    call.heap().set_index(table, index + 1, value)?;
                }
                self.slots -= 2;
                table
            }
            Kind::Map => {
                let table = call.heap().table(0, values.len() / 2)?;
                let mut values = values;
                while let (Some(key), Some(value)) = (values.next(), values.next()) {
                    call.heap().set(table, key, value)?;
                }
                drop(values);
                self.slots -= 1;
                table
            }
        };
        Ok(Value::Table(table))
    }
}

/// Refuses what is no key as soon as its value is there, before what follows is read.
fn check_key(call: &mut Call, key: Value) -> Result<(), Fault> {
    match key {
        Value::Nil => Err(call.heap().fault_of(Refusal::NilKey)),
        Value::Number(number) if number.is_nan() => Err(call.heap().fault_of(Refusal::NanKey)),
        _ => Ok(()),
    }
}

enum Stored {
    /// There was no table to give it to: it is a result.
    Last,
    /// The table needs more.
    More,
    /// The table is complete and a value itself.
    Full(Value),
}
