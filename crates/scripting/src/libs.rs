//! The libraries that scripts find among their globals.

mod basic;
mod coroutine;

use crate::fault::Fault;
use crate::state::State;

/// Gives a state all libraries; `State::freeze` comes after the host has added its own.
pub fn open(state: &mut State) -> Result<(), Fault> {
    basic::open(state)?;
    coroutine::open(state)?;
    crate::library::open(state)
}
