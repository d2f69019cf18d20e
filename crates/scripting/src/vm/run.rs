//! The loop of plain instructions.
//!
//! `plain` runs as long as nothing needs a metamethod, memory or another frame; it sees the heap, the
//! code and a window of 256 registers, so that no register access is checked. Everything else ends
//! it with a `Step`, which `run` carries out before it starts `plain` anew.

use super::{Callee, Coroutine, WINDOW};
use crate::fault::Fault;
use crate::heap::Heap;
use crate::host::{Host, Tick};
use crate::limits::STEPS_PER_TICK;
use crate::proto::Op;
use crate::state::{Loaded, State};
use crate::value::{FuncRef, StrRef, TableRef, Value};

/// What `plain` leaves to `run`.
enum Step {
    Call {
        a: u8,
        args: u8,
        results: u8,
    },
    TailCall {
        a: u8,
        args: u8,
    },
    Return {
        a: u8,
        count: u8,
    },
    /// The host is to be asked.
    Tick,
    /// An instruction that needs more than registers and plain tables.
    Slow(Op),
}

/// What the instructions of one function see.
struct Code<'a> {
    ops: &'a [Op],
    constants: &'a [Value],
    function: FuncRef,
    env: TableRef,
}

impl State {
    /// Runs the topmost frame until the entry frame returns.
    pub(crate) fn run(&mut self, host: &mut dyn Host) -> Result<(), Fault> {
        loop {
            let (step, base) = self.run_plain();
            match step {
                Step::Slow(op) => self.slow(host, op, base)?,
                Step::Call { a, args, results } => {
                    let func = base + a as usize;
                    let count = self.list_len(func + 1, args);
                    self.enter(host, func, count, i32::from(results) - 1)?;
                    if self.heap.steps_left == 1 {
                        self.tick(host)?;
                    }
                }
                Step::TailCall { a, args } => {
                    let func = base + a as usize;
                    let count = self.list_len(func + 1, args);
                    if self.tail_call(host, func, count)? {
                        return Ok(());
                    }
                }
                Step::Return { a, count } => {
                    let from = base + a as usize;
                    let count = self.list_len(from, count);
                    if self.leave(from, count) {
                        return Ok(());
                    }
                }
                Step::Tick => self.tick(host)?,
            }
        }
    }

    /// A count as instructions give it: plus 1, or 0 for all up to the top.
    fn list_len(&self, from: usize, count: u8) -> usize {
        match count {
            0 => self.current.top.saturating_sub(from),
            count => count as usize - 1,
        }
    }

    pub(crate) fn tick(&mut self, host: &mut dyn Host) -> Result<(), Fault> {
        self.heap.steps_left = STEPS_PER_TICK;
        match host.tick() {
            Tick::Continue => Ok(()),
            Tick::Kill => Err(Fault::Killed),
        }
    }

    #[inline]
    fn run_plain(&mut self) -> (Step, usize) {
        let State { heap, protos, current, .. } = self;
        let Coroutine { stack, frames, .. } = current;
        let frame = frames.last_mut().expect("run starts with a frame and ends with its last");
        let Callee::Lua { function, proto } = frame.callee else {
            unreachable!("a native's frame is gone before the machine goes on")
        };
        let Loaded { proto, constants, env, .. } = protos.at(proto.index());
        let code = Code { ops: &proto.code, constants, function, env: *env };
        let base = frame.base as usize;
        let mut pc = frame.pc as usize;
        let registers = Coroutine::window(stack, base);
        let step = plain(heap, &code, registers, &mut pc);
        frame.pc = pc as u32;
        (step, base)
    }
}

fn field_of(constants: &[Value], k: usize) -> StrRef {
    match constants[k] {
        Value::Str(name) => name,
        _ => unreachable!("the compiler names fields by strings"),
    }
}

/// A field of a plain table; None if a metatable has a say.
#[inline(always)]
fn get_field(heap: &Heap, object: Value, name: StrRef) -> Option<Value> {
    let Value::Table(table) = object else { return None };
    let table = heap.tables.at(table.index());
    let value = table.get_str(&heap.strings, name);
    (!value.is_nil() || table.meta.is_none()).then_some(value)
}

#[inline(always)]
fn get_index(heap: &Heap, object: Value, key: Value) -> Option<Value> {
    let Value::Table(table) = object else { return None };
    let table = heap.tables.at(table.index());
    let value = match key {
        Value::Number(number) => match table.array_get(number) {
            Some(value) => value,
            None => table.get(&heap.strings, key),
        },
        _ => table.get(&heap.strings, key),
    };
    (!value.is_nil() || table.meta.is_none()).then_some(value)
}

/// Overwrites an entry that is there; anything else is not plain.
#[inline(always)]
fn set_field(heap: &mut Heap, object: Value, name: StrRef, value: Value) -> bool {
    let Value::Table(table) = object else { return false };
    if heap.tables.is_permanent(table.index()) {
        return false;
    }
    let object = heap.tables.at_mut(table.index());
    let Some(node) = object.node_of_str(&heap.strings, name) else { return false };
    let slot = object.node_value_mut(node);
    if slot.is_nil() {
        return false;
    }
    *slot = value;
    true
}

#[inline(always)]
fn set_index(heap: &mut Heap, object: Value, key: Value, value: Value) -> bool {
    let (Value::Table(table), Value::Number(number)) = (object, key) else { return false };
    if heap.tables.is_permanent(table.index()) {
        return false;
    }
    let object = heap.tables.at_mut(table.index());
    let has_meta = object.meta.is_some();
    match object.array_slot(number) {
        Some(slot) if !has_meta || !slot.is_nil() => {
            *slot = value;
            true
        }
        _ => false,
    }
}

/// As C's `a - floor(a / b) * b`.
#[inline(always)]
pub(super) fn modulo(a: f64, b: f64) -> f64 {
    a - (a / b).floor() * b
}

macro_rules! arith {
    ($registers:ident, $a:expr, $left:expr, $right:expr, $op:expr, $compute:expr) => {{
        let (Value::Number(left), Value::Number(right)) = ($left, $right) else {
            break Step::Slow($op);
        };
        let compute: fn(f64, f64) -> f64 = $compute;
        $registers[$a as usize] = Value::Number(compute(left, right));
    }};
}

macro_rules! compare {
    ($pc:ident, $left:expr, $right:expr, $op:expr, $wanted:expr, $to:expr, $compare:expr) => {{
        let (Value::Number(left), Value::Number(right)) = ($left, $right) else {
            break Step::Slow($op);
        };
        let compare: fn(f64, f64) -> bool = $compare;
        if compare(left, right) == $wanted {
            *$pc = $to as usize;
        }
    }};
}

/// Equality that needs no metamethod; None for two different tables.
#[inline(always)]
fn plain_equal(heap: &Heap, a: Value, b: Value) -> Option<bool> {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => Some(a == b),
        (Value::Table(a), Value::Table(b)) if a != b => None,
        _ => Some(heap.raw_equal(a, b)),
    }
}

/// A list of what each instruction does, in one match so that it becomes one jump table.
#[inline(never)]
fn plain(heap: &mut Heap, code: &Code<'_>, r: &mut [Value; WINDOW], pc_out: &mut usize) -> Step {
    let mut at = *pc_out;
    let pc = &mut at;
    let k = code.constants;
    let step = loop {
        let op = code.ops[*pc];
        *pc += 1;
        match op {
            Op::Move { a, b } => r[a as usize] = r[b as usize],
            Op::LoadK { a, k: constant } => r[a as usize] = k[constant as usize],
            Op::LoadNil { a, last } => r[a as usize..=last as usize].fill(Value::Nil),
            Op::LoadBool { a, value } => r[a as usize] = Value::Bool(value),
            Op::GetUpvalue { a, up } => {
                r[a as usize] = heap.functions.at(code.function.index()).upvalues[up as usize];
            }
            Op::GetUpvalueCell { a, up } => {
                let upvalue = heap.functions.at(code.function.index()).upvalues[up as usize];
                let Value::Cell(cell) = upvalue else { break Step::Slow(op) };
                r[a as usize] = heap.cell_get(cell);
            }
            Op::SetUpvalueCell { a, up } => {
                let upvalue = heap.functions.at(code.function.index()).upvalues[up as usize];
                let Value::Cell(cell) = upvalue else { break Step::Slow(op) };
                heap.cell_set(cell, r[a as usize]);
            }
            Op::GetCell { a, b } => {
                let Value::Cell(cell) = r[b as usize] else { break Step::Slow(op) };
                r[a as usize] = heap.cell_get(cell);
            }
            Op::SetCell { a, b } => {
                let Value::Cell(cell) = r[a as usize] else { break Step::Slow(op) };
                heap.cell_set(cell, r[b as usize]);
            }
            Op::GetGlobal { a, k: name } => {
                let name = field_of(k, name as usize);
                let Some(value) = get_field(heap, Value::Table(code.env), name) else {
                    break Step::Slow(op);
                };
                r[a as usize] = value;
            }
            Op::GetField { a, b, k: name } => {
                let name = field_of(k, name as usize);
                let Some(value) = get_field(heap, r[b as usize], name) else {
                    break Step::Slow(op);
                };
                r[a as usize] = value;
            }
            Op::GetIndex { a, b, c } => {
                let Some(value) = get_index(heap, r[b as usize], r[c as usize]) else {
                    break Step::Slow(op);
                };
                r[a as usize] = value;
            }
            Op::GetInt { a, b, n } => {
                let key = Value::Number(f64::from(n));
                let Some(value) = get_index(heap, r[b as usize], key) else {
                    break Step::Slow(op);
                };
                r[a as usize] = value;
            }
            Op::SetField { a, k: name, c } => {
                let name = field_of(k, name as usize);
                if !set_field(heap, r[a as usize], name, r[c as usize]) {
                    break Step::Slow(op);
                }
            }
            Op::SetIndex { a, b, c } => {
                if !set_index(heap, r[a as usize], r[b as usize], r[c as usize]) {
                    break Step::Slow(op);
                }
            }
            Op::Add { a, b, c } => {
                arith!(r, a, r[b as usize], r[c as usize], op, |x, y| x + y);
            }
            Op::Sub { a, b, c } => {
                arith!(r, a, r[b as usize], r[c as usize], op, |x, y| x - y);
            }
            Op::Mul { a, b, c } => {
                arith!(r, a, r[b as usize], r[c as usize], op, |x, y| x * y);
            }
            Op::Div { a, b, c } => {
                arith!(r, a, r[b as usize], r[c as usize], op, |x, y| x / y);
            }
            Op::Mod { a, b, c } => arith!(r, a, r[b as usize], r[c as usize], op, modulo),
            Op::AddK { a, b, k: n } => {
                arith!(r, a, r[b as usize], k[n as usize], op, |x, y| x + y);
            }
            Op::SubK { a, b, k: n } => {
                arith!(r, a, r[b as usize], k[n as usize], op, |x, y| x - y);
            }
            Op::MulK { a, b, k: n } => {
                arith!(r, a, r[b as usize], k[n as usize], op, |x, y| x * y);
            }
            Op::DivK { a, b, k: n } => {
                arith!(r, a, r[b as usize], k[n as usize], op, |x, y| x / y);
            }
            Op::ModK { a, b, k: n } => arith!(r, a, r[b as usize], k[n as usize], op, modulo),
            Op::Neg { a, b } => {
                let Value::Number(number) = r[b as usize] else { break Step::Slow(op) };
                r[a as usize] = Value::Number(-number);
            }
            Op::Not { a, b } => r[a as usize] = Value::Bool(!r[b as usize].is_true()),
            Op::Len { a, b } => {
                let Value::Table(table) = r[b as usize] else { break Step::Slow(op) };
                r[a as usize] = Value::Number(heap.len(table) as f64);
            }
            Op::Jump { to } => *pc = to as usize,
            Op::Loop { to } => {
                *pc = to as usize;
                heap.steps_left = heap.steps_left.wrapping_sub(1);
                if heap.steps_left == 0 {
                    break Step::Tick;
                }
            }
            Op::JumpIf { a, to } => {
                if r[a as usize].is_true() {
                    *pc = to as usize;
                }
            }
            Op::JumpIfNot { a, to } => {
                if !r[a as usize].is_true() {
                    *pc = to as usize;
                }
            }
            Op::Eq { a, b, wanted, to } => match plain_equal(heap, r[a as usize], r[b as usize]) {
                Some(equal) if equal == wanted => *pc = to as usize,
                Some(_) => {}
                None => break Step::Slow(op),
            },
            Op::EqK { a, k: n, to } => {
                if heap.raw_equal(r[a as usize], k[n as usize]) {
                    *pc = to as usize;
                }
            }
            Op::NotEqK { a, k: n, to } => {
                if !heap.raw_equal(r[a as usize], k[n as usize]) {
                    *pc = to as usize;
                }
            }
            Op::Lt { a, b, wanted, to } => {
                compare!(pc, r[a as usize], r[b as usize], op, wanted, to, |x, y| x < y);
            }
            Op::Le { a, b, wanted, to } => {
                compare!(pc, r[a as usize], r[b as usize], op, wanted, to, |x, y| x <= y);
            }
            Op::LtK { a, k: n, to } => {
                compare!(pc, r[a as usize], k[n as usize], op, true, to, |x, y| x < y);
            }
            Op::NotLtK { a, k: n, to } => {
                compare!(pc, r[a as usize], k[n as usize], op, false, to, |x, y| x < y);
            }
            Op::LeK { a, k: n, to } => {
                compare!(pc, r[a as usize], k[n as usize], op, true, to, |x, y| x <= y);
            }
            Op::NotLeK { a, k: n, to } => {
                compare!(pc, r[a as usize], k[n as usize], op, false, to, |x, y| x <= y);
            }
            Op::GtK { a, k: n, to } => {
                compare!(pc, r[a as usize], k[n as usize], op, true, to, |x, y| x > y);
            }
            Op::NotGtK { a, k: n, to } => {
                compare!(pc, r[a as usize], k[n as usize], op, false, to, |x, y| x > y);
            }
            Op::GeK { a, k: n, to } => {
                compare!(pc, r[a as usize], k[n as usize], op, true, to, |x, y| x >= y);
            }
            Op::NotGeK { a, k: n, to } => {
                compare!(pc, r[a as usize], k[n as usize], op, false, to, |x, y| x >= y);
            }
            Op::ForLoop { a, to } => {
                if for_loop(r, a) {
                    *pc = to as usize;
                    heap.steps_left = heap.steps_left.wrapping_sub(1);
                    if heap.steps_left == 0 {
                        break Step::Tick;
                    }
                }
            }
            Op::ForNext { a, to } => {
                let first = r[a as usize + 3];
                if !first.is_nil() {
                    r[a as usize + 2] = first;
                    *pc = to as usize;
                    heap.steps_left = heap.steps_left.wrapping_sub(1);
                    if heap.steps_left == 0 {
                        break Step::Tick;
                    }
                }
            }
            Op::Call { a, args, results } => break Step::Call { a, args, results },
            Op::TailCall { a, args } => break Step::TailCall { a, args },
            Op::Return { a, count } => break Step::Return { a, count },
            _ => break Step::Slow(op),
        }
    };
    *pc_out = *pc;
    step
}

/// One turn of a numeric loop: whether there is another.
#[inline(always)]
fn for_loop(r: &mut [Value; WINDOW], a: u8) -> bool {
    // A loop has four registers, and the compiler gives none beyond 250.
    let Some([index, limit, step, shown]) = r[a as usize..].first_chunk_mut::<4>() else {
        return false;
    };
    let (Value::Number(at), Value::Number(end), Value::Number(by)) = (*index, *limit, *step) else {
        return false;
    };
    let at = at + by;
    let goes_on = if by > 0.0 { at <= end } else { end <= at };
    if goes_on {
        *index = Value::Number(at);
        *shown = Value::Number(at);
    }
    goes_on
}
