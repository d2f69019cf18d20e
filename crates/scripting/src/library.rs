//! The libraries that scripts find among their globals: the basic functions, `coroutine`, `string`,
//! `table`, `math`, `os`, `bit`, `struct`, `cmsgpack` and `cjson`; and the algorithms under them,
//! which know no Lua values (`format`, `json`, `layout`, `msgpack`, `number`, `pattern`, `random`).
//!
//! Whatever grows with its input pays for the work in steps and asks for room before it takes it.

mod basic;
mod bit;
mod cjson;
mod cmsgpack;
mod coroutine;
mod format;
mod formatting;
mod json;
mod layout;
mod math;
mod msgpack;
pub mod number;
mod packing;
mod pattern;
mod random;
mod search;
mod string;
mod table;

use crate::call::{Call, NativeFn, Outcome};
use crate::fault::Fault;
use crate::state::State;
use crate::value::{TableRef, Value};
use russet_base::{Clock, SystemClock};

/// A function and the name that scripts call it by.
type Entry = (&'static str, NativeFn);

/// Places on the stack that a C function has, and so the most results that one can give.
const RESULT_SLOTS_MAX: usize = 8000;
/// Bytes that are copied, compared or searched for the price of one step.
const BYTES_PER_STEP: usize = 64;

/// What the libraries of a state keep.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    random: math::Randomness,
    json: cjson::Config,
    clock: SystemClock,
    /// For the next search of a pattern.
    matcher: Option<Box<pattern::Matcher>>,
}

impl Kept {
    /// Forgets what a run set for itself.
    pub(crate) fn end_run(&mut self) {
        self.random.end_run();
        self.json = cjson::Config::default();
    }

    fn clock_micros(&self) -> u64 {
        self.clock.monotonic_micros()
    }
}

/// Gives a state all libraries; `State::freeze` comes after the host has added its own.
pub fn open(state: &mut State) -> Result<(), Fault> {
    basic::open(state)?;
    coroutine::open(state)?;
    let string = define(state, "string", string::ENTRIES)?;
    let meta = state.heap_mut().table(0, 1)?;
    state.define_value(meta, "__index", Value::Table(string))?;
    state.set_string_meta(meta);
    define(state, "table", table::ENTRIES)?;
    let math = define(state, "math", math::ENTRIES)?;
    for (name, value) in math::VALUES {
        state.define_value(math, name, *value)?;
    }
    define(state, "os", math::OS_ENTRIES)?;
    define(state, "bit", bit::ENTRIES)?;
    define(state, "struct", packing::ENTRIES)?;
    let cmsgpack = define(state, "cmsgpack", cmsgpack::ENTRIES)?;
    define_texts(state, cmsgpack, cmsgpack::TEXTS)?;
    let cjson = define(state, "cjson", cjson::ENTRIES)?;
    define_texts(state, cjson, cjson::TEXTS)?;
    state.define_value(cjson, "null", cjson::NULL)
}

/// Makes the use of a global that is not there an error, as scripts find it in Redis.
pub fn guard_globals(state: &mut State) -> Result<(), Fault> {
    guard(state, state.globals())
}

/// The same for a field of some table.
pub fn guard(state: &mut State, table: TableRef) -> Result<(), Fault> {
    let meta = state.heap_mut().table(0, 1)?;
    state.define(meta, "__index", absent_global)?;
    let outcome = state.heap_mut().set_meta(table, Some(meta));
    outcome.map_err(|refusal| state.heap_mut().fault_of(refusal))
}

fn absent_global(call: &mut Call<'_>) -> Outcome {
    let mut text = b"Script attempted to access nonexistent global variable '".to_vec();
    let name = call.arg(2);
    let name = call.to_string(name)?;
    text.extend_from_slice(call.bytes(name));
    text.push(b'\'');
    Err(call.error(text))
}

fn define(state: &mut State, name: &str, entries: &[Entry]) -> Result<TableRef, Fault> {
    let table = state.define_table(state.globals(), name)?;
    for (name, code) in entries {
        state.define(table, name, *code)?;
    }
    Ok(table)
}

fn define_texts(state: &mut State, table: TableRef, texts: &[(&str, &str)]) -> Result<(), Fault> {
    for (name, text) in texts {
        let text = state.heap_mut().string(text.as_bytes())?;
        state.define_value(table, name, Value::Str(text))?;
    }
    Ok(())
}

/// A number as the C int that most functions take: the low 32 bits.
fn slot(integer: i64) -> i32 {
    integer as i32
}

/// Pays for work on so many bytes.
fn charge_bytes(call: &mut Call, bytes: usize) -> Result<(), Fault> {
    call.charge(1 + bytes / BYTES_PER_STEP)
}

/// Pays for bytes that are about to be added to what a function builds, and makes room for them.
/// It grows by half, not to twice its size: a state's memory is bounded, and this is part of it.
fn grow(call: &mut Call, out: &mut Vec<u8>, more: usize) -> Result<(), Fault> {
    charge_bytes(call, more)?;
    let len = out.len().saturating_add(more);
    if len > out.capacity() {
        call.heap().check_room(len)?;
        out.reserve_exact(more.max(out.len() / 2));
    }
    Ok(())
}

/// How many results the function may still give.
fn results_room(call: &Call) -> usize {
    RESULT_SLOTS_MAX.saturating_sub(call.arg_count())
}
