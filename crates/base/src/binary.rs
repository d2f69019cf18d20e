//! Binary numbers before they are rounded to a floating-point format, and C's hexadecimal
//! notation (`0x1.8p3`), which gives such numbers directly.

/// A floating-point format. The exponents are those of the last bit of the mantissa.
pub(crate) struct Format {
    pub precision_bits: i64,
    pub exponent_min: i64,
    pub exponent_max: i64,
}

/// The 80-bit extended format of the x87.
pub(crate) const EXTENDED: Format =
    Format { precision_bits: 64, exponent_min: -16445, exponent_max: 16320 };
pub(crate) const DOUBLE: Format =
    Format { precision_bits: 53, exponent_min: -1074, exponent_max: 971 };

/// `magnitude * 2^exponent`, and a little more (less than one unit) if `has_more`. Where it has
/// more, the magnitude has more bits than any format keeps.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unrounded {
    pub magnitude: u128,
    pub exponent: i64,
    pub has_more: bool,
}

/// What rounding to nearest, ties to even, leaves. A finite mantissa fills the precision of its
/// format unless the exponent is the least.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rounded {
    Zero,
    Finite { mantissa: u64, exponent: i32 },
    Overflow,
}

impl Unrounded {
    pub fn round(self, format: &Format) -> Rounded {
        let bits = i64::from(u128::BITS - self.magnitude.leading_zeros());
        let dropped = (bits - format.precision_bits).max(format.exponent_min - self.exponent);
        if self.magnitude == 0 || dropped > bits {
            return Rounded::Zero; // below half of the least number
        }
        let mut exponent = self.exponent + dropped;
        let mut mantissa = if dropped <= 0 {
            self.magnitude << dropped.unsigned_abs()
        } else {
            self.rounded_shift(dropped.unsigned_abs() as u32)
        };
        if mantissa >> format.precision_bits != 0 {
            mantissa >>= 1; // all ones were rounded up: the bit lost is zero
            exponent += 1;
        }
        match (u64::try_from(mantissa), i32::try_from(exponent)) {
            (Ok(0), _) => Rounded::Zero,
            (Ok(mantissa), Ok(exponent)) if i64::from(exponent) <= format.exponent_max => {
                Rounded::Finite { mantissa, exponent }
            }
            _ => Rounded::Overflow,
        }
    }

    /// The magnitude without its last `dropped` bits (1 to 128), rounded.
    fn rounded_shift(self, dropped: u32) -> u128 {
        let kept = self.magnitude.checked_shr(dropped).unwrap_or(0);
        let half = 1u128 << (dropped - 1);
        let lost = self.magnitude & (half | (half - 1));
        let is_up = lost > half || (lost == half && (self.has_more || kept & 1 == 1));
        kept + u128::from(is_up)
    }
}

/// Reads what follows the sign of a hexadecimal number: `0x`, digits with or without a point, and
/// perhaps a decimal exponent of two behind `p`.
pub(crate) fn parse_hex(text: &[u8]) -> Option<Unrounded> {
    let [b'0', b'x' | b'X', text @ ..] = text else { return None };
    let (digits, exponent) = match text.iter().position(|byte| matches!(byte, b'p' | b'P')) {
        Some(at) => (&text[..at], parse_exponent(&text[at + 1..])?),
        None => (text, 0),
    };
    let mut number = Unrounded { magnitude: 0, exponent, has_more: false };
    let mut has_digits = false;
    let mut has_point = false;
    for &byte in digits {
        if byte == b'.' && !has_point {
            has_point = true;
            continue;
        }
        let digit = char::from(byte).to_digit(16)?;
        has_digits = true;
        if number.magnitude >> (u128::BITS - 4) == 0 {
            number.magnitude = number.magnitude << 4 | u128::from(digit);
            number.exponent -= if has_point { 4 } else { 0 };
        } else {
            number.has_more |= digit != 0;
            number.exponent += if has_point { 0 } else { 4 };
        }
    }
    has_digits.then_some(number)
}

/// An exponent with an optional sign. Beyond a bound that no text can bring back into any
/// format's range, only its sign matters.
pub(crate) fn parse_exponent(text: &[u8]) -> Option<i64> {
    const BOUND: i64 = 1 << 40;
    let (is_negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        _ => (false, text),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let magnitude =
        digits.iter().fold(0i64, |sum, digit| (sum * 10 + i64::from(digit - b'0')).min(BOUND));
    Some(if is_negative { -magnitude } else { magnitude })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(magnitude: u128, exponent: i64, has_more: bool) -> Rounded {
        Unrounded { magnitude, exponent, has_more }.round(&EXTENDED)
    }

    #[test]
    fn ties_go_to_even_unless_there_is_more() {
        let one = 1u128 << 63;
        let finite = |mantissa, exponent| Rounded::Finite { mantissa, exponent };
        assert_eq!(round(one * 2 + 1, -64, false), finite(1 << 63, -63));
        assert_eq!(round(one * 2 + 1, -64, true), finite((1 << 63) + 1, -63));
        assert_eq!(round(one * 2 + 3, -64, false), finite((1 << 63) + 2, -63));
        assert_eq!(round((one * 2 - 1) * 2 + 1, -64, false), finite(1 << 63, -62));
        assert_eq!(round(u128::MAX, 0, true), finite(1 << 63, 65));
        assert_eq!(round(1, 0, false), finite(1 << 63, -63));
    }

    #[test]
    fn the_ends_of_the_range() {
        let finite = |mantissa, exponent| Rounded::Finite { mantissa, exponent };
        assert_eq!(round(0, 5, false), Rounded::Zero);
        assert_eq!(round(1, -16445, false), finite(1, -16445));
        assert_eq!(round(1, -16446, false), Rounded::Zero);
        assert_eq!(round(3, -16447, false), finite(1, -16445));
        assert_eq!(round(1, -99999, false), Rounded::Zero);
        assert_eq!(round(u128::from(u64::MAX), 16320, false), finite(u64::MAX, 16320));
        assert_eq!(round(u128::from(u64::MAX) * 2 + 1, 16319, false), Rounded::Overflow);
        assert_eq!(round(1, i64::MAX / 2, false), Rounded::Overflow);
        assert_eq!(round(u128::MAX, -16445 - 128, false), finite(1, -16445));
    }

    #[test]
    fn hexadecimal_notation() {
        for text in ["0x", "0x.", "0xg", "0x1p", "0x1p+", "0x1..", "1", "0x1p1.5", "0x 1"] {
            assert!(parse_hex(text.as_bytes()).is_none(), "{text}");
        }
        let value = |text: &str| match parse_hex(text.as_bytes()).map(|hex| hex.round(&DOUBLE)) {
            Some(Rounded::Finite { mantissa, exponent }) => mantissa as f64 * 2f64.powi(exponent),
            other => panic!("{text}: {other:?}"),
        };
        assert_eq!((value("0x10"), value("0X1P-2"), value("0x.8")), (16.0, 0.25, 0.5));
        assert_eq!((value("0x1.8p+1"), value("0xfF."), value("0x0.001p12")), (3.0, 255.0, 1.0));
        assert_eq!(value(&format!("0x1{}p-400", "0".repeat(100))), 1.0);
        assert_eq!(value(&format!("0x.{}1p404", "0".repeat(100))), 1.0);
    }
}
