//! `bit`: operations on 32 bits, whose results are signed.

use super::{Entry, QuickEntry};
use crate::call::{Call, Outcome};
use crate::fault::Fault;
use crate::value::Value;

/// Hexadecimal digits of 32 bits.
const DIGITS_MAX: u32 = 8;

pub(super) const ENTRIES: &[Entry] = &[
    ("bswap", |call| single(call, u32::swap_bytes)),
    ("rol", |call| shift(call, u32::rotate_left)),
    ("ror", |call| shift(call, u32::rotate_right)),
    ("tohex", tohex),
];

/// Those that scripts call most, with their quick forms.
pub(super) const QUICK_ENTRIES: &[QuickEntry] = &[
    (
        "arshift",
        |_, args| quick_shift(args, |bits, by| (bits as i32 >> by) as u32),
        |call| shift(call, |bits, by| (bits as i32 >> by) as u32),
    ),
    ("band", |_, args| quick_fold(args, |a, b| a & b), |call| fold(call, |a, b| a & b)),
    ("bnot", |_, args| quick_single(args, |bits| !bits), |call| single(call, |bits| !bits)),
    ("bor", |_, args| quick_fold(args, |a, b| a | b), |call| fold(call, |a, b| a | b)),
    ("bxor", |_, args| quick_fold(args, |a, b| a ^ b), |call| fold(call, |a, b| a ^ b)),
    (
        "lshift",
        |_, args| quick_shift(args, |bits, by| bits << by),
        |call| shift(call, |bits, by| bits << by),
    ),
    (
        "rshift",
        |_, args| quick_shift(args, |bits, by| bits >> by),
        |call| shift(call, |bits, by| bits >> by),
    ),
    ("tobit", |_, args| quick_single(args, |bits| bits), |call| single(call, |bits| bits)),
];

/// The low 32 bits of a number, rounded to a whole one.
///
/// COMPAT: a number beyond 2^51 gives the low bits of its sum with 2^52 + 2^51.
fn to_bits(number: f64) -> u32 {
    const ROUND_TO_WHOLE: f64 = 6_755_399_441_055_744.0;
    (number + ROUND_TO_WHOLE).to_bits() as u32
}

fn argument(call: &mut Call, position: usize) -> Result<u32, Fault> {
    call.number(position).map(to_bits)
}

fn give(call: &mut Call, bits: u32) -> Outcome {
    call.give(value_of(bits))
}

fn quick_single(args: &[Value], operation: impl Fn(u32) -> u32) -> Option<Value> {
    match args {
        [Value::Number(number)] => Some(value_of(operation(to_bits(*number)))),
        _ => None,
    }
}

fn quick_fold(args: &[Value], operation: impl Fn(u32, u32) -> u32) -> Option<Value> {
    match args {
        [Value::Number(a), Value::Number(b)] => Some(value_of(operation(to_bits(*a), to_bits(*b)))),
        _ => None,
    }
}

fn quick_shift(args: &[Value], operation: impl Fn(u32, u32) -> u32) -> Option<Value> {
    quick_fold(args, |bits, by| operation(bits, by & 31))
}

fn value_of(bits: u32) -> Value {
    Value::Number(f64::from(bits as i32))
}

fn single(call: &mut Call, operation: impl Fn(u32) -> u32) -> Outcome {
    let bits = argument(call, 1)?;
    give(call, operation(bits))
}

/// COMPAT: of several bad arguments behind the first, the last is named.
fn fold(call: &mut Call, operation: impl Fn(u32, u32) -> u32) -> Outcome {
    let mut bits = argument(call, 1)?;
    for position in (2..=call.arg_count()).rev() {
        bits = operation(bits, argument(call, position)?);
    }
    give(call, bits)
}

fn shift(call: &mut Call, operation: impl Fn(u32, u32) -> u32) -> Outcome {
    let bits = argument(call, 1)?;
    let by = argument(call, 2)? & 31;
    give(call, operation(bits, by))
}

/// A negative number of digits asks for capitals.
fn tohex(call: &mut Call) -> Outcome {
    let bits = argument(call, 1)?;
    let wanted = if call.is_none(2) { DIGITS_MAX as i32 } else { argument(call, 2)? as i32 };
    call.give_bytes(&hexadecimal(bits, wanted))
}

/// CVE-2024-31449: the least integer has no positive twin; it is cut to the width like any other.
fn hexadecimal(bits: u32, wanted: i32) -> Vec<u8> {
    let digits = wanted.unsigned_abs().min(DIGITS_MAX);
    let mut text = format!("{bits:08x}").into_bytes();
    if wanted < 0 {
        text.make_ascii_uppercase();
    }
    text.split_off((DIGITS_MAX - digits) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Recorded from a real server.
    #[test]
    fn numbers_become_bits() {
        let cases = [
            (4_294_967_301.0, 5),
            (-2_147_483_649.0, 2_147_483_647),
            (0.5, 0),
            (1.5, 2),
            (f64::INFINITY, 0),
            (1e300, -2_013_235_812),
            (9_007_199_254_740_992.0, 0),
        ];
        for (number, bits) in cases {
            assert_eq!(to_bits(number) as i32, bits, "{number}");
        }
    }

    #[test]
    fn hexadecimal_widths_are_bounded() {
        assert_eq!(hexadecimal(u32::MAX, i32::MIN), b"FFFFFFFF");
        assert_eq!(hexadecimal(255, i32::MAX), b"000000ff");
        assert_eq!(hexadecimal(255, 2), b"ff");
        assert_eq!(hexadecimal(0xABC, -2), b"BC");
        assert_eq!(hexadecimal(255, 0), b"");
    }
}
