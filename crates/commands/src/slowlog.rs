//! SLOWLOG: the commands that took longest.

use crate::config::Directive;
use crate::node::Node;
use crate::session::Session;
use russet_base::Args;
use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// Most words of a command that are kept, and most bytes of each.
const WORDS_MAX: usize = 32;
const WORD_BYTES_MAX: usize = 128;
/// Below this threshold every command is timed by itself, not with its batch.
const PRECISE_BELOW_MICROS: i64 = 1000;

#[derive(Clone, Debug)]
pub struct SlowEntry {
    pub id: u64,
    pub unix_seconds: i64,
    pub micros: u64,
    pub words: Vec<Vec<u8>>,
    pub client_address: String,
    pub client_name: Vec<u8>,
}

pub struct Slowlog {
    next_id: AtomicU64,
    /// `slowlog-log-slower-than`; negative: off.
    threshold_micros: AtomicI64,
    entries: Mutex<VecDeque<SlowEntry>>,
}

impl Default for Slowlog {
    fn default() -> Self {
        Slowlog {
            next_id: AtomicU64::new(0),
            threshold_micros: AtomicI64::new(10_000),
            entries: Mutex::default(),
        }
    }
}

impl Slowlog {
    pub fn set_threshold(&self, micros: i64) {
        self.threshold_micros.store(micros, Ordering::Relaxed);
    }

    #[inline]
    pub fn is_precise(&self) -> bool {
        (0..PRECISE_BELOW_MICROS).contains(&self.threshold_micros.load(Ordering::Relaxed))
    }

    #[inline]
    pub fn note(&self, node: &Node, session: &Session, args: Args, micros: u64) {
        let threshold = self.threshold_micros.load(Ordering::Relaxed);
        if threshold >= 0 && micros >= threshold as u64 {
            self.add(node, session, args, micros);
        }
    }

    #[cold]
    fn add(&self, node: &Node, session: &Session, args: Args, micros: u64) {
        let len_max = node.config.int(Directive::SlowlogMaxLen).max(0) as usize;
        let entry = SlowEntry {
            id: self.next_id.fetch_add(1, Ordering::Relaxed),
            unix_seconds: node.clock.now().seconds(),
            micros,
            words: shortened(args),
            client_address: session.card.address.clone(),
            client_name: session.card.names().name.clone(),
        };
        let mut entries = self.entries();
        entries.push_front(entry);
        entries.truncate(len_max);
    }

    fn entries(&self) -> std::sync::MutexGuard<'_, VecDeque<SlowEntry>> {
        self.entries.lock().unwrap_or_else(|poison| poison.into_inner())
    }

    /// The newest `count`, newest first.
    pub fn newest(&self, count: usize) -> Vec<SlowEntry> {
        self.entries().iter().take(count).cloned().collect()
    }

    pub fn len(&self) -> usize {
        self.entries().len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn reset(&self) {
        self.entries().clear();
    }
}

/// COMPAT: what is left out is counted in the last word kept (tests/wire/server/slowlog.wire).
fn shortened(args: Args) -> Vec<Vec<u8>> {
    let mut words: Vec<Vec<u8>> = Vec::new();
    for (at, word) in args.iter().enumerate() {
        if at == WORDS_MAX - 1 && args.len() > WORDS_MAX {
            let left_out = args.len() - WORDS_MAX + 1;
            words.push(format!("... ({left_out} more arguments)").into_bytes());
            break;
        }
        if word.len() <= WORD_BYTES_MAX {
            words.push(word.to_vec());
        } else {
            let mut cut = word[..WORD_BYTES_MAX].to_vec();
            let left_out = word.len() - WORD_BYTES_MAX;
            cut.extend_from_slice(format!("... ({left_out} more bytes)").as_bytes());
            words.push(cut);
        }
    }
    words
}
