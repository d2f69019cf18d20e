//! Numbers as text and back: `%.14g`, and the forms that the language reads. How digits are laid
//! out and read is in `library::number`.

pub use crate::library::number::{parse, parse_radix as parse_in_base};

use crate::library::number::append_number;

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
            let mut text = Vec::with_capacity(self.bytes.len());
            append_number(number, &mut text);
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
