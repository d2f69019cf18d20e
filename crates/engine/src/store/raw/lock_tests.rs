//! The lock with real threads and real atomics: few rounds, so that Miri can follow each access.
//! Which schedules are tried is left to chance here, and to the models of `lock_model.rs` and
//! `lock_orders.rs` otherwise.

use super::lock::{Locked, Locks, Wait, Wake};
use super::sync::{SHARED_SLOT, slots_end, thread_slot};
use super::threads::Slots;
use crate::store::shard_set::ShardSet;
use std::sync::{Arc, Barrier};
use std::thread::Thread;

const ROUNDS: usize = if cfg!(miri) { 20 } else { 2_000 };
const SHARDS: usize = 3;

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(&self) {
        self.0.unpark();
    }
}

fn with_locked(locks: &Arc<Locks<Vec<usize>>>, indexes: &[usize], act: impl FnOnce(Moved<'_, '_>)) {
    let mut wanted = ShardSet::EMPTY;
    indexes.iter().for_each(|&index| wanted.insert(index));
    let mut wait = Wait::new(locks.clone(), Arc::new(Unpark(std::thread::current())));
    loop {
        if let Some(mut locked) = wait.poll(locks, &wanted, true) {
            return act(&mut locked);
        }
        std::thread::park();
    }
}

type Moved<'l, 'a> = &'l mut Locked<'a, Vec<usize>>;

/// Values that own memory are moved between shards by several threads; none is lost or doubled.
#[test]
fn what_threads_move_between_shards_stays_whole() {
    let locks = Arc::new(Locks::new((0..SHARDS).map(|shard| vec![shard; 4])));
    std::thread::scope(|scope| {
        for from in 0..SHARDS {
            let (locks, to) = (&locks, (from + 1) % SHARDS);
            scope.spawn(move || {
                for _ in 0..ROUNDS {
                    with_locked(locks, &[from, to], |locked| {
                        let (from, to) = locked.pair(from, to);
                        to.extend(from.pop());
                    });
                }
            });
        }
    });
    with_locked(&locks, &[0, 1, 2], |locked| {
        let mut all: Vec<usize> =
            (0..SHARDS).flat_map(|shard| locked.shard(shard).clone()).collect();
        all.sort_unstable();
        assert_eq!(all, [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2]);
    });
}

/// Who takes all shards is alone, beside threads that live for one call each and others that stay.
#[test]
fn who_takes_all_shards_is_alone_beside_threads_that_come_and_go() {
    let locks = Arc::new(Locks::new((0..SHARDS).map(|shard| vec![shard; 4])));
    let turn = |locked: Moved<'_, '_>| {
        let shards: Vec<usize> = locked.held().iter().collect();
        for &index in &shards {
            let last = locked.shard(index).pop();
            locked.shard(index).splice(0..0, last);
        }
    };
    std::thread::scope(|scope| {
        for indexes in [&[0, 1, 2][..], &[0], &[1, 2]] {
            let locks = &locks;
            scope.spawn(move || {
                for _ in 0..ROUNDS {
                    with_locked(locks, indexes, turn);
                }
            });
            scope.spawn(move || {
                for _ in 0..ROUNDS / 10 {
                    let call = || with_locked(locks, indexes, turn);
                    std::thread::scope(|scope| scope.spawn(call).join().unwrap());
                }
            });
        }
    });
    with_locked(&locks, &[0, 1, 2], |locked| {
        (0..SHARDS).for_each(|index| assert_eq!(*locked.shard(index), [index; 4]));
        assert!(locked.is_wide(), "nobody else is there");
    });
}

#[test]
fn slots_are_given_once_and_again_when_given_back() {
    let slots = Slots::new();
    let taken: Vec<usize> = (0..SHARED_SLOT + 2).map(|_| slots.take()).collect();
    assert!(taken[..SHARED_SLOT].iter().copied().eq(0..SHARED_SLOT));
    assert_eq!(taken[SHARED_SLOT..], [SHARED_SLOT; 2]);
    [SHARED_SLOT, 3, 1].iter().for_each(|&slot| slots.give_back(slot));
    assert_eq!([(); 3].map(|()| slots.take()), [1, 3, SHARED_SLOT]);
    assert_eq!(slots.end(), SHARED_SLOT);
}

/// Embedded engines are used from any number of threads: those that run at the same time have
/// different slots as far as these go, and the others share one.
#[test]
fn threads_that_run_at_once_have_different_slots() {
    let threads = SHARED_SLOT + 8;
    let barrier = Barrier::new(threads);
    let run = || {
        let own = thread_slot();
        barrier.wait();
        assert_eq!(thread_slot(), own);
        own
    };
    for _ in 0..if cfg!(miri) { 1 } else { 2 } {
        let mut slots: Vec<usize> = std::thread::scope(|scope| {
            let handles: Vec<_> = (0..threads).map(|_| scope.spawn(run)).collect();
            handles.into_iter().map(|handle| handle.join().unwrap()).collect()
        });
        slots.retain(|&slot| slot != SHARED_SLOT);
        let own = slots.len();
        slots.sort_unstable();
        slots.dedup();
        // Other tests' threads have some, too.
        assert!(!slots.is_empty() && slots.len() == own && threads - own >= 8);
        assert!(slots.iter().all(|&slot| slot < slots_end()));
    }
}
