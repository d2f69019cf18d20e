//! The queue of one shard, and what who unlocks it does for those in there.

use super::super::sync::{AtomicU64, Moment, MutexGuard, Ordering, micros_between, now};
use super::wait::Ticket;
use super::{HELD, Lock, Locks, QUEUED, RESERVED, Wake};
use std::collections::VecDeque;
use std::sync::Arc;

/// One who waits for shards.
pub(super) struct Waiting {
    wake: Arc<dyn Wake>,
    /// Its reservation: written by who has the table of reservations. 0: none.
    ticket: AtomicU64,
    /// How long one call may have the shard before it is reserved for this waiter.
    reserve_after_micros: AtomicU64,
}

pub(super) type Waiter = Arc<Waiting>;

impl Waiting {
    pub fn new(wake: Arc<dyn Wake>) -> Waiter {
        let reserve_after_micros = AtomicU64::new(u64::MAX);
        Arc::new(Waiting { wake, ticket: AtomicU64::new(0), reserve_after_micros })
    }

    /// To be sure that it holds one has to have had the table of reservations since.
    pub fn set_reserve_after_micros(&self, micros: u64) {
        self.reserve_after_micros.store(micros, Ordering::Relaxed);
    }

    pub fn wake(&self) {
        self.wake.wake();
    }

    pub fn ticket(&self) -> Option<Ticket> {
        Some(self.ticket.load(Ordering::Acquire)).filter(|ticket| *ticket != 0)
    }

    pub fn set_ticket(&self, ticket: Option<Ticket>) {
        self.ticket.store(ticket.unwrap_or(0), Ordering::Release);
    }
}

/// One who waits in the queue, and since when.
struct Queued {
    waiter: Waiter,
    since: Moment,
}

#[derive(Default)]
pub(super) struct Queue {
    waiters: VecDeque<Queued>,
    /// When the shard was last unlocked while somebody waited for it.
    last_unlock: Option<Moment>,
}

impl Queue {
    fn first(&self) -> Option<Waiter> {
        self.waiters.front().map(|queued| queued.waiter.clone())
    }

    /// The first, if nobody who waits has had a chance for too long: one call had the shard. (Where
    /// many short calls had it the first was woken by each of them.)
    fn first_if_due(&self, now: Moment) -> Option<Waiter> {
        let first = self.waiters.front()?;
        let after_micros = first.waiter.reserve_after_micros.load(Ordering::Relaxed);
        let is_over = |earlier| micros_between(earlier, now) >= after_micros;
        // Who may not reserve is never due, in a model either.
        let is_due = after_micros != u64::MAX
            && is_over(first.since)
            && self.last_unlock.is_none_or(is_over);
        is_due.then(|| first.waiter.clone())
    }
}

impl<T> Lock<T> {
    pub(super) fn is_free(&self) -> bool {
        self.state.load(Ordering::Acquire) & (HELD | RESERVED) == 0
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(|poison| poison.into_inner())
    }

    /// Queues `waiter`, unless the lock is free by now: false.
    pub(super) fn enqueue_unless_free(&self, waiter: &Waiter) -> bool {
        let mut queue = self.queue();
        let before = self.state.fetch_or(QUEUED, Ordering::Acquire);
        let is_free = before & (HELD | RESERVED) == 0;
        if !is_free {
            queue.waiters.push_back(Queued { waiter: waiter.clone(), since: now() });
            self.waits.fetch_add(1, Ordering::Relaxed);
        } else if queue.waiters.is_empty() {
            self.state.fetch_and(!QUEUED, Ordering::Relaxed);
        }
        !is_free
    }

    /// Takes `waiter` out of the queue. From then on nobody reserves the shard for it.
    pub(super) fn leave_queue(&self, waiter: &Waiter) {
        let mut queue = self.queue();
        let at = queue.waiters.iter().position(|other| Arc::ptr_eq(&other.waiter, waiter));
        at.and_then(|at| queue.waiters.remove(at));
    }

    pub(super) fn first_in_queue(&self) -> Option<Waiter> {
        self.queue().first()
    }
}

impl<T> Locks<T> {
    /// Wakes the oldest who has reserved the shard, and the first in its queue: it may have grown
    /// old meanwhile, and has its turn among the reservations only once it looks. But if it has had
    /// no chance for long, since one call had the shard all the time, it may find the next such
    /// call when it looks. So the shard is reserved for it.
    #[cold]
    pub(super) fn unlock_and_wake(&self, index: usize, mark: u32) {
        let lock = &self.locks[index];
        lock.awaited.store(mark, Ordering::Relaxed);
        let now = now();
        let due = lock.queue().first_if_due(now);
        if due.is_some() {
            self.reserve_for_first(index, now);
        }
        let mut queue = lock.queue();
        // QUEUED is only ever cleared under the queue's lock.
        let cleared = if queue.waiters.is_empty() { HELD | QUEUED } else { HELD };
        let before = lock.state.fetch_and(!cleared, Ordering::Release);
        let first = queue.first();
        queue.last_unlock = Some(now);
        drop(queue);
        if before & RESERVED != 0 {
            self.reservations.wake_oldest(index);
        }
        if let Some(first) = first {
            first.wake();
        }
    }

    /// Reserves a shard, which the caller holds, for the first in its queue.
    fn reserve_for_first(&self, index: usize, now: Moment) {
        let lock = &self.locks[index];
        // In this order everywhere: the table, then a queue.
        let mut table = self.reservations.table();
        let queue = lock.queue();
        let Some(first) = queue.first_if_due(now) else { return };
        let ticket = first.ticket().unwrap_or_else(|| self.reservations.enter(&mut table, &first));
        if !table.has_shard(ticket, index) {
            lock.state.fetch_or(RESERVED, Ordering::AcqRel);
            table.add_shard(ticket, index);
        }
    }

    /// Wakes all who wait for a shard, though it is still held, so that they learn why.
    pub fn wake_waiters(&self, index: usize) {
        let queue = self.locks[index].queue();
        let mut wakes: Vec<Waiter> =
            queue.waiters.iter().map(|queued| queued.waiter.clone()).collect();
        drop(queue);
        wakes.extend(self.reservations.all_of(index));
        wakes.iter().for_each(|waiter| waiter.wake());
    }
}
