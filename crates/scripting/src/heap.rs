//! Everything that Lua values name: strings, tables, functions, shared variables, coroutines.
//!
//! Objects are in two generations. The permanent part (globals, libraries, constants of loaded
//! scripts) is made between runs. Whatever a run makes lies behind it and goes in one cut when the
//! run ends, unless a permanent object that scripts may change came to name it (`promote`). A long
//! run is also collected while it runs (`collect`), when the machine knows all its roots.

mod arena;
mod cells;
mod memory;
mod spare;
mod strings;
mod table;
#[cfg(test)]
mod tests;

pub(crate) use arena::Arena;
pub(crate) use memory::Memory;
pub(crate) use strings::{RunStrings, Strings, Unfinished};
pub(crate) use table::{TABLE_BYTES, Table, low_bits};

use crate::call::{MakingFn, NativeFn, QuickFn, Walk};
use crate::fault::{Fault, OUT_OF_MEMORY, Refusal};
use crate::limits::{COLLECT_BYTES_MIN, MEMORY_BYTES_MIN, PACKED_STRING_BYTES_MAX};
pub(crate) use crate::value::same_handle;
use crate::value::{
    CellRef, FuncRef, NativeRef, ProtoRef, StrRef, TYPE_NAMES, TableRef, ThreadRef, Value,
};
use crate::vm::Coroutine;
use spare::Spare;
pub(crate) use std::collections::HashSet;
use std::ops::Range;

/// A function written in Lua.
#[derive(Debug, Default)]
pub(crate) struct Closure {
    pub(crate) proto: ProtoRef,
    /// A variable that is never assigned again is here itself, any other as its cell.
    pub(crate) upvalues: Box<[Value]>,
}

/// What a native runs.
#[derive(Clone, Copy, Debug)]
pub(crate) enum NativeCode {
    Ours(NativeFn),
    /// One that as a rule only looks at its arguments: the quick form is tried first.
    Quick(QuickFn, NativeFn),
    /// The same for one that makes a string or changes a table.
    Making(MakingFn, NativeFn),
    /// One that loops call at each turn: the form without a frame is tried first.
    Step(Walk, NativeFn),
    /// `coroutine.yield`, which needs no frame where it may be called; where not, this says why.
    Yield(NativeFn),
    /// `coroutine.resume`, and what `coroutine.wrap` makes: the plain loop can do without them.
    Resume(NativeFn),
    Wrapped(NativeFn),
    /// The host's function of that number.
    Host(u16),
    Free,
}

#[derive(Debug)]
pub(crate) struct Native {
    pub(crate) code: NativeCode,
    pub(crate) upvalues: Box<[Value]>,
}

impl Default for Native {
    fn default() -> Self {
        Native { code: NativeCode::Free, upvalues: Box::default() }
    }
}

pub(crate) const FUNCTION_BYTES: usize = size_of::<Closure>();
pub(crate) const NATIVE_BYTES: usize = size_of::<Native>();
pub(crate) const CELL_BYTES: usize = size_of::<Value>();
pub(crate) const VALUE_BYTES: usize = size_of::<Value>();

/// Permanent objects that name objects of the run.
#[derive(Debug, Default)]
pub(crate) struct Remembered {
    pub(crate) tables: Vec<TableRef>,
    pub(crate) cells: HashSet<CellRef>,
    pub(crate) natives: HashSet<NativeRef>,
    pub(crate) threads: HashSet<ThreadRef>,
}

impl Remembered {
    pub(crate) fn is_empty(&self) -> bool {
        self.tables.is_empty()
            && self.cells.is_empty()
            && self.natives.is_empty()
            && self.threads.is_empty()
    }
}

#[derive(Debug)]
pub struct Heap {
    pub(crate) strings: Strings,
    pub(crate) tables: Arena<Table>,
    pub(crate) functions: Arena<Closure>,
    pub(crate) natives: Arena<Native>,
    pub(crate) cells: Arena<Value>,
    pub(crate) threads: Arena<Coroutine>,
    pub(crate) memory: Memory,
    pub(crate) spare: Spare,
    pub(crate) remembered: Remembered,
    pub(crate) permanent_bytes: usize,
    /// What permanent tables and stacks have grown by in this run: it stays when the run ends.
    pub(crate) grown_bytes: isize,
    /// Permanent bytes after the last collection of the permanent part.
    pub(crate) permanent_bytes_kept: usize,
    pub(crate) collect_at_bytes: usize,
    pub(crate) out_of_memory: StrRef,
    /// The field and the text of the status that most commands answer with.
    status: [StrRef; 2],
    /// The field of `arg` that counts its elements.
    count_name: StrRef,
    /// By [`Value::type_index`].
    pub(crate) type_names: [StrRef; TYPE_NAMES.len()],
    /// Permanent strings that the host holds.
    pub(crate) pinned: HashSet<StrRef>,
    /// The metatable that all strings share.
    pub(crate) string_meta: Option<TableRef>,
    /// Work that natives declared since the host was last asked.
    pub(crate) steps_left: u32,
}

impl Heap {
    pub(crate) fn new(seed: u64, bytes_max: usize) -> Self {
        let mut strings = Strings::new(seed);
        let mut memory = Memory::new(bytes_max.max(MEMORY_BYTES_MIN));
        let mut intern = |text: &str| {
            let text = strings.intern(&mut memory, text.as_bytes());
            text.expect("an empty state has room for some short strings")
        };
        let (out_of_memory, status) = (intern(OUT_OF_MEMORY), ["ok", "OK"].map(&mut intern));
        let count_name = intern("n");
        let type_names = TYPE_NAMES.map(intern);
        Heap {
            strings,
            tables: Arena::default(),
            functions: Arena::default(),
            natives: Arena::default(),
            cells: Arena::default(),
            threads: Arena::default(),
            memory,
            spare: Spare::default(),
            remembered: Remembered::default(),
            permanent_bytes: 0,
            grown_bytes: 0,
            permanent_bytes_kept: 0,
            collect_at_bytes: COLLECT_BYTES_MIN,
            out_of_memory,
            status,
            count_name,
            type_names,
            pinned: status.into_iter().chain([count_name]).chain(type_names).collect(),
            string_meta: None,
            steps_left: crate::limits::STEPS_PER_TICK,
        }
    }

    /// Bytes held now.
    pub fn used_bytes(&self) -> usize {
        self.memory.used_bytes()
    }

    /// Whether garbage is to be collected as soon as the machine can.
    #[inline]
    pub(crate) fn is_collection_due(&self) -> bool {
        self.used_bytes() >= self.collect_at_bytes
    }

    /// Bytes of room that is ready for what is made next.
    pub(crate) fn spare_bytes(&self) -> usize {
        self.strings.spare_bytes()
            + self.spare.bytes()
            + self.tables.spare_bytes()
            + self.functions.spare_bytes()
            + self.natives.spare_bytes()
            + self.cells.spare_bytes()
            + self.threads.spare_bytes()
    }

    /// The error that a refused write or allocation raises, without a position.
    pub fn fault_of(&mut self, refusal: Refusal) -> Fault {
        match refusal {
            Refusal::OutOfMemory => Fault::Error(Value::Str(self.out_of_memory)),
            _ => self.fault(refusal.text()),
        }
    }

    /// An error with this text and no position.
    pub fn fault(&mut self, text: impl AsRef<[u8]>) -> Fault {
        match self.strings.add(&mut self.memory, text.as_ref()) {
            Ok(text) => Fault::Error(Value::Str(text)),
            Err(_) => Fault::Error(Value::Str(self.out_of_memory)),
        }
    }

    // Strings.

    pub fn bytes(&self, string: StrRef) -> &[u8] {
        self.strings.bytes(string)
    }

    pub fn string(&mut self, bytes: &[u8]) -> Result<StrRef, Fault> {
        let added = self.strings.add(&mut self.memory, bytes);
        added.map_err(|refusal| self.fault_of(refusal))
    }

    pub(crate) fn finish_string(&mut self, unfinished: Unfinished) -> Result<StrRef, Refusal> {
        self.strings.finish(&mut self.memory, unfinished)
    }

    pub(crate) fn own_string(&mut self, bytes: Vec<u8>) -> Result<StrRef, Refusal> {
        self.strings.add_own(&mut self.memory, bytes.into_boxed_slice())
    }

    /// As `string`, without a copy if the bytes are many.
    pub fn string_owned(&mut self, bytes: Vec<u8>) -> Result<StrRef, Fault> {
        let added = if bytes.len() > PACKED_STRING_BYTES_MAX {
            self.strings.add_own(&mut self.memory, bytes.into_boxed_slice())
        } else {
            self.strings.add(&mut self.memory, &bytes)
        };
        added.map_err(|refusal| self.fault_of(refusal))
    }

    /// A permanent string that constants share, for the host to hold; only between runs.
    pub fn intern(&mut self, bytes: &[u8]) -> Result<StrRef, Fault> {
        let string = self.intern_constant(bytes)?;
        self.pinned.insert(string);
        self.count_permanent();
        Ok(string)
    }

    /// As `intern`, but it goes when no constant needs it any more.
    pub(crate) fn intern_constant(&mut self, bytes: &[u8]) -> Result<StrRef, Fault> {
        let added = self.strings.intern(&mut self.memory, bytes);
        added.map_err(|refusal| self.fault_of(refusal))
    }

    /// As `intern`, during set-up: the string becomes permanent at the end of the set-up.
    pub(crate) fn intern_late(&mut self, bytes: &[u8]) -> Result<StrRef, Fault> {
        let added = self.strings.intern_late(&mut self.memory, bytes);
        added.map_err(|refusal| self.fault_of(refusal))
    }

    /// All that is there now outlives the runs to come.
    pub(crate) fn make_permanent(&mut self) {
        self.strings.make_permanent();
        self.tables.make_permanent();
        self.functions.make_permanent();
        self.natives.make_permanent();
        self.cells.make_permanent();
        self.threads.make_permanent();
        self.count_permanent();
    }

    /// The metatable of any value.
    pub fn meta_of(&self, value: Value) -> Option<TableRef> {
        match value {
            Value::Table(table) => self.meta(table),
            Value::Str(_) => self.string_meta,
            _ => None,
        }
    }

    /// A number, or what a string reads as.
    pub fn to_number(&self, value: Value) -> Option<f64> {
        match value {
            Value::Number(number) => Some(number),
            Value::Str(string) => crate::number::parse(self.bytes(string)),
            _ => None,
        }
    }

    /// Counts bytes that live elsewhere.
    pub(crate) fn take(&mut self, bytes: usize) -> Result<(), Fault> {
        self.memory.take(bytes).map_err(|refusal| self.fault_of(refusal))
    }

    /// A part of a string as a string.
    pub fn substring(&mut self, string: StrRef, part: Range<usize>) -> Result<StrRef, Fault> {
        if part.len() > PACKED_STRING_BYTES_MAX {
            let bytes = self.bytes(string)[part].into();
            let added = self.strings.add_own(&mut self.memory, bytes);
            return added.map_err(|refusal| self.fault_of(refusal));
        }
        let unfinished = self.strings.begin();
        self.strings.append_part(string, part);
        let finished = self.strings.finish(&mut self.memory, unfinished);
        finished.map_err(|refusal| self.fault_of(refusal))
    }

    /// Asks, before a native builds something large, whether it may.
    pub fn check_room(&mut self, bytes: usize) -> Result<(), Fault> {
        let used = self.memory.used_bytes().saturating_add(bytes);
        if used > self.memory.bytes_max() {
            return Err(self.fault_of(Refusal::OutOfMemory));
        }
        Ok(())
    }

    /// Equal without metamethods.
    #[inline]
    pub fn raw_equal(&self, a: Value, b: Value) -> bool {
        match (a, b) {
            (Value::Str(a), Value::Str(b)) => self.strings.equal(a, b),
            _ => same_handle(a, b),
        }
    }

    // Tables.

    /// A new table with room for elements 1..n and for other entries.
    pub fn table(&mut self, array_len: usize, hash_len: usize) -> Result<TableRef, Fault> {
        let made = self.try_table(array_len, hash_len);
        made.map_err(|refusal| self.fault_of(refusal))
    }

    pub(crate) fn try_table(
        &mut self,
        array_len: usize,
        hash_len: usize,
    ) -> Result<TableRef, Refusal> {
        self.memory.take(table::TABLE_BYTES)?;
        let mut table = Table::default();
        if hash_len == 0 && array_len > 0 {
            if let Err(refusal) = self.memory.take(array_len * VALUE_BYTES) {
                self.memory.give(table::TABLE_BYTES);
                return Err(refusal);
            }
            table.array = self.spare.list(array_len);
        } else if array_len + hash_len > 0 {
            let sized = table.resize(&self.strings, &mut self.memory, array_len, hash_len);
            if let Err(refusal) = sized {
                self.memory.give(table::TABLE_BYTES);
                return Err(refusal);
            }
        }
        Ok(TableRef(self.tables.add(table)))
    }

    /// A new table `{ok='OK'}`.
    pub fn ok_table(&mut self) -> Result<TableRef, Fault> {
        let table = self.table(0, 1)?;
        let [name, text] = self.status;
        self.set(table, Value::Str(name), Value::Str(text))?;
        Ok(table)
    }

    /// A new table of a function's further arguments, and their number as `n`.
    pub(crate) fn try_arg_table(&mut self, args: &[Value]) -> Result<TableRef, Refusal> {
        let table = self.try_table(args.len(), 1)?;
        self.tables.at_mut(table.index()).array.copy_from_slice(args);
        let count = Value::Number(args.len() as f64);
        self.try_set(table, Value::Str(self.count_name), count)?;
        Ok(table)
    }

    /// A new list of these strings.
    pub fn list_of_strings<'w>(
        &mut self,
        strings: impl ExactSizeIterator<Item = &'w [u8]>,
    ) -> Result<TableRef, Fault> {
        let table = self.table(strings.len(), 0)?;
        for (at, bytes) in strings.enumerate() {
            let string = self.string(bytes)?;
            self.tables.at_mut(table.index()).array[at] = Value::Str(string);
        }
        Ok(table)
    }

    #[inline]
    pub fn get(&self, table: TableRef, key: Value) -> Value {
        *self.tables.at(table.index()).get(&self.strings, key)
    }

    pub fn element(&self, table: TableRef, index: usize) -> Value {
        self.get(table, Value::Number(index as f64))
    }

    /// The elements 1..n that stand side by side, which may be all that the table has.
    pub fn array_part(&self, table: TableRef) -> &[Value] {
        &self.tables.at(table.index()).array
    }

    /// Whether there may be other entries than those of [`Heap::array_part`].
    pub fn has_hash_part(&self, table: TableRef) -> bool {
        !self.tables.at(table.index()).nodes.is_empty()
    }

    /// The field of that name.
    pub fn field(&self, table: TableRef, name: &[u8]) -> Value {
        self.tables.at(table.index()).at_bytes(&self.strings, name)
    }

    /// Stores without metamethods; refuses nil and NaN as keys, and read-only tables.
    pub fn set(&mut self, table: TableRef, key: Value, value: Value) -> Result<(), Fault> {
        let outcome = self.try_set(table, key, value);
        outcome.map_err(|refusal| self.fault_of(refusal))
    }

    pub fn set_index(&mut self, table: TableRef, index: usize, value: Value) -> Result<(), Fault> {
        self.set(table, Value::Number(index as f64), value)
    }

    pub fn set_field(&mut self, table: TableRef, name: &[u8], value: Value) -> Result<(), Fault> {
        let name = match self.strings.interned(name) {
            Some(name) => name,
            None => self.string(name)?,
        };
        self.set(table, Value::Str(name), value)
    }

    pub(crate) fn try_set(
        &mut self,
        table: TableRef,
        key: Value,
        value: Value,
    ) -> Result<(), Refusal> {
        let is_permanent = self.tables.is_permanent(table.index());
        let object = self.tables.at_mut(table.index());
        if object.is_read_only {
            return Err(Refusal::ReadOnly);
        }
        if !is_permanent {
            return object.set(&self.strings, &mut self.memory, key, value);
        }
        let before = self.memory.used_bytes();
        let outcome = object.set(&self.strings, &mut self.memory, key, value);
        self.grown_bytes += self.memory.grown_since(before);
        outcome?;
        self.remember_table(table, key, value);
        Ok(())
    }

    /// All that is held now outlives the runs to come.
    pub(crate) fn count_permanent(&mut self) {
        self.permanent_bytes = self.memory.used_bytes();
        self.grown_bytes = 0;
    }

    /// What outlives the run if nothing it made does.
    pub(crate) fn lasting_bytes(&self) -> usize {
        self.permanent_bytes.saturating_add_signed(self.grown_bytes)
    }

    /// Makes room for elements that are about to be stored one by one.
    pub fn reserve(&mut self, table: TableRef, array_len: usize) -> Result<(), Fault> {
        let object = self.tables.at_mut(table.index());
        let before = self.memory.used_bytes();
        let outcome = object.reserve_array(&self.strings, &mut self.memory, array_len);
        if self.tables.is_permanent(table.index()) {
            self.grown_bytes += self.memory.grown_since(before);
        }
        outcome.map_err(|refusal| self.fault_of(refusal))
    }

    /// What `#` gives.
    pub fn len(&self, table: TableRef) -> usize {
        self.tables.at(table.index()).border(&self.strings)
    }

    /// The entry after a key in the order of traversal, the first after nil; `Err` if the key is
    /// not there.
    pub fn next(&self, table: TableRef, key: Value) -> Result<Option<(Value, Value)>, NotAKey> {
        let object = self.tables.at(table.index());
        let cursor = object.cursor_of(&self.strings, key).ok_or(NotAKey)?;
        Ok(object.entry_from(cursor).map(|(_, key, value)| (key, value)))
    }

    /// Steps through a table by cursor, 0 first: the next cursor, the key and the value.
    pub fn entry_from(&self, table: TableRef, cursor: usize) -> Option<(usize, Value, Value)> {
        self.tables.at(table.index()).entry_from(cursor)
    }

    pub fn meta(&self, table: TableRef) -> Option<TableRef> {
        self.tables.at(table.index()).meta()
    }

    pub(crate) fn set_meta(
        &mut self,
        table: TableRef,
        meta: Option<TableRef>,
    ) -> Result<(), Refusal> {
        let object = self.tables.at_mut(table.index());
        if object.is_read_only {
            return Err(Refusal::ReadOnly);
        }
        object.set_meta(meta);
        if let (true, Some(meta)) = (self.tables.is_permanent(table.index()), meta) {
            self.remember_table(table, Value::Nil, Value::Table(meta));
        }
        Ok(())
    }

    pub fn is_read_only(&self, table: TableRef) -> bool {
        self.tables.at(table.index()).is_read_only
    }

    /// A write by the host, which read-only tables take too.
    pub(crate) fn set_unguarded(
        &mut self,
        table: TableRef,
        name: StrRef,
        value: Value,
    ) -> Result<(), Fault> {
        let object = self.tables.at_mut(table.index());
        let hash = self.strings.hash(name);
        if let Some(slot) = object.named_slot(&self.strings, (name, hash)) {
            *slot = value;
            return Ok(());
        }
        let key = Value::Str(name);
        let before = self.memory.used_bytes();
        let outcome = object.set(&self.strings, &mut self.memory, key, value);
        self.grown_bytes += self.memory.grown_since(before);
        outcome.map_err(|refusal| self.fault_of(refusal))
    }

    /// From now on writes to it are refused.
    pub fn freeze(&mut self, table: TableRef) {
        self.tables.at_mut(table.index()).is_read_only = true;
    }

    // Functions and what they share.

    pub(crate) fn closure(
        &mut self,
        proto: ProtoRef,
        upvalues: Box<[Value]>,
    ) -> Result<FuncRef, Refusal> {
        self.memory.take(FUNCTION_BYTES + upvalues.len() * VALUE_BYTES)?;
        Ok(FuncRef(self.functions.add(Closure { proto, upvalues })))
    }

    /// A function of ours, with values that it keeps from call to call.
    pub fn native(&mut self, code: NativeFn, upvalues: &[Value]) -> Result<NativeRef, Fault> {
        let made = self.try_native(NativeCode::Ours(code), upvalues);
        made.map_err(|refusal| self.fault_of(refusal))
    }

    pub(crate) fn try_native(
        &mut self,
        code: NativeCode,
        upvalues: &[Value],
    ) -> Result<NativeRef, Refusal> {
        self.memory.take(NATIVE_BYTES + size_of_val(upvalues))?;
        Ok(NativeRef(self.natives.add(Native { code, upvalues: upvalues.into() })))
    }

    pub(crate) fn set_native_upvalue(&mut self, native: NativeRef, index: usize, value: Value) {
        if let Some(slot) = self.natives.at_mut(native.index()).upvalues.get_mut(index) {
            *slot = value;
        }
        if self.natives.is_permanent(native.index()) && self.is_run(value) {
            self.remembered.natives.insert(native);
        }
    }

    pub(crate) fn is_run(&self, value: Value) -> bool {
        match value {
            Value::Nil | Value::Bool(_) | Value::Number(_) | Value::Light(_) => false,
            Value::Str(string) => self.strings.is_run(string),
            Value::Table(table) => !self.tables.is_permanent(table.index()),
            Value::Function(function) => !self.functions.is_permanent(function.index()),
            Value::Native(native) => !self.natives.is_permanent(native.index()),
            Value::Thread(thread) => !self.threads.is_permanent(thread.index()),
            Value::Cell(cell) => !self.cells.is_permanent(cell.index()),
        }
    }

    /// A permanent table got an entry; if that names the run, the end of the run must know.
    #[cold]
    pub(crate) fn remember_table(&mut self, table: TableRef, key: Value, value: Value) {
        if !self.is_run(key) && !self.is_run(value) {
            return;
        }
        let object = self.tables.at_mut(table.index());
        if !object.is_remembered {
            object.is_remembered = true;
            self.remembered.tables.push(table);
        }
    }

    /// A permanent coroutine runs: its stack may come to name anything.
    pub(crate) fn remember_thread(&mut self, thread: ThreadRef) {
        if self.threads.is_permanent(thread.index()) {
            self.remembered.threads.insert(thread);
        }
    }
}

/// A key that `next` was given and that the table does not have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NotAKey;
