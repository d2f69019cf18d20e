//! Arithmetic on small sets of measurements.

use std::time::Duration;

/// `None` of an empty set.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    let upper = *sorted.get(middle)?;
    let is_odd = sorted.len() % 2 == 1;
    Some(if is_odd { upper } else { (sorted[middle - 1] + upper) / 2.0 })
}

/// Round by round, so that a slow spell of the machine falls on both sides of each ratio.
pub fn paired_ratios(ours: &[f64], theirs: &[f64]) -> Vec<f64> {
    let pairs = ours.iter().zip(theirs);
    pairs.filter(|(_, theirs)| **theirs > 0.0).map(|(ours, theirs)| ours / theirs).collect()
}

/// From least to most, as a share of the median.
pub fn spread(values: &[f64]) -> Option<f64> {
    let middle = median(values).filter(|middle| *middle > 0.0)?;
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    Some((most - least) / middle)
}

/// Every latency of a run. Some hundred thousand numbers are cheap to keep, and exact.
#[derive(Clone, Debug, Default)]
pub struct Latencies {
    sorted_ns: Vec<u64>,
}

impl Latencies {
    pub fn new(mut nanoseconds: Vec<u64>) -> Latencies {
        nanoseconds.sort_unstable();
        Latencies { sorted_ns: nanoseconds }
    }

    /// The latency that a `share` of all stayed within.
    pub fn within(&self, share: f64) -> Duration {
        let index = (self.sorted_ns.len() as f64 * share) as usize;
        let last = self.sorted_ns.len().saturating_sub(1);
        Duration::from_nanos(self.sorted_ns.get(index.min(last)).copied().unwrap_or(0))
    }

    pub fn longest(&self) -> Duration {
        Duration::from_nanos(self.sorted_ns.last().copied().unwrap_or(0))
    }
}

pub fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_and_spreads() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(spread(&[1.0, 2.0, 3.0]), Some(1.0));
        assert_eq!(paired_ratios(&[1.0, 2.0], &[2.0, 0.0]), [0.5]);
    }

    #[test]
    fn latencies_by_rank() {
        let latencies = Latencies::new((1..=1000).rev().collect());
        assert_eq!(latencies.within(0.5), Duration::from_nanos(501));
        assert_eq!(latencies.within(1.0), Duration::from_nanos(1000));
        assert_eq!(Latencies::default().longest(), Duration::ZERO);
    }
}
