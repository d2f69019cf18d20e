//! Bytes that are written: counted, added up, and handed on in large pieces.

use super::kind;
use russet_base::crc64::Crc64;
use russet_base::lzf::Compressor;
use russet_base::num;
use std::io::{self, Write};

/// Bytes that are gathered before they are handed on.
const BUFFER_BYTES: usize = 64 * 1024;
/// Room for what is written into memory: most of it is short.
const SHORT_BYTES: usize = 512;
/// Shorter strings are not compressed, and how much is to be gained at least.
const COMPRESSED_BYTES_MIN: usize = 21;
const COMPRESSION_GAIN_MIN: usize = 4;
/// Longest text that may be written as a number.
const INT_TEXT_BYTES_MAX: usize = 11;

pub struct Output<W> {
    sink: W,
    buffer: Vec<u8>,
    written: u64,
    sum: Crc64,
    /// For long strings, if they are compressed.
    compressor: Option<Box<Compressor>>,
}

impl Output<Vec<u8>> {
    /// Writes into memory.
    pub fn to_bytes(compresses: bool) -> Self {
        let mut output = Self::new(Vec::with_capacity(SHORT_BYTES), compresses);
        output.buffer.reserve(SHORT_BYTES);
        output
    }

    /// Shows what was written so far, in pieces, and forgets it but for its room. The sum says
    /// nothing of it then.
    pub fn drain<E>(&mut self, mut show: impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        let shown = show(&self.sink).and_then(|()| show(&self.buffer));
        self.sink.clear();
        self.sink.shrink_to(BUFFER_BYTES);
        self.buffer.clear();
        shown
    }

    /// Bytes since [`Output::drain`].
    pub fn pending_len(&self) -> usize {
        self.sink.len() + self.buffer.len()
    }
}

impl<W: Write> Output<W> {
    pub fn new(sink: W, compresses: bool) -> Self {
        let compressor = compresses.then(Box::default);
        Output { sink, buffer: Vec::new(), written: 0, sum: Crc64::default(), compressor }
    }

    /// How many bytes were written.
    pub fn offset(&self) -> u64 {
        self.written + self.buffer.len() as u64
    }

    fn hand_on(&mut self) -> io::Result<()> {
        self.sum.update(&self.buffer);
        self.written += self.buffer.len() as u64;
        self.sink.write_all(&self.buffer)?;
        self.buffer.clear();
        Ok(())
    }

    /// The sum of all that was written.
    pub fn sum(&mut self) -> io::Result<u64> {
        self.hand_on()?;
        Ok(self.sum.value())
    }

    /// Hands on what is left.
    pub fn finish(mut self) -> io::Result<W> {
        self.hand_on()?;
        self.sink.flush()?;
        Ok(self.sink)
    }

    pub fn bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= BUFFER_BYTES { self.hand_on() } else { Ok(()) }
    }

    pub fn byte(&mut self, byte: u8) -> io::Result<()> {
        self.bytes(&[byte])
    }

    pub fn length(&mut self, len: u64) -> io::Result<()> {
        match len {
            0..64 => self.byte(len as u8),
            64..16_384 => {
                self.bytes(&(u16::from(kind::LENGTH_14_BITS) << 8 | len as u16).to_be_bytes())
            }
            _ => match u32::try_from(len) {
                Ok(short) => {
                    self.byte(kind::LENGTH_32_BITS)?;
                    self.bytes(&short.to_be_bytes())
                }
                Err(_) => {
                    self.byte(kind::LENGTH_64_BITS)?;
                    self.bytes(&len.to_be_bytes())
                }
            },
        }
    }

    /// A string in its shortest form: a number if it is the text of one, or compressed.
    pub fn string(&mut self, text: &[u8]) -> io::Result<()> {
        if text.len() <= INT_TEXT_BYTES_MAX
            && let Some(value) = num::parse_i64(text)
            && self.short_int(value)?
        {
            return Ok(());
        }
        if text.len() >= COMPRESSED_BYTES_MIN
            && let Some(mut compressor) = self.compressor.take()
        {
            let packed = compressor.compress(text, text.len() - COMPRESSION_GAIN_MIN);
            let is_written = packed.map(|packed| self.compressed(packed, text.len()));
            self.compressor = Some(compressor);
            if let Some(is_written) = is_written {
                return is_written;
            }
        }
        self.length(text.len() as u64)?;
        self.bytes(text)
    }

    fn compressed(&mut self, packed: &[u8], len: usize) -> io::Result<()> {
        self.byte(kind::ENCODED | kind::ENCODED_LZF)?;
        self.length(packed.len() as u64)?;
        self.length(len as u64)?;
        self.bytes(packed)
    }

    /// A number as a string.
    pub fn int_string(&mut self, value: i64) -> io::Result<()> {
        if self.short_int(value)? {
            return Ok(());
        }
        let mut digits = [0; num::I64_TEXT_BYTES_MAX];
        let text = num::i64_bytes(value, &mut digits);
        self.length(text.len() as u64)?;
        self.bytes(text)
    }

    /// Writes a number if it fits into 32 bits; whether it did.
    fn short_int(&mut self, value: i64) -> io::Result<bool> {
        let little = value.to_le_bytes();
        let (encoding, len) = match value {
            -0x80..=0x7f => (kind::ENCODED_INT_8, 1),
            -0x8000..=0x7fff => (kind::ENCODED_INT_16, 2),
            -0x8000_0000..=0x7fff_ffff => (kind::ENCODED_INT_32, 4),
            _ => return Ok(false),
        };
        self.byte(kind::ENCODED | encoding)?;
        self.bytes(&little[..len])?;
        Ok(true)
    }

    pub fn millis(&mut self, at_ms: i64) -> io::Result<()> {
        self.bytes(&at_ms.to_le_bytes())
    }

    pub fn double(&mut self, value: f64) -> io::Result<()> {
        self.bytes(&value.to_le_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rdb::input::Input;

    #[test]
    fn what_was_written_is_read() {
        let texts: Vec<Vec<u8>> = ["", "a", "-1", "127", "128", "-32769", "2147483648", "01", "+1"]
            .map(|text| text.as_bytes().to_vec())
            .into_iter()
            .chain([20, 21, 63, 64, 16_383, 16_384, 100_000].map(|len| vec![b'z'; len]))
            .chain([(0..=255).collect(), (0..70_000).map(|at| (at * 7 / 3) as u8).collect()])
            .collect();
        for compresses in [false, true] {
            let mut output = Output::to_bytes(compresses);
            for text in &texts {
                output.string(text).unwrap();
            }
            for len in [0, 63, 64, 16_383, 16_384, u64::from(u32::MAX), u64::MAX] {
                output.length(len).unwrap();
            }
            for value in [0, -129, i64::MIN, i64::MAX] {
                output.int_string(value).unwrap();
            }
            let (offset, sum) = (output.offset(), output.sum().unwrap());
            let bytes = output.finish().unwrap();
            assert_eq!((bytes.len() as u64, russet_base::crc64::crc64(&bytes)), (offset, sum));
            assert_eq!(compresses, bytes.len() < 100_000);
            let mut input = Input::of_bytes(&bytes);
            for text in &texts {
                assert_eq!(&input.new_string().unwrap(), text);
            }
            for len in [0, 63, 64, 16_383, 16_384, u64::from(u32::MAX), u64::MAX] {
                assert_eq!(input.length().unwrap(), len);
            }
            for value in [0, -129, i64::MIN, i64::MAX] {
                assert_eq!(input.new_string().unwrap(), value.to_string().as_bytes());
            }
        }
    }
}
