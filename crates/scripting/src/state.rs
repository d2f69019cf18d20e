//! A Lua state: heap, loaded code, globals, and the running stack. One thread uses it at a time.
//!
//! A run: the host makes the arguments through [`State::heap_mut`], calls with [`State::call`],
//! reads the results, and ends with [`State::end_run`], after which no handle made during the run
//! is good.

mod collect;
mod mark;
mod promote;

use crate::call::{MakingFn, NativeFn, QuickFn, Walk};
use crate::fault::Fault;
use crate::heap::{Arena, Heap, NativeCode};
use crate::host::Host;
use crate::limits::{MEMORY_BYTES_MAX, STEPS_PER_TICK};
use crate::proto::{Chunk, Constant, Proto};
use crate::value::{FuncRef, ProtoRef, StrRef, TableRef, ThreadRef, Value};
use crate::vm::{ALL, Callee, Coroutine, Status, Switch};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

/// A function or value that the host keeps from run to run.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct RootId(u32);

/// Code in a state: the shared code with this state's constants.
#[derive(Debug, Default)]
pub(crate) struct Loaded {
    pub(crate) proto: Arc<Proto>,
    pub(crate) constants: Box<[Value]>,
    /// By constant, for those that are strings: as names of fields, with their hashes.
    pub(crate) names: Box<[(StrRef, u32)]>,
    pub(crate) children: Box<[ProtoRef]>,
    /// The globals of this code.
    pub(crate) env: TableRef,
    /// What it counts for.
    pub(crate) size_bytes: usize,
}

#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Of the hashes in tables.
    pub seed: u64,
    pub memory_bytes_max: usize,
}

impl Default for Config {
    fn default() -> Self {
        Config { seed: 0, memory_bytes_max: MEMORY_BYTES_MAX }
    }
}

/// Entries that the globals, and each library, have room for: several times as many as there are,
/// so that most names are found where they are looked for first.
const GLOBALS_ROOM: usize = 256;
const LIBRARY_ROOM: usize = 64;

/// How many names metatables give meaning to.
const EVENTS: usize = 17;

/// The names that metatables give meaning to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum Event {
    Index,
    NewIndex,
    Eq,
    Call,
    Add,
    Sub,
    Mul,
    Div,
    Mod,
    Pow,
    Unm,
    Concat,
    Lt,
    Le,
    ToString,
    Metatable,
    Mode,
}

const EVENT_NAMES: [&str; EVENTS] = [
    "__index",
    "__newindex",
    "__eq",
    "__call",
    "__add",
    "__sub",
    "__mul",
    "__div",
    "__mod",
    "__pow",
    "__unm",
    "__concat",
    "__lt",
    "__le",
    "__tostring",
    "__metatable",
    "__mode",
];

#[derive(Debug)]
pub struct State {
    pub(crate) heap: Heap,
    pub(crate) protos: Arena<Loaded>,
    pub(crate) current: Coroutine,
    /// The running coroutine, if it is not the main one.
    pub(crate) thread: Option<ThreadRef>,
    /// Those that wait for the coroutine that they resumed. Each one's stack stands in that one's
    /// place in the heap meanwhile.
    pub(crate) resumers: Vec<Option<ThreadRef>>,
    /// Of the resumes among them, those that the plain loop made by itself.
    pub(crate) switches: Vec<Switch>,
    pub(crate) globals: TableRef,
    /// Natives, metamethods and coroutines that are nested now.
    pub(crate) depth: usize,
    /// The depth at which the running coroutine was resumed.
    pub(crate) depth_of_thread: usize,
    /// Values that natives need again after a call back into Lua, and that no stack shows.
    pub(crate) held: Vec<Value>,
    pub(crate) events: [StrRef; EVENTS],
    pub(crate) roots: Vec<Value>,
    roots_free: Vec<u32>,
    /// Something of this run may be among the roots.
    keeps_run: bool,
    run_globals: Vec<StrRef>,
    /// What the libraries keep.
    pub(crate) library: crate::library::Kept,
    origin: Option<Origin>,
    pub(crate) collects_eagerly: bool,
    gauge: Arc<AtomicUsize>,
}

/// Where the error of a run was raised.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Origin {
    /// The name that the chunk was compiled with, or [`NATIVE`].
    pub chunk_name: Arc<[u8]>,
    /// -1 in a native, which has none.
    pub line: i64,
}

/// What stands for the chunk of a native, as in Lua 5.1.
const NATIVE: &[u8] = b"=[C]";

impl State {
    /// A state without libraries: see [`crate::library::open`].
    pub fn new(config: Config) -> Self {
        let mut heap = Heap::new(config.seed, config.memory_bytes_max);
        let globals = heap.table(0, GLOBALS_ROOM).unwrap_or_default();
        heap.make_permanent();
        let mut events = [StrRef::default(); EVENTS];
        for (event, name) in events.iter_mut().zip(EVENT_NAMES) {
            *event = heap.intern(name.as_bytes()).unwrap_or_default();
        }
        let mut current = Coroutine::new();
        current.status = Status::Running;
        State {
            heap,
            protos: Arena::default(),
            current,
            thread: None,
            resumers: Vec::new(),
            switches: Vec::new(),
            globals,
            depth: 0,
            depth_of_thread: 0,
            held: Vec::new(),
            events,
            roots: Vec::new(),
            roots_free: Vec::new(),
            keeps_run: false,
            run_globals: Vec::new(),
            library: crate::library::Kept::default(),
            origin: None,
            collects_eagerly: false,
            gauge: Arc::default(),
        }
    }

    pub fn heap(&self) -> &Heap {
        &self.heap
    }

    pub fn heap_mut(&mut self) -> &mut Heap {
        &mut self.heap
    }

    pub fn globals(&self) -> TableRef {
        self.globals
    }

    pub(crate) fn event(&self, event: Event) -> StrRef {
        self.events[event as usize]
    }

    // Set-up, between runs.

    /// Gives a table a function of ours.
    pub fn define(&mut self, table: TableRef, name: &str, code: NativeFn) -> Result<(), Fault> {
        self.define_native(table, name, NativeCode::Ours(code))
    }

    /// As [`State::define`], for a function that also has a quick form.
    pub(crate) fn define_quick(
        &mut self,
        table: TableRef,
        name: &str,
        (quick, code): (QuickFn, NativeFn),
    ) -> Result<(), Fault> {
        self.define_native(table, name, NativeCode::Quick(quick, code))
    }

    /// The same for a function that makes a string or changes a table.
    pub(crate) fn define_making(
        &mut self,
        table: TableRef,
        name: &str,
        (making, code): (MakingFn, NativeFn),
    ) -> Result<(), Fault> {
        self.define_native(table, name, NativeCode::Making(making, code))
    }

    /// A function that loops call at each turn.
    pub(crate) fn step(&mut self, walk: Walk, code: NativeFn) -> Result<Value, Fault> {
        let made = self.heap.try_native(NativeCode::Step(walk, code), &[]);
        made.map(Value::Native).map_err(|refusal| self.heap.fault_of(refusal))
    }

    /// Gives a table a function that the host answers for, by its number.
    pub fn define_host(&mut self, table: TableRef, name: &str, number: u16) -> Result<(), Fault> {
        self.define_native(table, name, NativeCode::Host(number))
    }

    pub(crate) fn define_native(
        &mut self,
        table: TableRef,
        name: &str,
        code: NativeCode,
    ) -> Result<(), Fault> {
        let made = self.heap.try_native(code, &[]);
        let native = made.map_err(|refusal| self.heap.fault_of(refusal))?;
        self.define_value(table, name, Value::Native(native))
    }

    /// Gives a table a field, by a name that constants of scripts share.
    pub fn define_value(&mut self, table: TableRef, name: &str, value: Value) -> Result<(), Fault> {
        let name = self.heap.intern_late(name.as_bytes())?;
        self.heap.set(table, Value::Str(name), value)
    }

    /// A new table as a field of another, for a library.
    pub fn define_table(&mut self, table: TableRef, name: &str) -> Result<TableRef, Fault> {
        let made = self.heap.table(0, LIBRARY_ROOM)?;
        self.define_value(table, name, Value::Table(made))?;
        Ok(made)
    }

    /// What all strings have as their metatable.
    pub fn set_string_meta(&mut self, meta: TableRef) {
        self.heap.string_meta = Some(meta);
    }

    /// Makes all that was set up permanent, and the globals and kept tables, with all tables that
    /// they reach, read-only.
    pub fn freeze(&mut self) {
        self.heap.make_permanent();
        self.protos.make_permanent();
        self.publish_memory();
        let mut todo = vec![self.globals];
        todo.extend(self.heap.string_meta);
        todo.extend(self.roots.iter().filter_map(|root| match root {
            Value::Table(table) => Some(*table),
            _ => None,
        }));
        while let Some(table) = todo.pop() {
            if self.heap.is_read_only(table) {
                continue;
            }
            self.heap.freeze(table);
            todo.extend(self.heap.meta(table));
            let mut cursor = 0;
            while let Some((next, _, value)) = self.heap.entry_from(table, cursor) {
                cursor = next;
                if let Value::Table(inner) = value {
                    todo.push(inner);
                }
            }
        }
    }

    // Code.

    /// Loads a chunk for many runs; its globals are `env`.
    pub fn load(&mut self, chunk: &Chunk, env: TableRef) -> Result<RootId, Fault> {
        self.collect_permanent_if_due();
        let function = self.instantiate(&chunk.main, env, true)?;
        Ok(self.keep(Value::Function(function)))
    }

    /// Gives a loaded chunk, and the functions that were made of its code, other globals.
    pub fn set_globals(&mut self, root: RootId, env: TableRef) {
        let Value::Function(function) = self.kept(root) else { return };
        let mut todo = vec![self.heap.functions.at(function.index()).proto];
        while let Some(proto) = todo.pop() {
            let loaded = self.protos.at_mut(proto.index());
            loaded.env = env;
            todo.extend(&loaded.children);
        }
    }

    /// Loads a chunk for one run, with which it goes.
    pub fn load_for_run(&mut self, chunk: &Chunk, env: TableRef) -> Result<FuncRef, Fault> {
        self.instantiate(&chunk.main, env, false)
    }

    fn instantiate(
        &mut self,
        proto: &Arc<Proto>,
        env: TableRef,
        is_permanent: bool,
    ) -> Result<FuncRef, Fault> {
        let loaded = self.load_proto(proto, env, is_permanent);
        let made = loaded.and_then(|loaded| {
            let made = self.heap.closure(loaded, Box::default());
            made.map_err(|refusal| self.heap.fault_of(refusal))
        });
        if is_permanent {
            // Also what a refused chunk left behind, which the next collection finds.
            self.heap.make_permanent();
        }
        made
    }

    fn load_proto(
        &mut self,
        proto: &Arc<Proto>,
        env: TableRef,
        is_permanent: bool,
    ) -> Result<ProtoRef, Fault> {
        let mut children = Vec::with_capacity(proto.children.len());
        for child in &proto.children {
            children.push(self.load_proto(child, env, is_permanent)?);
        }
        let mut constants = Vec::with_capacity(proto.constants.len());
        for constant in &proto.constants {
            constants.push(match constant {
                Constant::Nil => Value::Nil,
                Constant::Bool(value) => Value::Bool(*value),
                Constant::Number(number) => Value::Number(*number),
                Constant::Str(bytes) if is_permanent => {
                    Value::Str(self.heap.intern_constant(bytes)?)
                }
                Constant::Str(bytes) => match self.heap.strings.interned(bytes) {
                    Some(known) => Value::Str(known),
                    None => Value::Str(self.heap.string(bytes)?),
                },
            });
        }
        let names: Box<[(StrRef, u32)]> = constants
            .iter()
            .map(|constant| match constant {
                Value::Str(string) => (*string, self.heap.strings.hash(*string)),
                _ => Default::default(),
            })
            .collect();
        // Code that outlives the run is shared by all states, and whoever shares it out counts it.
        let own_bytes = if is_permanent { 0 } else { proto.own_bytes() };
        let size_bytes = size_of::<Loaded>()
            + own_bytes
            + constants.len() * size_of::<Value>()
            + size_of_val(&*names);
        self.heap.take(size_bytes)?;
        let loaded = Loaded {
            size_bytes,
            names,
            proto: proto.clone(),
            constants: constants.into(),
            children: children.into(),
            env,
        };
        let index =
            if is_permanent { self.protos.add_permanent(loaded) } else { self.protos.add(loaded) };
        Ok(ProtoRef(index))
    }

    // What the host keeps.

    /// Keeps a value beyond the run, and everything it reaches. What the host wants to find again
    /// in a later run is kept this way, or interned, or reached from the globals.
    pub fn keep(&mut self, value: Value) -> RootId {
        self.keeps_run |= self.heap.is_run(value);
        match self.roots_free.pop() {
            Some(index) => {
                self.roots[index as usize] = value;
                RootId(index)
            }
            None => {
                self.roots.push(value);
                RootId(self.roots.len() as u32 - 1)
            }
        }
    }

    pub fn kept(&self, root: RootId) -> Value {
        self.roots.get(root.0 as usize).copied().unwrap_or_default()
    }

    /// Lets go of a kept value; what only it reached is freed some time later.
    pub fn release(&mut self, root: RootId) {
        if let Some(slot) = self.roots.get_mut(root.0 as usize) {
            *slot = Value::Nil;
            self.roots_free.push(root.0);
        }
    }

    // Runs.

    /// Sets a global for this run only, read-only globals or not.
    pub fn set_run_global(&mut self, name: StrRef, value: Value) -> Result<(), Fault> {
        self.run_globals.push(name);
        self.heap.set_unguarded(self.globals, name, value)
    }

    /// Calls a function; its results stay good until the run ends.
    pub fn call(
        &mut self,
        host: &mut dyn Host,
        function: Value,
        args: &[Value],
    ) -> Result<&[Value], Fault> {
        self.heap.steps_left = STEPS_PER_TICK;
        self.current.frames.clear();
        self.current.top = 0;
        let outcome = self.call_value(host, function, args, ALL);
        if let Err(fault) = &outcome {
            self.origin = self.find_origin(matches!(fault, Fault::Killed));
            self.unwind_all();
        }
        let func = outcome?;
        Ok(&self.current.stack[func..self.current.top])
    }

    /// Where the last call that failed was in its source; nothing if it was a native itself.
    pub fn origin(&self) -> Option<&Origin> {
        self.origin.as_ref()
    }

    /// A field of the error that the last call failed with, or what its metatable gives for it: a
    /// handler runs within the same limits, and may fail in its turn.
    pub fn error_field(
        &mut self,
        host: &mut dyn Host,
        error: TableRef,
        name: &[u8],
    ) -> Result<Value, Fault> {
        let own = self.heap.field(error, name);
        if !own.is_nil() || self.heap.meta(error).is_none() {
            return Ok(own);
        }
        let key = Value::Str(self.heap.string(name)?);
        self.current.top = 0;
        // For the next field.
        self.held.push(Value::Table(error));
        let inherited = self.index(host, Value::Table(error), key);
        // What failed is over; the origin stays that of the error.
        self.unwind_all();
        inherited
    }

    /// The code that ran last, or that called the native that ran last. Code is killed between two
    /// instructions: then the next one says where it was, for the last may be a jump from afar.
    fn find_origin(&self, is_killed: bool) -> Option<Origin> {
        let mut frames = self.current.frames.iter().rev();
        let last = frames.next()?;
        let (frame, is_between) = match last.callee() {
            Callee::Lua { .. } => (last, is_killed),
            Callee::Native(_) => (frames.next()?, false),
        };
        let Callee::Lua { proto, .. } = frame.callee() else {
            return Some(Origin { chunk_name: NATIVE.into(), line: -1 });
        };
        let proto = &self.protos.at(proto.index()).proto;
        let line = proto.line((frame.pc as usize).saturating_sub(usize::from(!is_between)));
        Some(Origin { chunk_name: proto.chunk_name.clone(), line: i64::from(line) })
    }

    fn unwind_all(&mut self) {
        while let Some(before) = self.resumers.pop() {
            if let Some(thread) = std::mem::replace(&mut self.thread, before) {
                // A coroutine that the run was killed in stays dead.
                let dead = Coroutine { status: Status::Dead, ..Coroutine::default() };
                let waiting = std::mem::replace(self.heap.threads.at_mut(thread.index()), dead);
                let killed = std::mem::replace(&mut self.current, waiting);
                self.heap.give_stack(thread, killed.size_bytes());
            }
        }
        self.switches.clear();
        self.current.unwind(0);
        self.current.status = Status::Running;
        (self.depth, self.depth_of_thread) = (0, 0);
        self.held.clear();
    }

    /// Ends the run: what it made is gone, except what permanent objects came to name.
    pub fn end_run(&mut self) {
        self.unwind_all();
        self.library.end_run();
        while let Some(name) = self.run_globals.pop() {
            // Taking an entry away needs no memory and cannot be refused.
            let _ = self.heap.set_unguarded(self.globals, name, Value::Nil);
        }
        self.current.top = 0;
        self.current.shrink();
        self.cut_or_promote();
        self.publish_memory();
    }
}

#[cfg(test)]
mod tests {
    use super::State;
    use crate::proto::Chunk;

    #[test]
    fn states_move_between_threads_and_chunks_are_shared() {
        fn moves<T: Send>() {}
        fn is_shared<T: Send + Sync>() {}
        moves::<State>();
        is_shared::<Chunk>();
    }
}
