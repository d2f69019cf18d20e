//! Reading numbers as C's strtod and strtoul do, which is what Lua 5.1 leaves it to: white space,
//! signs, hexadecimal with fractions and exponents, infinities and NaN by name.

use russet_base::num::parse_f64;

/// Reads a whole text as a number, white space at both ends aside.
///
/// COMPAT: the text ends at its first zero byte, as a string of C does.
pub fn parse(text: &[u8]) -> Option<f64> {
    if let Some(value) = parse_digits(text) {
        return Some(value);
    }
    let text = c_text(text);
    let (value, len) = parse_prefix(text)?;
    is_blank(&text[len..]).then_some(value)
}

/// Digits that a double holds whatever they are.
const DIGITS_EXACT_MAX: usize = 15;

/// A text of a few digits and nothing else, which is what most numbers are.
fn parse_digits(text: &[u8]) -> Option<f64> {
    if text.is_empty() || text.len() > DIGITS_EXACT_MAX {
        return None;
    }
    let mut value = 0u64;
    for byte in text {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value * 10 + u64::from(digit);
    }
    Some(value as f64)
}

/// Reads the longest number that the text begins with, white space before it included; gives its
/// length too. Nothing follows from what stands behind it.
pub fn parse_prefix(text: &[u8]) -> Option<(f64, usize)> {
    let blank = text.iter().take_while(|byte| is_space(**byte)).count();
    let (is_negative, signed) = match text.get(blank) {
        Some(b'-') => (true, 1),
        Some(b'+') => (false, 1),
        _ => (false, 0),
    };
    let body = &text[blank + signed..];
    let (magnitude, len) = magnitude(body)?;
    Some((if is_negative { -magnitude } else { magnitude }, blank + signed + len))
}

/// Reads an unsigned integer in a base of 2 to 36, white space at both ends aside. A minus sign
/// gives the two's complement; what exceeds 64 bits gives the greatest.
pub fn parse_radix(text: &[u8], base: u32) -> Option<f64> {
    debug_assert!((2..=36).contains(&base));
    let text = without_blank(c_text(text));
    let (is_negative, body) = match text {
        [b'-', body @ ..] => (true, body),
        [b'+', body @ ..] => (false, body),
        _ => (false, text),
    };
    let is_digit = |byte: &u8| char::from(*byte).is_digit(base);
    let body = match body {
        [b'0', b'x' | b'X', digit, ..] if base == 16 && is_digit(digit) => &body[2..],
        _ => body,
    };
    let len = body.iter().take_while(|byte| is_digit(byte)).count();
    if len == 0 || !is_blank(&body[len..]) {
        return None;
    }
    let mut value = Some(0u64);
    for byte in &body[..len] {
        let digit = char::from(*byte).to_digit(base).map_or(0, u64::from);
        value = value
            .and_then(|value| value.checked_mul(u64::from(base)))
            .and_then(|value| value.checked_add(digit));
    }
    let value = match value {
        Some(value) if is_negative => value.wrapping_neg(),
        Some(value) => value,
        None => u64::MAX,
    };
    Some(value as f64)
}

/// Unlike `trim_ascii_start`, this knows the vertical tab.
fn without_blank(text: &[u8]) -> &[u8] {
    let blank = text.iter().take_while(|byte| is_space(**byte)).count();
    &text[blank..]
}

fn c_text(text: &[u8]) -> &[u8] {
    &text[..memchr::memchr(0, text).unwrap_or(text.len())]
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

fn is_blank(text: &[u8]) -> bool {
    text.iter().all(|byte| is_space(*byte))
}

fn magnitude(body: &[u8]) -> Option<(f64, usize)> {
    match body.first()? {
        b'0'..=b'9' | b'.' => hexadecimal(body).or_else(|| decimal(body)),
        b'i' | b'I' => infinity(body),
        b'n' | b'N' => nan(body),
        _ => None,
    }
}

fn starts_with_name(body: &[u8], name: &[u8]) -> bool {
    body.len() >= name.len() && body[..name.len()].eq_ignore_ascii_case(name)
}

fn infinity(body: &[u8]) -> Option<(f64, usize)> {
    let names: [&[u8]; 2] = [b"infinity", b"inf"];
    let name = names.into_iter().find(|name| starts_with_name(body, name))?;
    Some((f64::INFINITY, name.len()))
}

/// `nan`, and `nan(letters)`, whose letters say nothing.
fn nan(body: &[u8]) -> Option<(f64, usize)> {
    if !starts_with_name(body, b"nan") {
        return None;
    }
    let is_letter = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    if let [b'(', rest @ ..] = &body[3..] {
        let letters = rest.iter().take_while(|byte| is_letter(byte)).count();
        if rest.get(letters) == Some(&b')') {
            return Some((f64::NAN, 3 + letters + 2));
        }
    }
    Some((f64::NAN, 3))
}

/// How many bytes an exponent behind its mark takes; zero if it has no digits.
fn exponent_len(text: &[u8], mark: u8) -> usize {
    if !text.first().is_some_and(|byte| byte.eq_ignore_ascii_case(&mark)) {
        return 0;
    }
    let signed = usize::from(matches!(text.get(1), Some(b'+' | b'-')));
    match text[1 + signed..].iter().take_while(|byte| byte.is_ascii_digit()).count() {
        0 => 0,
        digits => 1 + signed + digits,
    }
}

/// The length of digits with or without a point; none without a digit.
fn digits_len(text: &[u8], is_digit: fn(&u8) -> bool) -> Option<usize> {
    let whole = text.iter().take_while(|byte| is_digit(byte)).count();
    if text.get(whole) != Some(&b'.') {
        return (whole > 0).then_some(whole);
    }
    let fraction = text[whole + 1..].iter().take_while(|byte| is_digit(byte)).count();
    (whole + fraction > 0).then_some(whole + 1 + fraction)
}

fn decimal(body: &[u8]) -> Option<(f64, usize)> {
    let len = digits_len(body, u8::is_ascii_digit)?;
    let len = len + exponent_len(&body[len..], b'e');
    let text = std::str::from_utf8(&body[..len]).ok()?;
    text.parse().ok().map(|value| (value, len))
}

fn hexadecimal(body: &[u8]) -> Option<(f64, usize)> {
    let [b'0', b'x' | b'X', rest @ ..] = body else { return None };
    let digits = digits_len(rest, u8::is_ascii_hexdigit)?;
    let power = exponent_len(&rest[digits..], b'p');
    let len = 2 + digits + power;
    // The reader of arguments refuses what no double holds; here that is infinity or zero.
    let beyond = || if is_above_one(rest, digits, power) { f64::INFINITY } else { 0.0 };
    Some((parse_f64(&body[..len]).unwrap_or_else(beyond), len))
}

/// Whether a number too great or too small for a double is too great.
fn is_above_one(rest: &[u8], digits: usize, power: usize) -> bool {
    let is_zero = |byte: &&u8| **byte == b'0';
    let whole = rest[..digits].iter().take_while(|byte| **byte != b'.').count();
    let leading = rest[..whole].iter().take_while(is_zero).count();
    // The place of the first digit that counts, in binary digits from the point.
    let mut exponent = 4 * (whole - leading) as i64;
    if leading == whole && whole < digits {
        exponent = -4 * rest[whole + 1..digits].iter().take_while(is_zero).count() as i64;
    }
    if power > 0 {
        let text = &rest[digits + 1..digits + power];
        let size = text.iter().filter(|byte| byte.is_ascii_digit());
        let size = size.fold(0i64, |sum, digit| {
            sum.saturating_mul(10).saturating_add(i64::from(digit - b'0'))
        });
        exponent = exponent.saturating_add(if text[0] == b'-' { -size } else { size });
    }
    exponent > 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_a_number() {
        let inf = f64::INFINITY;
        let cases: &[(&[u8], f64)] = &[
            (b"10", 10.0),
            (b" 10 ", 10.0),
            (b"\x0b1\x0c\r\n", 1.0),
            (b"0x10", 16.0),
            (b"0X1P4", 16.0),
            (b"0x.8", 0.5),
            (b"-0x1.8p1", -3.0),
            (b"1e3", 1000.0),
            (b"1E-3", 0.001),
            (b"+5.", 5.0),
            (b".5", 0.5),
            (b"1e400", inf),
            (b"-1e400", -inf),
            (b"1e-400", 0.0),
            (b"0x1p5000", inf),
            (b"0x1p-5000", 0.0),
            (b"0x.0001p5000", inf),
            (b"0x1p99999999999999999999", inf),
            (b"0x1p-99999999999999999999", 0.0),
            (b"inf", inf),
            (b"-Infinity", -inf),
            (b"1\0x", 1.0),
        ];
        for (text, value) in cases {
            assert_eq!(parse(text), Some(*value), "{}", text.escape_ascii());
        }
        for text in ["nan", "NaN", "nan(12)", "nan()"] {
            assert!(parse(text.as_bytes()).unwrap().is_nan(), "{text}");
        }
    }

    #[test]
    fn what_is_no_number() {
        let texts = ["", " ", "-", "+", ".", "e5", "1e", "1e+", "0x", "0xg", "0x1p", "1 2", "- 1"];
        for text in texts.iter().chain(&["0x-1", "infinit", "1a", "--1", "nan(", "1..", "0x.p1"]) {
            assert_eq!(parse(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn prefixes() {
        assert_eq!(parse_prefix(b"1e,"), Some((1.0, 1)));
        assert_eq!(parse_prefix(b"-12]"), Some((-12.0, 3)));
        assert_eq!(parse_prefix(b"0x"), Some((0.0, 1)));
        assert_eq!(parse_prefix(b"-"), None);
    }

    #[test]
    fn other_bases() {
        assert_eq!(parse_radix(b"10", 2), Some(2.0));
        assert_eq!(parse_radix(b" zz ", 36), Some(1295.0));
        assert_eq!(parse_radix(b"-10", 16), Some(18446744073709551600.0));
        assert_eq!(parse_radix(b"0x10", 16), Some(16.0));
        assert_eq!(parse_radix(b"-ffffffffffffffffff", 16), Some(u64::MAX as f64));
        for text in ["", "12", "0x10", "- 1", "1 1"] {
            assert_eq!(parse_radix(text.as_bytes(), 2), None, "{text}");
        }
        assert_eq!(parse_radix(b"0x", 16), None);
    }
}
