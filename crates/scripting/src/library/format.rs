//! The directives of `string.format`: reading one, and laying out one value by it as C's printf
//! does. Walking the format and taking the arguments is the string library's.

use super::number::{Layout, Notation, append_magnitude};
use russet_base::num::{I64_TEXT_BYTES_MAX, u64_bytes};

/// More flags than there are kinds of flags are repeated flags.
const FLAGS_MAX: usize = 5;
/// Digits that a width or a precision may have.
const WIDTH_DIGITS_MAX: usize = 2;
/// The greatest number of two digits.
const PRECISION_MAX: usize = 99;
/// Digits of 64 bits, three at a time.
const OCTAL_DIGITS_MAX: usize = 22;
/// Digits behind the point where the format names none.
const PRECISION_DEFAULT: usize = 6;
/// A text of this length without a precision is taken as it is.
const TEXT_BYTES_WHOLE: usize = 100;

/// What stands between `%` and the letter.
#[derive(Clone, Copy, Debug, Default)]
pub struct Spec {
    is_left: bool,
    has_plus: bool,
    has_space: bool,
    is_alternate: bool,
    has_zeros: bool,
    width: usize,
    precision: Option<usize>,
}

impl Spec {
    /// Reads what follows a `%`; gives the number of bytes before the letter too.
    pub fn scan(text: &[u8]) -> Result<(Spec, usize), &'static str> {
        let mut spec = Spec::default();
        let flags = text.iter().take_while(|byte| b"-+ #0".contains(byte)).count();
        if flags > FLAGS_MAX {
            return Err("invalid format (repeated flags)");
        }
        for flag in &text[..flags] {
            match flag {
                b'-' => spec.is_left = true,
                b'+' => spec.has_plus = true,
                b' ' => spec.has_space = true,
                b'#' => spec.is_alternate = true,
                _ => spec.has_zeros = true,
            }
        }
        let (width, len) = scan_digits(&text[flags..]);
        spec.width = width;
        let mut at = flags + len;
        if text.get(at) == Some(&b'.') {
            let (precision, len) = scan_digits(&text[at + 1..]);
            spec.precision = Some(precision);
            at += 1 + len;
        }
        if text.get(at).is_some_and(u8::is_ascii_digit) {
            return Err("invalid format (width or precision too long)");
        }
        Ok((spec, at))
    }

    /// `%d`, `%i`
    pub fn append_signed(&self, value: i64, out: &mut Vec<u8>) {
        let mut buffer = [0; I64_TEXT_BYTES_MAX];
        let digits = match value {
            0 if self.precision == Some(0) => &[],
            _ => u64_bytes(value.unsigned_abs(), &mut buffer),
        };
        self.append_digits(self.sign(value < 0), digits, out);
    }

    /// `%u`, `%o`, `%x`, `%X`
    pub fn append_unsigned(&self, value: u64, letter: u8, out: &mut Vec<u8>) {
        let mut buffer = [0; OCTAL_DIGITS_MAX + 1];
        let mut start = buffer.len();
        let mut rest = value;
        let base = match letter {
            b'o' => 8,
            b'x' | b'X' => 16,
            _ => 10,
        };
        while rest > 0 || (start == buffer.len() && self.precision != Some(0)) {
            start -= 1;
            let digit = char::from_digit((rest % base) as u32, base as u32).unwrap_or('0');
            buffer[start] = if letter == b'X' { digit.to_ascii_uppercase() } else { digit } as u8;
            rest /= base;
        }
        let mut prefix: &[u8] = b"";
        if self.is_alternate && letter == b'o' {
            let len = buffer.len() - start;
            let is_padded = self.precision.is_some_and(|precision| precision > len);
            if !is_padded && buffer.get(start) != Some(&b'0') {
                start -= 1;
                buffer[start] = b'0';
            }
        } else if self.is_alternate && value != 0 {
            match letter {
                b'x' => prefix = b"0x",
                b'X' => prefix = b"0X",
                _ => {}
            }
        }
        self.append_digits(prefix, &buffer[start..], out);
    }

    /// `%e`, `%E`, `%f`, `%g`, `%G`
    pub fn append_double(&self, value: f64, letter: u8, out: &mut Vec<u8>) {
        let layout = Layout {
            notation: match letter.to_ascii_lowercase() {
                b'e' => Notation::Exponent,
                b'f' => Notation::Fixed,
                _ => Notation::General,
            },
            precision: self.precision.unwrap_or(PRECISION_DEFAULT),
            keeps_point: self.is_alternate,
            is_upper: letter.is_ascii_uppercase(),
        };
        let sign = self.sign(value.is_sign_negative());
        if self.width == 0 {
            out.extend_from_slice(sign);
            return append_magnitude(value.abs(), layout, out);
        }
        let mut body = Vec::new();
        append_magnitude(value.abs(), layout, &mut body);
        let has_zeros = self.has_zeros && value.is_finite();
        self.append_padded(sign, &body, has_zeros, out);
    }

    /// `%c`
    ///
    /// COMPAT: what is laid out ends at its first zero byte, and so at a zero character.
    pub fn append_char(&self, byte: u8, out: &mut Vec<u8>) {
        let start = out.len();
        self.append_padded(b"", &[byte], false, out);
        if let Some(len) = memchr::memchr(0, &out[start..]) {
            out.truncate(start + len);
        }
    }

    /// `%s`
    ///
    /// COMPAT: a long text without a precision is taken whole; any other ends at a zero byte.
    pub fn append_text(&self, text: &[u8], out: &mut Vec<u8>) {
        if self.precision.is_none() && text.len() >= TEXT_BYTES_WHOLE {
            return out.extend_from_slice(text);
        }
        let len = memchr::memchr(0, text).unwrap_or(text.len());
        let len = self.precision.map_or(len, |precision| len.min(precision));
        self.append_padded(b"", &text[..len], false, out);
    }

    fn sign(&self, is_negative: bool) -> &'static [u8] {
        match (is_negative, self.has_plus, self.has_space) {
            (true, _, _) => b"-",
            (false, true, _) => b"+",
            (false, false, true) => b" ",
            (false, false, false) => b"",
        }
    }

    /// The digits of an integer, to which a precision adds zeros and takes the flag `0` from.
    fn append_digits(&self, prefix: &[u8], digits: &[u8], out: &mut Vec<u8>) {
        let Some(precision) = self.precision.filter(|precision| *precision > digits.len()) else {
            let has_zeros = self.has_zeros && self.precision.is_none();
            return self.append_padded(prefix, digits, has_zeros, out);
        };
        let mut longer = [b'0'; PRECISION_MAX];
        longer[precision - digits.len()..precision].copy_from_slice(digits);
        self.append_padded(prefix, &longer[..precision], false, out);
    }

    fn append_padded(&self, prefix: &[u8], body: &[u8], has_zeros: bool, out: &mut Vec<u8>) {
        let missing = self.width.saturating_sub(prefix.len() + body.len());
        let fill = |out: &mut Vec<u8>, byte| out.resize(out.len() + missing, byte);
        if !self.is_left && !has_zeros {
            fill(out, b' ');
        }
        out.extend_from_slice(prefix);
        if !self.is_left && has_zeros {
            fill(out, b'0');
        }
        out.extend_from_slice(body);
        if self.is_left {
            fill(out, b' ');
        }
    }
}

/// A number of at most two digits, and how many it has.
fn scan_digits(text: &[u8]) -> (usize, usize) {
    let digits = text.iter().take(WIDTH_DIGITS_MAX).take_while(|byte| byte.is_ascii_digit());
    digits.fold((0, 0), |(value, len), digit| (value * 10 + usize::from(digit - b'0'), len + 1))
}

/// `%q`: the text as Lua would read it back.
pub fn append_quoted(text: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    for &byte in text {
        match byte {
            b'"' | b'\\' | b'\n' => out.extend_from_slice(&[b'\\', byte]),
            b'\r' => out.extend_from_slice(b"\\r"),
            0 => out.extend_from_slice(b"\\000"),
            _ => out.push(byte),
        }
    }
    out.push(b'"');
}

/// A number as C's conversion to `long` gives it: what no `long` holds is the least.
pub fn to_signed(value: f64) -> i64 {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    if (-LIMIT..LIMIT).contains(&value) { value as i64 } else { i64::MIN }
}

/// A number as C's conversion to `unsigned long` gives it on x86-64: negative numbers wrap.
pub fn to_unsigned(value: f64) -> u64 {
    const HALF: f64 = 9_223_372_036_854_775_808.0;
    if value >= HALF {
        return to_signed(value - HALF) as u64 ^ (1 << 63);
    }
    to_signed(value) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    enum Value<'a> {
        Signed(i64),
        Unsigned(u64),
        Double(f64),
        Char(u8),
        Text(&'a str),
    }

    use Value::{Char, Double, Signed, Text, Unsigned};

    fn laid_out(directive: &str, value: &Value) -> String {
        let (spec, len) = Spec::scan(directive.as_bytes()).unwrap();
        let letter = directive.as_bytes()[len];
        let mut out = Vec::new();
        match *value {
            Signed(value) => spec.append_signed(value, &mut out),
            Unsigned(value) => spec.append_unsigned(value, letter, &mut out),
            Double(value) => spec.append_double(value, letter, &mut out),
            Char(byte) => spec.append_char(byte, &mut out),
            Text(text) => spec.append_text(text.as_bytes(), &mut out),
        }
        String::from_utf8(out).unwrap()
    }

    /// Recorded from a real server.
    #[test]
    fn flags_width_and_precision() {
        let cases = [
            ("05s", Text("ab"), "   ab"),
            ("-05s", Text("ab"), "ab   "),
            ("5.1s", Text("ab"), "    a"),
            (".s", Text("abc"), ""),
            (".3s", Text("a\0bcd"), "a"),
            ("05c", Char(65), "    A"),
            ("5c", Char(0), "    "),
            ("-5c", Char(0), ""),
            (" d", Signed(5), " 5"),
            ("+ d", Signed(5), "+5"),
            ("05d", Signed(-5), "-0005"),
            ("-05d", Signed(-5), "-5   "),
            ("05.3d", Signed(7), "  007"),
            (".0d", Signed(0), ""),
            ("+.0d", Signed(0), "+"),
            ("#x", Unsigned(0), "0"),
            ("#010x", Unsigned(255), "0x000000ff"),
            ("#X", Unsigned(255), "0XFF"),
            ("#o", Unsigned(8), "010"),
            ("#.3o", Unsigned(8), "010"),
            ("#.0o", Unsigned(0), "0"),
            ("#.0x", Unsigned(0), ""),
            ("+u", Unsigned(5), "5"),
            ("05f", Double(f64::INFINITY), "  inf"),
            ("E", Double(f64::INFINITY), "INF"),
            ("010g", Double(-1.5), "-0000001.5"),
            ("-10g", Double(-1.5), "-1.5      "),
            ("#.3g", Double(1.0), "1.00"),
            ("+g", Double(1.0), "+1"),
        ];
        for (directive, value, text) in cases {
            assert_eq!(laid_out(directive, &value), text, "%{directive}");
        }
    }

    #[test]
    fn what_is_refused() {
        assert!(Spec::scan(b"-+ #0d").is_ok());
        assert_eq!(Spec::scan(b"-+ #00d").err(), Some("invalid format (repeated flags)"));
        let too_long = Some("invalid format (width or precision too long)");
        assert_eq!(Spec::scan(b"100d").err(), too_long);
        assert_eq!(Spec::scan(b"1.100d").err(), too_long);
        assert_eq!(Spec::scan(b"").map(|(_, len)| len), Ok(0));
    }

    #[test]
    fn numbers_become_integers_as_in_c() {
        assert_eq!(to_signed(-1.9), -1);
        assert_eq!(to_signed(f64::NAN), i64::MIN);
        assert_eq!(to_signed(1e19), i64::MIN);
        assert_eq!(to_unsigned(-1.0), u64::MAX);
        assert_eq!(to_unsigned(1e19), 10_000_000_000_000_000_000);
        assert_eq!(to_unsigned(2e19), 0);
        assert_eq!(to_unsigned(-1e19), 1 << 63);
        assert_eq!(to_unsigned(f64::NAN), 1 << 63);
    }
}
