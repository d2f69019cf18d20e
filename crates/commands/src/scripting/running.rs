//! The scripts that run now: who waits for one too long is told so, and who wants to end one finds
//! it here.

use russet_engine::store::shard_set::ShardSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

/// One run.
#[derive(Debug)]
pub struct Run {
    pub shards: ShardSet,
    pub is_function: bool,
    /// Of the function, or the digest of the script.
    pub name: Vec<u8>,
    pub words: Vec<Vec<u8>>,
    pub started_micros: u64,
    /// It has been running for longer than `busy-reply-threshold`.
    pub is_slow: AtomicBool,
    /// It has written: it can't be ended any more without leaving half of its work.
    pub has_written: AtomicBool,
    pub is_to_end: AtomicBool,
}

#[derive(Debug, Default)]
pub struct Running {
    runs: Mutex<Vec<Arc<Run>>>,
    slow: AtomicUsize,
}

/// What an attempt to end scripts came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// They will end at their next step.
    Ended,
    NoneRuns,
    /// Those that run have written.
    HaveWritten,
    /// What runs is of the other kind: a function, or a script.
    OtherKind,
}

impl Running {
    fn runs(&self) -> MutexGuard<'_, Vec<Arc<Run>>> {
        self.runs.lock().unwrap_or_else(|poison| poison.into_inner())
    }

    pub fn begin(&self, run: Run) -> Arc<Run> {
        let run = Arc::new(run);
        self.runs().push(run.clone());
        run
    }

    pub fn end(&self, run: &Arc<Run>) {
        self.runs().retain(|other| !Arc::ptr_eq(other, run));
        if run.is_slow.load(Ordering::Relaxed) {
            self.slow.fetch_sub(1, Ordering::Release);
        }
    }

    /// The run has passed the threshold; true the first time.
    pub fn note_slow(&self, run: &Run) -> bool {
        let is_first = !run.is_slow.swap(true, Ordering::Relaxed);
        if is_first {
            self.slow.fetch_add(1, Ordering::Release);
        }
        is_first
    }

    /// The slow script that holds one of these shards.
    pub fn in_the_way(&self, wanted: ShardSet) -> Option<Arc<Run>> {
        if self.slow.load(Ordering::Acquire) == 0 {
            return None;
        }
        let is_in_the_way =
            |run: &&Arc<Run>| run.is_slow.load(Ordering::Relaxed) && run.shards.intersects(&wanted);
        self.runs().iter().find(is_in_the_way).cloned()
    }

    /// The run that has been slow for longest.
    pub fn slowest(&self) -> Option<Arc<Run>> {
        let runs = self.runs();
        let slow = runs.iter().filter(|run| run.is_slow.load(Ordering::Relaxed));
        slow.min_by_key(|run| run.started_micros).cloned()
    }

    /// SCRIPT KILL and FUNCTION KILL: ends every slow run of this kind that has not written.
    pub fn end_slow(&self, is_function: bool) -> Ending {
        let runs = self.runs();
        let slow: Vec<&Arc<Run>> =
            runs.iter().filter(|run| run.is_slow.load(Ordering::Relaxed)).collect();
        if slow.is_empty() {
            return Ending::NoneRuns;
        }
        let mut ending = Ending::OtherKind;
        for run in slow.into_iter().filter(|run| run.is_function == is_function) {
            if !run.has_written.load(Ordering::Acquire) {
                run.is_to_end.store(true, Ordering::Release);
                ending = Ending::Ended;
            } else if ending == Ending::OtherKind {
                ending = Ending::HaveWritten;
            }
        }
        ending
    }
}
