//! ACL LOG: who was refused what, newest first. What is refused again and again is one entry.

use super::Context;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Of so many entries, from the newest on, one that says the same is counted up.
const ENTRIES_COMPARED: usize = 10;
/// But not if it is older than this.
const SAME_WITHIN_MS: i64 = 60_000;

/// Longest object and name that are kept: somebody who may do nothing must not fill the memory.
const NAME_BYTES_MAX: usize = 1024;

#[derive(Clone, Debug)]
pub struct LogEntry {
    pub id: u64,
    pub count: u64,
    /// `command`, `key`, `channel`, `database`, `auth` or `tls-cert`.
    pub reason: &'static str,
    pub context: Context,
    pub object: Vec<u8>,
    pub user: Vec<u8>,
    /// The line of CLIENT INFO.
    pub client: Vec<u8>,
    pub created_ms: i64,
    pub updated_ms: i64,
}

#[derive(Debug, Default)]
pub struct AclLog(Mutex<Entries>);

#[derive(Debug, Default)]
struct Entries {
    next_id: u64,
    list: VecDeque<LogEntry>,
}

impl AclLog {
    /// Its number, its count and when it was made are given here.
    /// DIFFERS: long names are cut.
    pub fn add(&self, mut entry: LogEntry, len_max: usize) {
        for name in [&mut entry.object, &mut entry.user] {
            name.truncate(NAME_BYTES_MAX);
            name.shrink_to_fit();
        }
        let mut entries = self.entries();
        let is_same = |known: &LogEntry| {
            (known.reason, known.context) == (entry.reason, entry.context)
                && (&known.object, &known.user) == (&entry.object, &entry.user)
                && (entry.updated_ms - known.updated_ms).abs() <= SAME_WITHIN_MS
        };
        match entries.list.iter().take(ENTRIES_COMPARED).position(is_same) {
            Some(at) => {
                let known = entries.list.remove(at);
                if let Some(known) = known {
                    let LogEntry { id, count, created_ms, .. } = known;
                    entry = LogEntry { id, count: count + 1, created_ms, ..entry };
                }
            }
            None => {
                (entry.id, entry.count) = (entries.next_id, 1);
                entry.created_ms = entry.updated_ms;
                entries.next_id += 1;
            }
        }
        entries.list.push_front(entry);
        entries.list.truncate(len_max);
    }

    pub fn newest(&self, count: usize) -> Vec<LogEntry> {
        self.entries().list.iter().take(count).cloned().collect()
    }

    pub fn reset(&self) {
        self.entries().list.clear();
    }

    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
