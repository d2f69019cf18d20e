//! A long argument on its way in: read from the socket straight into a buffer of its own, which
//! becomes the value if the command stores it.

use super::stream::Stream;
use std::io::{self, IoSliceMut};
use std::sync::Arc;

/// How far a long argument's buffer is cleared ahead of what was read into it.
const WINDOW_BYTES: usize = 1024 * 1024;
/// Its buffer grows by this factor. Memory that nothing was read into is only promised, not taken
/// from the system; but each step copies what was read so far, which is then held twice. So few
/// steps, the last of which comes early.
const GROWTH: usize = 16;
/// A client that announces much and sends nothing is given this much.
const FIRST_BYTES_MAX: usize = WINDOW_BYTES;

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
        let mut bytes = Vec::with_capacity(room_for(begin.len(), len));
        bytes.extend_from_slice(begin);
        LongInput { bytes, filled: begin.len(), len }
    }

    pub fn filled_bytes(&self) -> usize {
        self.filled
    }

    pub fn capacity_bytes(&self) -> usize {
        self.bytes.capacity()
    }

    pub fn is_complete(&self) -> bool {
        self.filled == self.len
    }

    /// Reads as much as there is room for, and what comes behind the argument into `behind`; how
    /// much came in all, and how much there was room for.
    pub fn read(&mut self, stream: &mut Stream, behind: &mut [u8]) -> io::Result<(usize, usize)> {
        self.clear_ahead();
        let own = &mut self.bytes[self.filled..];
        let own_bytes = own.len();
        let behind_bytes = if self.filled + own_bytes == self.len { behind.len() } else { 0 };
        let mut slices = [IoSliceMut::new(own), IoSliceMut::new(&mut behind[..behind_bytes])];
        let count = stream.read_vectored(&mut slices)?;
        self.filled += count.min(own_bytes);
        Ok((count, own_bytes + behind_bytes))
    }

    fn clear_ahead(&mut self) {
        if self.filled < self.bytes.len() {
            return;
        }
        if self.filled == self.bytes.capacity() {
            self.bytes.reserve_exact(room_for(self.filled, self.len) - self.filled);
        }
        let window_end = self.len.min(self.filled + WINDOW_BYTES);
        self.bytes.resize(window_end.min(self.bytes.capacity()), 0);
    }

    /// The argument, in a buffer of exactly its size.
    pub fn finish(self) -> Arc<Vec<u8>> {
        debug_assert!(self.is_complete() && self.bytes.len() == self.len);
        Arc::new(self.bytes)
    }
}

/// How large the buffer of an argument of `len` bytes is made when it holds `filled` of them and
/// more come: `len` divided by as many growths as leave room for some of those.
fn room_for(filled: usize, len: usize) -> usize {
    let mut room = len;
    while room > FIRST_BYTES_MAX && room / GROWTH > filled {
        room = room.div_ceil(GROWTH);
    }
    room.clamp(len.min(FIRST_BYTES_MAX), len)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1024 * 1024;

    /// The rooms that an argument's buffer has had until it is complete.
    fn rooms(len: usize) -> Vec<usize> {
        let mut rooms = vec![room_for(0, len)];
        while rooms[rooms.len() - 1] < len {
            rooms.push(room_for(rooms[rooms.len() - 1], len));
            assert!(rooms.is_sorted_by(|before, after| before < after), "{rooms:?}");
        }
        rooms
    }

    #[test]
    fn what_is_announced_and_not_sent_costs_little() {
        assert_eq!(room_for(0, 512 * MIB), FIRST_BYTES_MAX);
        for len in [64 * 1024, 100_000, MIB, MIB + 1, 8 * MIB, 9 * MIB, 77_777_777, 512 * MIB] {
            assert!(room_for(0, len) <= FIRST_BYTES_MAX.max(64 * 1024));
            for filled in [1, 1000, len / 100, len / 9, len / 2, len - 1] {
                let room = room_for(filled, len);
                assert!(room > filled && room <= len, "{filled} of {len}: {room}");
                assert!(room <= FIRST_BYTES_MAX + GROWTH * (filled + 1), "{filled} of {len}");
            }
        }
    }

    #[test]
    fn what_is_held_twice_while_growing_is_little() {
        for len in [9 * MIB, 100 * MIB, 128 * MIB, 512 * MIB, 77_777_777] {
            let rooms = rooms(len);
            let [.., before, last] = rooms[..] else { panic!("{len}: {rooms:?}") };
            assert_eq!(last, len);
            assert!(2 * before <= len, "{len}: {rooms:?}");
        }
    }
}
