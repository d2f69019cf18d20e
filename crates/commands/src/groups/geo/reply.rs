//! How distances and coordinates look on the wire.

use russet_engine::types::geo::Point;
use russet_engine::types::zset::Element;
use russet_protocol::{Resp, Sink};
use std::io::Write;

/// Digits behind the point of a distance.
const DISTANCE_SCALE: f64 = 10_000.0;
/// Longest text of a number here, and some more.
const TEXT_BYTES_MAX: usize = 48;

/// A text on the stack.
struct Text {
    bytes: [u8; TEXT_BYTES_MAX],
    len: usize,
}

impl Text {
    fn new(format: std::fmt::Arguments<'_>) -> Text {
        let mut bytes = [0; TEXT_BYTES_MAX];
        let mut rest = bytes.as_mut_slice();
        // What would not fit is cut off; no number of ours is that long.
        let written = rest.write_fmt(format);
        debug_assert!(written.is_ok(), "the text fits");
        let left = rest.len();
        Text { bytes, len: TEXT_BYTES_MAX - left }
    }

    fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// Always four digits behind the point, a bulk string in both protocols.
pub fn reply_distance(reply: &mut dyn Sink, distance: f64) {
    let scaled = (distance * DISTANCE_SCALE).round_ties_even();
    // COMPAT: antipodes may be no number apart, which the peers' processors turn into the least.
    let units = if scaled.is_nan() { i64::MIN } else { scaled as i64 };
    let sign = if units < 0 { "-" } else { "" };
    let (whole, part) = (units.unsigned_abs() / 10_000, units.unsigned_abs() % 10_000);
    reply.bulk(Text::new(format_args!("{sign}{whole}.{part:04}")).as_bytes());
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
    let text = Text::new(format_args!("{degrees:.17}"));
    let text = text.as_bytes().trim_ascii_end();
    let digits = text.iter().rposition(|digit| *digit != b'0').map_or(0, |last| last + 1);
    let text = text[..digits].strip_suffix(b".").unwrap_or(&text[..digits]);
    if reply.resp() == Resp::V2 {
        reply.bulk(text);
    } else if let Some(mut out) = reply.wire() {
        out.extend_from_slice(b",");
        out.extend_from_slice(text);
        out.extend_from_slice(b"\r\n");
    } else {
        reply.double(degrees);
    }
}

pub fn reply_member(reply: &mut dyn Sink, member: Element<'_>) {
    match member {
        Element::Bytes(bytes) => reply.bulk(bytes),
        Element::Int(value) => reply.bulk_int(value),
    }
}
