//! The arithmetic of INCRBYFLOAT and HINCRBYFLOAT: x87 long doubles (64-bit mantissa) computed
//! with integers, so that the answers are those of Redis on x86 on every machine.

mod bignum;

use crate::binary::{EXTENDED, Rounded, Unrounded, parse_exponent, parse_hex};
use crate::limits::LONG_DOUBLE_TEXT_BYTES;
use bignum::Bignum;
use std::fmt;

/// Digits behind the point that are printed.
const FRACTION_DIGITS: usize = 17;
/// 5^27 is the greatest power of five in 64 bits: up to it 128-bit integers do the work.
const FAST_POWER_MAX: u64 = 27;
/// Texts of at most this many digits fit into 64 bits.
const FAST_DIGITS_MAX: usize = 19;
/// Beyond 10^4960 in either direction everything overflows, or underflows to zero.
const DECIMAL_EXPONENT_MAX: i64 = 4960;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LongDouble {
    is_negative: bool,
    magnitude: Magnitude,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Magnitude {
    Zero,
    /// `mantissa * 2^exponent`, the mantissa's top bit set unless the exponent is the least.
    Finite {
        mantissa: u64,
        exponent: i32,
    },
    Infinite,
    Nan,
}

impl LongDouble {
    pub const ZERO: LongDouble = LongDouble { is_negative: false, magnitude: Magnitude::Zero };
    /// The greatest that is finite.
    pub const MAX: LongDouble = LongDouble {
        is_negative: false,
        magnitude: Magnitude::Finite { mantissa: u64::MAX, exponent: EXTENDED.exponent_max as i32 },
    };

    /// Reads a number as Redis reads one: decimal or `0x` hexadecimal, or an infinity by name.
    /// Refused are NaN, white space, anything behind the number, what overflows, what is not zero
    /// but rounds to it, and any text of 5 KiB or more.
    pub fn parse(text: &[u8]) -> Option<LongDouble> {
        if text.len() >= LONG_DOUBLE_TEXT_BYTES {
            return None;
        }
        let (is_negative, body) = match text {
            [b'-', body @ ..] => (true, body),
            [b'+', body @ ..] => (false, body),
            _ => (false, text),
        };
        let magnitude = if is_infinity_name(body) {
            Magnitude::Infinite
        } else {
            let unrounded = match body {
                [b'0', b'x' | b'X', ..] => parse_hex(body)?,
                _ => parse_decimal(body)?,
            };
            match unrounded.round(&EXTENDED) {
                Rounded::Finite { mantissa, exponent } => Magnitude::Finite { mantissa, exponent },
                Rounded::Zero if unrounded.magnitude == 0 => Magnitude::Zero,
                Rounded::Zero | Rounded::Overflow => return None,
            }
        };
        Some(LongDouble { is_negative, magnitude })
    }

    pub fn is_finite(&self) -> bool {
        matches!(self.magnitude, Magnitude::Zero | Magnitude::Finite { .. })
    }

    /// The same with the other sign.
    #[must_use]
    pub fn negated(self) -> LongDouble {
        LongDouble { is_negative: !self.is_negative, ..self }
    }

    /// Whether this is the greater of the two; of NaN nothing is greater or less.
    pub fn exceeds(&self, other: &LongDouble) -> bool {
        let difference = add(self, &other.negated());
        let is_positive = !difference.is_negative && difference.magnitude != Magnitude::Zero;
        is_positive && !difference.is_nan()
    }

    pub fn is_nan(&self) -> bool {
        self.magnitude == Magnitude::Nan
    }

    /// Appends the number without an exponent, with at most 17 digits behind the point and no
    /// zeros at the end.
    pub fn write(&self, out: &mut Vec<u8>) {
        let start = out.len();
        if self.is_negative && !self.is_nan() {
            out.push(b'-');
        }
        match self.magnitude {
            Magnitude::Infinite => out.extend_from_slice(b"inf"),
            Magnitude::Nan => out.extend_from_slice(b"nan"),
            Magnitude::Zero => out.push(b'0'),
            Magnitude::Finite { mantissa, exponent } => match u32::try_from(exponent) {
                Ok(shift) => write_integer(out, mantissa, shift),
                Err(_) => write_fixed(out, mantissa, exponent.unsigned_abs()),
            },
        }
        if out[start..] == *b"-0" {
            out.remove(start);
        }
    }
}

impl From<i64> for LongDouble {
    fn from(value: i64) -> Self {
        let unrounded =
            Unrounded { magnitude: u128::from(value.unsigned_abs()), exponent: 0, has_more: false };
        rounded(value < 0, unrounded)
    }
}

impl fmt::Display for LongDouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = Vec::new();
        self.write(&mut out);
        f.write_str(&String::from_utf8_lossy(&out))
    }
}

/// The sum, rounded once. Infinities of opposite sign give NaN.
pub fn add(a: &LongDouble, b: &LongDouble) -> LongDouble {
    use Magnitude::{Finite, Infinite, Nan, Zero};
    match (a.magnitude, b.magnitude) {
        (Nan, _) | (_, Nan) => LongDouble { is_negative: false, magnitude: Nan },
        (Infinite, Infinite) if a.is_negative != b.is_negative => {
            LongDouble { is_negative: false, magnitude: Nan }
        }
        (Infinite, _) => *a,
        (_, Infinite) => *b,
        (Zero, Zero) => LongDouble { is_negative: a.is_negative && b.is_negative, magnitude: Zero },
        (Zero, _) => *b,
        (_, Zero) => *a,
        (Finite { mantissa: m, exponent: e }, Finite { mantissa: n, exponent: f }) => {
            let (a, b) = ((a.is_negative, m, e), (b.is_negative, n, f));
            if e >= f { add_aligned(a, b) } else { add_aligned(b, a) }
        }
    }
}

/// Adds numbers given as sign, mantissa and exponent, the greater exponent first.
fn add_aligned(
    (is_negative, mantissa, exponent): (bool, u64, i32),
    (other_is_negative, other, other_exponent): (bool, u64, i32),
) -> LongDouble {
    // The greater gets 63 bits of room below. What the lesser loses beyond that is only ever
    // lost when the greater is normal, so the sum still has bits to spare for the rounding.
    const ROOM: u32 = 63;
    let distance = exponent.abs_diff(other_exponent);
    let high = u128::from(mantissa) << ROOM;
    let shifted = u128::from(other) << ROOM;
    let low = shifted.checked_shr(distance).unwrap_or(0);
    let has_more = low.checked_shl(distance).unwrap_or(0) != shifted;
    let (is_negative, magnitude) = if is_negative == other_is_negative {
        (is_negative, high + low)
    } else if high >= low {
        // What was cut off `low` is taken away too: one unit less, and a rest.
        (is_negative, high - low - u128::from(has_more))
    } else {
        (other_is_negative, low - high) // same exponent, so nothing was cut off
    };
    let exponent = i64::from(exponent) - i64::from(ROOM);
    rounded(is_negative && magnitude != 0, Unrounded { magnitude, exponent, has_more })
}

fn rounded(is_negative: bool, unrounded: Unrounded) -> LongDouble {
    let magnitude = match unrounded.round(&EXTENDED) {
        Rounded::Zero => Magnitude::Zero,
        Rounded::Finite { mantissa, exponent } => Magnitude::Finite { mantissa, exponent },
        Rounded::Overflow => Magnitude::Infinite,
    };
    LongDouble { is_negative, magnitude }
}

/// `inf` or `infinity`, whatever the case.
pub(crate) fn is_infinity_name(body: &[u8]) -> bool {
    body.eq_ignore_ascii_case(b"inf") || body.eq_ignore_ascii_case(b"infinity")
}

fn parse_decimal(text: &[u8]) -> Option<Unrounded> {
    let (number, exponent) = match text.iter().position(|byte| matches!(byte, b'e' | b'E')) {
        Some(at) => (&text[..at], parse_exponent(&text[at + 1..])?),
        None => (text, 0),
    };
    let (integer, fraction) = match number.iter().position(|byte| *byte == b'.') {
        Some(at) => (&number[..at], &number[at + 1..]),
        None => (number, &[][..]),
    };
    let all_digits = |part: &[u8]| part.iter().all(u8::is_ascii_digit);
    let is_empty = integer.is_empty() && fraction.is_empty();
    if is_empty || !all_digits(integer) || !all_digits(fraction) {
        return None;
    }
    let mut digits = [integer, fraction].concat();
    let mut exponent = exponent - fraction.len() as i64;
    while digits.last() == Some(&b'0') {
        digits.pop();
        exponent += 1;
    }
    let zeros = digits.iter().take_while(|digit| **digit == b'0').count();
    Some(scale_decimal(&digits[zeros..], exponent))
}

/// `digits * 10^exponent` in binary; the digits don't begin or end with a zero.
fn scale_decimal(digits: &[u8], exponent: i64) -> Unrounded {
    let point = digits.len() as i64 + exponent;
    if digits.is_empty() {
        return Unrounded { magnitude: 0, exponent: 0, has_more: false };
    }
    if point.abs() > DECIMAL_EXPONENT_MAX {
        let beyond = point.signum() * (1 << 20);
        return Unrounded { magnitude: 1, exponent: beyond, has_more: false };
    }
    if digits.len() <= FAST_DIGITS_MAX && exponent.unsigned_abs() <= FAST_POWER_MAX {
        scale_small(digits, exponent)
    } else {
        scale_large(digits, exponent)
    }
}

/// The long way, for exponents that the caller has bounded by 10,100 or so.
fn scale_large(digits: &[u8], exponent: i64) -> Unrounded {
    let power = exponent.unsigned_abs() as u32;
    let mut number = Bignum::from_digits(digits);
    let scaled = if exponent >= 0 {
        number.multiply_by_power_of_five(power);
        number.top()
    } else {
        let mut divisor = Bignum::from_digits(b"1");
        divisor.multiply_by_power_of_five(power);
        number.divide(divisor)
    };
    Unrounded { exponent: scaled.exponent + exponent, ..scaled }
}

fn scale_small(digits: &[u8], exponent: i64) -> Unrounded {
    let number = digits.iter().fold(0u64, |sum, digit| sum * 10 + u64::from(digit - b'0'));
    let power = 5u64.pow(exponent.unsigned_abs() as u32);
    if exponent >= 0 {
        let magnitude = u128::from(number) * u128::from(power);
        return Unrounded { magnitude, exponent, has_more: false };
    }
    // With its top bit set the dividend is at least 2^64 times any divisor below 2^63: the
    // quotient has a bit more than the mantissa, and the remainder says the rest.
    let dividend = u128::from(number);
    let shift = dividend.leading_zeros();
    let dividend = dividend << shift;
    Unrounded {
        magnitude: dividend / u128::from(power),
        exponent: exponent - i64::from(shift),
        has_more: !dividend.is_multiple_of(u128::from(power)),
    }
}

/// `mantissa * 2^shift`, digit for digit.
fn write_integer(out: &mut Vec<u8>, mantissa: u64, shift: u32) {
    if shift <= u64::BITS {
        out.extend_from_slice((u128::from(mantissa) << shift).to_string().as_bytes());
    } else {
        Bignum::shifted(mantissa, shift).write(out);
    }
}

/// `mantissa / 2^shift` to 17 digits behind the point, ties to even, zeros at the end trimmed.
fn write_fixed(out: &mut Vec<u8>, mantissa: u64, shift: u32) {
    const SCALE: u128 = 10u128.pow(FRACTION_DIGITS as u32);
    // Less than 2^121, so that a shift by 122 or more leaves less than a half.
    let scaled = u128::from(mantissa) * SCALE;
    let kept = scaled.checked_shr(shift).unwrap_or(0);
    let is_up = match 1u128.checked_shl(shift - 1) {
        Some(half) => {
            let lost = scaled & (half | (half - 1));
            lost > half || (lost == half && kept & 1 == 1)
        }
        None => false,
    };
    let rounded = kept + u128::from(is_up);
    out.extend_from_slice((rounded / SCALE).to_string().as_bytes());
    let fraction = format!("{:017}", rounded % SCALE);
    let fraction = fraction.trim_end_matches('0');
    if !fraction.is_empty() {
        out.push(b'.');
        out.extend_from_slice(fraction.as_bytes());
    }
}

#[cfg(test)]
mod tests;
