//! How distances and coordinates look on the wire.

use russet_engine::types::geo::Point;
use russet_engine::types::zset::Element;
use russet_protocol::{Resp, Sink};

/// Digits behind the point of a distance.
const DISTANCE_DIGITS: usize = 4;
const DISTANCE_SCALE: u64 = 10_000;
/// The same of a coordinate.
const DEGREES_DIGITS: usize = 17;
const DEGREES_SCALE: u64 = 100_000_000_000_000_000;
/// Longest text of a number here, and some more.
const TEXT_BYTES_MAX: usize = 48;

/// A number without rounding: its sign, what stands before the point, and so many digits behind it.
struct Decimal {
    is_negative: bool,
    whole: u64,
    part: u64,
    digits: usize,
}

/// A text on the stack, written from its end.
struct Text {
    bytes: [u8; TEXT_BYTES_MAX],
    start: usize,
}

impl Text {
    fn of(decimal: &Decimal) -> Text {
        let mut text = Text { bytes: [0; TEXT_BYTES_MAX], start: TEXT_BYTES_MAX };
        let mut part = decimal.part;
        for _ in 0..decimal.digits {
            text.push_front(b'0' + (part % 10) as u8);
            part /= 10;
        }
        text.push_front(b'.');
        let mut whole = decimal.whole;
        loop {
            text.push_front(b'0' + (whole % 10) as u8);
            whole /= 10;
            if whole == 0 {
                break;
            }
        }
        if decimal.is_negative {
            text.push_front(b'-');
        }
        text
    }

    #[inline]
    fn push_front(&mut self, byte: u8) {
        self.start -= 1;
        self.bytes[self.start] = byte;
    }

    fn as_bytes(&self) -> &[u8] {
        &self.bytes[self.start..]
    }
}

/// Always four digits behind the point, a bulk string in both protocols.
pub fn reply_distance(reply: &mut dyn Sink, distance: f64) {
    let scaled = (distance * DISTANCE_SCALE as f64).round_ties_even();
    // COMPAT: antipodes may be no number apart, which the peers' processors turn into the least.
    let units = if scaled.is_nan() { i64::MIN } else { scaled as i64 };
    let size = units.unsigned_abs();
    let (whole, part) = (size / DISTANCE_SCALE, size % DISTANCE_SCALE);
    let decimal = Decimal { is_negative: units < 0, whole, part, digits: DISTANCE_DIGITS };
    reply.bulk(Text::of(&decimal).as_bytes());
}

/// Longitude and latitude.
pub fn reply_point(reply: &mut dyn Sink, point: Point) {
    reply.array(2);
    reply_degrees(reply, point.longitude);
    reply_degrees(reply, point.latitude);
}

/// COMPAT: seventeen digits behind the point, zeros at the end left out; in RESP3 a double, which
/// others print with as few digits as identify it (test `geo/geopos.wire`).
fn reply_degrees(reply: &mut dyn Sink, degrees: f64) {
    match decimal_of(degrees) {
        Some(decimal) => reply_number(reply, degrees, Text::of(&decimal).as_bytes()),
        None => reply_number(reply, degrees, format!("{degrees:.17}").as_bytes()),
    }
}

/// A number with as many digits behind the point as a coordinate has, rounded to the nearest. None
/// if it is too small or too large for the arithmetic here, or half-way between two.
fn decimal_of(degrees: f64) -> Option<Decimal> {
    const FRACTION_BITS: u32 = f64::MANTISSA_DIGITS - 1;
    let bits = degrees.to_bits();
    let exponent = (bits >> FRACTION_BITS) & 0x7ff;
    let mantissa = bits & ((1 << FRACTION_BITS) - 1) | 1 << FRACTION_BITS;
    // The number is the mantissa divided by two to this power.
    let shift = 1075u64.checked_sub(exponent).filter(|shift| (1..64).contains(shift))?;
    let below = (1u64 << shift) - 1;
    let scaled = u128::from(mantissa & below) * u128::from(DEGREES_SCALE);
    let (mut whole, mut part) = (mantissa >> shift, (scaled >> shift) as u64);
    let (rest, half) = (scaled as u64 & below, 1u64 << (shift - 1));
    if rest == half {
        return None;
    }
    part += u64::from(rest > half);
    if part == DEGREES_SCALE {
        (whole, part) = (whole + 1, 0);
    }
    Some(Decimal { is_negative: degrees < 0.0, whole, part, digits: DEGREES_DIGITS })
}

fn reply_number(reply: &mut dyn Sink, number: f64, text: &[u8]) {
    let digits = text.iter().rposition(|digit| *digit != b'0').map_or(0, |last| last + 1);
    let text = text[..digits].strip_suffix(b".").unwrap_or(&text[..digits]);
    if reply.resp() == Resp::V2 {
        reply.bulk(text);
    } else if let Some(mut out) = reply.wire() {
        out.extend_from_slice(b",");
        out.extend_from_slice(text);
        out.extend_from_slice(b"\r\n");
    } else {
        reply.double(number);
    }
}

pub fn reply_member(reply: &mut dyn Sink, member: Element<'_>) {
    match member {
        Element::Bytes(bytes) => reply.bulk(bytes),
        Element::Int(value) => reply.bulk_int(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use russet_base::random::Random;

    /// The digits are those that the formatter of the standard library gives.
    #[test]
    fn coordinates_are_written_exactly() {
        let mut random = Random::from_seed(7);
        let mut written = 0;
        for step in 0..200_000 {
            let size = [180.0, 1.0, 1e-3, 1e6][step % 4];
            let unit = (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
            let degrees = (unit - 0.5) * size;
            if let Some(decimal) = decimal_of(degrees) {
                written += 1;
                assert_eq!(Text::of(&decimal).as_bytes(), format!("{degrees:.17}").as_bytes());
            }
        }
        assert!(written > 100_000);
        for special in
            [0.0, -0.0, f64::NAN, f64::INFINITY, 1e300, 1e-300, f64::from(0.5f32.powi(18))]
        {
            assert!(decimal_of(special).is_none(), "{special}");
        }
        assert_eq!(Text::of(&decimal_of(-0.5).unwrap()).as_bytes(), b"-0.50000000000000000");
    }
}
