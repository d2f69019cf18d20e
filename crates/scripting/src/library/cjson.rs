//! `cjson`: Lua values to JSON and back, and the settings of both.

mod config;
mod decode;
mod encode;

pub(crate) use config::Config;

use super::Entry;
use crate::call::{Call, Outcome};
use crate::fault::Fault;
use crate::value::{TableRef, Value};

pub(super) const ENTRIES: &[Entry] = &[
    ("decode", decode::decode),
    ("decode_invalid_numbers", config::decode_invalid_numbers),
    ("decode_max_depth", config::decode_max_depth),
    ("encode", encode::encode),
    ("encode_invalid_numbers", config::encode_invalid_numbers),
    ("encode_keep_buffer", config::encode_keep_buffer),
    ("encode_max_depth", config::encode_max_depth),
    ("encode_number_precision", config::encode_number_precision),
    ("encode_sparse_array", config::encode_sparse_array),
    ("new", new),
];

pub(super) const TEXTS: &[(&str, &str)] = &[("_NAME", "cjson"), ("_VERSION", "2.1.0")];

/// What stands for JSON's null.
pub(super) const NULL: Value = Value::Light(0);

/// A table with all of these functions, and settings of its own.
fn new(call: &mut Call) -> Outcome {
    let own = call.heap().table(0, 0)?;
    config::store(call, own, &Config::default())?;
    let made = call.heap().table(0, ENTRIES.len() + TEXTS.len() + 1)?;
    for (name, code) in ENTRIES {
        let function = call.heap().native(*code, &[Value::Table(own)])?;
        set(call, made, name, Value::Native(function))?;
    }
    set(call, made, "null", NULL)?;
    for (name, text) in TEXTS {
        let text = call.heap().string(text.as_bytes())?;
        set(call, made, name, Value::Str(text))?;
    }
    call.give(made)
}

fn set(call: &mut Call, table: TableRef, name: &str, value: Value) -> Result<(), Fault> {
    call.heap().set_field(table, name.as_bytes(), value)
}
