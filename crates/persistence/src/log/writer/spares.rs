//! Room of blocks that are durable, kept for the next ones.
//!
//! With `everysec` the blocks of a second wait for its sync. To ask the system for their memory
//! each time, and to give it back, costs more than to fill it.

/// What is kept while there is something to write, and how large the room of one block may be.
const BYTES_MAX: usize = 64 << 20;
pub(super) const ROOM_BYTES_MAX: usize = 2 << 20;

#[derive(Default)]
pub(super) struct Spares {
    rooms: Vec<Vec<u8>>,
    bytes: usize,
}

impl Spares {
    pub fn take(&mut self) -> Option<Vec<u8>> {
        let room = self.rooms.pop()?;
        self.bytes -= room.capacity();
        Some(room)
    }

    pub fn keep(&mut self, room: Vec<u8>) {
        let bytes = room.capacity();
        if bytes <= ROOM_BYTES_MAX && self.bytes + bytes <= BYTES_MAX {
            self.bytes += bytes;
            self.rooms.push(room);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_bounded() {
        let mut spares = Spares::default();
        spares.keep(Vec::with_capacity(ROOM_BYTES_MAX + 1));
        assert!(spares.take().is_none());
        for _ in 0..2 * BYTES_MAX / ROOM_BYTES_MAX {
            spares.keep(Vec::with_capacity(ROOM_BYTES_MAX));
        }
        assert_eq!(spares.rooms.len(), BYTES_MAX / ROOM_BYTES_MAX);
        while spares.take().is_some() {}
        assert_eq!(spares.bytes, 0);
    }
}
