//! The code of a function, as the loop of plain instructions sees it.

use super::Frame;
use crate::heap::Arena;
use crate::proto::Op;
use crate::state::Loaded;
use crate::value::{FuncRef, StrRef, Value};

/// What the instructions of one function see.
#[derive(Clone, Copy)]
pub(super) struct Code<'a> {
    pub(super) ops: &'a [Op],
    pub(super) constants: &'a [Value],
    pub(super) loaded: &'a Loaded,
    pub(super) function: FuncRef,
}

impl Code<'_> {
    #[inline(always)]
    pub(super) fn k(&self, constant: impl Into<u32>) -> &Value {
        &self.constants[constant.into() as usize]
    }

    /// The first register behind those of the function.
    #[inline(always)]
    pub(super) fn registers(&self) -> u8 {
        self.loaded.proto.registers
    }
}

/// The code of a frame.
#[inline(always)]
pub(super) fn code_of<'a>(protos: &'a Arena<Loaded>, frame: &Frame) -> Code<'a> {
    // A native's frame is gone before the machine goes on.
    let (function, proto) = frame.lua();
    code_in(protos.at(proto.index()), function)
}

/// The code of a function.
#[inline(always)]
pub(super) fn code_in(loaded: &Loaded, function: FuncRef) -> Code<'_> {
    Code { ops: &loaded.proto.code, constants: &loaded.constants, loaded, function }
}

/// A constant name with its hash.
#[inline(always)]
pub(super) fn name_of(code: &Code<'_>, k: usize) -> (StrRef, u32) {
    code.loaded.names[k]
}
