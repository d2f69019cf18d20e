//! A large hash: a table of cells, and beside it, if fields expire, an index of their deadlines.

use super::packed::{Deadline, Field, read_deadline};
use super::{HashRef, Lease};
use crate::types::capacity::{allocated_for, tree_bytes};
use crate::types::cells::{Cells, Payload, Spot};
use crate::types::cow_map::CowMap;
use crate::types::element::{Element, Stored, decode, stored_bytes};
use russet_base::hash::KeyHasher;
use russet_base::random::Random;
use std::collections::{BTreeMap, HashSet};

/// What stands behind a field's name: its deadline, if it has one, and its value.
#[derive(Clone, Copy, Debug)]
struct FieldPayload;

impl Payload for FieldPayload {
    #[inline]
    fn bytes(run: &[u8]) -> usize {
        let (_, deadline_len) = read_deadline(run);
        deadline_len + stored_bytes(&run[deadline_len..])
    }
}

/// A deadline and the position of its field in the order of the hashes. Twelve bytes, for there
/// may be millions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Due {
    high: u32,
    low: u32,
    position: u32,
}

impl Due {
    /// Deadlines are never before the epoch.
    fn new(at_ms: i64, position: u32) -> Self {
        let at_ms = at_ms.max(0) as u64;
        Due { high: (at_ms >> 32) as u32, low: at_ms as u32, position }
    }

    fn at_ms(self) -> i64 {
        (i64::from(self.high) << 32) | i64::from(self.low)
    }
}

/// A deadline that so many fields share is counted apart.
const SHARED_DEADLINE_FIELDS_MIN: usize = 32;

/// How many fields of each position are due when.
#[derive(Clone, Default)]
struct Deadlines {
    fields: CowMap<Due, u32>,
    len: usize,
    /// The deadlines that many fields share, and how many those are: a million fields that end at
    /// once are passed over as one when those that are over are counted.
    shared_deadlines: BTreeMap<i64, usize>,
    /// Whoever watches the hash knows of all that was over at this moment.
    reported_ms: i64,
}

impl Deadlines {
    fn add(&mut self, due: Due) {
        let count = self.fields.get(&due).map_or(1, |count| count + 1);
        self.fields.insert(due, count);
        self.len += 1;
        let at_ms = due.at_ms();
        if let Some(shared) = self.shared_deadlines.get_mut(&at_ms) {
            *shared += 1;
        } else {
            let shared = self.between(at_ms, at_ms.saturating_add(1));
            if shared >= SHARED_DEADLINE_FIELDS_MIN {
                self.shared_deadlines.insert(at_ms, shared);
            }
        }
    }

    fn remove(&mut self, due: Due) {
        let Some(count) = self.fields.at_mut(&due) else { return };
        *count -= 1;
        if *count == 0 {
            self.fields.remove(&due);
        }
        self.len -= 1;
        if let Some(shared) = self.shared_deadlines.get_mut(&due.at_ms()) {
            *shared -= 1;
            if *shared == 0 {
                self.shared_deadlines.remove(&due.at_ms());
            }
        }
    }

    /// How many are due from one moment on and before another, counted one by one.
    fn between(&self, from_ms: i64, until_ms: i64) -> usize {
        let range = self.fields.range(Due::new(from_ms, 0)..Due::new(until_ms, 0));
        range.map(|(_, count)| *count as usize).sum()
    }

    /// How many are over at `now_ms`.
    fn over_len(&self, now_ms: i64) -> usize {
        let (mut over, mut from_ms) = (0, 0);
        for (&at_ms, &shared) in self.shared_deadlines.range(..=now_ms) {
            over += self.between(from_ms, at_ms) + shared;
            from_ms = at_ms + 1;
        }
        over + self.between(from_ms, now_ms.saturating_add(1).max(from_ms))
    }

    /// Whether something is over at `now_ms` that was not when this was asked last.
    fn has_news(&mut self, now_ms: i64) -> bool {
        let before_ms = std::mem::replace(&mut self.reported_ms, now_ms);
        // A clock that was set back has told of moments that are yet to come.
        before_ms > now_ms || {
            let news = Due::new(before_ms + 1, 0)..=Due::new(now_ms, u32::MAX);
            before_ms < now_ms && self.fields.range(news).next().is_some()
        }
    }

    fn memory_bytes(&self) -> usize {
        allocated_for::<Deadlines>(1)
            + self.fields.memory_bytes()
            + tree_bytes::<i64, usize>(self.shared_deadlines.len())
    }
}

#[derive(Clone)]
pub struct LargeHash {
    cells: Cells<FieldPayload>,
    deadlines: Option<Box<Deadlines>>,
}

#[inline]
fn field<'a>((name, payload): (Element<'a>, &'a [u8])) -> Field<'a> {
    let (deadline_ms, len) = read_deadline(payload);
    Field { name, value: decode(&payload[len..]).0, deadline_ms }
}

impl LargeHash {
    pub(super) fn new(hasher: KeyHasher) -> Self {
        LargeHash { cells: Cells::new(hasher), deadlines: None }
    }

    /// A copy of a hash of any form.
    pub(super) fn of(hash: HashRef<'_>, hasher: KeyHasher) -> Self {
        let mut large = LargeHash::new(hasher);
        large.note_size(hash.encoding() == "hashtable");
        hash.for_each(|field| {
            let lease = field.deadline_ms.map_or(Lease::None, Lease::Until);
            large.set((field.name, field.value), lease);
        });
        large
    }

    #[inline]
    pub fn len(&self) -> usize {
        self.cells.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes on the heap.
    pub fn memory_bytes(&self) -> usize {
        let deadlines = self.deadlines.as_ref().map_or(0, |deadlines| deadlines.memory_bytes());
        self.cells.memory_bytes() + deadlines
    }

    pub(super) fn is_listpack(&self) -> bool {
        !self.cells.mark
    }

    /// Notes whether it has just become too large for a listpack: then OBJECT ENCODING has another
    /// name for it from now on, which is the mark of the cells.
    #[inline]
    pub(super) fn note_size(&mut self, is_hashtable: bool) {
        self.cells.mark |= is_hashtable;
    }

    #[inline]
    pub(super) fn value(&self, name: Element<'_>) -> Option<Element<'_>> {
        let payload = self.cells.find(name)?;
        let (_, deadline_len) = read_deadline(payload);
        Some(decode(&payload[deadline_len..]).0)
    }

    /// When a field expires; see [`HashRef::deadline`].
    pub(super) fn deadline(&self, name: Element<'_>) -> Option<Option<i64>> {
        self.cells.find(name).map(|payload| read_deadline(payload).0)
    }

    /// Sets a field; whether it is new.
    #[inline]
    pub(super) fn set(&mut self, (name, value): (Element<'_>, Element<'_>), lease: Lease) -> bool {
        let value = Stored::new(value);
        if self.deadlines.is_none() && !matches!(lease, Lease::Until(_)) {
            return self.cells.insert(name, &value.pieces());
        }
        let before = self.deadline(name);
        let after = match lease {
            Lease::None => None,
            Lease::Keep => before.flatten(),
            Lease::Until(at_ms) => Some(at_ms),
        };
        self.insert(name, (after, value.pieces()));
        self.note_deadline(name, (before.flatten(), after));
        before.is_none()
    }

    fn insert(&mut self, name: Element<'_>, (deadline, value): (Option<i64>, [&[u8]; 2])) {
        match deadline {
            None => self.cells.insert(name, &value),
            Some(at_ms) => {
                let deadline = Deadline::new(at_ms);
                self.cells.insert(name, &[deadline.as_bytes(), value[0], value[1]])
            }
        };
    }

    /// Notes in the index that a field's deadline has changed.
    fn note_deadline(&mut self, name: Element<'_>, (before, after): (Option<i64>, Option<i64>)) {
        if before == after {
            return;
        }
        self.cells.mark |= after.is_some();
        let position = self.cells.position_of(name);
        let deadlines = self.deadlines.get_or_insert_default();
        before.into_iter().for_each(|at_ms| deadlines.remove(Due::new(at_ms, position)));
        after.into_iter().for_each(|at_ms| deadlines.add(Due::new(at_ms, position)));
        if deadlines.len == 0 {
            self.deadlines = None;
        }
    }

    #[inline]
    pub(super) fn remove(&mut self, name: Element<'_>) -> bool {
        if self.deadlines.is_none() {
            return self.cells.remove(name);
        }
        let removed = self.cells.remove_with(name, |payload| read_deadline(payload).0);
        if let Some(deadline) = removed {
            self.note_deadline(name, (deadline, None));
        }
        removed.is_some()
    }

    /// Gives a field a deadline, or takes it away; `false` if there is no such field.
    pub(super) fn set_deadline(&mut self, name: Element<'_>, deadline_ms: Option<i64>) -> bool {
        let Some(payload) = self.cells.find(name) else { return false };
        let (before, len) = read_deadline(payload);
        let value: smallvec::SmallVec<[u8; 128]> = payload[len..].into();
        self.insert(name, (deadline_ms, [&value, &[]]));
        self.note_deadline(name, (before, deadline_ms));
        true
    }

    /// The first deadline of all.
    #[inline]
    pub(super) fn bound(&self) -> Option<i64> {
        let deadlines = self.deadlines.as_ref()?;
        deadlines.fields.first().map(|(due, _)| due.at_ms())
    }

    /// Whether all of its fields are over at `now_ms`.
    pub(super) fn is_over(&self, now_ms: i64) -> bool {
        let Some(deadlines) = &self.deadlines else { return false };
        let last = deadlines.fields.last();
        deadlines.len == self.len() && last.is_some_and(|(due, _)| due.at_ms() <= now_ms)
    }

    /// How many of its fields are over at `now_ms`.
    pub(super) fn over_len(&self, now_ms: i64) -> usize {
        self.deadlines.as_ref().map_or(0, |deadlines| deadlines.over_len(now_ms))
    }

    /// Whether a field is over at `now_ms` of which the hash's watchers were not notified.
    pub(super) fn has_news(&mut self, now_ms: i64) -> bool {
        self.deadlines.as_mut().is_some_and(|deadlines| deadlines.has_news(now_ms))
    }

    /// Removes a field if it is over at `now_ms`; whether it was.
    pub(super) fn remove_over(&mut self, name: Element<'_>, now_ms: i64) -> bool {
        let is_over = |at_ms: i64| at_ms <= now_ms;
        self.bound().is_some_and(is_over)
            && self.deadline(name).flatten().is_some_and(is_over)
            && self.remove(name)
    }

    /// Removes up to `budget` fields that are over at `now_ms`, and shows their names; how many
    /// that were.
    pub(super) fn purge(
        &mut self,
        (now_ms, budget): (i64, usize),
        visit: &mut dyn FnMut(Element<'_>),
    ) -> usize {
        let mut purged = 0;
        while purged < budget
            && let Some(deadlines) = &mut self.deadlines
            && let Some((&due, _)) = deadlines.fields.first()
            && due.at_ms() <= now_ms
        {
            let at_ms = due.at_ms();
            let is_due = |payload: &[u8]| read_deadline(payload).0 == Some(at_ms);
            let is_removed = self.cells.remove_due(due.position, is_due, visit);
            debug_assert!(is_removed, "each deadline of the index is a field's");
            deadlines.remove(due);
            if deadlines.len == 0 {
                self.deadlines = None;
            }
            purged += 1;
        }
        purged
    }

    #[inline]
    pub(super) fn iter(&self) -> impl Iterator<Item = Field<'_>> {
        self.cells.iter().map(field)
    }

    pub(super) fn random(&self, random: &mut Random) -> Option<Field<'_>> {
        self.cells.random(random).map(|spot| field(self.cells.at(spot)))
    }

    /// `count` different fields, of many more, in the order in which they were drawn.
    pub(super) fn sample_few<'a>(
        &'a self,
        count: usize,
        random: &mut Random,
        visit: &mut dyn FnMut(Field<'a>),
    ) {
        let mut seen: HashSet<Spot> = HashSet::with_capacity(count);
        while seen.len() < count {
            let Some(spot) = self.cells.random(random) else { return };
            if seen.insert(spot) {
                visit(field(self.cells.at(spot)));
            }
        }
    }

    /// See [`HashRef::scan`].
    pub(super) fn scan<'a>(
        &'a self,
        cursor: u64,
        count: u64,
        mut visit: impl FnMut(Field<'a>),
    ) -> u64 {
        self.cells.scan(cursor, count, |name, payload| visit(field((name, payload))))
    }
}
