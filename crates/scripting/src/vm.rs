//! The machine. `run` holds the loop of plain instructions; whatever needs metamethods, memory or a
//! new frame leaves that loop and is done by its sibling modules.

mod arith;
mod call;
mod code;
mod compare;
mod error;
mod fields;
mod frames;
mod index;
mod macros;
mod make;
mod quick;
mod run;
mod slow;
mod switch;
mod text;

pub(crate) use call::Entered;
pub(crate) use frames::{Frame, Frames};
pub(crate) use switch::Switch;

use crate::heap::Arena;
use crate::state::Loaded;
use crate::value::{FuncRef, NativeRef, ProtoRef, Value};

/// Registers that one function sees; the stack always reaches this far beyond a frame's base.
pub(crate) const WINDOW: usize = 256;

/// All results are wanted.
pub(crate) const ALL: i16 = -1;

/// Counts of none and of one, as instructions give them.
const NO_RESULT: u8 = 1;
const ONE_RESULT: u8 = 2;

/// What a place on a stack counts for, with its share of the frames.
pub(crate) const STACK_SLOT_BYTES: usize = 2 * size_of::<Value>();

/// The stack that a state keeps from run to run.
const STACK_VALUES_KEPT: usize = 4096;

/// Whose frame it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Callee {
    Lua { function: FuncRef, proto: ProtoRef },
    Native(NativeRef),
}

/// What made a frame, and where its return leads.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum FrameKind {
    /// A call of Lua code, which goes on.
    #[default]
    Call,
    /// Rust code: `run` returns to it.
    Entry,
    /// An instruction of Lua code that needs a metamethod, and ends with its result. It counts as
    /// a call from Rust: it is as deep as one, and no yield leaves it.
    Event,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Status {
    /// Not started, or waiting in a yield.
    #[default]
    Suspended,
    Running,
    /// It resumed another one.
    Normal,
    Dead,
}

/// A stack and the calls on it.
#[derive(Debug, Default)]
pub(crate) struct Coroutine {
    pub(crate) stack: Vec<Value>,
    pub(crate) frames: Frames,
    /// One past the last value, while a native runs or a list of open length is passed on.
    pub(crate) top: usize,
    pub(crate) status: Status,
    /// In a yield, which has no frame: where its results go, and how many are wanted.
    pub(crate) waiting: Option<(u32, i16)>,
}

impl Coroutine {
    pub(crate) fn new() -> Self {
        Coroutine { stack: vec![Value::Nil; WINDOW], ..Coroutine::default() }
    }

    /// The part of the stack that holds live values: a native's end at the top, those of Lua code
    /// at its last register, unless a list of open length reaches further. A yield is a native.
    pub(crate) fn live_len(&self, protos: &Arena<Loaded>) -> usize {
        let frame = self.frames.last().filter(|_| self.waiting.is_none());
        let registers_end = match frame.map(|frame| (frame.callee(), frame.base)) {
            Some((Callee::Lua { proto, .. }, base)) => {
                let registers = protos.find(proto.index()).map_or(0, |code| code.proto.registers);
                base as usize + registers as usize
            }
            _ => 0,
        };
        self.top.max(registers_end).min(self.stack.len())
    }

    pub(crate) fn size_bytes(&self) -> usize {
        self.stack.len() * STACK_SLOT_BYTES
    }

    /// Drops the calls that an error left behind, down to this many.
    pub(crate) fn unwind(&mut self, frames: usize) {
        self.frames.truncate(frames);
    }

    /// Gives back what a deep recursion left behind.
    pub(crate) fn shrink(&mut self) {
        if self.stack.len() > STACK_VALUES_KEPT {
            self.stack.truncate(STACK_VALUES_KEPT);
            self.stack.shrink_to_fit();
            self.frames.shrink(STACK_VALUES_KEPT / 8);
        }
    }

    /// The window of registers at a base.
    #[inline(always)]
    pub(crate) fn window(stack: &mut [Value], base: usize) -> &mut [Value; WINDOW] {
        frames::window(stack, base).expect("a frame is entered only with room for its window")
    }
}
