//! Frames of Lua functions that are entered and left without leaving the plain loop.

use super::{ALL, Callee, Coroutine, FrameKind, ONE_RESULT, WINDOW};
use crate::heap::{Arena, Heap};
use crate::limits::{CALL_DEPTH_MAX, CALL_DEPTH_SPARE};
use crate::state::Loaded;
use crate::value::{FuncRef, NativeRef, ProtoRef, Value};

/// Stands where a native has no code.
const NO_CODE: ProtoRef = ProtoRef(u32::MAX);

/// Frames that a stack has room for as soon as it has one.
const FRAMES_MIN: usize = 8;

/// A call that has not returned.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame {
    /// The function: a native's number if there is no code.
    pub(super) function: u32,
    pub(super) code: ProtoRef,
    /// Where the function stands on the stack.
    pub(crate) func: u32,
    /// Where results go: to where the function stands, or to a register that an instruction fills.
    pub(crate) to: u32,
    /// Where its registers begin.
    pub(crate) base: u32,
    /// The next instruction.
    pub(crate) pc: u32,
    /// Frames that gave way to this one by tail calls.
    pub(crate) tail_calls: u32,
    /// Results that the caller wants, or `ALL`.
    pub(crate) wanted: i16,
    pub(crate) kind: FrameKind,
}

impl Default for Frame {
    fn default() -> Self {
        Frame::new(Callee::Native(NativeRef::default()), 0, 0)
    }
}

impl Frame {
    /// The frame of a call that begins, with its registers behind the function.
    #[inline(always)]
    pub(super) fn new(callee: Callee, func: usize, wanted: i16) -> Self {
        let (function, code) = match callee {
            Callee::Lua { function, proto } => (function.0, proto),
            Callee::Native(native) => (native.0, NO_CODE),
        };
        Frame {
            function,
            code,
            func: func as u32,
            to: func as u32,
            base: func as u32 + 1,
            pc: 0,
            tail_calls: 0,
            wanted,
            kind: FrameKind::Call,
        }
    }

    #[inline]
    pub(crate) fn callee(&self) -> Callee {
        match self.code {
            NO_CODE => Callee::Native(NativeRef(self.function)),
            proto => Callee::Lua { function: FuncRef(self.function), proto },
        }
    }

    pub(crate) fn set_callee(&mut self, callee: Callee) {
        (self.function, self.code) = match callee {
            Callee::Lua { function, proto } => (function.0, proto),
            Callee::Native(native) => (native.0, NO_CODE),
        };
    }

    /// The function of a frame that has code.
    #[inline(always)]
    pub(super) fn lua(&self) -> (FuncRef, ProtoRef) {
        (FuncRef(self.function), self.code)
    }

    /// How many arguments there are beyond the named ones, which so many are, in a function that
    /// takes any number: they stay where the caller put them, before the registers.
    #[inline(always)]
    pub(super) fn varargs(&self, params: u8) -> usize {
        ((self.base - self.func) as usize).saturating_sub(params as usize + 1)
    }
}

/// The calls of one stack.
#[derive(Debug, Default)]
pub(crate) struct Frames {
    /// Never more than there may be calls, so that a place that is there may be used.
    slots: Vec<Frame>,
    len: usize,
    /// Frames beyond `CALL_DEPTH_MAX` that an error of too many left for its handler.
    spare: usize,
}

impl std::ops::Deref for Frames {
    type Target = [Frame];

    #[inline(always)]
    fn deref(&self) -> &[Frame] {
        &self.slots[..self.len]
    }
}

impl std::ops::DerefMut for Frames {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [Frame] {
        &mut self.slots[..self.len]
    }
}

impl Frames {
    /// One more call, if there is a place for it.
    #[inline(always)]
    fn push_plain(&mut self, frame: Frame) -> bool {
        let Some(slot) = self.slots.get_mut(self.len) else { return false };
        *slot = frame;
        self.len += 1;
        true
    }

    /// One more call, which there may be.
    #[inline]
    pub(super) fn push(&mut self, frame: Frame) {
        if !self.has_place() {
            self.grow();
        }
        self.push_plain(frame);
    }

    #[cold]
    fn grow(&mut self) {
        let room = (self.len * 2).max(FRAMES_MIN).min(CALL_DEPTH_MAX + self.spare);
        self.slots.resize(room.max(self.len + 1), Frame::default());
    }

    /// Whether there may be one more.
    #[inline]
    pub(super) fn may_grow(&self) -> bool {
        self.len < CALL_DEPTH_MAX + self.spare
    }

    #[inline(always)]
    pub(super) fn pop(&mut self) -> Option<&Frame> {
        let len = self.len.checked_sub(1)?;
        self.len = len;
        self.slots.get(len)
    }

    fn has_place(&self) -> bool {
        self.len < self.slots.len()
    }

    /// Leaves the running function as `leave_plain` does, in the most common case: a call of Lua
    /// code that wants no value, or the one that it gets. Where that goes is then to be filled.
    /// None in any other case, with nothing changed.
    #[inline(always)]
    pub(super) fn leave_call(&mut self, count: u8) -> Option<Option<usize>> {
        let callee = self.slots.get(self.len.wrapping_sub(1))?;
        if callee.kind != FrameKind::Call {
            return None;
        }
        let to = match callee.wanted {
            1 if count == ONE_RESULT => Some(callee.to as usize),
            0 => None,
            _ => return None,
        };
        self.len -= 1;
        Some(to)
    }

    pub(crate) fn clear(&mut self) {
        self.len = 0;
    }

    /// Whether the handler of an error of too many calls has its room already; from now on it has.
    pub(super) fn add_spare(&mut self) -> bool {
        std::mem::replace(&mut self.spare, CALL_DEPTH_SPARE) > 0
    }

    /// Drops the calls beyond so many.
    pub(super) fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
        if len < CALL_DEPTH_MAX {
            self.spare = 0;
            self.slots.truncate(CALL_DEPTH_MAX);
        }
    }

    /// Gives back the room for more than so many.
    pub(super) fn shrink(&mut self, room: usize) {
        self.slots.truncate(room.max(self.len));
        self.slots.shrink_to_fit();
    }

    pub(crate) fn room_bytes(&self) -> usize {
        self.slots.capacity() * size_of::<Frame>()
    }
}

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

impl Entry {
    /// A plain call, whose results go to where the function stands.
    #[inline(always)]
    pub(super) fn call(function: FuncRef, func: usize, (args, results): (u8, u8)) -> Self {
        Entry { function, func, args, results, to: func, kind: FrameKind::Call }
    }
}

/// Where a return leads.
pub(super) enum Left {
    /// Out of the machine.
    Entry,
    Caller,
    /// To the instruction behind the one that needed a metamethod.
    Event,
}

/// A count as instructions give it: plus 1, or 0 for all up to the top.
#[inline(always)]
pub(super) fn list_len(top: usize, from: usize, count: u8) -> usize {
    match count {
        0 => top.saturating_sub(from),
        count => count as usize - 1,
    }
}

/// The registers at a base, if the stack reaches far enough.
#[inline(always)]
pub(super) fn window(stack: &mut [Value], base: usize) -> Option<&mut [Value; WINDOW]> {
    // A stack is short enough for these; and what is of 32 bits has an end, as far as the
    // compiler knows.
    let base = base as u32 as usize;
    stack.get_mut(base..base + WINDOW)?.first_chunk_mut()
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

/// What a call goes by: the functions, their code, and the end of a list of open length.
#[derive(Clone, Copy)]
pub(super) struct Callees<'h, 'p> {
    pub(super) heap: &'h Heap,
    pub(super) protos: &'p Arena<Loaded>,
    pub(super) top: usize,
}

/// Where a function that was entered goes on: its base, its code and its registers.
pub(super) type Running<'s, 'p> = (usize, &'p Loaded, &'s mut [Value; WINDOW]);

/// Enters a function if that takes nothing but a frame; else nothing has happened.
#[inline(always)]
pub(super) fn enter_plain<'s, 'p>(
    frames: &mut Frames,
    stack: &'s mut [Value],
    callees: Callees<'_, 'p>,
    entry: Entry,
) -> Option<Running<'s, 'p>> {
    let code = callees.heap.functions.at(entry.function.index()).proto;
    let loaded = callees.protos.at(code.index());
    let proto = &loaded.proto;
    let mut base = entry.func + 1;
    let count = list_len(callees.top, base, entry.args);
    let params = proto.params as usize;
    if proto.is_vararg {
        // Its arguments stay where they are, and the named ones are copied behind them.
        base += count;
        window(stack, base)?;
        copy_values(stack, entry.func + 1, base, count.min(params));
    }
    let r = window(stack, base)?;
    let is_entered = frames.push_plain(Frame {
        function: entry.function.0,
        code,
        func: entry.func as u32,
        to: entry.to as u32,
        base: base as u32,
        pc: 0,
        tail_calls: 0,
        wanted: i16::from(entry.results) - 1,
        kind: entry.kind,
    });
    if !is_entered {
        return None;
    }
    if count < params {
        r[count..params].fill(Value::Nil);
    }
    Some((base, loaded, r))
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
        let Frames { slots, len, .. } = &mut self.frames;
        if let Some(frame) = slots.get_mut(len.wrapping_sub(1)) {
            frame.pc = pc as u32;
        }
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
        if proto.is_vararg || !has_room || !self.frames.has_place() {
            return None;
        }
        let given = count.min(params);
        self.stack.copy_within(entry.func..entry.func + 1 + given, to);
        self.stack[to + 1 + given..to + 1 + params].fill(Value::Nil);
        if let Some(frame) = self.frames.last_mut() {
            (frame.function, frame.code) = (entry.function.0, proto_ref);
            frame.base = to as u32 + 1;
            frame.pc = 0;
            frame.tail_calls = frame.tail_calls.wrapping_add(1);
        }
        Some((to + 1, loaded))
    }

    /// Puts so many of the running function's further arguments in its registers from `a` on.
    #[inline(never)]
    pub(super) fn bind_varargs(&mut self, params: u8, a: u8, wanted: usize) {
        let frame = self.last();
        let (base, varargs) = (frame.base as usize, frame.varargs(params));
        let (below, registers) = self.stack.split_at_mut(base);
        let (args, slots) = (&below[base - varargs..], &mut registers[a as usize..][..wanted]);
        // A few are copied one by one, which is done before a call for the copy had begun.
        match (slots, args) {
            ([first], [one, ..]) => *first = *one,
            ([first, second], [one, two, ..]) => (*first, *second) = (*one, *two),
            ([first, second, third], [one, two, three, ..]) => {
                (*first, *second, *third) = (*one, *two, *three);
            }
            (slots, args) => {
                let given = wanted.min(varargs);
                slots[..given].copy_from_slice(&args[..given]);
                slots[given..].fill(Value::Nil);
            }
        }
    }

    /// Lists the running function's further arguments, if there is room for them.
    #[inline]
    pub(super) fn list_varargs(&mut self, params: u8, at: usize, count: u8) -> bool {
        let frame = self.last();
        let (base, varargs) = (frame.base as usize, frame.varargs(params));
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

    /// Returns `count` values, as instructions count, from the running function. The frame that it
    /// leads to is the last one then.
    #[inline(always)]
    pub(super) fn leave_plain(&mut self, from: usize, count: u8) -> Left {
        let count = self.list_len(from, count);
        let frame = self.frames.pop().expect("the frame that returns is there");
        let (to, wanted, kind) = (frame.to as usize, frame.wanted, frame.kind);
        if wanted == 1 && count == 1 {
            self.stack[to] = self.stack[from];
        } else if wanted != 0 {
            self.deliver((to, from), count, wanted);
        }
        match kind {
            FrameKind::Call => Left::Caller,
            FrameKind::Event => Left::Event,
            FrameKind::Entry => Left::Entry,
        }
    }

    /// Puts `count` results where the caller wants them.
    #[inline]
    pub(crate) fn deliver(&mut self, (to, from): (usize, usize), count: usize, wanted: i16) {
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
