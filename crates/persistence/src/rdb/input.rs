//! Bytes that are read: in order, counted, added up, and never more of them held than have come.

use super::error::{Cause, RdbError, Result};
use super::kind;
use russet_base::crc64::Crc64;
use russet_base::{lzf, num};
use std::borrow::Cow;
use std::io::Read;

/// Bytes that are read ahead.
const BUFFER_BYTES: usize = 64 * 1024;
/// Room that a long string is given before its bytes are there.
const ROOM_BYTES_MAX: usize = 1024 * 1024;
/// Longest string: elements of collections have lengths of 32 bits.
pub const STRING_BYTES_MAX: u64 = u32::MAX as u64;
/// How a module's or a sorted set's text of a number may end.
const SCORE_TEXT_MAX: u8 = 252;

pub struct Input<R> {
    source: R,
    buffer: Box<[u8]>,
    /// What lies in the buffer and was not taken yet.
    at: usize,
    end: usize,
    /// What came before the buffer.
    before: u64,
    /// None if nobody asks for it.
    sum: Option<Crc64>,
    /// Up to here the buffer is in the sum.
    summed: usize,
    /// What is captured: bytes that are no longer in the buffer, and where the others begin.
    captured: Vec<u8>,
    capture_from: Option<usize>,
    /// Room for what is compressed, and for a value.
    packed: Vec<u8>,
    room: Vec<u8>,
}

/// What a string starts with.
enum Head {
    Length(u64),
    Encoded(u8),
}

/// A string that may have been written as a number.
pub enum Text<'t> {
    Int(i64),
    Bytes(&'t mut Vec<u8>),
}

impl<'b> Input<&'b [u8]> {
    /// Reads bytes that are there already.
    pub fn of_bytes(bytes: &'b [u8]) -> Self {
        Self::with_buffer(bytes, bytes.len().clamp(1, BUFFER_BYTES))
    }

    /// Reads values one by one, see [`Input::restart`]. Nobody asks for their sum.
    pub fn of_summed_values() -> Self {
        Input { sum: None, ..Self::with_buffer(&[], BUFFER_BYTES) }
    }

    /// Goes on with other bytes, as if they were the first.
    pub fn restart(&mut self, bytes: &'b [u8]) {
        self.source = bytes;
        (self.at, self.end, self.before, self.summed) = (0, 0, 0, 0);
    }
}

impl<R: Read> Input<R> {
    pub fn new(source: R) -> Self {
        Self::with_buffer(source, BUFFER_BYTES)
    }

    fn with_buffer(source: R, bytes: usize) -> Self {
        let buffer = vec![0; bytes].into_boxed_slice();
        Input {
            source,
            buffer,
            at: 0,
            end: 0,
            before: 0,
            sum: Some(Crc64::default()),
            summed: 0,
            captured: Vec::new(),
            capture_from: None,
            packed: Vec::new(),
            room: Vec::new(),
        }
    }

    /// How many bytes were taken.
    pub fn offset(&self) -> u64 {
        self.before + self.at as u64
    }

    /// The sum of all bytes that were taken.
    pub fn sum(&mut self) -> u64 {
        self.add_up();
        self.sum.map_or(0, Crc64::value)
    }

    fn add_up(&mut self) {
        if let Some(sum) = &mut self.sum {
            sum.update(&self.buffer[self.summed..self.at]);
        }
        self.summed = self.at;
    }

    /// What `pass` passes over, as it stands there, and what it gives.
    pub fn capture<T>(&mut self, pass: impl FnOnce(&mut Self) -> Result<T>) -> Result<(T, &[u8])> {
        self.captured.clear();
        self.captured.shrink_to(BUFFER_BYTES);
        self.capture_from = Some(self.at);
        let passed = pass(self);
        let from = self.capture_from.take().unwrap_or(self.at);
        let passed = passed?;
        // As a rule all of it is still in the buffer.
        if self.captured.is_empty() {
            return Ok((passed, &self.buffer[from..self.at]));
        }
        self.captured.extend_from_slice(&self.buffer[from..self.at]);
        Ok((passed, &self.captured))
    }

    fn fail(&self, cause: Cause) -> RdbError {
        RdbError { offset: self.offset(), cause }
    }

    pub fn corrupt(&self, reason: impl Into<Cow<'static, str>>) -> RdbError {
        self.fail(Cause::Corrupt(reason.into()))
    }

    pub fn unsupported(&self, what: impl Into<Cow<'static, str>>) -> RdbError {
        self.fail(Cause::Unsupported(what.into()))
    }

    /// Reads ahead once all that was is taken.
    #[cold]
    fn refill(&mut self) -> Result<()> {
        debug_assert_eq!(self.at, self.end);
        self.add_up();
        if let Some(from) = &mut self.capture_from {
            self.captured.extend_from_slice(&self.buffer[*from..self.at]);
            *from = 0;
        }
        self.before += self.at as u64;
        (self.at, self.end, self.summed) = (0, 0, 0);
        self.end = loop {
            match self.source.read(&mut self.buffer) {
                Ok(0) => return Err(self.fail(Cause::Ended)),
                Ok(read) => break read,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.fail(Cause::Read(error))),
            }
        };
        Ok(())
    }

    #[inline]
    pub fn byte(&mut self) -> Result<u8> {
        if self.at == self.end {
            self.refill()?;
        }
        self.at += 1;
        Ok(self.buffer[self.at - 1])
    }

    pub fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut out = [0; N];
        if let Some(bytes) = self.buffer[self.at..self.end].first_chunk() {
            out = *bytes;
            self.at += N;
            return Ok(out);
        }
        for byte in &mut out {
            *byte = self.byte()?;
        }
        Ok(out)
    }

    /// Appends so many bytes to `out`, which grows as they come.
    fn bytes_into(&mut self, len: u64, out: &mut Vec<u8>) -> Result<()> {
        if len > STRING_BYTES_MAX {
            return Err(self.corrupt(format!("a length of {len}")));
        }
        let mut left = len as usize;
        out.reserve(left.min(ROOM_BYTES_MAX));
        while left > 0 {
            if self.at == self.end {
                self.refill()?;
            }
            let taken = left.min(self.end - self.at);
            out.extend_from_slice(&self.buffer[self.at..self.at + taken]);
            self.at += taken;
            left -= taken;
        }
        Ok(())
    }

    /// Passes over so many bytes.
    fn skip(&mut self, len: u64) -> Result<()> {
        if len > STRING_BYTES_MAX {
            return Err(self.corrupt(format!("a length of {len}")));
        }
        let mut left = len as usize;
        while left > self.end - self.at {
            left -= self.end - self.at;
            self.at = self.end;
            self.refill()?;
        }
        self.at += left;
        Ok(())
    }

    /// Passes over a string, however it is encoded.
    pub fn skip_string(&mut self) -> Result<()> {
        match self.head()? {
            Head::Length(len) => self.skip(len),
            Head::Encoded(kind::ENCODED_INT_8) => self.skip(1),
            Head::Encoded(kind::ENCODED_INT_16) => self.skip(2),
            Head::Encoded(kind::ENCODED_INT_32) => self.skip(4),
            Head::Encoded(kind::ENCODED_LZF) => {
                let packed_len = self.length()?;
                self.length()?;
                self.skip(packed_len)
            }
            Head::Encoded(_) => Err(self.corrupt("no string is encoded so")),
        }
    }

    fn head(&mut self) -> Result<Head> {
        let first = self.byte()?;
        Ok(match first >> 6 {
            0 => Head::Length(u64::from(first)),
            1 => Head::Length(u64::from(first & 0x3f) << 8 | u64::from(self.byte()?)),
            3 => Head::Encoded(first & 0x3f),
            _ => match first {
                kind::LENGTH_32_BITS => Head::Length(u32::from_be_bytes(self.array()?).into()),
                kind::LENGTH_64_BITS => Head::Length(u64::from_be_bytes(self.array()?)),
                _ => return Err(self.corrupt("no length starts so")),
            },
        })
    }

    pub fn length(&mut self) -> Result<u64> {
        match self.head()? {
            Head::Length(len) => Ok(len),
            Head::Encoded(_) => Err(self.corrupt("a string where a length is due")),
        }
    }

    /// Reads a string into `room`, in place of what is there.
    pub fn text<'t>(&mut self, room: &'t mut Vec<u8>) -> Result<Text<'t>> {
        room.clear();
        let encoding = match self.head()? {
            Head::Length(len) => {
                self.bytes_into(len, room)?;
                return Ok(Text::Bytes(room));
            }
            Head::Encoded(encoding) => encoding,
        };
        Ok(match encoding {
            kind::ENCODED_INT_8 => Text::Int(i8::from_le_bytes(self.array()?).into()),
            kind::ENCODED_INT_16 => Text::Int(i16::from_le_bytes(self.array()?).into()),
            kind::ENCODED_INT_32 => Text::Int(i32::from_le_bytes(self.array()?).into()),
            kind::ENCODED_LZF => {
                let (packed_len, len) = (self.length()?, self.length()?);
                let len = usize::try_from(len).ok().filter(|len| *len as u64 <= STRING_BYTES_MAX);
                let mut packed = std::mem::take(&mut self.packed);
                packed.clear();
                self.bytes_into(packed_len, &mut packed)?;
                if !len.is_some_and(|len| lzf::decompress_into(&packed, len, room)) {
                    return Err(self.corrupt("a string that can't be decompressed"));
                }
                packed.shrink_to(BUFFER_BYTES);
                self.packed = packed;
                Text::Bytes(room)
            }
            _ => return Err(self.corrupt("no string is encoded so")),
        })
    }

    /// Room for a value, which is to be kept for the next.
    pub fn take_room(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.room)
    }

    pub fn keep_room(&mut self, mut room: Vec<u8>) {
        room.shrink_to(BUFFER_BYTES);
        self.room = room;
    }

    /// As [`Input::text`], numbers as their digits.
    pub fn string<'t>(&mut self, room: &'t mut Vec<u8>) -> Result<&'t [u8]> {
        match self.text(room)? {
            Text::Bytes(_) => {}
            Text::Int(value) => num::write_i64(room, value),
        }
        Ok(room)
    }

    pub fn new_string(&mut self) -> Result<Vec<u8>> {
        let mut room = Vec::new();
        self.string(&mut room)?;
        Ok(room)
    }

    /// Milliseconds since the epoch.
    pub fn millis(&mut self) -> Result<i64> {
        Ok(i64::from_le_bytes(self.array()?))
    }

    pub fn double(&mut self) -> Result<f64> {
        Ok(f64::from_le_bytes(self.array()?))
    }

    /// A double as versions before 8 wrote it.
    pub fn text_double(&mut self) -> Result<f64> {
        match self.byte()? {
            255 => Ok(f64::NEG_INFINITY),
            254 => Ok(f64::INFINITY),
            253 => Ok(f64::NAN),
            len @ 0..=SCORE_TEXT_MAX => {
                let mut text = Vec::new();
                self.bytes_into(len.into(), &mut text)?;
                let text = text.trim_ascii();
                num::parse_f64(text).ok_or_else(|| self.corrupt("a score that is no number"))
            }
        }
    }

    /// What was not taken: behind an RDB preamble comes a log.
    pub fn into_rest(self) -> impl Read + use<R> {
        let ahead = self.buffer[self.at..self.end].to_vec();
        std::io::Cursor::new(ahead).chain(self.source)
    }

    /// Whether nothing more comes.
    pub fn is_at_end(&mut self) -> Result<bool> {
        if self.at < self.end {
            return Ok(false);
        }
        match self.refill() {
            Ok(()) => Ok(false),
            Err(RdbError { cause: Cause::Ended, .. }) => Ok(true),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_and_strings() {
        let bytes = [0x05, 0x41, 0x02, 0x80, 0, 1, 0, 0, 0x81, 0, 0, 0, 1, 0, 0, 0, 0];
        let mut input = Input::new(&bytes[..]);
        for len in [5, 0x102, 0x10000, 1 << 32] {
            assert_eq!(input.length().unwrap(), len);
        }
        assert!(input.is_at_end().unwrap());
        let bytes = b"\x03abc\xc0\xff\xc1\x00\x01\xc2\x00\x00\x00\x80\xc3\x05\x14\x00a\xe0\x0a\x00";
        let mut input = Input::of_bytes(bytes);
        for text in ["abc", "-1", "256", "-2147483648", "aaaaaaaaaaaaaaaaaaaa"] {
            assert_eq!(input.new_string().unwrap(), text.as_bytes());
        }
        assert_eq!(input.sum(), russet_base::crc64::crc64(bytes));
        assert_eq!(input.offset(), bytes.len() as u64);
    }

    /// A length is not believed: what it promises is not there, and not allocated.
    #[test]
    fn broken_lengths_are_errors() {
        for bytes in [
            &b"\x81\x7f\xff\xff\xff\xff\xff\xff\xff"[..],
            b"\x80\xff\xff\xff\xff",
            b"\xc3\x05\x80\xff\xff\xff\xff\x00a\xe0\x0a\x00",
            b"\xc3\x81\xff\xff\xff\xff\xff\xff\xff\xff\x01",
            b"\x82\x01\x01",
            b"\xc4",
            b"\x41",
            b"",
        ] {
            Input::of_bytes(bytes).new_string().unwrap_err();
        }
    }

    #[test]
    fn what_is_captured_is_what_was_passed() {
        let mut bytes = Vec::new();
        for len in [3usize, 300, 70_000, 5] {
            bytes.push(kind::LENGTH_32_BITS);
            bytes.extend((len as u32).to_be_bytes());
            bytes.extend((0..len).map(|at| at as u8));
        }
        bytes.extend(b"\xc0\xff\xc1\x00\x01\xc2\x00\x00\x00\x80\xc3\x05\x14\x00a\xe0\x0a\x00");
        let mut input = Input::new(&bytes[..]);
        let mut captured = Vec::new();
        for _ in 0..8 {
            let ((), piece) = input.capture(Input::skip_string).unwrap();
            captured.extend_from_slice(piece);
        }
        assert_eq!(captured, bytes);
        assert_eq!(input.sum(), russet_base::crc64::crc64(&bytes));
        assert!(input.skip_string().is_err());
    }

    #[test]
    fn small_reads_see_the_same_as_large_ones() {
        struct OneByOne<'b>(&'b [u8]);
        impl Read for OneByOne<'_> {
            fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
                self.0.read(&mut out[..1])
            }
        }
        let mut bytes = vec![0x43, 0xe8];
        bytes.extend([7; 1000]);
        bytes.extend(1.5f64.to_le_bytes());
        let mut input = Input::new(OneByOne(&bytes));
        assert_eq!(input.new_string().unwrap(), [7; 1000]);
        assert_eq!(input.double().unwrap(), 1.5);
        assert_eq!(input.sum(), russet_base::crc64::crc64(&bytes));
    }
}
