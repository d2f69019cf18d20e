//! Arithmetic and joining of values that are not plain numbers.

use crate::fault::{Fault, Refusal};
use crate::heap::Heap;
use crate::host::Host;
use crate::limits::PACKED_STRING_BYTES_MAX;
use crate::number::TextBuffer;
use crate::state::{Event, State};
use crate::value::Value;

/// As C's `a - floor(a / b) * b`.
#[inline(always)]
pub(super) fn modulo(a: f64, b: f64) -> f64 {
    // Whole numbers, the common case, without a call for the floor.
    let (whole_a, whole_b) = (a as i32, b as i32);
    if f64::from(whole_a) == a && f64::from(whole_b) == b && whole_a >= 0 && whole_b > 0 {
        return f64::from(whole_a % whole_b);
    }
    a - (a / b).floor() * b
}

/// Arithmetic with strings that are numbers. Apart from that with numbers, which then keeps its
/// operands in processor registers.
#[cold]
#[inline(never)]
pub(super) fn compute_text(
    heap: &Heap,
    (left, right): (&Value, &Value),
    compute: fn(f64, f64) -> f64,
) -> Option<f64> {
    if matches!(left, Value::Table(_)) || matches!(right, Value::Table(_)) {
        return None;
    }
    Some(compute(heap.to_number(*left)?, heap.to_number(*right)?))
}

impl State {
    pub(crate) fn arith(
        &mut self,
        host: &mut dyn Host,
        event: Event,
        a: Value,
        b: Value,
    ) -> Result<Value, Fault> {
        if let (Some(a), Some(b)) = (self.heap.to_number(a), self.heap.to_number(b)) {
            return Ok(Value::Number(compute(event, a, b)));
        }
        let handler = self.event_of_either(a, b, event);
        if !handler.is_nil() {
            return self.call_pair(host, handler, [a, b]);
        }
        let (culprit, operand) = if self.heap.to_number(a).is_none() { (a, 0) } else { (b, 1) };
        Err(self.type_fault("perform arithmetic on", culprit, Some(operand)))
    }

    pub(crate) fn length(&mut self, value: Value) -> Result<Value, Fault> {
        match value {
            Value::Table(table) => Ok(Value::Number(self.heap.len(table) as f64)),
            Value::Str(string) => Ok(Value::Number(self.heap.bytes(string).len() as f64)),
            _ => Err(self.type_fault("get length of", value, Some(0))),
        }
    }

    /// Joins the values on the stack from `first` to `last`, from the right.
    pub(crate) fn concat(
        &mut self,
        host: &mut dyn Host,
        first: usize,
        last: usize,
    ) -> Result<Value, Fault> {
        let mut end = last;
        while end > first {
            let (left, right) = (self.current.stack[end - 1], self.current.stack[end]);
            if !is_text(left) || !is_text(right) {
                let joined = self.concat_event(host, (left, right), end - first)?;
                self.current.stack[end - 1] = joined;
                end -= 1;
                continue;
            }
            let mut start = end - 1;
            while start > first && is_text(self.current.stack[start - 1]) {
                start -= 1;
            }
            let joined = self.with_memory(|state| state.join(start, end))?;
            self.current.stack[start] = joined;
            end = start;
        }
        Ok(self.current.stack[first])
    }

    fn concat_event(
        &mut self,
        host: &mut dyn Host,
        (left, right): (Value, Value),
        operand: usize,
    ) -> Result<Value, Fault> {
        let handler = self.event_of_either(left, right, Event::Concat);
        if !handler.is_nil() {
            return self.call_pair(host, handler, [left, right]);
        }
        let (culprit, operand) = if is_text(left) { (right, operand) } else { (left, operand - 1) };
        Err(self.type_fault("concatenate", culprit, Some(operand as u8)))
    }

    fn join(&mut self, start: usize, end: usize) -> Result<Value, Refusal> {
        let strings = &mut self.heap.strings;
        let unfinished = strings.begin();
        for value in &self.current.stack[start..=end] {
            let more = match value {
                Value::Str(string) => strings.len(*string),
                _ => 0,
            };
            if strings.unfinished_len(&unfinished) + more > PACKED_STRING_BYTES_MAX {
                strings.give_up(unfinished);
                return self.join_long(start, end);
            }
            match value {
                Value::Str(string) => strings.append_string(*string),
                Value::Number(number) => strings.append(TextBuffer::new().format(*number)),
                _ => {}
            }
        }
        self.heap.finish_string(unfinished).map(Value::Str)
    }

    fn join_long(&mut self, start: usize, end: usize) -> Result<Value, Refusal> {
        let strings = &self.heap.strings;
        let total: usize = self.current.stack[start..=end]
            .iter()
            .map(|value| match value {
                Value::Str(string) => strings.len(*string),
                Value::Number(number) => TextBuffer::new().format(*number).len(),
                _ => 0,
            })
            .sum();
        let used = self.heap.used_bytes().saturating_add(total);
        if used > self.heap.memory.bytes_max() {
            return Err(Refusal::OutOfMemory);
        }
        let mut bytes = Vec::with_capacity(total);
        for value in &self.current.stack[start..=end] {
            match value {
                Value::Str(string) => bytes.extend_from_slice(self.heap.bytes(*string)),
                Value::Number(number) => {
                    bytes.extend_from_slice(TextBuffer::new().format(*number));
                }
                _ => {}
            }
        }
        // A long copy is work, too.
        let steps = u32::try_from(total / 1024).unwrap_or(u32::MAX);
        self.heap.steps_left = self.heap.steps_left.saturating_sub(steps).max(1);
        self.heap.own_string(bytes).map(Value::Str)
    }
}

fn is_text(value: Value) -> bool {
    matches!(value, Value::Str(_) | Value::Number(_))
}

fn compute(event: Event, a: f64, b: f64) -> f64 {
    match event {
        Event::Add => a + b,
        Event::Sub => a - b,
        Event::Mul => a * b,
        Event::Div => a / b,
        Event::Mod => modulo(a, b),
        Event::Pow => a.powf(b),
        Event::Unm => -a,
        _ => unreachable!("no other event is arithmetic"),
    }
}
