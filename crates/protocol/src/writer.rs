//! Replies as bytes: the home of the sink that a connection's out buffer is.

use crate::bulks::FRAME_LONG_BYTES_MAX;
use crate::decimal::{Digits, header, integer_line};
use crate::output::Wire;
use crate::sink::{Mark, Resp, Sink};
use russet_base::SharedBytes;
use russet_base::escape::unescape;
use russet_base::float::format_f64;

/// From this length on a bulk string makes room for all of itself at once.
const BULK_LONG_BYTES: usize = 100;

/// Writes replies at the end of an output or a plain buffer.
pub struct RespWriter<'a> {
    wire: Wire<'a>,
    resp: Resp,
}

impl<'a> RespWriter<'a> {
    #[inline]
    pub fn new(out: impl Into<Wire<'a>>, resp: Resp) -> Self {
        let mut wire = out.into();
        wire.seal_if_full();
        RespWriter { wire, resp }
    }

    /// Bytes in the output, those from before this writer included.
    pub fn bytes_len(&self) -> usize {
        self.wire.len()
    }

    fn line(&mut self, kind: u8, text: &[u8]) {
        self.wire.make_room(text.len() + 3);
        let out = &mut *self.wire.buffer;
        out.reserve(text.len() + 3);
        out.push(kind);
        out.extend_from_slice(text);
        self.end_line();
    }

    fn end_line(&mut self) {
        self.wire.buffer.extend_from_slice(b"\r\n");
    }

    /// Begins a piece of a reply that may have many.
    #[inline]
    fn piece(&mut self) -> &mut Vec<u8> {
        self.wire.seal_if_full();
        self.wire.buffer
    }

    /// Puts the header of a collection in at the place where it began.
    fn insert_header(&mut self, mark: Mark, kind: u8, len: usize) {
        let mut text = Vec::with_capacity(FRAME_LONG_BYTES_MAX);
        header(&mut text, kind, len);
        self.wire.insert(mark.0, &text);
    }
}

impl Sink for RespWriter<'_> {
    fn resp(&self) -> Resp {
        self.resp
    }

    fn set_resp(&mut self, resp: Resp) {
        self.resp = resp;
    }

    fn ok(&mut self) {
        self.piece().extend_from_slice(b"+OK\r\n");
    }

    fn status(&mut self, text: &str) {
        self.line(b'+', &unescape(text));
    }

    fn error(&mut self, text: &str) {
        // COMPAT: line ends at the ends are dropped, others become spaces; test
        // tests/wire/generic/expire.wire, "an option with line ends".
        let text = unescape(text.trim_matches(['\r', '\n']));
        self.line(b'-', &text);
        let end = self.wire.buffer.len() - 2;
        for byte in &mut self.wire.buffer[end - text.len()..end] {
            if matches!(*byte, b'\r' | b'\n') {
                *byte = b' ';
            }
        }
    }

    #[inline]
    fn int(&mut self, value: i64) {
        integer_line(self.piece(), b':', value);
    }

    #[inline]
    fn bulk(&mut self, bytes: &[u8]) {
        // A long string must not grow the buffer once more for its line end. For a short one each
        // step sees to its own room, which is cheaper than to ask for all of it first.
        if bytes.len() >= BULK_LONG_BYTES {
            self.wire.make_room(bytes.len() + FRAME_LONG_BYTES_MAX);
            self.wire.buffer.reserve(bytes.len() + FRAME_LONG_BYTES_MAX);
        }
        let out = self.piece();
        header(out, b'$', bytes.len());
        out.extend_from_slice(bytes);
        self.end_line();
    }

    fn bulk_shared(&mut self, bytes: &SharedBytes) {
        header(self.piece(), b'$', bytes.len());
        self.wire.push_shared(bytes);
        self.end_line();
    }

    fn bulk_int(&mut self, value: i64) {
        self.bulk(Digits::signed(value).as_bytes());
    }

    fn null(&mut self) {
        let text: &[u8] = if self.resp == Resp::V2 { b"$-1\r\n" } else { b"_\r\n" };
        self.piece().extend_from_slice(text);
    }

    fn null_array(&mut self) {
        let text: &[u8] = if self.resp == Resp::V2 { b"*-1\r\n" } else { b"_\r\n" };
        self.piece().extend_from_slice(text);
    }

    fn array(&mut self, len: usize) {
        header(self.piece(), b'*', len);
    }

    fn map(&mut self, pairs: usize) {
        match self.resp {
            Resp::V2 => header(self.piece(), b'*', pairs * 2),
            Resp::V3 => header(self.piece(), b'%', pairs),
        }
    }

    fn set(&mut self, len: usize) {
        let kind = if self.resp == Resp::V2 { b'*' } else { b'~' };
        header(self.piece(), kind, len);
    }

    fn push(&mut self, len: usize) {
        let kind = if self.resp == Resp::V2 { b'*' } else { b'>' };
        header(self.piece(), kind, len);
    }

    fn attribute(&mut self, pairs: usize) {
        header(self.piece(), b'|', pairs);
    }

    fn double(&mut self, value: f64) {
        match self.resp {
            Resp::V2 => {
                let out = self.piece();
                let start = out.len();
                format_f64(value, out);
                let (content_end, len) = (out.len(), out.len() - start);
                header(out, b'$', len);
                let header_len = out.len() - content_end;
                out[start..].rotate_right(header_len);
            }
            Resp::V3 => {
                let out = self.piece();
                out.push(b',');
                format_f64(value, out);
            }
        }
        self.end_line();
    }

    fn boolean(&mut self, value: bool) {
        let text = match (self.resp, value) {
            (Resp::V2, true) => b":1\r\n",
            (Resp::V2, false) => b":0\r\n",
            (Resp::V3, true) => b"#t\r\n",
            (Resp::V3, false) => b"#f\r\n",
        };
        self.piece().extend_from_slice(text);
    }

    fn verbatim(&mut self, format: &[u8; 3], text: &[u8]) {
        match self.resp {
            Resp::V2 => self.bulk(text),
            Resp::V3 => {
                self.wire.make_room(text.len() + FRAME_LONG_BYTES_MAX + 4);
                let out = &mut *self.wire.buffer;
                out.reserve(text.len() + FRAME_LONG_BYTES_MAX + 4);
                header(out, b'=', text.len() + 4);
                out.extend_from_slice(format);
                out.push(b':');
                out.extend_from_slice(text);
                self.end_line();
            }
        }
    }

    fn big_number(&mut self, digits: &str) {
        match self.resp {
            Resp::V2 => self.bulk(&unescape(digits)),
            Resp::V3 => self.line(b'(', &unescape(digits)),
        }
    }

    fn begin_array(&mut self) -> Mark {
        Mark(self.wire.len())
    }

    fn end_array(&mut self, mark: Mark, len: usize) {
        self.insert_header(mark, b'*', len);
    }

    fn begin_map(&mut self) -> Mark {
        Mark(self.wire.len())
    }

    fn end_map(&mut self, mark: Mark, pairs: usize) {
        match self.resp {
            Resp::V2 => self.insert_header(mark, b'*', pairs * 2),
            Resp::V3 => self.insert_header(mark, b'%', pairs),
        }
    }

    fn end_set(&mut self, mark: Mark, len: usize) {
        self.insert_header(mark, if self.resp == Resp::V2 { b'*' } else { b'~' }, len);
    }

    fn wire(&mut self) -> Option<Wire<'_>> {
        Some(self.wire.reborrow())
    }
}
