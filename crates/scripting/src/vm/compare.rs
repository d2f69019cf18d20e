//! Comparing values that are not two numbers.

use crate::fault::Fault;
use crate::host::Host;
use crate::state::{Event, State};
use crate::value::Value;

impl State {
    pub(crate) fn equal(&mut self, host: &mut dyn Host, a: Value, b: Value) -> Result<bool, Fault> {
        if self.heap.raw_equal(a, b) {
            return Ok(true);
        }
        let (Value::Table(_), Value::Table(_)) = (a, b) else { return Ok(false) };
        let handler = self.shared_event(a, b, Event::Eq);
        if handler.is_nil() {
            return Ok(false);
        }
        Ok(self.call_pair(host, handler, [a, b])?.is_true())
    }

    pub(crate) fn less_than(
        &mut self,
        host: &mut dyn Host,
        a: Value,
        b: Value,
    ) -> Result<bool, Fault> {
        match (a, b) {
            (Value::Number(a), Value::Number(b)) => Ok(a < b),
            (Value::Str(a), Value::Str(b)) => Ok(self.heap.bytes(a) < self.heap.bytes(b)),
            _ => match self.ordered_by(host, Event::Lt, a, b)? {
                Some(is_less) => Ok(is_less),
                None => Err(self.order_fault(a, b)),
            },
        }
    }

    pub(crate) fn less_or_equal(
        &mut self,
        host: &mut dyn Host,
        a: Value,
        b: Value,
    ) -> Result<bool, Fault> {
        match (a, b) {
            (Value::Number(a), Value::Number(b)) => return Ok(a <= b),
            (Value::Str(a), Value::Str(b)) => {
                return Ok(self.heap.bytes(a) <= self.heap.bytes(b));
            }
            _ => {}
        }
        if let Some(is_less) = self.ordered_by(host, Event::Le, a, b)? {
            return Ok(is_less);
        }
        match self.ordered_by(host, Event::Lt, b, a)? {
            Some(is_less) => Ok(!is_less),
            None => Err(self.order_fault(a, b)),
        }
    }

    /// What the handler says that both values share; None without one.
    fn ordered_by(
        &mut self,
        host: &mut dyn Host,
        event: Event,
        a: Value,
        b: Value,
    ) -> Result<Option<bool>, Fault> {
        if a.type_name() != b.type_name() {
            return Ok(None);
        }
        let handler = self.shared_event(a, b, event);
        if handler.is_nil() {
            return Ok(None);
        }
        Ok(Some(self.call_pair(host, handler, [a, b])?.is_true()))
    }

    fn shared_event(&self, a: Value, b: Value, event: Event) -> Value {
        let handler = self.event_of(a, event);
        if !handler.is_nil() && self.heap.raw_equal(handler, self.event_of(b, event)) {
            handler
        } else {
            Value::Nil
        }
    }
}
