//! What no exporter knows of: event loops, contention for shards, scripts by the locks that they
//! take, ONCE, the journal, snapshots, expiry.

use super::page::MetricKind::{Counter, Gauge};
use super::page::Page;
use russet_commands::node::Node;
use russet_commands::node::stats::WorkerStats;
use std::sync::atomic::Ordering;

const MICROS_PER_SECOND: f64 = 1e6;

pub fn write(page: &mut Page, node: &Node) {
    page.family("russet_build_info", Gauge, "The version of Russet.");
    page.sample("russet_build_info", &[("version", env!("CARGO_PKG_VERSION"))], 1);
    loops(page, node);
    shards(page, node);
    scripts(page, node);
    once(page, node);
    durability(page, node);
    let stats = &node.stats;
    let backlog = stats.expiry_backlog_shards.load(Ordering::Relaxed);
    let help = "Shards in which more has expired than one visit removes.";
    page.single("russet_expiry_backlog_shards", Gauge, (help, backlog));
    let help = "Calls in a second of the key that was called most, with hotkeys-top-k.";
    let hottest = node.hot_keys.hottest_calls_per_second();
    page.single("russet_hottest_key_calls_per_second", Gauge, (help, hottest));
    let seconds = stats.housekeeping_micros.load(Ordering::Relaxed) as f64 / MICROS_PER_SECOND;
    let help = "Time in expiry, eviction and other background work.";
    page.single("russet_housekeeping_seconds_total", Counter, (help, seconds));
}

fn loops(page: &mut Page, node: &Node) {
    let help = "Event loops at most.";
    page.single("russet_event_loops_max", Gauge, (help, node.host.threads()));
    let workers = node.stats.workers();
    type Figure = fn(&WorkerStats) -> f64;
    let families: [(&str, &str, Figure); 3] = [
        ("russet_worker_rounds_total", "Rounds of event loops, by worker thread.", |worker| {
            worker.rounds.read() as f64
        }),
        ("russet_worker_busy_seconds_total", "Time in such rounds.", |worker| {
            worker.round_micros.read() as f64 / MICROS_PER_SECOND
        }),
        (
            "russet_worker_commands_total",
            "Commands, by the worker thread that ran them.",
            |worker| worker.processed.read() as f64,
        ),
    ];
    for (name, help, figure) in families {
        page.family(name, Counter, help);
        for worker in &workers {
            page.sample(name, &[("worker", worker.number.to_string().as_str())], figure(worker));
        }
    }
}

fn shards(page: &mut Page, node: &Node) {
    let waits: Vec<u64> = node.keyspace.lock_waits().collect();
    page.single("russet_shards", Gauge, ("Parts of the keyspace.", waits.len()));
    let total: u64 = waits.iter().sum();
    let help = "Calls that found a shard busy and had to queue for it.";
    page.single("russet_lock_waits_total", Counter, (help, total));
    let name = "russet_shard_lock_waits_total";
    page.family(name, Counter, "The same by shard, where there were any.");
    for (shard, count) in waits.iter().enumerate().filter(|(_, count)| **count > 0) {
        page.sample(name, &[("shard", shard.to_string().as_str())], count);
    }
}

fn scripts(page: &mut Page, node: &Node) {
    let stats = &node.stats;
    let runs = [
        ("narrow", stats.sum(|worker| worker.narrow_runs.read())),
        ("wide", stats.sum(|worker| worker.wide_runs.read())),
    ];
    let name = "russet_script_runs_total";
    page.family(name, Counter, "Runs of scripts that held the shards of their keys, or all.");
    for (locks, count) in runs {
        page.sample(name, &[("locks", locks)], count);
    }
}

fn once(page: &mut Page, node: &Node) {
    let totals = node.keyspace.once_totals();
    page.single("russet_once_records", Gauge, ("Request ids that ONCE keeps.", totals.records()));
    page.single("russet_once_bytes", Gauge, ("Memory of ONCE's records.", totals.bytes()));
    let help = "Records of ONCE whose time was over.";
    page.single("russet_once_expired_total", Counter, (help, totals.expired()));
}

fn durability(page: &mut Page, node: &Node) {
    let journal = node.keyspace.journal();
    let help = "Bytes on their way to the log.";
    page.single("russet_journal_backlog_bytes", Gauge, (help, journal.backlog_bytes()));
    let lag = journal.offset().saturating_sub(journal.durable());
    let help = "Writes that are not on disk yet.";
    page.single("russet_journal_lag_frames", Gauge, (help, lag));
    let taken = node.saves.figures().unwrap_or_default();
    let help = "Keys that the snapshot under way has saved.";
    page.single("russet_snapshot_keys_saved", Gauge, (help, taken.keys_saved));
    let help = "Keys that the snapshot under way is to save.";
    page.single("russet_snapshot_keys", Gauge, (help, taken.keys_total));
    let help = "Memory of what changed while the snapshot was taken.";
    page.single("russet_snapshot_copies_bytes", Gauge, (help, taken.copies_bytes));
}
