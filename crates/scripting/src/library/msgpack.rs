//! MessagePack, one piece at a time: the bytes of a scalar or of a header, and reading the next
//! one. Nesting and tables are the library's.

use std::ops::Range;

/// The next piece of a message.
#[derive(Clone, Debug, PartialEq)]
pub enum Piece {
    Nil,
    Bool(bool),
    Number(f64),
    /// Where in the message it lies.
    Text(Range<usize>),
    Array(usize),
    Map(usize),
}

/// Why a message can't be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    MissingBytes,
    BadFormat,
}

impl Malformed {
    pub fn text(self) -> &'static str {
        match self {
            Malformed::MissingBytes => "Missing bytes in input.",
            Malformed::BadFormat => "Bad data format in input.",
        }
    }
}

/// Reads a message from some place on.
pub struct Reader<'a> {
    message: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    pub fn new(message: &'a [u8], at: usize) -> Self {
        Reader { message, at }
    }

    /// How far it has read.
    pub fn at(&self) -> usize {
        self.at
    }

    pub fn piece(&mut self) -> Result<Piece, Malformed> {
        let [mark] = self.bytes()?;
        Ok(match mark {
            0x00..=0x7f => Piece::Number(f64::from(mark)),
            0x80..=0x8f => Piece::Map(usize::from(mark & 0x0f)),
            0x90..=0x9f => Piece::Array(usize::from(mark & 0x0f)),
            0xa0..=0xbf => self.text(usize::from(mark & 0x1f))?,
            0xc0 => Piece::Nil,
            0xc2 => Piece::Bool(false),
            0xc3 => Piece::Bool(true),
            0xca => Piece::Number(f64::from(f32::from_be_bytes(self.bytes()?))),
            0xcb => Piece::Number(f64::from_be_bytes(self.bytes()?)),
            0xcc => Piece::Number(f64::from(u8::from_be_bytes(self.bytes()?))),
            0xcd => Piece::Number(f64::from(u16::from_be_bytes(self.bytes()?))),
            0xce => Piece::Number(f64::from(u32::from_be_bytes(self.bytes()?))),
            // COMPAT: an unsigned integer of 64 bits is read as a signed one.
            0xcf | 0xd3 => Piece::Number(i64::from_be_bytes(self.bytes()?) as f64),
            0xd0 => Piece::Number(f64::from(i8::from_be_bytes(self.bytes()?))),
            0xd1 => Piece::Number(f64::from(i16::from_be_bytes(self.bytes()?))),
            0xd2 => Piece::Number(f64::from(i32::from_be_bytes(self.bytes()?))),
            0xd9 => {
                let len = usize::from(u8::from_be_bytes(self.bytes()?));
                self.text(len)?
            }
            0xda => {
                let len = self.short()?;
                self.text(len)?
            }
            0xdb => {
                let len = self.long()?;
                self.text(len)?
            }
            0xdc => Piece::Array(self.short()?),
            0xdd => Piece::Array(self.long()?),
            0xde => Piece::Map(self.short()?),
            0xdf => Piece::Map(self.long()?),
            0xe0..=0xff => Piece::Number(f64::from(mark as i8)),
            0xc1 | 0xc4..=0xc9 | 0xd4..=0xd8 => return Err(Malformed::BadFormat),
        })
    }

    fn short(&mut self) -> Result<usize, Malformed> {
        self.bytes().map(|bytes| usize::from(u16::from_be_bytes(bytes)))
    }

    fn long(&mut self) -> Result<usize, Malformed> {
        self.bytes().map(|bytes| u32::from_be_bytes(bytes) as usize)
    }

    fn bytes<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let bytes = self.message[self.at..].first_chunk().ok_or(Malformed::MissingBytes)?;
        self.at += N;
        Ok(*bytes)
    }

    fn text(&mut self, len: usize) -> Result<Piece, Malformed> {
        if self.message.len() - self.at < len {
            return Err(Malformed::MissingBytes);
        }
        self.at += len;
        Ok(Piece::Text(self.at - len..self.at))
    }
}

pub fn append_nil(out: &mut Vec<u8>) {
    out.push(0xc0);
}

pub fn append_bool(value: bool, out: &mut Vec<u8>) {
    out.push(if value { 0xc3 } else { 0xc2 });
}

/// Whole numbers of 64 bits are integers; others take 32 bits where those hold them exactly.
pub fn append_number(value: f64, out: &mut Vec<u8>) {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    if (-LIMIT..LIMIT).contains(&value) && value.trunc() == value {
        return append_integer(value as i64, out);
    }
    let single = value as f32;
    if f64::from(single) == value {
        out.push(0xca);
        out.extend_from_slice(&single.to_be_bytes());
    } else {
        out.push(0xcb);
        out.extend_from_slice(&value.to_be_bytes());
    }
}

fn append_integer(value: i64, out: &mut Vec<u8>) {
    let (mark, bytes) = match value {
        -32..=127 => return out.push(value as u8),
        128..=0xff => (0xcc, 1),
        0x100..=0xffff => (0xcd, 2),
        0x1_0000..=0xffff_ffff => (0xce, 4),
        0x1_0000_0000.. => (0xcf, 8),
        -0x80..=-33 => (0xd0, 1),
        -0x8000..=-0x81 => (0xd1, 2),
        -0x8000_0000..=-0x8001 => (0xd2, 4),
        _ => (0xd3, 8),
    };
    out.push(mark);
    out.extend_from_slice(&value.to_be_bytes()[8 - bytes..]);
}

pub fn append_text(text: &[u8], out: &mut Vec<u8>) {
    match text.len() {
        len @ 0..=31 => out.push(0xa0 | len as u8),
        len @ 32..=0xff => out.extend_from_slice(&[0xd9, len as u8]),
        len => append_length(len, [0xda, 0xdb], out),
    }
    out.extend_from_slice(text);
}

pub fn append_array_header(len: usize, out: &mut Vec<u8>) {
    match len {
        0..=15 => out.push(0x90 | len as u8),
        _ => append_length(len, [0xdc, 0xdd], out),
    }
}

pub fn append_map_header(len: usize, out: &mut Vec<u8>) {
    match len {
        0..=15 => out.push(0x80 | len as u8),
        _ => append_length(len, [0xde, 0xdf], out),
    }
}

/// A length of 16 bits behind the first mark, or of 32 behind the second. Nothing in a state's
/// memory is longer.
fn append_length(len: usize, marks: [u8; 2], out: &mut Vec<u8>) {
    match u16::try_from(len) {
        Ok(len) => {
            out.push(marks[0]);
            out.extend_from_slice(&len.to_be_bytes());
        }
        Err(_) => {
            out.push(marks[1]);
            out.extend_from_slice(&(len as u32).to_be_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(data: &[u8]) -> Result<Vec<Piece>, Malformed> {
        let mut reader = Reader::new(data, 0);
        let mut found = Vec::new();
        while reader.at() < data.len() {
            found.push(reader.piece()?);
        }
        Ok(found)
    }

    #[test]
    fn numbers_come_back() {
        let powers = (0..64).flat_map(|power| {
            let value = 2f64.powi(power);
            [value, value - 1.0, -value, -value - 1.0, value + 0.5]
        });
        for value in powers.chain([1e30, 1e300, 0.1, f64::INFINITY, f64::NEG_INFINITY]) {
            let mut out = Vec::new();
            append_number(value, &mut out);
            assert_eq!(pieces(&out), Ok(vec![Piece::Number(value)]), "{value}");
        }
    }

    /// Recorded from a real server.
    #[test]
    fn numbers_take_the_shortest_form() {
        let cases: [(f64, &[u8]); 6] = [
            (127.0, &[127]),
            (-32.0, &[0xe0]),
            (-0.0, &[0]),
            (9_223_372_036_854_775_808.0, &[202, 95, 0, 0, 0]),
            (-9_223_372_036_854_775_808.0, &[211, 128, 0, 0, 0, 0, 0, 0, 0]),
            (1e300, &[203, 126, 55, 228, 60, 136, 0, 117, 156]),
        ];
        for (value, bytes) in cases {
            let mut out = Vec::new();
            append_number(value, &mut out);
            assert_eq!(out, bytes, "{value}");
        }
        assert_eq!(pieces(&[0xcf, 255, 255, 255, 255, 255, 255, 255, 255]).unwrap().len(), 1);
    }

    #[test]
    fn lengths_take_the_shortest_form() {
        for (len, header) in [(31, 1), (32, 2), (255, 2), (256, 3), (65535, 3), (65536, 5)] {
            let text = vec![b'x'; len];
            let mut out = Vec::new();
            append_text(&text, &mut out);
            assert_eq!(out.len(), len + header);
            assert_eq!(pieces(&out), Ok(vec![Piece::Text(header..header + len)]));
        }
        for (len, header) in [(0, 1), (15, 1), (16, 3), (65535, 3), (65536, 5)] {
            let mut out = Vec::new();
            append_array_header(len, &mut out);
            append_map_header(len, &mut out);
            assert_eq!(out.len(), 2 * header);
            assert_eq!(pieces(&out), Ok(vec![Piece::Array(len), Piece::Map(len)]));
        }
    }

    /// CVE-2018-11218: every cut of a message is an error or a shorter message, never a read
    /// beyond its end.
    #[test]
    fn cut_messages_are_refused() {
        let mut message = Vec::new();
        append_text(&[b'x'; 70000], &mut message);
        append_number(1e300, &mut message);
        for len in (1..300).chain(69990..message.len()) {
            let _ = pieces(&message[..len]);
        }
        for mark in 0..=255u8 {
            let _ = pieces(&[mark]);
            let _ = pieces(&[mark, 0xff]);
            let _ = pieces(&[mark, 0xff, 0xff, 0xff, 0xff]);
        }
        assert_eq!(pieces(&[0xdb, 0xff, 0xff, 0xff, 0xff]), Err(Malformed::MissingBytes));
        assert_eq!(pieces(&[0xc1]), Err(Malformed::BadFormat));
    }
}
