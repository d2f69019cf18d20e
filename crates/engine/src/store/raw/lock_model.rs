//! The locking protocol under a model checker: `lock.rs`, compiled against primitives whose every
//! step is scheduled by shuttle. Schedules are sequentially consistent here; what weaker memory
//! orders allow is the business of `lock_orders.rs`.
//!
//! Each test also counts the situations that it is about, and fails if no schedule met them.

mod sync {
    use super::threads::Slots;
    use shuttle::rand::Rng;
    pub(super) use shuttle::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering};
    pub(super) use shuttle::sync::{Mutex, MutexGuard};

    pub(super) fn spin_hint() {
        shuttle::thread::yield_now();
    }

    /// Few, so that waiting is common.
    pub(super) const SPINS_MAX: u32 = 2;

    #[derive(Clone, Copy)]
    pub(super) struct Moment;

    pub(super) fn now() -> Moment {
        Moment
    }

    /// Any time may have passed: a waiter may have grown old at each look.
    pub(super) fn micros_between(_earlier: Moment, _later: Moment) -> u64 {
        if shuttle::rand::thread_rng().gen_bool(0.5) { u64::MAX } else { 0 }
    }

    /// Two threads have lines of their own at a time, the others share one.
    pub(super) const SHARED_SLOT: usize = 2;

    shuttle::lazy_static! {
        static ref SLOTS: Slots = Slots::new();
    }

    shuttle::thread_local! {
        static LEASE: Lease = Lease(SLOTS.take());
    }

    struct Lease(usize);

    impl Drop for Lease {
        fn drop(&mut self) {
            SLOTS.give_back(self.0);
        }
    }

    pub(super) fn thread_slot() -> usize {
        LEASE.with(|lease| lease.0)
    }

    pub(super) fn known_slot() -> usize {
        thread_slot()
    }

    pub(super) fn slots_end() -> usize {
        SLOTS.end()
    }

    /// Schedules are sequentially consistent.
    pub(super) fn full_fence_after_rmw() {}
}

// Compiled a second time on purpose: against other primitives.
#[path = "lock.rs"]
#[allow(dead_code, clippy::duplicate_mod)]
mod lock;
#[path = "threads.rs"]
#[allow(clippy::duplicate_mod)]
mod threads;

use crate::store::shard_set::ShardSet;
use lock::{Locks, Wait, Wake};
use shuttle::sync::{Condvar, Mutex};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

const SCHEDULES: usize = 2_000;

/// How often all schedules of a test came to what it is about. Outside the model: counting is no
/// step of a schedule.
#[derive(Default)]
struct Met {
    /// A waiter was left in a queue.
    queued: AtomicUsize,
    /// A waiter reserved what it waits for.
    reserved: AtomicUsize,
    /// Who had reserved got all its shards: the hand-over.
    handed_over: AtomicUsize,
    /// Reservations of several waiters stood side by side.
    side_by_side: AtomicUsize,
    /// Who had reserved left without having had its turn.
    given_up: AtomicUsize,
    /// Who unlocked a shard reserved it for a waiter that had not looked again.
    reserved_for: AtomicUsize,
    /// All shards were taken at once.
    wide: AtomicUsize,
    /// A shard was left locked for the wide holder.
    left: AtomicUsize,
}

impl Met {
    fn count(counter: &AtomicUsize, is_met: bool) {
        counter.fetch_add(usize::from(is_met), Ordering::Relaxed);
    }

    /// Polls, and counts what that came to.
    fn poll<'a>(
        &self,
        wait: &mut Wait<u64>,
        locks: &'a Locks<u64>,
        (wanted, may_reserve): (&ShardSet, bool),
    ) -> Option<lock::Locked<'a, u64>> {
        let had_reserved = wait.has_reserved();
        let locked = wait.poll(locks, wanted, may_reserve);
        assert!(may_reserve || !wait.has_reserved(), "reserved though it may not");
        let (has_reserved, is_locked) = (wait.has_reserved(), locked.is_some());
        Met::count(&self.queued, !is_locked && !has_reserved);
        Met::count(&self.left, !is_locked && locks.has_left());
        Met::count(&self.reserved, has_reserved && !had_reserved);
        Met::count(&self.handed_over, is_locked && had_reserved && may_reserve);
        Met::count(&self.side_by_side, has_reserved && wait.reservations() > 1);
        locked
    }

    fn leave(&self, wait: Wait<u64>) {
        Met::count(&self.given_up, wait.has_reserved());
    }

    /// Fails if one of these was never met.
    fn require(&self, situations: &[(&str, &AtomicUsize)]) {
        for (name, counter) in situations {
            assert!(counter.load(Ordering::Relaxed) > 0, "no schedule met this: {name}");
        }
    }
}

/// Runs a test under many schedules, and gives it what to count with.
fn check(schedules: usize, test: impl Fn(&Arc<Met>) + Send + Sync + 'static) -> Arc<Met> {
    let met = Arc::new(Met::default());
    let counted = met.clone();
    shuttle::check_random(move || test(&counted), schedules);
    met
}

/// Wakes a thread that waits in [`Bell::await_ring`].
#[derive(Default)]
struct Bell {
    is_woken: Mutex<bool>,
    changed: Condvar,
}

impl Bell {
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

fn with_locked(
    met: &Met,
    locks: &Arc<Locks<u64>>,
    wanted: ShardSet,
    mut action: impl FnMut(&mut lock::Locked<u64>),
) {
    let mut action = |locked: &mut lock::Locked<u64>| {
        Met::count(&met.wide, locked.is_wide());
        action(locked);
    };
    if let Ok(mut locked) = locks.try_lock(&wanted) {
        return action(&mut locked);
    }
    let bell = Arc::new(Bell::default());
    let mut wait = Wait::new(locks.clone(), bell.clone());
    loop {
        if let Some(mut locked) = met.poll(&mut wait, locks, (&wanted, true)) {
            return action(&mut locked);
        }
        let has_reserved = wait.has_reserved();
        bell.await_ring();
        Met::count(&met.reserved_for, !has_reserved && wait.has_reserved());
    }
}

fn set(indexes: &[usize]) -> ShardSet {
    let mut set = ShardSet::EMPTY;
    indexes.iter().for_each(|&index| set.insert(index));
    set
}

/// Moves between shards never lose or double a unit, and every thread comes to its end: no deadlock
/// (shuttle reports one) and no lost wake-up (that would be one too).
#[test]
fn moves_between_shards_are_atomic_and_end() {
    let met = check(SCHEDULES, |met| {
        let locks = Arc::new(Locks::new([10u64, 10, 10]));
        let threads: Vec<_> = [[0, 1], [1, 2], [2, 0]]
            .into_iter()
            .map(|[from, to]| {
                let (met, locks) = (met.clone(), locks.clone());
                shuttle::thread::spawn(move || {
                    for _ in 0..2 {
                        with_locked(&met, &locks, set(&[from, to]), |locked| {
                            let (from, to) = locked.pair(from, to);
                            *from -= 1;
                            *to += 1;
                        });
                    }
                })
            })
            .collect();
        with_locked(met, &locks, set(&[0, 1, 2]), |locked| {
            let sum: u64 = (0..3).map(|index| *locked.shard(index)).sum();
            assert_eq!(sum, 30, "a reader saw a move half done");
        });
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        with_locked(met, &locks, set(&[0, 1, 2]), |locked| {
            assert_eq!((0..3).map(|index| *locked.shard(index)).sum::<u64>(), 30);
        });
    });
    met.require(&[
        ("a wait in a queue", &met.queued),
        ("a reservation", &met.reserved),
        ("a hand-over", &met.handed_over),
        ("several reservations", &met.side_by_side),
    ]);
}

/// Changes a value for a while and back. Whoever is in the same shard meanwhile makes one of the
/// two fail.
fn change_alone(value: &mut u64) {
    let before = *value;
    *value = before + 1;
    shuttle::thread::yield_now();
    assert_eq!(*value, before + 1, "somebody else was in the shard");
    *value = before;
}

/// Calls that need all shards and take them at once beside those that need one or two, and beside
/// housekeeping, which takes one if that is free: nothing is lost or seen half done, and all end.
#[test]
fn all_shards_are_taken_at_once_and_alone() {
    let met = check(SCHEDULES, |met| {
        let locks = Arc::new(Locks::new([10u64, 10, 10]));
        let threads: Vec<_> = (0..4)
            .map(|at| {
                let (met, locks) = (met.clone(), locks.clone());
                let wanted = [set(&[0, 1, 2]), set(&[0, 1, 2]), set(&[1]), set(&[1, 2])];
                let wanted = wanted[at].clone();
                shuttle::thread::spawn(move || {
                    for _ in 0..2 {
                        with_locked(&met, &locks, wanted.clone(), |locked| {
                            let shards: Vec<usize> = locked.held().iter().collect();
                            shards.iter().for_each(|&index| change_alone(locked.shard(index)));
                            let (first, last) = (shards[0], shards[shards.len() - 1]);
                            *locked.shard(first) -= 1;
                            *locked.shard(last) += 1;
                        });
                    }
                })
            })
            .collect();
        for index in [0, 1, 2] {
            if let Some(mut locked) = locks.try_lock_now(index) {
                change_alone(locked.shard());
            }
            let mut added = locks.lock_none();
            if added.try_add(index) && added.try_add_now((index + 1) % 3).is_some() {
                change_alone(added.shard(index));
                change_alone(added.shard((index + 1) % 3));
            }
        }
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        with_locked(met, &locks, set(&[0, 1, 2]), |locked| {
            assert_eq!((0..3).map(|index| *locked.shard(index)).sum::<u64>(), 30);
            assert!(locked.is_wide(), "nobody else is there");
        });
        assert!(!locks.has_left());
    });
    met.require(&[
        ("all shards at once", &met.wide),
        ("a shard left to the wide holder", &met.left),
        ("a wait in a queue", &met.queued),
        ("a hand-over", &met.handed_over),
        ("a reservation by who unlocks", &met.reserved_for),
    ]);
}

/// A program may embed the engine in threads that live for one call each. The line of one that has
/// ended becomes another's, and who takes all shards sees the holders of both.
#[test]
fn threads_that_come_and_go_are_seen() {
    let met = check(SCHEDULES, |met| {
        let locks = Arc::new(Locks::new([0u64, 0]));
        let add_one = |locked: &mut lock::Locked<u64>| {
            for index in locked.held().clone().iter() {
                change_alone(locked.shard(index));
                *locked.shard(index) += 1;
            }
        };
        let threads: Vec<_> = [set(&[0]), set(&[0, 1]), set(&[1])]
            .into_iter()
            .map(|wanted| {
                let (met, locks) = (met.clone(), locks.clone());
                shuttle::thread::spawn(move || {
                    for _ in 0..2 {
                        let (met, locks, wanted) = (met.clone(), locks.clone(), wanted.clone());
                        let call = move || with_locked(&met, &locks, wanted.clone(), add_one);
                        shuttle::thread::spawn(call).join().unwrap();
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        with_locked(met, &locks, set(&[0, 1]), |locked| {
            assert_eq!([*locked.shard(0), *locked.shard(1)], [4, 4]);
        });
    });
    met.require(&[("all shards at once", &met.wide), ("a wait in a queue", &met.queued)]);
}

/// A waiter that gives up (its client hung up) leaves nothing locked and nobody asleep.
#[test]
fn a_waiter_that_leaves_strands_nobody() {
    let met = check(SCHEDULES, |met| {
        let locks = Arc::new(Locks::new([0u64]));
        let threads: Vec<_> = (0..3)
            .map(|at| {
                let (met, locks) = (met.clone(), locks.clone());
                shuttle::thread::spawn(move || {
                    if at == 0 {
                        let mut wait = Wait::new(locks.clone(), Arc::new(Bell::default()));
                        drop(met.poll(&mut wait, &locks, (&set(&[0]), true)));
                        met.leave(wait);
                        return;
                    }
                    for _ in 0..2 {
                        with_locked(&met, &locks, set(&[0]), |locked| *locked.shard(0) += 1);
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        with_locked(met, &locks, set(&[0]), |locked| assert_eq!(*locked.shard(0), 4));
    });
    met.require(&[
        ("a wait in a queue", &met.queued),
        ("a hand-over", &met.handed_over),
        ("a reservation given up", &met.given_up),
    ]);
}

/// One that has reserved shards and gives up, or goes back to the queue because it may reserve no
/// longer, leaves them to others.
#[test]
fn a_reservation_that_is_given_up_strands_nobody() {
    let met = check(SCHEDULES, |met| {
        let locks = Arc::new(Locks::new([0u64, 0, 0]));
        let threads: Vec<_> = (0..4)
            .map(|at| {
                let (met, locks) = (met.clone(), locks.clone());
                shuttle::thread::spawn(move || {
                    let wanted = set(&[at % 3, (at + 1) % 3]);
                    let bell = Arc::new(Bell::default());
                    let mut wait = Wait::new(locks.clone(), bell.clone());
                    if met.poll(&mut wait, &locks, (&wanted, true)).is_some() || at == 0 {
                        // It may have reserved, and leaves.
                        return met.leave(wait);
                    }
                    loop {
                        bell.await_ring();
                        if met.poll(&mut wait, &locks, (&wanted, at != 1)).is_some() {
                            return;
                        }
                    }
                })
            })
            .collect();
        for index in 0..3 {
            with_locked(met, &locks, set(&[index]), |locked| *locked.shard(index) += 1);
        }
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        with_locked(met, &locks, set(&[0, 1, 2]), |locked| {
            assert_eq!((0..3).map(|index| *locked.shard(index)).sum::<u64>(), 3);
        });
    });
    met.require(&[
        ("a hand-over", &met.handed_over),
        ("several reservations", &met.side_by_side),
        ("a reservation given up", &met.given_up),
    ]);
}

/// A call that needs other shards when it is tried again (another transaction of the same client,
/// say) gives back what it had reserved before.
#[test]
fn a_wait_whose_shards_change_ends() {
    let met = check(SCHEDULES, |met| {
        let locks = Arc::new(Locks::new([0u64, 0]));
        let threads: Vec<_> = (0..3)
            .map(|at| {
                let (met, locks) = (met.clone(), locks.clone());
                shuttle::thread::spawn(move || {
                    let bell = Arc::new(Bell::default());
                    let mut wait = Wait::new(locks.clone(), bell.clone());
                    let mut tries = at;
                    loop {
                        tries += 1;
                        if met.poll(&mut wait, &locks, (&set(&[tries % 2]), true)).is_some() {
                            return;
                        }
                        bell.await_ring();
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        with_locked(met, &locks, set(&[0, 1]), |locked| *locked.shard(0) += 1);
    });
    met.require(&[("a reservation", &met.reserved), ("a hand-over", &met.handed_over)]);
}

/// Whoever has reserved a shard gets it next, and nobody else takes one that is reserved.
#[test]
fn a_reserved_shard_is_for_the_one_who_reserved_it() {
    let met = check(100, |met| {
        let locks = Arc::new(Locks::new([0u64, 0]));
        let held = locks.try_lock(&set(&[1])).ok();
        let mut wait = Wait::new(locks.clone(), Arc::new(Bell::default()));
        // It grows old at some look.
        for _ in 0..64 {
            assert!(met.poll(&mut wait, &locks, (&set(&[0, 1]), true)).is_none());
        }
        assert!(locks.try_lock(&set(&[0])).is_ok(), "what is not busy is not reserved");
        drop(held);
        assert_eq!(locks.try_lock(&set(&[1])).err(), Some(1));
        assert!(locks.try_lock_now(1).is_none());
        let mut later = Wait::new(locks.clone(), Arc::new(Bell::default()));
        for _ in 0..64 {
            assert!(met.poll(&mut later, &locks, (&set(&[1]), true)).is_none(), "it is younger");
        }
        let poll = |_| met.poll(&mut wait, &locks, (&set(&[0, 1]), true));
        drop((0..64).find_map(poll).expect("its shards are free"));
        assert_eq!(locks.try_lock(&set(&[1])).err(), Some(1), "the younger is next");
        drop(later);
        assert!(locks.try_lock(&set(&[0, 1])).is_ok());
    });
    met.require(&[("a hand-over", &met.handed_over), ("two at a time", &met.side_by_side)]);
}

/// What waits for a script past `busy-reply-threshold` may not reserve, however old it grows: the
/// shards that it wants beside the script's stay everybody's. A reservation that it had made before
/// the script was known to be slow is given up.
#[test]
fn nobody_reserves_against_a_slow_script() {
    let met = check(100, |met| {
        let locks = Arc::new(Locks::new([0u64, 0]));
        let script = locks.try_lock(&set(&[1])).ok();
        let [mut early, mut late] =
            [(); 2].map(|()| Wait::new(locks.clone(), Arc::new(Bell::default())));
        for _ in 0..64 {
            assert!(met.poll(&mut early, &locks, (&set(&[0, 1]), true)).is_none());
        }
        assert!(early.has_reserved(), "it grows old at some of 64 looks");
        for _ in 0..64 {
            assert!(met.poll(&mut early, &locks, (&set(&[0, 1]), false)).is_none());
            assert!(met.poll(&mut late, &locks, (&set(&[0, 1]), false)).is_none());
            assert_eq!(late.reservations(), 0);
            assert!(locks.try_lock(&set(&[0])).is_ok(), "a shard that the script does not hold");
        }
        drop(script);
        assert!(locks.try_lock(&set(&[0, 1])).is_ok(), "a waiter may be passed by");
        assert!(met.poll(&mut late, &locks, (&set(&[0, 1]), false)).is_some());
    });
    met.require(&[("a reservation", &met.reserved), ("a wait in a queue", &met.queued)]);
}
