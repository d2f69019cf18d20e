//! What is done without a frame: natives that look at their arguments and give one value, and
//! turns of loops.

use super::WINDOW;
use crate::call::Walk;
use crate::heap::{Heap, NativeCode};
use crate::value::{NativeRef, Value};

/// The result of a native that has a quick form. `a` is the register of the function, its `count`
/// arguments are behind it.
#[inline(always)]
pub(super) fn call_quick(
    heap: &mut Heap,
    native: NativeRef,
    r: &[Value; WINDOW],
    (a, count): (u8, usize),
) -> Option<Value> {
    let first = a as usize + 1;
    match heap.natives.at(native.index()).code {
        NativeCode::Quick(quick, _) => quick(heap, r.get(first..first.checked_add(count)?)?),
        // The other form is followed by a collection.
        NativeCode::Making(making, _) if !heap.is_collection_due() => {
            making(heap, r.get(first..first.checked_add(count)?)?)
        }
        _ => None,
    }
}

/// Calls a loop's function that needs no frame, and puts the next key and value, nil at the end,
/// where the loop has them: whether there are any. None if it needs a frame.
///
/// Values go from place to place here, not through results: a value that is taken apart and put
/// together again keeps the processor waiting for its own writes.
#[inline(always)]
pub(super) fn step_quick(heap: &Heap, r: &mut [Value; WINDOW], a: u8) -> Option<bool> {
    let (Value::Native(native), Value::Table(table)) =
        (&r[a as usize], &r[a.wrapping_add(1) as usize])
    else {
        return None;
    };
    let NativeCode::Step(walk, _) = heap.natives.at(native.index()).code else { return None };
    let object = heap.tables.at(table.index());
    match r[a.wrapping_add(2) as usize] {
        Value::Number(before) if walk == Walk::Elements || before >= 1.0 => {
            let Some(value) = object.element_after(before) else {
                return step_further(heap, walk, r, a);
            };
            r[a.wrapping_add(2) as usize] = Value::Number(before + 1.0);
            r[a.wrapping_add(3) as usize] = Value::Number(before + 1.0);
            r[a.wrapping_add(4) as usize] = *value;
        }
        Value::Str(name) if walk == Walk::Entries => {
            let Some(node) = object.node_after(name) else {
                return step_further(heap, walk, r, a);
            };
            r[a.wrapping_add(2) as usize] = node.key;
            r[a.wrapping_add(3) as usize] = node.key;
            r[a.wrapping_add(4) as usize] = node.value;
        }
        _ => return step_further(heap, walk, r, a),
    }
    Some(true)
}

/// A step that does not lead to the entry beside the last one.
#[inline(never)]
fn step_further(heap: &Heap, walk: Walk, r: &mut [Value; WINDOW], a: u8) -> Option<bool> {
    let (object, key) = (r[a.wrapping_add(1) as usize], r[a.wrapping_add(2) as usize]);
    let Value::Table(table) = object else { return None };
    let found = match walk {
        Walk::Entries => heap.next(table, key).ok()?,
        Walk::Elements => {
            let Value::Number(before) = key else { return None };
            // What is no count is left to the form with a frame.
            let index = before as i32;
            if f64::from(index) != before || !(0..i32::MAX).contains(&index) {
                return None;
            }
            let key = Value::Number(before + 1.0);
            Some((key, heap.get(table, key))).filter(|(_, value)| !value.is_nil())
        }
    };
    let (key, value) = found.unwrap_or_default();
    r[a.wrapping_add(3) as usize] = key;
    r[a.wrapping_add(4) as usize] = value;
    if found.is_some() {
        r[a.wrapping_add(2) as usize] = key;
    }
    Some(found.is_some())
}

/// One turn of a numeric loop: whether there is another.
#[inline(always)]
pub(super) fn for_loop(r: &mut [Value; WINDOW], a: u8) -> bool {
    // A loop has four registers, and the compiler gives none beyond 250.
    let Some([index, limit, step, shown]) = r[a as usize..].first_chunk_mut::<4>() else {
        return false;
    };
    let (Value::Number(at), Value::Number(end), Value::Number(by)) = (*index, *limit, *step) else {
        return false;
    };
    let at = at + by;
    let goes_on = if by > 0.0 { at <= end } else { end <= at };
    if goes_on {
        *index = Value::Number(at);
        *shown = Value::Number(at);
    }
    goes_on
}

/// As `for_loop`, for a loop without a step of its own.
#[inline(always)]
pub(super) fn for_loop_one(r: &mut [Value; WINDOW], a: u8) -> bool {
    let Some([index, limit, _, shown]) = r[a as usize..].first_chunk_mut::<4>() else {
        return false;
    };
    let (Value::Number(at), Value::Number(end)) = (*index, *limit) else { return false };
    let at = at + 1.0;
    if at <= end {
        *index = Value::Number(at);
        *shown = Value::Number(at);
        return true;
    }
    false
}
