//! A file of commands that is written from its beginning to its end, with one line that vouches for
//! all of it: the base of a log, if that is not to be an RDB file.

use super::sums::SumWriter;
use std::io::{self, Write};

pub struct SummedFile<W> {
    file: W,
    sums: SumWriter,
    bytes: u64,
}

impl<W> SummedFile<W> {
    pub fn new(file: W) -> Self {
        SummedFile { file, sums: SumWriter::default(), bytes: 0 }
    }

    pub(crate) fn file(&self) -> &W {
        &self.file
    }

    pub(crate) fn file_mut(&mut self) -> &mut W {
        &mut self.file
    }
}

impl<W: Write> SummedFile<W> {
    /// Writes the line, and gives the file back with its bytes.
    pub fn finish(mut self) -> io::Result<(W, u64)> {
        let line = self.sums.line(b"", 0);
        self.file.write_all(line.as_bytes())?;
        self.file.flush()?;
        Ok((self.file, self.bytes + line.len() as u64))
    }
}

impl<W: Write> Write for SummedFile<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.file.write(bytes)?;
        self.sums.add(&bytes[..count]);
        self.bytes += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}
