//! The functions that have no library's name before them.

use super::{quick_whole, slot};
use crate::call::{Call, Outcome, Walk};
use crate::compile::{Purpose, compile_for};
use crate::fault::{Fault, HANDLER_FAILED};
use crate::heap::Heap;
use crate::limits::{NATIVE_DEPTH_END, RESULTS_MAX, SOURCE_BYTES_MAX};
use crate::number;
use crate::state::{Event, State};
use crate::value::Value;
use crate::vm::ALL;
use std::cell::RefCell;

pub(super) fn open(state: &mut State) -> Result<(), Fault> {
    let globals = state.globals();
    let functions: &[(&str, crate::call::NativeFn)] = &[
        ("assert", assert),
        ("collectgarbage", collectgarbage),
        ("error", error),
        ("gcinfo", gcinfo),
        ("getmetatable", getmetatable),
        ("load", load),
        ("loadstring", loadstring),
        ("pcall", pcall),
        ("rawequal", rawequal),
        ("setmetatable", setmetatable),
        ("unpack", unpack),
        ("xpcall", xpcall),
    ];
    for (name, code) in functions {
        state.define(globals, name, *code)?;
    }
    state.define_quick(globals, "tonumber", (tonumber_quick, tonumber))?;
    state.define_quick(globals, "select", (select_quick, select))?;
    state.define_quick(globals, "type", (type_quick, type_of))?;
    state.define_making(globals, "tostring", (tostring_quick, tostring))?;
    state.define_quick(globals, "rawget", (rawget_quick, rawget))?;
    state.define_making(globals, "rawset", (rawset_quick, rawset))?;
    let step = state.step(Walk::Entries, next)?;
    state.define_value(globals, "next", step)?;
    let iterate = state.heap_mut().native(pairs, &[step])?;
    state.define_value(globals, "pairs", Value::Native(iterate))?;
    let step = state.step(Walk::Elements, ipairs_step)?;
    let iterate = state.heap_mut().native(ipairs, &[step])?;
    state.define_value(globals, "ipairs", Value::Native(iterate))?;
    state.define_value(globals, "_G", Value::Table(globals))?;
    let version = state.heap_mut().string(b"Lua 5.1")?;
    state.define_value(globals, "_VERSION", Value::Str(version))
}

fn assert(call: &mut Call<'_>) -> Outcome {
    if !call.any(1)?.is_true() {
        let text = match call.string_opt(2)? {
            Some(text) => call.bytes(text).to_vec(),
            None => b"assertion failed!".to_vec(),
        };
        return Err(call.error(text));
    }
    for position in 1..=call.arg_count() {
        call.push(call.arg(position))?;
    }
    Ok(call.arg_count())
}

/// What the other options ask for happens by itself.
fn collectgarbage(call: &mut Call<'_>) -> Outcome {
    let option = match call.string_opt(1)? {
        Some(option) => call.bytes(option).to_vec(),
        None => b"collect".to_vec(),
    };
    let known: [&[u8]; 7] =
        [b"collect", b"stop", b"restart", b"count", b"step", b"setpause", b"setstepmul"];
    if known.contains(&option.as_slice()) {
        call.integer_or(2, 0)?;
    }
    let answer = match option.as_slice() {
        b"collect" => {
            let work = call.state.collect_now();
            call.charge(work)?;
            0.0
        }
        b"stop" | b"restart" => 0.0,
        b"count" => call.heap().used_bytes() as f64 / 1024.0,
        b"step" => return call.give(false),
        b"setpause" | b"setstepmul" => 200.0,
        _ => {
            let mut text = b"invalid option '".to_vec();
            text.extend_from_slice(&option);
            text.push(b'\'');
            return Err(call.arg_error(1, text));
        }
    };
    call.give(answer)
}

fn gcinfo(call: &mut Call<'_>) -> Outcome {
    let used = call.heap().used_bytes() / 1024;
    call.give(used as f64)
}

fn error(call: &mut Call<'_>) -> Outcome {
    let level = i64::from(slot(call.integer_or(2, 1)?));
    let value = call.arg(1);
    if let (Value::Str(text), Ok(level @ 1..)) = (value, usize::try_from(level)) {
        let mut message = call.state.where_at(level);
        message.extend_from_slice(call.bytes(text));
        return Err(call.heap().fault(message));
    }
    if let (Value::Number(_), 1..) = (value, level) {
        let text = call.string(1)?;
        let mut message = call.state.where_at(level as usize);
        message.extend_from_slice(call.bytes(text));
        return Err(call.heap().fault(message));
    }
    Err(Fault::Error(value))
}

fn getmetatable(call: &mut Call<'_>) -> Outcome {
    let value = call.any(1)?;
    let Some(meta) = call.heap().meta_of(value) else { return call.give(Value::Nil) };
    let guard = call.state.event_of(value, Event::Metatable);
    call.give(if guard.is_nil() { Value::Table(meta) } else { guard })
}

fn setmetatable(call: &mut Call<'_>) -> Outcome {
    let table = call.table(1)?;
    let meta = match call.arg(2) {
        Value::Nil if !call.is_none(2) => None,
        Value::Table(meta) => Some(meta),
        _ => return Err(call.arg_error(2, "nil or table expected")),
    };
    if !call.state.event_of(Value::Table(table), Event::Metatable).is_nil() {
        return Err(call.error("cannot change a protected metatable"));
    }
    let outcome = call.heap().set_meta(table, meta);
    outcome.map_err(|refusal| call.heap().fault_of(refusal))?;
    call.give(table)
}

/// A source text in pieces, from a function.
fn load(call: &mut Call<'_>) -> Outcome {
    let reader = call.function(1)?;
    let name = match call.string_opt(2)? {
        Some(name) => call.bytes(name).to_vec(),
        None => b"=(load)".to_vec(),
    };
    let mut source = Vec::new();
    loop {
        let piece = match call.call_caught(reader, &[])? {
            Ok(Value::Nil) => break,
            Ok(Value::Str(piece)) => call.bytes(piece).to_vec(),
            Ok(Value::Number(number)) => number::TextBuffer::new().format(number).to_vec(),
            Ok(_) => {
                let mut text = call.state.where_at(1);
                text.extend_from_slice(b"reader function must return a string");
                let text = call.heap().string(&text)?;
                return call.give_two(Value::Nil, text);
            }
            Err(value) => return call.give_two(Value::Nil, value),
        };
        if piece.is_empty() {
            break;
        }
        call.charge(1 + piece.len() / 64)?;
        call.heap().check_room(source.len() + piece.len())?;
        source.extend_from_slice(&piece);
    }
    compile_here(call, &source, &name)
}

fn loadstring(call: &mut Call<'_>) -> Outcome {
    let source = call.string(1)?;
    let name = call.string_or(2, source)?;
    let (source, name) = (call.bytes(source).to_vec(), call.bytes(name).to_vec());
    compile_here(call, &source, &name)
}

fn compile_here(call: &mut Call<'_>, source: &[u8], name: &[u8]) -> Outcome {
    // COMPAT: a name is a C string: a zero byte ends it. (tests/corpus/messages.txt)
    let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
    call.charge(source.len() / 8)?;
    // The tree of a text takes many times its size while it is compiled.
    call.heap().check_room(source.len().saturating_mul(16))?;
    let depth = call.state.depth;
    let host = RefCell::new(&mut *call.host);
    let tick = || host.borrow_mut().tick();
    let compile = || compile_for(Purpose::Part { depth }, source, name, &tick);
    let compiled = (source.len() <= SOURCE_BYTES_MAX).then(compile);
    match compiled {
        Some(Err(refused)) if refused.is_killed() => Err(Fault::Killed),
        Some(Ok(chunk)) => {
            let globals = call.state.globals;
            let function = call.state.load_for_run(&chunk, globals)?;
            call.give(Value::Function(function))
        }
        Some(Err(refused)) => {
            let text = call.heap().string(refused.message())?;
            call.give_two(Value::Nil, text)
        }
        None => Err(call.error("the source text is too long")),
    }
}

fn next(call: &mut Call<'_>) -> Outcome {
    let table = call.table(1)?;
    let key = call.arg(2);
    match call.heap().next(table, key) {
        Ok(Some((key, value))) => call.give_two(key, value),
        Ok(None) => call.give(Value::Nil),
        Err(_) => Err(call.heap().fault("invalid key to 'next'")),
    }
}

fn pairs(call: &mut Call<'_>) -> Outcome {
    let table = call.table(1)?;
    call.push(call.upvalue(0))?;
    call.push(Value::Table(table))?;
    call.push(Value::Nil)?;
    Ok(3)
}

fn ipairs(call: &mut Call<'_>) -> Outcome {
    let table = call.table(1)?;
    call.push(call.upvalue(0))?;
    call.push(Value::Table(table))?;
    call.push(Value::Number(0.0))?;
    Ok(3)
}

fn ipairs_step(call: &mut Call<'_>) -> Outcome {
    let table = call.table(1)?;
    let index = call.integer(2)?.wrapping_add(1) as i32;
    let key = Value::Number(f64::from(index));
    let value = call.heap().get(table, key);
    if value.is_nil() { call.give_none() } else { call.give_two(key, value) }
}

/// COMPAT: an error that is a table with a text in `err` arrives as that text, as it did when
/// errors of commands were strings; any other table is followed by its `err`, nil or not.
/// (tests/corpus/messages.txt)
fn pcall(call: &mut Call<'_>) -> Outcome {
    if call.arg_count() == 0 {
        let text = call.heap().string(b"attempt to call a boolean value")?;
        return call.give_two(false, text);
    }
    let (base, count) = (call.base, call.count);
    match call.state.protected(call.host, base, count - 1) {
        Ok(()) => {
            call.state.current.stack[base - 1] = Value::Bool(true);
            Ok(call.state.current.top - (base - 1))
        }
        Err(Fault::Error(Value::Table(table))) => {
            call.hold(Value::Table(table));
            let key = call.heap().string(b"err")?;
            let text = call.index(Value::Table(table), Value::Str(key))?;
            match text {
                Value::Str(_) | Value::Number(_) => call.give_two(false, text),
                _ => {
                    call.push(Value::Bool(false))?;
                    call.give_two(table, text)?;
                    Ok(3)
                }
            }
        }
        Err(Fault::Error(value)) => call.give_two(false, value),
        Err(fault) => Err(fault),
    }
}

fn xpcall(call: &mut Call<'_>) -> Outcome {
    call.any(2)?;
    let (function, handler, base) = (call.arg(1), call.arg(2), call.base);
    call.state.current.top = base + 2;
    call.push(function)?;
    match call.state.protected_by(call.host, base + 2, handler) {
        Ok(()) => {
            call.state.current.stack[base + 1] = Value::Bool(true);
            Ok(call.state.current.top - (base + 1))
        }
        Err(Fault::Error(value)) => call.give_two(false, value),
        Err(fault) => Err(fault),
    }
}

impl State {
    /// Calls what stands at `func`; after an error the calls it left behind are gone.
    fn protected(
        &mut self,
        host: &mut dyn crate::host::Host,
        func: usize,
        count: usize,
    ) -> Result<(), Fault> {
        let (frames, depth) = (self.current.frames.len(), self.depth);
        let outcome = self.call_at(host, func, count, ALL);
        if let Err(Fault::Error(value)) = outcome {
            self.current.unwind(frames);
            self.depth = depth;
            self.current.top = func;
            self.collect_after(value);
        }
        outcome
    }

    /// As `protected`, without arguments; the handler turns the error while the calls still stand.
    fn protected_by(
        &mut self,
        host: &mut dyn crate::host::Host,
        func: usize,
        handler: Value,
    ) -> Result<(), Fault> {
        let (frames, depth) = (self.current.frames.len(), self.depth);
        let outcome = self.call_at(host, func, 0, ALL);
        let Err(Fault::Error(value)) = outcome else { return outcome };
        let fault = self.handled(host, handler, value);
        self.current.unwind(frames);
        self.depth = depth;
        self.current.top = func;
        Err(fault)
    }

    /// What a handler makes of an error. An error in the handler is one for the handler, one level
    /// deeper, so that a handler that always fails comes to the last level.
    fn handled(
        &mut self,
        host: &mut dyn crate::host::Host,
        handler: Value,
        mut value: Value,
    ) -> Fault {
        if !matches!(handler, Value::Function(_) | Value::Native(_)) {
            return self.heap.fault(HANDLER_FAILED);
        }
        loop {
            self.current.top = self.current.live_len(&self.protos);
            value = match self.call_one(host, handler, &[value]) {
                Ok(value) => return Fault::Error(value),
                Err(Fault::Error(value)) if self.depth < NATIVE_DEPTH_END => value,
                Err(fault) => return fault,
            };
        }
    }
}

fn rawequal(call: &mut Call<'_>) -> Outcome {
    let (a, b) = (call.any(1)?, call.any(2)?);
    let is_same = call.heap().raw_equal(a, b);
    call.give(is_same)
}

fn rawget(call: &mut Call<'_>) -> Outcome {
    let (table, key) = (call.table(1)?, call.any(2)?);
    let value = call.heap().get(table, key);
    call.give(value)
}

fn rawget_quick(heap: &Heap, args: &[Value]) -> Option<Value> {
    let [Value::Table(table), key] = *args else { return None };
    Some(heap.get(table, key))
}

fn rawset_quick(heap: &mut Heap, args: &[Value]) -> Option<Value> {
    let [Value::Table(table), key, value] = *args else { return None };
    heap.try_set(table, key, value).ok()?;
    Some(Value::Table(table))
}

fn rawset(call: &mut Call<'_>) -> Outcome {
    let table = call.table(1)?;
    let (key, value) = (call.any(2)?, call.any(3)?);
    call.heap().set(table, key, value)?;
    call.give(table)
}

fn select(call: &mut Call<'_>) -> Outcome {
    let count = call.arg_count() as i64;
    if let Value::Str(text) = call.arg(1)
        && call.bytes(text).starts_with(b"#")
    {
        return call.give((count - 1) as f64);
    }
    let given = i64::from(slot(call.integer(1)?));
    let from = match given {
        ..=-1 => count.saturating_add(given),
        _ => given.min(count),
    };
    if from < 1 {
        return Err(call.arg_error(1, "index out of range"));
    }
    for position in from + 1..=count {
        call.push(call.arg(position as usize))?;
    }
    Ok((count - from) as usize)
}

/// The number of the arguments behind the first, or the first one that is asked for.
fn select_quick(heap: &Heap, args: &[Value]) -> Option<Value> {
    match *args.first()? {
        Value::Str(text) if heap.bytes(text) == b"#" => {
            Some(Value::Number((args.len() - 1) as f64))
        }
        Value::Number(number) => {
            let from = usize::try_from(quick_whole(number)?).ok().filter(|from| *from > 0)?;
            Some(args.get(from).copied().unwrap_or_default())
        }
        _ => None,
    }
}

fn tostring_quick(heap: &mut Heap, args: &[Value]) -> Option<Value> {
    match *args {
        [Value::Number(number)] => {
            heap.string(number::TextBuffer::new().format(number)).ok().map(Value::Str)
        }
        _ => None,
    }
}

fn type_quick(heap: &Heap, args: &[Value]) -> Option<Value> {
    let [value] = args else { return None };
    Some(Value::Str(heap.type_names[value.type_index()]))
}

fn tonumber_quick(heap: &Heap, args: &[Value]) -> Option<Value> {
    let number = match *args {
        [value] => heap.to_number(value),
        [Value::Str(text), Value::Number(base)] => {
            let base = u32::try_from(quick_whole(base)?).ok()?;
            if !(2..=36).contains(&base) || base == 10 {
                return None;
            }
            number::parse_in_base(heap.bytes(text), base)
        }
        _ => return None,
    };
    Some(number.map_or(Value::Nil, Value::Number))
}

fn tonumber(call: &mut Call<'_>) -> Outcome {
    let base = slot(call.integer_or(2, 10)?);
    if base == 10 {
        let value = call.any(1)?;
        let number = call.heap().to_number(value);
        return call.give(number.map_or(Value::Nil, Value::Number));
    }
    let text = call.string(1)?;
    if !(2..=36).contains(&base) {
        return Err(call.arg_error(2, "base out of range"));
    }
    let number = number::parse_in_base(call.bytes(text), base as u32);
    call.give(number.map_or(Value::Nil, Value::Number))
}

fn tostring(call: &mut Call<'_>) -> Outcome {
    let value = call.any(1)?;
    let handler = call.state.event_of(value, Event::ToString);
    if !handler.is_nil() {
        let answer = call.call(handler, &[value])?;
        return call.give(answer);
    }
    let text = call.to_string(value)?;
    call.give(text)
}

fn type_of(call: &mut Call<'_>) -> Outcome {
    let index = call.any(1)?.type_index();
    call.give(call.state.heap.type_names[index])
}

fn unpack(call: &mut Call<'_>) -> Outcome {
    let table = call.table(1)?;
    let first = call.integer_or(2, 1)?;
    let last = match call.is_none_or_nil(3) {
        true => call.heap().len(table) as i64,
        false => call.integer(3)?,
    };
    let (first, last) = (first as i32, last as i32);
    if first > last {
        return call.give_none();
    }
    let count = (i64::from(last) - i64::from(first) + 1) as usize;
    if count > RESULTS_MAX - call.arg_count() {
        return Err(call.error("too many results to unpack"));
    }
    for index in first..=last {
        let value = call.heap().get(table, Value::Number(f64::from(index)));
        call.push(value)?;
    }
    Ok(count)
}
