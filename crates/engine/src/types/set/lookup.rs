//! A set in which many members are looked for. A packed one is searched from its front: for many
//! look-ups it gets a table of where its members lie, by their hashes, which lasts as long as they.

use super::{SetRef, SetRules, packed};
use crate::types::cells::HashElement;
use crate::types::element::Element;
use smallvec::SmallVec;

/// A packed set of fewer members is searched as it is.
const TABLE_MEMBERS_MIN: usize = 16;

pub(super) struct Lookup<'a> {
    set: SetRef<'a>,
    /// Where members start; 0 is an empty slot. As many slots as a power of two, at least twice as
    /// many as members, or none.
    slots: SmallVec<[u16; 256]>,
}

impl<'a> Lookup<'a> {
    /// Without a table.
    pub fn plain(set: SetRef<'a>) -> Self {
        Lookup { set, slots: SmallVec::new() }
    }

    pub fn new(set: SetRef<'a>, rules: &SetRules) -> Self {
        let mut slots = SmallVec::new();
        if let SetRef::Packed(bytes) = set
            && set.len() >= TABLE_MEMBERS_MIN
        {
            slots.resize((2 * set.len()).next_power_of_two(), 0);
            let mut members = packed::iter(bytes);
            let mut start = members.start(bytes);
            while let Some(member) = members.next() {
                let mut slot = home(member, rules, slots.len());
                while slots[slot] != 0 {
                    slot = (slot + 1) & (slots.len() - 1);
                }
                slots[slot] = u16::try_from(start).expect("a packed set is far below 64 KiB");
                start = members.start(bytes);
            }
        }
        Lookup { set, slots }
    }

    pub fn contains(&self, member: Element<'_>, rules: &SetRules) -> bool {
        let SetRef::Packed(bytes) = self.set else { return self.set.contains(member) };
        if self.slots.is_empty() {
            return self.set.contains(member);
        }
        let mut slot = home(member, rules, self.slots.len());
        while self.slots[slot] != 0 {
            if packed::member_at(bytes, usize::from(self.slots[slot])) == member {
                return true;
            }
            slot = (slot + 1) & (self.slots.len() - 1);
        }
        false
    }
}

fn home(member: Element<'_>, rules: &SetRules, slots: usize) -> usize {
    rules.hasher.hash_element(member) as usize & (slots - 1)
}
