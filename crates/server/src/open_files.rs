//! How many clients the system lets the process have: each is an open file.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Open files that are no clients: listeners, logs, what `/proc` is read through.
const FILES_RESERVED: u64 = 32;
/// Clients that are let in beyond `maxclients` if they come from this machine.
pub const LOCAL_CLIENTS_EXTRA: u64 = 16;
/// Those of an event loop: its poller and its waker.
const FILES_PER_LOOP: u64 = 2;

/// The open files of a process with so many event loops.
#[derive(Clone, Copy, Debug)]
pub struct OpenFiles {
    reserved: u64,
}

impl OpenFiles {
    pub fn new(loops: usize) -> Self {
        let reserved = FILES_RESERVED + LOCAL_CLIENTS_EXTRA + loops as u64 * FILES_PER_LOOP;
        OpenFiles { reserved }
    }

    /// How many files so many clients need.
    pub fn needed(self, clients: u64) -> u64 {
        clients.saturating_add(self.reserved)
    }

    /// How many of so many clients there can be. Asks the system to allow them all first.
    pub fn allow(self, clients: u64) -> u64 {
        let needed = self.needed(clients);
        let limit = getrlimit(Resource::Nofile);
        let is_below = |bound: Option<u64>| bound.is_some_and(|bound| bound < needed);
        if is_below(limit.current) {
            let most = if is_below(limit.maximum) { Some(needed) } else { limit.maximum };
            let raised = Rlimit { current: Some(needed), maximum: most };
            // Only the privileged may go beyond the maximum; up to it everyone may.
            if setrlimit(Resource::Nofile, raised).is_err() {
                let highest = Rlimit { current: limit.maximum, ..limit };
                // What holds afterwards is read again below.
                let _ = setrlimit(Resource::Nofile, highest);
            }
        }
        match getrlimit(Resource::Nofile).current {
            Some(files) => clients.min(files.saturating_sub(self.reserved)),
            None => clients,
        }
    }
}
