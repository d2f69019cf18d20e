//! Numbers as text: the strict integers of commands and encodings, floats as arguments, and
//! amounts of memory in configuration and INFO. Printing floats is not here.

use crate::binary::{DOUBLE, Rounded, parse_hex};
use crate::longdouble::is_infinity_name;

/// Longest text of an `i64`: "-9223372036854775808".
pub const I64_TEXT_BYTES_MAX: usize = 20;

/// Reads an integer that prints back to the same text: no `+`, no space, no leading zero, no `-0`.
#[inline]
pub fn parse_i64(text: &[u8]) -> Option<i64> {
    match text {
        [b'-', digits @ ..] => {
            let magnitude = parse_u64(digits)?;
            match magnitude {
                1..=0x8000_0000_0000_0000 => Some((magnitude as i64).wrapping_neg()),
                _ => None,
            }
        }
        _ => i64::try_from(parse_u64(text)?).ok(),
    }
}

/// Reads an unsigned integer that prints back to the same text.
#[inline]
pub fn parse_u64(text: &[u8]) -> Option<u64> {
    // Nineteen digits always fit.
    const SAFE_DIGITS: usize = 19;
    match text {
        [] => return None,
        [b'0', rest @ ..] => return rest.is_empty().then_some(0),
        _ if text.len() <= WORD_DIGITS => return parse_word(text),
        _ if text.len() > SAFE_DIGITS + 1 => return None,
        _ => {}
    }
    let (safe, last) = text.split_at(text.len().min(SAFE_DIGITS));
    let mut value = 0u64;
    for byte in safe {
        value = value * 10 + u64::from(digit(*byte)?);
    }
    match last {
        [byte] => value.checked_mul(10)?.checked_add(u64::from(digit(*byte)?)),
        _ => Some(value),
    }
}

/// Digits that are read at once.
const WORD_DIGITS: usize = 8;

/// Reads one to eight digits in a few steps: the digits stand in the bytes of a word, the first in
/// the lowest, behind as many zeros as are missing; neighbours are joined to pairs, and pairs to
/// the number.
fn parse_word(text: &[u8]) -> Option<u64> {
    const ZEROS: u64 = u64::from_le_bytes([b'0'; WORD_DIGITS]);
    const HIGHS: u64 = u64::from_le_bytes([0x80; WORD_DIGITS]);
    const NINE_TO_HIGH: u64 = u64::from_le_bytes([0x7f - 9; WORD_DIGITS]);
    const PAIRS: u64 = 0x0000_00ff_0000_00ff;
    let missing_bits = 8 * (WORD_DIGITS - text.len()) as u32;
    let padding = ZEROS & !(u64::MAX << missing_bits);
    let values = (word_of(text) << missing_bits | padding) ^ ZEROS;
    if (values | values.wrapping_add(NINE_TO_HIGH)) & HIGHS != 0 {
        return None;
    }
    let pairs = values * 10 + (values >> 8);
    let [first, second] = [pairs & PAIRS, pairs >> 16 & PAIRS];
    // What overflows is above the sum of all four, which is in the upper half.
    let sum = first.wrapping_mul(100 + (1_000_000 << 32));
    Some(sum.wrapping_add(second.wrapping_mul(1 + (10_000 << 32))) >> 32)
}

/// One to eight bytes as a word, the first lowest. Halves of four may overlap.
fn word_of(text: &[u8]) -> u64 {
    if let Some(all) = text.first_chunk() {
        u64::from_le_bytes(*all)
    } else if let (Some(first), Some(last)) = (text.first_chunk(), text.last_chunk()) {
        let [first, last] = [u32::from_le_bytes(*first), u32::from_le_bytes(*last)];
        u64::from(first) | u64::from(last) << (8 * (text.len() - 4))
    } else {
        text.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte))
    }
}

/// Reads an unsigned integer as Redis reads cursors and the parts of stream IDs.
/// COMPAT: where the strict form fails, white space in front, a sign and leading zeros are let
/// pass, and a minus before a leading zero wraps as in C (test `loose_integers`).
pub fn parse_u64_loose(text: &[u8]) -> Option<u64> {
    if let Some(value) = parse_i64(text) {
        return u64::try_from(value).ok();
    }
    let spaces = text.iter().take_while(|byte| matches!(byte, b' ' | b'\t'..=b'\r')).count();
    let (is_negative, digits) = match &text[spaces..] {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        digits => (false, digits),
    };
    if digits.is_empty() {
        return None;
    }
    let magnitude = digits
        .iter()
        .try_fold(0u64, |sum, byte| sum.checked_mul(10)?.checked_add(u64::from(digit(*byte)?)))?;
    Some(if is_negative { magnitude.wrapping_neg() } else { magnitude })
}

#[inline]
fn digit(byte: u8) -> Option<u8> {
    let value = byte.wrapping_sub(b'0');
    (value < 10).then_some(value)
}

/// The digits of 00 to 99: two at a time halve the divisions.
pub static DIGIT_PAIRS: [[u8; 2]; 100] = digit_pairs();

const fn digit_pairs() -> [[u8; 2]; 100] {
    let mut pairs = [[0; 2]; 100];
    let mut value = 0;
    while value < 100 {
        pairs[value] = [b'0' + (value / 10) as u8, b'0' + (value % 10) as u8];
        value += 1;
    }
    pairs
}

/// The decimal text of `value`, written into the end of `buffer`.
#[inline]
pub fn i64_bytes(value: i64, buffer: &mut [u8; I64_TEXT_BYTES_MAX]) -> &[u8] {
    let mut start = u64_start(value.unsigned_abs(), buffer);
    if value < 0 {
        start -= 1;
        buffer[start] = b'-';
    }
    &buffer[start..]
}

/// The decimal text of `value`, written into the end of `buffer`.
#[inline]
pub fn u64_bytes(value: u64, buffer: &mut [u8; I64_TEXT_BYTES_MAX]) -> &[u8] {
    let start = u64_start(value, buffer);
    &buffer[start..]
}

/// Writes the digits into the end of `buffer` and gives the index of the first. A `u64` has at
/// most twenty, an `i64` nineteen and room for its sign.
#[inline]
fn u64_start(mut value: u64, buffer: &mut [u8; I64_TEXT_BYTES_MAX]) -> usize {
    let mut start = buffer.len();
    while value >= 10 {
        start -= 2;
        buffer[start..start + 2].copy_from_slice(&DIGIT_PAIRS[(value % 100) as usize]);
        value /= 100;
    }
    // What is left is one digit, or nothing behind a last pair of 10 or more.
    if value > 0 || start == buffer.len() {
        start -= 1;
        buffer[start] = b'0' + value as u8;
    }
    start
}

#[inline]
pub fn write_i64(out: &mut Vec<u8>, value: i64) {
    out.extend_from_slice(i64_bytes(value, &mut [0; I64_TEXT_BYTES_MAX]));
}

#[inline]
pub fn write_u64(out: &mut Vec<u8>, value: u64) {
    out.extend_from_slice(u64_bytes(value, &mut [0; I64_TEXT_BYTES_MAX]));
}

/// Length of the decimal text, the sign included.
#[inline]
pub fn i64_len(value: i64) -> usize {
    let digits = value.unsigned_abs().checked_ilog10().unwrap_or(0) as usize + 1;
    digits + usize::from(value < 0)
}

/// Reads a float argument (a score, an increment, a distance) as Redis does: decimal or `0x`
/// hexadecimal, with any sign, or an infinity by name. Refused are NaN, white space, anything
/// behind the number, what overflows, and what is not zero but rounds to it.
pub fn parse_f64(text: &[u8]) -> Option<f64> {
    let body = match text {
        [b'-' | b'+', body @ ..] => body,
        _ => text,
    };
    let magnitude = match body {
        [b'0', b'x' | b'X', ..] => parse_hex_f64(body)?,
        [b'0'..=b'9' | b'.', ..] => parse_decimal_f64(body)?,
        _ if is_infinity_name(body) => f64::INFINITY,
        _ => return None,
    };
    Some(if text[0] == b'-' { -magnitude } else { magnitude })
}

fn parse_decimal_f64(body: &[u8]) -> Option<f64> {
    if let Some(value) = parse_short_decimal(body) {
        return Some(value);
    }
    let value: f64 = std::str::from_utf8(body).ok()?.parse().ok()?;
    let underflowed = || {
        let digits = body.iter().take_while(|byte| !matches!(byte, b'e' | b'E'));
        value == 0.0 && digits.clone().any(|byte| matches!(byte, b'1'..=b'9'))
    };
    (value.is_finite() && !underflowed()).then_some(value)
}

/// Most numbers: a few digits, perhaps with a point. Both they and the power of ten are exact as
/// floating-point numbers, so that their quotient is rounded once, as it should be.
fn parse_short_decimal(body: &[u8]) -> Option<f64> {
    const DIGITS_MAX: usize = 15;
    if body.len() > DIGITS_MAX {
        return None;
    }
    let (mut digits, mut point) = (0u64, None);
    for (at, &byte) in body.iter().enumerate() {
        match byte {
            b'0'..=b'9' => digits = digits * 10 + u64::from(byte - b'0'),
            b'.' if point.is_none() => point = Some(at),
            _ => return None,
        }
    }
    match point {
        None => Some(digits as f64),
        Some(_) if body.len() == 1 => None,
        Some(at) => Some(digits as f64 / POWERS_OF_TEN[body.len() - 1 - at]),
    }
}

/// Those that are exact.
const POWERS_OF_TEN: [f64; 15] =
    [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14];

fn parse_hex_f64(body: &[u8]) -> Option<f64> {
    let unrounded = parse_hex(body)?;
    match unrounded.round(&DOUBLE) {
        Rounded::Zero => (unrounded.magnitude == 0).then_some(0.0),
        Rounded::Overflow => None,
        Rounded::Finite { mantissa, exponent } => {
            // The top bit of a normal mantissa is implied; its absence marks the least exponent.
            let is_normal = mantissa >> 52 == 1;
            let biased = if is_normal { (exponent + 1075) as u64 } else { 0 };
            Some(f64::from_bits(biased << 52 | (mantissa & ((1 << 52) - 1))))
        }
    }
}

/// Reads an amount of memory: digits and perhaps a unit. `k`, `m` and `g` are powers of 1000,
/// `kb`, `mb` and `gb` powers of 1024, in any case.
/// COMPAT: no digits at all are zero. DIFFERS: an amount beyond 64 bits is refused, not wrapped.
pub fn parse_memory_bytes(text: &[u8]) -> Option<u64> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (digits, unit) = text.split_at(digits);
    let unit_bytes: u64 = match unit.to_ascii_lowercase().as_slice() {
        b"" | b"b" => 1,
        b"k" => 1000,
        b"kb" => 1 << 10,
        b"m" => 1000 * 1000,
        b"mb" => 1 << 20,
        b"g" => 1000 * 1000 * 1000,
        b"gb" => 1 << 30,
        _ => return None,
    };
    let amount = digits
        .iter()
        .try_fold(0u64, |sum, byte| sum.checked_mul(10)?.checked_add(u64::from(byte - b'0')))?;
    amount.checked_mul(unit_bytes)
}

/// An amount of memory as INFO prints it for people: `512B`, `1.00K`, `2.50M`.
pub fn human_bytes(bytes: u64) -> String {
    const UNITS: [char; 5] = ['K', 'M', 'G', 'T', 'P'];
    let magnitude = (bytes.checked_ilog2().unwrap_or(0) / 10) as usize;
    // COMPAT: from an exbibyte on, plain bytes again.
    let Some(unit) = magnitude.checked_sub(1).and_then(|index| UNITS.get(index)) else {
        return format!("{bytes}B");
    };
    // Redis prints a double; its division by a power of two is exact, so integers can do it, ties
    // to even as printf has them.
    let hundredths = (bytes as f64) as u128 * 100;
    let shift = magnitude * 10;
    let half = 1u128 << (shift - 1);
    let (kept, lost) = (hundredths >> shift, hundredths & (half | (half - 1)));
    let is_up = lost > half || (lost == half && kept & 1 == 1);
    let rounded = kept + u128::from(is_up);
    format!("{}.{:02}{unit}", rounded / 100, rounded % 100)
}

#[cfg(test)]
mod tests;
