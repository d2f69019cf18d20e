//! `cjson.decode`. Open tables are on a stack of its own, so that nesting cannot exhaust the
//! thread's.

use super::NULL;
use super::config::{self, Config};
use crate::call::{Call, Outcome};
use crate::fault::Fault;
use crate::library::json::{Lexer, Token};
use crate::library::{RESULT_SLOTS_MAX, charge_bytes};
use crate::value::{TableRef, Value};

/// A table that is being filled.
enum Open {
    /// The index of the last element.
    Array(TableRef, usize),
    /// The key that waits for its value.
    Object(TableRef, Value),
}

/// What became of a value.
enum Placed {
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
    /// Places on the stack of the C library that open tables would take.
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
    let mut decoding = Decoding { lexer, token: Token::End, config, open: Vec::new(), slots: 1 };
    let value = decoding.run(call)?;
    call.give(value)
}

impl Decoding<'_> {
    fn run(&mut self, call: &mut Call) -> Result<Value, Fault> {
        self.advance();
        loop {
            let Some(mut value) = self.begin(call)? else { continue };
            loop {
                match self.place(call, value)? {
                    Placed::Stored => break,
                    Placed::Completed(table) => value = Value::Table(table),
                    Placed::Result => {
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
        let (found, place) = (self.token.name(), self.lexer.token_start() + 1);
        call.error(format!("Expected {wanted} but found {found} at character {place}"))
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
                let table = self.enter(call, 3)?;
                self.advance();
                if self.token != Token::ObjectEnd {
                    self.slots += 2;
                    self.open.push(Open::Object(table, Value::Nil));
                    self.key(call)?;
                    return Ok(None);
                }
                Value::Table(table)
            }
            Token::ArrayBegin => {
                let table = self.enter(call, 2)?;
                self.advance();
                if self.token != Token::ArrayEnd {
                    self.slots += 1;
                    self.open.push(Open::Array(table, 0));
                    return Ok(None);
                }
                Value::Table(table)
            }
            _ => return Err(self.unexpected(call, "value")),
        }))
    }

    fn enter(&mut self, call: &mut Call, slots: usize) -> Result<TableRef, Fault> {
        let depth = self.open.len() + 1;
        let is_deep = depth > self.config.decode_depth_max as usize;
        if is_deep || self.slots + slots > RESULT_SLOTS_MAX {
            let place = self.lexer.at();
            let text =
                format!("Found too many nested data structures ({depth}) at character {place}");
            return Err(call.error(text));
        }
        call.heap().table(0, 0)
    }

    /// Reads a key and its colon, up to the token behind them.
    fn key(&mut self, call: &mut Call) -> Result<(), Fault> {
        if self.token != Token::Text {
            return Err(self.unexpected(call, "object key string"));
        }
        let text = call.heap().string(self.lexer.text())?;
        if let Some(Open::Object(_, key)) = self.open.last_mut() {
            *key = Value::Str(text);
        }
        self.advance();
        if self.token != Token::Colon {
            return Err(self.unexpected(call, "colon"));
        }
        self.advance();
        Ok(())
    }

    /// Gives a value to the innermost open table.
    fn place(&mut self, call: &mut Call, value: Value) -> Result<Placed, Fault> {
        match self.open.last_mut() {
            None => Ok(Placed::Result),
            Some(Open::Array(table, index)) => {
                let table = *table;
                *index += 1;
                call.heap().set_index(table, *index, value)?;
                self.advance();
                match self.token {
                    Token::ArrayEnd => Ok(self.leave(table, 1)),
                    Token::Comma => {
                        self.advance();
                        Ok(Placed::Stored)
                    }
                    _ => Err(self.unexpected(call, "comma or array end")),
                }
            }
            Some(Open::Object(table, key)) => {
                let table = *table;
                call.heap().set(table, *key, value)?;
                self.advance();
                match self.token {
                    Token::ObjectEnd => Ok(self.leave(table, 2)),
                    Token::Comma => {
                        self.advance();
                        self.key(call)?;
                        Ok(Placed::Stored)
                    }
                    _ => Err(self.unexpected(call, "comma or object end")),
                }
            }
        }
    }

    fn leave(&mut self, table: TableRef, slots: usize) -> Placed {
        self.slots -= slots;
        self.open.pop();
        Placed::Completed(table)
    }
}
