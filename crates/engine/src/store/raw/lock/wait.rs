//! A command's wait for busy shards: first in the queue of one of them, then, if it takes long, by
//! reservation.
//!
//! In the queue a waiter may be passed by, and one that needs several shards may find another of
//! them busy each time that it is woken. That is how busy keys are used best, but with calls that
//! hold shards for milliseconds it can go on for seconds. So a waiter that has waited for long
//! reserves those of its shards that are busy. Nobody else takes a reserved shard: the calls that
//! run on it now are the last. What is not busy is not reserved, so a call that needs many shards
//! and waits for a slow one keeps only that one's keys waiting. Where reservations overlap the
//! oldest comes first. A waiter that was not woken for long, since one call had its shard all the
//! time, gets a reservation from who unlocks it (`queue.rs`).
//!
//! A wait holds no lock. Dropping it leaves the queue and gives up what it has reserved.

use super::super::sync::{self, AtomicU32, Moment, Mutex, Ordering};
use super::queue::{Waiter, Waiting};
use super::{HELD, Locked, Locks, QUEUED, RESERVED, Wake};
use crate::store::shard_set::ShardSet;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// How long a waiter for one shard may be passed by.
const RESERVE_ONE_AFTER_MICROS: u64 = 1_000;
/// How long a waiter for several shards tries to find all of them free. A reservation keeps others
/// waiting for calls on keys that they don't name, so it is a later resort.
const RESERVE_SEVERAL_AFTER_MICROS: u64 = 20_000;

/// When a waiter reserved, counted from 1: the smaller, the older.
pub(super) type Ticket = u64;

/// The shards that one waiter has reserved.
struct Reservation<W> {
    waiter: W,
    shards: ShardSet,
    /// It was woken and has not looked yet.
    is_woken: bool,
}

/// All reservations, by age and by shard: there may be one for each client, and each looks for its
/// own and for the oldest of its shards.
pub(super) struct Table<W = Waiter> {
    by_age: BTreeMap<Ticket, Reservation<W>>,
    of_shard: BTreeMap<usize, BTreeSet<Ticket>>,
    last: Ticket,
}

impl<W> Default for Table<W> {
    fn default() -> Self {
        Table { by_age: BTreeMap::new(), of_shard: BTreeMap::new(), last: 0 }
    }
}

impl<W: Clone> Table<W> {
    /// A reservation of no shard yet, younger than all others.
    fn enter(&mut self, waiter: &W) -> Ticket {
        self.last += 1;
        let (waiter, shards) = (waiter.clone(), ShardSet::EMPTY);
        self.by_age.insert(self.last, Reservation { waiter, shards, is_woken: false });
        self.last
    }

    /// Takes a reservation out; the shards that it was of.
    fn remove(&mut self, ticket: Ticket) -> ShardSet {
        let Some(taken) = self.by_age.remove(&ticket) else { return ShardSet::EMPTY };
        for index in taken.shards.iter() {
            if let Entry::Occupied(mut tickets) = self.of_shard.entry(index) {
                tickets.get_mut().remove(&ticket);
                if tickets.get().is_empty() {
                    tickets.remove();
                }
            }
        }
        taken.shards
    }

    pub fn add_shard(&mut self, ticket: Ticket, index: usize) {
        if let Some(reservation) = self.by_age.get_mut(&ticket) {
            reservation.shards.insert(index);
            self.of_shard.entry(index).or_default().insert(ticket);
        }
    }

    pub fn has_shard(&self, ticket: Ticket, index: usize) -> bool {
        self.by_age.get(&ticket).is_some_and(|of| of.shards.contains(index))
    }

    fn oldest_of(&self, index: usize) -> Option<Ticket> {
        self.of_shard.get(&index)?.first().copied()
    }

    /// The oldest who has reserved a shard after `ticket`.
    fn next_of(&self, index: usize, ticket: Ticket) -> Option<&W> {
        let next = self.of_shard.get(&index)?.range(ticket + 1..).next()?;
        self.by_age.get(next).map(|reservation| &reservation.waiter)
    }
}

/// All reservations. RESERVED is set and cleared under this lock only.
pub(super) struct Reservations {
    table: Mutex<Table>,
    /// How many there are, for those without the lock.
    count: AtomicU32,
}

impl Default for Reservations {
    fn default() -> Self {
        Reservations { table: Mutex::new(Table::default()), count: AtomicU32::new(0) }
    }
}

impl Reservations {
    pub fn table(&self) -> sync::MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(|poison| poison.into_inner())
    }

    /// Whether no shard is reserved, as far as one can tell without the lock.
    #[inline]
    pub fn are_none(&self) -> bool {
        self.count.load(Ordering::Relaxed) == 0
    }

    pub fn enter(&self, table: &mut Table, waiter: &Waiter) -> Ticket {
        let ticket = table.enter(waiter);
        waiter.set_ticket(Some(ticket));
        self.publish_count(table);
        ticket
    }

    fn remove(&self, table: &mut Table, waiter: &Waiter, ticket: Ticket) -> ShardSet {
        waiter.set_ticket(None);
        let shards = table.remove(ticket);
        self.publish_count(table);
        shards
    }

    fn publish_count(&self, table: &Table) {
        self.count.store(table.by_age.len() as u32, Ordering::Relaxed);
    }

    /// Wakes the oldest who has reserved a shard, once until it looks.
    pub fn wake_oldest(&self, index: usize) {
        let mut table = self.table();
        let oldest = table.oldest_of(index);
        let oldest = oldest.and_then(|ticket| table.by_age.get_mut(&ticket));
        let waiter = oldest.filter(|oldest| !oldest.is_woken).map(|oldest| {
            oldest.is_woken = true;
            oldest.waiter.clone()
        });
        drop(table);
        if let Some(waiter) = waiter {
            waiter.wake();
        }
    }

    /// All who have reserved a shard.
    pub fn all_of(&self, index: usize) -> Vec<Waiter> {
        let table = self.table();
        let tickets = table.of_shard.get(&index).into_iter().flatten();
        tickets.filter_map(|ticket| Some(table.by_age.get(ticket)?.waiter.clone())).collect()
    }
}

/// A command's wait for its shards.
pub struct Wait<T> {
    locks: Arc<Locks<T>>,
    waiter: Waiter,
    since: Option<Moment>,
    /// The shard in whose queue it is.
    queued: Option<usize>,
    /// The last in whose queue it was.
    awaited: Option<usize>,
}

#[cfg(test)]
impl<T> Wait<T> {
    pub fn has_reserved(&self) -> bool {
        self.waiter.ticket().is_some()
    }

    /// How many waiters have reserved shards, this one included.
    pub fn reservations(&self) -> usize {
        self.locks.reservations.table().by_age.len()
    }
}

impl<T> Wait<T> {
    pub fn new(locks: Arc<Locks<T>>, wake: Arc<dyn Wake>) -> Self {
        let waiter = Waiting::new(wake);
        Wait { locks, waiter, since: None, queued: None, awaited: None }
    }

    /// Microseconds since the first try that failed; 0 if none did.
    pub fn waited_micros(&self) -> u64 {
        self.since.map_or(0, |since| sync::micros_between(since, sync::now()))
    }

    /// The mark of who held the shard last that it had to queue for; 0 if that is not known. Once
    /// the wait is over that is whom it waited for, as a rule: others may have come between.
    pub fn holder(&self) -> u32 {
        let awaited = self.awaited.map(|index| &self.locks.locks[index].awaited);
        awaited.map_or(0, |mark| mark.load(Ordering::Relaxed))
    }

    /// Tries to lock all of `wanted`; on failure it will be woken when that is worth another try.
    /// Spurious calls are harmless: a place in a queue is kept. Without `may_reserve` it stays in
    /// the queue however long it waits: what it waits for may take very long.
    pub fn poll<'a>(
        &mut self,
        locks: &'a Locks<T>,
        wanted: &ShardSet,
        may_reserve: bool,
    ) -> Option<Locked<'a, T>> {
        assert!(std::ptr::eq(locks, &*self.locks), "a wait belongs to one keyspace");
        if may_reserve && (self.waiter.ticket().is_some() || self.is_old(wanted)) {
            self.leave_queue();
            return self.poll_reserving(locks, wanted);
        }
        let after_micros = if may_reserve { reserve_after_micros(wanted) } else { u64::MAX };
        self.waiter.set_reserve_after_micros(after_micros);
        if !may_reserve || self.waiter.ticket().is_some() {
            self.give_up_reserved();
        }
        self.poll_queued(locks, wanted)
    }

    fn is_old(&mut self, wanted: &ShardSet) -> bool {
        let now = sync::now();
        let since = *self.since.get_or_insert(now);
        sync::micros_between(since, now) >= reserve_after_micros(wanted)
    }

    fn poll_queued<'a>(&mut self, locks: &'a Locks<T>, wanted: &ShardSet) -> Option<Locked<'a, T>> {
        let is_still_busy = |index| wanted.contains(index) && !locks.locks[index].is_free();
        if self.queued.is_some_and(is_still_busy) {
            return None;
        }
        loop {
            let busy = match locks.try_lock(wanted) {
                Ok(locked) => {
                    self.end();
                    return Some(locked);
                }
                Err(busy) => busy,
            };
            if self.queued == Some(busy) {
                return None;
            }
            self.leave_queue();
            if locks.locks[busy].enqueue_unless_free(&self.waiter) {
                (self.queued, self.awaited) = (Some(busy), Some(busy));
                return None;
            }
        }
    }

    /// Takes its shards if none is held, or reserved by someone older; else reserves those that
    /// are. Whoever unlocks one of them from then on wakes it.
    fn poll_reserving<'a>(
        &mut self,
        locks: &'a Locks<T>,
        wanted: &ShardSet,
    ) -> Option<Locked<'a, T>> {
        let mut table = locks.reservations.table();
        let own = self.waiter.ticket();
        let ticket = own.unwrap_or_else(|| locks.reservations.enter(&mut table, &self.waiter));
        if let Some(own) = table.by_age.get_mut(&ticket) {
            if !own.shards.is_subset(wanted) {
                // The call needs other shards than it did.
                drop(table);
                self.give_up_reserved();
                return self.poll_reserving(locks, wanted);
            }
            own.is_woken = false;
        }
        let mut wakes = Vec::new();
        let locked = loop {
            if reserve_busy(locks, wanted, &mut table, ticket) {
                break None;
            }
            // None was busy, but one may be taken before we come to it: then look once more.
            let locked = lock_all_or_none(locks, wanted, (&table, ticket), &mut wakes);
            if locked.is_some() {
                break locked;
            }
        };
        if locked.is_some() {
            let taken = locks.reservations.remove(&mut table, &self.waiter, ticket);
            wakes.extend(clear_reserved(locks, &table, &taken));
        }
        drop(table);
        wakes.iter().for_each(|wake| wake.wake());
        locked
    }

    fn leave_queue(&mut self) {
        if let Some(index) = self.queued.take() {
            let lock = &self.locks.locks[index];
            lock.leave_queue(&self.waiter);
            // A wake-up meant for us may have been the only one: pass it on.
            if lock.is_free()
                && let Some(next) = lock.first_in_queue()
            {
                next.wake();
            }
        }
    }

    fn end(&mut self) {
        self.leave_queue();
        if self.waiter.ticket().is_some() {
            self.give_up_reserved();
        }
    }

    fn give_up_reserved(&mut self) {
        let reservations = &self.locks.reservations;
        let mut table = reservations.table();
        let Some(ticket) = self.waiter.ticket() else { return };
        let given_up = reservations.remove(&mut table, &self.waiter, ticket);
        let wakes = clear_reserved(&self.locks, &table, &given_up);
        drop(table);
        wakes.iter().for_each(|wake| wake.wake());
    }
}

/// How long a waiter for these shards may be passed by.
fn reserve_after_micros(wanted: &ShardSet) -> u64 {
    match wanted.count() {
        0 | 1 => RESERVE_ONE_AFTER_MICROS,
        _ => RESERVE_SEVERAL_AFTER_MICROS,
    }
}

/// Reserves the shards that are held, or an older waiter's. False if there is none, now.
fn reserve_busy<T>(locks: &Locks<T>, wanted: &ShardSet, table: &mut Table, ticket: Ticket) -> bool {
    let mut has_busy = false;
    for index in wanted.iter() {
        let lock = &locks.locks[index];
        let is_of_older = table.oldest_of(index).is_some_and(|oldest| oldest < ticket);
        let is_busy = || is_of_older || lock.state.load(Ordering::Acquire) & HELD != 0;
        if is_busy() && !table.has_shard(ticket, index) {
            lock.state.fetch_or(RESERVED, Ordering::AcqRel);
            table.add_shard(ticket, index);
        }
        // Asked once more: if it is busy still, then whoever unlocks it sees the reservation.
        has_busy |= table.has_shard(ticket, index) && is_busy();
    }
    has_busy
}

/// Locks all of `wanted`, reserved or not. On failure nothing stays locked, and those who must be
/// woken for that are added to `wakes`.
fn lock_all_or_none<'a, T>(
    locks: &'a Locks<T>,
    wanted: &ShardSet,
    (table, ticket): (&Table, Ticket),
    wakes: &mut Vec<Waiter>,
) -> Option<Locked<'a, T>> {
    let mut locked = locks.lock_none();
    locked.enter();
    let all = wanted.try_each(|index| {
        let is_locked = locks.locks[index].try_lock_unless(HELD);
        if is_locked {
            locked.held.insert(index);
        }
        is_locked
    });
    let is_closed = all.is_ok() && !wanted.is_empty() && !locks.wide.is_open();
    if all.is_ok() && !is_closed {
        return Some(locked);
    }
    let mut held = locked.held.clone();
    locked.held.clear();
    drop(locked);
    // As `Locks::leave_one`: so one shard is busy, and can be reserved.
    let first = held.iter().next().filter(|_| is_closed);
    if let Some(index) = first.filter(|&index| locks.wide.leave_locked(index)) {
        held.remove(index);
    }
    for index in held.iter() {
        let lock = &locks.locks[index];
        let before = lock.state.fetch_and(!HELD, Ordering::Release);
        match table.next_of(index, ticket) {
            Some(next) => wakes.push(next.clone()),
            None if before & QUEUED != 0 => wakes.extend(lock.first_in_queue()),
            None => {}
        }
    }
    None
}

/// Takes a reservation that is no longer in the table off its shards. Who may take one of them now
/// and would not hear of it otherwise.
fn clear_reserved<T>(locks: &Locks<T>, table: &Table, shards: &ShardSet) -> Vec<Waiter> {
    let mut wakes = Vec::new();
    for index in shards.iter() {
        let lock = &locks.locks[index];
        let next = table.next_of(index, 0);
        let before = match next {
            Some(_) => lock.state.load(Ordering::Acquire),
            None => lock.state.fetch_and(!RESERVED, Ordering::AcqRel),
        };
        if before & HELD != 0 {
            continue;
        }
        match next {
            Some(next) => wakes.push(next.clone()),
            None if before & QUEUED != 0 => wakes.extend(lock.first_in_queue()),
            None => {}
        }
    }
    wakes
}

impl<T> Drop for Wait<T> {
    fn drop(&mut self) {
        self.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use russet_base::Random;

    /// The reservations were one list, walked from its oldest by each of ten thousand waiters at
    /// each look. The table that took its place finds the same ones.
    #[test]
    fn reservations_are_found_as_in_a_list() {
        let mut random = Random::from_seed(11);
        let mut table = Table::<Arc<()>>::default();
        let mut list: Vec<(Ticket, Arc<()>, ShardSet)> = Vec::new();
        for _ in 0..if cfg!(miri) { 50 } else { 5_000 } {
            let index = random.below(6) as usize;
            let at = random.below(list.len().max(1) as u64) as usize;
            match random.below(4) {
                0 => {
                    let waiter = Arc::new(());
                    list.push((table.enter(&waiter), waiter, ShardSet::EMPTY));
                }
                1 if !list.is_empty() => {
                    let (ticket, _, shards) = list.remove(at);
                    assert!(table.remove(ticket) == shards);
                }
                _ if !list.is_empty() => {
                    list[at].2.insert(index);
                    table.add_shard(list[at].0, index);
                }
                _ => {}
            }
            let mut of_shard = list.iter().filter(|(_, _, shards)| shards.contains(index));
            assert_eq!(table.oldest_of(index), of_shard.clone().next().map(|(ticket, ..)| *ticket));
            let Some((after, ..)) = list.get(at) else { continue };
            let next = of_shard.find(|(ticket, ..)| ticket > after).map(|(_, waiter, _)| waiter);
            match (table.next_of(index, *after), next) {
                (Some(found), Some(expected)) => assert!(Arc::ptr_eq(found, expected)),
                (found, expected) => assert_eq!(found.is_some(), expected.is_some()),
            }
            assert_eq!(table.has_shard(*after, index), list[at].2.contains(index));
        }
        list.iter().for_each(|(ticket, ..)| _ = table.remove(*ticket));
        assert!(table.by_age.is_empty() && table.of_shard.is_empty());
    }
}
