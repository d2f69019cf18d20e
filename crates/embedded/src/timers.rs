//! When waits of futures are over. A thread that waits counts its time itself; a future has nobody,
//! so housekeeping wakes it.

use crate::inbox::Inbox;
use russet_base::UnixMillis;
use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, Weak};
use std::time::Duration;

#[derive(Default)]
struct State {
    /// By the moment, then by the client's id.
    due: BTreeMap<(UnixMillis, u64), Weak<Inbox>>,
    is_stopped: bool,
}

#[derive(Default)]
pub(crate) struct Timers {
    state: Mutex<State>,
    changed: Condvar,
}

impl Timers {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poison| poison.into_inner())
    }

    pub fn add(&self, at: UnixMillis, client: u64, inbox: &Arc<Inbox>) {
        let mut state = self.lock();
        let is_first = state.due.first_key_value().is_none_or(|((first, _), _)| at < *first);
        state.due.insert((at, client), Arc::downgrade(inbox));
        drop(state);
        if is_first {
            self.changed.notify_one();
        }
    }

    pub fn remove(&self, at: UnixMillis, client: u64) {
        self.lock().due.remove(&(at, client));
    }

    /// Wakes those whose time is over.
    pub fn wake_due(&self, now: UnixMillis) {
        loop {
            let mut state = self.lock();
            let Some(first) = state.due.first_entry().filter(|first| first.key().0 <= now) else {
                return;
            };
            let inbox = first.remove();
            drop(state);
            if let Some(inbox) = inbox.upgrade() {
                inbox.time_out();
            }
        }
    }

    /// Sleeps for as long as this, or until the next timer or the end.
    pub fn rest(&self, time: Duration, now: UnixMillis) {
        let state = self.lock();
        if state.is_stopped {
            return;
        }
        let until_first = state.due.first_key_value().map(|((at, _), _)| {
            Duration::from_millis(u64::try_from(at.ms_since(now)).unwrap_or(0))
        });
        let time = until_first.map_or(time, |until| until.min(time));
        // Whoever is woken early looks at everything once more.
        drop(self.changed.wait_timeout(state, time));
    }

    /// Housekeeping is to end.
    pub fn stop(&self) {
        self.lock().is_stopped = true;
        self.changed.notify_one();
    }

    pub fn is_stopped(&self) -> bool {
        self.lock().is_stopped
    }
}
