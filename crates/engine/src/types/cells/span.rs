//! The part of the hash space that a cell answers for: all hashes that begin with some bits.

use super::DEPTH_MAX;

/// The bits, highest first, then a one that marks their end, then zeros.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span(u32);

const _: () = assert!(DEPTH_MAX < u32::BITS);

impl Span {
    /// All hashes.
    pub const ALL: Span = Span(1 << 31);

    fn mark(self) -> u32 {
        self.0 & self.0.wrapping_neg()
    }

    /// How many bits its hashes share.
    #[inline]
    pub fn depth(self) -> u32 {
        31 - self.0.trailing_zeros()
    }

    /// The first of its positions: the upper halves of its lowest hash.
    #[inline]
    pub fn start(self) -> u32 {
        self.0 & (self.0 - 1)
    }

    /// The first position behind it.
    #[inline]
    pub fn end(self) -> u64 {
        u64::from(self.start()) + 2 * u64::from(self.mark())
    }

    /// Its halves: those whose next bit is 0, and those whose next bit is 1.
    pub fn halves(self) -> [Span; 2] {
        let half = self.mark() >> 1;
        [Span(self.start() | half), Span(self.0 | half)]
    }

    /// The span of which this is a half, unless it is all.
    pub fn parent(self) -> Option<Span> {
        let mark = self.mark() << 1;
        (mark != 0).then(|| Span(self.start() & !mark | mark))
    }

    /// The other half of its parent.
    pub fn buddy(self) -> Option<Span> {
        let bit = self.mark() << 1;
        (bit != 0).then_some(Span(self.0 ^ bit))
    }

    /// Whether it is the half whose last bit is 1.
    pub fn is_upper(self) -> bool {
        self.start() & (self.mark() << 1) != 0
    }

    /// Whether a hash of it belongs to its upper half.
    #[inline]
    pub fn is_in_upper_half(self, hash: u64) -> bool {
        (hash >> 32) as u32 & self.mark() != 0
    }

    /// The part of a directory of `1 << depth` slots that stands for it.
    pub fn slots(self, depth: u32) -> std::ops::Range<usize> {
        let first = slot(self.start(), depth);
        first..first + (1 << (depth - self.depth()))
    }
}

/// The slot of a position in a directory of `1 << depth` slots.
#[inline]
pub(super) fn slot(position: u32, depth: u32) -> usize {
    (u64::from(position) >> (u32::BITS - depth)) as usize
}

/// The position of a hash.
#[inline]
pub(super) fn position(hash: u64) -> u32 {
    (hash >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_make_up_their_parents() {
        let mut span = Span::ALL;
        assert_eq!((span.depth(), span.start(), span.end()), (0, 0, 1 << 32));
        assert!(span.parent().is_none() && span.buddy().is_none());
        for depth in 1..=DEPTH_MAX {
            let [low, high] = span.halves();
            assert_eq!((low.depth(), high.depth()), (depth, depth));
            assert_eq!((low.parent(), high.parent()), (Some(span), Some(span)));
            assert_eq!((low.buddy(), high.buddy()), (Some(high), Some(low)));
            assert_eq!((low.start(), low.end()), (span.start(), u64::from(high.start())));
            assert_eq!(high.end(), span.end());
            assert!(high.is_upper() && !low.is_upper());
            assert!(span.is_in_upper_half(u64::from(high.start()) << 32));
            assert!(!span.is_in_upper_half(u64::from(low.start()) << 32));
            assert_eq!(high.slots(depth).len(), 1);
            assert_eq!(span.slots(depth), low.slots(depth).start..high.slots(depth).end);
            span = if depth % 3 == 0 { low } else { high };
        }
    }
}
