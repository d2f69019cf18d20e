//! Values as text.

use crate::fault::Fault;
use crate::host::Host;
use crate::number::TextBuffer;
use crate::state::{Event, State};
use crate::value::{StrRef, Value};

impl State {
    /// What `tostring` gives.
    pub(crate) fn text_of(&mut self, host: &mut dyn Host, value: Value) -> Result<StrRef, Fault> {
        let handler = self.event_of(value, Event::ToString);
        if !handler.is_nil() {
            return match self.call_one(host, handler, &[value])? {
                Value::Str(text) => Ok(text),
                Value::Number(number) => self.heap.string(TextBuffer::new().format(number)),
                _ => Err(self.error_at(1, b"'tostring' must return a string to 'print'")),
            };
        }
        match value {
            Value::Str(text) => Ok(text),
            Value::Number(number) => self.heap.string(TextBuffer::new().format(number)),
            Value::Bool(true) => self.heap.string(b"true"),
            Value::Bool(false) => self.heap.string(b"false"),
            Value::Nil | Value::Cell(_) => self.heap.string(b"nil"),
            Value::Light(0) => self.heap.string(b"userdata: (nil)"),
            _ => {
                let text = format!("{}: {:#010x}", value.type_name(), address(value));
                self.heap.string(text.as_bytes())
            }
        }
    }
}

/// A number that looks like an address and is another one for each object.
fn address(value: Value) -> u64 {
    let (kind, index) = match value {
        Value::Table(table) => (0, table.0),
        Value::Function(function) => (1, function.0),
        Value::Native(native) => (2, native.0),
        Value::Thread(thread) => (3, thread.0),
        Value::Light(mark) => (4, mark),
        _ => (5, 0),
    };
    0x1000_0000 + ((u64::from(index) * 8 + kind) << 4)
}
