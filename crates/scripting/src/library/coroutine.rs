//! Coroutines. A coroutine has its own stack; it can be left only from Lua code that no native, no
//! metamethod and no `pcall` stands between.

use crate::call::{Call, NativeFn, Outcome};
use crate::fault::Fault;
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
    let functions: &[(&str, NativeFn)] = &[
        ("create", create),
        ("resume", resume),
        ("running", running),
        ("status", status),
        ("wrap", wrap),
        ("yield", yield_),
    ];
    for (name, code) in functions {
        state.define(library, name, *code)?;
    }
    Ok(())
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
    let native = call.heap().native(resume_wrapped, &[Value::Thread(thread)])?;
    call.give(Value::Native(native))
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
    call.push(Value::Bool(true))?;
    match call.state.resume(call.host, thread, args) {
        Ok(count) => Ok(count + 1),
        Err(Fault::Error(value)) => call.give_two(false, value),
        Err(fault) => Err(fault),
    }
}

fn resume_wrapped(call: &mut Call<'_>) -> Outcome {
    let Value::Thread(thread) = call.upvalue(0) else { return call.give_none() };
    let args = call.base..call.base + call.count;
    match call.state.resume(call.host, thread, args) {
        Ok(count) => Ok(count),
        Err(Fault::Error(value @ (Value::Str(_) | Value::Number(_)))) => {
            let mut message = call.state.where_at(1);
            match value {
                Value::Str(text) => message.extend_from_slice(call.bytes(text)),
                Value::Number(number) => {
                    message.extend_from_slice(TextBuffer::new().format(number));
                }
                _ => {}
            }
            Err(call.heap().fault(message))
        }
        Err(fault) => Err(fault),
    }
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

fn yield_(call: &mut Call<'_>) -> Outcome {
    if call.state.thread.is_none() || call.state.depth > call.state.depth_of_thread {
        let text = "attempt to yield across metamethod/C-call boundary";
        return Err(call.state.runtime_error(text));
    }
    Err(Fault::Yield { count: call.arg_count() })
}

impl State {
    fn status_of(&self, thread: ThreadRef) -> Status {
        if self.thread == Some(thread) {
            return Status::Running;
        }
        if self.resumers.iter().any(|(waiting, _)| *waiting == Some(thread)) {
            return Status::Normal;
        }
        self.heap.threads.at(thread.index()).status
    }

    /// Runs a coroutine until it yields or ends, with values of the stack as its arguments. What it
    /// passed or returned is pushed; says how many.
    fn resume(
        &mut self,
        host: &mut dyn Host,
        thread: ThreadRef,
        args: Range<usize>,
    ) -> Result<usize, Fault> {
        let text = match self.status_of(thread) {
            Status::Suspended if self.depth >= NATIVE_DEPTH_MAX => "C stack overflow",
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
    ) -> Result<usize, Fault> {
        self.heap.remember_thread(thread);
        // If the run is killed in there, it stays dead.
        let away = Coroutine { status: Status::Dead, ..Coroutine::default() };
        let coroutine = std::mem::replace(self.heap.threads.at_mut(thread.index()), away);
        let waiting = std::mem::replace(&mut self.current, coroutine);
        let before = self.thread.replace(thread);
        self.resumers.push((before, waiting));
        let depth_before = (self.depth, self.depth_of_thread);
        self.depth += 1;
        self.depth_of_thread = self.depth;
        let outcome = self.go_on(host, args);
        if matches!(outcome, Err(Fault::Killed)) {
            return Err(Fault::Killed);
        }
        (self.depth, self.depth_of_thread) = depth_before;
        let (before, waiting) = self.resumers.pop().expect("it was pushed when this one started");
        let mut coroutine = std::mem::replace(&mut self.current, waiting);
        self.thread = before;
        let given = match outcome {
            Ok(values) => self.push_all(&coroutine.stack[values]),
            Err(fault) => {
                coroutine.frames.clear();
                coroutine.status = Status::Dead;
                Err(fault)
            }
        };
        *self.heap.threads.at_mut(thread.index()) = coroutine;
        given
    }

    /// Pushes values that are not on the current stack; how many.
    fn push_all(&mut self, values: &[Value]) -> Result<usize, Fault> {
        let (from, to) = (self.current.top, self.current.top + values.len());
        self.ensure_stack(to)?;
        self.current.stack[from..to].copy_from_slice(values);
        self.current.top = to;
        Ok(values.len())
    }

    /// Runs the current stack with these values of its resumer's as arguments, or as results of the
    /// last yield. Where on the stack its own values are then.
    fn go_on(&mut self, host: &mut dyn Host, args: Range<usize>) -> Result<Range<usize>, Fault> {
        let from = self.current.top;
        let to = from + args.len();
        self.ensure_stack(to)?;
        let (_, resumer) = self.resumers.last().expect("it was pushed when this one started");
        self.current.stack[from..to].copy_from_slice(&resumer.stack[args.clone()]);
        self.current.top = to;
        let outcome = match self.current.waiting.take() {
            None => self.start(host, args.len()),
            Some((func, wanted)) => {
                self.current.frames.pop();
                self.current.deliver((func as usize, from), args.len(), wanted);
                self.run(host)
            }
        };
        match outcome {
            Ok(()) => {
                self.current.status = Status::Dead;
                Ok(0..self.current.top)
            }
            Err(Fault::Yield { count }) => {
                let frame = self.current.frames.last().expect("a native's frame yields");
                self.current.waiting = Some((frame.to, frame.wanted));
                let end = self.current.top;
                self.current.top = end - count;
                Ok(self.current.top..end)
            }
            Err(fault) => Err(fault),
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
