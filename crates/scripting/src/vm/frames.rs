//! Frames of Lua functions that are entered and left without leaving the plain loop.

use super::{ALL, Callee, Coroutine, Frame, FrameKind, WINDOW};
use crate::heap::{Arena, Heap};
use crate::state::Loaded;
use crate::value::{FuncRef, Value};

/// A call as its instruction gives it.
#[derive(Clone, Copy)]
pub(super) struct Entry {
    pub(super) function: FuncRef,
    /// Where the function stands.
    pub(super) func: usize,
    pub(super) args: u8,
    pub(super) results: u8,
    /// Where results go.
    pub(super) to: usize,
    pub(super) kind: FrameKind,
}

/// Where a return leads.
pub(super) enum Left {
    /// Out of the machine.
    Entry,
    Caller(Frame),
    /// To the instruction behind the one that needed a metamethod.
    Event(Frame),
}

/// A count as instructions give it: plus 1, or 0 for all up to the top.
#[inline(always)]
pub(super) fn list_len(top: usize, from: usize, count: u8) -> usize {
    match count {
        0 => top.saturating_sub(from),
        count => count as usize - 1,
    }
}

/// Copies values to another place of a stack. To call for the copy of one takes longer than to
/// copy it.
#[inline(always)]
fn copy_values(stack: &mut [Value], from: usize, to: usize, count: usize) {
    match count {
        0 => {}
        1 => stack[to] = stack[from],
        _ => stack.copy_within(from..from + count, to),
    }
}

impl Coroutine {
    #[inline(always)]
    pub(super) fn list_len(&self, from: usize, count: u8) -> usize {
        list_len(self.top, from, count)
    }

    #[inline(always)]
    pub(super) fn last(&self) -> &Frame {
        self.frames.last().expect("the running function has a frame")
    }

    /// Notes the next instruction of the running function.
    #[inline(always)]
    pub(super) fn save(&mut self, pc: usize) {
        if let Some(frame) = self.frames.last_mut() {
            frame.pc = pc as u32;
        }
    }

    /// Enters a function if that takes nothing but a frame, and gives its base and code; else
    /// nothing has happened.
    #[inline(always)]
    pub(super) fn enter_plain<'p>(
        &mut self,
        heap: &Heap,
        protos: &'p Arena<Loaded>,
        entry: Entry,
    ) -> Option<(usize, &'p Loaded)> {
        let proto_ref = heap.functions.at(entry.function.index()).proto;
        let loaded = protos.at(proto_ref.index());
        let proto = &loaded.proto;
        let mut base = entry.func + 1;
        let count = self.list_len(base, entry.args);
        let params = proto.params as usize;
        let mut varargs = 0;
        if proto.is_vararg {
            // Its arguments stay where they are, and the named ones are copied behind them.
            base += count;
            varargs = count.saturating_sub(params);
        }
        let has_room = self.stack.len() >= base + proto.registers as usize + WINDOW;
        if !has_room || !self.has_frames_left() {
            return None;
        }
        if proto.is_vararg {
            let from = entry.func + 1;
            copy_values(&mut self.stack, from, base, count.min(params));
        }
        if count < params {
            self.stack[base + count..base + params].fill(Value::Nil);
        }
        self.frames.push(Frame {
            callee: Callee::Lua { function: entry.function, proto: proto_ref },
            func: entry.func as u32,
            to: entry.to as u32,
            base: base as u32,
            pc: 0,
            wanted: i32::from(entry.results) - 1,
            varargs: varargs as u32,
            tail_calls: 0,
            kind: entry.kind,
        });
        Some((base, loaded))
    }

    /// Enters a function in place of the running one, if it takes no varargs and there is room;
    /// else nothing has happened.
    #[inline(always)]
    pub(super) fn replace_plain<'p>(
        &mut self,
        heap: &Heap,
        protos: &'p Arena<Loaded>,
        entry: Entry,
    ) -> Option<(usize, &'p Loaded)> {
        let proto_ref = heap.functions.at(entry.function.index()).proto;
        let loaded = protos.at(proto_ref.index());
        let proto = &loaded.proto;
        let count = self.list_len(entry.func + 1, entry.args);
        let params = proto.params as usize;
        let to = self.last().func as usize;
        let has_room = self.stack.len() >= to + 1 + proto.registers as usize + WINDOW;
        if proto.is_vararg || !has_room || !self.has_frames_left() {
            return None;
        }
        let given = count.min(params);
        self.stack.copy_within(entry.func..entry.func + 1 + given, to);
        self.stack[to + 1 + given..to + 1 + params].fill(Value::Nil);
        if let Some(frame) = self.frames.last_mut() {
            frame.callee = Callee::Lua { function: entry.function, proto: proto_ref };
            frame.base = to as u32 + 1;
            frame.pc = 0;
            frame.varargs = 0;
            frame.tail_calls = frame.tail_calls.wrapping_add(1);
        }
        Some((to + 1, loaded))
    }

    /// Lists the running function's further arguments, if there is room for them.
    #[inline]
    pub(super) fn list_varargs(&mut self, at: usize, count: u8) -> bool {
        let frame = self.last();
        let (base, varargs) = (frame.base as usize, frame.varargs as usize);
        let from = base - varargs;
        let wanted = match count {
            0 => varargs,
            count => count as usize - 1,
        };
        if self.stack.len() < at + wanted + WINDOW {
            return false;
        }
        let given = wanted.min(varargs);
        copy_values(&mut self.stack, from, at, given);
        self.stack[at + given..at + wanted].fill(Value::Nil);
        if count == 0 {
            self.top = at + varargs;
        }
        true
    }

    /// Returns `count` values, as instructions count, from the running function.
    #[inline(always)]
    pub(super) fn leave_plain(&mut self, from: usize, count: u8) -> Left {
        let count = self.list_len(from, count);
        let frame = self.frames.pop().expect("the frame that returns is there");
        let to = frame.to as usize;
        if frame.wanted == 1 && count == 1 {
            self.stack[to] = self.stack[from];
        } else if frame.wanted != 0 {
            self.deliver((to, from), count, frame.wanted);
        }
        match (self.frames.last(), frame.kind) {
            (Some(caller), FrameKind::Call) => Left::Caller(*caller),
            (Some(caller), FrameKind::Event) => Left::Event(*caller),
            _ => Left::Entry,
        }
    }

    /// Puts `count` results where the caller wants them.
    #[inline]
    pub(crate) fn deliver(&mut self, (to, from): (usize, usize), count: usize, wanted: i32) {
        let Coroutine { stack, top, .. } = self;
        match wanted {
            1 if count > 0 => stack[to] = stack[from],
            1 => stack[to] = Value::Nil,
            0 => {}
            ALL => {
                copy_values(stack, from, to, count);
                *top = to + count;
            }
            wanted => {
                let wanted = wanted as usize;
                let given = count.min(wanted);
                copy_values(stack, from, to, given);
                stack[to + given..to + wanted].fill(Value::Nil);
            }
        }
    }
}
