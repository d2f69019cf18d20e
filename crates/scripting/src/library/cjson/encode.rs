//! `cjson.encode`. Open tables are on a stack of its own, so that nesting cannot exhaust the
//! thread's.

use super::NULL;
use super::config::{self, Config, OddNumbers};
use crate::call::{Call, Outcome};
use crate::fault::Fault;
use crate::heap::same_handle;
use crate::library::json::{append_string, escaped_len};
use crate::library::number::append_general;
use crate::library::{RESULT_SLOTS_MAX, grow};
use crate::value::{TableRef, Value};

/// Bytes that an escape makes of one.
const ESCAPE_BYTES_MAX: usize = 6;
/// Strings longer than this are measured before there is made room for them.
const COUNTED_BYTES_MIN: usize = 1024;
/// What a number may take.
const NUMBER_BYTES_MAX: usize = 32;

/// A table that is being written.
enum Open {
    Array { table: TableRef, index: i32, last: i32 },
    Object { table: TableRef, cursor: usize, is_first: bool },
}

impl Open {
    /// Places that its key and value take on the stack of the C library.
    fn slots(&self) -> usize {
        match self {
            Open::Array { .. } => 1,
            Open::Object { .. } => 2,
        }
    }
}

struct Encoding {
    config: Config,
    out: Vec<u8>,
    open: Vec<Open>,
    slots: usize,
}

pub(super) fn encode(call: &mut Call) -> Outcome {
    if call.arg_count() != 1 {
        return Err(call.arg_error(1, "expected 1 argument"));
    }
    let config = config::current(call);
    let mut encoding = Encoding { config, out: Vec::new(), open: Vec::new(), slots: 1 };
    encoding.append(call, call.arg(1))?;
    while let Some(value) = encoding.next(call)? {
        encoding.append(call, value)?;
    }
    call.give_owned(encoding.out)
}

fn refusal(call: &mut Call, value: Value, reason: &str) -> Fault {
    call.error(format!("Cannot serialise {}: {reason}", value.type_name()))
}

impl Encoding {
    /// Writes a value, or the beginning of a table.
    fn append(&mut self, call: &mut Call, value: Value) -> Result<(), Fault> {
        grow(call, &mut self.out, NUMBER_BYTES_MAX)?;
        match value {
            Value::Nil => self.out.extend_from_slice(b"null"),
            Value::Bool(true) => self.out.extend_from_slice(b"true"),
            Value::Bool(false) => self.out.extend_from_slice(b"false"),
            Value::Number(number) => return self.append_number(call, number),
            Value::Str(_) => return self.append_text(call, value),
            Value::Table(table) => return self.open(call, table),
            other if same_handle(other, NULL) => self.out.extend_from_slice(b"null"),
            other => return Err(refusal(call, other, "type not supported")),
        }
        Ok(())
    }

    fn append_text(&mut self, call: &mut Call, value: Value) -> Result<(), Fault> {
        let Value::Str(text) = value else { return Ok(()) };
        let len = call.bytes(text).len();
        let len = match len {
            0..=COUNTED_BYTES_MIN => len * ESCAPE_BYTES_MAX,
            _ => escaped_len(call.bytes(text)),
        };
        grow(call, &mut self.out, len + 2)?;
        append_string(call.bytes(text), &mut self.out);
        Ok(())
    }

    fn append_number(&mut self, call: &mut Call, number: f64) -> Result<(), Fault> {
        if !number.is_finite() {
            match self.config.encode_odd_numbers {
                OddNumbers::Refused => {
                    return Err(refusal(call, Value::Number(number), "must not be NaN or Inf"));
                }
                OddNumbers::Written if number.is_nan() => {
                    self.out.extend_from_slice(b"nan");
                    return Ok(());
                }
                OddNumbers::Written => {}
                OddNumbers::Null => {
                    self.out.extend_from_slice(b"null");
                    return Ok(());
                }
            }
        }
        append_general(number, self.config.number_digits as usize, &mut self.out);
        Ok(())
    }

    fn open(&mut self, call: &mut Call, table: TableRef) -> Result<(), Fault> {
        let depth = self.open.len() + 1;
        let is_deep = depth > self.config.encode_depth_max as usize;
        if is_deep || self.slots + 3 > RESULT_SLOTS_MAX {
            return Err(call.error(format!("Cannot serialise, excessive nesting ({depth})")));
        }
        let open = match self.array_len(call, table)? {
            Some(last @ 1..) => {
                self.out.push(b'[');
                Open::Array { table, index: 0, last }
            }
            _ => {
                self.out.push(b'{');
                Open::Object { table, cursor: 0, is_first: true }
            }
        };
        self.slots += open.slots();
        self.open.push(open);
        Ok(())
    }

    /// The greatest index if all keys are positive whole numbers and not too few of them.
    ///
    /// COMPAT: an index that no C int holds is the least, which no index is above.
    fn array_len(&self, call: &mut Call, table: TableRef) -> Result<Option<i32>, Fault> {
        let (mut last, mut count) = (0i32, 0i32);
        let mut cursor = 0;
        while let Some((next, key, _)) = call.heap().entry_from(table, cursor) {
            call.charge(1)?;
            cursor = next;
            let Value::Number(index) = key else { return Ok(None) };
            if index.floor() != index || index < 1.0 {
                return Ok(None);
            }
            if index > f64::from(last) {
                last = if index > f64::from(i32::MAX) { i32::MIN } else { index as i32 };
            }
            count = count.wrapping_add(1);
        }
        let ratio = self.config.sparse_ratio;
        let is_sparse =
            ratio > 0 && last > count.wrapping_mul(ratio) && last > self.config.sparse_safe;
        if is_sparse && !self.config.sparse_to_object {
            return Err(refusal(call, Value::Table(table), "excessively sparse array"));
        }
        Ok((!is_sparse).then_some(last))
    }

    /// The next value of the innermost table, behind its comma and key; closes what is complete.
    fn next(&mut self, call: &mut Call) -> Result<Option<Value>, Fault> {
        loop {
            let Some(open) = self.open.last_mut() else { return Ok(None) };
            let slots = open.slots();
            let closing = match open {
                Open::Array { table, index, last } if *index < *last => {
                    if *index > 0 {
                        self.out.push(b',');
                    }
                    *index += 1;
                    let key = Value::Number(f64::from(*index));
                    return Ok(Some(call.heap().get(*table, key)));
                }
                Open::Array { .. } => b']',
                Open::Object { table, cursor, is_first } => {
                    if let Some((next, key, value)) = call.heap().entry_from(*table, *cursor) {
                        if !*is_first {
                            self.out.push(b',');
                        }
                        (*cursor, *is_first) = (next, false);
                        self.append_key(call, key)?;
                        return Ok(Some(value));
                    }
                    b'}'
                }
            };
            self.out.push(closing);
            self.slots -= slots;
            self.open.pop();
        }
    }

    fn append_key(&mut self, call: &mut Call, key: Value) -> Result<(), Fault> {
        match key {
            Value::Str(_) => {
                self.append_text(call, key)?;
                self.out.push(b':');
            }
            Value::Number(number) => {
                self.out.push(b'"');
                self.append_number(call, number)?;
                self.out.extend_from_slice(b"\":");
            }
            other => return Err(refusal(call, other, "table key must be a number or string")),
        }
        Ok(())
    }
}
