//! LATENCY DOCTOR: what the spikes suggest.

use crate::call::ctx::{Ctx, DONE, Outcome};
use crate::node::Node;
use crate::node::config::Directive;
use crate::node::latency::Series;
use russet_base::Args;

const OFF: &str = "Latency monitoring is off in this Russet instance. Turn it on with \
    \"CONFIG SET latency-monitor-threshold <milliseconds>\": events that take that long are then \
    remembered.\n";

const CALM: &str =
    "No latency spike was seen since the monitoring began. Nothing to worry about.\n";

pub(crate) fn latency_doctor(ctx: &mut Ctx, _args: Args) -> Outcome {
    let node = ctx.node;
    let all = node.latency.all();
    let text = match () {
        () if !node.latency.is_on() && all.is_empty() => OFF.to_owned(),
        () if all.is_empty() => CALM.to_owned(),
        () => report(node, &all),
    };
    ctx.reply.verbatim(b"txt", text.as_bytes());
    DONE
}

fn report(node: &Node, all: &[(&'static str, Series)]) -> String {
    let mut text = "Latency spikes were seen in this Russet instance.\n\n".to_owned();
    for (index, (event, series)) in all.iter().enumerate() {
        text.push_str(&line(index + 1, event, series));
    }
    text.push_str("\nWhat may help:\n\n");
    if node.config.int(Directive::SlowlogLogSlowerThan) < 0 {
        text.push_str(
            "- The slow log is off. Set slowlog-log-slower-than to see which commands.\n",
        );
    } else {
        text.push_str("- Look at SLOWLOG GET: it names the commands that took longest.\n");
    }
    let wide_runs = node.stats.sum(|worker| worker.wide_runs.read());
    if wide_runs > 0 {
        text.push_str(&format!(
            "- {wide_runs} runs of scripts held the whole keyspace: SCRIPT STATS names them. A \
             script that reaches keys only through KEYS holds no others.\n"
        ));
    }
    let waits: Vec<u64> = node.keyspace.lock_waits().collect();
    let busiest = waits.iter().copied().enumerate().max_by_key(|(_, count)| *count);
    if let Some((shard, count)) = busiest.filter(|(_, count)| *count > 0) {
        let total: u64 = waits.iter().sum();
        text.push_str(&format!(
            "- {total} calls had to wait for keys that another call held, {count} of them in \
             shard {shard}: COMMANDLOG GET -1 shard-wait names those that waited long. Keys with \
             the same hash tag share a shard.\n"
        ));
    }
    text.push_str(
        "- A transaction with many keys, a script on all keys, FLUSHALL or SWAPDB hold all that \
         they name until they are done: make them smaller.\n",
    );
    text
}

fn line(number: usize, event: &str, series: &Series) -> String {
    let count = series.spikes.len().max(1) as u64;
    let sum: u64 = series.spikes.iter().map(|spike| u64::from(spike.ms)).sum();
    let average = sum / count;
    let deviations = series.spikes.iter().map(|spike| u64::from(spike.ms).abs_diff(average));
    let deviation = deviations.sum::<u64>() / count;
    let first = series.spikes.front().map_or(0, |spike| spike.unix_seconds);
    let last = series.spikes.back().map_or(0, |spike| spike.unix_seconds);
    let period = (last - first).max(1) as f64 / count as f64;
    format!(
        "{number}. {event}: {count} latency spikes (average {average}ms, mean deviation \
         {deviation}ms, period {period:.2} sec). Worst all time event {}ms.\n",
        series.ms_max
    )
}
