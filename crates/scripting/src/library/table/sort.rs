//! `table.sort`: a quicksort by the median of three, in the same order of comparisons as Lua 5.1
//! makes them, since a script can see that order and an order function that contradicts itself
//! gives a result that depends on it.

use super::{element, list, set_element};
use crate::call::{Call, Held, Outcome};
use crate::fault::Fault;
use crate::value::{TableRef, Value};

struct Sorting {
    table: TableRef,
    /// Nil: by `<`.
    order: Value,
    /// What the order function may take out of the table while it is still to be placed.
    pivot: Held,
    rising: Held,
    pair: [Held; 2],
}

pub(super) fn sort(call: &mut Call) -> Outcome {
    let (table, len) = list(call)?;
    if !call.is_none_or_nil(2) {
        call.function(2)?;
    }
    let (pivot, rising) = (call.hold(Value::Nil), call.hold(Value::Nil));
    let pair = [call.hold(Value::Nil), call.hold(Value::Nil)];
    let sorting = Sorting { table, order: call.arg(2), pivot, rising, pair };
    sorting.sort(call, 1, len)?;
    call.give_none()
}

impl Sorting {
    fn is_before(&self, call: &mut Call, a: Value, b: Value) -> Result<bool, Fault> {
        call.charge(1)?;
        call.hold_in(self.pair[0], a);
        call.hold_in(self.pair[1], b);
        if self.order.is_nil() {
            return call.less_than(a, b);
        }
        call.call_pair(self.order, [a, b]).map(Value::is_true)
    }

    /// Sorts the elements from `low` to `high`. It calls itself for the smaller part only, so the
    /// depth is at most the number of bits of the length.
    fn sort(&self, call: &mut Call, mut low: i32, mut high: i32) -> Result<(), Fault> {
        while low < high {
            let middle = low + (high - low) / 2;
            self.order_ends(call, low, middle, high)?;
            if high - low <= 2 {
                return Ok(());
            }
            let split = self.partition(call, low, middle, high)?;
            if split - low < high - split {
                self.sort(call, low, split - 1)?;
                low = split + 1;
            } else {
                self.sort(call, split + 1, high)?;
                high = split - 1;
            }
        }
        Ok(())
    }

    /// Brings the first, middle and last element into order.
    fn order_ends(&self, call: &mut Call, low: i32, middle: i32, high: i32) -> Result<(), Fault> {
        self.swap_if_before(call, high, low)?;
        if high - low == 1 {
            return Ok(());
        }
        if !self.swap_if_before(call, middle, low)? {
            self.swap_if_before(call, high, middle)?;
        }
        Ok(())
    }

    /// Swaps two elements if the one at `late` belongs before the one at `early`.
    fn swap_if_before(&self, call: &mut Call, late: i32, early: i32) -> Result<bool, Fault> {
        let (a, b) = (element(call, self.table, late), element(call, self.table, early));
        let is_wrong = self.is_before(call, a, b)?;
        if is_wrong {
            set_element(call, self.table, early, a)?;
            set_element(call, self.table, late, b)?;
        }
        Ok(is_wrong)
    }

    /// Puts the middle element where it belongs, with what belongs before it before it.
    fn partition(&self, call: &mut Call, low: i32, middle: i32, high: i32) -> Result<i32, Fault> {
        let pivot = element(call, self.table, middle);
        call.hold_in(self.pivot, pivot);
        let aside = element(call, self.table, high - 1);
        set_element(call, self.table, middle, aside)?;
        set_element(call, self.table, high - 1, pivot)?;
        let (mut left, mut right) = (low, high - 1);
        loop {
            let rising = self.climb(call, pivot, &mut left, high)?;
            call.hold_in(self.rising, rising);
            let falling = self.descend(call, pivot, &mut right, low)?;
            if right < left {
                break;
            }
            set_element(call, self.table, left, falling)?;
            set_element(call, self.table, right, rising)?;
        }
        let pivot = element(call, self.table, high - 1);
        let other = element(call, self.table, left);
        set_element(call, self.table, high - 1, other)?;
        set_element(call, self.table, left, pivot)?;
        Ok(left)
    }

    /// The next element that does not belong before the pivot.
    fn climb(
        &self,
        call: &mut Call,
        pivot: Value,
        left: &mut i32,
        high: i32,
    ) -> Result<Value, Fault> {
        loop {
            *left += 1;
            let value = element(call, self.table, *left);
            if !self.is_before(call, value, pivot)? {
                return Ok(value);
            }
            if *left > high {
                return Err(call.error("invalid order function for sorting"));
            }
        }
    }

    /// The next element, from the end, that does not belong behind the pivot.
    fn descend(
        &self,
        call: &mut Call,
        pivot: Value,
        right: &mut i32,
        low: i32,
    ) -> Result<Value, Fault> {
        loop {
            *right -= 1;
            let value = element(call, self.table, *right);
            if !self.is_before(call, pivot, value)? {
                return Ok(value);
            }
            if *right < low {
                return Err(call.error("invalid order function for sorting"));
            }
        }
    }
}
