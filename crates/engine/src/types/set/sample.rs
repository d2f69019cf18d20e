//! Members at random: looked at, or taken out.

use super::{LargeSet, SetMut, SetRef, ints, packed};
use crate::types::blob::Blob;
use crate::types::element::Element;
use russet_base::random::Random;
use std::collections::HashSet;

/// Draws `wanted` of `left` things that are shown one after the other, each choice as likely as
/// the others.
#[derive(Debug)]
pub struct Draw<'r> {
    pub random: &'r mut Random,
    pub wanted: usize,
    pub left: usize,
}

impl Draw<'_> {
    /// Whether the next one is drawn.
    pub fn takes_next(&mut self) -> bool {
        let is_taken = self.random.index(self.left) < self.wanted;
        self.wanted -= usize::from(is_taken);
        self.left -= 1;
        is_taken
    }
}

/// A set of this many times as many members as are wanted is not walked through for them.
const SPARSE: usize = 3;

impl<'a> SetRef<'a> {
    /// A member, each as likely as the others; none of an empty set.
    pub fn random(self, random: &mut Random) -> Option<Element<'a>> {
        let len = self.len();
        if len == 0 {
            return None;
        }
        match self {
            SetRef::Ints(bytes) => Some(Element::Int(ints::index(bytes, random.index(len)))),
            SetRef::Packed(bytes) => {
                Some(packed::member(bytes, packed::range(bytes, random.index(len))))
            }
            SetRef::Large(set) => set.cells.random(random).map(|spot| set.cells.at(spot).0),
        }
    }

    /// Shows `count` different members, all if there are no more.
    pub fn sample(self, count: usize, random: &mut Random, visit: &mut dyn FnMut(Element<'_>)) {
        let len = self.len();
        if count >= len {
            return self.for_each(visit);
        }
        if let SetRef::Large(set) = self
            && count.saturating_mul(SPARSE) <= len
        {
            let mut drawn = HashSet::with_capacity(count);
            while drawn.len() < count {
                let Some(spot) = set.cells.random(random) else { return };
                if drawn.insert(spot) {
                    visit(set.cells.at(spot).0);
                }
            }
            return;
        }
        let mut draw = Draw { random, wanted: count, left: len };
        self.for_each(&mut |member| {
            if draw.takes_next() {
                visit(member);
            }
        });
    }
}

impl<B: Blob> SetMut<'_, B> {
    /// Takes a member out, each as likely as the others, and shows it. False if there is none.
    pub fn pop(&mut self, random: &mut Random, visit: &mut dyn FnMut(Element<'_>)) -> bool {
        let len = self.len();
        if len == 0 {
            return false;
        }
        match self {
            SetMut::Ints(blob) => {
                let at = random.index(len);
                visit(Element::Int(ints::index(blob.bytes(), at)));
                ints::remove_at(*blob, at);
            }
            SetMut::Packed(blob) => {
                let range = packed::range(blob.bytes(), random.index(len));
                visit(packed::member(blob.bytes(), range.clone()));
                packed::remove(*blob, range);
            }
            SetMut::Large(set) => set.pop(random, visit),
        }
        true
    }
}

impl LargeSet {
    fn pop(&mut self, random: &mut Random, visit: &mut dyn FnMut(Element<'_>)) {
        if let Some(spot) = self.cells.random(random) {
            visit(self.cells.at(spot).0);
            self.cells.remove_at(spot);
        }
    }
}
