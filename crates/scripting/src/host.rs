//! What a run asks of the one who started it.

use crate::call::{Call, Outcome};

/// Whether a run may go on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tick {
    Continue,
    /// Unwind to the caller of the run; no `pcall` in between is asked.
    Kill,
}

pub trait Host {
    /// Asked after every [`STEPS_PER_TICK`](crate::limits::STEPS_PER_TICK) steps or so.
    fn tick(&mut self) -> Tick {
        Tick::Continue
    }

    /// A function that the host gave the state under this number was called. The call can make and
    /// read values, but cannot call back into Lua.
    fn native(&mut self, number: u16, call: &mut Call<'_>) -> Outcome {
        Err(call.error(format!("the host has no function {number}")))
    }
}

/// Nobody: for loading, for tests, and for calls that need no host.
#[derive(Debug, Default)]
pub struct NoHost;

impl Host for NoHost {}
