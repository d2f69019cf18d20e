//! How a function ends when it does not return.

use crate::value::Value;

/// Why a call did not return.
#[derive(Clone, Copy, Debug)]
pub enum Fault {
    /// A Lua error; `pcall` gets the value.
    Error(Value),
    /// The host asked for an end, or a bound was met that no `pcall` may hide.
    Killed,
    /// Not a failure: the running coroutine hands the values behind its yield to who resumed it.
    /// It has no count of them: `waiting` says where they begin.
    Yield,
}

/// Why a table refused a write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    ReadOnly,
    NilKey,
    NanKey,
    OutOfMemory,
}

impl Refusal {
    pub fn text(self) -> &'static str {
        match self {
            Refusal::ReadOnly => "Attempt to modify a readonly table",
            Refusal::NilKey => "table index is nil",
            Refusal::NanKey => "table index is NaN",
            Refusal::OutOfMemory => OUT_OF_MEMORY,
        }
    }
}

/// The error of a handler of errors that can't be called, or fails too often.
pub const HANDLER_FAILED: &str = "error in error handling";

/// The error of a state that holds all it may.
pub const OUT_OF_MEMORY: &str = "not enough memory";
