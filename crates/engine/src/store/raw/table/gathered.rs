//! Slot words between two arrangements: while a segment grows, shrinks, splits or merges.

use super::segment::{SLOTS_MAX, Word};

/// Slot words on their way from one arrangement to another.
pub(super) struct Gathered {
    words: [Word; SLOTS_MAX],
    len: usize,
}

impl Gathered {
    pub(super) fn new() -> Gathered {
        Gathered { words: [Word::EMPTY; SLOTS_MAX], len: 0 }
    }

    pub(super) fn push(&mut self, word: Word) {
        self.words[self.len] = word;
        self.len += 1;
    }

    pub(super) fn words(&self) -> &[Word] {
        &self.words[..self.len]
    }
}
