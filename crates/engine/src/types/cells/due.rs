//! Records found by where their hashes lie and not by their keys: for owners who note in an index
//! of their own which records need care, and when.

use super::cell::Found;
use super::span::position;
use super::{Cells, HashElement, Payload, parts};
use crate::types::element::Element;

/// Where the hash of a key lies in the cells of any table of this hasher. Several keys may share a
/// position.
#[inline]
pub fn position_of(hasher: impl HashElement, key: Element<'_>) -> u32 {
    position(hasher.hash_element(key))
}

impl<P: Payload, H: HashElement> Cells<P, H> {
    /// Where the hash of a key lies.
    #[inline]
    pub fn position_of(&self, key: Element<'_>) -> u32 {
        position_of(self.hasher, key)
    }

    /// Removes the first record of this position whose payload `is_due`, and shows its key; whether
    /// there was one.
    pub fn remove_due(
        &mut self,
        position: u32,
        is_due: impl Fn(&[u8]) -> bool,
        visit: &mut dyn FnMut(Element<'_>),
    ) -> bool {
        let number = self.number_at(position);
        let cell = &self.pool[number];
        let mut at = 0;
        for (index, (_, record)) in cell.iter::<P>().enumerate() {
            let (key, payload) = parts(record);
            if is_due(payload) && self.position_of(key) == position {
                visit(key);
                self.remove_found(number, Found { index, at });
                return true;
            }
            at += record.len();
        }
        false
    }
}
