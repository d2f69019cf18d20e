//! Natives that are called without a frame: those that look at their arguments and give one value.

use super::WINDOW;
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

/// The results of a loop's function that needs no frame.
#[inline(always)]
pub(super) fn step_quick(heap: &Heap, r: &[Value; WINDOW], a: u8) -> Option<(Value, Value)> {
    let Value::Native(native) = r[a as usize] else { return None };
    let NativeCode::Step(step, _) = heap.natives.at(native.index()).code else { return None };
    step(heap, r[a.wrapping_add(1) as usize], r[a.wrapping_add(2) as usize])
}
