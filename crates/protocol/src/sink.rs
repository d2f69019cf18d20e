//! Where a handler's reply goes. A handler can't tell whether that is a socket's buffer, a script
//! or a caller in the same process.

use crate::output::Wire;
use russet_base::SharedBytes;

/// The protocol that a client speaks. A few replies differ in shape, not only in spelling.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Resp {
    #[default]
    V2,
    V3,
}

/// Where a collection began whose length was not known; handed back to [`Sink::end_array`].
#[derive(Debug)]
#[must_use = "a collection that was begun must be ended"]
pub struct Mark(pub usize);

/// Takes one reply, piece by piece: a collection's length first, then its elements.
pub trait Sink {
    fn resp(&self) -> Resp;
    /// HELLO changes the protocol between a command and its own reply.
    fn set_resp(&mut self, resp: Resp);

    /// `+text`. The text is ours or has been checked: it holds no line break.
    fn status(&mut self, text: &str);
    /// `-text`, the code included (`ERR ...`). Line breaks are turned into spaces.
    fn error(&mut self, text: &str);
    fn int(&mut self, value: i64);
    fn bulk(&mut self, bytes: &[u8]);
    /// As [`Sink::bulk`], for a string that can be sent from where it is.
    fn bulk_shared(&mut self, bytes: &SharedBytes) {
        self.bulk(bytes);
    }
    /// An integer as a bulk string.
    fn bulk_int(&mut self, value: i64);
    /// No value: `$-1` or `_`.
    fn null(&mut self);
    /// No array: `*-1` or `_`.
    fn null_array(&mut self);
    fn array(&mut self, len: usize);
    /// `pairs` keys and values; an array of twice as many in RESP2.
    fn map(&mut self, pairs: usize);
    fn set(&mut self, len: usize);
    /// Out of band data; an array in RESP2.
    fn push(&mut self, len: usize);
    /// What is said about the reply that follows: `pairs` keys and values. RESP2 has no place for
    /// it, so its caller must ask first.
    fn attribute(&mut self, pairs: usize);
    /// A bulk string in RESP2.
    fn double(&mut self, value: f64);
    /// 1 or 0 in RESP2.
    fn boolean(&mut self, value: bool);
    /// Text with a three-letter format; a bulk string in RESP2.
    fn verbatim(&mut self, format: &[u8; 3], text: &[u8]);
    /// A bulk string in RESP2.
    fn big_number(&mut self, digits: &str);

    /// Begins an array whose length is not known yet.
    fn begin_array(&mut self) -> Mark;
    fn end_array(&mut self, mark: Mark, len: usize);
    /// As [`Sink::begin_array`], for a map.
    fn begin_map(&mut self) -> Mark;
    fn end_map(&mut self, mark: Mark, pairs: usize);
    /// As [`Sink::begin_array`], for a set.
    fn begin_set(&mut self) -> Mark {
        self.begin_array()
    }
    fn end_set(&mut self, mark: Mark, len: usize) {
        self.end_array(mark, len);
    }

    fn ok(&mut self) {
        self.status("OK");
    }

    /// Where RESP bytes are written, if this is such a sink: for replies of so many elements that a
    /// call for each costs more than the bytes.
    fn wire(&mut self) -> Option<Wire<'_>> {
        None
    }
}
