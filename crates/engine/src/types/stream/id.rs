//! The name of an entry: milliseconds and a number within them. It only ever grows in a stream.

use russet_base::num;

/// Longest text of an ID: two numbers of twenty digits and a dash.
pub const ID_TEXT_BYTES_MAX: usize = 41;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId {
    pub ms: u64,
    pub seq: u64,
}

impl StreamId {
    pub const MIN: Self = StreamId { ms: 0, seq: 0 };
    pub const MAX: Self = StreamId { ms: u64::MAX, seq: u64::MAX };

    pub const fn new(ms: u64, seq: u64) -> Self {
        StreamId { ms, seq }
    }

    /// The ID right behind this one.
    pub const fn next(self) -> Option<Self> {
        match (self.seq.checked_add(1), self.ms.checked_add(1)) {
            (Some(seq), _) => Some(StreamId { ms: self.ms, seq }),
            (None, Some(ms)) => Some(StreamId { ms, seq: 0 }),
            (None, None) => None,
        }
    }

    /// The ID right before this one.
    pub const fn previous(self) -> Option<Self> {
        match (self.seq.checked_sub(1), self.ms.checked_sub(1)) {
            (Some(seq), _) => Some(StreamId { ms: self.ms, seq }),
            (None, Some(ms)) => Some(StreamId { ms, seq: u64::MAX }),
            (None, None) => None,
        }
    }

    /// Its sixteen bytes in the order that sorts as IDs do.
    pub fn to_be_bytes(self) -> [u8; 16] {
        (u128::from(self.ms) << 64 | u128::from(self.seq)).to_be_bytes()
    }

    /// Its text, without an allocation.
    pub fn text(self) -> IdText {
        let mut text = IdText { bytes: [0; ID_TEXT_BYTES_MAX], len: 0 };
        let mut digits = [0; num::I64_TEXT_BYTES_MAX];
        text.push(num::u64_bytes(self.ms, &mut digits));
        text.push(b"-");
        text.push(num::u64_bytes(self.seq, &mut digits));
        text
    }
}

impl std::fmt::Display for StreamId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}-{}", self.ms, self.seq)
    }
}

/// The text of an ID.
pub struct IdText {
    bytes: [u8; ID_TEXT_BYTES_MAX],
    len: usize,
}

impl IdText {
    fn push(&mut self, part: &[u8]) {
        self.bytes[self.len..self.len + part.len()].copy_from_slice(part);
        self.len += part.len();
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// A stretch of IDs, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdRange {
    pub first: StreamId,
    pub last: StreamId,
}

impl IdRange {
    pub const ALL: Self = IdRange { first: StreamId::MIN, last: StreamId::MAX };

    pub const fn one(id: StreamId) -> Self {
        IdRange { first: id, last: id }
    }

    /// All from this one on.
    pub const fn from(first: StreamId) -> Self {
        IdRange { first, last: StreamId::MAX }
    }
}

#[cfg(test)]
mod tests {
    use super::StreamId;

    #[test]
    fn neighbours_carry_and_end() {
        assert_eq!(StreamId::new(1, u64::MAX).next(), Some(StreamId::new(2, 0)));
        assert_eq!(StreamId::new(2, 0).previous(), Some(StreamId::new(1, u64::MAX)));
        assert_eq!((StreamId::MAX.next(), StreamId::MIN.previous()), (None, None));
        assert_eq!(StreamId::MAX.text().as_bytes(), StreamId::MAX.to_string().as_bytes());
        assert_eq!(StreamId::new(12, 3).text().as_bytes(), b"12-3");
    }
}
