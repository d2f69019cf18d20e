//! Messages about what went wrong, with the place and the name that the source gave the value.

use super::{Callee, Frame};
use crate::fault::{Fault, Refusal};
use crate::proto::{GENERATOR_OPERAND, NameKind, Named};
use crate::state::State;
use crate::value::Value;

impl State {
    /// An error raised by the machine itself: with a position if Lua code is running.
    #[cold]
    pub(crate) fn runtime_error(&mut self, text: impl AsRef<[u8]>) -> Fault {
        self.error_at(0, text.as_ref())
    }

    #[cold]
    pub(crate) fn refused(&mut self, refusal: Refusal) -> Fault {
        match refusal {
            Refusal::OutOfMemory => self.heap.fault_of(refusal),
            _ => self.runtime_error(refusal.text()),
        }
    }

    /// An error with the position of a level: 0 is the running function, 1 its caller.
    #[cold]
    pub(crate) fn error_at(&mut self, level: usize, text: &[u8]) -> Fault {
        let mut message = self.where_at(level);
        message.extend_from_slice(text);
        self.heap.fault(message)
    }

    /// "user_script:1: ", or nothing if that level is no Lua code.
    pub(crate) fn where_at(&self, level: usize) -> Vec<u8> {
        let mut text = Vec::new();
        if let Some((source, line)) = self.position(level) {
            text.extend_from_slice(source);
            text.extend_from_slice(format!(":{line}: ").as_bytes());
        }
        text
    }

    /// Source and line of a level. Calls that gave way by tail calls count and have no position.
    pub fn position(&self, level: usize) -> Option<(&[u8], u32)> {
        let mut left = level as i64;
        let mut frames = self.current.frames.iter().rev();
        loop {
            let frame = frames.next()?;
            if left == 0 {
                return self.position_of(frame);
            }
            left -= 1 + i64::from(frame.tail_calls);
            if left < 0 {
                return None;
            }
        }
    }

    fn position_of(&self, frame: &Frame) -> Option<(&[u8], u32)> {
        let Callee::Lua { proto, .. } = frame.callee() else { return None };
        let proto = &self.protos.at(proto.index()).proto;
        Some((&proto.source, proto.line((frame.pc as usize).saturating_sub(1))))
    }

    /// The name of an operand of the instruction that is being carried out.
    fn name_of_operand(&self, operand: u8) -> Option<&Named> {
        Self::name_in(self, self.current.frames.last()?, operand)
    }

    fn name_in(&self, frame: &Frame, operand: u8) -> Option<&Named> {
        let Callee::Lua { proto, .. } = frame.callee() else { return None };
        let proto = &self.protos.at(proto.index()).proto;
        proto.name_of((frame.pc as usize).checked_sub(1)?, operand)
    }

    /// "attempt to index local 'x' (a nil value)"
    #[cold]
    pub(crate) fn type_fault(&mut self, verb: &str, value: Value, operand: Option<u8>) -> Fault {
        let mut text = format!("attempt to {verb} ").into_bytes();
        let named = operand.and_then(|operand| self.name_of_operand(operand));
        match named {
            Some(named) => {
                text.extend_from_slice(named.kind.text().as_bytes());
                text.extend_from_slice(b" '");
                text.extend_from_slice(&named.name);
                text.extend_from_slice(format!("' (a {} value)", value.type_name()).as_bytes());
            }
            None => text.extend_from_slice(format!("a {} value", value.type_name()).as_bytes()),
        }
        self.runtime_error(text)
    }

    #[cold]
    pub(crate) fn order_fault(&mut self, a: Value, b: Value) -> Fault {
        let (a, b) = (a.type_name(), b.type_name());
        // COMPAT: Lua 5.1 tells types apart by their third letter, so that a string and a thread
        // are two of a kind. (tests/corpus/messages.txt)
        let text = if a.as_bytes()[2] == b.as_bytes()[2] {
            format!("attempt to compare two {a} values")
        } else {
            format!("attempt to compare {a} with {b}")
        };
        self.runtime_error(text)
    }

    /// "bad argument #1 to 'name' (text)", for the native that runs.
    #[cold]
    pub(crate) fn argument_error(&mut self, position: usize, text: &[u8]) -> Fault {
        let mut position = position;
        let caller = self.current.frames.iter().rev().nth(1);
        let named = caller.and_then(|frame| {
            // Any other instruction has called a metamethod: what it names is an operand.
            let callee = if self.is_call(frame) { 0 } else { GENERATOR_OPERAND };
            self.name_in(frame, callee)
        });
        let mut message = Vec::new();
        match named {
            Some(Named { kind: NameKind::Method, name, .. }) => {
                position = position.saturating_sub(1);
                if position == 0 {
                    message.extend_from_slice(b"calling '");
                    message.extend_from_slice(name);
                    message.extend_from_slice(b"' on bad self (");
                } else {
                    message.extend(begin_argument(position, name));
                }
            }
            Some(Named { name, .. }) => message.extend(begin_argument(position, name)),
            None => message.extend(begin_argument(position, b"?")),
        }
        message.extend_from_slice(text);
        message.push(b')');
        self.error_at(1, &message)
    }
}

fn begin_argument(position: usize, name: &[u8]) -> Vec<u8> {
    let mut text = format!("bad argument #{position} to '").into_bytes();
    text.extend_from_slice(name);
    text.extend_from_slice(b"' (");
    text
}
