//! From a library's source to its functions.

use super::{Function, Library, OwnInterpreter};
use crate::error::Refusal;
use crate::groups::scripting::api::Api;
use crate::groups::scripting::cache::{RunStats, chunk_bytes};
use crate::groups::scripting::compiling::Compiling;
use crate::groups::scripting::host::raise;
use crate::groups::scripting::key_use::is_narrow_on;
use crate::groups::scripting::machine::Lua;
use crate::groups::scripting::run::{memory_max, text_of};
use crate::groups::scripting::shebang::{ScriptFlags, engine_and_rest};
use russet_base::escape::escape;
use russet_base::text::{eq_ignore_case, split_args};
use russet_engine::types::capacity::{allocated_bytes, allocated_for};
use russet_scripting::{Call, Chunk, Fault, Host, Outcome, Purpose, RootId, TableRef, Tick, Value};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// The name that errors give to the code of every library.
const CHUNK_NAME: &[u8] = b"@user_function";
/// Loading a library takes no longer than this.
const LOAD_TIME_MAX: Duration = Duration::from_millis(500);
/// About what a library's place among all libraries takes, and a function's among all functions.
const LIBRARY_ENTRY_BYTES: usize = 64;
const FUNCTION_ENTRY_BYTES: usize = 72;
const ENGINE: &[u8] = b"lua";
/// What comes before the name of a library.
const NAME: &[u8] = b"name=";

/// The text of a library whose first line is in order.
pub struct Source<'a> {
    text: &'a [u8],
    pub name: Vec<u8>,
    /// What is behind the first line, whose end stays with it.
    code: &'a [u8],
}

impl<'a> Source<'a> {
    pub fn of(text: &'a [u8]) -> Result<Self, Refusal> {
        let (name, code) = metadata(text)?;
        Ok(Source { text, name, code })
    }
}

/// A library from its source, ready to be put among the others.
pub fn parse(source: Source, compiling: &Compiling) -> Result<Library, Refusal> {
    let Source { text, name, code } = source;
    let failed = "Error compiling function";
    let chunk = compiling.compile(Purpose::Library, (code, CHUNK_NAME), failed)?;
    let node = compiling.node();
    let number = Library::next_number();
    let (registered, own) = if chunk.keys_use().keeps_state() {
        let mut lua = node.scripts.new_lua(memory_max(node));
        let registered = register(&mut lua, &chunk).map_err(|fault| refusal(&lua, fault))?;
        lua.add_library(number, registered.iter().map(|function| function.root).collect());
        let shard = node.keyspace.locate(&name).shard as usize;
        (registered, Some(OwnInterpreter::new(shard, lua)))
    } else {
        (try_out(&chunk, compiling)?, None)
    };
    if registered.is_empty() {
        return Err(Refusal::text("ERR No functions registered"));
    }
    let narrow = chunk.keys_use().narrow_functions(&|call| is_narrow_on(node, call));
    let with_key_use = |Registered { function, number, .. }: Registered| {
        let is_wide = !narrow.get(number as usize).copied().unwrap_or(false);
        Function { is_wide, ..function }
    };
    // Not in the list's own place, from which most of it would have to be given back.
    let mut functions = Vec::with_capacity(registered.len());
    functions.extend(registered.into_iter().map(with_key_use));
    let chunk = chunk.without_keys_use();
    let memory_bytes =
        allocated_bytes(text.len()) + chunk_bytes(&chunk) + functions_bytes(&name, &functions);
    Ok(Library { name, source: text.to_vec(), chunk, functions, memory_bytes, number, own })
}

/// Runs a library's code once, on a machine of the pool, to see what it registers. The library may
/// still be refused, and each machine that comes to call it runs it anew: nothing of it stays here.
fn try_out(chunk: &Chunk, compiling: &Compiling) -> Result<Vec<Registered>, Refusal> {
    let (node, worker) = (compiling.node(), compiling.worker);
    let mut machine = node.scripts.take_machine(worker, true);
    let lua = &mut machine.lua;
    lua.state.set_memory_max(memory_max(node));
    let mut host = LoadHost::new();
    let main = lua.library_for_run(chunk);
    let result = main.and_then(|main| lua.state.call(&mut host, main, &[]).map(|_| ()));
    host.found.iter().for_each(|found| lua.state.release(found.root));
    let outcome = result.map_err(|fault| refusal(lua, fault));
    lua.end_run();
    node.scripts.give_machine(worker, machine);
    outcome.map(|()| host.found)
}

/// What is said of a library whose code failed.
fn refusal(lua: &Lua, fault: Fault) -> Refusal {
    let text = match fault {
        Fault::Error(value) => text_of(lua.state.heap(), value),
        _ => "ERR FUNCTION LOAD timeout".to_owned(),
    };
    match text.strip_prefix(PLAIN) {
        Some(plain) => Refusal::text(format!("ERR {plain}")),
        None => Refusal::text(format!("ERR Error registering functions: {text}")),
    }
}

/// What a library and its functions take up besides source and code. Each name is there twice.
fn functions_bytes(name: &[u8], functions: &Vec<Function>) -> usize {
    let names = functions.iter().map(|function| {
        let description = function.description.as_ref().map_or(0, Vec::capacity);
        allocated_bytes(function.name.len()) * 2 + allocated_bytes(description)
    });
    allocated_for::<Function>(functions.capacity())
        + allocated_bytes(2 * size_of::<usize>() + size_of::<Library>())
        + allocated_bytes(name.len()) * 2
        + LIBRARY_ENTRY_BYTES
        + functions.len() * FUNCTION_ENTRY_BYTES
        + names.sum::<usize>()
}

/// Marks an error whose text goes to the client as it is.
const PLAIN: &str = "\u{1}";

/// `#!lua name=...`: the name, and the code behind the line, whose end stays with it.
fn metadata(source: &[u8]) -> Result<(Vec<u8>, &[u8]), Refusal> {
    let Some(line) = source.strip_prefix(b"#!") else {
        return Err(Refusal::text("ERR Missing library metadata"));
    };
    let Some(end) = line.iter().position(|byte| *byte == b'\n') else {
        return Err(Refusal::text("ERR Invalid library metadata"));
    };
    let (line, code) = source.split_at(end + b"#!".len());
    let Ok(parts) = split_args(line) else {
        return Err(Refusal::text("ERR Invalid library metadata"));
    };
    let (engine, parts) = engine_and_rest(&parts);
    let mut name = None;
    for part in parts {
        let is_name = part.get(..NAME.len()).is_some_and(|start| eq_ignore_case(start, NAME));
        if !is_name {
            let part = escape(part);
            return Err(Refusal::text(format!("ERR Invalid metadata value given: {part}")));
        }
        if name.replace(part[NAME.len()..].to_vec()).is_some() {
            let text = "ERR Invalid metadata value, name argument was given multiple times";
            return Err(Refusal::text(text));
        }
    }
    let name = name.ok_or(Refusal::text("ERR Library name was not given"))?;
    if !is_name(&name) {
        return Err(Refusal::text(
            "ERR Library names can only contain letters, numbers, or underscores(_) and must be \
             at least one character long",
        ));
    }
    if !engine.eq_ignore_ascii_case(ENGINE) {
        let engine = escape(engine);
        return Err(Refusal::text(format!("ERR Engine '{engine}' not found")));
    }
    Ok((name, code))
}

fn is_name(name: &[u8]) -> bool {
    !name.is_empty() && name.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
}

/// A function that a library registered, and where the machine keeps it.
pub struct Registered {
    pub function: Function,
    /// Which function of the library's code it is. Whatever its name, its own code is judged.
    number: u32,
    pub root: RootId,
}

/// Runs a library's code in a machine and takes note of what it registers.
pub fn register(lua: &mut Lua, chunk: &Chunk) -> Result<Vec<Registered>, Fault> {
    let main = lua.begin_library(chunk)?;
    let function = lua.state.kept(main);
    let mut host = LoadHost::new();
    let result = lua.state.call(&mut host, function, &[]).map(|_| ());
    lua.finish_library(main);
    if let Err(fault) = result {
        host.found.iter().for_each(|found| lua.state.release(found.root));
        return Err(fault);
    }
    lua.state.end_run();
    Ok(host.found)
}

struct LoadHost {
    found: Vec<Registered>,
    /// Their names in small letters.
    names: BTreeSet<Vec<u8>>,
    started: Instant,
}

impl Host for LoadHost {
    fn tick(&mut self) -> Tick {
        if self.started.elapsed() > LOAD_TIME_MAX { Tick::Kill } else { Tick::Continue }
    }

    fn native(&mut self, number: u16, call: &mut Call<'_>) -> Outcome {
        match Api::of(number) {
            Some(Api::RegisterFunction) => self.register(call),
            // Nothing else is among its globals but the log, which has no reader yet.
            _ => call.give_none(),
        }
    }
}

impl LoadHost {
    fn new() -> Self {
        LoadHost { found: Vec::new(), names: BTreeSet::new(), started: Instant::now() }
    }

    fn register(&mut self, call: &mut Call<'_>) -> Outcome {
        let (function, callback) = match (call.arg_count(), call.arg(1)) {
            (1, Value::Table(table)) => named_arguments(call, table)?,
            (1, _) => {
                return Err(raise(
                    call,
                    "ERR calling redis.register_function with a single argument is only \
                     applicable to Lua table (representing named arguments).",
                ));
            }
            (2, _) => two_arguments(call)?,
            _ => {
                let text = "ERR wrong number of arguments to redis.register_function";
                return Err(raise(call, text));
            }
        };
        if !is_name(&function.name) {
            return Err(plain(
                call,
                "Function names can only contain letters, numbers, or underscores(_) and must be \
                 at least one character long",
            ));
        }
        // DIFFERS: elsewhere only equal names are refused, though the case does not count.
        if !self.names.insert(function.name.to_ascii_lowercase()) {
            return Err(plain(call, "Function already exists in the library"));
        }
        let number = call.function_number(callback).unwrap_or(u32::MAX);
        // At once: from here on no variable of the library may name it.
        let root = call.state().keep(callback);
        self.found.push(Registered { function, number, root });
        call.give_none()
    }
}

/// `redis.register_function('name', callback)`
fn two_arguments(call: &mut Call<'_>) -> Result<(Function, Value), Fault> {
    let name = match call.arg(1) {
        Value::Str(_) | Value::Number(_) => {
            let name = call.string(1)?;
            call.bytes(name).to_vec()
        }
        _ => {
            let text = "ERR first argument to redis.register_function must be a string";
            return Err(raise(call, text));
        }
    };
    let callback = call.arg(2);
    if !is_callback(call, callback) {
        let text = "ERR second argument to redis.register_function must be a function";
        return Err(raise(call, text));
    }
    Ok((new_function(name), callback))
}

/// `redis.register_function{function_name=..., callback=..., flags=..., description=...}`
fn named_arguments(call: &mut Call<'_>, table: TableRef) -> Result<(Function, Value), Fault> {
    let (mut function, mut callback) = (new_function(Vec::new()), None);
    let (mut has_name, mut cursor) = (false, 0);
    while let Some((next, key, value)) = call.heap().entry_from(table, cursor) {
        cursor = next;
        // COMPAT: a number passes for the name of an argument that is not known.
        let key = match key {
            Value::Str(key) => key,
            Value::Number(_) => call.to_string(key)?,
            _ => {
                let text =
                    "ERR named argument key given to redis.register_function is not a string";
                return Err(raise(call, text));
            }
        };
        match call.bytes(key).to_vec().as_slice() {
            b"function_name" => {
                function.name = text_argument(call, "function_name", value)?;
                has_name = true;
            }
            b"description" => {
                function.description = Some(text_argument(call, "description", value)?);
            }
            b"callback" => callback = Some(value),
            b"flags" => function.flags = flags(call, value)?,
            _ => {
                let text = "ERR unknown argument given to redis.register_function";
                return Err(raise(call, text));
            }
        }
    }
    if !has_name {
        let text = "ERR redis.register_function must get a function name argument";
        return Err(raise(call, text));
    }
    match callback {
        Some(callback) if is_callback(call, callback) => Ok((function, callback)),
        Some(_) => Err(raise(
            call,
            "ERR callback argument given to redis.register_function must be a function",
        )),
        None => {
            let text = "ERR redis.register_function must get a callback argument";
            Err(raise(call, text))
        }
    }
}

/// DIFFERS: an iterator of `gmatch` has a state that no analysis of the library's code sees, so
/// that each machine would have its own.
fn is_callback(call: &Call<'_>, value: Value) -> bool {
    matches!(value, Value::Function(_)) || call.is_stateless_native(value)
}

fn new_function(name: Vec<u8>) -> Function {
    let (flags, stats) = (ScriptFlags::default(), RunStats::default());
    Function { name, description: None, flags, is_wide: true, stats }
}

fn plain(call: &mut Call<'_>, text: &str) -> Fault {
    raise(call, &format!("{PLAIN}{text}"))
}

fn text_argument(call: &mut Call<'_>, name: &str, value: Value) -> Result<Vec<u8>, Fault> {
    match value {
        Value::Str(text) => Ok(call.bytes(text).to_vec()),
        Value::Number(_) => {
            let text = call.to_string(value)?;
            Ok(call.bytes(text).to_vec())
        }
        _ => {
            let text =
                format!("ERR {name} argument given to redis.register_function must be a string");
            Err(raise(call, &text))
        }
    }
}

fn flags(call: &mut Call<'_>, value: Value) -> Result<ScriptFlags, Fault> {
    let Value::Table(names) = value else {
        let text = "ERR flags argument to redis.register_function must be a table representing \
                    function flags";
        return Err(raise(call, text));
    };
    let mut flags = ScriptFlags::default();
    for at in 1.. {
        let name = match call.heap().element(names, at) {
            Value::Nil => break,
            Value::Str(name) => call.bytes(name).to_vec(),
            _ => Vec::new(),
        };
        if !flags.set(&name) {
            return Err(raise(call, "ERR unknown flag given"));
        }
    }
    Ok(flags)
}

#[cfg(test)]
mod tests {
    use crate::testing::TestServer;

    /// Each library that was loaded left its code in a machine of the pool, until there was a
    /// megabyte of it.
    #[test]
    fn a_machine_keeps_nothing_of_libraries_that_it_has_only_loaded() {
        let mut server = TestServer::new();
        let load = |server: &mut TestServer, n: usize| {
            let text = "'".to_owned() + &"x".repeat(4000) + &n.to_string() + "'";
            let code = format!("redis.register_function('f', function() return {text} end)");
            let library = format!("#!lua name=lib\n{code}");
            assert_eq!(
                server.run(&["FUNCTION", "LOAD", "REPLACE", &library]).to_string(),
                "\"lib\""
            );
        };
        load(&mut server, 0);
        let bytes = server.worker.node.scripts.memory().vm_functions;
        for n in 1..100 {
            load(&mut server, n);
            let bad =
                "#!lua name=bad\nlocal t = {} for i = 1, 1000 do t[i] = 'y' .. i end error(t[9])";
            let reply = server.run(&["FUNCTION", "LOAD", bad]).to_string();
            assert!(reply.starts_with("-ERR Error registering functions"), "{reply}");
        }
        assert_eq!(server.run(&["FUNCTION", "DELETE", "lib"]).to_string(), "+OK");
        let after = server.worker.node.scripts.memory().vm_functions;
        assert!(after < bytes + (64 << 10), "{bytes} bytes became {after}");
    }

    /// What a machine has loaded of other libraries stays when one more is looked at there.
    #[test]
    fn functions_are_called_before_and_after_another_library_is_loaded() {
        let mut server = TestServer::new();
        let library = |name: &str, value: &str| {
            let code = format!("redis.register_function('{name}', function() return {value} end)");
            format!("#!lua name=lib_{name}\n{code}")
        };
        server.run(&["FUNCTION", "LOAD", &library("one", "1")]);
        assert_eq!(server.run(&["FCALL", "one", "0"]).to_string(), "1");
        server.run(&["FUNCTION", "LOAD", &library("two", "'a' .. 2")]);
        assert_eq!(server.run(&["FCALL", "one", "0"]).to_string(), "1");
        assert_eq!(server.run(&["FCALL", "two", "0"]).to_string(), "\"a2\"");
        server.run(&["FUNCTION", "LOAD", "REPLACE", &library("one", "3")]);
        assert_eq!(server.run(&["FCALL", "one", "0"]).to_string(), "3");
        assert_eq!(server.run(&["FCALL", "two", "0"]).to_string(), "\"a2\"");
    }
}
