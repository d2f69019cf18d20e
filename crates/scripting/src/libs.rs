//! The libraries that scripts find among their globals.

mod basic;
mod coroutine;

use crate::call::{Call, Outcome};
use crate::fault::Fault;
use crate::state::State;
use crate::value::TableRef;

/// Gives a state all libraries; `State::freeze` comes after the host has added its own.
pub fn open(state: &mut State) -> Result<(), Fault> {
    basic::open(state)?;
    coroutine::open(state)?;
    crate::library::open(state)
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
