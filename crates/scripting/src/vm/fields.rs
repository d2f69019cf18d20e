//! What the plain loop does with values itself: fields and elements that no metamethod has a say
//! in, and comparisons.

use super::WINDOW;
use crate::heap::Heap;
use crate::value::{FuncRef, StrRef, Value};
use std::cmp::Ordering;

/// A field of a plain table; None if a metatable has a say.
#[inline(always)]
pub(super) fn read_field<'h>(
    heap: &'h Heap,
    object: &Value,
    name: (StrRef, u32),
) -> Option<&'h Value> {
    let Value::Table(table) = object else { return None };
    let table = heap.tables.at(table.index());
    let value = table.at_name(&heap.strings, name);
    (!value.is_nil() || table.meta().is_none()).then_some(value)
}

/// An element that stands side by side with others, and is there.
#[inline(always)]
pub(super) fn read_element<'h>(heap: &'h Heap, object: &Value, index: u32) -> Option<&'h Value> {
    let Value::Table(table) = object else { return None };
    let value = heap.tables.at(table.index()).array.get((index as usize).wrapping_sub(1))?;
    (!value.is_nil()).then_some(value)
}

/// The longest way through `__index` tables that is gone here.
const INHERITED_LINKS_MAX: usize = 8;

/// What the `__index` tables behind an object say.
pub(super) enum Inherited<'h> {
    Value(&'h Value),
    /// A Lua function is to be called with the object, or another that stands for it, and the name.
    Handler(&'h Value, Option<&'h Value>),
    /// It takes a closer look.
    Unknown,
}

/// A field that the object itself lacks, from the `__index` tables behind it: a method, as a rule,
/// or a function of `string` for a text.
#[inline(never)]
pub(super) fn read_inherited<'h>(
    heap: &'h Heap,
    index_name: StrRef,
    object: &Value,
    name: (StrRef, u32),
) -> Inherited<'h> {
    let index_name = (index_name, heap.strings.hash(index_name));
    let meta = match object {
        Value::Table(table) => heap.tables.at(table.index()).meta(),
        Value::Str(_) => heap.string_meta,
        _ => None,
    };
    let Some(mut meta) = meta else { return Inherited::Unknown };
    let mut holder = None;
    for _ in 0..INHERITED_LINKS_MAX {
        let handler = heap.tables.at(meta.index()).at_name(&heap.strings, index_name);
        let next = match handler {
            Value::Table(next) => heap.tables.at(next.index()),
            Value::Function(_) => return Inherited::Handler(handler, holder),
            // Without one there is nothing, unless the object can't be indexed at all.
            Value::Nil if matches!(object, Value::Table(_)) => {
                return Inherited::Value(&Value::Nil);
            }
            _ => return Inherited::Unknown,
        };
        let value = next.at_name(&heap.strings, name);
        match next.meta() {
            Some(behind) if value.is_nil() => (meta, holder) = (behind, Some(handler)),
            _ => return Inherited::Value(value),
        }
    }
    Inherited::Unknown
}

/// Puts the first operand behind a place on the stack, before the second, which is there already;
/// and there the function that the metatable of either names for what is to be done with them.
#[inline(never)]
pub(super) fn place_handler(
    heap: &Heap,
    name: StrRef,
    r: &mut [Value; WINDOW],
    (at, left): (u8, u8),
) {
    let mut handler = handler_of(heap, name, &r[left as usize]);
    if handler.is_nil() {
        handler = handler_of(heap, name, &r[at.wrapping_add(2) as usize]);
    }
    r[at as usize] = *handler;
    r[at.wrapping_add(1) as usize] = r[left as usize];
}

/// What the metatable of a value has under a name.
#[inline(always)]
fn handler_of<'h>(heap: &'h Heap, name: StrRef, value: &Value) -> &'h Value {
    let meta = match value {
        Value::Table(table) => heap.tables.at(table.index()).meta(),
        Value::Str(_) => heap.string_meta,
        _ => None,
    };
    match meta {
        Some(meta) => heap.tables.at(meta.index()).at_str(&heap.strings, name),
        None => &Value::Nil,
    }
}

/// The Lua function that is to be called in place of a write to a table of this run, if there is
/// one: for a key that the table could take and does not have.
#[inline(never)]
pub(super) fn write_handler<'h>(
    heap: &'h Heap,
    name: StrRef,
    object: &Value,
    key: &Value,
) -> Option<&'h Value> {
    let Value::Table(table) = object else { return None };
    let is_key = match key {
        Value::Number(number) => !number.is_nan(),
        key => matches!(key, Value::Str(_)),
    };
    let object = heap.tables.at(table.index());
    let meta = object.meta().filter(|_| is_key && !object.is_read_only)?;
    let handler = heap.tables.at(meta.index()).at_str(&heap.strings, name);
    let is_called =
        matches!(handler, Value::Function(_)) && object.get(&heap.strings, *key).is_nil();
    is_called.then_some(handler)
}

/// Puts the function that a table is called as before the table and its `count` arguments, which
/// move up by one; nothing happens if there is none.
#[inline(never)]
pub(super) fn place_callable(
    heap: &Heap,
    name: StrRef,
    r: &mut [Value; WINDOW],
    (a, count): (u8, usize),
) -> Option<FuncRef> {
    let first = a as usize;
    let handler = handler_of(heap, name, &r[first]);
    let Value::Function(function) = *handler else { return None };
    let end = first.checked_add(count)?.checked_add(1).filter(|end| *end < WINDOW)?;
    for slot in (first..end).rev() {
        r[slot + 1] = r[slot];
    }
    r[first] = *handler;
    Some(function)
}

/// Takes back what `place_callable` did.
#[cold]
pub(super) fn displace_callable(r: &mut [Value; WINDOW], (a, count): (u8, usize)) {
    let first = a as usize;
    r.copy_within(first + 1..first + count + 2, first);
}

#[inline(never)]
pub(super) fn read_index<'h>(heap: &'h Heap, object: &Value, key: &Value) -> Option<&'h Value> {
    let Value::Table(table) = object else { return None };
    let table = heap.tables.at(table.index());
    let value = table.get(&heap.strings, *key);
    (!value.is_nil() || table.meta().is_none()).then_some(value)
}

/// Overwrites an entry that is there; anything else is not plain.
#[inline(always)]
pub(super) fn write_field(
    heap: &mut Heap,
    object: &Value,
    name: (StrRef, u32),
    value: &Value,
) -> bool {
    let Value::Table(table) = object else { return false };
    if heap.tables.is_permanent(table.index()) {
        return false;
    }
    let slot = heap.tables.at_mut(table.index()).named_slot(&heap.strings, name);
    match slot {
        Some(slot) if !slot.is_nil() => {
            *slot = *value;
            true
        }
        _ => false,
    }
}

#[inline(always)]
pub(super) fn write_index(heap: &mut Heap, object: &Value, key: &Value, value: &Value) -> bool {
    let (Value::Table(table), Value::Number(number)) = (object, key) else { return false };
    if heap.tables.is_permanent(table.index()) {
        return false;
    }
    let object = heap.tables.at_mut(table.index());
    let has_meta = object.meta().is_some();
    match object.array_slot(*number) {
        Some(slot) if !has_meta || !slot.is_nil() => {
            *slot = *value;
            true
        }
        _ => false,
    }
}

/// Equality that needs no metamethod; None for two different tables.
#[inline(never)]
pub(super) fn plain_equal(heap: &Heap, a: Value, b: Value) -> Option<bool> {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => Some(a == b),
        (Value::Table(a), Value::Table(b)) if a != b => None,
        _ => Some(heap.raw_equal(a, b)),
    }
}

/// Whether one number or text comes before another; None for anything else.
#[inline(always)]
pub(super) fn is_less(heap: &Heap, a: Value, b: Value) -> Option<bool> {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => Some(a < b),
        (Value::Str(a), Value::Str(b)) => Some(compare_texts(heap, a, b).is_lt()),
        _ => None,
    }
}

#[inline(always)]
pub(super) fn is_less_or_equal(heap: &Heap, a: Value, b: Value) -> Option<bool> {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => Some(a <= b),
        (Value::Str(a), Value::Str(b)) => Some(compare_texts(heap, a, b).is_le()),
        _ => None,
    }
}

#[inline(never)]
fn compare_texts(heap: &Heap, a: StrRef, b: StrRef) -> Ordering {
    let (a, b) = (heap.bytes(a), heap.bytes(b));
    // Most texts differ early.
    if let (Some(start_a), Some(start_b)) = (a.first_chunk::<8>(), b.first_chunk::<8>())
        && start_a != start_b
    {
        return u64::from_be_bytes(*start_a).cmp(&u64::from_be_bytes(*start_b));
    }
    a.cmp(b)
}
