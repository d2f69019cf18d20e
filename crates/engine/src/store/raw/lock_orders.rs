//! The memory orders of the lock, under loom: `lock.rs`, compiled against atomics that may show any
//! value that their orders allow. What a shard holds is a cell whose every access loom follows, so
//! that one which is not ordered after the last fails the test, as does a lost wake-up.
//!
//! Loom tries all schedules with a few preemptions each, which is feasible for two threads and very
//! short programs; more threads and longer ones are in `lock_model.rs`, under stronger orders.

mod sync {
    pub(super) use loom::sync::atomic::{AtomicU8, Ordering};
    pub(super) use loom::sync::{Mutex, MutexGuard};
    use std::cell::Cell;

    /// One look: each more multiplies the schedules.
    pub(super) const SPINS_MAX: u32 = 1;

    /// Loom lets the others run to their end first if a thread yields: then nobody would wait.
    pub(super) fn spin_hint() {}

    #[derive(Clone, Copy)]
    pub(super) struct Moment;

    std::thread_local! {
        /// Whether a waiter is old at its first look. All threads of a model run on one of ours.
        pub(super) static IS_OLD: Cell<bool> = const { Cell::new(false) };
    }

    pub(super) fn now() -> Moment {
        Moment
    }

    pub(super) fn micros_since(_moment: Moment) -> u64 {
        if IS_OLD.get() { u64::MAX } else { 0 }
    }
}

// Compiled once more on purpose: against other primitives.
#[path = "lock.rs"]
#[allow(dead_code, clippy::duplicate_mod)]
mod lock;

use crate::store::shard_set::ShardSet;
use lock::{Locked, Locks, Wait, Wake};
use loom::cell::UnsafeCell;
use loom::sync::{Condvar, Mutex};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Races of memory orders need few preemptions to show.
const PREEMPTIONS_MAX: usize = 5;

type Shards = Locks<UnsafeCell<u64>>;

/// Wakes a thread that waits in [`Bell::await_ring`].
struct Bell {
    is_woken: Mutex<bool>,
    changed: Condvar,
}

impl Bell {
    fn new() -> Arc<Bell> {
        Arc::new(Bell { is_woken: Mutex::new(false), changed: Condvar::new() })
    }

    fn await_ring(&self) {
        let mut is_woken = self.is_woken.lock().unwrap();
        while !*is_woken {
            is_woken = self.changed.wait(is_woken).unwrap();
        }
        *is_woken = false;
    }
}

impl Wake for Bell {
    fn wake(&self) {
        *self.is_woken.lock().unwrap() = true;
        self.changed.notify_one();
    }
}

/// What all schedules of a model came to.
#[derive(Default)]
struct Met {
    waited: AtomicUsize,
    handed_over: AtomicUsize,
}

/// Adds one to each of these shards, waiting for them if they are busy.
fn add_one(met: &Met, shards: &Arc<Shards>, indexes: &[usize]) {
    let mut wanted = ShardSet::EMPTY;
    indexes.iter().for_each(|&index| wanted.insert(index));
    let add = |mut locked: Locked<'_, UnsafeCell<u64>>| {
        for &index in indexes {
            // SAFETY: 1. The shard is locked: nobody else has a pointer to its value. That is what
            // loom checks here.
            locked.shard(index).with_mut(|value| unsafe { *value += 1 });
        }
    };
    if let Ok(locked) = shards.try_lock(&wanted) {
        return add(locked);
    }
    let bell = Bell::new();
    let mut wait = Wait::new(shards.clone(), bell.clone());
    loop {
        let had_reserved = wait.has_reserved();
        if let Some(locked) = wait.poll(shards, &wanted, true) {
            met.handed_over.fetch_add(usize::from(had_reserved), Ordering::Relaxed);
            return add(locked);
        }
        met.waited.fetch_add(1, Ordering::Relaxed);
        bell.await_ring();
    }
}

/// Two threads, each on its own list of shards, in every schedule and every order of memory.
fn explore(is_old: bool, lists: [&'static [usize]; 2]) -> Arc<Met> {
    let met = Arc::new(Met::default());
    let counted = met.clone();
    sync::IS_OLD.set(is_old);
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(PREEMPTIONS_MAX);
    model.check(move || {
        let shards: Arc<Shards> = Arc::new(Locks::new([UnsafeCell::new(0), UnsafeCell::new(0)]));
        let (met, others) = (counted.clone(), shards.clone());
        let thread = loom::thread::spawn(move || add_one(&met, &others, lists[1]));
        add_one(&counted, &shards, lists[0]);
        thread.join().unwrap();
        let mut all = ShardSet::EMPTY;
        (0..2).for_each(|index| all.insert(index));
        let mut locked = shards.try_lock(&all).expect("all have left");
        for index in 0..2 {
            let expected = lists.iter().filter(|list| list.contains(&index)).count() as u64;
            // SAFETY: 1. As in `add_one`.
            let value = locked.shard(index).with(|value| unsafe { *value });
            assert_eq!(value, expected, "shard {index}");
        }
    });
    met
}

#[test]
fn what_one_holder_wrote_the_next_one_sees() {
    let met = explore(false, [&[0], &[0]]);
    assert!(met.waited.load(Ordering::Relaxed) > 0, "nobody waited");
}

#[test]
fn waiters_for_several_shards_see_what_was_written() {
    let met = explore(false, [&[0, 1], &[1]]);
    assert!(met.waited.load(Ordering::Relaxed) > 0, "nobody waited");
}

#[test]
fn reserved_shards_are_handed_over_with_what_was_written() {
    for lists in [[&[0][..], &[0][..]], [&[0, 1], &[1]]] {
        let met = explore(true, lists);
        assert!(met.handed_over.load(Ordering::Relaxed) > 0, "no hand-over: {lists:?}");
    }
}
