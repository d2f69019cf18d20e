//! Numbers as text and back: `%.14g`, and the forms that the language reads.

/// Digits of a number turned into text without being asked how.
pub const DIGITS: usize = 14;

/// A double without its fraction; what does not fit becomes the least integer, as the processors do
/// on which scripts were written.
pub fn to_integer(number: f64) -> i64 {
    if (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&number) {
        number as i64
    } else {
        i64::MIN
    }
}

/// A place for the text of one number.
#[derive(Debug)]
pub struct TextBuffer {
    bytes: [u8; 32],
    len: usize,
}

impl Default for TextBuffer {
    fn default() -> Self {
        Self::new()
    }
}

impl TextBuffer {
    pub fn new() -> Self {
        TextBuffer { bytes: [0; 32], len: 0 }
    }

    /// As `%.14g`.
    pub fn format(&mut self, number: f64) -> &[u8] {
        self.len = 0;
        if number.abs() < 1e14
            && number == number.trunc()
            && (number != 0.0 || !number.is_sign_negative())
        {
            self.put_whole(number as i64);
        } else {
            let text = format_g(number, DIGITS, false);
            self.put(&text);
        }
        &self.bytes[..self.len]
    }

    fn put(&mut self, text: &[u8]) {
        let len = text.len().min(self.bytes.len());
        self.bytes[..len].copy_from_slice(&text[..len]);
        self.len = len;
    }

    fn put_whole(&mut self, number: i64) {
        let mut buffer = [0; russet_base::num::I64_TEXT_BYTES_MAX];
        let text = russet_base::num::i64_bytes(number, &mut buffer);
        self.bytes[..text.len()].copy_from_slice(text);
        self.len = text.len();
    }
}

/// As C's `%.{precision}g`; `keeps_zeros` is the `#` flag.
pub fn format_g(number: f64, precision: usize, keeps_zeros: bool) -> Vec<u8> {
    if number.is_nan() {
        return if number.is_sign_negative() { b"-nan".to_vec() } else { b"nan".to_vec() };
    }
    if number.is_infinite() {
        return if number < 0.0 { b"-inf".to_vec() } else { b"inf".to_vec() };
    }
    let precision = precision.max(1);
    let scientific = format!("{:.*e}", precision - 1, number);
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if exponent < -4 || exponent >= precision as i32 {
        let mut text = if keeps_zeros { mantissa } else { trim_zeros(mantissa) }.to_owned();
        let sign = if exponent < 0 { '-' } else { '+' };
        text.push_str(&format!("e{sign}{:02}", exponent.abs()));
        return text.into_bytes();
    }
    let decimals = (precision as i32 - 1 - exponent).max(0) as usize;
    let fixed = format!("{number:.decimals$}");
    let text = if keeps_zeros { &fixed } else { trim_zeros(&fixed) };
    text.as_bytes().to_vec()
}

fn trim_zeros(text: &str) -> &str {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text }
}

/// A string as the language reads numbers: decimal or hexadecimal, blanks around.
pub fn parse(text: &[u8]) -> Option<f64> {
    let text = trim_blanks(text);
    let (is_negative, digits) = match text.split_first()? {
        (b'-', rest) => (true, rest),
        (b'+', rest) => (false, rest),
        _ => (false, text),
    };
    let number = match digits {
        [b'0', b'x' | b'X', hex @ ..] => parse_hex(hex)?,
        _ => parse_decimal(digits)?,
    };
    Some(if is_negative { -number } else { number })
}

fn trim_blanks(text: &[u8]) -> &[u8] {
    let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t'..=b'\r');
    let start = text.iter().position(|byte| !is_blank(byte)).unwrap_or(text.len());
    let end = text.iter().rposition(|byte| !is_blank(byte)).map_or(start, |at| at + 1);
    &text[start..end]
}

fn parse_decimal(digits: &[u8]) -> Option<f64> {
    if let Some(special) = special(digits) {
        return Some(special);
    }
    let is_plain =
        |byte: &u8| byte.is_ascii_digit() || matches!(byte, b'.' | b'e' | b'E' | b'+' | b'-');
    let starts_well = digits.first().is_some_and(|byte| byte.is_ascii_digit() || *byte == b'.');
    if !starts_well || !digits.iter().all(is_plain) || !digits.iter().any(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// COMPAT: `strtod` also reads infinities and NaN, and so do scripts through `tonumber`.
fn special(digits: &[u8]) -> Option<f64> {
    if digits.eq_ignore_ascii_case(b"inf") || digits.eq_ignore_ascii_case(b"infinity") {
        return Some(f64::INFINITY);
    }
    digits.eq_ignore_ascii_case(b"nan").then_some(f64::NAN)
}

/// Hexadecimal with fraction and binary exponent, as `strtod` reads it.
fn parse_hex(text: &[u8]) -> Option<f64> {
    let (mut mantissa, mut exponent, mut seen) = (0f64, 0i32, false);
    let mut is_fraction = false;
    let mut rest = text;
    while let Some((&byte, after)) = rest.split_first() {
        if byte == b'.' && !is_fraction {
            is_fraction = true;
        } else if let Some(digit) = char::from(byte).to_digit(16) {
            seen = true;
            mantissa = mantissa * 16.0 + f64::from(digit);
            exponent -= if is_fraction { 4 } else { 0 };
        } else {
            break;
        }
        rest = after;
    }
    if !seen {
        return None;
    }
    if let Some((b'p' | b'P', power)) = rest.split_first() {
        let power: i32 = std::str::from_utf8(power).ok()?.parse().ok()?;
        exponent = exponent.saturating_add(power);
        rest = &[];
    }
    rest.is_empty().then(|| mantissa * 2f64.powi(exponent))
}

/// A whole number in a base from 2 to 36, as `strtoul` reads it, blanks around.
pub fn parse_in_base(text: &[u8], base: u32) -> Option<f64> {
    let text = trim_blanks(text);
    let (is_negative, mut digits) = match text.split_first()? {
        (b'-', rest) => (true, rest),
        (b'+', rest) => (false, rest),
        _ => (false, text),
    };
    if let (16, [b'0', b'x' | b'X', rest @ ..]) = (base, digits) {
        digits = rest;
    }
    if digits.is_empty() {
        return None;
    }
    let mut number = 0u64;
    for &byte in digits {
        let digit = u64::from(char::from(byte).to_digit(base)?);
        let more = number.checked_mul(u64::from(base)).and_then(|n| n.checked_add(digit));
        number = more.unwrap_or(u64::MAX);
    }
    Some(if is_negative { number.wrapping_neg() as f64 } else { number as f64 })
}

#[cfg(test)]
mod tests {
    use super::{TextBuffer, parse};

    fn text(number: f64) -> String {
        String::from_utf8(TextBuffer::new().format(number).to_vec()).unwrap()
    }

    #[test]
    fn fourteen_digits() {
        let cases = [
            (0.0, "0"),
            (-0.0, "-0"),
            (1.0, "1"),
            (-12.5, "-12.5"),
            (0.1, "0.1"),
            (1.0 / 3.0, "0.33333333333333"),
            (1e14, "1e+14"),
            (99_999_999_999_999.0, "99999999999999"),
            (123_456_789_012_345.0, "1.2345678901234e+14"),
            (1e-5, "1e-05"),
            (0.0001, "0.0001"),
            (1e300, "1e+300"),
            (f64::INFINITY, "inf"),
            (f64::NEG_INFINITY, "-inf"),
            (-f64::NAN, "-nan"),
        ];
        for (number, wanted) in cases {
            assert_eq!(text(number), wanted);
        }
    }

    #[test]
    fn forms_that_are_read() {
        let cases: [(&str, Option<f64>); 17] = [
            ("10", Some(10.0)),
            (" 10 ", Some(10.0)),
            ("0x10", Some(16.0)),
            ("-0xfF", Some(-255.0)),
            ("1e2", Some(100.0)),
            (".5", Some(0.5)),
            ("5.", Some(5.0)),
            ("0x.8", Some(0.5)),
            ("0x1p4", Some(16.0)),
            ("", None),
            (" ", None),
            ("1 2", None),
            ("0x", None),
            ("e5", None),
            ("1e", None),
            ("--1", None),
            ("inf", Some(f64::INFINITY)),
        ];
        for (given, wanted) in cases {
            assert_eq!(parse(given.as_bytes()), wanted, "{given:?}");
        }
    }
}
