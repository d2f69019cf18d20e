//! The locking protocol under a model checker: `lock.rs`, compiled against primitives whose every
//! step is scheduled by shuttle.

mod sync {
    use shuttle::rand::Rng;
    pub(super) use shuttle::sync::atomic::{AtomicU8, Ordering};
    pub(super) use shuttle::sync::{Mutex, MutexGuard};

    pub(super) fn spin_hint() {
        shuttle::thread::yield_now();
    }

    #[derive(Clone, Copy)]
    pub(super) struct Moment;

    pub(super) fn now() -> Moment {
        Moment
    }

    /// Any time may have passed: a waiter may have grown old at each look.
    pub(super) fn micros_since(_moment: Moment) -> u64 {
        if shuttle::rand::thread_rng().gen_bool(0.5) { u64::MAX } else { 0 }
    }
}

// Compiled a second time on purpose: against other primitives.
#[path = "lock.rs"]
#[allow(dead_code, clippy::duplicate_mod)]
mod lock;

use crate::store::shard_set::ShardSet;
use lock::{Locks, Wait, Wake};
use shuttle::sync::{Condvar, Mutex};
use std::sync::Arc;

const SCHEDULES: usize = 2_000;

/// Wakes a thread that waits in [`Bell::await_ring`].
#[derive(Default)]
struct Bell {
    rung: Mutex<bool>,
    changed: Condvar,
}

impl Bell {
    fn await_ring(&self) {
        let mut rung = self.rung.lock().unwrap();
        while !*rung {
            rung = self.changed.wait(rung).unwrap();
        }
        *rung = false;
    }
}

impl Wake for Bell {
    fn wake(&self) {
        *self.rung.lock().unwrap() = true;
        self.changed.notify_one();
    }
}

fn with_locked(
    locks: &Arc<Locks<u64>>,
    wanted: ShardSet,
    action: impl FnOnce(&mut lock::Locked<u64>),
) {
    if let Ok(mut locked) = locks.try_lock(&wanted) {
        return action(&mut locked);
    }
    let bell = Arc::new(Bell::default());
    let mut wait = Wait::new(locks.clone(), bell.clone());
    loop {
        if let Some(mut locked) = wait.poll(locks, &wanted, true) {
            return action(&mut locked);
        }
        bell.await_ring();
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
    shuttle::check_random(
        || {
            let locks = Arc::new(Locks::new([10u64, 10, 10]));
            let threads: Vec<_> = [[0, 1], [1, 2], [2, 0]]
                .into_iter()
                .map(|[from, to]| {
                    let locks = locks.clone();
                    shuttle::thread::spawn(move || {
                        for _ in 0..2 {
                            with_locked(&locks, set(&[from, to]), |locked| {
                                let (from, to) = locked.pair(from, to);
                                *from -= 1;
                                *to += 1;
                            });
                        }
                    })
                })
                .collect();
            with_locked(&locks, set(&[0, 1, 2]), |locked| {
                let sum: u64 = (0..3).map(|index| *locked.shard(index)).sum();
                assert_eq!(sum, 30, "a reader saw a move half done");
            });
            threads.into_iter().for_each(|thread| thread.join().unwrap());
            with_locked(&locks, set(&[0, 1, 2]), |locked| {
                assert_eq!((0..3).map(|index| *locked.shard(index)).sum::<u64>(), 30);
            });
        },
        SCHEDULES,
    );
}

/// A waiter that gives up (its client hung up) leaves nothing locked and nobody asleep.
#[test]
fn a_waiter_that_leaves_strands_nobody() {
    shuttle::check_random(
        || {
            let locks = Arc::new(Locks::new([0u64]));
            let threads: Vec<_> = (0..3)
                .map(|at| {
                    let locks = locks.clone();
                    shuttle::thread::spawn(move || {
                        if at == 0 {
                            let bell = Arc::new(Bell::default());
                            let mut wait = Wait::new(locks.clone(), bell);
                            drop(wait.poll(&locks, &set(&[0]), true));
                            drop(wait);
                            return;
                        }
                        for _ in 0..2 {
                            with_locked(&locks, set(&[0]), |locked| *locked.shard(0) += 1);
                        }
                    })
                })
                .collect();
            threads.into_iter().for_each(|thread| thread.join().unwrap());
            with_locked(&locks, set(&[0]), |locked| assert_eq!(*locked.shard(0), 4));
        },
        SCHEDULES,
    );
}

/// One that has reserved shards and gives up, or goes back to the queue because it may reserve no
/// longer, leaves them to others.
#[test]
fn a_reservation_that_is_given_up_strands_nobody() {
    shuttle::check_random(
        || {
            let locks = Arc::new(Locks::new([0u64, 0, 0]));
            let threads: Vec<_> = (0..4)
                .map(|at| {
                    let locks = locks.clone();
                    shuttle::thread::spawn(move || {
                        let wanted = set(&[at % 3, (at + 1) % 3]);
                        let bell = Arc::new(Bell::default());
                        let mut wait = Wait::new(locks.clone(), bell.clone());
                        if wait.poll(&locks, &wanted, true).is_some() || at == 0 {
                            // It may have reserved, and leaves.
                            return;
                        }
                        loop {
                            bell.await_ring();
                            if wait.poll(&locks, &wanted, at != 1).is_some() {
                                return;
                            }
                        }
                    })
                })
                .collect();
            for index in 0..3 {
                with_locked(&locks, set(&[index]), |locked| *locked.shard(index) += 1);
            }
            threads.into_iter().for_each(|thread| thread.join().unwrap());
            with_locked(&locks, set(&[0, 1, 2]), |locked| {
                assert_eq!((0..3).map(|index| *locked.shard(index)).sum::<u64>(), 3);
            });
        },
        SCHEDULES,
    );
}

/// A call that needs other shards when it is tried again (its script was replaced, say) gives back
/// what it had reserved before.
#[test]
fn a_wait_whose_shards_change_ends() {
    shuttle::check_random(
        || {
            let locks = Arc::new(Locks::new([0u64, 0]));
            let threads: Vec<_> = (0..3)
                .map(|at| {
                    let locks = locks.clone();
                    shuttle::thread::spawn(move || {
                        let bell = Arc::new(Bell::default());
                        let mut wait = Wait::new(locks.clone(), bell.clone());
                        let mut tries = at;
                        loop {
                            tries += 1;
                            if wait.poll(&locks, &set(&[tries % 2]), true).is_some() {
                                return;
                            }
                            bell.await_ring();
                        }
                    })
                })
                .collect();
            threads.into_iter().for_each(|thread| thread.join().unwrap());
            with_locked(&locks, set(&[0, 1]), |locked| *locked.shard(0) += 1);
        },
        SCHEDULES,
    );
}

/// Whoever has reserved a shard gets it next, and nobody else takes one that is reserved.
#[test]
fn a_reserved_shard_is_for_the_one_who_reserved_it() {
    shuttle::check_random(
        || {
            let locks = Arc::new(Locks::new([0u64, 0]));
            let held = locks.try_lock(&set(&[1])).ok();
            let mut wait = Wait::new(locks.clone(), Arc::new(Bell::default()));
            // It grows old at some look.
            for _ in 0..64 {
                assert!(wait.poll(&locks, &set(&[0, 1]), true).is_none());
            }
            assert!(locks.try_lock(&set(&[0])).is_ok(), "what is not busy is not reserved");
            drop(held);
            assert_eq!(locks.try_lock(&set(&[1])).err(), Some(1));
            assert!(locks.try_lock_now(1).is_none());
            let mut later = Wait::new(locks.clone(), Arc::new(Bell::default()));
            for _ in 0..64 {
                assert!(later.poll(&locks, &set(&[1]), true).is_none(), "it is younger");
            }
            let locked = (0..64).find_map(|_| wait.poll(&locks, &set(&[0, 1]), true));
            drop(locked.expect("its shards are free"));
            assert_eq!(locks.try_lock(&set(&[1])).err(), Some(1), "the younger is next");
            drop(later);
            assert!(locks.try_lock(&set(&[0, 1])).is_ok());
        },
        100,
    );
}
