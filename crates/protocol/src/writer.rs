//! Replies as bytes: the home of the sink that a connection's out buffer is.

use crate::decimal::{Digits, header, integer_line};
use crate::sink::{Mark, Resp, Sink};
use russet_base::float::format_f64;
use russet_base::told::bytes_of;

/// From this length on a bulk string makes room for all of itself at once.
const BULK_LONG_BYTES: usize = 100;
/// Most that the header of a bulk string and its line end take up.
const BULK_FRAME_BYTES_MAX: usize = 25;

/// Writes replies at the end of a buffer.
pub struct RespWriter<'a> {
    out: &'a mut Vec<u8>,
    resp: Resp,
}

impl<'a> RespWriter<'a> {
    pub fn new(out: &'a mut Vec<u8>, resp: Resp) -> Self {
        RespWriter { out, resp }
    }

    /// Bytes in the buffer, those from before this writer included.
    pub fn bytes_len(&self) -> usize {
        self.out.len()
    }

    /// A reply that is bytes already: one that was rendered once and goes to many clients.
    pub fn raw(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    fn line(&mut self, kind: u8, text: &[u8]) {
        self.out.reserve(text.len() + 3);
        self.out.push(kind);
        self.out.extend_from_slice(text);
        self.end_line();
    }

    fn end_line(&mut self) {
        self.out.extend_from_slice(b"\r\n");
    }

    /// Puts the header of a collection in at the place where it began.
    fn insert_header(&mut self, mark: Mark, kind: u8, len: usize) {
        let start = mark.0;
        let content_end = self.out.len();
        assert!(start <= content_end, "a mark lies in the buffer that it was made for");
        header(self.out, kind, len);
        let header_len = self.out.len() - content_end;
        self.out[start..].rotate_right(header_len);
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
        self.out.extend_from_slice(b"+OK\r\n");
    }

    fn status(&mut self, text: &str) {
        self.line(b'+', &bytes_of(text));
    }

    fn error(&mut self, text: &str) {
        let start = self.out.len();
        // COMPAT: line ends at the ends are dropped, others become spaces; test
        // tests/wire/generic/expire.wire, "an option with line ends".
        self.line(b'-', &bytes_of(text.trim_matches(['\r', '\n'])));
        let end = self.out.len() - 2;
        for byte in &mut self.out[start..end] {
            if matches!(*byte, b'\r' | b'\n') {
                *byte = b' ';
            }
        }
    }

    #[inline]
    fn int(&mut self, value: i64) {
        integer_line(self.out, b':', value);
    }

    #[inline]
    fn bulk(&mut self, bytes: &[u8]) {
        // A long string must not grow the buffer once more for its line end. For a short one each
        // step sees to its own room, which is cheaper than to ask for all of it first.
        if bytes.len() >= BULK_LONG_BYTES {
            self.out.reserve(bytes.len() + BULK_FRAME_BYTES_MAX);
        }
        header(self.out, b'$', bytes.len());
        self.out.extend_from_slice(bytes);
        self.end_line();
    }

    fn bulk_int(&mut self, value: i64) {
        self.bulk(Digits::signed(value).as_bytes());
    }

    fn null(&mut self) {
        self.out.extend_from_slice(match self.resp {
            Resp::V2 => b"$-1\r\n",
            Resp::V3 => b"_\r\n",
        });
    }

    fn null_array(&mut self) {
        self.out.extend_from_slice(match self.resp {
            Resp::V2 => b"*-1\r\n",
            Resp::V3 => b"_\r\n",
        });
    }

    fn array(&mut self, len: usize) {
        header(self.out, b'*', len);
    }

    fn map(&mut self, pairs: usize) {
        match self.resp {
            Resp::V2 => header(self.out, b'*', pairs * 2),
            Resp::V3 => header(self.out, b'%', pairs),
        }
    }

    fn set(&mut self, len: usize) {
        header(self.out, if self.resp == Resp::V2 { b'*' } else { b'~' }, len);
    }

    fn push(&mut self, len: usize) {
        header(self.out, if self.resp == Resp::V2 { b'*' } else { b'>' }, len);
    }

    fn attribute(&mut self, pairs: usize) {
        header(self.out, b'|', pairs);
    }

    fn double(&mut self, value: f64) {
        match self.resp {
            Resp::V2 => {
                let mark = Mark(self.out.len());
                format_f64(value, self.out);
                let len = self.out.len() - mark.0;
                self.insert_header(mark, b'$', len);
            }
            Resp::V3 => {
                self.out.push(b',');
                format_f64(value, self.out);
            }
        }
        self.end_line();
    }

    fn boolean(&mut self, value: bool) {
        self.out.extend_from_slice(match (self.resp, value) {
            (Resp::V2, true) => b":1\r\n",
            (Resp::V2, false) => b":0\r\n",
            (Resp::V3, true) => b"#t\r\n",
            (Resp::V3, false) => b"#f\r\n",
        });
    }

    fn verbatim(&mut self, format: &[u8; 3], text: &[u8]) {
        match self.resp {
            Resp::V2 => self.bulk(text),
            Resp::V3 => {
                self.out.reserve(text.len() + BULK_FRAME_BYTES_MAX + 4);
                header(self.out, b'=', text.len() + 4);
                self.out.extend_from_slice(format);
                self.out.push(b':');
                self.out.extend_from_slice(text);
                self.end_line();
            }
        }
    }

    fn big_number(&mut self, digits: &str) {
        match self.resp {
            Resp::V2 => self.bulk(&bytes_of(digits)),
            Resp::V3 => self.line(b'(', &bytes_of(digits)),
        }
    }

    fn begin_array(&mut self) -> Mark {
        Mark(self.out.len())
    }

    fn end_array(&mut self, mark: Mark, len: usize) {
        self.insert_header(mark, b'*', len);
    }

    fn begin_map(&mut self) -> Mark {
        Mark(self.out.len())
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

    fn wire(&mut self) -> Option<&mut Vec<u8>> {
        Some(self.out)
    }
}
