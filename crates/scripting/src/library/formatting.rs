//! `string.format`: walks the format and takes an argument for each directive.

use super::format::{Spec, append_quoted, to_signed, to_unsigned};
use super::{charge_bytes, grow};
use crate::call::{Call, Outcome};
use crate::fault::Fault;

/// What `%q` may make of a byte.
const QUOTE_BYTES_MAX: usize = 4;
/// What a directive other than `%s` and `%q` may add.
const ITEM_BYTES_MAX: usize = 512;

pub(super) fn format(call: &mut Call) -> Outcome {
    let format = call.string(1)?;
    let format = call.bytes(format).to_vec();
    charge_bytes(call, format.len())?;
    let mut out = Vec::with_capacity(format.len());
    let mut position = 1;
    let mut rest = &format[..];
    while let Some(percent) = memchr::memchr(b'%', rest) {
        out.extend_from_slice(&rest[..percent]);
        rest = &rest[percent + 1..];
        if let [b'%', after @ ..] = rest {
            out.push(b'%');
            rest = after;
            continue;
        }
        position += 1;
        if call.is_none(position) {
            return Err(call.arg_error(position, "no value"));
        }
        let (spec, len) = Spec::scan(rest).map_err(|text| call.error(text))?;
        // The zero byte behind every string of C ends a format in the middle of a directive.
        let letter = rest.get(len).copied().unwrap_or(0);
        append_item(call, position, spec, letter, &mut out)?;
        rest = &rest[len + 1..];
    }
    out.extend_from_slice(rest);
    call.give_owned(out)
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
