//! The loop of plain instructions.
//!
//! `plain` runs as long as nothing needs a metamethod, memory or a native; it sees the heap, the
//! code and a window of 256 registers, so that no register access is checked. Any other instruction
//! ends it; `run` carries that one out and starts `plain` anew.

use super::frames::{Entry, Left};
use super::{Callee, Coroutine, WINDOW};
use crate::fault::Fault;
use crate::heap::{Arena, Heap};
use crate::host::{Host, Tick};
use crate::limits::STEPS_PER_TICK;
use crate::proto::Op;
use crate::state::{Loaded, State};
use crate::value::{FuncRef, StrRef, TableRef, Value};

/// Why `plain` stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stop {
    /// The host is to be asked.
    Tick,
    /// The last instruction needs more than registers and plain tables.
    Slow,
    /// The entry frame returned.
    Returned,
}

/// What the instructions of one function see.
#[derive(Clone, Copy)]
struct Code<'a> {
    ops: &'a [Op],
    constants: &'a [Value],
    hashes: &'a [u32],
    function: FuncRef,
    env: TableRef,
}

/// The code of a frame.
#[inline(always)]
fn code_of(protos: &Arena<Loaded>, callee: Callee) -> Code<'_> {
    let Callee::Lua { function, proto } = callee else {
        unreachable!("a native's frame is gone before the machine goes on")
    };
    let Loaded { proto, constants, hashes, env, .. } = protos.at(proto.index());
    Code { ops: &proto.code, constants, hashes, function, env: *env }
}

impl State {
    /// Runs the topmost frame until the entry frame returns.
    pub(crate) fn run(&mut self, host: &mut dyn Host) -> Result<(), Fault> {
        loop {
            let State { heap, protos, current, .. } = self;
            match plain(heap, protos, current) {
                Stop::Tick => self.tick(host)?,
                Stop::Returned => return Ok(()),
                Stop::Slow => {
                    if self.run_slow(host)? {
                        return Ok(());
                    }
                }
            }
        }
    }

    /// Carries out the instruction that `plain` stopped at; whether the entry frame returned.
    fn run_slow(&mut self, host: &mut dyn Host) -> Result<bool, Fault> {
        let frame = self.current.frames.last().expect("`plain` stops inside a frame");
        let base = frame.base as usize;
        let code = code_of(&self.protos, frame.callee);
        match code.ops[frame.pc as usize - 1] {
            Op::Call { a, args, results } => {
                let func = base + a as usize;
                let count = self.current.list_len(func + 1, args);
                self.enter(host, func, count, i32::from(results) - 1)?;
                if self.heap.steps_left == 1 {
                    self.tick(host)?;
                }
            }
            Op::TailCall { a, args } => {
                let func = base + a as usize;
                let count = self.current.list_len(func + 1, args);
                return self.tail_call(host, func, count);
            }
            op => self.slow(host, op, base)?,
        }
        Ok(false)
    }

    pub(crate) fn tick(&mut self, host: &mut dyn Host) -> Result<(), Fault> {
        self.heap.steps_left = STEPS_PER_TICK;
        self.publish_memory();
        match host.tick() {
            Tick::Continue => Ok(()),
            Tick::Kill => Err(Fault::Killed),
        }
    }
}

/// A constant name with its hash.
#[inline(always)]
fn name_of(code: &Code<'_>, k: usize) -> (StrRef, u32) {
    match code.constants[k] {
        Value::Str(name) => (name, code.hashes[k]),
        _ => unreachable!("the compiler names fields by strings"),
    }
}

/// A field of a plain table; None if a metatable has a say.
#[inline(always)]
fn read_field(heap: &Heap, object: Value, name: (StrRef, u32)) -> Option<Value> {
    let Value::Table(table) = object else { return None };
    let table = heap.tables.at(table.index());
    let value = table.at_name(&heap.strings, name);
    (!value.is_nil() || table.meta().is_none()).then_some(value)
}

#[inline(never)]
fn read_index(heap: &Heap, object: Value, key: Value) -> Option<Value> {
    let Value::Table(table) = object else { return None };
    let table = heap.tables.at(table.index());
    let value = table.get(&heap.strings, key);
    (!value.is_nil() || table.meta().is_none()).then_some(value)
}

/// Overwrites an entry that is there; anything else is not plain.
#[inline(always)]
fn write_field(heap: &mut Heap, object: Value, name: (StrRef, u32), value: Value) -> bool {
    let Value::Table(table) = object else { return false };
    if heap.tables.is_permanent(table.index()) {
        return false;
    }
    let slot = heap.tables.at_mut(table.index()).named_slot(&heap.strings, name);
    match slot {
        Some(slot) if !slot.is_nil() => {
            *slot = value;
            true
        }
        _ => false,
    }
}

#[inline(never)]
fn write_index(heap: &mut Heap, object: Value, key: Value, value: Value) -> bool {
    let (Value::Table(table), Value::Number(number)) = (object, key) else { return false };
    if heap.tables.is_permanent(table.index()) {
        return false;
    }
    let object = heap.tables.at_mut(table.index());
    let has_meta = object.meta().is_some();
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
    // Whole numbers, the common case, without a call for the floor.
    let (whole_a, whole_b) = (a as i32, b as i32);
    if f64::from(whole_a) == a && f64::from(whole_b) == b && whole_a >= 0 && whole_b > 0 {
        return f64::from(whole_a % whole_b);
    }
    a - (a / b).floor() * b
}

macro_rules! arith {
    ($registers:ident, $a:expr, $left:expr, $right:expr, $compute:expr) => {{
        let (Value::Number(left), Value::Number(right)) = ($left, $right) else {
            break Stop::Slow;
        };
        let compute: fn(f64, f64) -> f64 = $compute;
        $registers[$a as usize] = Value::Number(compute(left, right));
    }};
}

macro_rules! compare {
    ($pc:ident, $left:expr, $right:expr, $wanted:expr, $to:expr, $compare:expr) => {{
        let (Value::Number(left), Value::Number(right)) = ($left, $right) else {
            break Stop::Slow;
        };
        let compare: fn(f64, f64) -> bool = $compare;
        if compare(left, right) == $wanted {
            $pc = $to as usize;
        }
    }};
}

/// Equality that needs no metamethod; None for two different tables.
#[inline(never)]
fn plain_equal(heap: &Heap, a: Value, b: Value) -> Option<bool> {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => Some(a == b),
        (Value::Table(a), Value::Table(b)) if a != b => None,
        _ => Some(heap.raw_equal(a, b)),
    }
}

/// A list of what each instruction does, in one match so that it becomes one jump table.
#[inline(never)]
fn plain(heap: &mut Heap, protos: &Arena<Loaded>, current: &mut Coroutine) -> Stop {
    let frame = current.frames.last().expect("run starts with a frame and ends with its last");
    let mut base = frame.base as usize;
    let mut pc = frame.pc as usize;
    let mut code = code_of(protos, frame.callee);
    let mut r = Coroutine::window(&mut current.stack, base);
    let stop = loop {
        let k = code.constants;
        let op = &code.ops[pc];
        pc += 1;
        match *op {
            Op::Call { a, args, results } => {
                let Value::Function(function) = r[a as usize] else { break Stop::Slow };
                let entry = Entry { function, func: base + a as usize, args, results };
                current.save(pc);
                if !current.enter_plain(heap, protos, entry) {
                    break Stop::Slow;
                }
                let frame = current.last();
                (base, pc) = (frame.base as usize, 0);
                code = code_of(protos, frame.callee);
                r = Coroutine::window(&mut current.stack, base);
                heap.steps_left = heap.steps_left.wrapping_sub(1);
                if heap.steps_left == 0 {
                    break Stop::Tick;
                }
            }
            Op::Return { a, count } => {
                let frame = match current.leave_plain(base + a as usize, count) {
                    Left::Entry => return Stop::Returned,
                    Left::Caller(frame) => frame,
                };
                (base, pc) = (frame.base as usize, frame.pc as usize);
                code = code_of(protos, frame.callee);
                r = Coroutine::window(&mut current.stack, base);
            }
            Op::Move { a, b } => r[a as usize] = r[b as usize],
            Op::LoadK { a, k: constant } => r[a as usize] = k[constant as usize],
            Op::LoadNil { a, last } => r[a as usize..=last as usize].fill(Value::Nil),
            Op::LoadBool { a, value } => r[a as usize] = Value::Bool(value),
            Op::GetUpvalue { a, up } => {
                r[a as usize] = heap.functions.at(code.function.index()).upvalues[up as usize];
            }
            Op::GetUpvalueCell { a, up } => {
                let upvalue = heap.functions.at(code.function.index()).upvalues[up as usize];
                let Value::Cell(cell) = upvalue else { break Stop::Slow };
                r[a as usize] = heap.cell_get(cell);
            }
            Op::SetUpvalueCell { a, up } => {
                let upvalue = heap.functions.at(code.function.index()).upvalues[up as usize];
                let Value::Cell(cell) = upvalue else { break Stop::Slow };
                heap.cell_set(cell, r[a as usize]);
            }
            Op::GetCell { a, b } => {
                let Value::Cell(cell) = r[b as usize] else { break Stop::Slow };
                r[a as usize] = heap.cell_get(cell);
            }
            Op::SetCell { a, b } => {
                let Value::Cell(cell) = r[a as usize] else { break Stop::Slow };
                heap.cell_set(cell, r[b as usize]);
            }
            Op::GetGlobal { a, k: name } => {
                let name = name_of(&code, name as usize);
                let Some(value) = read_field(heap, Value::Table(code.env), name) else {
                    break Stop::Slow;
                };
                r[a as usize] = value;
            }
            Op::GetField { a, b, k: name } => {
                let name = name_of(&code, name as usize);
                let Some(value) = read_field(heap, r[b as usize], name) else {
                    break Stop::Slow;
                };
                r[a as usize] = value;
            }
            Op::GetIndex { a, b, c } => {
                let Some(value) = read_index(heap, r[b as usize], r[c as usize]) else {
                    break Stop::Slow;
                };
                r[a as usize] = value;
            }
            Op::GetInt { a, b, n } => {
                let key = Value::Number(f64::from(n));
                let Some(value) = read_index(heap, r[b as usize], key) else {
                    break Stop::Slow;
                };
                r[a as usize] = value;
            }
            Op::SetField { a, k: name, c } => {
                let name = name_of(&code, name as usize);
                if !write_field(heap, r[a as usize], name, r[c as usize]) {
                    break Stop::Slow;
                }
            }
            Op::Method { a, b, k: name } => {
                let object = r[b as usize];
                let name = name_of(&code, name as usize);
                let Some(value) = read_field(heap, object, name) else { break Stop::Slow };
                r[a.wrapping_add(1) as usize] = object;
                r[a as usize] = value;
            }
            Op::SetFieldK { a, k: name, v } => {
                let name = name_of(&code, name as usize);
                if !write_field(heap, r[a as usize], name, k[v as usize]) {
                    break Stop::Slow;
                }
            }
            Op::SetIndex { a, b, c } => {
                if !write_index(heap, r[a as usize], r[b as usize], r[c as usize]) {
                    break Stop::Slow;
                }
            }
            Op::Add { a, b, c } => {
                arith!(r, a, r[b as usize], r[c as usize], |x, y| x + y);
            }
            Op::Sub { a, b, c } => {
                arith!(r, a, r[b as usize], r[c as usize], |x, y| x - y);
            }
            Op::Mul { a, b, c } => {
                arith!(r, a, r[b as usize], r[c as usize], |x, y| x * y);
            }
            Op::Div { a, b, c } => {
                arith!(r, a, r[b as usize], r[c as usize], |x, y| x / y);
            }
            Op::Mod { a, b, c } => arith!(r, a, r[b as usize], r[c as usize], modulo),
            Op::AddK { a, b, k: n } => {
                arith!(r, a, r[b as usize], k[n as usize], |x, y| x + y);
            }
            Op::SubK { a, b, k: n } => {
                arith!(r, a, r[b as usize], k[n as usize], |x, y| x - y);
            }
            Op::MulK { a, b, k: n } => {
                arith!(r, a, r[b as usize], k[n as usize], |x, y| x * y);
            }
            Op::DivK { a, b, k: n } => {
                arith!(r, a, r[b as usize], k[n as usize], |x, y| x / y);
            }
            Op::ModK { a, b, k: n } => arith!(r, a, r[b as usize], k[n as usize], modulo),
            Op::Neg { a, b } => {
                let Value::Number(number) = r[b as usize] else { break Stop::Slow };
                r[a as usize] = Value::Number(-number);
            }
            Op::Not { a, b } => r[a as usize] = Value::Bool(!r[b as usize].is_true()),
            Op::Len { a, b } => {
                let Value::Table(table) = r[b as usize] else { break Stop::Slow };
                r[a as usize] = Value::Number(heap.len(table) as f64);
            }
            Op::Jump { to } => pc = to as usize,
            Op::Loop { to } => {
                pc = to as usize;
                heap.steps_left = heap.steps_left.wrapping_sub(1);
                if heap.steps_left == 0 {
                    break Stop::Tick;
                }
            }
            Op::JumpIf { a, to } => {
                if r[a as usize].is_true() {
                    pc = to as usize;
                }
            }
            Op::JumpIfNot { a, to } => {
                if !r[a as usize].is_true() {
                    pc = to as usize;
                }
            }
            Op::Eq { a, b, wanted, to } => match plain_equal(heap, r[a as usize], r[b as usize]) {
                Some(equal) if equal == wanted => pc = to as usize,
                Some(_) => {}
                None => break Stop::Slow,
            },
            Op::EqK { a, k: n, to } => {
                if heap.raw_equal(r[a as usize], k[n as usize]) {
                    pc = to as usize;
                }
            }
            Op::NotEqK { a, k: n, to } => {
                if !heap.raw_equal(r[a as usize], k[n as usize]) {
                    pc = to as usize;
                }
            }
            Op::Lt { a, b, wanted, to } => {
                compare!(pc, r[a as usize], r[b as usize], wanted, to, |x, y| x < y);
            }
            Op::Le { a, b, wanted, to } => {
                compare!(pc, r[a as usize], r[b as usize], wanted, to, |x, y| x <= y);
            }
            Op::LtK { a, k: n, to } => {
                compare!(pc, r[a as usize], k[n as usize], true, to, |x, y| x < y);
            }
            Op::NotLtK { a, k: n, to } => {
                compare!(pc, r[a as usize], k[n as usize], false, to, |x, y| x < y);
            }
            Op::LeK { a, k: n, to } => {
                compare!(pc, r[a as usize], k[n as usize], true, to, |x, y| x <= y);
            }
            Op::NotLeK { a, k: n, to } => {
                compare!(pc, r[a as usize], k[n as usize], false, to, |x, y| x <= y);
            }
            Op::GtK { a, k: n, to } => {
                compare!(pc, r[a as usize], k[n as usize], true, to, |x, y| x > y);
            }
            Op::NotGtK { a, k: n, to } => {
                compare!(pc, r[a as usize], k[n as usize], false, to, |x, y| x > y);
            }
            Op::GeK { a, k: n, to } => {
                compare!(pc, r[a as usize], k[n as usize], true, to, |x, y| x >= y);
            }
            Op::NotGeK { a, k: n, to } => {
                compare!(pc, r[a as usize], k[n as usize], false, to, |x, y| x >= y);
            }
            Op::ForLoopOne { a, to } => {
                if for_loop_one(r, a) {
                    pc = to as usize;
                    heap.steps_left = heap.steps_left.wrapping_sub(1);
                    if heap.steps_left == 0 {
                        break Stop::Tick;
                    }
                }
            }
            Op::ForLoop { a, to } => {
                if for_loop(r, a) {
                    pc = to as usize;
                    heap.steps_left = heap.steps_left.wrapping_sub(1);
                    if heap.steps_left == 0 {
                        break Stop::Tick;
                    }
                }
            }
            Op::ForNext { a, to } => {
                let first = r[a.wrapping_add(3) as usize];
                if !first.is_nil() {
                    r[a.wrapping_add(2) as usize] = first;
                    pc = to as usize;
                    heap.steps_left = heap.steps_left.wrapping_sub(1);
                    if heap.steps_left == 0 {
                        break Stop::Tick;
                    }
                }
            }
            Op::NewCell { .. }
            | Op::SetGlobal { .. }
            | Op::NewTable { .. }
            | Op::SetList { .. }
            | Op::Pow { .. }
            | Op::PowK { .. }
            | Op::Concat { .. }
            | Op::TailCall { .. }
            | Op::ForPrepare { .. }
            | Op::ForCall { .. }
            | Op::Closure { .. }
            | Op::ArgTable { .. }
            | Op::Vararg { .. } => break Stop::Slow,
        }
    };
    current.save(pc);
    stop
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

/// As `for_loop`, for a loop without a step of its own.
#[inline(always)]
fn for_loop_one(r: &mut [Value; WINDOW], a: u8) -> bool {
    let Some([index, limit, _, shown]) = r[a as usize..].first_chunk_mut::<4>() else {
        return false;
    };
    let (Value::Number(at), Value::Number(end)) = (*index, *limit) else { return false };
    let at = at + 1.0;
    if at <= end {
        *index = Value::Number(at);
        *shown = Value::Number(at);
        return true;
    }
    false
}
