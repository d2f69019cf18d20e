//! A kit whose calls fail as a test wants it: before they run, or after.

use russet::backend::{Backend, Connection, Listener, Pending, TracksChanges};
use russet::{Error, Kit, Reply, Request};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What happens to one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nothing.
    None,
    /// It does not reach the server.
    NotRun,
    /// It runs, but its reply does not come.
    ReplyLost,
}

/// What happens to a call, by its number.
type Decide = Box<dyn FnMut(usize) -> Fault + Send>;

/// Decides what happens to the calls of a kit.
#[derive(Clone)]
pub struct Faults {
    decide: Arc<Mutex<Decide>>,
    calls: Arc<AtomicUsize>,
}

impl Faults {
    /// From now on.
    pub fn set(&self, decide: impl FnMut(usize) -> Fault + Send + 'static) {
        self.calls.store(0, Ordering::SeqCst);
        *self.decide.lock().unwrap() = Box::new(decide);
    }

    /// Calls since the last change.
    pub fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }
}

/// A kit beside this one on the same backend, with keys of its own, whose calls can fail.
pub fn faulty(kit: &Kit) -> (Kit, Faults) {
    let decide: Decide = Box::new(|_number| Fault::None);
    let faults = Faults { decide: Arc::new(Mutex::new(decide)), calls: Arc::default() };
    let app = format!("test-{:016x}", rand::random::<u64>());
    let backend = Faulty { kit: kit.clone(), faults: faults.clone() };
    (Kit::builder().app(&app).on(backend).unwrap(), faults)
}

struct Faulty {
    kit: Kit,
    faults: Faults,
}

impl Backend for Faulty {
    fn call<'a>(&'a self, request: &'a Request, _timeout: Duration) -> Pending<'a, Reply> {
        Box::pin(async move {
            let number = self.faults.calls.fetch_add(1, Ordering::SeqCst);
            let fault = (self.faults.decide.lock().unwrap())(number);
            if fault == Fault::NotRun {
                return Err(Error::Unavailable("a fault of the test".into()));
            }
            let result = self.kit.call(request).await;
            // NOSCRIPT is said before anything runs.
            let is_noscript = result.as_ref().is_err_and(|it| it.code() == Some("NOSCRIPT"));
            if fault == Fault::ReplyLost && !is_noscript {
                return Err(Error::Unknown("a fault of the test".into()));
            }
            result
        })
    }

    fn connection(&self, slot: u16) -> Pending<'_, Box<dyn Connection>> {
        Box::pin(self.kit.connection(slot))
    }

    fn tracks_changes(&self) -> TracksChanges {
        self.kit.tracks_changes()
    }

    fn tracking<'a>(
        &'a self,
        prefixes: &'a [Vec<u8>],
        listener: Listener,
    ) -> Pending<'a, Box<dyn Connection>> {
        Box::pin(self.kit.tracking(prefixes, listener))
    }

    fn name(&self) -> &'static str {
        "faulty"
    }
}
