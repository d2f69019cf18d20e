//! Marking what is reachable. The same walk serves the run part, with the permanent part left
//! alone, and the permanent part between runs. Tables whose metatable has a `__mode` do not keep
//! their keys, their values or both; `weak` takes those entries away that nothing else keeps.

use super::{Event, Loaded, State};
use crate::heap::{Arena, Heap, Table};
use crate::value::{CellRef, FuncRef, NativeRef, ProtoRef, StrRef, TableRef, ThreadRef, Value};
use crate::vm::{Callee, Coroutine};

/// Marks of one kind of object, from an index on.
#[derive(Debug)]
pub(super) struct Marks {
    pub(super) first: usize,
    pub(super) set: Vec<bool>,
}

impl Marks {
    fn new(first: usize, len: usize) -> Self {
        Marks { first, set: vec![false; len - first] }
    }

    /// Marks an object; whether that was news. What lies outside is left alone: the permanent part,
    /// and indexes that a register kept from a function long gone.
    fn mark(&mut self, index: usize) -> bool {
        let slot = index.checked_sub(self.first).and_then(|index| self.set.get_mut(index));
        slot.is_some_and(|slot| !std::mem::replace(slot, true))
    }

    pub(super) fn has(&self, index: usize) -> bool {
        match index.checked_sub(self.first) {
            Some(index) => self.set.get(index).copied().unwrap_or(false),
            None => true,
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Todo {
    Table(TableRef),
    Function(FuncRef),
    Native(NativeRef),
    Cell(CellRef),
    Thread(ThreadRef),
    Proto(ProtoRef),
}

/// What a collection covers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Part {
    Run,
    /// Everything; only between runs.
    All,
}

#[derive(Debug)]
pub(super) struct Marker {
    pub(super) strings: Marks,
    pub(super) tables: Marks,
    pub(super) functions: Marks,
    pub(super) natives: Marks,
    pub(super) cells: Marks,
    pub(super) threads: Marks,
    pub(super) protos: Marks,
    /// Weak tables that were reached, and what is weak in them.
    pub(super) weak: Vec<(TableRef, Weakness)>,
    mode_name: StrRef,
    todo: Vec<Todo>,
}

/// What a table does not keep alive. Strings are values, not objects: they always stay.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Weakness {
    pub(super) keys: bool,
    pub(super) values: bool,
}

fn marks_of<T: Default>(arena: &Arena<T>, part: Part) -> Marks {
    let first = if part == Part::Run { arena.permanent_len() } else { 0 };
    Marks::new(first, arena.len())
}

impl Marker {
    pub(super) fn new(state: &State, part: Part) -> Self {
        let heap = &state.heap;
        let len = heap.strings.total_len();
        let first = if part == Part::Run { len - heap.strings.run_len() } else { 0 };
        Marker {
            strings: Marks::new(first, len),
            tables: marks_of(&heap.tables, part),
            functions: marks_of(&heap.functions, part),
            natives: marks_of(&heap.natives, part),
            cells: marks_of(&heap.cells, part),
            threads: marks_of(&heap.threads, part),
            protos: marks_of(&state.protos, part),
            weak: Vec::new(),
            mode_name: state.event(Event::Mode),
            todo: Vec::new(),
        }
    }

    /// Marks all that the state can reach.
    pub(super) fn run(&mut self, state: &State) {
        self.value(Value::Table(state.globals));
        self.value(Value::Str(state.heap.out_of_memory));
        for name in state.events {
            self.value(Value::Str(name));
        }
        if let Some(meta) = state.heap.string_meta {
            self.value(Value::Table(meta));
        }
        for name in &state.heap.pinned {
            self.value(Value::Str(*name));
        }
        for root in &state.roots {
            self.value(*root);
        }
        for held in &state.held {
            self.value(*held);
        }
        self.coroutine(&state.protos, &state.current);
        // In the place of each stands who resumed it; one that is permanent was remembered.
        for thread in state.resumers.iter().chain([&state.thread]).flatten() {
            self.value(Value::Thread(*thread));
        }
        self.run_globals(state);
        self.remembered(state);
        while let Some(todo) = self.todo.pop() {
            self.trace(&state.heap, &state.protos, todo);
        }
    }

    /// Globals of the run stand in a permanent table without being remembered.
    fn run_globals(&mut self, state: &State) {
        for name in &state.run_globals {
            self.value(state.heap.get(state.globals, Value::Str(*name)));
        }
    }

    fn remembered(&mut self, state: &State) {
        let remembered = &state.heap.remembered;
        self.todo.extend(remembered.tables.iter().map(|table| Todo::Table(*table)));
        self.todo.extend(remembered.cells.iter().map(|cell| Todo::Cell(*cell)));
        self.todo.extend(remembered.natives.iter().map(|native| Todo::Native(*native)));
        self.todo.extend(remembered.threads.iter().map(|thread| Todo::Thread(*thread)));
    }

    fn value(&mut self, value: Value) {
        let todo = match value {
            Value::Nil | Value::Bool(_) | Value::Number(_) | Value::Light(_) => return,
            Value::Str(StrRef(index)) => {
                self.strings.mark(index as usize);
                return;
            }
            Value::Table(table) => self.tables.mark(table.index()).then_some(Todo::Table(table)),
            Value::Function(function) => {
                self.functions.mark(function.index()).then_some(Todo::Function(function))
            }
            Value::Native(native) => {
                self.natives.mark(native.index()).then_some(Todo::Native(native))
            }
            Value::Thread(thread) => {
                self.threads.mark(thread.index()).then_some(Todo::Thread(thread))
            }
            Value::Cell(cell) => self.cells.mark(cell.index()).then_some(Todo::Cell(cell)),
        };
        self.todo.extend(todo);
    }

    fn proto(&mut self, proto: ProtoRef) {
        if self.protos.mark(proto.index()) {
            self.todo.push(Todo::Proto(proto));
        }
    }

    fn coroutine(&mut self, protos: &Arena<Loaded>, coroutine: &Coroutine) {
        for value in &coroutine.stack[..coroutine.live_len(protos)] {
            self.value(*value);
        }
        for frame in coroutine.frames.iter() {
            match frame.callee() {
                Callee::Lua { function, proto } => {
                    self.value(Value::Function(function));
                    self.proto(proto);
                }
                Callee::Native(native) => self.value(Value::Native(native)),
            }
        }
    }

    fn weakness(&self, heap: &Heap, meta: TableRef) -> Weakness {
        let mode = match heap.tables.find(meta.index()) {
            Some(meta) => *meta.at_str(&heap.strings, self.mode_name),
            None => Value::Nil,
        };
        let mode = if let Value::Str(mode) = mode { heap.bytes(mode) } else { b"" };
        Weakness { keys: mode.contains(&b'k'), values: mode.contains(&b'v') }
    }

    /// Marks what a table keeps alive.
    fn strong_part(&mut self, table: &Table, weak: Weakness) {
        for value in &table.array {
            self.unless(weak.values, *value);
        }
        for node in table.nodes.iter().filter(|node| !node.value.is_nil()) {
            self.unless(weak.keys, node.key);
            self.unless(weak.values, node.value);
        }
    }

    fn unless(&mut self, is_weak: bool, value: Value) {
        if !is_weak || matches!(value, Value::Str(_)) {
            self.value(value);
        }
    }

    /// Whether a value outlives this collection.
    pub(super) fn is_live(&self, value: Value) -> bool {
        match value {
            Value::Nil | Value::Bool(_) | Value::Number(_) | Value::Light(_) => true,
            Value::Str(string) => self.strings.has(string.index()),
            Value::Table(table) => self.tables.has(table.index()),
            Value::Function(function) => self.functions.has(function.index()),
            Value::Native(native) => self.natives.has(native.index()),
            Value::Thread(thread) => self.threads.has(thread.index()),
            Value::Cell(cell) => self.cells.has(cell.index()),
        }
    }

    fn trace(&mut self, heap: &Heap, protos: &Arena<Loaded>, todo: Todo) {
        match todo {
            Todo::Table(handle) => {
                let Some(table) = heap.tables.find(handle.index()) else { return };
                if let Some(meta) = table.meta() {
                    self.value(Value::Table(meta));
                    let weakness = self.weakness(heap, meta);
                    if weakness.keys || weakness.values {
                        self.weak.push((handle, weakness));
                        return self.strong_part(table, weakness);
                    }
                }
                self.strong_part(table, Weakness { keys: false, values: false });
            }
            Todo::Function(function) => {
                let Some(closure) = heap.functions.find(function.index()) else { return };
                for value in &closure.upvalues {
                    self.value(*value);
                }
                self.proto(closure.proto);
            }
            Todo::Native(native) => {
                let Some(native) = heap.natives.find(native.index()) else { return };
                for value in &native.upvalues {
                    self.value(*value);
                }
            }
            Todo::Cell(cell) => {
                if let Some(value) = heap.cells.find(cell.index()) {
                    self.value(*value);
                }
            }
            Todo::Thread(thread) => {
                if let Some(coroutine) = heap.threads.find(thread.index()) {
                    self.coroutine(protos, coroutine);
                }
            }
            Todo::Proto(proto) => {
                let Some(loaded) = protos.find(proto.index()) else { return };
                for value in &loaded.constants {
                    self.value(*value);
                }
                for child in &loaded.children {
                    self.proto(*child);
                }
                self.value(Value::Table(loaded.env));
            }
        }
    }
}
