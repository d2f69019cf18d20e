//! A consumer group: how far it has read, what it has delivered and to whom, until it is
//! acknowledged.

use super::id::{IdRange, StreamId};
use super::name::{Name, name_bytes};
use crate::types::capacity::{allocated_for, tree_bytes};
use crate::types::cow_map::CowMap;
use std::collections::BTreeMap;

/// What XINFO and XCLAIM know as the most deliveries; counting ends there.
pub const DELIVERIES_MAX: u64 = i64::MAX as u64;

/// Room that a group's first consumer makes.
const CONSUMERS_AT_FIRST: usize = 2;

/// A consumer's number in its group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ConsumerKey(u32);

/// An entry that was delivered and not acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pending {
    /// None once it was given back with XNACK.
    pub owner: Option<ConsumerKey>,
    pub delivered_ms: i64,
    pub deliveries: u64,
    /// Orders those delivered at the same time.
    turn: u64,
}

impl Pending {
    /// Its key in the order of claiming: given back ones first, then the longest idle.
    fn age_key(&self) -> AgeKey {
        (self.owner.is_some(), self.delivered_ms, self.turn)
    }
}

type AgeKey = (bool, i64, u64);

#[derive(Clone, Debug)]
pub struct Consumer {
    pub name: Name,
    /// When it last asked for something.
    pub seen_ms: i64,
    /// When it last got something.
    pub active_ms: Option<i64>,
    pending: CowMap<StreamId, ()>,
}

impl Consumer {
    pub fn pending_len(&self) -> usize {
        self.pending.len()
    }
}

#[derive(Default)]
pub struct Group {
    pub last_id: StreamId,
    /// How many entries were read up to `last_id`, where that is known.
    pub entries_read: Option<i64>,
    pending: CowMap<StreamId, Pending>,
    /// Slots are used again; the order that clients see is that of the names.
    consumers: Vec<Option<Consumer>>,
    free: Vec<ConsumerKey>,
    names: BTreeMap<Name, ConsumerKey>,
    /// Made when someone first claims by age, and kept up from then on.
    by_age: Option<BTreeMap<AgeKey, StreamId>>,
    turns: u64,
    /// What the names of the consumers take, and their own lists of what is pending.
    names_bytes: usize,
    owned_bytes: usize,
}

impl Clone for Group {
    /// Without the order by age, which who asks for it makes anew.
    fn clone(&self) -> Self {
        Group {
            pending: self.pending.clone(),
            consumers: self.consumers.clone(),
            free: self.free.clone(),
            names: self.names.clone(),
            by_age: None,
            ..*self
        }
    }
}

/// How a claim changes the count of deliveries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    Set(u64),
    Add,
    Leave,
    /// XNACK SILENT: as if it had not been delivered.
    TakeBack,
}

impl Count {
    fn applied(self, deliveries: u64) -> u64 {
        match self {
            Count::Set(count) => count,
            Count::Add if deliveries == DELIVERIES_MAX => deliveries,
            Count::Add => deliveries.saturating_add(1),
            Count::Leave => deliveries,
            Count::TakeBack => deliveries.saturating_sub(1),
        }
    }
}

impl Group {
    pub fn new(last_id: StreamId, entries_read: Option<i64>) -> Self {
        Group { last_id, entries_read, ..Group::default() }
    }

    pub fn consumers_len(&self) -> usize {
        self.names.len()
    }

    pub fn pending_len(&self) -> usize {
        self.pending.len()
    }

    /// How many were given back and not delivered again.
    pub fn given_back_len(&self) -> usize {
        match &self.by_age {
            Some(by_age) => by_age.range(..(true, i64::MIN, 0)).count(),
            None => self.pending.iter().filter(|(_, pending)| pending.owner.is_none()).count(),
        }
    }

    pub fn find_consumer(&self, name: &[u8]) -> Option<ConsumerKey> {
        self.names.get(name).copied()
    }

    /// In the order of their names.
    pub fn consumers(&self) -> impl ExactSizeIterator<Item = &Consumer> {
        self.names.values().map(|key| self.consumer(*key))
    }

    pub fn consumer(&self, key: ConsumerKey) -> &Consumer {
        self.consumers[key.0 as usize].as_ref().expect("a key lives as long as its consumer")
    }

    fn consumer_mut(&mut self, key: ConsumerKey) -> &mut Consumer {
        self.consumers[key.0 as usize].as_mut().expect("a key lives as long as its consumer")
    }

    /// A new consumer; its name is not taken.
    pub fn add_consumer(&mut self, name: &[u8], now_ms: i64) -> ConsumerKey {
        let consumer = Consumer {
            name: name.into(),
            seen_ms: now_ms,
            active_ms: None,
            pending: CowMap::default(),
        };
        let key = self.free.pop().unwrap_or_else(|| {
            let slots = self.consumers.len();
            if slots == 0 {
                // Most groups have few.
                self.consumers.reserve_exact(CONSUMERS_AT_FIRST);
            }
            self.consumers.push(None);
            ConsumerKey(u32::try_from(slots).expect("memory ends long before"))
        });
        self.consumers[key.0 as usize] = Some(consumer);
        self.names.insert(name.into(), key);
        self.names_bytes += 2 * name_bytes(name);
        key
    }

    /// Forgets a consumer and what is pending for it, and returns how much that was.
    pub fn remove_consumer(&mut self, name: &[u8]) -> Option<usize> {
        let key = self.names.remove(name)?;
        let consumer = self.consumers[key.0 as usize].take()?;
        self.free.push(key);
        self.names_bytes -= 2 * name_bytes(name);
        self.owned_bytes -= consumer.pending.memory_bytes();
        for (id, ()) in consumer.pending.iter() {
            if let Some(pending) = self.pending.remove(id) {
                self.unlist(&pending);
            }
        }
        Some(consumer.pending.len())
    }

    /// Changes a consumer's own list of what is pending.
    fn edit_owned<R>(
        &mut self,
        key: ConsumerKey,
        edit: impl FnOnce(&mut CowMap<StreamId, ()>) -> R,
    ) {
        let owned = &mut self.consumer_mut(key).pending;
        let before = owned.memory_bytes();
        edit(owned);
        let after = owned.memory_bytes();
        self.owned_bytes = self.owned_bytes + after - before;
    }

    /// Notes that a consumer asked.
    pub fn mark_seen(&mut self, key: ConsumerKey, now_ms: i64) {
        self.consumer_mut(key).seen_ms = now_ms;
    }

    /// Notes that a consumer got something.
    pub fn mark_active(&mut self, key: ConsumerKey, now_ms: i64) {
        self.consumer_mut(key).active_ms = Some(now_ms);
    }

    /// Sets when a consumer last got something, as a file says.
    pub fn set_active(&mut self, key: ConsumerKey, active_ms: Option<i64>) {
        self.consumer_mut(key).active_ms = active_ms;
    }

    pub fn pending(&self, id: StreamId) -> Option<&Pending> {
        self.pending.get(&id)
    }

    pub fn pending_in(&self, range: IdRange) -> impl Iterator<Item = (StreamId, &Pending)> {
        let bounds = range.first.min(range.last)..=range.last;
        let is_empty = range.first > range.last;
        let found = self.pending.range(bounds).filter(move |_| !is_empty);
        found.map(|(id, pending)| (*id, pending))
    }

    /// Those of one consumer.
    pub fn pending_of(
        &self,
        key: ConsumerKey,
        range: IdRange,
    ) -> impl Iterator<Item = (StreamId, &Pending)> {
        let bounds = range.first.min(range.last)..=range.last;
        let is_empty = range.first > range.last;
        let found = self.consumer(key).pending.range(bounds).filter(move |_| !is_empty);
        found.filter_map(|(id, ())| self.pending.get(id).map(|pending| (*id, pending)))
    }

    /// The least and greatest pending ID.
    pub fn pending_ends(&self) -> Option<(StreamId, StreamId)> {
        let (first, _) = self.pending.first()?;
        let (last, _) = self.pending.last()?;
        Some((*first, *last))
    }

    fn unlist(&mut self, pending: &Pending) {
        if let Some(by_age) = &mut self.by_age {
            by_age.remove(&pending.age_key());
        }
    }

    /// Puts an entry in the pending list, in place of what was known of it.
    fn set_pending(&mut self, id: StreamId, mut pending: Pending) {
        self.turns += 1;
        pending.turn = self.turns;
        if let Some(owner) = pending.owner {
            self.edit_owned(owner, |owned| owned.insert(id, ()));
        }
        let before = self.pending.insert(id, pending);
        if let Some(before) = before {
            self.unlist(&before);
            if let Some(owner) = before.owner.filter(|owner| Some(*owner) != pending.owner) {
                self.edit_owned(owner, |owned| owned.remove(&id));
            }
        }
        if let Some(by_age) = &mut self.by_age {
            by_age.insert(pending.age_key(), id);
        }
    }

    /// A new entry goes to a consumer. One that is pending already (the group was set back) changes
    /// hands and is counted anew.
    pub fn deliver(&mut self, id: StreamId, to: ConsumerKey, now_ms: i64) {
        let pending = Pending { owner: Some(to), delivered_ms: now_ms, deliveries: 1, turn: 0 };
        self.set_pending(id, pending);
        self.mark_active(to, now_ms);
    }

    /// A pending entry goes to a consumer, or one that is not pending becomes so.
    pub fn claim(&mut self, id: StreamId, to: ConsumerKey, delivered_ms: i64, count: Count) {
        // Redis makes one that it never delivered as if it had been delivered once.
        let before = self.pending.get(&id).map_or(1, |pending| pending.deliveries);
        let deliveries = count.applied(before);
        self.set_pending(id, Pending { owner: Some(to), delivered_ms, deliveries, turn: 0 });
    }

    /// XNACK: a pending entry, or one that becomes so, belongs to nobody.
    pub fn give_back(&mut self, id: StreamId, count: Count) {
        let before = self.pending.get(&id).map_or(0, |pending| pending.deliveries);
        let deliveries = count.applied(before);
        self.set_pending(id, Pending { owner: None, delivered_ms: 0, deliveries, turn: 0 });
    }

    /// An entry of a consumer's history is shown to it again.
    pub fn repeat(&mut self, id: StreamId, now_ms: i64) {
        if let Some(pending) = self.pending.get(&id).copied() {
            let deliveries = Count::Add.applied(pending.deliveries);
            self.set_pending(id, Pending { delivered_ms: now_ms, deliveries, ..pending });
        }
    }

    /// Takes an entry off the pending list; false if it was not there.
    pub fn acknowledge(&mut self, id: StreamId) -> bool {
        let Some(pending) = self.pending.remove(&id) else { return false };
        self.unlist(&pending);
        if let Some(owner) = pending.owner {
            self.edit_owned(owner, |owned| owned.remove(&id));
        }
        true
    }

    /// The pending entries in the order of claiming, each with the moment of its delivery.
    pub fn by_age(&mut self) -> impl Iterator<Item = (StreamId, i64)> {
        let list = || self.pending.iter().map(|(id, pending)| (pending.age_key(), *id)).collect();
        let by_age = self.by_age.get_or_insert_with(list);
        by_age.iter().map(|((_, delivered_ms, _), id)| (*id, *delivered_ms))
    }

    /// Bytes on the heap.
    pub fn memory_bytes(&self) -> usize {
        let aged = self.by_age.as_ref().map_or(0, BTreeMap::len);
        allocated_for::<Option<Consumer>>(self.consumers.capacity())
            + allocated_for::<ConsumerKey>(self.free.capacity())
            + tree_bytes::<Name, ConsumerKey>(self.names.len())
            + self.pending.memory_bytes()
            + tree_bytes::<AgeKey, StreamId>(aged)
            + self.names_bytes
            + self.owned_bytes
    }

    #[cfg(test)]
    pub fn check_bytes(&self) {
        let names: usize = self.names.keys().map(|name| 2 * name_bytes(name)).sum();
        let owned = self.consumers.iter().flatten().map(|one| one.pending.memory_bytes());
        assert_eq!((self.names_bytes, self.owned_bytes), (names, owned.sum()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A new consumer's slot was looked for among all slots: a group of many consumers took as long
    /// as this test would never end.
    #[test]
    fn many_consumers_come_and_go_and_their_slots_are_used_again() {
        const CONSUMERS: usize = 200_000;
        let mut group = Group::default();
        for round in 0..2 {
            let names: Vec<_> = (0..CONSUMERS).map(|at| format!("{round}:{at}")).collect();
            for name in &names {
                let key = group.add_consumer(name.as_bytes(), 0);
                assert_eq!(&*group.consumer(key).name, name.as_bytes());
            }
            for name in &names {
                assert_eq!(group.remove_consumer(name.as_bytes()), Some(0));
            }
        }
        assert_eq!((group.consumers.len(), group.consumers_len()), (CONSUMERS, 0));
    }
}
