//! Integers as decimal digits, fast: every reply and every header holds some.

use russet_base::num::DIGIT_PAIRS;

/// Room for a kind, a sign and the twenty digits of `u64::MAX`, then a line end.
const DIGITS_END: usize = 22;
const LINE_END: usize = DIGITS_END + 2;

/// Digits laid out from the end of a small buffer, with the line end already behind them, so that a
/// line goes out in one copy.
pub(crate) struct Digits {
    bytes: [u8; LINE_END],
    start: usize,
}

impl Digits {
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes[self.start..DIGITS_END]
    }

    fn put(&mut self, byte: u8) {
        self.start -= 1;
        self.bytes[self.start] = byte;
    }

    #[inline]
    fn unsigned(value: u64) -> Digits {
        let mut digits = Digits { bytes: *b"0000000000000000000000\r\n", start: DIGITS_END };
        let mut rest = value;
        while rest >= 100 {
            let [tens, ones] = DIGIT_PAIRS[(rest % 100) as usize];
            rest /= 100;
            digits.put(ones);
            digits.put(tens);
        }
        if rest >= 10 {
            let [tens, ones] = DIGIT_PAIRS[rest as usize];
            digits.put(ones);
            digits.put(tens);
        } else {
            digits.put(b'0' + rest as u8);
        }
        digits
    }

    #[inline]
    pub(crate) fn signed(value: i64) -> Digits {
        let mut digits = Digits::unsigned(value.unsigned_abs());
        if value < 0 {
            digits.put(b'-');
        }
        digits
    }

    fn write_line(mut self, kind: u8, out: &mut Vec<u8>) {
        self.put(kind);
        out.extend_from_slice(&self.bytes[self.start..]);
    }
}

/// `kind`, the digits of `value`, and a line end.
#[inline]
pub(crate) fn integer_line(out: &mut Vec<u8>, kind: u8, value: i64) {
    match usize::try_from(value) {
        Ok(value) => header(out, kind, value),
        Err(_) => Digits::signed(value).write_line(kind, out),
    }
}

/// A header line: nearly all lengths are below a hundred and go out in one copy of fixed size.
#[inline(always)]
pub(crate) fn header(out: &mut Vec<u8>, kind: u8, len: usize) {
    match DIGIT_PAIRS.get(len) {
        Some([_, ones]) if len < 10 => out.extend_from_slice(&[kind, *ones, b'\r', b'\n']),
        Some([tens, ones]) => out.extend_from_slice(&[kind, *tens, *ones, b'\r', b'\n']),
        None => long_header(out, kind, len),
    }
}

/// Apart, since [`header`] is inlined into every reply.
#[inline(never)]
fn long_header(out: &mut Vec<u8>, kind: u8, len: usize) {
    Digits::unsigned(len as u64).write_line(kind, out);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_those_of_the_standard_library() {
        let mut values = vec![0, 9, 10, 99, 100, 999, 1000, i64::MAX, i64::MIN, i64::MIN + 1];
        values.extend((0..63).flat_map(|bit| [1i64 << bit, (1 << bit) - 1, -(1 << bit)]));
        for value in values {
            assert_eq!(Digits::signed(value).as_bytes(), value.to_string().as_bytes());
            let mut line = Vec::new();
            integer_line(&mut line, b':', value);
            assert_eq!(line, format!(":{value}\r\n").into_bytes());
        }
        assert_eq!(Digits::unsigned(u64::MAX).as_bytes(), u64::MAX.to_string().as_bytes());
    }
}
