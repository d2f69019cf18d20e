//! Entering and leaving functions.

use super::frames::{Callees, Entry, enter_plain};
use super::macros::enter;
use super::{ALL, Callee, Frame, FrameKind, NO_RESULT, ONE_RESULT, STACK_SLOT_BYTES, WINDOW};
use crate::call::Call;
use crate::fault::{Fault, HANDLER_FAILED};
use crate::heap::NativeCode;
use crate::host::{Host, NoHost};
use crate::limits::{NATIVE_DEPTH_END, NATIVE_DEPTH_MAX, STACK_VALUES_MAX};
use crate::proto::Op;
use crate::state::{Event, State};
use crate::value::{FuncRef, NativeRef, Value};

/// What `enter` did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Entered {
    /// A frame waits to be run.
    Lua,
    /// A native has run; its results are in place.
    Done,
}

impl State {
    pub(crate) fn push(&mut self, value: Value) -> Result<(), Fault> {
        let top = self.current.top;
        self.ensure_stack(top + 1)?;
        self.current.stack[top] = value;
        self.current.top = top + 1;
        Ok(())
    }

    /// Makes room on the stack up to this index and a window beyond it.
    #[inline(always)]
    pub(crate) fn ensure_stack(&mut self, top: usize) -> Result<(), Fault> {
        if self.current.stack.len() < top + WINDOW { self.grow_stack(top) } else { Ok(()) }
    }

    #[cold]
    fn grow_stack(&mut self, top: usize) -> Result<(), Fault> {
        if top > STACK_VALUES_MAX {
            return Err(self.runtime_error("stack overflow"));
        }
        let wanted = (top + WINDOW).max(self.current.stack.len() * 2);
        let len = wanted.min(STACK_VALUES_MAX + WINDOW);
        if let Some(thread) = self.thread {
            let more = (len - self.current.stack.len()) * STACK_SLOT_BYTES;
            self.heap.take_stack(thread, more)?;
        }
        self.current.stack.resize(len, Value::Nil);
        Ok(())
    }

    /// Where a call made by the current frame may put its function and arguments.
    fn scratch(&self) -> usize {
        let frame = self.current.frames.last();
        match frame.map(|frame| (frame.callee(), frame.base)) {
            Some((Callee::Lua { proto, .. }, base)) => {
                base as usize + self.protos.at(proto.index()).proto.registers as usize
            }
            _ => self.current.top,
        }
    }

    /// Calls a value from Rust; results start at the returned index and end at the top.
    pub(crate) fn call_value(
        &mut self,
        host: &mut dyn Host,
        function: Value,
        args: &[Value],
        wanted: i16,
    ) -> Result<usize, Fault> {
        let func = self.scratch();
        self.ensure_stack(func + args.len() + 1)?;
        self.current.stack[func] = function;
        self.current.stack[func + 1..func + 1 + args.len()].copy_from_slice(args);
        self.current.top = func + 1 + args.len();
        self.call_at(host, func, args.len(), wanted)?;
        Ok(func)
    }

    /// As `call_value`, for one result.
    pub(crate) fn call_one(
        &mut self,
        host: &mut dyn Host,
        function: Value,
        args: &[Value],
    ) -> Result<Value, Fault> {
        let top = self.current.top;
        let func = self.call_value(host, function, args, 1)?;
        let value = self.current.stack[func];
        self.current.top = top;
        Ok(value)
    }

    /// As `call_one`, for what is called most from Rust: metamethods and order functions, which as
    /// a rule are Lua functions.
    pub(crate) fn call_pair(
        &mut self,
        host: &mut dyn Host,
        function: Value,
        args: [Value; 2],
    ) -> Result<Value, Fault> {
        let (top, func) = (self.current.top, self.scratch());
        if !self.enter_quick((func, function), args, (func, ONE_RESULT), FrameKind::Entry) {
            return self.call_one(host, function, &args);
        }
        self.run_entry(host)?;
        self.current.top = top;
        Ok(self.current.stack[func])
    }

    /// Runs the entry frame that was made last.
    #[inline(always)]
    fn run_entry(&mut self, host: &mut dyn Host) -> Result<(), Fault> {
        self.heap.steps_left = self.heap.steps_left.saturating_sub(1).max(1);
        self.depth += 1;
        self.run(host)?;
        self.depth -= 1;
        Ok(())
    }

    /// Enters a metamethod that the running instruction needs, if that takes nothing but a frame.
    /// What it gives goes to a place of the stack, and the machine goes on behind the instruction.
    #[inline(always)]
    pub(super) fn enter_event<const N: usize>(
        &mut self,
        function: Value,
        args: [Value; N],
        (to, results): (usize, u8),
    ) -> bool {
        let func = self.scratch();
        if !self.enter_quick((func, function), args, (to, results), FrameKind::Event) {
            return false;
        }
        self.heap.steps_left = self.heap.steps_left.saturating_sub(1).max(1);
        self.depth += 1;
        true
    }

    /// As `enter_event`, for one that stands on the stack with its arguments.
    pub(super) fn enter_event_at(
        &mut self,
        func: usize,
        (to, args, results): (usize, u8, u8),
    ) -> bool {
        let Value::Function(function) = self.current.stack[func] else { return false };
        if self.depth + 1 >= NATIVE_DEPTH_MAX {
            return false;
        }
        let kind = FrameKind::Event;
        let entry = Entry { function, func, args, results, to, kind };
        if enter!(self, entry).is_none() {
            return false;
        }
        self.heap.steps_left = self.heap.steps_left.saturating_sub(1).max(1);
        self.depth += 1;
        true
    }

    /// Makes the frame of a Lua function that is called from Rust, if that takes nothing but the
    /// frame.
    #[inline(always)]
    fn enter_quick<const N: usize>(
        &mut self,
        (func, function): (usize, Value),
        args: [Value; N],
        (to, results): (usize, u8),
        kind: FrameKind,
    ) -> bool {
        let Value::Function(callee) = function else { return false };
        if self.depth + 1 >= NATIVE_DEPTH_MAX {
            return false;
        }
        let Some([slot, slots @ ..]) = self.current.stack.get_mut(func..) else { return false };
        let Some(slots) = slots.first_chunk_mut::<N>() else { return false };
        *slot = function;
        *slots = args;
        let args = N as u8 + 1;
        let entry = Entry { function: callee, func, args, results, to, kind };
        enter!(self, entry).is_some()
    }

    /// As `call_value`, for a metamethod that gives nothing.
    pub(crate) fn call_for_nothing(
        &mut self,
        host: &mut dyn Host,
        function: Value,
        args: [Value; 3],
    ) -> Result<(), Fault> {
        let (top, func) = (self.current.top, self.scratch());
        if self.enter_quick((func, function), args, (func, NO_RESULT), FrameKind::Entry) {
            self.run_entry(host)?;
        } else {
            self.call_value(host, function, &args, 0)?;
        }
        self.current.top = top;
        Ok(())
    }

    pub(crate) fn call_all(
        &mut self,
        host: &mut dyn Host,
        function: Value,
        args: &[Value],
    ) -> Result<Vec<Value>, Fault> {
        let top = self.current.top;
        let func = self.call_value(host, function, args, ALL)?;
        let values = self.current.stack[func..self.current.top].to_vec();
        self.current.top = top;
        Ok(values)
    }

    /// Calls what stands on the stack and returns when it has returned.
    pub(crate) fn call_at(
        &mut self,
        host: &mut dyn Host,
        func: usize,
        count: usize,
        wanted: i16,
    ) -> Result<(), Fault> {
        self.nest()?;
        if self.enter(host, func, count, wanted)? == Entered::Lua {
            if let Some(frame) = self.current.frames.last_mut() {
                frame.kind = FrameKind::Entry;
            }
            self.run(host)?;
        }
        self.depth -= 1;
        Ok(())
    }

    /// Goes one deeper. After an error the depth stays what it was where the error was raised, for
    /// a handler runs from there; who catches the error sets it back.
    #[inline]
    pub(super) fn nest(&mut self) -> Result<(), Fault> {
        self.depth += 1;
        if self.depth < NATIVE_DEPTH_MAX { Ok(()) } else { self.nested_deep() }
    }

    #[cold]
    fn nested_deep(&mut self) -> Result<(), Fault> {
        match self.depth {
            NATIVE_DEPTH_MAX => Err(self.runtime_error("C stack overflow")),
            depth if depth < NATIVE_DEPTH_END => Ok(()),
            _ => Err(self.heap.fault(HANDLER_FAILED)),
        }
    }

    #[cold]
    fn too_many_calls(&mut self) -> Fault {
        if self.current.frames.add_spare() {
            return self.heap.fault(HANDLER_FAILED);
        }
        self.runtime_error("stack overflow")
    }

    /// Starts the call of what stands at `func`, with `count` arguments behind it.
    pub(crate) fn enter(
        &mut self,
        host: &mut dyn Host,
        func: usize,
        count: usize,
        wanted: i16,
    ) -> Result<Entered, Fault> {
        match self.current.stack[func] {
            Value::Function(function) => self.enter_lua(function, func, count, wanted),
            Value::Native(native) => self.enter_native(host, (native, func), count, wanted),
            other => {
                let handler = self.event_of(other, Event::Call);
                if !matches!(handler, Value::Function(_) | Value::Native(_)) {
                    // What calls a metamethod has a name for its operand, not for the metamethod.
                    let operand = self.is_at_call().then_some(0);
                    return Err(self.type_fault("call", other, operand));
                }
                self.ensure_stack(func + count + 2)?;
                self.current.stack.copy_within(func..func + count + 1, func + 1);
                self.current.stack[func] = handler;
                self.current.top = func + count + 2;
                self.enter(host, func, count + 1, wanted)
            }
        }
    }

    /// Whether the running instruction is a call.
    #[cold]
    fn is_at_call(&self) -> bool {
        self.current.frames.last().is_some_and(|frame| self.is_call(frame))
    }

    /// Whether the last instruction of a frame was a call.
    pub(super) fn is_call(&self, frame: &Frame) -> bool {
        let Callee::Lua { proto, .. } = frame.callee() else { return false };
        let code = &self.protos.at(proto.index()).proto.code;
        let op = (frame.pc as usize).checked_sub(1).and_then(|at| code.get(at));
        matches!(op, Some(Op::Call { .. } | Op::TailCall { .. }))
    }

    fn enter_lua(
        &mut self,
        function: FuncRef,
        func: usize,
        count: usize,
        wanted: i16,
    ) -> Result<Entered, Fault> {
        if !self.current.frames.may_grow() {
            return Err(self.too_many_calls());
        }
        let proto_ref = self.heap.functions.at(function.index()).proto;
        let proto = &self.protos.at(proto_ref.index()).proto;
        let (params, is_vararg) = (proto.params as usize, proto.is_vararg);
        let registers = proto.registers as usize;
        let base = if is_vararg { func + 1 + count } else { func + 1 };
        self.ensure_stack(base + registers)?;
        let stack = &mut self.current.stack;
        if is_vararg {
            let given = count.min(params);
            stack.copy_within(func + 1..func + 1 + given, base);
        }
        if count < params {
            stack[base + count..base + params].fill(Value::Nil);
        }
        let callee = Callee::Lua { function, proto: proto_ref };
        let base = base as u32;
        self.current.frames.push(Frame { base, ..Frame::new(callee, func, wanted) });
        self.heap.steps_left = self.heap.steps_left.saturating_sub(1).max(1);
        Ok(Entered::Lua)
    }

    #[inline(never)]
    pub(crate) fn enter_native(
        &mut self,
        host: &mut dyn Host,
        (native, func): (NativeRef, usize),
        count: usize,
        wanted: i16,
    ) -> Result<Entered, Fault> {
        if !self.current.frames.may_grow() {
            return Err(self.too_many_calls());
        }
        let base = func + 1;
        self.ensure_stack(base + count)?;
        self.current.top = base + count;
        let code = self.heap.natives.at(native.index()).code;
        if matches!(code, NativeCode::Yield(_)) && self.may_yield() {
            self.current.waiting = Some((func as u32, wanted));
            return Err(Fault::Yield);
        }
        self.current.frames.push(Frame::new(Callee::Native(native), func, wanted));
        let held = self.held.len();
        let outcome = match code {
            NativeCode::Ours(code)
            | NativeCode::Quick(_, code)
            | NativeCode::Making(_, code)
            | NativeCode::Step(_, code)
            | NativeCode::Yield(code)
            | NativeCode::Resume(code)
            | NativeCode::Wrapped(code) => {
                let mut call = Call { state: self, host, base, count, native };
                code(&mut call)
            }
            NativeCode::Host(number) => {
                let mut none = NoHost;
                let mut call = Call { state: self, host: &mut none, base, count, native };
                host.native(number, &mut call)
            }
            NativeCode::Free => Ok(0),
        };
        self.held.truncate(held);
        let made = outcome?;
        let from = self.current.top - made.min(self.current.top - func);
        self.current.frames.pop();
        self.current.deliver((func, from), made, wanted);
        self.native_is_over(host)?;
        Ok(Entered::Done)
    }

    /// Behind a call of a native: it counts as a step, and may have made garbage.
    #[inline(always)]
    pub(super) fn native_is_over(&mut self, host: &mut dyn Host) -> Result<(), Fault> {
        self.heap.steps_left = self.heap.steps_left.saturating_sub(1).max(1);
        if self.heap.steps_left == 1 {
            self.tick(host)?;
        }
        self.collect_if_due();
        Ok(())
    }

    /// Returns from the topmost frame; whether it was the entry.
    #[inline]
    pub(crate) fn leave(&mut self, from: usize, count: usize) -> bool {
        let frame = *self.current.frames.pop().expect("the frame that returns is there");
        self.current.deliver((frame.to as usize, from), count, frame.wanted);
        if frame.kind == FrameKind::Event {
            self.depth -= 1;
        }
        frame.kind == FrameKind::Entry
    }

    /// Calls in place of the running frame; whether `run` is to return.
    pub(crate) fn tail_call(
        &mut self,
        host: &mut dyn Host,
        func: usize,
        count: usize,
    ) -> Result<bool, Fault> {
        if self.enter(host, func, count, ALL)? == Entered::Done {
            let count = self.current.top - func;
            return Ok(self.leave(func, count));
        }
        let frames = &mut self.current.frames;
        let callee = *frames.pop().expect("it was pushed a moment ago");
        let caller = *frames.pop().expect("a frame that makes a call is there");
        // The callee moves down to where the caller was.
        let (from, to) = (callee.func as usize, caller.func as usize);
        let params = match callee.callee() {
            Callee::Lua { proto, .. } => self.protos.at(proto.index()).proto.params,
            Callee::Native(_) => 0,
        };
        let used = callee.base as usize - from + params as usize;
        self.current.stack.copy_within(from..from + used, to);
        self.current.frames.push(Frame {
            func: caller.func,
            to: caller.to,
            base: callee.base - (callee.func - caller.func),
            wanted: caller.wanted,
            tail_calls: caller.tail_calls + 1,
            kind: caller.kind,
            ..callee
        });
        self.ensure_stack(callee.base as usize)?;
        if self.heap.steps_left == 1 {
            self.tick(host)?;
        }
        Ok(false)
    }
}
