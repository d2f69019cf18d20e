//! Numbers as text in Lua: what `tostring`, `..` and `string.format` write, and what `tonumber`
//! and arithmetic on strings read. Written digits are exact at any precision, rounded half to
//! even, as C's printf writes them.

mod read;

pub use read::{parse, parse_prefix, parse_radix};

use russet_base::num::write_i64;
use std::fmt::Write;

/// Significant digits of `tostring` and of `..`.
pub const TOSTRING_DIGITS: usize = 14;
/// Whole numbers below this print in full with `TOSTRING_DIGITS`.
const WHOLE_MAX: f64 = 1e14;

/// The layouts of C's printf for a double.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notation {
    /// `%e`
    Exponent,
    /// `%f`
    Fixed,
    /// `%g`
    General,
}

/// How a double is laid out; sign, width and padding are the caller's.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    pub notation: Notation,
    pub precision: usize,
    /// Keeps the point, and in `%g` the trailing zeros (the flag `#`).
    pub keeps_point: bool,
    pub is_upper: bool,
}

/// Adds `value` as `tostring` writes it.
pub fn append_number(value: f64, out: &mut Vec<u8>) {
    append_general(value, TOSTRING_DIGITS, out);
}

/// Adds `value` as `%.*g` writes it.
pub fn append_general(value: f64, digits: usize, out: &mut Vec<u8>) {
    if digits >= TOSTRING_DIGITS && value.abs() < WHOLE_MAX && value.trunc() == value {
        if value == 0.0 && value.is_sign_negative() {
            out.push(b'-');
        }
        return write_i64(out, value as i64);
    }
    if value.is_sign_negative() {
        out.push(b'-');
    }
    let layout = Layout {
        notation: Notation::General,
        precision: digits,
        keeps_point: false,
        is_upper: false,
    };
    append_magnitude(value.abs(), layout, out);
}

/// Adds the text of a value without a sign bit.
pub fn append_magnitude(magnitude: f64, layout: Layout, out: &mut Vec<u8>) {
    debug_assert!(magnitude.is_sign_positive());
    let start = out.len();
    if is_plain_integer(magnitude, layout) {
        write_i64(out, magnitude as i64);
    } else if magnitude.is_nan() {
        out.extend_from_slice(b"nan");
    } else if magnitude.is_infinite() {
        out.extend_from_slice(b"inf");
    } else {
        match layout.notation {
            Notation::Exponent => append_exponent(magnitude, layout, out),
            Notation::Fixed => append_fixed(magnitude, layout, out),
            Notation::General => append_shorter(magnitude, layout, out),
        }
    }
    if layout.is_upper {
        out[start..].make_ascii_uppercase();
    }
}

/// Whether a value is laid out as the digits of an integer and nothing else.
fn is_plain_integer(magnitude: f64, layout: Layout) -> bool {
    if magnitude >= INTEGER_MAX || magnitude.trunc() != magnitude || layout.keeps_point {
        return false;
    }
    match layout.notation {
        Notation::Exponent => false,
        Notation::Fixed => layout.precision == 0,
        // As many digits as all of these have.
        Notation::General => layout.precision >= INTEGER_DIGITS_MAX,
    }
}

/// Integers below this have all their digits in a double.
const INTEGER_MAX: f64 = 9_007_199_254_740_992.0;
const INTEGER_DIGITS_MAX: usize = 16;

/// Lets the formatter of the standard library write into a buffer of bytes.
struct Bytes<'a>(&'a mut Vec<u8>);

impl Write for Bytes<'_> {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.0.extend_from_slice(text.as_bytes());
        Ok(())
    }
}

const WRITES_TO_MEMORY: &str = "writing to memory does not fail";

fn append_fixed(magnitude: f64, layout: Layout, out: &mut Vec<u8>) {
    write!(Bytes(out), "{magnitude:.*}", layout.precision).expect(WRITES_TO_MEMORY);
    if layout.precision == 0 && layout.keeps_point {
        out.push(b'.');
    }
}

fn append_exponent(magnitude: f64, layout: Layout, out: &mut Vec<u8>) {
    let exponent = append_mantissa(magnitude, layout.precision, out);
    if layout.precision == 0 && layout.keeps_point {
        out.push(b'.');
    }
    append_power(exponent, out);
}

/// Adds `d.ddd` with so many digits behind the point; gives the exponent of ten that belongs to it.
fn append_mantissa(magnitude: f64, precision: usize, out: &mut Vec<u8>) -> i32 {
    let start = out.len();
    write!(Bytes(out), "{magnitude:.precision$e}").expect(WRITES_TO_MEMORY);
    cut_power(start, out)
}

/// Takes the exponent from a text in exponent form that begins at `start`.
fn cut_power(start: usize, out: &mut Vec<u8>) -> i32 {
    let digits = out[start..].iter().rposition(|byte| *byte == b'e');
    let mark = start + digits.expect("the exponent form always has its mark");
    let is_negative = out[mark + 1] == b'-';
    let power = out[mark + 1..]
        .iter()
        .filter(|byte| byte.is_ascii_digit())
        .fold(0, |sum, digit| sum * 10 + i32::from(digit - b'0'));
    out.truncate(mark);
    if is_negative { -power } else { power }
}

/// Adds `e+dd`, at least two digits.
fn append_power(exponent: i32, out: &mut Vec<u8>) {
    out.extend_from_slice(if exponent < 0 { b"e-" } else { b"e+" });
    let power = exponent.unsigned_abs();
    if power < 10 {
        out.push(b'0');
    }
    write_i64(out, i64::from(power));
}

/// Most digits at which no two numbers that are so short are one double.
const DISTINCT_DIGITS_MAX: usize = 15;
/// Below this, doubles lie so far apart that the above does not hold.
const DISTINCT_MIN: f64 = 1e-300;

/// Adds `d.ddd` with `precision` digits, or fewer if the others are zeros; gives the exponent of
/// ten.
///
/// The shortest text that stands for the double is the exact one, rounded, if it is short enough:
/// of the numbers with so few digits only one is this double. It is much faster to find.
fn append_significant(magnitude: f64, precision: usize, out: &mut Vec<u8>) -> i32 {
    let start = out.len();
    if precision <= DISTINCT_DIGITS_MAX && magnitude >= DISTINCT_MIN {
        write!(Bytes(out), "{magnitude:e}").expect(WRITES_TO_MEMORY);
        let exponent = cut_power(start, out);
        // All but the point are digits.
        if out.len() - start <= precision + 1 {
            return exponent;
        }
        out.truncate(start);
    }
    append_mantissa(magnitude, precision - 1, out)
}

/// `%g`: the fixed form where the exponent is at least -4 and below the precision.
fn append_shorter(magnitude: f64, layout: Layout, out: &mut Vec<u8>) {
    let precision = layout.precision.max(1);
    let start = out.len();
    let exponent = if layout.keeps_point {
        append_mantissa(magnitude, precision - 1, out)
    } else {
        append_significant(magnitude, precision, out)
    };
    let is_fixed = exponent >= -4 && exponent < precision as i32;
    if is_fixed {
        move_point(exponent, start, out);
    }
    let has_point = out[start..].contains(&b'.');
    if layout.keeps_point && !has_point {
        out.push(b'.');
    }
    if !layout.keeps_point && has_point {
        while out.last() == Some(&b'0') {
            out.pop();
        }
        if out.last() == Some(&b'.') {
            out.pop();
        }
    }
    if !is_fixed {
        append_power(exponent, out);
    }
}

/// Turns the `d.ddd` that begins at `start` into the fixed form of that times ten to `exponent`.
fn move_point(exponent: i32, start: usize, out: &mut Vec<u8>) {
    if out.len() > start + 1 {
        out.remove(start + 1);
    }
    if exponent < 0 {
        let zeros = exponent.unsigned_abs() as usize - 1;
        let front = b"0.000".iter().copied().take(2 + zeros);
        out.splice(start..start, front);
    } else {
        let point = start + exponent as usize + 1;
        if point < out.len() {
            out.insert(point, b'.');
        } else {
            out.resize(point, b'0');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn general(value: f64, digits: usize) -> String {
        let mut out = Vec::new();
        append_general(value, digits, &mut out);
        String::from_utf8(out).unwrap()
    }

    fn laid_out(value: f64, notation: Notation, precision: usize, keeps_point: bool) -> String {
        let mut out = Vec::new();
        let layout = Layout { notation, precision, keeps_point, is_upper: false };
        append_magnitude(value, layout, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn tostring_has_fourteen_digits() {
        let cases = [
            (0.1, "0.1"),
            (3.0, "3"),
            (-0.0, "-0"),
            (1e15, "1e+15"),
            (1e14, "1e+14"),
            (123456789012345.0, "1.2345678901234e+14"),
            (99999999999999.0, "99999999999999"),
            (99999999999999.5, "1e+14"),
            (1.0 / 3.0, "0.33333333333333"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (1e100, "1e+100"),
            (5e-324, "4.9406564584125e-324"),
            (f64::MAX, "1.7976931348623e+308"),
            (f64::INFINITY, "inf"),
            (f64::NEG_INFINITY, "-inf"),
            (-2.5, "-2.5"),
            (std::f64::consts::PI, "3.1415926535898"),
        ];
        for (value, text) in cases {
            assert_eq!(general(value, 14), text);
        }
        assert_eq!(general(f64::NAN.copysign(-1.0), 14), "-nan");
    }

    #[test]
    fn ties_go_to_even() {
        for (value, text) in [(0.5, "0"), (1.5, "2"), (2.5, "2"), (3.5, "4")] {
            assert_eq!(laid_out(value, Notation::Fixed, 0, false), text);
        }
        assert_eq!(laid_out(0.125, Notation::Fixed, 2, false), "0.12");
        assert_eq!(laid_out(0.375, Notation::Fixed, 2, false), "0.38");
        assert_eq!(laid_out(2.5, Notation::Exponent, 0, false), "2e+00");
        assert_eq!(laid_out(0.5, Notation::Fixed, 0, true), "0.");
        assert_eq!(general(2.5, 1), "2");
        assert_eq!(general(12345.0, 3), "1.23e+04");
    }

    #[test]
    fn the_point_may_stay() {
        assert_eq!(laid_out(1.0, Notation::General, 6, true), "1.00000");
        assert_eq!(laid_out(1e6, Notation::General, 6, true), "1.00000e+06");
        assert_eq!(laid_out(1.0, Notation::General, 1, true), "1.");
        assert_eq!(laid_out(1e-5, Notation::General, 0, true), "1.e-05");
        assert_eq!(laid_out(0.0, Notation::General, 6, true), "0.00000");
        assert_eq!(laid_out(1.0, Notation::Exponent, 0, true), "1.e+00");
    }

    const FIXED: Layout =
        Layout { notation: Notation::Fixed, precision: 0, keeps_point: false, is_upper: false };

    #[test]
    fn digits_are_exact_at_any_precision() {
        let tenth = "0.1000000000000000055511151231257827021181583404541015625";
        assert_eq!(laid_out(0.1, Notation::Fixed, 55, false), tenth);
        let padded = laid_out(0.1, Notation::Fixed, 99, false);
        assert!(padded.starts_with(tenth) && padded.len() == 101);
        assert_eq!(laid_out(1e308, Notation::Fixed, 99, false).len(), 309 + 1 + 99);
        assert_eq!(general(0.1, 17), "0.10000000000000001");
        for value in [0.0, 1.0, 1_735_689_600_000_000.0, 9_007_199_254_740_991.0, 1e17, 1e18] {
            let slowly = {
                let mut out = Vec::new();
                append_fixed(value, FIXED, &mut out);
                String::from_utf8(out).unwrap()
            };
            assert_eq!(laid_out(value, Notation::Fixed, 0, false), slowly);
            let is_short = value < 1e17;
            assert_eq!(laid_out(value, Notation::General, 17, false) == slowly, is_short);
        }
        assert_eq!(laid_out(1e15, Notation::General, 15, false), "1e+15");
        assert_eq!(laid_out(1e15, Notation::General, 16, false), "1000000000000000");
        assert_eq!(laid_out(7.0, Notation::General, 17, true), "7.0000000000000000");
    }
}
