//! Streams: to be filled.

#[derive(Clone, Default)]
pub struct Stream;

impl Stream {
    pub fn len(&self) -> usize {
        0
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn memory_bytes(&self) -> usize {
        0
    }
}
