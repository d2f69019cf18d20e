//! DELEX and DELIFEQ: strings that are deleted if they are what the caller expects.

use crate::call::ctx::{Ctx, DONE, Outcome};
use crate::error::Refusal;
use russet_base::Args;
use russet_base::digest::{DIGEST_DIGITS, Digest};
use russet_engine::event::Event;
use russet_engine::types::string::{self, Text};

/// What a value must be for its key to be deleted.
#[derive(Clone, Copy)]
enum Condition<'a> {
    Equals(&'a [u8]),
    Differs(&'a [u8]),
    DigestIs(&'a [u8]),
    DigestIsNot(&'a [u8]),
}

impl<'a> Condition<'a> {
    fn parse(name: &[u8], operand: &'a [u8]) -> Result<Self, Refusal> {
        let condition = match name.to_ascii_lowercase().as_slice() {
            b"ifeq" => Condition::Equals(operand),
            b"ifne" => Condition::Differs(operand),
            b"ifdeq" => Condition::DigestIs(operand),
            b"ifdne" => Condition::DigestIsNot(operand),
            _ => {
                return Err(Refusal::text(
                    "ERR Invalid condition. Use IFEQ, IFNE, IFDEQ, or IFDNE",
                ));
            }
        };
        let is_digest = matches!(condition, Condition::DigestIs(_) | Condition::DigestIsNot(_));
        if is_digest && operand.len() != DIGEST_DIGITS {
            return Err(Refusal::text("ERR must be exactly 16 hexadecimal characters"));
        }
        Ok(condition)
    }

    fn holds(self, value: Text) -> bool {
        value.with_bytes(|bytes| match self {
            Condition::Equals(other) => bytes == other,
            Condition::Differs(other) => bytes != other,
            Condition::DigestIs(given) => Digest::of(bytes).is(given),
            Condition::DigestIsNot(given) => !Digest::of(bytes).is(given),
        })
    }
}

/// COMPAT: a missing key is answered, and one of another type refused, before the condition is
/// looked at (test `delex_looks_at_the_key_first`).
pub fn delex(ctx: &mut Ctx, args: Args) -> Outcome {
    let key = args.at(1);
    match args.len() {
        2 => {
            let is_there = ctx.keys.exists(key);
            return delete_if(ctx, key, is_there);
        }
        4 => {}
        _ => return Err(Refusal::Arity("delex")),
    }
    let Some(entry) = ctx.keys.peek(key) else {
        ctx.reply.int(0);
        return DONE;
    };
    let value = string::text(&entry).map_err(|_| {
        Refusal::text("ERR Key should be of string type if conditions are specified")
    })?;
    let is_met = Condition::parse(args.at(2), args.at(3))?.holds(value);
    delete_if(ctx, key, is_met)
}

pub fn delifeq(ctx: &mut Ctx, args: Args) -> Outcome {
    let key = args.at(1);
    let is_met = match ctx.keys.peek(key) {
        None => false,
        Some(entry) => Condition::Equals(args.at(2)).holds(string::text(&entry)?),
    };
    delete_if(ctx, key, is_met)
}

fn delete_if(ctx: &mut Ctx, key: &[u8], is_met: bool) -> Outcome {
    if is_met && ctx.keys.remove(key) {
        ctx.keys.wrote(key, Event::DEL);
        ctx.keys.record([b"DEL", key]);
    }
    ctx.reply.int(i64::from(is_met));
    DONE
}
