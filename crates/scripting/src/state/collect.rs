//! Freeing what nothing reaches: in the middle of a long run, and in the permanent part between
//! runs when enough was let go.

use super::State;
use super::mark::{Marker, Part};
use crate::fault::{Fault, Refusal};
use crate::heap::{CELL_BYTES, FUNCTION_BYTES, Heap, NATIVE_BYTES, TABLE_BYTES, VALUE_BYTES};
use crate::limits::{COLLECT_BYTES_MIN, COLLECT_PERMANENT_BYTES_MIN, MEMORY_BYTES_MIN};
use crate::value::{CellRef, Value};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Objects that a collection goes through for the price of one step.
const OBJECTS_PER_STEP: usize = 16;

/// Stands for a key whose entry is gone and that no variable holds either.
const DEAD_KEY: Value = Value::Cell(CellRef(u32::MAX));

impl State {
    /// Collects at every chance: for tests that look for values which a collection misses.
    pub fn collect_eagerly(&mut self) {
        self.collects_eagerly = true;
        self.heap.collect_at_bytes = 0;
    }

    /// What the state may hold from now on; only between runs.
    pub fn set_memory_max(&mut self, bytes_max: usize) {
        let bytes_max = bytes_max.max(MEMORY_BYTES_MIN);
        if self.heap.memory.bytes_max() != bytes_max {
            self.heap.memory.set_bytes_max(bytes_max);
            self.set_collect_mark();
        }
    }

    /// Bytes that the state holds, as others may read it at any time. It is brought up to date
    /// when the host is asked whether a run may go on, and at the end of a run.
    pub fn gauge(&self) -> Arc<AtomicUsize> {
        self.gauge.clone()
    }

    pub(crate) fn publish_memory(&self) {
        let stack = self.current.stack.capacity() * VALUE_BYTES + self.current.frames.room_bytes();
        let held = self.heap.used_bytes() + self.heap.spare_bytes() + self.protos.spare_bytes();
        self.gauge.store(held + stack, Ordering::Relaxed);
    }

    /// At places where all live values are on stacks or held: frees garbage if there is much.
    #[inline]
    pub(crate) fn collect_if_due(&mut self) {
        if self.heap.is_collection_due() {
            self.collect_run();
        }
    }

    /// A collection that a script asks for; what it counts for, in steps.
    pub(crate) fn collect_now(&mut self) -> usize {
        let heap = &self.heap;
        let objects = heap.strings.run_len() + heap.tables.run_len() + heap.functions.run_len();
        self.collect_run();
        1 + objects / OBJECTS_PER_STEP
    }

    /// Frees what the run no longer reaches.
    #[cold]
    pub(crate) fn collect_run(&mut self) {
        self.collect(Part::Run);
        self.set_collect_mark();
    }

    /// Tries something that needs memory; if there is none, once more without the garbage.
    pub(crate) fn with_memory<T>(
        &mut self,
        attempt: impl Fn(&mut State) -> Result<T, Refusal>,
    ) -> Result<T, Fault> {
        let mut outcome = attempt(self);
        if let Err(Refusal::OutOfMemory) = &outcome {
            self.collect_run();
            outcome = attempt(self);
        }
        outcome.map_err(|refusal| self.refused(refusal))
    }

    /// After an error was caught: if memory was short, the garbage goes now.
    pub(crate) fn collect_after(&mut self, error: Value) {
        let is_short = matches!(error, Value::Str(text) if text == self.heap.out_of_memory);
        if is_short {
            self.collect_run();
        }
    }

    pub(super) fn set_collect_mark(&mut self) {
        let live = self.heap.used_bytes();
        let spare = (self.heap.memory.bytes_max().saturating_sub(live) / 2).max(1 << 16);
        self.heap.collect_at_bytes = match self.collects_eagerly {
            true => 0,
            false => live + live.max(COLLECT_BYTES_MIN).min(spare),
        };
    }

    fn collect(&mut self, part: Part) {
        let live_len = self.current.live_len(&self.protos);
        self.current.stack[live_len..].fill(Value::Nil);
        let mut marker = Marker::new(self, part);
        marker.run(self);
        clear_weak_entries(&mut self.heap, &marker);
        let mut freed =
            self.protos.sweep(marker.protos.first, &marker.protos.set, |code| code.size_bytes);
        clear_dead_keys(&mut self.heap, &marker);
        let Heap { tables, functions, natives, cells, threads, strings, memory, .. } =
            &mut self.heap;
        freed += tables
            .sweep(marker.tables.first, &marker.tables.set, |table| TABLE_BYTES + table.bytes());
        freed += functions.sweep(marker.functions.first, &marker.functions.set, |closure| {
            FUNCTION_BYTES + closure.upvalues.len() * VALUE_BYTES
        });
        freed += natives.sweep(marker.natives.first, &marker.natives.set, |native| {
            NATIVE_BYTES + native.upvalues.len() * VALUE_BYTES
        });
        freed += cells.sweep(marker.cells.first, &marker.cells.set, |_| CELL_BYTES);
        freed +=
            threads.sweep(marker.threads.first, &marker.threads.set, |thread| thread.size_bytes());
        memory.give(freed);
        strings.sweep(memory, marker.strings.first, &marker.strings.set);
    }

    /// After many scripts or libraries were let go: frees what only they reached.
    pub(super) fn collect_permanent_if_due(&mut self) {
        let kept = self.heap.permanent_bytes_kept;
        // A state with little room can't afford as much garbage.
        let affordable = self.heap.memory.bytes_max() / 8;
        let garbage = kept.max(COLLECT_PERMANENT_BYTES_MIN).min(affordable);
        if self.heap.permanent_bytes >= kept + garbage {
            self.collect_permanent();
        }
    }

    /// Frees what the permanent part no longer reaches; only between runs.
    pub fn collect_permanent(&mut self) {
        self.collect(Part::All);
        self.heap.count_permanent();
        self.heap.permanent_bytes_kept = self.heap.permanent_bytes;
    }
}

/// Takes the entries out of weak tables whose key or value nothing else keeps.
fn clear_weak_entries(heap: &mut Heap, marker: &Marker) {
    for (table, weakness) in &marker.weak {
        let table = heap.tables.at_mut(table.index());
        if weakness.values {
            for value in table.array.iter_mut().filter(|value| !marker.is_live(**value)) {
                *value = Value::Nil;
            }
        }
        for node in table.nodes.iter_mut().filter(|node| !node.value.is_nil()) {
            if !marker.is_live(node.key) || !marker.is_live(node.value) {
                node.value = Value::Nil;
            }
        }
    }
}

/// An entry that was set to nil keeps its key, for a traversal that may stand there. Once the key
/// is garbage its handle may come to name something else, so it must not be compared any more.
fn clear_dead_keys(heap: &mut Heap, marker: &Marker) {
    // A cell is no key, but stands for one that was cleared before.
    let is_live = |key: Value| matches!(key, Value::Cell(_)) || marker.is_live(key);
    let from = marker.tables.first;
    let remembered = heap.remembered.tables.iter().map(|table| table.index());
    let tables: Vec<usize> = remembered.filter(|index| *index < from).collect();
    for index in (from..heap.tables.len()).chain(tables) {
        let nodes = &mut heap.tables.at_mut(index).nodes;
        for node in nodes.iter_mut().filter(|node| node.value.is_nil()) {
            if !is_live(node.key) {
                node.key = DEAD_KEY;
            }
        }
    }
}
