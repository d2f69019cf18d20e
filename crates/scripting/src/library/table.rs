//! `table`: lists as Lua 5.1 has them, without metamethods.

mod sort;

use super::{Entry, MakingEntry, grow, slot};
use crate::call::{Call, Outcome};
use crate::fault::Fault;
use crate::heap::Heap;
use crate::library::number::append_number;
use crate::value::{StrRef, TableRef, Value};

pub(super) const ENTRIES: &[Entry] = &[
    ("concat", concat),
    ("foreach", foreach),
    ("foreachi", foreachi),
    ("getn", getn),
    ("maxn", maxn),
    ("setn", setn),
    ("sort", sort::sort),
];

/// Those that scripts call most, with their quick forms.
pub(super) const MAKING_ENTRIES: &[MakingEntry] =
    &[("insert", quick_insert, insert), ("remove", quick_remove, remove)];

/// A value behind the last one.
fn quick_insert(heap: &mut Heap, args: &[Value]) -> Option<Value> {
    let [Value::Table(table), value] = *args else { return None };
    let end = i32::try_from(heap.len(table)).ok()?.checked_add(1)?;
    heap.try_set(table, Value::Number(f64::from(end)), value).ok()?;
    Some(Value::Nil)
}

/// The last value.
fn quick_remove(heap: &mut Heap, args: &[Value]) -> Option<Value> {
    let [Value::Table(table)] = *args else { return None };
    let end = i32::try_from(heap.len(table)).ok().filter(|end| *end > 0)?;
    let end = Value::Number(f64::from(end));
    let removed = heap.get(table, end);
    heap.try_set(table, end, Value::Nil).ok()?;
    Some(removed)
}

fn element(call: &mut Call, table: TableRef, index: i32) -> Value {
    let heap = call.heap();
    match heap.array_part(table).get((index as usize).wrapping_sub(1)) {
        Some(value) => *value,
        None => heap.get(table, Value::Number(f64::from(index))),
    }
}

fn set_element(call: &mut Call, table: TableRef, index: i32, value: Value) -> Result<(), Fault> {
    let at = (index as usize).wrapping_sub(1);
    if let Some(slot) = call.heap().run_array_mut(table).and_then(|it| it.get_mut(at)) {
        *slot = value;
        return Ok(());
    }
    call.heap().set(table, Value::Number(f64::from(index)), value)
}

fn list(call: &mut Call) -> Result<(TableRef, i32), Fault> {
    let table = call.table(1)?;
    Ok((table, slot(call.heap().len(table) as i64)))
}

fn concat(call: &mut Call) -> Outcome {
    let separator = call.string_opt(2)?;
    let (table, len) = list(call)?;
    let first = slot(call.integer_or(3, 1)?);
    let last = slot(call.integer_or(4, i64::from(len))?);
    let mut out = Vec::new();
    let mut index = first;
    while index <= last {
        append_element(call, table, index, &mut out)?;
        if index == last {
            break;
        }
        if let Some(separator) = separator {
            append(call, separator, &mut out)?;
        }
        index += 1;
    }
    call.give_owned(out)
}

fn append_element(
    call: &mut Call,
    table: TableRef,
    index: i32,
    out: &mut Vec<u8>,
) -> Result<(), Fault> {
    match element(call, table, index) {
        Value::Str(text) => append(call, text, out),
        Value::Number(number) => {
            append_number(number, out);
            call.charge(1)
        }
        other => {
            let kind = other.type_name();
            let text = format!("invalid value ({kind}) at index {index} in table for 'concat'");
            Err(call.error(text))
        }
    }
}

fn append(call: &mut Call, text: StrRef, out: &mut Vec<u8>) -> Result<(), Fault> {
    let len = call.bytes(text).len();
    grow(call, out, len)?;
    out.extend_from_slice(call.bytes(text));
    Ok(())
}

fn insert(call: &mut Call) -> Outcome {
    let (table, len) = list(call)?;
    let end = len.wrapping_add(1);
    match call.arg_count() {
        2 => set_element(call, table, end, call.arg(2))?,
        3 => {
            let position = slot(call.integer(2)?);
            let mut index = end.max(position);
            while index > position {
                call.charge(1)?;
                let moved = element(call, table, index - 1);
                set_element(call, table, index, moved)?;
                index -= 1;
            }
            set_element(call, table, position, call.arg(3))?;
        }
        _ => return Err(call.error("wrong number of arguments to 'insert'")),
    }
    call.give_none()
}

fn remove(call: &mut Call) -> Outcome {
    let (table, len) = list(call)?;
    let position = slot(call.integer_or(2, i64::from(len))?);
    if !(1..=len).contains(&position) {
        return call.give_none();
    }
    let removed = element(call, table, position);
    for index in position..len {
        call.charge(1)?;
        let moved = element(call, table, index + 1);
        set_element(call, table, index, moved)?;
    }
    set_element(call, table, len, Value::Nil)?;
    call.give(removed)
}

fn maxn(call: &mut Call) -> Outcome {
    let table = call.table(1)?;
    let mut greatest = 0.0;
    let mut cursor = 0;
    while let Some((next, key, _)) = call.heap().entry_from(table, cursor) {
        call.charge(1)?;
        cursor = next;
        if let Value::Number(number) = key
            && number > greatest
        {
            greatest = number;
        }
    }
    call.give(greatest)
}

fn getn(call: &mut Call) -> Outcome {
    let (_, len) = list(call)?;
    call.give(f64::from(len))
}

fn setn(call: &mut Call) -> Outcome {
    call.table(1)?;
    Err(call.error("'setn' is obsolete"))
}

fn foreach(call: &mut Call) -> Outcome {
    let table = call.table(1)?;
    let function = call.function(2)?;
    let mut key = Value::Nil;
    let held = call.hold(key);
    loop {
        call.charge(1)?;
        let Ok(entry) = call.heap().next(table, key) else {
            return Err(call.heap().fault("invalid key to 'next'"));
        };
        let Some((next, value)) = entry else { return call.give_none() };
        call.hold_in(held, next);
        let answer = call.call(function, &[next, value])?;
        if !answer.is_nil() {
            return call.give(answer);
        }
        key = next;
    }
}

fn foreachi(call: &mut Call) -> Outcome {
    let (table, len) = list(call)?;
    let function = call.function(2)?;
    for index in 1..=len {
        call.charge(1)?;
        let value = element(call, table, index);
        let answer = call.call(function, &[Value::Number(f64::from(index)), value])?;
        if !answer.is_nil() {
            return call.give(answer);
        }
    }
    call.give_none()
}
