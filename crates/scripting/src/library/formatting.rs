//! `string.format`: walks the format and takes an argument for each directive.

use super::format::{Spec, append_quoted, to_signed, to_unsigned};
use super::{charge_bytes, grow};
use crate::call::{Call, Outcome};
use crate::fault::Fault;
use crate::value::StrRef;

/// What `%q` may make of a byte.
const QUOTE_BYTES_MAX: usize = 4;
/// Room for a result that is kept for the next.
const KEPT_BYTES_MAX: usize = 4096;
/// What a directive other than `%s` and `%q` may add.
const ITEM_BYTES_MAX: usize = 512;

pub(super) fn format(call: &mut Call) -> Outcome {
    let format = call.string(1)?;
    let len = call.bytes(format).len();
    charge_bytes(call, len)?;
    let mut out = std::mem::take(&mut call.state().library.formatted);
    out.clear();
    append_all(call, format, &mut out)?;
    give_built(call, out)
}

/// Gives what was built in the room that the libraries keep for it, and gives that back.
pub(super) fn give_built(call: &mut Call, out: Vec<u8>) -> Outcome {
    if out.capacity() > KEPT_BYTES_MAX {
        return call.give_owned(out);
    }
    let outcome = call.give_bytes(&out);
    call.state().library.formatted = out;
    outcome
}

fn append_all(call: &mut Call, format: StrRef, out: &mut Vec<u8>) -> Result<(), Fault> {
    let (mut position, mut at) = (1, 0);
    loop {
        let rest = &call.bytes(format)[at..];
        let Some(percent) = memchr::memchr(b'%', rest) else {
            out.extend_from_slice(rest);
            return Ok(());
        };
        out.extend_from_slice(&rest[..percent]);
        let directive = &rest[percent + 1..];
        at += percent + 1;
        if directive.first() == Some(&b'%') {
            out.push(b'%');
            at += 1;
            continue;
        }
        let scanned = Spec::scan(directive);
        // The zero byte behind every string of C ends a format in the middle of a directive.
        let letter = |len: usize| directive.get(len).copied().unwrap_or(0);
        let scanned = scanned.map(|(spec, len)| (spec, len, letter(len)));
        position += 1;
        if call.is_none(position) {
            return Err(call.arg_error(position, "no value"));
        }
        let (spec, len, letter) = scanned.map_err(|text| call.error(text))?;
        append_item(call, position, spec, letter, out)?;
        at += len + 1;
    }
}

fn append_item(
    call: &mut Call,
    position: usize,
    spec: Spec,
    letter: u8,
    out: &mut Vec<u8>,
) -> Result<(), Fault> {
    match letter {
        b's' | b'q' => {
            let text = call.string(position)?;
            let len = call.bytes(text).len();
            if letter == b's' {
                grow(call, out, len + ITEM_BYTES_MAX)?;
                spec.append_text(call.bytes(text), out);
            } else {
                grow(call, out, QUOTE_BYTES_MAX * len + 2)?;
                append_quoted(call.bytes(text), out);
            }
        }
        b'c' => spec.append_char(to_char(call.number(position)?), out),
        b'd' | b'i' => spec.append_signed(to_signed(call.number(position)?), out),
        b'o' | b'u' | b'x' | b'X' => {
            spec.append_unsigned(to_unsigned(call.number(position)?), letter, out);
        }
        b'e' | b'E' | b'f' | b'g' | b'G' => {
            call.charge(1)?;
            spec.append_double(call.number(position)?, letter, out);
        }
        0 => return Err(call.error("invalid option '%' to 'format'")),
        other => {
            let mut text = b"invalid option '%".to_vec();
            text.push(other);
            text.extend_from_slice(b"' to 'format'");
            return Err(call.error(text));
        }
    }
    Ok(())
}

/// The low byte of a number as a C int; what no int holds has none.
fn to_char(number: f64) -> u8 {
    match i32::try_from(to_signed(number)) {
        Ok(value) => value as u8,
        Err(_) => 0,
    }
}
