//! Threads that load data side by side. Each has shards of its own, and gets its work in batches in
//! the order in which it was read: what is about one key is done in order.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::sync::{Condvar, Mutex, MutexGuard};
use std::thread;

/// Batches that wait for one thread: no more is read ahead.
const BATCHES_WAITING_MAX: usize = 4;
/// More threads have nothing to do, for one reads for all of them.
const WORKERS_MAX: usize = 8;

/// What can't be loaded: its offset in the file, and why.
pub(super) type Refused = (u64, String);

/// How many threads load; one alone is none beside the one that reads.
pub(super) fn workers() -> usize {
    match thread::available_parallelism().map_or(1, |cores| cores.get()) {
        1 => 0,
        cores => cores.min(WORKERS_MAX),
    }
}

#[derive(Default)]
struct State {
    /// Batches that were sent and are not done.
    pending: usize,
    /// The first in the file of what was refused.
    refused: Option<Refused>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    is_idle: Condvar,
    has_refused: AtomicBool,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poison| poison.into_inner())
    }

    fn refuse(&self, refused: Refused) {
        let mut state = self.state();
        if state.refused.as_ref().is_none_or(|(at, _)| refused.0 < *at) {
            state.refused = Some(refused);
        }
        self.has_refused.store(true, Ordering::Relaxed);
    }
}

/// A batch that is done when it goes, even if its work has panicked.
struct Done<'d>(&'d Shared);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.pending -= 1;
        if state.pending == 0 {
            self.0.is_idle.notify_all();
        }
    }
}

/// The threads, for the one that reads.
pub(super) struct Pool<'p, B> {
    queues: Vec<SyncSender<B>>,
    spares: Receiver<B>,
    shared: &'p Shared,
}

/// Runs `action` with so many threads, or as many as can be started. Each does with every batch
/// what the function does that `make` has made for it.
pub(super) fn with_pool<B, W, R>(
    workers: usize,
    make: impl Fn(usize) -> W + Sync,
    action: impl FnOnce(&mut Pool<'_, B>) -> R,
) -> R
where
    B: Send + Default,
    W: FnMut(&mut B) -> Result<(), Refused>,
{
    let shared = Shared::default();
    let (make, shared) = (&make, &shared);
    thread::scope(|scope| {
        let (spare, spares) = mpsc::channel();
        let mut queues = Vec::new();
        for index in 0..workers {
            let (queue, batches) = mpsc::sync_channel::<B>(BATCHES_WAITING_MAX);
            let spare = spare.clone();
            let run = move || {
                let mut work = make(index);
                for mut batch in batches {
                    let done = Done(shared);
                    if !shared.has_refused.load(Ordering::Relaxed)
                        && let Err(refused) = work(&mut batch)
                    {
                        shared.refuse(refused);
                    }
                    // Whoever reads may have ended.
                    let _kept = spare.send(batch);
                    drop(done);
                }
            };
            let thread = thread::Builder::new().name(format!("load-{index}"));
            match thread.spawn_scoped(scope, run) {
                Ok(_) => queues.push(queue),
                Err(_) => break,
            }
        }
        action(&mut Pool { queues, spares, shared })
    })
}

impl<B: Default> Pool<'_, B> {
    pub fn workers(&self) -> usize {
        self.queues.len()
    }

    /// Whose a shard is.
    pub fn worker_of(&self, shard: u16) -> usize {
        usize::from(shard) % self.queues.len()
    }

    /// Has a thread do a batch, and gives an empty one back, or one that was used before. Waits
    /// while too many are before it.
    pub fn send(&mut self, worker: usize, batch: B) -> B {
        self.shared.state().pending += 1;
        if self.queues[worker].send(batch).is_err() {
            // The thread has panicked, which ends the load.
            drop(Done(self.shared));
        }
        self.spares.try_recv().unwrap_or_default()
    }

    /// Whether something was refused already: there is no sense in reading on.
    pub fn check(&self) -> Result<(), Refused> {
        if !self.shared.has_refused.load(Ordering::Relaxed) {
            return Ok(());
        }
        self.wait()
    }

    /// Waits until all that was sent is done.
    pub fn wait(&self) -> Result<(), Refused> {
        let mut state = self.shared.state();
        while state.pending > 0 {
            state = self.shared.is_idle.wait(state).unwrap_or_else(|poison| poison.into_inner());
        }
        match &state.refused {
            Some(refused) => Err(refused.clone()),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;

    #[test]
    fn each_thread_does_its_batches_in_order() {
        let sums: Vec<AtomicU64> = (0..3).map(|_| AtomicU64::new(0)).collect();
        let make = |index: usize| {
            let sums = &sums;
            let mut last = 0;
            move |batch: &mut Vec<u64>| {
                for number in batch.drain(..) {
                    assert!(number > last && number as usize % 3 == index);
                    last = number;
                    sums[index].fetch_add(number, Ordering::Relaxed);
                }
                Ok(())
            }
        };
        let waited = with_pool(3, make, |pool| {
            for number in 1..=1000 {
                let worker = pool.worker_of(number as u16);
                let spare = pool.send(worker, vec![number]);
                assert!(spare.is_empty());
                if number == 500 {
                    pool.wait().unwrap();
                    let done: u64 = sums.iter().map(|sum| sum.load(Ordering::Relaxed)).sum();
                    assert_eq!(done, 500 * 501 / 2);
                }
            }
            pool.wait()
        });
        assert_eq!(waited, Ok(()));
        let done: u64 = sums.iter().map(|sum| sum.load(Ordering::Relaxed)).sum();
        assert_eq!(done, 1000 * 1001 / 2);
    }

    #[test]
    fn the_first_that_is_refused_is_reported() {
        let make = |_| {
            |batch: &mut Vec<u64>| match batch.pop() {
                Some(at) if at >= 7 => Err((at, format!("refused {at}"))),
                _ => Ok(()),
            }
        };
        let waited = with_pool(2, make, |pool| {
            for (worker, at) in [(0, 3), (1, 9), (0, 7), (1, 4)] {
                pool.send(worker, vec![at]);
            }
            let first = pool.wait();
            assert_eq!(pool.check(), first);
            first
        });
        let (at, why) = waited.unwrap_err();
        assert!(at == 9 || at == 7, "{at}");
        assert_eq!(why, format!("refused {at}"));
    }
}
