//! Many bulk strings in a row, written faster than one call of a sink for each: short ones are laid
//! out in a small buffer that stays in the nearest cache, and go out by the kilobyte.

use crate::decimal::{Digits, header};
use crate::output::Wire;

const STAGING_BYTES: usize = 8 * 1024;
/// Longer strings are copied once, straight to their place.
const STAGED_STRING_BYTES_MAX: usize = 999;
/// `$`, three digits and two line ends.
const FRAME_BYTES_MAX: usize = 8;
/// The same around any string.
pub(crate) const FRAME_LONG_BYTES_MAX: usize = 25;

/// Writes bulk strings behind a buffer. [`BulkWriter::finish`] must be called.
pub struct BulkWriter<'o> {
    out: Wire<'o>,
    staging: [u8; STAGING_BYTES],
    used: usize,
}

impl<'o> BulkWriter<'o> {
    pub fn new(out: impl Into<Wire<'o>>) -> Self {
        BulkWriter { out: out.into(), staging: [0; STAGING_BYTES], used: 0 }
    }

    #[inline]
    pub fn bulk(&mut self, text: &[u8]) {
        let len = text.len();
        if len > STAGED_STRING_BYTES_MAX {
            return self.long(text);
        }
        if STAGING_BYTES - self.used < len + FRAME_BYTES_MAX {
            self.flush();
        }
        let room = &mut self.staging[self.used..];
        let digit = |value: usize| b'0' + (value % 10) as u8;
        let at = if len < 10 {
            room[..4].copy_from_slice(&[b'$', digit(len), b'\r', b'\n']);
            4
        } else if len < 100 {
            room[..5].copy_from_slice(&[b'$', digit(len / 10), digit(len), b'\r', b'\n']);
            5
        } else {
            let digits = [digit(len / 100), digit(len / 10), digit(len)];
            room[..6].copy_from_slice(&[b'$', digits[0], digits[1], digits[2], b'\r', b'\n']);
            6
        };
        copy_short(&mut room[at..at + len], text);
        room[at + len..at + len + 2].copy_from_slice(b"\r\n");
        self.used += at + len + 2;
    }

    /// An integer as a bulk string.
    #[inline]
    pub fn bulk_int(&mut self, value: i64) {
        self.bulk(Digits::signed(value).as_bytes());
    }

    fn long(&mut self, text: &[u8]) {
        self.flush();
        self.out.make_room(text.len() + FRAME_LONG_BYTES_MAX);
        let out = &mut *self.out.buffer;
        out.reserve(text.len() + FRAME_LONG_BYTES_MAX);
        header(out, b'$', text.len());
        out.extend_from_slice(text);
        out.extend_from_slice(b"\r\n");
    }

    fn flush(&mut self) {
        self.out.extend_from_slice(&self.staging[..self.used]);
        self.used = 0;
    }

    pub fn finish(mut self) {
        self.flush();
    }
}

/// Copies a text of usually few bytes without calling out. Both are of one length.
#[inline(always)]
fn copy_short(to: &mut [u8], text: &[u8]) {
    match text.len() {
        0 => {}
        1 => to[0] = text[0],
        2..4 => copy_ends::<2>(to, text),
        4..8 => copy_ends::<4>(to, text),
        8..=16 => copy_ends::<8>(to, text),
        17..=32 => copy_ends::<16>(to, text),
        _ => to.copy_from_slice(text),
    }
}

/// Copies `N` to `2 * N` bytes: the first `N` and the last, which may overlap.
#[inline(always)]
fn copy_ends<const N: usize>(to: &mut [u8], text: &[u8]) {
    if let (Some(first), Some(last)) = (text.first_chunk::<N>(), text.last_chunk::<N>()) {
        if let Some(room) = to.first_chunk_mut::<N>() {
            *room = *first;
        }
        if let Some(room) = to.last_chunk_mut::<N>() {
            *room = *last;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::BulkWriter;
    use crate::{Resp, RespWriter, Sink};

    #[test]
    fn it_writes_what_a_sink_writes() {
        let lengths = [0, 1, 2, 3, 4, 7, 8, 9, 16, 17, 32, 33, 99, 100, 998, 999, 1000, 1001, 9000];
        let texts: Vec<Vec<u8>> =
            (0..300).map(|at| vec![b'a' + at as u8 % 26; lengths[at % lengths.len()]]).collect();
        let (mut slow, mut fast) = (b"+".to_vec(), b"+".to_vec());
        let mut sink = RespWriter::new(&mut slow, Resp::V2);
        let mut bulks = BulkWriter::new(&mut fast);
        for (at, text) in texts.iter().enumerate() {
            sink.bulk(text);
            bulks.bulk(text);
            sink.bulk_int(-(at as i64) * 77);
            bulks.bulk_int(-(at as i64) * 77);
        }
        bulks.finish();
        assert_eq!(slow, fast);
    }
}
