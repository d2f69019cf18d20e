//! `string`: everything but patterns and formats.

use super::search::{find, quick_find};
use super::{Entry, MakingEntry, QuickEntry, charge_bytes, quick_whole, results_room, slot};
use crate::call::{Call, Outcome};
use crate::fault::Fault;
use crate::heap::Heap;
use crate::value::{StrRef, Value};

pub(super) const ENTRIES: &[Entry] = &[
    ("dump", dump),
    ("format", super::formatting::format),
    ("gfind", super::search::gmatch),
    ("gmatch", super::search::gmatch),
    ("gsub", super::search::gsub),
    ("lower", lower),
    ("match", super::search::match_first),
    ("rep", rep),
    ("reverse", reverse),
    ("upper", upper),
];

/// Those that scripts call most, with their quick forms.
pub(super) const QUICK_ENTRIES: &[QuickEntry] =
    &[("byte", quick_byte, byte), ("find", quick_find, find), ("len", quick_len, len)];

/// Those that make short strings, and are called as often.
pub(super) const MAKING_ENTRIES: &[MakingEntry] =
    &[("char", quick_char, char), ("sub", quick_sub, sub)];

/// Bytes that the quick forms make at most: more is work that counts.
const QUICK_BYTES_MAX: usize = 64;

/// A position in a string as Lua counts it: from 1, or back from the end if negative. What lies
/// before the beginning is 0.
pub(super) fn position_from(position: i64, len: usize) -> usize {
    match usize::try_from(position) {
        Ok(from_start) => from_start,
        Err(_) => (len + 1).saturating_sub(position.unsigned_abs() as usize),
    }
}

/// The bytes that two positions name, both included.
fn slice(len: usize, first: i64, last: i64) -> std::ops::Range<usize> {
    let first = position_from(first, len).max(1);
    let last = position_from(last, len).min(len);
    if first <= last { first - 1..last } else { 0..0 }
}

fn len(call: &mut Call) -> Outcome {
    let text = call.string(1)?;
    let len = call.bytes(text).len();
    call.give(len as f64)
}

fn sub(call: &mut Call) -> Outcome {
    let text = call.string(1)?;
    let first = call.integer(2)?;
    let last = call.integer_or(3, -1)?;
    let range = slice(call.bytes(text).len(), first, last);
    charge_bytes(call, range.len())?;
    let piece = call.heap().substring(text, range)?;
    call.give(piece)
}

fn quick_len(heap: &Heap, args: &[Value]) -> Option<Value> {
    let [Value::Str(text)] = args else { return None };
    Some(Value::Number(heap.bytes(*text).len() as f64))
}

fn quick_sub(heap: &mut Heap, args: &[Value]) -> Option<Value> {
    let (text, first, last) = match *args {
        [Value::Str(text), Value::Number(first)] => (text, first, -1.0),
        [Value::Str(text), Value::Number(first), Value::Number(last)] => (text, first, last),
        _ => return None,
    };
    let len = heap.bytes(text).len();
    let range = slice(len, quick_whole(first)?, quick_whole(last)?);
    if range.len() > QUICK_BYTES_MAX {
        return None;
    }
    heap.substring(text, range).ok().map(Value::Str)
}

fn quick_char(heap: &mut Heap, args: &[Value]) -> Option<Value> {
    let mut bytes = [0; QUICK_BYTES_MAX];
    let bytes = bytes.get_mut(..args.len())?;
    for (byte, arg) in bytes.iter_mut().zip(args) {
        let Value::Number(number) = *arg else { return None };
        *byte = u8::try_from(quick_whole(number)?).ok()?;
    }
    heap.string(bytes).ok().map(Value::Str)
}

/// One byte that is there, counted from the beginning.
fn quick_byte(heap: &Heap, args: &[Value]) -> Option<Value> {
    let (text, position) = match args {
        [Value::Str(text)] => (text, 1.0),
        [Value::Str(text), Value::Number(position)] => (text, *position),
        _ => return None,
    };
    let from_start = position as u32;
    if f64::from(from_start) != position {
        return None;
    }
    let byte = heap.bytes(*text).get((from_start as usize).checked_sub(1)?)?;
    Some(Value::Number(f64::from(*byte)))
}

fn byte(call: &mut Call) -> Outcome {
    let text = call.string(1)?;
    let first = call.integer_or(2, 1)?;
    let len = call.bytes(text).len();
    let last = call.integer_or(3, position_from(first, len) as i64)?;
    let range = slice(len, first, last);
    if range.len() > results_room(call) {
        return Err(call.error("stack overflow (string slice too long)"));
    }
    let count = range.len();
    for index in range {
        let byte = call.bytes(text)[index];
        call.push(Value::Number(f64::from(byte)))?;
    }
    Ok(count)
}

fn char(call: &mut Call) -> Outcome {
    let mut out = Vec::with_capacity(call.arg_count());
    for position in 1..=call.arg_count() {
        let Ok(byte) = u8::try_from(slot(call.integer(position)?)) else {
            return Err(call.arg_error(position, "invalid value"));
        };
        out.push(byte);
    }
    call.give_owned(out)
}

fn mapped(call: &mut Call, change: fn(&mut [u8])) -> Outcome {
    let text = call.string(1)?;
    let len = call.bytes(text).len();
    prepare(call, len)?;
    let mut bytes = call.bytes(text).to_vec();
    change(&mut bytes);
    call.give_owned(bytes)
}

fn lower(call: &mut Call) -> Outcome {
    mapped(call, |bytes| bytes.make_ascii_lowercase())
}

fn upper(call: &mut Call) -> Outcome {
    mapped(call, |bytes| bytes.make_ascii_uppercase())
}

fn reverse(call: &mut Call) -> Outcome {
    mapped(call, |bytes| bytes.reverse())
}

fn rep(call: &mut Call) -> Outcome {
    let text = call.string(1)?;
    let count = usize::try_from(slot(call.integer(2)?)).unwrap_or(0);
    let Some(len) = call.bytes(text).len().checked_mul(count) else {
        return Err(call.heap().fault(crate::fault::OUT_OF_MEMORY));
    };
    prepare(call, len)?;
    let bytes = repeated(call, text, len);
    call.give_owned(bytes)
}

fn repeated(call: &Call, text: StrRef, len: usize) -> Vec<u8> {
    let bytes = call.bytes(text);
    if bytes.is_empty() {
        return Vec::new();
    }
    bytes.repeat(len / bytes.len())
}

/// Pays for a string before it is made, and asks whether there is room for it.
pub(super) fn prepare(call: &mut Call, len: usize) -> Result<(), Fault> {
    charge_bytes(call, len)?;
    call.heap().check_room(len)
}

/// DIFFERS: no function is given as bytecode, so that none can be forged and loaded.
fn dump(call: &mut Call) -> Outcome {
    call.function(1)?;
    Err(call.error("unable to dump given function"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_from_both_ends() {
        assert_eq!(slice(5, 1, -1), 0..5);
        assert_eq!(slice(5, 2, 3), 1..3);
        assert_eq!(slice(5, -3, -2), 2..4);
        assert_eq!(slice(5, -100, 100), 0..5);
        assert_eq!(slice(5, 0, 2), 0..2);
        for (first, last) in [(4, 3), (6, 9), (1, 0), (i64::MAX, i64::MIN), (1, i64::MIN)] {
            assert!(slice(5, first, last).is_empty(), "{first} {last}");
        }
        assert_eq!(slice(5, i64::MIN, i64::MAX), 0..5);
        assert!(slice(0, 1, -1).is_empty());
    }
}
