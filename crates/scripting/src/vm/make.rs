//! Tables, lists, texts and functions that are made without leaving the plain loop.
//!
//! What gives `None` or false has changed nothing, and is left to the slow form, which is followed
//! by a collection if one is due.

use super::WINDOW;
use crate::fault::Refusal;
use crate::heap::{Arena, Heap};
use crate::limits::PACKED_STRING_BYTES_MAX;
use crate::number::TextBuffer;
use crate::proto::Capture;
use crate::state::Loaded;
use crate::value::{FuncRef, Value};

/// What the text of a number takes at most.
const NUMBER_BYTES_MAX: usize = 32;

#[inline(always)]
pub(super) fn new_table(heap: &mut Heap, array_len: usize, hash_len: usize) -> Option<Value> {
    if heap.is_collection_due() {
        return None;
    }
    heap.try_table(array_len, hash_len).ok().map(Value::Table)
}

/// Stores a list of known length in a table that has room for it.
#[inline(always)]
pub(super) fn set_list(
    heap: &mut Heap,
    r: &[Value; WINDOW],
    (a, count): (u8, u8),
    first: u32,
) -> bool {
    let Value::Table(table) = r[a as usize] else { return false };
    let (start, from) = (first as usize - 1, a as usize + 1);
    let slots = heap.run_array_mut(table).and_then(|it| it.get_mut(start..start + count as usize));
    match (slots, r.get(from..from + count as usize)) {
        (Some(slots), Some(values)) if count > 0 => {
            slots.copy_from_slice(values);
            true
        }
        _ => false,
    }
}

/// Short texts and numbers as one text.
#[inline]
pub(super) fn joined(heap: &mut Heap, parts: &[Value]) -> Option<Value> {
    if heap.is_collection_due() {
        return None;
    }
    let strings = &mut heap.strings;
    let unfinished = strings.begin();
    for part in parts {
        let len = strings.unfinished_len(&unfinished);
        match part {
            Value::Str(string) if len + strings.len(*string) <= PACKED_STRING_BYTES_MAX => {
                strings.append_string(*string);
            }
            Value::Number(number) if len <= PACKED_STRING_BYTES_MAX - NUMBER_BYTES_MAX => {
                strings.append(TextBuffer::new().format(*number));
            }
            _ => {
                strings.give_up(unfinished);
                return None;
            }
        }
    }
    heap.finish_string(unfinished).ok().map(Value::Str)
}

/// The function with this place among those that its maker makes.
#[inline(always)]
pub(super) fn closure_now(
    heap: &mut Heap,
    protos: &Arena<Loaded>,
    maker: (FuncRef, u16),
    r: &[Value; WINDOW],
) -> Option<Value> {
    if heap.is_collection_due() {
        return None;
    }
    closure(heap, protos, maker, r).ok().map(Value::Function)
}

/// The same, whatever garbage there is. `r` are the registers of its maker.
pub(super) fn closure(
    heap: &mut Heap,
    protos: &Arena<Loaded>,
    (maker, place): (FuncRef, u16),
    r: &[Value; WINDOW],
) -> Result<FuncRef, Refusal> {
    let maker_code = heap.functions.at(maker.index()).proto;
    let code = protos.at(maker_code.index()).children[place as usize];
    let captures = &protos.at(code.index()).proto.captures;
    let mut upvalues = heap.spare.upvalues(captures.len());
    let mut names_itself = false;
    for (upvalue, capture) in upvalues.iter_mut().zip(captures) {
        *upvalue = match *capture {
            Capture::Register(register) => r[register as usize],
            Capture::Upvalue(up) => heap.functions.at(maker.index()).upvalues[up as usize],
            Capture::Itself => {
                names_itself = true;
                Value::Nil
            }
        };
    }
    let made = heap.closure(code, upvalues)?;
    if names_itself {
        let upvalues = &mut heap.functions.at_mut(made.index()).upvalues;
        for (upvalue, capture) in upvalues.iter_mut().zip(captures) {
            if let Capture::Itself = capture {
                *upvalue = Value::Function(made);
            }
        }
    }
    Ok(made)
}
