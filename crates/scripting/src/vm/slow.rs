//! Instructions that may call metamethods, allocate, or fail.

use super::index::Found;
use super::{Callee, Coroutine, Entered, Frame, FrameKind, NO_RESULT, ONE_RESULT, make};
use crate::fault::Fault;
use crate::host::Host;
use crate::proto::Op;
use crate::state::{Event, State};
use crate::value::{FuncRef, ProtoRef, Value};

impl State {
    /// Carries out one instruction of the topmost frame, which starts at `base`.
    pub(super) fn slow(&mut self, host: &mut dyn Host, op: Op, base: usize) -> Result<(), Fault> {
        match op {
            Op::GetGlobal { .. }
            | Op::GetField { .. }
            | Op::GetIndex { .. }
            | Op::GetInt { .. }
            | Op::Method { .. } => self.slow_read(host, op, base),
            Op::SetGlobal { .. }
            | Op::SetField { .. }
            | Op::SetFieldK { .. }
            | Op::SetIndex { .. } => self.slow_write(host, op, base),
            Op::Add { a, b, c } => self.slow_arith(host, Event::Add, base, (a, b, c)),
            Op::Sub { a, b, c } => self.slow_arith(host, Event::Sub, base, (a, b, c)),
            Op::Mul { a, b, c } => self.slow_arith(host, Event::Mul, base, (a, b, c)),
            Op::Div { a, b, c } => self.slow_arith(host, Event::Div, base, (a, b, c)),
            Op::Mod { a, b, c } => self.slow_arith(host, Event::Mod, base, (a, b, c)),
            Op::Pow { a, b, c } => self.slow_arith(host, Event::Pow, base, (a, b, c)),
            Op::AddK { a, b, k } => self.slow_arith_k(host, Event::Add, base, (a, b, k)),
            Op::SubK { a, b, k } => self.slow_arith_k(host, Event::Sub, base, (a, b, k)),
            Op::MulK { a, b, k } => self.slow_arith_k(host, Event::Mul, base, (a, b, k)),
            Op::DivK { a, b, k } => self.slow_arith_k(host, Event::Div, base, (a, b, k)),
            Op::ModK { a, b, k } => self.slow_arith_k(host, Event::Mod, base, (a, b, k)),
            Op::PowK { a, b, k } => self.slow_arith_k(host, Event::Pow, base, (a, b, k)),
            Op::Neg { a, b } => self.slow_arith(host, Event::Unm, base, (a, b, b)),
            Op::Len { a, b } => {
                let value = self.length(self.at(base, b))?;
                self.put(base, a, value);
                Ok(())
            }
            Op::Concat { a, b, c } => {
                let joined = self.concat(host, base + b as usize, base + c as usize)?;
                self.put(base, a, joined);
                self.collect_if_due();
                if self.heap.steps_left == 1 { self.tick(host) } else { Ok(()) }
            }
            Op::Eq { .. }
            | Op::Lt { .. }
            | Op::Le { .. }
            | Op::LtK { .. }
            | Op::NotLtK { .. }
            | Op::LeK { .. }
            | Op::NotLeK { .. }
            | Op::GtK { .. }
            | Op::NotGtK { .. }
            | Op::GeK { .. }
            | Op::NotGeK { .. } => self.slow_compare(host, op, base),
            Op::NewCell { a } => {
                let cell = self.with_memory(|state| state.heap.cell(state.at(base, a)))?;
                self.put(base, a, Value::Cell(cell));
                self.collect_if_due();
                Ok(())
            }
            Op::NewTable { a, array_len, hash_len } => {
                let (array_len, hash_len) = (array_len as usize, hash_len as usize);
                let table = self.with_memory(|state| state.heap.try_table(array_len, hash_len))?;
                self.put(base, a, Value::Table(table));
                self.collect_if_due();
                Ok(())
            }
            Op::SetList { a, count, first } => self.set_list(base + a as usize, count, first),
            Op::ForPrepare { a, to } => self.for_prepare(base + a as usize, to),
            Op::Closure { a, p } => self.make_closure(base, a, p),
            Op::ArgTable { a } => self.arg_table(base, a),
            Op::Vararg { a, count } => self.vararg(base + a as usize, count),
            _ => unreachable!("the plain loop carries out all other instructions"),
        }
    }

    #[inline]
    fn at(&self, base: usize, register: u8) -> Value {
        self.current.stack[base + register as usize]
    }

    #[inline]
    fn put(&mut self, base: usize, register: u8, value: Value) {
        self.current.stack[base + register as usize] = value;
    }

    fn frame(&self) -> &Frame {
        self.current.frames.last().expect("an instruction belongs to a frame")
    }

    fn code(&self) -> (FuncRef, ProtoRef) {
        match self.frame().callee() {
            Callee::Lua { function, proto } => (function, proto),
            Callee::Native(_) => unreachable!("natives have no instructions"),
        }
    }

    fn constant(&self, k: usize) -> Value {
        let (_, proto) = self.code();
        self.protos.at(proto.index()).constants[k]
    }

    fn env(&self) -> Value {
        let (_, proto) = self.code();
        Value::Table(self.protos.at(proto.index()).env)
    }

    fn jump(&mut self, to: u32) {
        if let Some(frame) = self.current.frames.last_mut() {
            frame.pc = to;
        }
    }

    fn slow_read(&mut self, host: &mut dyn Host, op: Op, base: usize) -> Result<(), Fault> {
        let (a, object, key) = match op {
            Op::GetGlobal { a, k } => (a, self.env(), self.constant(k as usize)),
            Op::GetField { a, b, k } => (a, self.at(base, b), self.constant(k as usize)),
            Op::GetIndex { a, b, c } => (a, self.at(base, b), self.at(base, c)),
            Op::GetInt { a, b, n } => (a, self.at(base, b), Value::Number(f64::from(n))),
            Op::Method { a, b, k } => {
                let object = self.at(base, b);
                self.put(base, a + 1, object);
                (a, object, self.constant(k as usize))
            }
            _ => unreachable!("only reads come here"),
        };
        let value = match self.find(object, key)? {
            Found::Value(value) => value,
            Found::Handler(handler, object) => {
                if self.enter_event(handler, [object, key], (base + a as usize, ONE_RESULT)) {
                    return Ok(());
                }
                self.call_pair(host, handler, [object, key])?
            }
        };
        self.put(base, a, value);
        Ok(())
    }

    fn slow_write(&mut self, host: &mut dyn Host, op: Op, base: usize) -> Result<(), Fault> {
        let (object, key, value) = match op {
            Op::SetGlobal { a, k } => (self.env(), self.constant(k as usize), self.at(base, a)),
            Op::SetField { a, k, c } => {
                (self.at(base, a), self.constant(k as usize), self.at(base, c))
            }
            Op::SetFieldK { a, k, v } => {
                (self.at(base, a), self.constant(k as usize), self.constant(v as usize))
            }
            Op::SetIndex { a, b, c } => (self.at(base, a), self.at(base, b), self.at(base, c)),
            _ => unreachable!("only writes come here"),
        };
        if let Some((handler, object)) = self.store(object, key, value)? {
            if self.enter_event(handler, [object, key, value], (base, NO_RESULT)) {
                return Ok(());
            }
            self.call_for_nothing(host, handler, [object, key, value])?;
        }
        self.collect_if_due();
        Ok(())
    }

    fn slow_arith(
        &mut self,
        host: &mut dyn Host,
        event: Event,
        base: usize,
        (a, b, c): (u8, u8, u8),
    ) -> Result<(), Fault> {
        let operands = (self.at(base, b), self.at(base, c));
        self.arith_into(host, event, base + a as usize, operands)
    }

    fn slow_arith_k(
        &mut self,
        host: &mut dyn Host,
        event: Event,
        base: usize,
        (a, b, k): (u8, u8, u16),
    ) -> Result<(), Fault> {
        let operands = (self.at(base, b), self.constant(k as usize));
        self.arith_into(host, event, base + a as usize, operands)
    }

    fn arith_into(
        &mut self,
        host: &mut dyn Host,
        event: Event,
        to: usize,
        (left, right): (Value, Value),
    ) -> Result<(), Fault> {
        // No table is a number.
        if matches!(left, Value::Table(_)) || matches!(right, Value::Table(_)) {
            let handler = self.event_of_either(left, right, event);
            if self.enter_event(handler, [left, right], (to, ONE_RESULT)) {
                return Ok(());
            }
        }
        self.current.stack[to] = self.arith(host, event, left, right)?;
        Ok(())
    }

    fn slow_compare(&mut self, host: &mut dyn Host, op: Op, base: usize) -> Result<(), Fault> {
        let right = |state: &State, k: u16| state.constant(k as usize);
        let left = |state: &State, a: u8| state.at(base, a);
        let (holds, wanted, to) = match op {
            Op::Eq { a, b, wanted, to } => {
                let (a, b) = (self.at(base, a), self.at(base, b));
                (self.equal(host, a, b)?, wanted, to)
            }
            Op::Lt { a, b, wanted, to } => {
                let (a, b) = (self.at(base, a), self.at(base, b));
                (self.less_than(host, a, b)?, wanted, to)
            }
            Op::Le { a, b, wanted, to } => {
                let (a, b) = (self.at(base, a), self.at(base, b));
                (self.less_or_equal(host, a, b)?, wanted, to)
            }
            Op::LtK { a, k, to } | Op::NotLtK { a, k, to } => {
                let (a, b) = (left(self, a), right(self, k));
                (self.less_than(host, a, b)?, matches!(op, Op::LtK { .. }), to)
            }
            Op::LeK { a, k, to } | Op::NotLeK { a, k, to } => {
                let (a, b) = (left(self, a), right(self, k));
                (self.less_or_equal(host, a, b)?, matches!(op, Op::LeK { .. }), to)
            }
            Op::GtK { a, k, to } | Op::NotGtK { a, k, to } => {
                let (a, b) = (left(self, a), right(self, k));
                (self.less_than(host, b, a)?, matches!(op, Op::GtK { .. }), to)
            }
            Op::GeK { a, k, to } | Op::NotGeK { a, k, to } => {
                let (a, b) = (left(self, a), right(self, k));
                (self.less_or_equal(host, b, a)?, matches!(op, Op::GeK { .. }), to)
            }
            _ => unreachable!("only comparisons come here"),
        };
        if holds == wanted {
            self.jump(to);
        }
        Ok(())
    }

    fn set_list(&mut self, at: usize, count: u8, first: u32) -> Result<(), Fault> {
        let Value::Table(table) = self.current.stack[at] else { return Ok(()) };
        let count = match count {
            0 => self.current.top.saturating_sub(at + 1),
            count => count as usize,
        };
        let start = first as usize - 1;
        let slots = self.heap.run_array_mut(table).and_then(|it| it.get_mut(start..start + count));
        if let Some(slots) = slots {
            slots.copy_from_slice(&self.current.stack[at + 1..at + 1 + count]);
            return Ok(());
        }
        self.heap.reserve(table, start + count)?;
        for offset in 0..count {
            let value = self.current.stack[at + 1 + offset];
            self.heap.set_index(table, first as usize + offset, value)?;
        }
        self.collect_if_due();
        Ok(())
    }

    fn for_prepare(&mut self, at: usize, to: u32) -> Result<(), Fault> {
        let texts = ["initial value", "limit", "step"];
        let mut numbers = [0.0; 3];
        for (offset, text) in texts.into_iter().enumerate() {
            let Some(number) = self.heap.to_number(self.current.stack[at + offset]) else {
                return Err(self.runtime_error(format!("'for' {text} must be a number")));
            };
            numbers[offset] = number;
        }
        let [start, limit, step] = numbers;
        self.current.stack[at] = Value::Number(start - step);
        self.current.stack[at + 1] = Value::Number(limit);
        self.current.stack[at + 2] = Value::Number(step);
        self.jump(to);
        Ok(())
    }

    pub(super) fn for_call(
        &mut self,
        host: &mut dyn Host,
        at: usize,
        count: u8,
    ) -> Result<(), Fault> {
        let stack = &mut self.current.stack;
        stack.copy_within(at..at + 3, at + 3);
        let iterator = stack[at];
        // In Lua 5.1 an iterator is called as metamethods are.
        self.nest()?;
        if let Value::Native(native) = iterator {
            self.enter_native(host, (native, at + 3), 2, i16::from(count))?;
            self.depth -= 1;
            return Ok(());
        }
        match self.enter(host, at + 3, 2, i16::from(count))? {
            Entered::Done => self.depth -= 1,
            Entered::Lua => {
                if let Some(frame) = self.current.frames.last_mut() {
                    frame.kind = FrameKind::Event;
                }
            }
        }
        Ok(())
    }

    fn make_closure(&mut self, base: usize, a: u8, p: u16) -> Result<(), Fault> {
        let (function, _) = self.code();
        let r = Coroutine::window(&mut self.current.stack, base);
        let made = make::closure(&mut self.heap, &self.protos, (function, p), r);
        let made = made.map_err(|refusal| self.refused(refusal))?;
        self.put(base, a, Value::Function(made));
        self.collect_if_due();
        Ok(())
    }

    fn arg_table(&mut self, base: usize, a: u8) -> Result<(), Fault> {
        let varargs = self.varargs();
        let table = self.with_memory(|state| {
            state.heap.try_arg_table(&state.current.stack[base - varargs..base])
        })?;
        self.put(base, a, Value::Table(table));
        self.collect_if_due();
        Ok(())
    }

    /// How many arguments the running function has beyond those that it names.
    fn varargs(&self) -> usize {
        let (_, proto) = self.code();
        self.frame().varargs(self.protos.at(proto.index()).proto.params)
    }

    /// The plain loop had no room for them.
    fn vararg(&mut self, at: usize, count: u8) -> Result<(), Fault> {
        let (_, proto) = self.code();
        let params = self.protos.at(proto.index()).proto.params;
        let wanted = self.varargs().max(count as usize);
        self.ensure_stack(at + wanted)?;
        let is_listed = self.current.list_varargs(params, at, count);
        debug_assert!(is_listed, "there is room by now");
        Ok(())
    }
}
