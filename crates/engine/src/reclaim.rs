//! Frees large values away from whoever deleted them. They were taken off the memory in use when
//! they left the keyspace: see `used_memory`.

use crate::field_expiry::FieldSchedule;
use crate::store::raw::table::Table;
use crate::value::Object;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;

/// Something that is costly to drop.
type Garbage = Box<dyn Send>;

/// A thread that drops what it is given.
pub struct Reclaimer {
    /// None only while it is dropped.
    queue: Option<mpsc::Sender<Garbage>>,
    thread: Option<JoinHandle<()>>,
    pending: Arc<AtomicU64>,
    freed: Arc<AtomicU64>,
}

impl Reclaimer {
    pub(crate) fn start() -> Self {
        let (queue, garbage) = mpsc::channel::<Garbage>();
        let pending = Arc::new(AtomicU64::new(0));
        let freed = Arc::new(AtomicU64::new(0));
        let (left, done) = (pending.clone(), freed.clone());
        let run = move || {
            for piece in garbage {
                drop(piece);
                left.fetch_sub(1, Ordering::Relaxed);
                done.fetch_add(1, Ordering::Relaxed);
            }
        };
        let thread = std::thread::Builder::new()
            .name("reclaimer".into())
            .spawn(run)
            .expect("the process can start a thread when it starts");
        Reclaimer { queue: Some(queue), thread: Some(thread), pending, freed }
    }

    /// Drops an object, elsewhere if it is large.
    pub fn reclaim(&self, object: Box<Object>) {
        if object.is_costly_to_drop() {
            self.hand_over(object);
        }
    }

    /// Drops whole tables, and what was kept beside them.
    pub(crate) fn reclaim_tables(&self, tables: Vec<(Option<Table<Object>>, FieldSchedule)>) {
        self.hand_over(Box::new(tables));
    }

    fn hand_over(&self, garbage: Garbage) {
        self.pending.fetch_add(1, Ordering::Relaxed);
        // The thread lives as long as the sender: a refusal would only mean freeing here.
        drop(self.queue.as_ref().map(|queue| queue.send(garbage)));
    }

    /// Objects waiting to be freed, and freed since the start (`lazyfree_pending_objects`).
    pub fn counts(&self) -> (u64, u64) {
        (self.pending.load(Ordering::Relaxed), self.freed.load(Ordering::Relaxed))
    }

    pub fn reset_counts(&self) {
        self.freed.store(0, Ordering::Relaxed);
    }
}

/// The thread ends when it has dropped what it was given, and no thread outlives its keyspace.
impl Drop for Reclaimer {
    fn drop(&mut self) {
        drop(self.queue.take());
        if let Some(thread) = self.thread.take() {
            // A panic there was in the drop of a value, and has been reported.
            let _joined = thread.join();
        }
    }
}
