//! Spikes of latency: for each kind of event the moments when it took longer than
//! `latency-monitor-threshold`.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Mutex, MutexGuard};

/// Spikes kept for each kind of event, as in Redis.
pub const SPIKES_MAX: usize = 160;

/// The slowest event of one second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spike {
    pub unix_seconds: i64,
    pub ms: u32,
}

/// The spikes of one kind of event, oldest first.
#[derive(Clone, Debug, Default)]
pub struct Series {
    pub spikes: VecDeque<Spike>,
    /// The slowest since the series began, even if it is no longer among the spikes.
    pub ms_max: u32,
    pub count: u64,
    pub ms_sum: u64,
}

impl Series {
    fn add(&mut self, spike: Spike) {
        self.count += 1;
        self.ms_sum += u64::from(spike.ms);
        self.ms_max = self.ms_max.max(spike.ms);
        match self.spikes.back_mut() {
            Some(last) if last.unix_seconds == spike.unix_seconds => {
                last.ms = last.ms.max(spike.ms);
            }
            _ => {
                if self.spikes.len() == SPIKES_MAX {
                    self.spikes.pop_front();
                }
                self.spikes.push_back(spike);
            }
        }
    }
}

#[derive(Default)]
pub struct LatencyMonitor {
    /// 0: off.
    threshold_ms: AtomicI64,
    series: Mutex<BTreeMap<&'static str, Series>>,
}

impl LatencyMonitor {
    pub fn set_threshold_ms(&self, threshold: i64) {
        self.threshold_ms.store(threshold, Ordering::Relaxed);
    }

    #[inline]
    pub fn is_on(&self) -> bool {
        self.threshold_ms.load(Ordering::Relaxed) > 0
    }

    /// Notes how long an event took, if that was long enough.
    #[inline]
    pub fn note(&self, event: &'static str, micros: u64, unix_seconds: impl FnOnce() -> i64) {
        let threshold = self.threshold_ms.load(Ordering::Relaxed);
        let ms = micros / 1000;
        if threshold > 0 && ms >= threshold.unsigned_abs() {
            let ms = u32::try_from(ms).unwrap_or(u32::MAX);
            let spike = Spike { unix_seconds: unix_seconds(), ms };
            self.series().entry(event).or_default().add(spike);
        }
    }

    fn series(&self) -> MutexGuard<'_, BTreeMap<&'static str, Series>> {
        self.series.lock().unwrap_or_else(|poison| poison.into_inner())
    }

    pub fn all(&self) -> Vec<(&'static str, Series)> {
        self.series().iter().map(|(event, series)| (*event, series.clone())).collect()
    }

    pub fn find(&self, event: &[u8]) -> Option<(&'static str, Series)> {
        let all = self.all();
        all.into_iter().find(|(known, _)| known.as_bytes() == event)
    }

    /// Forgets one kind of event, or all; how many kinds were forgotten.
    pub fn reset(&self, event: Option<&[u8]>) -> usize {
        let mut series = self.series();
        let before = series.len();
        let is_other = |known: &str, event: &[u8]| !known.as_bytes().eq_ignore_ascii_case(event);
        series.retain(|known, _| event.is_some_and(|event| is_other(known, event)));
        before - series.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_keeps_its_slowest_and_old_ones_go() {
        let monitor = LatencyMonitor::default();
        monitor.note("command", 5_000_000, || 1);
        assert!(monitor.all().is_empty());
        monitor.set_threshold_ms(2);
        monitor.note("command", 1_999, || 1);
        assert!(monitor.all().is_empty());
        monitor.note("command", 9_000, || 1);
        monitor.note("command", 3_000, || 1);
        let (_, series) = monitor.find(b"command").expect("it was noted");
        assert_eq!(series.spikes, [Spike { unix_seconds: 1, ms: 9 }]);
        for second in 0..SPIKES_MAX as i64 {
            monitor.note("command", 2_000, || 100 + second);
        }
        let (_, series) = monitor.find(b"command").expect("it was noted");
        assert_eq!((series.spikes.len(), series.ms_max), (SPIKES_MAX, 9));
        assert_eq!(series.spikes[0].unix_seconds, 100);
        assert_eq!(monitor.reset(Some(b"other")), 0);
        assert_eq!(monitor.reset(None), 1);
    }
}
