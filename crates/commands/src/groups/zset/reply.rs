//! Members and scores as replies: in RESP2 one flat array, in RESP3 an array of pairs.

use russet_base::float::format_f64;
use russet_engine::types::zset::{Direction, Element, Pair, ZsetRef};
use russet_protocol::{BulkWriter, Resp, Sink};
use std::ops::Range;

/// From here on the bytes are written past the sink.
const DIRECT_MEMBERS_MIN: usize = 32;
/// What the two bulk strings of a usual member and score take.
const REPLY_BYTES_ABOUT: usize = 32;
/// Whole scores up to here print as integers do.
const INTEGER_MAX: f64 = (1u64 << 53) as f64;

/// Whether scores are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scores {
    Without,
    With,
}

#[inline]
pub fn member(reply: &mut dyn Sink, member: Element<'_>) {
    match member {
        Element::Bytes(bytes) => reply.bulk(bytes),
        Element::Int(value) => reply.bulk_int(value),
    }
}

/// A score where a double is due.
#[inline]
pub fn score(reply: &mut dyn Sink, score: f64) {
    match as_integer(score) {
        Some(value) if reply.resp() == Resp::V2 => reply.bulk_int(value),
        _ => reply.double(score),
    }
}

/// The integer that prints as this score does.
#[inline]
fn as_integer(score: f64) -> Option<i64> {
    let is_plain = score.abs() <= INTEGER_MAX && !(score == 0.0 && score.is_sign_negative());
    let value = score as i64;
    (is_plain && value as f64 == score).then_some(value)
}

/// Begins an array of so many members.
pub fn begin(reply: &mut dyn Sink, len: usize, scores: Scores) {
    let is_flat = scores == Scores::With && reply.resp() == Resp::V2;
    reply.array(if is_flat { len * 2 } else { len });
}

/// One member of such an array.
#[inline]
pub fn pair(reply: &mut dyn Sink, pair: Pair<'_>, scores: Scores) {
    if scores == Scores::Without {
        return member(reply, pair.member);
    }
    if reply.resp() == Resp::V3 {
        reply.array(2);
    }
    member(reply, pair.member);
    score(reply, pair.score);
}

/// All members of a range of ranks.
pub fn range(
    reply: &mut dyn Sink,
    zset: ZsetRef<'_>,
    (ranks, direction): (Range<usize>, Direction),
    scores: Scores,
) {
    begin(reply, ranks.len(), scores);
    let is_bulks_only = scores == Scores::Without || reply.resp() == Resp::V2;
    if ranks.len() >= DIRECT_MEMBERS_MIN
        && is_bulks_only
        && let Some(mut out) = reply.wire()
    {
        out.reserve(ranks.len() * REPLY_BYTES_ABOUT);
        let mut bulks = BulkWriter::new(out);
        let mut text = Vec::new();
        zset.for_each(ranks, direction, |pair| {
            match pair.member {
                Element::Bytes(bytes) => bulks.bulk(bytes),
                Element::Int(value) => bulks.bulk_int(value),
            }
            if scores == Scores::With {
                direct_score(&mut bulks, pair.score, &mut text);
            }
        });
        return bulks.finish();
    }
    zset.for_each(ranks, direction, |found| pair(reply, found, scores));
}

fn direct_score(bulks: &mut BulkWriter<'_>, score: f64, text: &mut Vec<u8>) {
    match as_integer(score) {
        Some(value) => bulks.bulk_int(value),
        None => {
            text.clear();
            format_f64(score, text);
            bulks.bulk(text);
        }
    }
}

/// As C prints a double with `%.17g`.
pub fn write_17_digits(value: f64, out: &mut Vec<u8>) {
    if !value.is_finite() {
        return format_f64(value, out);
    }
    let text = format!("{value:.16e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let (sign, digits) = match mantissa.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", mantissa),
    };
    let digits: String = digits.chars().filter(char::is_ascii_digit).collect();
    let digits = digits.trim_end_matches('0');
    let digits = if digits.is_empty() { "0" } else { digits };
    out.extend_from_slice(sign.as_bytes());
    let text = match exponent {
        -4..0 => format!("0.{:0>width$}", digits, width = digits.len() + (-1 - exponent) as usize),
        0..17 if digits.len() <= exponent as usize + 1 => {
            format!("{digits:0<width$}", width = exponent as usize + 1)
        }
        0..17 => {
            let (whole, fraction) = digits.split_at(exponent as usize + 1);
            format!("{whole}.{fraction}")
        }
        _ => {
            let (first, rest) = digits.split_at(1);
            let point = if rest.is_empty() { "" } else { "." };
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{first}{point}{rest}e{sign}{:02}", exponent.abs())
        }
    };
    out.extend_from_slice(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::write_17_digits;

    /// Each as printf has it.
    #[test]
    fn seventeen_digits() {
        for (value, text) in [
            (0.0, "0"),
            (-0.0, "-0"),
            (3.0, "3"),
            (0.1, "0.10000000000000001"),
            (-1.5, "-1.5"),
            (1e17, "1e+17"),
            (1e16, "10000000000000000"),
            (123_456_789.123_456_79, "123456789.12345679"),
            (1e-4, "0.0001"),
            (1e-5, "1.0000000000000001e-05"),
            (2.5e-7, "2.4999999999999999e-07"),
            (1e300, "1.0000000000000001e+300"),
            (f64::INFINITY, "inf"),
            (f64::NEG_INFINITY, "-inf"),
        ] {
            let mut out = Vec::new();
            write_17_digits(value, &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), text);
        }
    }
}
