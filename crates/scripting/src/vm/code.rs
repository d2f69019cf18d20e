//! The code of a function, as the loop of plain instructions sees it.

use super::Callee;
use crate::heap::Arena;
use crate::proto::Op;
use crate::state::Loaded;
use crate::value::{FuncRef, StrRef, TableRef, Value};

/// What the instructions of one function see.
#[derive(Clone, Copy)]
pub(super) struct Code<'a> {
    pub(super) ops: &'a [Op],
    pub(super) constants: &'a [Value],
    pub(super) hashes: &'a [u32],
    pub(super) function: FuncRef,
    pub(super) env: TableRef,
    pub(super) registers: u8,
}

/// The code of a frame.
#[inline(always)]
pub(super) fn code_of(protos: &Arena<Loaded>, callee: Callee) -> Code<'_> {
    let Callee::Lua { function, proto } = callee else {
        unreachable!("a native's frame is gone before the machine goes on")
    };
    code_in(protos.at(proto.index()), function)
}

/// The code of a function.
#[inline(always)]
pub(super) fn code_in(loaded: &Loaded, function: FuncRef) -> Code<'_> {
    let Loaded { proto, constants, hashes, env, .. } = loaded;
    let registers = proto.registers;
    Code { ops: &proto.code, constants, hashes, function, env: *env, registers }
}

/// A constant name with its hash.
#[inline(always)]
pub(super) fn name_of(code: &Code<'_>, k: usize) -> (StrRef, u32) {
    match code.constants[k] {
        Value::Str(name) => (name, code.hashes[k]),
        _ => unreachable!("the compiler names fields by strings"),
    }
}
