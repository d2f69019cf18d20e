//! The end of a run. Usually everything it made is cut off. If permanent objects that scripts may
//! change (the variables and tables of a function library) came to name run objects, those and what
//! they reach are moved to the permanent part first.

use super::{Loaded, State};
use crate::heap::{
    Arena, CELL_BYTES, Closure, FUNCTION_BYTES, Heap, NATIVE_BYTES, Native, RunStrings,
    TABLE_BYTES, Table, VALUE_BYTES,
};
use crate::value::{CellRef, FuncRef, NativeRef, ProtoRef, StrRef, TableRef, ThreadRef, Value};
use crate::vm::{Callee, Coroutine};
use std::collections::HashMap;

impl State {
    pub(super) fn cut_or_promote(&mut self) {
        let kept_run = std::mem::take(&mut self.keeps_run)
            && self.roots.iter().any(|root| self.heap.is_run(*root));
        if kept_run || !self.heap.remembered.is_empty() {
            self.promote();
            self.collect_permanent_if_due();
        } else {
            let heap = &mut self.heap;
            heap.cut();
            self.protos.cut();
            let lasting = heap.lasting_bytes();
            heap.memory.give(heap.memory.used_bytes().saturating_sub(lasting));
            heap.count_permanent();
        }
        self.set_collect_mark();
    }

    fn promote(&mut self) {
        let used = self.heap.memory.used_bytes();
        self.heap.memory.give(used.saturating_sub(self.heap.lasting_bytes()));
        let remembered = std::mem::take(&mut self.heap.remembered);
        let mut mover = Mover::new(&mut self.heap, &mut self.protos);
        for root in &mut self.roots {
            *root = mover.value(*root);
        }
        let mut found: Vec<Moved> = Vec::new();
        found.extend(remembered.tables.into_iter().map(Moved::Table));
        found.extend(remembered.cells.into_iter().map(Moved::Cell));
        found.extend(remembered.natives.into_iter().map(Moved::Native));
        found.extend(remembered.threads.into_iter().map(Moved::Thread));
        mover.todo.append(&mut found);
        while let Some(moved) = mover.todo.pop() {
            mover.rewrite(moved);
        }
        self.heap.count_permanent();
    }
}

/// An object in its permanent place that may still name run objects.
#[derive(Clone, Copy, Debug)]
enum Moved {
    Table(TableRef),
    Function(FuncRef),
    Native(NativeRef),
    Cell(CellRef),
    Thread(ThreadRef),
    Proto(ProtoRef),
}

/// Run objects of one kind, and where those that were moved went.
struct Leaving<T> {
    first: usize,
    objects: Vec<T>,
    moved: HashMap<usize, u32>,
}

impl<T: Default> Leaving<T> {
    fn of(arena: &mut Arena<T>) -> Self {
        let first = arena.permanent_len();
        Leaving { first, objects: arena.split_run(), moved: HashMap::new() }
    }

    /// Moves an object if it is of the run; its new index, and whether it was moved just now.
    fn permanent(&mut self, arena: &mut Arena<T>, index: usize) -> (u32, bool) {
        let Some(offset) = index.checked_sub(self.first) else { return (index as u32, false) };
        if let Some(&known) = self.moved.get(&offset) {
            return (known, false);
        }
        let object = self.objects.get_mut(offset).map(std::mem::take).unwrap_or_default();
        let permanent = arena.add_permanent(object);
        self.moved.insert(offset, permanent);
        (permanent, true)
    }
}

struct Mover<'a> {
    heap: &'a mut Heap,
    loaded: &'a mut Arena<Loaded>,
    strings: RunStrings,
    strings_moved: HashMap<StrRef, StrRef>,
    tables: Leaving<Table>,
    functions: Leaving<Closure>,
    natives: Leaving<Native>,
    cells: Leaving<Value>,
    threads: Leaving<Coroutine>,
    protos: Leaving<Loaded>,
    todo: Vec<Moved>,
}

impl<'a> Mover<'a> {
    fn new(heap: &'a mut Heap, loaded: &'a mut Arena<Loaded>) -> Self {
        Mover {
            strings: heap.strings.split_run(),
            strings_moved: HashMap::new(),
            tables: Leaving::of(&mut heap.tables),
            functions: Leaving::of(&mut heap.functions),
            natives: Leaving::of(&mut heap.natives),
            cells: Leaving::of(&mut heap.cells),
            threads: Leaving::of(&mut heap.threads),
            protos: Leaving::of(loaded),
            todo: Vec::new(),
            heap,
            loaded,
        }
    }

    fn count(&mut self, bytes: usize) {
        // It was counted before, as a part of the run: there is room.
        let _ = self.heap.memory.take(bytes);
    }

    /// The value with its permanent handle.
    fn value(&mut self, value: Value) -> Value {
        match value {
            Value::Nil | Value::Bool(_) | Value::Number(_) | Value::Light(_) => value,
            Value::Str(string) => Value::Str(self.string(string)),
            Value::Table(table) => {
                let (permanent, is_new) =
                    self.tables.permanent(&mut self.heap.tables, table.index());
                self.found(is_new, Moved::Table(TableRef(permanent)));
                Value::Table(TableRef(permanent))
            }
            Value::Function(function) => Value::Function(self.function(function)),
            Value::Native(native) => {
                let (permanent, is_new) =
                    self.natives.permanent(&mut self.heap.natives, native.index());
                self.found(is_new, Moved::Native(NativeRef(permanent)));
                Value::Native(NativeRef(permanent))
            }
            Value::Thread(thread) => {
                let (permanent, is_new) =
                    self.threads.permanent(&mut self.heap.threads, thread.index());
                self.found(is_new, Moved::Thread(ThreadRef(permanent)));
                Value::Thread(ThreadRef(permanent))
            }
            Value::Cell(cell) => {
                let (permanent, is_new) = self.cells.permanent(&mut self.heap.cells, cell.index());
                self.found(is_new, Moved::Cell(CellRef(permanent)));
                Value::Cell(CellRef(permanent))
            }
        }
    }

    fn found(&mut self, is_new: bool, moved: Moved) {
        if !is_new {
            return;
        }
        let heap = &self.heap;
        let bytes = match moved {
            Moved::Table(table) => TABLE_BYTES + heap.tables.at(table.index()).bytes(),
            Moved::Function(function) => {
                let closure = heap.functions.at(function.index());
                FUNCTION_BYTES + closure.upvalues.len() * VALUE_BYTES
            }
            Moved::Native(native) => {
                NATIVE_BYTES + heap.natives.at(native.index()).upvalues.len() * VALUE_BYTES
            }
            Moved::Cell(_) => CELL_BYTES,
            Moved::Thread(thread) => heap.threads.at(thread.index()).size_bytes(),
            Moved::Proto(proto) => self.loaded.at(proto.index()).size_bytes,
        };
        self.count(bytes);
        self.todo.push(moved);
    }

    fn string(&mut self, string: StrRef) -> StrRef {
        if !self.strings.has(string) {
            return string;
        }
        if let Some(known) = self.strings_moved.get(&string) {
            return *known;
        }
        let Heap { strings, memory, .. } = &mut *self.heap;
        let bytes = self.strings.bytes(string);
        let permanent = strings.add_permanent(memory, bytes).unwrap_or_default();
        self.strings_moved.insert(string, permanent);
        permanent
    }

    fn function(&mut self, function: FuncRef) -> FuncRef {
        let (permanent, is_new) =
            self.functions.permanent(&mut self.heap.functions, function.index());
        self.found(is_new, Moved::Function(FuncRef(permanent)));
        FuncRef(permanent)
    }

    fn proto(&mut self, proto: ProtoRef) -> ProtoRef {
        let (permanent, is_new) = self.protos.permanent(self.loaded, proto.index());
        self.found(is_new, Moved::Proto(ProtoRef(permanent)));
        ProtoRef(permanent)
    }

    fn all(&mut self, values: &mut [Value]) {
        for value in values {
            *value = self.value(*value);
        }
    }

    fn rewrite(&mut self, moved: Moved) {
        match moved {
            Moved::Table(table) => {
                let mut object = std::mem::take(self.heap.tables.at_mut(table.index()));
                object.rewrite(|value| self.value(value));
                object.rehash(&self.heap.strings);
                *self.heap.tables.at_mut(table.index()) = object;
            }
            Moved::Function(function) => {
                let mut closure = std::mem::take(self.heap.functions.at_mut(function.index()));
                self.all(&mut closure.upvalues);
                closure.proto = self.proto(closure.proto);
                *self.heap.functions.at_mut(function.index()) = closure;
            }
            Moved::Native(native) => {
                let mut object = std::mem::take(self.heap.natives.at_mut(native.index()));
                self.all(&mut object.upvalues);
                *self.heap.natives.at_mut(native.index()) = object;
            }
            Moved::Cell(cell) => {
                let value = *self.heap.cells.at(cell.index());
                let value = self.value(value);
                *self.heap.cells.at_mut(cell.index()) = value;
            }
            Moved::Thread(thread) => {
                let mut coroutine = std::mem::take(self.heap.threads.at_mut(thread.index()));
                self.coroutine(&mut coroutine);
                *self.heap.threads.at_mut(thread.index()) = coroutine;
            }
            Moved::Proto(proto) => {
                let mut loaded = std::mem::take(self.loaded.at_mut(proto.index()));
                self.all(&mut loaded.constants);
                for (constant, name) in loaded.constants.iter().zip(&mut loaded.names) {
                    if let Value::Str(string) = constant {
                        name.0 = *string;
                    }
                }
                for child in &mut loaded.children {
                    *child = self.proto(*child);
                }
                if let Value::Table(env) = self.value(Value::Table(loaded.env)) {
                    loaded.env = env;
                }
                *self.loaded.at_mut(proto.index()) = loaded;
            }
        }
    }

    fn coroutine(&mut self, coroutine: &mut Coroutine) {
        let used = coroutine.live_len(self.loaded);
        coroutine.stack[used..].fill(Value::Nil);
        for index in 0..used {
            coroutine.stack[index] = self.value(coroutine.stack[index]);
        }
        for frame in coroutine.frames.iter_mut() {
            frame.set_callee(match frame.callee() {
                Callee::Lua { function, proto } => {
                    Callee::Lua { function: self.function(function), proto: self.proto(proto) }
                }
                Callee::Native(native) => match self.value(Value::Native(native)) {
                    Value::Native(native) => Callee::Native(native),
                    _ => Callee::Native(native),
                },
            });
        }
    }
}
