//! Requests on their way in, with what their parser knows of them. A long argument is read from the
//! socket straight into a buffer of its own, which becomes the value if the command stores it.

use super::stream::Stream;
use russet_protocol::Batch;
use std::io::{self, IoSliceMut};
use std::ops::Range;
use std::sync::Arc;

/// How much is read at once, unless what is under way is known to want more.
pub const READ_BYTES: usize = 64 * 1024;
/// The most that is read at once behind a request that wants more.
const READ_BYTES_MAX: usize = 1 << 24;
/// How much of a long argument is read at once. Room for it is cleared just before, and taken from
/// the system by that: others should not have to wait for more.
const WINDOW_BYTES: usize = 256 * 1024;
/// A client that announces much and sends nothing is given this much. Once it is full there is room
/// for all: memory that nothing was read into is only promised, not taken from the system, and each
/// further step would copy what was read so far, which takes the loop as long as reading it.
const FIRST_BYTES_MAX: usize = 1024 * 1024;

/// Requests that were not run yet, the last of which may be cut short.
#[derive(Default)]
pub struct Input {
    pub bytes: Vec<u8>,
    /// The long argument that the bytes break off in.
    pub long: Option<Box<LongInput>>,
    pub batch: Batch,
}

impl Input {
    pub fn of_bytes(bytes: Vec<u8>) -> Self {
        Input { bytes, ..Input::default() }
    }

    /// All that came, long arguments included.
    pub fn len_bytes(&self) -> usize {
        let long_bytes = self.long.as_ref().map_or(0, |long| long.filled_bytes());
        self.bytes.len() + long_bytes + self.batch.supplied_bytes()
    }

    /// What that was taken from the system for.
    pub fn capacity_bytes(&self) -> usize {
        let long_bytes = self.long.as_ref().map_or(0, |long| long.taken_bytes());
        self.bytes.capacity() + long_bytes + self.batch.supplied_bytes()
    }

    /// If `bytes`, which follow what the batch has consumed, break off in a long argument, that is
    /// read apart from now on: returns which part of them was taken for it.
    pub fn begin_long(&mut self, bytes: &[u8]) -> Option<Range<usize>> {
        let arg = self.batch.long_arg()?;
        let end = bytes.len().min(arg.start + arg.len);
        let long = LongInput::new(bytes.get(arg.start..end)?, arg.len);
        if long.is_complete() {
            self.batch.supply(long.finish());
        } else {
            self.long = Some(Box::new(long));
        }
        Some(arg.start..end)
    }

    /// Reads behind what is there, with the help of a buffer of [`READ_BYTES`]: how much came, and
    /// how much there was room for.
    pub fn read(&mut self, stream: &mut Stream, buffer: &mut [u8]) -> io::Result<(usize, usize)> {
        match self.long.take() {
            Some(long) => self.read_long(long, stream, buffer),
            None => self.read_behind(stream, buffer),
        }
    }

    /// Reads a long argument, and what comes behind it.
    fn read_long(
        &mut self,
        mut long: Box<LongInput>,
        stream: &mut Stream,
        buffer: &mut [u8],
    ) -> io::Result<(usize, usize)> {
        let before = long.filled_bytes();
        let result = long.read(stream, buffer);
        let behind = result.as_ref().map_or(0, |(count, _)| count + before - long.filled_bytes());
        self.bytes.extend_from_slice(&buffer[..behind]);
        if long.is_complete() {
            self.batch.supply(long.finish());
        } else {
            self.long = Some(long);
        }
        result
    }

    /// Little is copied from the buffer, because room for it would have to be cleared first.
    fn read_behind(
        &mut self,
        stream: &mut Stream,
        buffer: &mut [u8],
    ) -> io::Result<(usize, usize)> {
        let have = self.bytes.len();
        let wanted = self.batch.needed().saturating_sub(have).clamp(READ_BYTES, READ_BYTES_MAX);
        if wanted <= buffer.len() {
            let count = stream.read(&mut buffer[..wanted])?;
            self.bytes.extend_from_slice(&buffer[..count]);
            return Ok((count, wanted));
        }
        self.bytes.resize(have + wanted, 0);
        let result = stream.read(&mut self.bytes[have..]);
        self.bytes.truncate(have + *result.as_ref().unwrap_or(&0));
        Ok((result?, wanted))
    }
}

/// The bytes of one argument, as far as they have come.
pub struct LongInput {
    /// As long as it was cleared so far: room that is read into must hold something.
    bytes: Vec<u8>,
    filled: usize,
    len: usize,
}

impl LongInput {
    /// `begin` is what is there already of `len` bytes.
    pub fn new(begin: &[u8], len: usize) -> Self {
        let mut bytes = Vec::new();
        // Where there is no room for all, the next read says so.
        if begin.len() < FIRST_BYTES_MAX || bytes.try_reserve_exact(len).is_err() {
            bytes.reserve_exact(FIRST_BYTES_MAX.min(len).max(begin.len()));
        }
        bytes.extend_from_slice(begin);
        LongInput { bytes, filled: begin.len(), len }
    }

    pub fn filled_bytes(&self) -> usize {
        self.filled
    }

    /// What was taken from the system.
    pub fn taken_bytes(&self) -> usize {
        self.bytes.len()
    }

    pub fn is_complete(&self) -> bool {
        self.filled == self.len
    }

    /// Reads as much as there is room for, and what comes behind the argument into `behind`; how
    /// much came in all, and how much there was room for.
    pub fn read(&mut self, stream: &mut Stream, behind: &mut [u8]) -> io::Result<(usize, usize)> {
        self.clear_ahead()?;
        let own = &mut self.bytes[self.filled..];
        let own_bytes = own.len();
        let behind_bytes = if self.filled + own_bytes == self.len { behind.len() } else { 0 };
        let mut slices = [IoSliceMut::new(own), IoSliceMut::new(&mut behind[..behind_bytes])];
        let count = stream.read_vectored(&mut slices)?;
        self.filled += count.min(own_bytes);
        Ok((count, own_bytes + behind_bytes))
    }

    fn clear_ahead(&mut self) -> io::Result<()> {
        if self.filled < self.bytes.len() {
            return Ok(());
        }
        if self.filled == self.bytes.capacity() {
            self.bytes.try_reserve_exact(self.len - self.filled)?;
        }
        let window_end = self.len.min(self.filled + WINDOW_BYTES);
        self.bytes.resize(window_end.min(self.bytes.capacity()), 0);
        Ok(())
    }

    /// The argument, in a buffer of exactly its size.
    pub fn finish(self) -> Arc<Vec<u8>> {
        debug_assert!(self.is_complete() && self.bytes.len() == self.len);
        Arc::new(self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sizes of the buffer until an argument is complete, if it comes window by window.
    fn capacities(len: usize) -> Vec<usize> {
        let mut input = LongInput::new(b"begin", len);
        let mut capacities = vec![input.bytes.capacity()];
        while !input.is_complete() {
            input.clear_ahead().unwrap();
            assert!(input.taken_bytes() <= input.filled + WINDOW_BYTES);
            input.filled = input.bytes.len();
            capacities.push(input.bytes.capacity());
        }
        assert_eq!(input.finish().len(), len);
        capacities.dedup();
        capacities
    }

    #[test]
    fn what_is_announced_and_not_sent_costs_little() {
        for len in [100_000, FIRST_BYTES_MAX, FIRST_BYTES_MAX + 1, 77_777_777] {
            let first = LongInput::new(b"begin", len);
            assert!(first.bytes.capacity() <= FIRST_BYTES_MAX && first.taken_bytes() == 5, "{len}");
        }
    }

    #[test]
    fn the_buffer_has_the_size_of_its_argument_and_is_copied_once_at_most() {
        assert_eq!(capacities(100_000), [100_000]);
        assert_eq!(capacities(FIRST_BYTES_MAX), [FIRST_BYTES_MAX]);
        assert_eq!(capacities(9_999_999), [FIRST_BYTES_MAX, 9_999_999]);
    }

    /// What came while its client was blocked was copied once more.
    #[test]
    fn much_that_is_there_already_has_room_for_the_rest() {
        let begin = vec![1; FIRST_BYTES_MAX];
        assert_eq!(LongInput::new(&begin, 9_999_999).bytes.capacity(), 9_999_999);
        let mut too_long = LongInput::new(&begin, usize::MAX / 2 + 1);
        assert!(too_long.clear_ahead().is_err());
    }

    #[test]
    fn what_there_is_no_memory_for_is_an_error() {
        let mut input = LongInput::new(b"begin", usize::MAX / 2 + 1);
        (input.bytes, input.filled) = (vec![0], 1);
        assert!(input.clear_ahead().is_err());
    }
}
