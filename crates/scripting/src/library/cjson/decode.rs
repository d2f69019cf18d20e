//! `cjson.decode`. Open tables are on a stack of its own, so that nesting cannot exhaust the
//! thread's. Their values wait on another until the table is complete and its size known.

use super::NULL;
use super::config::{self, Config};
use crate::call::{Call, Outcome};
use crate::fault::Fault;
use crate::library::json::{Lexer, Token};
use crate::library::{RESULT_SLOTS_MAX, charge_bytes};
use crate::value::{TableRef, Value};

/// A table whose end has not been met, and where among the waiting values its own begin.
#[derive(Clone, Copy)]
enum Open {
    Array(usize),
    /// Keys and values by turns.
    Object(usize),
}

/// How many values may come to wait before there must be room for them.
const WAITING_PER_CHECK: usize = 1024;

/// What became of a value.
enum Added {
    /// It is in no table: the result.
    Result,
    /// It is in its table, and the current token begins the next value.
    Stored,
    /// It completed its table, which is a value itself.
    Completed(TableRef),
}

struct Decoding<'a> {
    lexer: Lexer<'a>,
    token: Token,
    config: Config,
    open: Vec<Open>,
    waiting: Vec<Value>,
    /// Slots on the stack of the C library that open tables would take.
    slots: usize,
}

pub(super) fn decode(call: &mut Call) -> Outcome {
    if call.arg_count() != 1 {
        return Err(call.arg_error(1, "expected 1 argument"));
    }
    let config = config::current(call);
    let text = call.string(1)?;
    let len = call.bytes(text).len();
    if matches!(call.bytes(text), [0, _, ..] | [_, 0, ..]) {
        return Err(call.error("JSON parser does not support UTF-16 or UTF-32"));
    }
    charge_bytes(call, len)?;
    call.heap().check_room(len)?;
    let source = call.bytes(text).to_vec();
    let lexer = Lexer::new(&source, config.decode_odd_numbers);
    let mut decoding = Decoding {
        lexer,
        token: Token::End,
        config,
        open: Vec::new(),
        waiting: Vec::new(),
        slots: 1,
    };
    let value = decoding.run(call)?;
    call.give(value)
}

impl Decoding<'_> {
    fn run(&mut self, call: &mut Call) -> Result<Value, Fault> {
        self.advance();
        loop {
            let Some(mut value) = self.begin(call)? else { continue };
            loop {
                match self.add(call, value)? {
                    Added::Stored => break,
                    Added::Completed(table) => value = Value::Table(table),
                    Added::Result => {
                        self.advance();
                        return match self.token {
                            Token::End => Ok(value),
                            _ => Err(self.unexpected(call, "the end")),
                        };
                    }
                }
            }
        }
    }

    fn advance(&mut self) {
        self.token = self.lexer.token();
    }

    fn unexpected(&self, call: &mut Call, wanted: &str) -> Fault {
        let (found, position) = (self.token.name(), self.lexer.token_start() + 1);
        call.error(format!("Expected {wanted} but found {found} at character {position}"))
    }

    /// The value that the current token is; nothing if it opened a table, in which case the next
    /// token begins the first value of that.
    fn begin(&mut self, call: &mut Call) -> Result<Option<Value>, Fault> {
        call.charge(1)?;
        Ok(Some(match self.token {
            Token::Text => Value::Str(call.heap().string(self.lexer.text())?),
            Token::Number(number) => Value::Number(number),
            Token::Bool(value) => Value::Bool(value),
            Token::Null => NULL,
            Token::ObjectBegin => {
                self.enter(call, 3)?;
                self.advance();
                if self.token != Token::ObjectEnd {
                    self.slots += 2;
                    self.open.push(Open::Object(self.waiting.len()));
                    self.key(call)?;
                    return Ok(None);
                }
                Value::Table(call.heap().table(0, 0)?)
            }
            Token::ArrayBegin => {
                self.enter(call, 2)?;
                self.advance();
                if self.token != Token::ArrayEnd {
                    self.slots += 1;
                    self.open.push(Open::Array(self.waiting.len()));
                    return Ok(None);
                }
                Value::Table(call.heap().table(0, 0)?)
            }
            _ => return Err(self.unexpected(call, "value")),
        }))
    }

    fn enter(&mut self, call: &mut Call, slots: usize) -> Result<(), Fault> {
        let depth = self.open.len() + 1;
        let is_deep = depth > self.config.decode_depth_max as usize;
        if is_deep || self.slots + slots > RESULT_SLOTS_MAX {
            let position = self.lexer.at();
            let text =
                format!("Found too many nested data structures ({depth}) at character {position}");
            return Err(call.error(text));
        }
        Ok(())
    }

    /// Reads a key and its colon, up to the token behind them.
    fn key(&mut self, call: &mut Call) -> Result<(), Fault> {
        if self.token != Token::Text {
            return Err(self.unexpected(call, "object key string"));
        }
        let text = call.heap().string(self.lexer.text())?;
        self.waiting.push(Value::Str(text));
        self.advance();
        if self.token != Token::Colon {
            return Err(self.unexpected(call, "colon"));
        }
        self.advance();
        Ok(())
    }

    /// Gives a value to the innermost open table.
    fn add(&mut self, call: &mut Call, value: Value) -> Result<Added, Fault> {
        let Some(open) = self.open.last().copied() else { return Ok(Added::Result) };
        self.waiting.push(value);
        if self.waiting.len().is_multiple_of(WAITING_PER_CHECK) {
            call.heap().check_room(self.waiting.len() * size_of::<Value>())?;
        }
        self.advance();
        match (open, self.token) {
            (Open::Array(start), Token::ArrayEnd) => self.complete_array(call, start),
            (Open::Object(start), Token::ObjectEnd) => self.complete_object(call, start),
            (Open::Array(_), Token::Comma) => {
                self.advance();
                Ok(Added::Stored)
            }
            (Open::Object(_), Token::Comma) => {
                self.advance();
                self.key(call)?;
                Ok(Added::Stored)
            }
            (Open::Array(_), _) => Err(self.unexpected(call, "comma or array end")),
            (Open::Object(_), _) => Err(self.unexpected(call, "comma or object end")),
        }
    }

    fn complete_array(&mut self, call: &mut Call, start: usize) -> Result<Added, Fault> {
        let table = call.heap().table(self.waiting.len() - start, 0)?;
        for (index, value) in self.waiting.drain(start..).enumerate() {
            call.heap().set_index(table, index + 1, value)?;
        }
        self.slots -= 1;
        self.open.pop();
        Ok(Added::Completed(table))
    }

    fn complete_object(&mut self, call: &mut Call, start: usize) -> Result<Added, Fault> {
        let table = call.heap().table(0, (self.waiting.len() - start) / 2)?;
        let mut values = self.waiting.drain(start..);
        while let (Some(key), Some(value)) = (values.next(), values.next()) {
            call.heap().set(table, key, value)?;
        }
        drop(values);
        self.slots -= 2;
        self.open.pop();
        Ok(Added::Completed(table))
    }
}
