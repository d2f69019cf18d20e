//! HOTKEYS: starts and ends a tracking of the keys that cost most, and tells what it found, or
//! which keys `hotkeys-top-k` has seen called most.

use crate::call::ctx::{Ctx, DONE, Outcome};
use crate::error::Refusal;
use crate::node::CpuTimes;
use crate::node::hot_keys::top::HotKey;
use crate::node::hot_keys::{Report, Wanted};
use russet_base::{Args, num};
use std::ops::RangeInclusive;

/// Metrics that there are.
const METRICS_MAX: i64 = 2;
/// Keys that are reported, unless it is said how many, and at most.
const COUNT: usize = 10;
const COUNT_MAX: i64 = 64;
const DURATION_MAX_SECONDS: i64 = 1_000_000;
/// The last slot of a cluster: without one, a server has all of them.
const SLOT_LAST: i64 = 16_383;

pub(crate) fn hotkeys_start(ctx: &mut Ctx, args: Args) -> Outcome {
    let in_progress = || Refusal::text("ERR hotkey tracking session already in progress");
    ctx.node.end_hot_keys_if_due();
    // COMPAT: this comes before any look at the arguments (tests/wire/server/hotkeys.wire).
    if ctx.node.is_tracking_hot_keys() {
        return Err(in_progress());
    }
    let wanted = parse(args)?;
    if !ctx.node.start_hot_keys(wanted) {
        return Err(in_progress());
    }
    ctx.reply.ok();
    DONE
}

fn parse(args: Args) -> Result<Wanted, Refusal> {
    if args.len() < 4 || !args.at(2).eq_ignore_ascii_case(b"METRICS") {
        return Err(Refusal::text("ERR METRICS parameter is required"));
    }
    let text = "ERR METRICS count must be > 0 and <= 2";
    let metrics = parse_in(args.at(3), 1..=METRICS_MAX, text)? as usize;
    let mut wanted =
        Wanted { by_cpu: false, by_net: false, count: COUNT, duration_ms: None, sample_ratio: 1 };
    for metric in args.from(4).iter().take(metrics) {
        let (is_wanted, twice) = if metric.eq_ignore_ascii_case(b"CPU") {
            (&mut wanted.by_cpu, "ERR METRICS CPU defined more than once!")
        } else if metric.eq_ignore_ascii_case(b"NET") {
            (&mut wanted.by_net, "ERR METRICS NET defined more than once!")
        } else {
            // COMPAT: beside one that is known, any other is taken for a metric of nothing.
            continue;
        };
        if std::mem::replace(is_wanted, true) {
            return Err(Refusal::text(twice));
        }
    }
    if args.len() < 4 + metrics {
        let text = "ERR METRICS count does not match number of metric types provided";
        return Err(Refusal::text(text));
    }
    if !wanted.by_cpu && !wanted.by_net {
        return Err(Refusal::text("ERR METRICS no valid metrics passed. Supported: CPU|NET"));
    }
    parse_options(args.from(4 + metrics), &mut wanted)?;
    Ok(wanted)
}

fn parse_options(options: Args, wanted: &mut Wanted) -> Result<(), Refusal> {
    let mut at = 0;
    while let Some(option) = options.get(at) {
        let is = |name: &[u8]| option.eq_ignore_ascii_case(name);
        let Some(value) = options.get(at + 1) else { return Err(Refusal::Syntax) };
        if is(b"COUNT") {
            let text = "ERR COUNT must be between 1 and 64";
            wanted.count = parse_in(value, 1..=COUNT_MAX, text)? as usize;
        } else if is(b"DURATION") {
            let text = "ERR DURATION must be between 1 and 1000000";
            let seconds = parse_in(value, 1..=DURATION_MAX_SECONDS, text)?;
            wanted.duration_ms = Some(seconds * 1000);
        } else if is(b"SAMPLE") {
            let text = "ERR SAMPLE ratio must be positive";
            wanted.sample_ratio = parse_in(value, 1..=i64::from(i32::MAX), text)?.unsigned_abs();
        } else if is(b"SLOTS") {
            let text = "ERR SLOTS parameter cannot be used in non-cluster mode";
            return Err(Refusal::text(text));
        } else {
            return Err(Refusal::Syntax);
        }
        at += 2;
    }
    Ok(())
}

fn parse_in(arg: &[u8], range: RangeInclusive<i64>, text: &'static str) -> Result<i64, Refusal> {
    num::parse_i64(arg).filter(|number| range.contains(number)).ok_or(Refusal::text(text))
}

pub(crate) fn hotkeys_stop(ctx: &mut Ctx, _args: Args) -> Outcome {
    match ctx.node.stop_hot_keys() {
        true => ctx.reply.ok(),
        false => ctx.reply.null(),
    }
    DONE
}

pub(crate) fn hotkeys_reset(ctx: &mut Ctx, _args: Args) -> Outcome {
    if !ctx.node.reset_hot_keys() {
        let text = "ERR hotkey tracking session in progress, stop tracking first";
        return Err(Refusal::text(text));
    }
    ctx.reply.ok();
    DONE
}

pub(crate) fn hotkeys_get(ctx: &mut Ctx, _args: Args) -> Outcome {
    let Some(report) = ctx.node.hot_keys_report() else {
        match ctx.node.top_keys() {
            Some(keys) => write_top(ctx, &keys),
            None => ctx.reply.null(),
        }
        return DONE;
    };
    // COMPAT: a list of one, so that the answers of several servers can be put together.
    ctx.reply.array(1);
    let Wanted { by_cpu, by_net, .. } = report.wanted;
    ctx.reply.map(7 + if by_cpu { 3 } else { 0 } + if by_net { 2 } else { 0 });
    write_head(ctx, &report);
    if by_cpu {
        let CpuTimes { user_seconds, system_seconds } = report.cpu;
        write_int(ctx, "total-cpu-time-user-ms", (user_seconds * 1000.0) as u64);
        write_int(ctx, "total-cpu-time-sys-ms", (system_seconds * 1000.0) as u64);
    }
    if by_net {
        write_int(ctx, "total-net-bytes", report.looked_at_net_bytes);
    }
    if by_cpu {
        write_keys(ctx, "by-cpu-time-us", &report.by_cpu_micros);
    }
    if by_net {
        write_keys(ctx, "by-net-bytes", &report.by_net_bytes);
    }
    DONE
}

/// As Valkey tells it, with `hotkeys-top-k`.
fn write_top(ctx: &mut Ctx, keys: &[HotKey]) {
    ctx.reply.array(keys.len());
    for HotKey { key, db, calls_per_second } in keys {
        ctx.reply.map(3);
        ctx.reply.bulk(b"key");
        ctx.reply.bulk(key);
        write_int(ctx, "db", *db as u64);
        write_int(ctx, "qps", *calls_per_second);
    }
}

fn write_head(ctx: &mut Ctx, report: &Report) {
    write_int(ctx, "tracking-active", u64::from(report.is_active));
    write_int(ctx, "sample-ratio", report.wanted.sample_ratio);
    ctx.reply.bulk(b"selected-slots");
    ctx.reply.array(1);
    ctx.reply.array(2);
    ctx.reply.int(0);
    ctx.reply.int(SLOT_LAST);
    write_int(ctx, "all-commands-all-slots-us", report.micros);
    write_int(ctx, "net-bytes-all-commands-all-slots", report.net_bytes);
    write_int(ctx, "collection-start-time-unix-ms", report.started.0.unsigned_abs());
    write_int(ctx, "collection-duration-ms", report.duration_ms.unsigned_abs());
}

fn write_int(ctx: &mut Ctx, name: &str, value: u64) {
    ctx.reply.bulk(name.as_bytes());
    ctx.reply.int(i64::try_from(value).unwrap_or(i64::MAX));
}

fn write_keys(ctx: &mut Ctx, name: &str, keys: &[(Vec<u8>, u64)]) {
    ctx.reply.bulk(name.as_bytes());
    ctx.reply.array(2 * keys.len());
    for (key, cost) in keys {
        ctx.reply.bulk(key);
        ctx.reply.int(i64::try_from(*cost).unwrap_or(i64::MAX));
    }
}
