//! The processor time of the process and of its event loops, to the microsecond.
//!
//! Linux keeps a thread's time in nanoseconds and its parts, user and system, as estimates, which
//! `/proc` shows in hundredths of a second. As `getrusage` does, we divide the exact time in the
//! proportion of the estimates, and never let a figure go back.

use crate::event_loop::LOOP_THREAD_NAME;
use crate::sampled::Sampled;
use russet_commands::node::CpuTimes;
use rustix::time::{ClockId, clock_gettime};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// Clock ticks of a second in the figures of `/proc`; Linux has had no other number for decades.
const TICKS_PER_SECOND: f64 = 100.0;
const MICROS_PER_SECOND: f64 = 1e6;
const NANOS_PER_SECOND: f64 = 1e9;

/// The most that was shown so far, in microseconds: user, then system.
#[derive(Default)]
struct Shown([AtomicU64; 2]);

impl Shown {
    fn rising(&self, times: CpuTimes) -> CpuTimes {
        let rise = |shown: &AtomicU64, seconds: f64| {
            let micros = (seconds * MICROS_PER_SECOND) as u64;
            shown.fetch_max(micros, Ordering::Relaxed).max(micros) as f64 / MICROS_PER_SECOND
        };
        CpuTimes {
            user_seconds: rise(&self.0[0], times.user_seconds),
            system_seconds: rise(&self.0[1], times.system_seconds),
        }
    }
}

/// What INFO says of the time used.
#[derive(Default)]
pub struct CpuMeter {
    process: Shown,
    loops: Shown,
    /// What `/proc` says of the process, and of the loops.
    process_sample: Sampled<[CpuTimes; 2]>,
    loops_sample: Sampled<CpuTimes>,
}

impl CpuMeter {
    /// Of the whole process, and of its children that have ended.
    pub fn process(&self) -> [CpuTimes; 2] {
        let read = || ticks(Path::new("/proc/self/stat")).unwrap_or_default();
        let [own, children] = self.process_sample.get(read);
        let used = clock_gettime(ClockId::ProcessCPUTime);
        let exact = used.tv_sec as f64 + used.tv_nsec as f64 / NANOS_PER_SECOND;
        [self.process.rising(divide(exact, own)), children]
    }

    /// Of the threads that run the event loops, and so the commands, taken together.
    pub fn loops(&self) -> CpuTimes {
        self.loops.rising(self.loops_sample.get(loop_times))
    }
}

fn loop_times() -> CpuTimes {
    let mut total = CpuTimes::default();
    let threads = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    for thread in threads {
        let name = std::fs::read_to_string(thread.path().join("comm")).unwrap_or_default();
        if !name.starts_with(LOOP_THREAD_NAME) {
            continue;
        }
        if let Some([estimate, _]) = ticks(&thread.path().join("stat")) {
            let exact = exact_seconds(&thread.path().join("schedstat"));
            let times = exact.map_or(estimate, |exact| divide(exact, estimate));
            total.user_seconds += times.user_seconds;
            total.system_seconds += times.system_seconds;
        }
    }
    total
}

/// The times of a process or thread itself, and of its children that have ended, in ticks.
fn ticks(path: &Path) -> Option<[CpuTimes; 2]> {
    let text = std::fs::read_to_string(path).ok()?;
    // The name in parentheses may hold anything, so count from behind it: user time is the 14th.
    let (_, figures) = text.rsplit_once(')')?;
    let mut ticks = figures.split_whitespace().skip(11).map(|field| field.parse::<f64>().ok());
    let mut times = || {
        let user_seconds = ticks.next()?? / TICKS_PER_SECOND;
        Some(CpuTimes { user_seconds, system_seconds: ticks.next()?? / TICKS_PER_SECOND })
    };
    Some([times()?, times()?])
}

/// How long a thread has run, by the first figure of its `schedstat`.
fn exact_seconds(path: &Path) -> Option<f64> {
    let text = std::fs::read_to_string(path).ok()?;
    let nanos: u64 = text.split_whitespace().next()?.parse().ok()?;
    Some(nanos as f64 / NANOS_PER_SECOND)
}

/// Divides an exact time in the proportion of an estimate. What was too short for one is user time.
fn divide(exact: f64, estimate: CpuTimes) -> CpuTimes {
    let whole = estimate.user_seconds + estimate.system_seconds;
    let share = if whole > 0.0 { estimate.system_seconds / whole } else { 0.0 };
    CpuTimes { user_seconds: exact * (1.0 - share), system_seconds: exact * share }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tenth of a hundredth of a second was no time at all: a server that had answered a few
    /// commands had used 0.00.
    #[test]
    fn a_millisecond_counts() {
        let meter = CpuMeter::default();
        let used = |meter: &CpuMeter| {
            let [own, _] = meter.process();
            own.user_seconds + own.system_seconds
        };
        let before = used(&meter);
        assert!(before > 0.0);
        let mut sum = 0_u64;
        while used(&meter) < before + 0.001 {
            (0..1000_u64).for_each(|n| sum = sum.wrapping_mul(31).wrapping_add(n));
        }
        assert!(used(&meter) < before + 10.0, "{sum}");
    }

    #[test]
    fn exact_time_is_divided_and_never_goes_back() {
        let times = |user_seconds, system_seconds| CpuTimes { user_seconds, system_seconds };
        let shown = |times: CpuTimes| (times.user_seconds, times.system_seconds);
        assert_eq!(shown(divide(0.004, times(0.0, 0.0))), (0.004, 0.0));
        assert_eq!(shown(divide(0.5, times(0.03, 0.01))), (0.375, 0.125));
        let kept = Shown::default();
        assert_eq!(shown(kept.rising(times(0.019, 0.0))), (0.019, 0.0));
        assert_eq!(shown(kept.rising(times(0.01, 0.01))), (0.019, 0.01));
        assert_eq!(shown(kept.rising(times(0.02, 0.02))), (0.02, 0.02));
    }
}
