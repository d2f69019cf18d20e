//! Doubles as text, laid out as Redis lays them out: in scores, in RESP3 and in scripts.

mod grisu;

use grisu::Decimal;

/// Integers up to this size are written in full; beyond it, the layout of other numbers holds.
const INTEGER_MAX: f64 = (1u64 << 62) as f64;
/// Zeros that may stand at the end of a whole number, beyond its significant digits.
const TRAILING_ZEROS_MAX: i32 = 7;
/// Digits after the point from which small numbers take an exponent.
const FRACTION_DIGITS_MAX: i32 = 7;
/// Numbers below 10 to this power keep the point however many digits follow it.
const POINT_EXPONENT_MAX: i32 = 4;

/// Adds the text of `value` to `out`: the digits that read back as the same double, whole numbers
/// without a point, `inf`, `-inf`, `nan`.
pub fn format_f64(value: f64, out: &mut Vec<u8>) {
    let magnitude = value.abs();
    if magnitude > INTEGER_MAX || magnitude.trunc() != magnitude {
        return format_shortest(value, out);
    }
    if value.is_sign_negative() {
        out.push(b'-');
    }
    write_integer(magnitude as u64, out);
}

/// As [`format_f64`], but whole numbers that end with many zeros take an exponent, too: how Redis
/// writes scores into digests.
pub fn format_shortest(value: f64, out: &mut Vec<u8>) {
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
    if magnitude == 0.0 {
        return out.push(b'0');
    }
    lay_out(&Decimal::new(magnitude), out);
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

fn lay_out(decimal: &Decimal, out: &mut Vec<u8>) {
    let digits = decimal.digits();
    let len = digits.len() as i32;
    // The power of ten of the first digit; that of the last says how many follow the point.
    let exponent = decimal.last + len - 1;
    let keeps_point = decimal.last > -FRACTION_DIGITS_MAX || exponent.abs() < POINT_EXPONENT_MAX;
    if decimal.last >= 0 && exponent < len + TRAILING_ZEROS_MAX {
        out.extend_from_slice(digits);
        out.resize(out.len() + decimal.last as usize, b'0');
    } else if decimal.last < 0 && keeps_point {
        lay_out_with_point(digits, exponent, out);
    } else {
        lay_out_with_exponent(digits, exponent, out);
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
mod tests;
