//! Coroutines. A coroutine has its own stack; it can be left only from Lua code that no native, no
//! metamethod and no `pcall` stands between.

use crate::call::{Call, NativeFn, Outcome};
use crate::fault::Fault;
use crate::heap::NativeCode;
use crate::host::Host;
use crate::limits::NATIVE_DEPTH_MAX;
use crate::number::TextBuffer;
use crate::state::State;
use crate::value::{ThreadRef, Value};
use crate::vm::{ALL, Coroutine, Entered, FrameKind, Status};
use std::ops::Range;

pub(super) fn open(state: &mut State) -> Result<(), Fault> {
    let globals = state.globals();
    let library = state.define_table(globals, "coroutine")?;
    let functions: &[(&str, NativeFn)] =
        &[("create", create), ("running", running), ("status", status), ("wrap", wrap)];
    for (name, code) in functions {
        state.define(library, name, *code)?;
    }
    state.define_native(library, "resume", NativeCode::Resume(resume))?;
    state.define_native(library, "yield", NativeCode::Yield(yield_refused))
}

fn make(call: &mut Call<'_>) -> Result<ThreadRef, Fault> {
    let Value::Function(function) = call.arg(1) else {
        return Err(call.arg_error(1, "Lua function expected"));
    };
    let mut coroutine = Coroutine::new();
    coroutine.stack[0] = Value::Function(function);
    coroutine.top = 1;
    call.heap().take(coroutine.size_bytes())?;
    Ok(ThreadRef(call.heap().threads.add(coroutine)))
}

fn create(call: &mut Call<'_>) -> Outcome {
    let thread = make(call)?;
    call.give(Value::Thread(thread))
}

fn wrap(call: &mut Call<'_>) -> Outcome {
    let thread = make(call)?;
    let code = NativeCode::Wrapped(resume_wrapped);
    match call.heap().try_native(code, &[Value::Thread(thread)]) {
        Ok(native) => call.give(Value::Native(native)),
        Err(refusal) => Err(call.heap().fault_of(refusal)),
    }
}

fn thread_arg(call: &mut Call<'_>) -> Result<ThreadRef, Fault> {
    match call.arg(1) {
        Value::Thread(thread) => Ok(thread),
        _ => Err(call.arg_error(1, "coroutine expected")),
    }
}

fn resume(call: &mut Call<'_>) -> Outcome {
    let thread = thread_arg(call)?;
    let args = call.base + 1..call.base + call.count;
    let values = call.state.resume(call.host, thread, args);
    call.state.push_resumed(thread, values, false)
}

fn resume_wrapped(call: &mut Call<'_>) -> Outcome {
    let Value::Thread(thread) = call.upvalue(0) else { return call.give_none() };
    let args = call.base..call.base + call.count;
    let values = call.state.resume(call.host, thread, args);
    call.state.push_resumed(thread, values, true)
}

fn running(call: &mut Call<'_>) -> Outcome {
    match call.state.thread {
        Some(thread) => call.give(Value::Thread(thread)),
        None => call.give(Value::Nil),
    }
}

fn status(call: &mut Call<'_>) -> Outcome {
    let thread = thread_arg(call)?;
    let text = match call.state.status_of(thread) {
        Status::Suspended => "suspended",
        Status::Running => "running",
        Status::Normal => "normal",
        Status::Dead => "dead",
    };
    call.give_bytes(text.as_bytes())
}

/// See [`State::may_yield`].
fn yield_refused(call: &mut Call<'_>) -> Outcome {
    let text = "attempt to yield across metamethod/C-call boundary";
    Err(call.state.runtime_error(text))
}

impl State {
    /// Whether nothing stands between the running code and who resumed its coroutine.
    #[inline]
    pub(crate) fn may_yield(&self) -> bool {
        self.thread.is_some() && self.depth <= self.depth_of_thread
    }

    fn status_of(&self, thread: ThreadRef) -> Status {
        if self.thread == Some(thread) {
            return Status::Running;
        }
        if self.resumers.contains(&Some(thread)) {
            return Status::Normal;
        }
        self.heap.threads.at(thread.index()).status
    }

    /// Runs a coroutine until it yields or ends, with values of the stack as its arguments. Where
    /// on its stack is what it passed or returned.
    fn resume(
        &mut self,
        host: &mut dyn Host,
        thread: ThreadRef,
        args: Range<usize>,
    ) -> Result<Range<usize>, Fault> {
        let text = match self.status_of(thread) {
            Status::Suspended if self.depth >= NATIVE_DEPTH_MAX => {
                let coroutine = self.heap.threads.at_mut(thread.index());
                // COMPAT: one that never ran does not get another chance
                // (tests/corpus/limits.txt).
                if coroutine.waiting.is_none() {
                    coroutine.top = 0;
                    coroutine.status = Status::Dead;
                }
                "C stack overflow"
            }
            Status::Suspended => return self.resume_suspended(host, thread, args),
            Status::Dead => "cannot resume dead coroutine",
            Status::Running => "cannot resume running coroutine",
            Status::Normal => "cannot resume normal coroutine",
        };
        Err(self.heap.fault(text))
    }

    fn resume_suspended(
        &mut self,
        host: &mut dyn Host,
        thread: ThreadRef,
        args: Range<usize>,
    ) -> Result<Range<usize>, Fault> {
        self.heap.remember_thread(thread);
        std::mem::swap(&mut self.current, self.heap.threads.at_mut(thread.index()));
        let before = self.thread.replace(thread);
        self.resumers.push(before);
        let depth_before = (self.depth, self.depth_of_thread);
        self.depth += 1;
        self.depth_of_thread = self.depth;
        let outcome = self.go_on(host, thread, args);
        if matches!(outcome, Err(Fault::Killed)) {
            return Err(Fault::Killed);
        }
        (self.depth, self.depth_of_thread) = depth_before;
        self.resumers.pop();
        self.thread = before;
        std::mem::swap(&mut self.current, self.heap.threads.at_mut(thread.index()));
        self.stopped_values(thread, outcome)
    }

    /// Where what a coroutine passed or returned is on its stack, after the machine has stopped in
    /// it and gone back to who resumed it.
    pub(crate) fn stopped_values(
        &mut self,
        thread: ThreadRef,
        outcome: Result<(), Fault>,
    ) -> Result<Range<usize>, Fault> {
        let coroutine = self.heap.threads.at_mut(thread.index());
        match outcome {
            Ok(()) => {
                coroutine.status = Status::Dead;
                Ok(0..coroutine.top)
            }
            Err(Fault::Yield) => {
                let (func, _) = coroutine.waiting.expect("a yield says where it stands");
                let values = func as usize + 1..coroutine.top;
                coroutine.top = values.start;
                Ok(values)
            }
            Err(fault) => {
                coroutine.frames.clear();
                // It may have died of what its yield was to be given.
                coroutine.waiting = None;
                coroutine.status = Status::Dead;
                Err(fault)
            }
        }
    }

    /// Pushes what a resume gives: values of the coroutine's stack, after `true` unless it is
    /// wrapped, or its error. How many.
    pub(crate) fn push_resumed(
        &mut self,
        thread: ThreadRef,
        values: Result<Range<usize>, Fault>,
        is_wrapped: bool,
    ) -> Outcome {
        if !is_wrapped {
            self.push(Value::Bool(true))?;
        }
        match values.and_then(|values| self.push_from(thread, values)) {
            Ok(count) if is_wrapped => Ok(count),
            Ok(count) => Ok(count + 1),
            Err(Fault::Error(value)) if is_wrapped => Err(self.wrapped_fault(value)),
            Err(Fault::Error(value)) => {
                self.push(Value::Bool(false))?;
                self.push(value)?;
                Ok(2)
            }
            Err(fault) => Err(fault),
        }
    }

    /// The error of a wrapped coroutine, where it was called.
    fn wrapped_fault(&mut self, value: Value) -> Fault {
        let mut message = self.where_at(1);
        match value {
            Value::Str(text) => message.extend_from_slice(self.heap.bytes(text)),
            Value::Number(number) => message.extend_from_slice(TextBuffer::new().format(number)),
            _ => return Fault::Error(value),
        }
        self.heap.fault(message)
    }

    /// Pushes values of a stack in the heap; how many.
    #[inline(always)]
    fn push_from(&mut self, thread: ThreadRef, values: Range<usize>) -> Result<usize, Fault> {
        let (top, count) = (self.current.top, values.len());
        self.ensure_stack(top + count)?;
        let given = &self.heap.threads.at(thread.index()).stack[values];
        let slots = &mut self.current.stack[top..top + count];
        // To call for the copy of one takes longer than to copy it.
        match (slots, given) {
            ([slot], [value]) => *slot = *value,
            (slots, given) => slots.copy_from_slice(given),
        }
        self.current.top = top + count;
        Ok(count)
    }

    /// Runs the current stack with these values of its resumer's as arguments, or as results of the
    /// last yield.
    fn go_on(
        &mut self,
        host: &mut dyn Host,
        thread: ThreadRef,
        args: Range<usize>,
    ) -> Result<(), Fault> {
        let from = self.current.top;
        // The resumer's stack is where this one's was.
        let count = self.push_from(thread, args)?;
        match self.current.waiting.take() {
            None => self.start(host, count),
            Some((func, wanted)) => {
                self.current.deliver((func as usize, from), count, wanted);
                self.run(host)
            }
        }
    }

    fn start(&mut self, host: &mut dyn Host, count: usize) -> Result<(), Fault> {
        if self.enter(host, 0, count, ALL)? == Entered::Lua {
            if let Some(frame) = self.current.frames.last_mut() {
                frame.kind = FrameKind::Entry;
            }
            self.run(host)?;
        }
        Ok(())
    }
}
