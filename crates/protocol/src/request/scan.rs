//! The state machine under both parsers: one request, as far as the bytes at hand allow.

use super::{
    ProtocolError, RequestLimits, UNAUTHENTICATED_ARGUMENTS_MAX, UNAUTHENTICATED_BULK_BYTES_MAX,
    inline,
};
use russet_base::Span;
use russet_base::args::ARGS_BYTES_MAX;

/// Longest request, long arguments apart: offsets into it are spans of 32 bits.
const REQUEST_BYTES_MAX: usize = ARGS_BYTES_MAX;
/// What ends each header and stands after each bulk string.
///
/// DIFFERS: Redis skips two bytes, whatever they are; Valkey refuses others, and so do we, since
/// a stream that has lost its framing must not be guessed at.
const LINE_END: &[u8; 2] = b"\r\n";
const LINE_END_BYTES: usize = LINE_END.len();

#[derive(Debug)]
pub(super) enum Outcome {
    Command { consumed: usize, in_scratch: bool },
    Empty { consumed: usize },
    Incomplete { needed: usize },
}

/// How far the request in progress has come. Positions count from its first byte.
#[derive(Debug, Default)]
pub(super) struct Progress {
    state: State,
    /// The first byte that has not been understood yet: a header or the content of a bulk string.
    position: usize,
    /// Up to here the line at `position` is known to have no end.
    scanned: usize,
    arguments_left: usize,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Start,
    Inline,
    MultibulkHeader,
    BulkHeader,
    /// The content of a bulk string of this length.
    Bulk(usize),
    /// The line end behind a bulk string whose content was read apart.
    BulkEnd,
}

/// A header line: its first byte, what it holds from there to its CR, and where the next begins.
struct Line<'a> {
    kind: u8,
    text: &'a [u8],
    next: usize,
    is_ended_well: bool,
}

impl Line<'_> {
    fn integer(&self) -> Result<Option<i64>, ProtocolError> {
        if self.is_ended_well { Ok(integer(self.text)) } else { Err(ProtocolError::InvalidLineEnd) }
    }
}

impl Progress {
    pub(super) fn is_under_way(&self) -> bool {
        self.state != State::Start
    }

    /// Goes on with the request at the front of `buffer`. Args are added to `spans`, relative to
    /// the start of the request or, for an inline request with quotes, to that of the scratch.
    ///
    /// After an error it stands before what was wrong: the next call finds the same, unless the
    /// limits have become wider.
    #[inline]
    pub(super) fn advance(
        &mut self,
        buffer: &[u8],
        limits: &RequestLimits,
        spans: &mut Vec<Span>,
        scratch: &mut Vec<u8>,
    ) -> Result<Outcome, ProtocolError> {
        if self.state == State::Start {
            match buffer.first() {
                None => return Ok(Outcome::Incomplete { needed: 1 }),
                Some(b'*') => self.state = State::MultibulkHeader,
                Some(_) => self.state = State::Inline,
            }
        }
        let outcome = match self.state {
            State::Inline => self.inline_request(buffer, limits, spans, scratch),
            _ => self.multibulk(buffer, limits, spans),
        };
        if matches!(outcome, Ok(Outcome::Command { .. } | Outcome::Empty { .. })) {
            *self = Progress::default();
        }
        outcome
    }

    #[inline]
    fn multibulk(
        &mut self,
        buffer: &[u8],
        limits: &RequestLimits,
        spans: &mut Vec<Span>,
    ) -> Result<Outcome, ProtocolError> {
        if self.state == State::MultibulkHeader {
            let header = match short_header(buffer, b'*') {
                Some((count, next)) => Some((count as i64, next)),
                None => self.multibulk_header(buffer, limits)?,
            };
            let Some((count, next)) = header else { return Ok(self.incomplete(buffer)) };
            if count > 0 {
                let count = count as u64;
                if count > limits.arguments_max as u64 {
                    return Err(ProtocolError::InvalidMultibulkLength);
                }
                if count > UNAUTHENTICATED_ARGUMENTS_MAX as u64 && !limits.authenticated {
                    return Err(ProtocolError::UnauthenticatedMultibulkLength);
                }
                self.arguments_left = count as usize;
            } else {
                // COMPAT: a negative count is an empty request too; `every_oddity_of_the_peer`.
                return Ok(Outcome::Empty { consumed: next });
            }
            self.position = next;
            self.state = State::BulkHeader;
        }
        self.bulks(buffer, limits, spans)
    }

    /// The bulk strings, by a loop that keeps its state in registers and saves it only when the
    /// bytes run out.
    #[inline]
    fn bulks(
        &mut self,
        buffer: &[u8],
        limits: &RequestLimits,
        spans: &mut Vec<Span>,
    ) -> Result<Outcome, ProtocolError> {
        let mut position = self.position;
        let mut left = self.arguments_left;
        let mut known = None;
        match self.state {
            State::Bulk(len) => known = Some(len),
            State::BulkEnd => {
                let next = position + LINE_END_BYTES;
                match buffer.get(position..next) {
                    None => return Ok(Outcome::Incomplete { needed: next }),
                    Some(end) if end != LINE_END => return Err(ProtocolError::InvalidLineEnd),
                    Some(_) => (position, left) = (next, left - 1),
                }
            }
            _ => {}
        }
        while left > 0 {
            let len = match known.take() {
                Some(len) => len,
                None => {
                    let header = match buffer.get(position..).and_then(|b| short_header(b, b'$')) {
                        Some((len, size)) => Some((len, position + size)),
                        None => {
                            self.save(State::BulkHeader, position, left);
                            self.bulk_header(buffer, limits)?
                        }
                    };
                    let Some((len, next)) = header else { return Ok(self.incomplete(buffer)) };
                    if let Err(error) = check_bulk(len, next, limits) {
                        self.save(State::BulkHeader, position, left);
                        return Err(error);
                    }
                    position = next;
                    len
                }
            };
            let next = position + len + LINE_END_BYTES;
            if next > buffer.len() {
                self.save(State::Bulk(len), position, left);
                return Ok(Outcome::Incomplete { needed: next });
            }
            if buffer[position + len..next] != *LINE_END {
                self.save(State::Bulk(len), position, left);
                return Err(ProtocolError::InvalidLineEnd);
            }
            spans.push(Span { start: position as u32, len: len as u32 });
            position = next;
            left -= 1;
        }
        Ok(Outcome::Command { consumed: position, in_scratch: false })
    }

    /// The bulk string in progress: where its content begins, and its length.
    pub(super) fn bulk(&self) -> Option<(usize, usize)> {
        if let State::Bulk(len) = self.state { Some((self.position, len)) } else { None }
    }

    /// The content of the bulk string in progress is not in the buffer: its line end comes next.
    pub(super) fn skip_bulk(&mut self) {
        self.state = State::BulkEnd;
    }

    fn save(&mut self, state: State, position: usize, arguments_left: usize) {
        self.state = state;
        self.position = position;
        self.arguments_left = arguments_left;
    }

    /// A header wants at least one byte more than there is.
    fn incomplete(&self, buffer: &[u8]) -> Outcome {
        Outcome::Incomplete { needed: buffer.len() + 1 }
    }

    #[cold]
    fn multibulk_header(
        &mut self,
        buffer: &[u8],
        limits: &RequestLimits,
    ) -> Result<Option<(i64, usize)>, ProtocolError> {
        let too_big = ProtocolError::TooBigMultibulkCount;
        let Some(line) = self.line(buffer, limits, too_big)? else { return Ok(None) };
        let count = line.integer()?.ok_or(ProtocolError::InvalidMultibulkLength)?;
        Ok(Some((count, line.next)))
    }

    fn bulk_header(
        &mut self,
        buffer: &[u8],
        limits: &RequestLimits,
    ) -> Result<Option<(usize, usize)>, ProtocolError> {
        let too_big = ProtocolError::TooBigBulkCount;
        let Some(line) = self.line(buffer, limits, too_big)? else { return Ok(None) };
        if line.kind != b'$' {
            return Err(ProtocolError::ExpectedDollar(line.kind));
        }
        let len = line.integer()?.and_then(|len| usize::try_from(len).ok());
        Ok(Some((len.ok_or(ProtocolError::InvalidBulkLength)?, line.next)))
    }

    /// The header line at `position`, once its CR and the byte after it are here.
    fn line<'a>(
        &mut self,
        buffer: &'a [u8],
        limits: &RequestLimits,
        too_big: ProtocolError,
    ) -> Result<Option<Line<'a>>, ProtocolError> {
        let start = self.position;
        let window_end =
            buffer.len().min(start.saturating_add(limits.inline_bytes_max).saturating_add(1));
        let from = self.scanned.max(start).min(window_end);
        let Some(offset) = memchr::memchr(b'\r', &buffer[from..window_end]) else {
            self.scanned = window_end;
            let is_too_big = buffer.len().saturating_sub(start) > limits.inline_bytes_max;
            return if is_too_big { Err(too_big) } else { Ok(None) };
        };
        let end = from + offset;
        let next = end + LINE_END_BYTES;
        if next > buffer.len() {
            self.scanned = end;
            return Ok(None);
        }
        // The CR may be the first byte, where the kind should stand.
        let text = buffer.get(start + 1..end).unwrap_or(&[]);
        let is_ended_well = buffer[end..next] == *LINE_END;
        Ok(Some(Line { kind: buffer[start], text, next, is_ended_well }))
    }

    /// COMPAT: the line ends at LF, with or without a CR before it; a NUL hides what follows it, so
    /// that such a line grows too big; `every_oddity_of_the_peer`.
    #[cold]
    fn inline_request(
        &mut self,
        buffer: &[u8],
        limits: &RequestLimits,
        spans: &mut Vec<Span>,
        scratch: &mut Vec<u8>,
    ) -> Result<Outcome, ProtocolError> {
        let window_end = buffer.len().min(limits.inline_bytes_max.saturating_add(1));
        let from = self.scanned.min(window_end);
        let end = match memchr::memchr2(b'\n', 0, &buffer[from..window_end]) {
            Some(offset) if buffer[from + offset] == b'\n' => from + offset,
            found => {
                self.scanned = found.map_or(window_end, |offset| from + offset);
                if buffer.len() > limits.inline_bytes_max {
                    return Err(ProtocolError::TooBigInline);
                }
                return Ok(self.incomplete(buffer));
            }
        };
        let line = buffer[..end].strip_suffix(b"\r").unwrap_or(&buffer[..end]);
        let spans_before = spans.len();
        let in_scratch = match inline::split(line, spans, scratch) {
            Ok(in_scratch) => in_scratch,
            Err(error) => {
                spans.truncate(spans_before);
                return Err(error);
            }
        };
        let consumed = end + 1;
        if spans.len() == spans_before {
            return Ok(Outcome::Empty { consumed });
        }
        Ok(Outcome::Command { consumed, in_scratch })
    }
}

#[inline]
fn check_bulk(len: usize, start: usize, limits: &RequestLimits) -> Result<(), ProtocolError> {
    if len > limits.bulk_bytes_max || len > REQUEST_BYTES_MAX - LINE_END_BYTES {
        return Err(ProtocolError::InvalidBulkLength);
    }
    if len > UNAUTHENTICATED_BULK_BYTES_MAX && !limits.authenticated {
        return Err(ProtocolError::UnauthenticatedBulkLength);
    }
    // Both are far from usize::MAX: `start` is inside a buffer, `len` was checked above.
    if start + len + LINE_END_BYTES > REQUEST_BYTES_MAX {
        return Err(ProtocolError::InvalidBulkLength);
    }
    Ok(())
}

/// The headers that nearly all requests consist of: one to three digits. `None` says only that a
/// slower look is needed. Returns the number and the size of the header.
#[inline(always)]
fn short_header(bytes: &[u8], kind: u8) -> Option<(usize, usize)> {
    let digit = |byte: u8| byte.wrapping_sub(b'0') as usize;
    match *bytes {
        [first, a, b'\r', b'\n', ..] if first == kind && digit(a) < 10 => Some((digit(a), 4)),
        [first, a, b, b'\r', b'\n', ..]
            if first == kind && digit(a).wrapping_sub(1) < 9 && digit(b) < 10 =>
        {
            Some((digit(a) * 10 + digit(b), 5))
        }
        [first, a, b, c, b'\r', b'\n', ..]
            if first == kind && digit(a).wrapping_sub(1) < 9 && digit(b) < 10 && digit(c) < 10 =>
        {
            Some((digit(a) * 100 + digit(b) * 10 + digit(c), 6))
        }
        _ => None,
    }
}

/// A decimal integer as the protocol takes it: no plus sign, no zero in front, no `-0`.
fn integer(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    match digits {
        [b'0'] if !negative => return Some(0),
        [b'1'..=b'9', ..] => {}
        _ => return None,
    }
    digits.iter().try_fold(0i64, |value, &byte| {
        let digit = i64::from(byte.wrapping_sub(b'0'));
        if digit > 9 {
            return None;
        }
        let value = value.checked_mul(10)?;
        if negative { value.checked_sub(digit) } else { value.checked_add(digit) }
    })
}
