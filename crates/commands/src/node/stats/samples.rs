//! How fast counters grow: the mean of the last samples, as `instantaneous_ops_per_sec` has it.

const SAMPLES: usize = 16;
const MICROS_PER_SECOND: u64 = 1_000_000;

/// Counters that grow, at one moment.
#[derive(Clone, Copy, Debug, Default)]
pub struct Totals {
    pub commands: u64,
    pub input_bytes: u64,
    pub output_bytes: u64,
    pub rounds: u64,
    pub round_micros: u64,
}

/// The same, for each second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rates {
    pub commands: u64,
    pub input_bytes: u64,
    pub output_bytes: u64,
    pub rounds: u64,
    pub round_micros: u64,
}

impl Rates {
    /// How long a round took in the mean.
    pub fn micros_per_round(&self) -> u64 {
        self.round_micros.checked_div(self.rounds).unwrap_or(0)
    }
}

#[derive(Debug, Default)]
pub(super) struct Samples {
    last: Option<(u64, Totals)>,
    rates: [Rates; SAMPLES],
    next: usize,
}

impl Samples {
    pub(super) fn take(&mut self, now_micros: u64, totals: Totals) {
        if let Some((before_micros, before)) = self.last.replace((now_micros, totals)) {
            let elapsed = now_micros.saturating_sub(before_micros).max(1);
            // A reset between two samples makes the later one smaller.
            let rate = |new: u64, old: u64| {
                let grown = u128::from(new.saturating_sub(old));
                let rate = grown * u128::from(MICROS_PER_SECOND) / u128::from(elapsed);
                u64::try_from(rate).unwrap_or(u64::MAX)
            };
            self.rates[self.next] = Rates {
                commands: rate(totals.commands, before.commands),
                input_bytes: rate(totals.input_bytes, before.input_bytes),
                output_bytes: rate(totals.output_bytes, before.output_bytes),
                rounds: rate(totals.rounds, before.rounds),
                round_micros: rate(totals.round_micros, before.round_micros),
            };
            self.next = (self.next + 1) % SAMPLES;
        }
    }

    pub(super) fn rates(&self) -> Rates {
        let mean = |figure: fn(&Rates) -> u64| {
            let sum: u128 = self.rates.iter().map(|rates| u128::from(figure(rates))).sum();
            u64::try_from(sum / SAMPLES as u128).unwrap_or(u64::MAX)
        };
        Rates {
            commands: mean(|rates| rates.commands),
            input_bytes: mean(|rates| rates.input_bytes),
            output_bytes: mean(|rates| rates.output_bytes),
            rounds: mean(|rates| rates.rounds),
            round_micros: mean(|rates| rates.round_micros),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_steady_rate_is_seen_after_sixteen_samples() {
        let mut samples = Samples::default();
        for at in 0..=SAMPLES as u64 {
            let totals = Totals {
                commands: at * 5,
                input_bytes: at * 100,
                rounds: at * 2,
                round_micros: at * 60,
                output_bytes: 0,
            };
            samples.take(at * 100_000, totals);
        }
        let rates = samples.rates();
        assert_eq!((rates.commands, rates.input_bytes, rates.output_bytes), (50, 1000, 0));
        assert_eq!((rates.rounds, rates.round_micros), (20, 600));
        samples.take(u64::MAX, Totals::default());
        assert!(samples.rates().commands < 50);
    }
}
