//! Doubles as text, laid out as Redis lays them out: in scores, in RESP3 and in scripts.

use std::io::Write;

/// Integers up to this size are written in full; beyond it, the layout of other numbers holds.
const INTEGER_MAX: f64 = (1u64 << 62) as f64;
/// Zeros that may stand at the end of a whole number, beyond its significant digits.
const TRAILING_ZEROS_MAX: i32 = 7;
/// Digits after the point from which small numbers take an exponent.
const FRACTION_DIGITS_MAX: i32 = 7;
/// Numbers below 10 to this power keep the point however many digits follow it.
const POINT_EXPONENT_MAX: i32 = 4;
/// Seventeen digits, a point, a sign, and an exponent of four bytes.
const SCIENTIFIC_BYTES_MAX: usize = 32;

/// Adds the text of `value` to `out`: the digits that read back as the same double, whole numbers
/// without a point, `inf`, `-inf`, `nan`.
pub fn format_f64(value: f64, out: &mut Vec<u8>) {
    if value.is_nan() {
        return out.extend_from_slice(b"nan");
    }
    if value.is_sign_negative() {
        out.push(b'-');
    }
    let magnitude = value.abs();
    if magnitude == f64::INFINITY {
        return out.extend_from_slice(b"inf");
    }
    if magnitude <= INTEGER_MAX && magnitude.trunc() == magnitude {
        return write_integer(magnitude as u64, out);
    }
    let decimal = Decimal::shortest(magnitude);
    decimal.lay_out(out);
}

fn write_integer(value: u64, out: &mut Vec<u8>) {
    let mut digits = [0; 20];
    let mut start = digits.len();
    let mut rest = value;
    loop {
        start -= 1;
        digits[start] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            return out.extend_from_slice(&digits[start..]);
        }
    }
}

/// Significant digits and the power of ten of the first one.
struct Decimal {
    digits: [u8; SCIENTIFIC_BYTES_MAX],
    len: usize,
    exponent: i32,
}

impl Decimal {
    /// The fewest digits that read back as `magnitude`, which is finite and above zero.
    fn shortest(magnitude: f64) -> Decimal {
        let mut text = [0; SCIENTIFIC_BYTES_MAX];
        let mut room = &mut text[..];
        // The longest text has 23 bytes (17 digits, a point, `e-` and three digits more).
        write!(room, "{magnitude:e}").expect("the room is longer than any double in this form");
        let written = SCIENTIFIC_BYTES_MAX - room.len();
        let mut decimal = Decimal { digits: [0; SCIENTIFIC_BYTES_MAX], len: 0, exponent: 0 };
        let mut bytes = text[..written].iter();
        for &byte in bytes.by_ref().take_while(|&&byte| byte != b'e') {
            if byte != b'.' {
                decimal.digits[decimal.len] = byte;
                decimal.len += 1;
            }
        }
        let mut is_negative = false;
        for &byte in bytes {
            match byte {
                b'-' => is_negative = true,
                digit => decimal.exponent = decimal.exponent * 10 + i32::from(digit - b'0'),
            }
        }
        if is_negative {
            decimal.exponent = -decimal.exponent;
        }
        decimal
    }

    fn lay_out(&self, out: &mut Vec<u8>) {
        let digits = &self.digits[..self.len];
        // The power of ten of the last digit: below zero, so many digits follow the point.
        let last = self.exponent - (self.len as i32 - 1);
        if last >= 0 && self.exponent.abs() < self.len as i32 + TRAILING_ZEROS_MAX {
            out.extend_from_slice(digits);
            out.resize(out.len() + last as usize, b'0');
        } else if last < 0
            && (-last < FRACTION_DIGITS_MAX || self.exponent.abs() < POINT_EXPONENT_MAX)
        {
            lay_out_with_point(digits, self.exponent, out);
        } else {
            lay_out_with_exponent(digits, self.exponent, out);
        }
    }
}

fn lay_out_with_point(digits: &[u8], exponent: i32, out: &mut Vec<u8>) {
    if exponent < 0 {
        out.extend_from_slice(b"0.");
        out.resize(out.len() + (-exponent - 1) as usize, b'0');
        out.extend_from_slice(digits);
    } else {
        let (whole, fraction) = digits.split_at(exponent as usize + 1);
        out.extend_from_slice(whole);
        out.push(b'.');
        out.extend_from_slice(fraction);
    }
}

fn lay_out_with_exponent(digits: &[u8], exponent: i32, out: &mut Vec<u8>) {
    out.push(digits[0]);
    if digits.len() > 1 {
        out.push(b'.');
        out.extend_from_slice(&digits[1..]);
    }
    out.extend_from_slice(if exponent < 0 { b"e-" } else { b"e+" });
    write_integer(u64::from(exponent.unsigned_abs()), out);
}

#[cfg(test)]
#[path = "float/tests.rs"]
mod tests;
