//! The loop of plain instructions.
//!
//! It goes on as long as nothing needs a metamethod or memory; it sees the heap, the code and a
//! window of 256 registers, so that no register access is checked. Natives are called from it. Any
//! other instruction ends it; that one is carried out, and the loop begins anew.

use super::arith::{compute_text, modulo};
use super::code::{code_in, code_of, name_of};
use super::fields::{
    Inherited, displace_callable, is_less, is_less_or_equal, place_callable, place_handler,
    plain_equal, read_element, read_field, read_index, read_inherited, write_field, write_handler,
    write_index,
};
use super::frames::{Callees, Entry, Left, enter_plain, list_len};
use super::macros::{arith, compare, enter, leave, write_through};
use super::quick::{call_quick, for_loop, for_loop_one, step_quick};
use super::{Coroutine, NO_RESULT, ONE_RESULT, make};
use crate::fault::Fault;
use crate::heap::low_bits;
use crate::host::{Host, Tick};
use crate::limits::{NATIVE_DEPTH_MAX, STEPS_PER_TICK};
use crate::proto::Op;
use crate::state::{Event, State};
use crate::value::Value;

/// Why the plain loop stopped, to go on with the topmost frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stop {
    /// The host is to be asked.
    Tick,
    /// The last instruction needs more than registers and plain tables.
    Slow,
    /// A metamethod, what a table is called as, or a coroutine was entered.
    Event,
}

/// Does what the plain loop stopped for; whether the entry frame returned.
#[inline(never)]
fn run_stopped(state: &mut State, host: &mut dyn Host, stop: Stop) -> Result<bool, Fault> {
    match stop {
        Stop::Tick => state.tick(host).map(|()| false),
        Stop::Slow => state.run_slow(host),
        Stop::Event => Ok(false),
    }
}

/// Enters a metamethod in place of the running instruction. It stands on the stack, with its
/// arguments behind it: so many as instructions count.
///
/// These values go there from where they are: a value that is taken apart and put together again
/// keeps the processor waiting for its own writes.
#[inline(never)]
fn enter_placed(
    state: &mut State,
    pc: usize,
    func: usize,
    (to, args, results): (usize, u8, u8),
) -> Stop {
    state.current.save(pc);
    match state.enter_event_at(func, (to, args, results)) {
        true => Stop::Event,
        false => Stop::Slow,
    }
}

/// Enters the function that a table is called as.
#[inline(never)]
fn enter_callable(state: &mut State, base: usize, (a, args, results): (u8, u8, u8)) -> Stop {
    let func = base + a as usize;
    let count = state.current.list_len(func + 1, args);
    // One more is given, and instructions count one more.
    let Ok(args) = u8::try_from(count + 2) else { return Stop::Slow };
    let name = state.events[Event::Call as usize];
    let r = Coroutine::window(&mut state.current.stack, base);
    let Some(function) = place_callable(&state.heap, name, r, (a, count)) else {
        return Stop::Slow;
    };
    let entry = Entry::call(function, func, (args, results));
    if enter!(state, entry).is_none() {
        displace_callable(Coroutine::window(&mut state.current.stack, base), (a, count));
        return Stop::Slow;
    }
    state.heap.steps_left = state.heap.steps_left.saturating_sub(1).max(1);
    Stop::Event
}

impl State {
    /// Runs the topmost frame until the entry frame returns.
    pub(crate) fn run(&mut self, host: &mut dyn Host) -> Result<(), Fault> {
        let resumers = self.resumers.len();
        let mut outcome = plain(self, host);
        while self.resumers.len() > resumers && !matches!(outcome, Err(Fault::Killed)) {
            outcome = self.stopped_in_thread(host, outcome);
            if outcome.is_ok() {
                outcome = plain(self, host);
            }
        }
        outcome
    }

    /// Carries out the instruction that the loop stopped at; whether the entry frame returned.
    #[inline(never)]
    fn run_slow(&mut self, host: &mut dyn Host) -> Result<bool, Fault> {
        let frame = self.current.frames.last().expect("`plain` stops inside a frame");
        let base = frame.base as usize;
        let code = code_of(&self.protos, frame);
        match code.ops[frame.pc as usize - 1] {
            Op::Call { a, args, results } => {
                let func = base + a as usize;
                let count = self.current.list_len(func + 1, args);
                self.enter(host, func, count, i16::from(results) - 1)?;
                if self.heap.steps_left == 1 {
                    self.tick(host)?;
                }
            }
            Op::TailCall { a, args } => {
                let func = base + a as usize;
                let count = self.current.list_len(func + 1, args);
                return self.tail_call(host, func, count);
            }
            Op::ForCall { a, count } => self.for_call(host, base + a as usize, count)?,
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

/// Runs the topmost frame until the entry frame returns. A list of what each instruction does, in
/// one match so that it becomes one jump table.
#[inline(never)]
fn plain(state: &mut State, host: &mut dyn Host) -> Result<(), Fault> {
    loop {
        let frame = state.current.last();
        let mut base = frame.base as usize;
        let mut pc = frame.pc as usize;
        let mut code = code_of(&state.protos, frame);
        let mut r = Coroutine::window(&mut state.current.stack, base);
        let stop = loop {
            let op = &code.ops[pc];
            pc += 1;
            match *op {
                Op::Call { a, args, results } => {
                    let (callee, func) = (r[a as usize], base + a as usize);
                    if let Value::Native(native) = callee
                        && (results == ONE_RESULT || results == NO_RESULT)
                        && let Some(value) = call_quick(
                            &mut state.heap,
                            native,
                            r,
                            (a, list_len(state.current.top, func + 1, args)),
                        )
                    {
                        if results == ONE_RESULT {
                            r[a as usize] = value;
                        }
                        state.heap.steps_left = state.heap.steps_left.wrapping_sub(1);
                        if state.heap.steps_left == 0 {
                            break Stop::Tick;
                        }
                        continue;
                    }
                    state.current.save(pc);
                    match callee {
                        Value::Function(function) => {
                            let entry = Entry::call(function, func, (args, results));
                            let Some(entered) = enter!(state, entry) else { break Stop::Slow };
                            (base, pc) = (entered.0, 0);
                            code = code_in(entered.1, function);
                            state.heap.steps_left = state.heap.steps_left.wrapping_sub(1);
                        }
                        Value::Native(native) => {
                            let count = state.current.list_len(func + 1, args);
                            let wanted = i16::from(results) - 1;
                            if state.call_native(host, (native, func), count, wanted)? {
                                break Stop::Event;
                            }
                            code = code_of(&state.protos, state.current.last());
                        }
                        Value::Table(_) => break enter_callable(state, base, (a, args, results)),
                        _ => break Stop::Slow,
                    }
                    r = Coroutine::window(&mut state.current.stack, base);
                    if state.heap.steps_left == 0 {
                        break Stop::Tick;
                    }
                }
                Op::TailCall { a, args } => {
                    let func = base + a as usize;
                    match r[a as usize] {
                        Value::Function(function) => {
                            let entry = Entry::call(function, func, (args, 0));
                            let current = &mut state.current;
                            let Some((callee_base, loaded)) =
                                current.replace_plain(&state.heap, &state.protos, entry)
                            else {
                                break Stop::Slow;
                            };
                            (base, pc, code) = (callee_base, 0, code_in(loaded, function));
                            state.heap.steps_left = state.heap.steps_left.wrapping_sub(1);
                        }
                        Value::Native(native) => {
                            // The quick forms of natives that give nothing give nil.
                            let frame = state.current.frames.last();
                            if frame.is_none_or(|frame| !matches!(frame.wanted, 0 | 1)) {
                                break Stop::Slow;
                            }
                            let count = list_len(state.current.top, func + 1, args);
                            let Some(value) = call_quick(&mut state.heap, native, r, (a, count))
                            else {
                                break Stop::Slow;
                            };
                            r[a as usize] = value;
                            leave!(state, func, ONE_RESULT);
                            let frame = state.current.last();
                            (base, pc) = (frame.base as usize, frame.pc as usize);
                            code = code_of(&state.protos, frame);
                            state.heap.steps_left = state.heap.steps_left.saturating_sub(1).max(1);
                        }
                        _ => break Stop::Slow,
                    }
                    r = Coroutine::window(&mut state.current.stack, base);
                    if state.heap.steps_left == 0 {
                        break Stop::Tick;
                    }
                }
                Op::Return { a, count } => {
                    match state.current.frames.leave_call(count) {
                        Some(Some(to)) => {
                            let value = r[a as usize];
                            state.current.stack[to] = value;
                        }
                        Some(None) => {}
                        None => leave!(state, base + a as usize, count),
                    }
                    let frame = state.current.last();
                    (base, pc) = (frame.base as usize, frame.pc as usize);
                    code = code_of(&state.protos, frame);
                    r = Coroutine::window(&mut state.current.stack, base);
                }
                Op::Move { a, b } => r[a as usize] = r[b as usize],
                Op::LoadK { a, k: constant } => r[a as usize] = *code.k(constant),
                Op::LoadNil { a, last } => r[a as usize..=last as usize].fill(Value::Nil),
                Op::LoadBool { a, value } => r[a as usize] = Value::Bool(value),
                Op::GetUpvalue { a, up } => {
                    let upvalues = &state.heap.functions.at(code.function.index()).upvalues;
                    r[a as usize] = upvalues[up as usize];
                }
                Op::GetUpvalueCell { a, up } => {
                    let upvalue =
                        state.heap.functions.at(code.function.index()).upvalues[up as usize];
                    let Value::Cell(cell) = upvalue else { break Stop::Slow };
                    r[a as usize] = *state.heap.cell_get(cell);
                }
                Op::SetUpvalueCell { a, up } => {
                    let upvalue =
                        state.heap.functions.at(code.function.index()).upvalues[up as usize];
                    let Value::Cell(cell) = upvalue else { break Stop::Slow };
                    state.heap.cell_set(cell, &r[a as usize]);
                }
                Op::GetCell { a, b } => {
                    let Value::Cell(cell) = r[b as usize] else { break Stop::Slow };
                    r[a as usize] = *state.heap.cell_get(cell);
                }
                Op::SetCell { a, b } => {
                    let Value::Cell(cell) = r[a as usize] else { break Stop::Slow };
                    state.heap.cell_set(cell, &r[b as usize]);
                }
                Op::GetGlobal { a, k: name } => {
                    let name = name_of(&code, name as usize);
                    let Some(value) = read_field(&state.heap, &Value::Table(code.loaded.env), name)
                    else {
                        break Stop::Slow;
                    };
                    r[a as usize] = *value;
                }
                Op::GetField { a, b, k: field } => {
                    let name = name_of(&code, field as usize);
                    if let Some(value) = read_field(&state.heap, &r[b as usize], name) {
                        r[a as usize] = *value;
                        continue;
                    }
                    let index = state.events[Event::Index as usize];
                    match read_inherited(&state.heap, index, &r[b as usize], name) {
                        Inherited::Value(value) => r[a as usize] = *value,
                        Inherited::Handler(handler, holder) => {
                            let at = code.registers();
                            r[at as usize] = *handler;
                            r[at.wrapping_add(1) as usize] = *holder.unwrap_or(&r[b as usize]);
                            r[at.wrapping_add(2) as usize] = *code.k(field);
                            let to = (base + a as usize, 3, ONE_RESULT);
                            break enter_placed(state, pc, base + at as usize, to);
                        }
                        Inherited::Unknown => break Stop::Slow,
                    }
                }
                Op::GetIndex { a, b, c } => {
                    if let Value::Number(number) = r[c as usize]
                        && let Some(value) =
                            read_element(&state.heap, &r[b as usize], low_bits(number))
                        && f64::from(low_bits(number)) == number
                    {
                        r[a as usize] = *value;
                        continue;
                    }
                    let Some(value) = read_index(&state.heap, &r[b as usize], &r[c as usize])
                    else {
                        break Stop::Slow;
                    };
                    r[a as usize] = *value;
                }
                Op::GetInt { a, b, n } => {
                    if let Some(value) = read_element(&state.heap, &r[b as usize], u32::from(n)) {
                        r[a as usize] = *value;
                        continue;
                    }
                    let key = Value::Number(f64::from(n));
                    let Some(value) = read_index(&state.heap, &r[b as usize], &key) else {
                        break Stop::Slow;
                    };
                    r[a as usize] = *value;
                }
                Op::SetField { a, k: field, c } => {
                    let name = name_of(&code, field as usize);
                    if !write_field(&mut state.heap, &r[a as usize], name, &r[c as usize]) {
                        write_through!(
                            state,
                            (pc, base, code),
                            r,
                            a,
                            *code.k(field),
                            r[c as usize]
                        );
                    }
                }
                Op::Method { a, b, k: name } => {
                    let name = name_of(&code, name as usize);
                    let value = match read_field(&state.heap, &r[b as usize], name) {
                        Some(value) => value,
                        None => {
                            let index = state.events[Event::Index as usize];
                            match read_inherited(&state.heap, index, &r[b as usize], name) {
                                Inherited::Value(value) => value,
                                _ => break Stop::Slow,
                            }
                        }
                    };
                    r[a.wrapping_add(1) as usize] = r[b as usize];
                    r[a as usize] = *value;
                }
                Op::SetFieldK { a, k: field, v } => {
                    let name = name_of(&code, field as usize);
                    if !write_field(&mut state.heap, &r[a as usize], name, code.k(v)) {
                        write_through!(state, (pc, base, code), r, a, *code.k(field), *code.k(v));
                    }
                }
                Op::SetIndex { a, b, c } => {
                    if !write_index(&mut state.heap, &r[a as usize], &r[b as usize], &r[c as usize])
                    {
                        write_through!(state, (pc, base, code), r, a, r[b as usize], r[c as usize]);
                    }
                }
                Op::Add { a, b, c } => {
                    arith!(state, (pc, base, code), r, a, Add, b, r[c as usize], |x, y| x + y);
                }
                Op::Sub { a, b, c } => {
                    arith!(state, (pc, base, code), r, a, Sub, b, r[c as usize], |x, y| x - y);
                }
                Op::Mul { a, b, c } => {
                    arith!(state, (pc, base, code), r, a, Mul, b, r[c as usize], |x, y| x * y);
                }
                Op::Div { a, b, c } => {
                    arith!(state, (pc, base, code), r, a, Div, b, r[c as usize], |x, y| x / y);
                }
                Op::Mod { a, b, c } => {
                    arith!(state, (pc, base, code), r, a, Mod, b, r[c as usize], modulo);
                }
                Op::AddK { a, b, k: n } => {
                    arith!(state, (pc, base, code), r, a, Add, b, *code.k(n), |x, y| x + y);
                }
                Op::SubK { a, b, k: n } => {
                    arith!(state, (pc, base, code), r, a, Sub, b, *code.k(n), |x, y| x - y);
                }
                Op::MulK { a, b, k: n } => {
                    arith!(state, (pc, base, code), r, a, Mul, b, *code.k(n), |x, y| x * y);
                }
                Op::DivK { a, b, k: n } => {
                    arith!(state, (pc, base, code), r, a, Div, b, *code.k(n), |x, y| x / y);
                }
                Op::ModK { a, b, k: n } => {
                    arith!(state, (pc, base, code), r, a, Mod, b, *code.k(n), modulo);
                }
                Op::Neg { a, b } => {
                    let Value::Number(number) = r[b as usize] else { break Stop::Slow };
                    r[a as usize] = Value::Number(-number);
                }
                Op::Not { a, b } => r[a as usize] = Value::Bool(!r[b as usize].is_true()),
                Op::Len { a, b } => {
                    let len = match r[b as usize] {
                        Value::Table(table) => state.heap.len(table),
                        Value::Str(text) => state.heap.strings.len(text),
                        _ => break Stop::Slow,
                    };
                    r[a as usize] = Value::Number(len as f64);
                }
                Op::Jump { to } => pc = to as usize,
                Op::Loop { to } => {
                    pc = to as usize;
                    state.heap.steps_left = state.heap.steps_left.wrapping_sub(1);
                    if state.heap.steps_left == 0 {
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
                Op::Eq { a, b, wanted, to } => {
                    match plain_equal(&state.heap, r[a as usize], r[b as usize]) {
                        Some(equal) if equal == wanted => pc = to as usize,
                        Some(_) => {}
                        None => break Stop::Slow,
                    }
                }
                Op::EqK { a, k: n, to } => {
                    if state.heap.raw_equal(r[a as usize], *code.k(n)) {
                        pc = to as usize;
                    }
                }
                Op::NotEqK { a, k: n, to } => {
                    if !state.heap.raw_equal(r[a as usize], *code.k(n)) {
                        pc = to as usize;
                    }
                }
                Op::Lt { a, b, wanted, to } => {
                    let Some(holds) = is_less(&state.heap, r[a as usize], r[b as usize]) else {
                        break Stop::Slow;
                    };
                    if holds == wanted {
                        pc = to as usize;
                    }
                }
                Op::Le { a, b, wanted, to } => {
                    let Some(holds) = is_less_or_equal(&state.heap, r[a as usize], r[b as usize])
                    else {
                        break Stop::Slow;
                    };
                    if holds == wanted {
                        pc = to as usize;
                    }
                }
                Op::LtK { a, k: n, to } => {
                    compare!(pc, r[a as usize], *code.k(n), true, to, |x, y| x < y);
                }
                Op::NotLtK { a, k: n, to } => {
                    compare!(pc, r[a as usize], *code.k(n), false, to, |x, y| x < y);
                }
                Op::LeK { a, k: n, to } => {
                    compare!(pc, r[a as usize], *code.k(n), true, to, |x, y| x <= y);
                }
                Op::NotLeK { a, k: n, to } => {
                    compare!(pc, r[a as usize], *code.k(n), false, to, |x, y| x <= y);
                }
                Op::GtK { a, k: n, to } => {
                    compare!(pc, r[a as usize], *code.k(n), true, to, |x, y| x > y);
                }
                Op::NotGtK { a, k: n, to } => {
                    compare!(pc, r[a as usize], *code.k(n), false, to, |x, y| x > y);
                }
                Op::GeK { a, k: n, to } => {
                    compare!(pc, r[a as usize], *code.k(n), true, to, |x, y| x >= y);
                }
                Op::NotGeK { a, k: n, to } => {
                    compare!(pc, r[a as usize], *code.k(n), false, to, |x, y| x >= y);
                }
                Op::ForLoopOne { a, to } => {
                    if for_loop_one(r, a) {
                        pc = to as usize;
                        state.heap.steps_left = state.heap.steps_left.wrapping_sub(1);
                        if state.heap.steps_left == 0 {
                            break Stop::Tick;
                        }
                    }
                }
                Op::ForLoop { a, to } => {
                    if for_loop(r, a) {
                        pc = to as usize;
                        state.heap.steps_left = state.heap.steps_left.wrapping_sub(1);
                        if state.heap.steps_left == 0 {
                            break Stop::Tick;
                        }
                    }
                }
                Op::ForCall { a, count } => {
                    // Even a step without a frame may be too deep.
                    if state.depth + 1 >= NATIVE_DEPTH_MAX {
                        break Stop::Slow;
                    }
                    let Some(goes_on) = step_quick(&state.heap, r, a) else { break Stop::Slow };
                    if count > 2 {
                        let results = a as usize + 3;
                        r[results + 2..results + count as usize].fill(Value::Nil);
                    }
                    // The next instruction always is `ForNext`: it is done with this one.
                    let Op::ForNext { to, .. } = code.ops[pc] else { continue };
                    pc += 1;
                    if goes_on {
                        pc = to as usize;
                        state.heap.steps_left = state.heap.steps_left.wrapping_sub(1);
                        if state.heap.steps_left == 0 {
                            break Stop::Tick;
                        }
                    }
                }
                Op::ForNext { a, to } => {
                    let first = r[a.wrapping_add(3) as usize];
                    if !first.is_nil() {
                        r[a.wrapping_add(2) as usize] = first;
                        pc = to as usize;
                        state.heap.steps_left = state.heap.steps_left.wrapping_sub(1);
                        if state.heap.steps_left == 0 {
                            break Stop::Tick;
                        }
                    }
                }
                Op::Vararg { a, count } => {
                    let params = code.loaded.proto.params;
                    if count > 0 {
                        state.current.bind_varargs(params, a, count as usize - 1);
                    } else if !state.current.list_varargs(params, base + a as usize, count) {
                        break Stop::Slow;
                    }
                    r = Coroutine::window(&mut state.current.stack, base);
                }
                Op::NewTable { a, array_len, hash_len } => {
                    let (array_len, hash_len) = (array_len as usize, hash_len as usize);
                    let Some(table) = make::new_table(&mut state.heap, array_len, hash_len) else {
                        break Stop::Slow;
                    };
                    r[a as usize] = table;
                }
                Op::SetList { a, count, first } => {
                    if !make::set_list(&mut state.heap, r, (a, count), first) {
                        break Stop::Slow;
                    }
                }
                Op::Closure { a, p } => {
                    let maker = (code.function, p);
                    let Some(made) = make::closure_now(&mut state.heap, &state.protos, maker, r)
                    else {
                        break Stop::Slow;
                    };
                    r[a as usize] = made;
                }
                Op::Concat { a, b, c } => {
                    let parts = &r[b as usize..=c as usize];
                    let Some(joined) = make::joined(&mut state.heap, parts) else {
                        break Stop::Slow;
                    };
                    r[a as usize] = joined;
                }
                Op::NewCell { .. }
                | Op::SetGlobal { .. }
                | Op::Pow { .. }
                | Op::PowK { .. }
                | Op::ForPrepare { .. }
                | Op::ArgTable { .. } => break Stop::Slow,
            }
        };
        if stop != Stop::Event {
            state.current.save(pc);
            if run_stopped(state, host, stop)? {
                return Ok(());
            }
        }
    }
}
