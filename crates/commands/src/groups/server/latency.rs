//! LATENCY: spikes of latency and how long commands took.

mod doctor;
mod graph;

pub(crate) use doctor::latency_doctor;
pub(crate) use graph::latency_graph;

use crate::call::ctx::{Ctx, DONE, Outcome};
use crate::node::stats::{CommandReport, HISTOGRAM_BUCKETS};
use russet_base::Args;
use russet_catalog::{Command, lookup_full};

/// From here on Redis has one bucket for all.
const LAST_BUCKET: usize = 20;
const LAST_BOUND_MICROS: i64 = 1_073_741;

pub(crate) fn latency_latest(ctx: &mut Ctx, _args: Args) -> Outcome {
    let all = ctx.node.latency.all();
    ctx.reply.array(all.len());
    for (event, series) in all {
        let (time, ms) = series.spikes.back().map_or((0, 0), |last| (last.unix_seconds, last.ms));
        ctx.reply.array(6);
        ctx.reply.bulk(event.as_bytes());
        ctx.reply.int(time);
        ctx.reply.int(i64::from(ms));
        ctx.reply.int(i64::from(series.ms_max));
        ctx.reply.int(i64::try_from(series.ms_sum).unwrap_or(i64::MAX));
        ctx.reply.int(i64::try_from(series.count).unwrap_or(i64::MAX));
    }
    DONE
}

pub(crate) fn latency_history(ctx: &mut Ctx, args: Args) -> Outcome {
    let Some((_, series)) = ctx.node.latency.find(args.at(2)) else {
        ctx.reply.array(0);
        return DONE;
    };
    ctx.reply.array(series.spikes.len());
    for spike in &series.spikes {
        ctx.reply.array(2);
        ctx.reply.int(spike.unix_seconds);
        ctx.reply.int(i64::from(spike.ms));
    }
    DONE
}

pub(crate) fn latency_reset(ctx: &mut Ctx, args: Args) -> Outcome {
    let latency = &ctx.node.latency;
    let events = args.from(2);
    let forgotten: usize = match events.is_empty() {
        true => latency.reset(None),
        false => events.iter().map(|event| latency.reset(Some(event))).sum(),
    };
    ctx.reply.int(forgotten as i64);
    DONE
}

pub(crate) fn latency_histogram(ctx: &mut Ctx, args: Args) -> Outcome {
    let stats = &ctx.node.stats;
    let named = args.from(2);
    let commands: Vec<Command> = match named.is_empty() {
        true => Command::ALL.to_vec(),
        false => named.iter().filter_map(lookup_full).flat_map(family).collect(),
    };
    let reports = commands.into_iter().map(|command| stats.report(command));
    let is_known = |report: &CommandReport| report.histogram.iter().any(|count| *count > 0);
    let reports: Vec<CommandReport> = reports.filter(is_known).collect();
    ctx.reply.map(reports.len());
    for report in reports {
        ctx.reply.bulk(report.command.full_name().as_bytes());
        write_histogram(ctx, &report);
    }
    DONE
}

/// A container stands for all its subcommands.
fn family(command: Command) -> Vec<Command> {
    let mut family = vec![command];
    family.extend_from_slice(command.subcommands());
    family
}

fn write_histogram(ctx: &mut Ctx, report: &CommandReport) {
    let calls: u64 = report.histogram.iter().sum();
    let mut lines: Vec<(i64, u64)> = Vec::new();
    let mut so_far = 0;
    for bucket in 0..HISTOGRAM_BUCKETS {
        if report.histogram[bucket] == 0 {
            continue;
        }
        so_far += report.histogram[bucket];
        let bound = bound_micros(bucket);
        match lines.last_mut() {
            Some(last) if last.0 == bound => last.1 = so_far,
            _ => lines.push((bound, so_far)),
        }
    }
    ctx.reply.map(2);
    ctx.reply.bulk(b"calls");
    ctx.reply.int(i64::try_from(calls).unwrap_or(i64::MAX));
    ctx.reply.bulk(b"histogram_usec");
    ctx.reply.map(lines.len());
    for (bound, count) in lines {
        ctx.reply.int(bound);
        ctx.reply.int(i64::try_from(count).unwrap_or(i64::MAX));
    }
}

/// COMPAT: Redis keeps nanoseconds, in buckets that begin at 1024 of them and end a 128th above
/// the next power of two.
fn bound_micros(bucket: usize) -> i64 {
    if bucket >= LAST_BUCKET {
        return LAST_BOUND_MICROS;
    }
    ((1 << (10 + bucket)) + (1 << (3 + bucket)) - 1) / 1000
}

#[cfg(test)]
mod tests {
    use super::bound_micros;
    use crate::testing::TestServer;

    /// As Valkey 9.1 prints them.
    #[test]
    fn bounds_are_those_of_redis() {
        let bounds: Vec<i64> = (0..9).map(bound_micros).collect();
        assert_eq!(bounds, [1, 2, 4, 8, 16, 33, 66, 132, 264]);
        assert_eq!((bound_micros(15), bound_micros(31)), (33_816, 1_073_741));
    }

    #[test]
    fn spikes_are_listed_drawn_and_forgotten() {
        let mut server = TestServer::new();
        server.say("CONFIG SET latency-monitor-threshold 1");
        server.worker.node.latency.note("command", 20_000, || 1_700_000_000);
        assert_eq!(server.say("LATENCY LATEST"), "[[\"command\", 1700000000, 20, 20, 20, 1]]");
        assert_eq!(server.say("LATENCY HISTORY command"), "[[1700000000, 20]]");
        assert_eq!(server.say("LATENCY HISTORY nosuch"), "[]");
        let graph = server.say("LATENCY GRAPH command");
        assert!(graph.contains("command - high 20 ms, low 20 ms (all time high 20 ms)"), "{graph}");
        assert_eq!(server.say("LATENCY RESET COMMAND"), "1");
        assert_eq!(server.say("LATENCY RESET"), "0");
    }
}
