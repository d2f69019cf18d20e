//! The workers of an engine: a call takes one for as long as it runs. There are as many as calls
//! have ever run at once, however many clients and threads there are.

use russet_commands::call::dispatch::Worker;
use russet_commands::node::Node;
use std::cell::Cell;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};

/// Calls that run at once at most; one more waits for one of them. A blocked call does not run.
const WORKERS_MAX: usize = 64;

/// Alone on its cache lines (the processor fetches them in pairs), as each thread has its own.
#[repr(align(128))]
#[derive(Default)]
struct Slot(Mutex<Option<Worker>>);

pub(crate) struct Workers {
    node: Arc<Node>,
    slots: Box<[Slot]>,
}

thread_local! {
    /// The slot that this thread used last: what is in it is in the cache of its processor. Threads
    /// that meet at one slot part, and stay apart.
    static LAST_SLOT: Cell<usize> = const { Cell::new(0) };
}

impl Workers {
    pub fn new(node: Arc<Node>) -> Self {
        Workers { node, slots: (0..WORKERS_MAX).map(|_| Slot::default()).collect() }
    }

    /// A worker that nobody else has until this one is given back.
    #[inline]
    pub fn take(&self) -> TakenWorker<'_> {
        let last = LAST_SLOT.get();
        match self.try_take(last) {
            Some(taken) => taken,
            None => self.take_another(last),
        }
    }

    #[inline]
    fn try_take(&self, slot: usize) -> Option<TakenWorker<'_>> {
        match self.slots[slot].0.try_lock() {
            Ok(slot) => Some(self.filled(slot)),
            Err(TryLockError::Poisoned(poison)) => Some(self.filled(poison.into_inner())),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    #[cold]
    fn take_another(&self, last: usize) -> TakenWorker<'_> {
        for slot in 0..WORKERS_MAX {
            if let Some(taken) = self.try_take(slot) {
                LAST_SLOT.set(slot);
                return taken;
            }
        }
        self.filled(self.slots[last].0.lock().unwrap_or_else(|poison| poison.into_inner()))
    }

    #[inline]
    fn filled<'w>(&'w self, mut slot: MutexGuard<'w, Option<Worker>>) -> TakenWorker<'w> {
        if slot.is_none() {
            *slot = Some(Worker::new(self.node.clone()));
        }
        TakenWorker(slot)
    }
}

/// Given back when it is dropped.
pub(crate) struct TakenWorker<'w>(MutexGuard<'w, Option<Worker>>);

const FILLED: &str = "a slot is filled before it is handed out";

impl Deref for TakenWorker<'_> {
    type Target = Worker;

    fn deref(&self) -> &Worker {
        self.0.as_ref().expect(FILLED)
    }
}

impl DerefMut for TakenWorker<'_> {
    fn deref_mut(&mut self) -> &mut Worker {
        self.0.as_mut().expect(FILLED)
    }
}
