//! The lock with real threads and real atomics: few rounds, so that Miri can follow each access.
//! Which schedules are tried is left to chance here, and to the models of `lock_model.rs` and
//! `lock_orders.rs` otherwise.

use super::lock::{Locked, Locks, Wait, Wake};
use crate::store::shard_set::ShardSet;
use std::sync::Arc;
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
