//! INFO commandstats, errorstats and latencystats.

use super::Report;
use crate::node::stats::{CommandReport, Histogram};
use russet_catalog::Command;

/// Figures of commands that were called or refused at least once.
fn reports(report: &Report) -> Vec<CommandReport> {
    let stats = &report.node.stats;
    let all = Command::ALL.iter().map(|command| stats.report(*command));
    all.filter(|figures| figures.calls > 0 || figures.rejected > 0 || figures.failed > 0).collect()
}

pub(super) fn commandstats(report: &mut Report) {
    for figures in reports(report) {
        let CommandReport { command, calls, micros, rejected, failed, .. } = figures;
        let per_call = if calls == 0 { 0.0 } else { micros as f64 / calls as f64 };
        report.line(
            &format!("cmdstat_{}", command.full_name()),
            format!(
                "calls={calls},usec={micros},usec_per_call={per_call:.2},\
                 rejected_calls={rejected},failed_calls={failed}"
            ),
        );
    }
}

pub(super) fn errorstats(report: &mut Report) {
    let errors = report.node.stats.errors.lock().unwrap_or_else(|poison| poison.into_inner());
    let lines: Vec<(String, u64)> =
        errors.iter().map(|(code, count)| (format!("errorstat_{code}"), *count)).collect();
    drop(errors);
    lines.iter().for_each(|(name, count)| report.line(name, format!("count={count}")));
}

pub(super) fn latencystats(report: &mut Report) {
    if !report.node.stats.is_tracking() {
        return;
    }
    let percentiles = report.node.config.percentiles();
    for figures in reports(report) {
        if figures.histogram.iter().all(|count| *count == 0) {
            continue;
        }
        let shares = percentiles.iter().map(|percentile| {
            format!("p{percentile}={:.3}", micros_at(&figures.histogram, *percentile))
        });
        let line = shares.collect::<Vec<_>>().join(",");
        report.line(&format!("latency_percentiles_usec_{}", figures.command.full_name()), line);
    }
}

/// The time within which this share of the calls was done: the end of the bucket where it falls.
fn micros_at(histogram: &Histogram, percentile: f64) -> f64 {
    let total: u64 = histogram.iter().sum();
    let wanted = ((percentile / 100.0) * total as f64).ceil().max(1.0) as u64;
    let mut seen = 0;
    for (bucket, count) in histogram.iter().enumerate() {
        seen += count;
        if seen >= wanted {
            return (1u64 << bucket) as f64;
        }
    }
    0.0
}
