//! What a native function sees: its arguments, the heap, and how to answer.
//!
//! Arguments are counted from 1, as in the messages about them. A native reads its arguments,
//! makes values through [`Call::heap`], and ends with one of `give`, `give_none`, `give_two`, or
//! any number of `push` and then `Ok(count)`. Work that grows with its input is declared with
//! `charge`, in pieces, so that a run can be ended in the middle of it.
//!
//! Garbage is collected while Lua code runs, so also during a call back into Lua. Arguments stay
//! good across it, and what they reach unless the callee changes that. Any other handle that is
//! needed afterwards must be given to [`Call::hold`] before. All handles stay good until such a
//! call: nothing is collected while a native itself runs.

use crate::fault::Fault;
use crate::heap::Heap;
use crate::host::{Host, Tick};
use crate::limits::STEPS_PER_TICK;
use crate::number;
use crate::state::State;
use crate::value::{NativeRef, StrRef, TableRef, Value};

/// How many of the pushed values are results.
pub type Outcome = Result<usize, Fault>;

pub type NativeFn = fn(&mut Call<'_>) -> Outcome;

/// The one result of a native that needs nothing but its arguments; `None` if these arguments need
/// more, or are wrong.
pub(crate) type QuickFn = fn(&Heap, &[Value]) -> Option<Value>;

/// As [`QuickFn`], for natives that make a string or change a table. What gives `None` has changed
/// nothing.
pub(crate) type MakingFn = fn(&mut Heap, &[Value]) -> Option<Value>;

/// What a loop goes through, turn by turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Walk {
    /// All entries, as `next` does.
    Entries,
    /// The elements 1..n, as the iterator of `ipairs` does.
    Elements,
}

/// Where a native keeps a value across calls back into Lua.
#[derive(Clone, Copy, Debug)]
pub struct Held(usize);

pub struct Call<'a> {
    pub(crate) state: &'a mut State,
    pub(crate) host: &'a mut dyn Host,
    pub(crate) base: usize,
    pub(crate) count: usize,
    pub(crate) native: NativeRef,
}

impl Call<'_> {
    pub fn heap(&mut self) -> &mut Heap {
        &mut self.state.heap
    }

    pub fn state(&mut self) -> &mut State {
        self.state
    }

    /// The bytes of a string; see also [`Call::heap`].
    pub fn bytes(&self, string: StrRef) -> &[u8] {
        self.state.heap.bytes(string)
    }

    // Arguments.

    pub fn arg_count(&self) -> usize {
        self.count
    }

    /// The argument, or nil if there are fewer.
    pub fn arg(&self, position: usize) -> Value {
        if self.is_none(position) {
            return Value::Nil;
        }
        self.state.current.stack[self.base + position - 1]
    }

    /// All arguments, and what they name.
    pub fn args(&self) -> (&Heap, &[Value]) {
        let args = self.state.current.stack.get(self.base..self.base + self.count);
        (&self.state.heap, args.unwrap_or_default())
    }

    /// Whether the argument was not given at all.
    pub fn is_none(&self, position: usize) -> bool {
        position == 0 || position > self.count
    }

    pub fn is_none_or_nil(&self, position: usize) -> bool {
        self.arg(position).is_nil()
    }

    /// Whether the caller does anything with what this function gives.
    pub fn has_wanted_results(&self) -> bool {
        self.state.current.frames.last().is_none_or(|frame| frame.wanted != 0)
    }

    /// Any value, but one must be given.
    pub fn any(&mut self, position: usize) -> Result<Value, Fault> {
        if self.is_none(position) {
            return Err(self.arg_error(position, "value expected"));
        }
        Ok(self.arg(position))
    }

    /// A string, or a number as a string.
    pub fn string(&mut self, position: usize) -> Result<StrRef, Fault> {
        match self.arg(position) {
            Value::Str(string) => Ok(string),
            Value::Number(number) => {
                let mut text = number::TextBuffer::new();
                self.state.heap.string(text.format(number))
            }
            _ => Err(self.type_error(position, "string")),
        }
    }

    /// A string, a number as a string, or `default` for nil and nothing.
    pub fn string_or(&mut self, position: usize, default: StrRef) -> Result<StrRef, Fault> {
        if self.is_none_or_nil(position) { Ok(default) } else { self.string(position) }
    }

    pub fn string_opt(&mut self, position: usize) -> Result<Option<StrRef>, Fault> {
        if self.is_none_or_nil(position) { Ok(None) } else { self.string(position).map(Some) }
    }

    /// A number, or a string that is one.
    pub fn number(&mut self, position: usize) -> Result<f64, Fault> {
        match self.arg(position) {
            Value::Number(number) => Ok(number),
            value => match self.state.heap.to_number(value) {
                Some(number) => Ok(number),
                None => Err(self.type_error(position, "number")),
            },
        }
    }

    /// A number without its fraction; one that does not fit becomes the least.
    pub fn integer(&mut self, position: usize) -> Result<i64, Fault> {
        self.number(position).map(number::to_integer)
    }

    pub fn integer_or(&mut self, position: usize, default: i64) -> Result<i64, Fault> {
        if self.is_none_or_nil(position) { Ok(default) } else { self.integer(position) }
    }

    pub fn table(&mut self, position: usize) -> Result<TableRef, Fault> {
        match self.arg(position) {
            Value::Table(table) => Ok(table),
            _ => Err(self.type_error(position, "table")),
        }
    }

    /// Any function.
    pub fn function(&mut self, position: usize) -> Result<Value, Fault> {
        match self.arg(position) {
            value @ (Value::Function(_) | Value::Native(_)) => Ok(value),
            _ => Err(self.type_error(position, "function")),
        }
    }

    /// Which function of its chunk a Lua function is; see [`KeysUse`](crate::KeysUse).
    pub fn function_number(&self, value: Value) -> Option<u32> {
        let Value::Function(function) = value else { return None };
        let code = self.state.heap.functions.at(function.index()).proto;
        Some(self.state.protos.at(code.index()).proto.number)
    }

    /// Whether a value is a function of ours or the host's that keeps nothing from call to call.
    pub fn is_stateless_native(&self, value: Value) -> bool {
        let Value::Native(native) = value else { return false };
        self.state.heap.natives.at(native.index()).upvalues.is_empty()
    }

    /// A value kept with this function when it was made.
    pub fn upvalue(&self, index: usize) -> Value {
        let upvalues = &self.state.heap.natives.at(self.native.index()).upvalues;
        upvalues.get(index).copied().unwrap_or_default()
    }

    pub fn set_upvalue(&mut self, index: usize, value: Value) {
        self.state.heap.set_native_upvalue(self.native, index, value);
    }

    // Results.

    /// Adds a result.
    pub fn push(&mut self, value: Value) -> Result<(), Fault> {
        self.state.push(value)
    }

    /// Takes the last result back.
    pub(crate) fn pop(&mut self) -> Value {
        let current = &mut self.state.current;
        current.top -= 1;
        current.stack[current.top]
    }

    /// One result.
    pub fn give(&mut self, value: impl Into<Value>) -> Outcome {
        self.push(value.into())?;
        Ok(1)
    }

    pub fn give_two(&mut self, first: impl Into<Value>, second: impl Into<Value>) -> Outcome {
        self.push(first.into())?;
        self.push(second.into())?;
        Ok(2)
    }

    pub fn give_none(&mut self) -> Outcome {
        Ok(0)
    }

    pub fn give_bytes(&mut self, bytes: &[u8]) -> Outcome {
        let string = self.state.heap.string(bytes)?;
        self.give(string)
    }

    pub fn give_owned(&mut self, bytes: Vec<u8>) -> Outcome {
        let string = self.state.heap.string_owned(bytes)?;
        self.give(string)
    }

    // Errors.

    /// An error with the position of the Lua code that called this function.
    pub fn error(&mut self, text: impl AsRef<[u8]>) -> Fault {
        self.state.error_at(1, text.as_ref())
    }

    /// "bad argument #1 to 'name' (text)", by the name that the caller used.
    pub fn arg_error(&mut self, position: usize, text: impl AsRef<[u8]>) -> Fault {
        self.state.argument_error(position, text.as_ref())
    }

    /// "... (number expected, got nil)"
    pub fn type_error(&mut self, position: usize, expected: &str) -> Fault {
        let got = if self.is_none(position) { "no value" } else { self.arg(position).type_name() };
        self.arg_error(position, format!("{expected} expected, got {got}"))
    }

    /// The script and line that called this function: "user_script", 3.
    pub fn position(&self) -> Option<(&[u8], u32)> {
        self.state.position(1)
    }

    // Back into Lua.

    /// Keeps a value from being collected until this function returns; where it is kept.
    pub fn hold(&mut self, value: Value) -> Held {
        self.state.held.push(value);
        Held(self.state.held.len() - 1)
    }

    /// Keeps another value in its place.
    pub fn hold_in(&mut self, held: Held, value: Value) {
        if let Some(slot) = self.state.held.get_mut(held.0) {
            *slot = value;
        }
    }

    /// Calls a value with these arguments; its first result, or nil.
    pub fn call(&mut self, function: Value, args: &[Value]) -> Result<Value, Fault> {
        self.state.call_one(self.host, function, args)
    }

    /// As `call`, for two arguments.
    pub(crate) fn call_pair(&mut self, function: Value, args: [Value; 2]) -> Result<Value, Fault> {
        self.state.call_pair(self.host, function, args)
    }

    /// Calls a value and gives all its results.
    pub fn call_all(&mut self, function: Value, args: &[Value]) -> Result<Vec<Value>, Fault> {
        self.state.call_all(self.host, function, args)
    }

    /// As `call`, but a Lua error comes back as a value, with everything it left behind undone.
    pub fn call_caught(
        &mut self,
        function: Value,
        args: &[Value],
    ) -> Result<Result<Value, Value>, Fault> {
        let (frames, top) = (self.state.current.frames.len(), self.state.current.top);
        let depth = self.state.depth;
        match self.call(function, args) {
            Ok(value) => Ok(Ok(value)),
            Err(Fault::Error(value)) => {
                self.state.current.unwind(frames);
                self.state.current.top = top;
                self.state.depth = depth;
                Ok(Err(value))
            }
            Err(fault) => Err(fault),
        }
    }

    /// `a < b` with metamethods.
    pub fn less_than(&mut self, a: Value, b: Value) -> Result<bool, Fault> {
        self.state.less_than(self.host, a, b)
    }

    /// `a == b` with metamethods.
    pub fn equal(&mut self, a: Value, b: Value) -> Result<bool, Fault> {
        self.state.equal(self.host, a, b)
    }

    /// `value[key]` with metamethods.
    pub fn index(&mut self, value: Value, key: Value) -> Result<Value, Fault> {
        self.state.index(self.host, value, key)
    }

    /// What `tostring` gives.
    pub fn to_string(&mut self, value: Value) -> Result<StrRef, Fault> {
        self.state.text_of(self.host, value)
    }

    /// Declares work done or about to be done; the run may end here.
    #[inline]
    pub fn charge(&mut self, steps: usize) -> Result<(), Fault> {
        let steps = u32::try_from(steps).unwrap_or(u32::MAX);
        let heap = &mut self.state.heap;
        if heap.steps_left > steps {
            heap.steps_left -= steps;
            return Ok(());
        }
        heap.steps_left = STEPS_PER_TICK;
        self.state.publish_memory();
        match self.host.tick() {
            Tick::Continue => Ok(()),
            Tick::Kill => Err(Fault::Killed),
        }
    }
}
