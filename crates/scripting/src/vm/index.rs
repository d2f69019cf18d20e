//! Reading and writing through metatables.

use crate::fault::Fault;
use crate::host::Host;
use crate::limits::META_CHAIN_MAX;
use crate::state::{Event, State};
use crate::value::{TableRef, Value};

fn is_function(value: Value) -> bool {
    matches!(value, Value::Function(_) | Value::Native(_))
}

/// What reading through metatables comes to.
pub(super) enum Found {
    Value(Value),
    /// A function that is to be called with an object and the key.
    Handler(Value, Value),
}

impl State {
    /// The handler that a value's metatable names.
    pub(crate) fn event_of(&self, value: Value, event: Event) -> Value {
        match self.heap.meta_of(value) {
            Some(meta) => {
                let meta = self.heap.tables.at(meta.index());
                *meta.at_str(&self.heap.strings, self.event(event))
            }
            None => Value::Nil,
        }
    }

    /// The handler of the first operand, or else of the second.
    pub(crate) fn event_of_either(&self, a: Value, b: Value, event: Event) -> Value {
        match self.event_of(a, event) {
            Value::Nil => self.event_of(b, event),
            handler => handler,
        }
    }

    /// As `event_of` for a metatable, remembering for the first eight events that it lacks one.
    fn event_in(&mut self, meta: TableRef, event: Event) -> Value {
        let bit = 1u8 << event as u8;
        let name = self.event(event);
        let table = self.heap.tables.at_mut(meta.index());
        if table.absent & bit != 0 {
            return Value::Nil;
        }
        let handler = *table.at_str(&self.heap.strings, name);
        if handler.is_nil() {
            table.absent |= bit;
        }
        handler
    }

    pub(crate) fn index(
        &mut self,
        host: &mut dyn Host,
        object: Value,
        key: Value,
    ) -> Result<Value, Fault> {
        match self.find(object, key)? {
            Found::Value(value) => Ok(value),
            Found::Handler(handler, object) => self.call_pair(host, handler, [object, key]),
        }
    }

    /// What reading comes to, with no function called.
    pub(super) fn find(&mut self, object: Value, key: Value) -> Result<Found, Fault> {
        let mut object = object;
        for link in 0..META_CHAIN_MAX {
            let handler = match object {
                Value::Table(table) => {
                    let value = self.heap.get(table, key);
                    let meta = self.heap.meta(table).filter(|_| value.is_nil());
                    let Some(meta) = meta else { return Ok(Found::Value(value)) };
                    let handler = self.event_in(meta, Event::Index);
                    if handler.is_nil() {
                        return Ok(Found::Value(Value::Nil));
                    }
                    handler
                }
                _ => {
                    let handler = self.event_of(object, Event::Index);
                    if handler.is_nil() {
                        let operand = (link == 0).then_some(0);
                        return Err(self.type_fault("index", object, operand));
                    }
                    handler
                }
            };
            if is_function(handler) {
                return Ok(Found::Handler(handler, object));
            }
            object = handler;
        }
        Err(self.runtime_error("loop in gettable"))
    }

    /// Stores, unless a function is to be called with the object beside it.
    pub(super) fn store(
        &mut self,
        object: Value,
        key: Value,
        value: Value,
    ) -> Result<Option<(Value, Value)>, Fault> {
        let mut object = object;
        for link in 0..META_CHAIN_MAX {
            let handler = match object {
                Value::Table(table) => {
                    let handler = self.newindex_handler(table, key);
                    if handler.is_nil() {
                        self.with_memory(|state| state.heap.try_set(table, key, value))?;
                        return Ok(None);
                    }
                    handler
                }
                _ => {
                    let handler = self.event_of(object, Event::NewIndex);
                    if handler.is_nil() {
                        let operand = (link == 0).then_some(0);
                        return Err(self.type_fault("index", object, operand));
                    }
                    handler
                }
            };
            if is_function(handler) {
                return Ok(Some((handler, object)));
            }
            object = handler;
        }
        Err(self.runtime_error("loop in settable"))
    }

    /// The handler of a write to a table, nil if the table itself takes it.
    fn newindex_handler(&mut self, table: TableRef, key: Value) -> Value {
        let Some(meta) = self.heap.meta(table) else { return Value::Nil };
        // A key that no table takes is refused before anybody is asked, as in Lua 5.1.
        let is_no_key = matches!(key, Value::Nil) || matches!(key, Value::Number(n) if n.is_nan());
        if is_no_key || self.heap.is_read_only(table) {
            return Value::Nil;
        }
        let handler = self.event_in(meta, Event::NewIndex);
        if handler.is_nil() || !self.heap.get(table, key).is_nil() {
            return Value::Nil;
        }
        handler
    }
}
