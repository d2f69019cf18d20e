//! HOTKEYS: which keys cost most time and most traffic while somebody wants to know, and which are
//! called most, always ([`top`]).
//!
//! Each worker notes its own calls ([`crate::call::hot_keys`]) and adds them to a part of its own;
//! whoever asks adds the parts up. A worker never waits for who reads its part.

pub mod sketch;
pub mod top;

use crate::node::{CpuTimes, Node};
use russet_base::UnixMillis;
use sketch::Sketch;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};
use top::Top;

/// What HOTKEYS START asks for.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    pub by_cpu: bool,
    pub by_net: bool,
    /// Keys that are reported.
    pub count: usize,
    pub duration_ms: Option<i64>,
    /// One call in so many is looked at.
    pub sample_ratio: u64,
}

/// What one worker has noted.
#[derive(Debug, Default)]
pub struct Noted {
    pub by_cpu: Option<Sketch>,
    pub by_net: Option<Sketch>,
    /// How often keys were called, their databases before them.
    pub by_calls: Option<Sketch>,
    /// Of all calls with keys, those included that were not looked at.
    pub nanos: u64,
    pub net_bytes: u64,
    /// What is counted in [`HotKeys::memory_bytes`].
    counted_bytes: u64,
}

/// A worker's part of a tracking.
#[derive(Debug)]
pub struct Part {
    noted: Mutex<Noted>,
    pub sample_ratio: u64,
    memory_bytes: Arc<AtomicU64>,
}

impl Part {
    /// Adds to the part, unless somebody reads it just now.
    pub fn try_add(&self, add: impl FnOnce(&mut Noted)) -> bool {
        let mut noted = match self.noted.try_lock() {
            Ok(noted) => noted,
            Err(TryLockError::Poisoned(poison)) => poison.into_inner(),
            Err(TryLockError::WouldBlock) => return false,
        };
        add(&mut noted);
        self.count_memory(&mut noted);
        true
    }

    fn noted(&self) -> MutexGuard<'_, Noted> {
        self.noted.lock().unwrap_or_else(|poison| poison.into_inner())
    }

    fn count_memory(&self, noted: &mut Noted) {
        let sketches = [&noted.by_cpu, &noted.by_net, &noted.by_calls].into_iter().flatten();
        let bytes = sketches.map(Sketch::memory_bytes).sum::<usize>() as u64;
        let before = std::mem::replace(&mut noted.counted_bytes, bytes);
        self.memory_bytes.fetch_add(bytes.wrapping_sub(before), Ordering::Relaxed);
    }

    /// The calls that were counted; it goes on from nothing.
    fn take_calls(&self) -> Option<Sketch> {
        let mut noted = self.noted();
        let calls = noted.by_calls.as_mut().map(std::mem::take);
        self.count_memory(&mut noted);
        calls
    }

    /// Gives back what it has taken.
    fn clear(&self) {
        let mut noted = self.noted();
        (noted.by_cpu, noted.by_net) = (None, None);
        self.count_memory(&mut noted);
    }
}

impl Drop for Part {
    /// A worker may have added to it after it was given up.
    fn drop(&mut self) {
        let bytes = self.noted().counted_bytes;
        self.memory_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// A tracking, under way or over.
#[derive(Debug)]
struct Tracking {
    wanted: Wanted,
    started: UnixMillis,
    cpu_at_start: CpuTimes,
    /// When it ended, and what the process had used by then.
    ended: Option<(UnixMillis, CpuTimes)>,
    parts: Vec<Arc<Part>>,
}

impl Tracking {
    fn is_due(&self, now: UnixMillis) -> bool {
        let duration_ms = self.wanted.duration_ms;
        duration_ms.is_some_and(|duration_ms| now.0 >= self.started.0 + duration_ms)
    }
}

/// What HOTKEYS GET tells.
#[derive(Clone, Debug)]
pub struct Report {
    pub wanted: Wanted,
    pub is_active: bool,
    pub started: UnixMillis,
    pub duration_ms: i64,
    /// Of all calls with keys.
    pub micros: u64,
    pub net_bytes: u64,
    /// What the process has used meanwhile.
    pub cpu: CpuTimes,
    pub by_cpu_micros: Vec<(Vec<u8>, u64)>,
    pub by_net_bytes: Vec<(Vec<u8>, u64)>,
    /// Of the calls that were looked at.
    pub looked_at_net_bytes: u64,
}

#[derive(Debug, Default)]
struct State {
    tracking: Option<Tracking>,
    /// What `hotkeys-top-k` wants.
    top: Option<Top>,
}

impl State {
    /// The tracking under way.
    fn active(&mut self) -> Option<&mut Tracking> {
        self.tracking.as_mut().filter(|tracking| tracking.ended.is_none())
    }

    fn is_active(&self) -> bool {
        self.tracking.as_ref().is_some_and(|tracking| tracking.ended.is_none())
    }
}

#[derive(Debug, Default)]
pub struct HotKeys {
    /// The number of what is noted at the moment; 0 if nothing is. Numbers only grow.
    current: AtomicU64,
    last: AtomicU64,
    /// For HOTKEYS itself, the housekeeping, and a worker's first call of a tracking.
    state: Mutex<State>,
    memory_bytes: Arc<AtomicU64>,
    hottest_calls_per_second: AtomicU64,
}

impl HotKeys {
    #[inline]
    pub fn is_on(&self) -> bool {
        self.current() != 0
    }

    /// The number of what is noted at the moment, or 0.
    #[inline]
    pub fn current(&self) -> u64 {
        self.current.load(Ordering::Relaxed)
    }

    pub fn memory_bytes(&self) -> u64 {
        self.memory_bytes.load(Ordering::Relaxed)
    }

    /// Of the key that was called most in the last window, with `hotkeys-top-k`; else 0.
    pub fn hottest_calls_per_second(&self) -> u64 {
        self.hottest_calls_per_second.load(Ordering::Relaxed)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poison| poison.into_inner())
    }

    /// A part for one more worker, and the number of what it notes; None if nothing is noted.
    pub fn new_part(&self) -> Option<(u64, Arc<Part>)> {
        let mut state = self.state();
        let current = self.current();
        if current == 0 {
            return None;
        }
        let wanted = state.active().map(|tracking| tracking.wanted);
        let sketch = |is_wanted: bool| is_wanted.then(Sketch::default);
        let noted = Noted {
            by_cpu: sketch(wanted.is_some_and(|wanted| wanted.by_cpu)),
            by_net: sketch(wanted.is_some_and(|wanted| wanted.by_net)),
            by_calls: sketch(state.top.is_some()),
            ..Noted::default()
        };
        let part = Arc::new(Part {
            noted: Mutex::new(noted),
            sample_ratio: wanted.map_or(1, |wanted| wanted.sample_ratio),
            memory_bytes: self.memory_bytes.clone(),
        });
        if let Some(tracking) = state.active() {
            tracking.parts.push(part.clone());
        }
        if let Some(top) = &mut state.top {
            top.parts.push(part.clone());
        }
        Some((current, part))
    }

    /// What is noted has changed: each worker takes a new part with its next call.
    fn renumber(&self, state: &State) {
        let number = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        let is_on = state.is_active() || state.top.is_some();
        self.current.store(if is_on { number } else { 0 }, Ordering::Relaxed);
    }
}

impl Node {
    /// Whether a tracking is under way.
    pub fn is_tracking_hot_keys(&self) -> bool {
        self.hot_keys.is_on() && self.hot_keys.state().is_active()
    }

    /// Begins a tracking in place of one that is over. False if one is under way.
    pub fn start_hot_keys(&self, wanted: Wanted) -> bool {
        self.end_hot_keys_if_due();
        let mut state = self.hot_keys.state();
        if state.is_active() {
            return false;
        }
        release(&mut state.tracking);
        state.tracking = Some(Tracking {
            wanted,
            started: self.clock.now(),
            cpu_at_start: self.host.process().cpu,
            ended: None,
            parts: Vec::new(),
        });
        self.hot_keys.renumber(&state);
        true
    }

    /// Ends the tracking under way; its results stay. False if there is none.
    pub fn stop_hot_keys(&self) -> bool {
        self.end_hot_keys_if_due();
        self.end_hot_keys(|_| true)
    }

    /// Forgets the results, and what was counted for `hotkeys-top-k`. False if a tracking is under
    /// way.
    pub fn reset_hot_keys(&self) -> bool {
        self.end_hot_keys_if_due();
        let mut state = self.hot_keys.state();
        if state.is_active() {
            return false;
        }
        release(&mut state.tracking);
        state.reset_top(self.monotonic_ms());
        true
    }

    /// Ends a tracking whose time is over.
    pub fn end_hot_keys_if_due(&self) {
        if self.hot_keys.is_on() {
            let now = self.clock.now();
            self.end_hot_keys(|tracking| tracking.is_due(now));
        }
    }

    fn end_hot_keys(&self, is_over: impl FnOnce(&Tracking) -> bool) -> bool {
        let mut state = self.hot_keys.state();
        let Some(tracking) = state.active().filter(|tracking| is_over(tracking)) else {
            return false;
        };
        tracking.ended = Some((self.clock.now(), self.host.process().cpu));
        self.hot_keys.renumber(&state);
        true
    }

    /// What the last tracking has found so far.
    pub fn hot_keys_report(&self) -> Option<Report> {
        self.end_hot_keys_if_due();
        let state = self.hot_keys.state();
        let tracking = state.tracking.as_ref()?;
        let (until, cpu) =
            tracking.ended.unwrap_or_else(|| (self.clock.now(), self.host.process().cpu));
        let mut report = Report {
            wanted: tracking.wanted,
            is_active: tracking.ended.is_none(),
            started: tracking.started,
            duration_ms: (until.0 - tracking.started.0).max(0),
            micros: 0,
            net_bytes: 0,
            cpu: CpuTimes {
                user_seconds: cpu.user_seconds - tracking.cpu_at_start.user_seconds,
                system_seconds: cpu.system_seconds - tracking.cpu_at_start.system_seconds,
            },
            by_cpu_micros: Vec::new(),
            by_net_bytes: Vec::new(),
            looked_at_net_bytes: 0,
        };
        let (mut by_cpu, mut by_net) = (HashMap::new(), HashMap::new());
        let mut nanos = 0;
        for part in &tracking.parts {
            let noted = part.noted();
            nanos += noted.nanos;
            report.net_bytes += noted.net_bytes;
            report.looked_at_net_bytes += noted.by_net.as_ref().map_or(0, Sketch::total);
            sum_up(&mut by_cpu, noted.by_cpu.as_ref());
            sum_up(&mut by_net, noted.by_net.as_ref());
        }
        report.micros = nanos / 1000;
        let count = tracking.wanted.count;
        report.by_cpu_micros = heaviest(by_cpu, count);
        // A call may take less than a microsecond, but not none at all.
        report.by_cpu_micros.iter_mut().for_each(|(_, nanos)| *nanos = nanos.div_ceil(1000));
        report.by_net_bytes = heaviest(by_net, count);
        Some(report)
    }
}

fn release(tracking: &mut Option<Tracking>) {
    if let Some(over) = tracking.take() {
        over.parts.iter().for_each(|part| part.clear());
    }
}

fn sum_up(sums: &mut HashMap<Vec<u8>, u64>, sketch: Option<&Sketch>) {
    for (key, weight) in sketch.iter().flat_map(|sketch| sketch.entries()) {
        *sums.entry(key.to_vec()).or_default() += weight;
    }
}

/// The heaviest keys, heaviest first.
fn heaviest(sums: HashMap<Vec<u8>, u64>, count: usize) -> Vec<(Vec<u8>, u64)> {
    let mut sums: Vec<(Vec<u8>, u64)> = sums.into_iter().collect();
    sums.sort_unstable_by(|(key, sum), (other, other_sum)| {
        other_sum.cmp(sum).then_with(|| key.cmp(other))
    });
    sums.truncate(count);
    sums
}
