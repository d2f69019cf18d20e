//! Data for other programs: as commands that make it, and as lines of JSON. Entry by entry, so that
//! nothing has to be in memory at once.

pub mod commands;
pub mod json;
pub mod survey;

use std::io::{self, Write};

/// Bytes that are gathered before they are written.
const BUFFER_BYTES: usize = 256 * 1024;

/// Gathers bytes, and keeps the first error, so that what walks a value need not.
struct Sink<W> {
    out: W,
    buffer: Vec<u8>,
    outcome: io::Result<()>,
}

impl<W: Write> Sink<W> {
    fn new(out: W) -> Self {
        Sink { out, buffer: Vec::with_capacity(BUFFER_BYTES), outcome: Ok(()) }
    }

    #[inline]
    fn put(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= BUFFER_BYTES {
            self.write();
        }
    }

    fn write(&mut self) {
        if self.outcome.is_ok() {
            self.outcome = self.out.write_all(&self.buffer);
        }
        self.buffer.clear();
    }

    /// Whether all was well so far.
    fn outcome(&mut self) -> io::Result<()> {
        std::mem::replace(&mut self.outcome, Ok(()))
    }

    fn finish(mut self) -> io::Result<W> {
        self.write();
        self.outcome?;
        self.out.flush()?;
        Ok(self.out)
    }
}
