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

use crate::call::{Call, MakingFn, NativeFn, Outcome, QuickFn};
use crate::fault::Fault;
use crate::state::State;
use crate::value::{TableRef, Value};
use russet_base::{Clock, SystemClock};

/// A function and the name that scripts call it by.
type Entry = (&'static str, NativeFn);

/// The same with a form of it that is tried first.
type QuickEntry = (&'static str, QuickFn, NativeFn);

/// The same for one that makes a string or changes a table.
type MakingEntry = (&'static str, MakingFn, NativeFn);

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
    /// Room for the next result of `string.format`.
    formatted: Vec<u8>,
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
    define_quick(state, string, string::QUICK_ENTRIES)?;
    define_making(state, string, string::MAKING_ENTRIES)?;
    let meta = state.heap_mut().table(0, 1)?;
    state.define_value(meta, "__index", Value::Table(string))?;
    state.set_string_meta(meta);
    let table = define(state, "table", table::ENTRIES)?;
    define_making(state, table, table::MAKING_ENTRIES)?;
    let math = define(state, "math", math::ENTRIES)?;
    define_quick(state, math, math::QUICK_ENTRIES)?;
    for (name, value) in math::VALUES {
        state.define_value(math, name, *value)?;
    }
    define(state, "os", math::OS_ENTRIES)?;
    let bit = define(state, "bit", bit::ENTRIES)?;
    define_quick(state, bit, bit::QUICK_ENTRIES)?;
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

fn define_quick(state: &mut State, table: TableRef, entries: &[QuickEntry]) -> Result<(), Fault> {
    for (name, quick, code) in entries {
        state.define_quick(table, name, (*quick, *code))?;
    }
    Ok(())
}

fn define_making(state: &mut State, table: TableRef, entries: &[MakingEntry]) -> Result<(), Fault> {
    for (name, making, code) in entries {
        state.define_making(table, name, (*making, *code))?;
    }
    Ok(())
}

/// The whole number that an argument of a quick form is; what is none is left to the other form.
fn quick_whole(number: f64) -> Option<i64> {
    let whole = number as i32;
    (f64::from(whole) == number).then_some(i64::from(whole))
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
