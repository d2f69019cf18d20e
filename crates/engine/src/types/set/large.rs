//! A set in cells.

use super::{Encoding, SetRef, SetRules};
use crate::types::cells::{Cells, NoPayload};
use crate::types::element::Element;

/// A set that does not lie inside its entry.
#[derive(Clone)]
pub struct LargeSet {
    pub(super) cells: Cells<NoPayload>,
    /// What Redis would have made of it by now.
    pub(super) encoding: Encoding,
}

impl LargeSet {
    pub(super) fn of(set: SetRef<'_>, encoding: Encoding, rules: &SetRules) -> Self {
        let mut cells = Cells::with_room_for(rules.hasher, set.len());
        set.for_each(&mut |member| {
            cells.add(member, &[]);
        });
        LargeSet { cells, encoding }
    }

    pub fn len(&self) -> usize {
        self.cells.len()
    }

    pub fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    pub fn memory_bytes(&self) -> usize {
        self.cells.memory_bytes()
    }

    #[inline]
    pub(super) fn add(&mut self, member: Element<'_>, rules: &SetRules) -> bool {
        let before = self.cells.len();
        let is_new = self.cells.add(member, &[]);
        if is_new && self.encoding != Encoding::Hashtable {
            self.encoding = match (self.encoding, member) {
                (Encoding::Intset, Element::Int(_)) => rules.intset_of(before + 1),
                (Encoding::Intset, Element::Bytes(_)) => {
                    let ints = self.cells.iter().map(|(member, _)| member.with_bytes(<[u8]>::len));
                    rules.listpack_with(before, ints.max().unwrap_or(0))
                }
                _ => rules.listpack_with(before, member.with_bytes(<[u8]>::len)),
            };
        }
        is_new
    }
}
