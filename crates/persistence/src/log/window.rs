//! A file that is read from some offset to its end through a window, which is as long as what is
//! looked at, and no longer: no part of a file is in memory that nobody needs.

use std::io::{self, Read};

/// Bytes that are read at once.
const READ_BYTES: usize = 1 << 20;

pub(super) struct Window<R> {
    source: R,
    buffer: Vec<u8>,
    /// Where in the buffer it begins.
    start: usize,
    /// And where in the file.
    at: u64,
    is_ended: bool,
}

impl<R: Read> Window<R> {
    /// `source` gives the bytes of the file from `at` on.
    pub fn new(source: R, at: u64) -> Self {
        Window { source, buffer: Vec::new(), start: 0, at, is_ended: false }
    }

    /// The offset in the file of its first byte.
    pub fn at(&self) -> u64 {
        self.at
    }

    pub fn bytes(&self) -> &[u8] {
        &self.buffer[self.start..]
    }

    /// Reads more behind what is there, about as much again; false at the end of the file.
    pub fn more(&mut self) -> io::Result<bool> {
        if self.is_ended {
            return Ok(false);
        }
        self.buffer.drain(..self.start);
        self.start = 0;
        let wanted = READ_BYTES.max(self.buffer.len());
        self.buffer.reserve(wanted);
        let read = (&mut self.source).take(wanted as u64).read_to_end(&mut self.buffer)?;
        self.is_ended = read < wanted;
        Ok(read > 0)
    }

    /// Reads on until so many bytes are there, or the file ends.
    pub fn fill(&mut self, len: usize) -> io::Result<()> {
        while self.bytes().len() < len && self.more()? {}
        Ok(())
    }

    /// The first bytes are done with.
    pub fn pass(&mut self, len: usize) {
        debug_assert!(len <= self.bytes().len());
        self.start += len;
        self.at += len as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_grows_with_what_is_looked_at_only() {
        let file: Vec<u8> = (0..3 * READ_BYTES).map(|at| (at % 251) as u8).collect();
        let mut window = Window::new(&file[10..], 10);
        assert!(window.bytes().is_empty());
        while window.bytes().is_empty() && window.more().unwrap() {
            assert!(window.bytes().len() <= READ_BYTES);
            let at = window.at() as usize;
            assert_eq!(window.bytes(), &file[at..at + window.bytes().len()]);
            window.pass(window.bytes().len());
        }
        assert_eq!(window.at(), file.len() as u64);
        assert!(!window.more().unwrap());

        let mut window = Window::new(&file[..], 0);
        window.fill(2 * READ_BYTES + 1).unwrap();
        assert!(window.bytes().len() > 2 * READ_BYTES);
        window.fill(usize::MAX).unwrap();
        assert_eq!(window.bytes(), file);
    }
}
