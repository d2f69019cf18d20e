//! The scripts that have been running for long: those who wait get BUSY, and who wants to end
//! one finds it here. A script that ends soon, as nearly all do, never comes here.

use russet_engine::store::shard_set::ShardSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

/// A run that has taken longer than `busy-reply-threshold`.
#[derive(Debug)]
pub struct Run {
    pub shards: ShardSet,
    pub is_function: bool,
    /// Of the function, or the digest of the script.
    pub name: Vec<u8>,
    pub args: Vec<Vec<u8>>,
    pub started_micros: u64,
    /// It has written: it can't be ended any more without leaving half of its work.
    pub has_written: AtomicBool,
    pub is_to_end: AtomicBool,
}

#[derive(Debug, Default)]
pub struct Running {
    runs: Mutex<Vec<Arc<Run>>>,
    count: AtomicUsize,
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

    /// A run has passed the threshold.
    pub fn begin(&self, run: Run) -> Arc<Run> {
        let run = Arc::new(run);
        let mut runs = self.runs();
        runs.push(run.clone());
        self.count.store(runs.len(), Ordering::Release);
        run
    }

    pub fn end(&self, run: &Arc<Run>) {
        let mut runs = self.runs();
        runs.retain(|other| !Arc::ptr_eq(other, run));
        self.count.store(runs.len(), Ordering::Release);
    }

    /// Notes that a run writes from now on. Not if it is to end: then it must not.
    pub fn may_write(&self, run: &Run) -> bool {
        let _nobody_ends_it_now = self.runs();
        let may_write = !run.is_to_end.load(Ordering::Acquire);
        run.has_written.fetch_or(may_write, Ordering::Release);
        may_write
    }

    /// The slow script that holds one of these shards.
    pub fn blocking(&self, wanted: &ShardSet) -> Option<Arc<Run>> {
        if self.count.load(Ordering::Acquire) == 0 {
            return None;
        }
        self.runs().iter().find(|run| run.shards.intersects(wanted)).cloned()
    }

    /// The run that has been slow for longest.
    pub fn slowest(&self) -> Option<Arc<Run>> {
        self.runs().iter().min_by_key(|run| run.started_micros).cloned()
    }

    /// SCRIPT KILL and FUNCTION KILL: ends every slow run of this kind that has not written.
    pub fn end_slow(&self, is_function: bool) -> Ending {
        let runs = self.runs();
        if runs.is_empty() {
            return Ending::NoneRuns;
        }
        let mut ending = Ending::OtherKind;
        for run in runs.iter().filter(|run| run.is_function == is_function) {
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

#[cfg(test)]
mod tests {
    use super::{Ending, Run, Running};
    use russet_engine::store::shard_set::ShardSet;
    use std::sync::atomic::AtomicBool;

    fn slow() -> Run {
        Run {
            shards: ShardSet::one(3),
            is_function: false,
            name: Vec::new(),
            args: Vec::new(),
            started_micros: 0,
            has_written: AtomicBool::new(false),
            is_to_end: AtomicBool::new(false),
        }
    }

    /// A script that was asked to end between two looks at the clock used to write once more, and
    /// was then ended with half of its work done.
    #[test]
    fn what_is_to_end_begins_no_write() {
        let running = Running::default();
        let run = running.begin(slow());
        assert_eq!(running.end_slow(true), Ending::OtherKind);
        assert_eq!(running.end_slow(false), Ending::Ended);
        assert!(!running.may_write(&run));
        running.end(&run);
        assert_eq!(running.end_slow(false), Ending::NoneRuns);
    }

    #[test]
    fn what_has_written_is_not_ended() {
        let running = Running::default();
        let run = running.begin(slow());
        assert!(running.blocking(&ShardSet::one(3)).is_some());
        assert!(running.blocking(&ShardSet::one(4)).is_none());
        assert!(running.may_write(&run));
        assert_eq!(running.end_slow(false), Ending::HaveWritten);
    }
}
