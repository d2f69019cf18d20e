//! The memory orders of the lock, under loom: `lock.rs`, compiled against atomics that may show any
//! value that their orders allow. What a shard holds is a cell whose every access loom follows, so
//! that one which is not ordered after the last fails the test, as does a lost wake-up.
//!
//! Loom tries all schedules with a few preemptions each, which is feasible for two threads and very
//! short programs; more threads and longer ones are in `lock_model.rs`, under stronger orders.

mod sync {
    pub(super) use loom::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};
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

    pub(super) fn micros_between(_earlier: Moment, _later: Moment) -> u64 {
        if IS_OLD.get() { u64::MAX } else { 0 }
    }

    /// The first thread has a line of its own, the other the one that is for many.
    pub(super) const SHARED_SLOT: usize = 1;

    loom::thread_local! {
        pub(super) static SLOT: Cell<usize> = Cell::new(0);
    }

    pub(super) fn thread_slot() -> usize {
        SLOT.with(Cell::get)
    }

    pub(super) fn known_slot() -> usize {
        thread_slot()
    }

    pub(super) fn slots_end() -> usize {
        SHARED_SLOT
    }

    /// As loom has it, a read-modify-write orders nothing but itself.
    pub(super) fn full_fence_after_rmw() {
        loom::sync::atomic::fence(Ordering::SeqCst);
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
/// For those who take all shards at once: theirs is a longer way.
const PREEMPTIONS_WIDE_MAX: usize = 3;

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
    wide: AtomicUsize,
}

/// Adds one to each of these shards, waiting for them if they are busy.
fn add_one(met: &Met, shards: &Arc<Shards>, indexes: &[usize]) {
    let mut wanted = ShardSet::EMPTY;
    indexes.iter().for_each(|&index| wanted.insert(index));
    let add = |mut locked: Locked<'_, UnsafeCell<u64>>| {
        met.wide.fetch_add(usize::from(locked.is_wide()), Ordering::Relaxed);
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

/// Two threads, each on its own list of so many shards, in every schedule and every order of
/// memory.
fn explore(is_old: bool, count: usize, lists: [&'static [usize]; 2]) -> Arc<Met> {
    let is_wide = lists.iter().any(|list| list.len() == count);
    let preemptions_max = if is_wide { PREEMPTIONS_WIDE_MAX } else { PREEMPTIONS_MAX };
    let met = Arc::new(Met::default());
    let counted = met.clone();
    sync::IS_OLD.set(is_old);
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(preemptions_max);
    model.check(move || {
        let shards: Arc<Shards> = Arc::new(Locks::new((0..count).map(|_| UnsafeCell::new(0))));
        let (met, others) = (counted.clone(), shards.clone());
        let thread = loom::thread::spawn(move || {
            sync::SLOT.with(|slot| slot.set(sync::SHARED_SLOT));
            add_one(&met, &others, lists[1]);
        });
        add_one(&counted, &shards, lists[0]);
        thread.join().unwrap();
        let mut locked = shards.try_lock(shards.all()).expect("all have left");
        for index in 0..count {
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
    let met = explore(false, 2, [&[0], &[0]]);
    assert!(met.waited.load(Ordering::Relaxed) > 0, "nobody waited");
}

#[test]
fn waiters_for_several_shards_see_what_was_written() {
    let met = explore(false, 3, [&[0, 1], &[1]]);
    assert!(met.waited.load(Ordering::Relaxed) > 0, "nobody waited");
}

/// Two shards are all there are, so that they are taken at once if nobody is there.
fn explore_wide(is_old: bool, lists: [&'static [usize]; 2]) {
    let met = explore(is_old, 2, lists);
    assert!(met.waited.load(Ordering::Relaxed) > 0, "nobody waited");
    assert!(met.wide.load(Ordering::Relaxed) > 0, "nobody took all at once");
}

#[test]
fn who_takes_all_shards_and_who_takes_one_see_what_was_written() {
    explore_wide(false, [&[0, 1], &[1]]);
    explore_wide(false, [&[1], &[0, 1]]);
}

#[test]
fn two_who_take_all_shards_see_what_was_written() {
    explore_wide(false, [&[0, 1], &[0, 1]]);
}

#[test]
fn old_waiters_and_who_takes_all_shards_see_what_was_written() {
    explore_wide(true, [&[0, 1], &[1]]);
}

/// A snapshot is of one moment since a call takes the version once it has its shards, and what
/// walks a shard has raised the version before it locks that: whoever locks it afterwards takes the
/// new one. So it is with all shards at once.
#[test]
fn who_takes_all_shards_after_a_walk_sees_its_version() {
    let (before, after) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let counts = [before.clone(), after.clone()];
    sync::IS_OLD.set(false);
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(PREEMPTIONS_MAX);
    model.check(move || {
        let shards: Arc<Shards> = Arc::new(Locks::new([UnsafeCell::new(0), UnsafeCell::new(0)]));
        let version = Arc::new(sync::AtomicU64::new(1));
        let (walked, raised) = (shards.clone(), version.clone());
        let walk = loom::thread::spawn(move || {
            sync::SLOT.with(|slot| slot.set(sync::SHARED_SLOT));
            raised.store(2, Ordering::Relaxed);
            if let Some(mut locked) = walked.try_lock_now(1) {
                // SAFETY: 1. As in `add_one`.
                locked.shard().with_mut(|value| unsafe { *value = 2 });
            }
        });
        let mut locked = shards.try_lock(shards.all()).ok();
        let version = version.load(Ordering::Relaxed);
        if let Some(locked) = locked.as_mut() {
            // SAFETY: 1. As in `add_one`.
            let walked = locked.shard(1).with(|value| unsafe { *value });
            assert!(walked <= version, "walked for {walked}, but the call is of {version}");
            counts[usize::from(walked == 2)].fetch_add(1, Ordering::Relaxed);
        }
        drop(locked);
        walk.join().unwrap();
    });
    let is_met = |count: &Arc<AtomicUsize>| count.load(Ordering::Relaxed) > 0;
    assert!(is_met(&before) && is_met(&after), "one order only");
}

/// A call that kept everybody waiting for 50 ms was run again and again. Who waited was woken in
/// between, but by the time it looked the next run had all shards, for another 50 ms.
#[test]
fn who_has_waited_behind_a_long_call_comes_before_the_next_one() {
    loom::model(|| {
        sync::IS_OLD.set(false);
        let shards: Arc<Shards> = Arc::new(Locks::new([UnsafeCell::new(0), UnsafeCell::new(0)]));
        let all = shards.all().clone();
        let long = shards.try_lock(&all).expect("nobody is there");
        assert!(long.is_wide());
        let mut wait = Wait::new(shards.clone(), Bell::new());
        assert!(wait.poll(&shards, &ShardSet::one(1), true).is_none());
        assert!(!wait.has_reserved());
        sync::IS_OLD.set(true);
        drop(long);
        assert_eq!(shards.try_lock(&all).err(), Some(1), "the next one waits");
        assert!(shards.try_lock(&ShardSet::one(0)).is_ok(), "for nothing but that shard");
        drop(wait.poll(&shards, &ShardSet::one(1), true).expect("it was reserved"));
        assert!(shards.try_lock(&all).is_ok());
        sync::IS_OLD.set(false);
    });
}

#[test]
fn reserved_shards_are_handed_over_with_what_was_written() {
    for lists in [[&[0][..], &[0][..]], [&[0, 1], &[1]]] {
        let met = explore(true, 3, lists);
        assert!(met.handed_over.load(Ordering::Relaxed) > 0, "no hand-over: {lists:?}");
    }
}
