//! A large hash.

use super::packed::Field;
use super::{HashRef, Lease};
use crate::types::element::Element;
use russet_base::hash::KeyHasher;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone)]
pub struct LargeHash {
    map: BTreeMap<Vec<u8>, (Vec<u8>, Option<i64>)>,
    deadlines: BTreeSet<(i64, Vec<u8>)>,
    is_hashtable: bool,
}

fn field<'a>((name, value): (&'a Vec<u8>, &'a (Vec<u8>, Option<i64>))) -> Field<'a> {
    Field { name: Element::parse(name), value: Element::parse(&value.0), deadline_ms: value.1 }
}

impl LargeHash {
    pub fn new(_hasher: KeyHasher) -> Self {
        LargeHash { map: BTreeMap::new(), deadlines: BTreeSet::new(), is_hashtable: false }
    }

    pub(super) fn of(hash: HashRef<'_>, hasher: KeyHasher) -> Self {
        let mut large = LargeHash::new(hasher);
        large.note_size(hash.encoding() == "hashtable");
        hash.for_each(|field| {
            let lease = field.deadline_ms.map_or(Lease::None, Lease::Until);
            large.set((field.name, field.value), lease);
        });
        large
    }

    pub fn len(&self) -> usize {
        self.map.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn memory_bytes(&self) -> usize {
        0
    }

    pub(super) fn is_listpack(&self) -> bool {
        !self.is_hashtable
    }

    pub(super) fn note_size(&mut self, is_hashtable: bool) {
        self.is_hashtable |= is_hashtable;
    }

    pub(super) fn field(&self, name: Element<'_>) -> Option<Field<'_>> {
        self.map.get_key_value(&name.to_vec()).map(field)
    }

    pub(super) fn set(&mut self, (name, value): (Element<'_>, Element<'_>), lease: Lease) -> bool {
        let name = name.to_vec();
        let old = self.map.remove(&name);
        let was = old.as_ref().and_then(|old| old.1);
        let deadline = match lease {
            Lease::None => None,
            Lease::Keep => was,
            Lease::Until(at) => {
                self.is_hashtable = true;
                Some(at)
            }
        };
        if let Some(at) = was {
            self.deadlines.remove(&(at, name.clone()));
        }
        if let Some(at) = deadline {
            self.deadlines.insert((at, name.clone()));
        }
        self.map.insert(name, (value.to_vec(), deadline));
        old.is_none()
    }

    pub(super) fn remove(&mut self, name: Element<'_>) -> bool {
        let name = name.to_vec();
        let old = self.map.remove(&name);
        if let Some(at) = old.as_ref().and_then(|old| old.1) {
            self.deadlines.remove(&(at, name));
        }
        old.is_some()
    }

    pub(super) fn set_deadline(&mut self, name: Element<'_>, deadline_ms: Option<i64>) -> bool {
        let Some(field) = self.field(name) else { return false };
        let value = field.value.to_vec();
        self.set((name, Element::parse(&value)), deadline_ms.map_or(Lease::None, Lease::Until));
        true
    }

    pub(super) fn bound(&self) -> Option<i64> {
        self.deadlines.first().map(|first| first.0)
    }

    pub(super) fn purge(&mut self, now_ms: i64, budget: usize) -> usize {
        let mut purged = 0;
        while purged < budget && self.bound().is_some_and(|at| at <= now_ms) {
            if let Some((_, name)) = self.deadlines.pop_first() {
                self.map.remove(&name);
                purged += 1;
            }
        }
        purged
    }

    pub(super) fn for_each<'a>(&'a self, visit: &mut dyn FnMut(Field<'a>)) {
        self.map.iter().map(field).for_each(visit);
    }

    pub(super) fn random(&self, draw: &mut dyn FnMut() -> u64) -> Option<Field<'_>> {
        self.map.iter().nth(super::below(draw(), self.len())).map(field)
    }

    pub(super) fn at_places<'a>(&'a self, places: &[usize], visit: &mut dyn FnMut(Field<'a>)) {
        for (at, entry) in self.map.iter().enumerate() {
            if places.binary_search(&at).is_ok() {
                visit(field(entry));
            }
        }
    }

    pub(super) fn scan<'a>(
        &'a self,
        cursor: u64,
        count: u64,
        visit: &mut dyn FnMut(Field<'a>),
    ) -> u64 {
        let end = cursor.saturating_add(count);
        for (at, entry) in self.map.iter().enumerate() {
            if (cursor..end).contains(&(at as u64)) {
                visit(field(entry));
            }
        }
        if end >= self.len() as u64 { 0 } else { end }
    }
}
