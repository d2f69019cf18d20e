//! The short way through a request of the common shape: args of fewer than a thousand bytes, all
//! of them in the buffer. Nearly every command of a pipeline is such a one, and the state machine
//! in [`super::scan`], which can stop and go on at any byte, costs it several times as much.
//! Whatever looks unusual here is left untouched for that one: no error is told from here.

use super::RequestLimits;
use russet_base::Span;

/// What the short way takes stays below these, so a client held to less can't go it.
const ARGS_MAX: usize = 99;
const ARG_BYTES_MAX: usize = 999;
/// `*` and a digit. The line end after it is read together with the header that follows.
const SHORT_COUNT_BYTES: usize = 2;
const LINE_END: &[u8] = b"\r\n";

/// Whether these limits allow all that the short way takes; asked once for a whole pipeline.
pub(super) fn is_within(limits: &RequestLimits) -> bool {
    limits.authenticated
        && limits.arguments_max >= ARGS_MAX
        && limits.bulk_bytes_max >= ARG_BYTES_MAX
}

/// Adds the arguments of the command at the front of `request` to `spans` and returns its length.
/// `None`, with `spans` as it was, says only that a careful look is needed.
#[inline(always)]
pub(super) fn command(request: &[u8], spans: &mut Vec<Span>) -> Option<usize> {
    const TWO: u32 = u32::from_le_bytes(*b"*2\r\n");
    const THREE: u32 = u32::from_le_bytes(*b"*3\r\n");
    match u32::from_le_bytes(*request.first_chunk()?) {
        TWO => few_args::<2>(request, spans),
        THREE => few_args::<3>(request, spans),
        _ => many_args(request, spans),
    }
}

/// A number of arguments known when compiled unrolls the loop and asks the list for room only once.
#[inline(always)]
fn few_args<const COUNT: usize>(request: &[u8], spans: &mut Vec<Span>) -> Option<usize> {
    let mut found = [Span { start: 0, len: 0 }; COUNT];
    let mut position = SHORT_COUNT_BYTES;
    for span in &mut found {
        *span = arg(request, position)?;
        position = span.start as usize + span.len as usize;
    }
    let end = after_line_end(request, position)?;
    spans.extend_from_slice(&found);
    Some(end)
}

#[inline(never)]
fn many_args(request: &[u8], spans: &mut Vec<Span>) -> Option<usize> {
    let (count, mut position) = match *request {
        [b'*', a @ b'1'..=b'9', b'\r', ..] => (a - b'0', SHORT_COUNT_BYTES),
        [b'*', a @ b'1'..=b'9', b @ b'0'..=b'9', ..] => {
            ((a - b'0') * 10 + (b - b'0'), SHORT_COUNT_BYTES + 1)
        }
        _ => return None,
    };
    let spans_before = spans.len();
    for _ in 0..count {
        let Some(span) = arg(request, position) else {
            spans.truncate(spans_before);
            return None;
        };
        spans.push(span);
        position = span.start as usize + span.len as usize;
    }
    let end = after_line_end(request, position);
    if end.is_none() {
        spans.truncate(spans_before);
    }
    end
}

#[inline(always)]
fn after_line_end(request: &[u8], position: usize) -> Option<usize> {
    let end = position + LINE_END.len();
    (request.get(position..end)? == LINE_END).then_some(end)
}

/// The arg whose header follows the line end at `position`. Eight bytes hold both, however many of
/// the one to three digits there are, and no sound request has fewer left: the shortest arg with
/// its two line ends and its header is as long. Whether the argument itself is all there is for the
/// caller to see, who looks for what stands behind it.
///
/// XOR with the text that is wanted leaves digits as their values and all other bytes zero; turned
/// so that the digits are the low bytes, one comparison sees that nothing else is left.
#[inline(always)]
fn arg(request: &[u8], position: usize) -> Option<Span> {
    let head: [u8; 8] = request.get(position..position + 8)?.try_into().ok()?;
    let head = u64::from_le_bytes(head);
    let one = ((head ^ u64::from_le_bytes(*b"\r\n$0\r\n\0\0")) << 16).rotate_right(40);
    if one <= 9 {
        return Some(span(position + 6, one));
    }
    let two = ((head ^ u64::from_le_bytes(*b"\r\n$00\r\n\0")) << 8).rotate_right(32);
    let (tens, ones) = (two & 0xff, two >> 8);
    // A zero in front of another digit is an error, so the first is 1 to 9.
    if ones <= 9 && tens.wrapping_sub(1) < 9 {
        return Some(span(position + 7, tens * 10 + ones));
    }
    Some(span(position + 8, three_digits(head)?))
}

/// No number of arguments that the short way takes gets near the end of 32 bits.
#[inline(always)]
fn span(start: usize, len: u64) -> Span {
    Span { start: start as u32, len: len as u32 }
}

/// Apart, since it would be unrolled for every argument.
#[inline(never)]
fn three_digits(head: u64) -> Option<u64> {
    let three = (head ^ u64::from_le_bytes(*b"\r\n$000\r\n")).rotate_right(24);
    let (hundreds, tens, ones) = (three & 0xff, three >> 8 & 0xff, three >> 16);
    ((1..=9).contains(&hundreds) && tens <= 9 && ones <= 9)
        .then_some(hundreds * 100 + tens * 10 + ones)
}
