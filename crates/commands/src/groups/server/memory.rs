//! MEMORY: where the memory goes.

use crate::call::ctx::{Ctx, DONE, Outcome};
use crate::error::Refusal;
use crate::node::{AllocatorReport, Node};
use russet_base::{Args, num};
use russet_engine::store::raw::table::{EntryRef, Measured, View};
use russet_engine::value::Object;
use std::sync::atomic::Ordering;

/// What a key takes in its table besides its entry, and an expiry in its entry.
const SLOT_BYTES: u64 = 8;
const EXPIRY_BYTES: u64 = 8;
/// Below this MEMORY DOCTOR has nothing to say.
const DOCTOR_BYTES_MIN: u64 = 5 * 1024 * 1024;
/// Less than this between what is used and what is held is no trouble.
const SLACK_BYTES: f64 = 10.0 * 1024.0 * 1024.0;
const CLIENT_BYTES_HIGH: u64 = 200 * 1024;
const SCRIPTS_HIGH: u64 = 1000;

/// The figures that INFO and MEMORY STATS share.
#[derive(Clone, Copy, Debug)]
pub(super) struct MemoryReport {
    pub used_bytes: u64,
    pub peak_bytes: u64,
    pub startup_bytes: u64,
    pub clients_bytes: u64,
    /// Of the tables of keys, without the entries.
    slot_bytes: u64,
    /// Everything that is not the users' data.
    pub overhead_bytes: u64,
}

impl MemoryReport {
    pub fn of(node: &Node) -> Self {
        let used_bytes = node.used_memory_bytes();
        let peak_bytes = node.stats.memory_peak_bytes.load(Ordering::Relaxed).max(used_bytes);
        let startup_bytes = node.stats.memory_startup_bytes.load(Ordering::Relaxed).min(used_bytes);
        let mut clients_bytes = 0;
        node.clients.for_each(|card| clients_bytes += card.memory_bytes());
        let slot_bytes = node.keyspace.slot_bytes();
        let overhead = startup_bytes + clients_bytes + node.scripts.code_bytes() + slot_bytes;
        let overhead_bytes = overhead.min(used_bytes);
        MemoryReport {
            used_bytes,
            peak_bytes,
            startup_bytes,
            clients_bytes,
            slot_bytes,
            overhead_bytes,
        }
    }

    pub fn dataset_bytes(&self) -> u64 {
        self.used_bytes - self.overhead_bytes
    }

    pub fn peak_percent(&self) -> f64 {
        self.used_bytes as f64 * 100.0 / self.peak_bytes.max(1) as f64
    }

    /// Of what came after the start.
    pub fn dataset_percent(&self) -> f64 {
        let since_start = self.used_bytes - self.startup_bytes;
        self.dataset_bytes() as f64 * 100.0 / since_start.max(1) as f64
    }
}

pub(crate) fn memory_usage(ctx: &mut Ctx, args: Args) -> Outcome {
    let mut at = 3;
    while let Some(option) = args.get(at) {
        let (true, Some(arg)) = (option.eq_ignore_ascii_case(b"samples"), args.get(at + 1)) else {
            return Err(Refusal::Syntax);
        };
        // The figure is exact, so that there is nothing to sample.
        if num::parse_i64(arg).ok_or(Refusal::NotInteger)? < 0 {
            return Err(Refusal::Syntax);
        }
        at += 2;
    }
    let Some(entry) = ctx.keys.peek(args.at(2)) else {
        ctx.reply.null();
        return DONE;
    };
    ctx.reply.int(i64::try_from(entry_bytes(&entry)).unwrap_or(i64::MAX));
    DONE
}

/// What a key and its value take up.
pub(super) fn entry_bytes(entry: &EntryRef<'_, Object>) -> usize {
    let object_bytes = match entry.value() {
        View::Object(object) => object.memory_bytes(),
        _ => 0,
    };
    entry.block_bytes() + SLOT_BYTES as usize + object_bytes
}

pub(crate) fn memory_stats(ctx: &mut Ctx, _args: Args) -> Outcome {
    let node = ctx.node;
    let allocator = node.host.allocator();
    let memory = MemoryReport::of(node);
    let (databases, scripts) = (database_figures(node), node.scripts.memory());
    let keys: u64 = databases.iter().map(|figures| figures.keys).sum();
    let per_key = (memory.used_bytes - memory.startup_bytes).checked_div(keys).unwrap_or(0);
    let rss = allocator.process_rss_bytes;
    let before: [(&str, Figure); 11] = [
        ("peak.allocated", bytes(memory.peak_bytes)),
        ("total.allocated", bytes(memory.used_bytes)),
        ("startup.allocated", bytes(memory.startup_bytes)),
        ("replication.backlog", bytes(0)),
        ("replicas.repl.buffer", bytes(0)),
        ("clients.slaves", bytes(0)),
        ("clients.normal", bytes(memory.clients_bytes)),
        ("cluster.links", bytes(0)),
        ("aof.buffer", bytes(0)),
        ("lua.caches", bytes(scripts.scripts as u64)),
        ("functions.caches", bytes(scripts.libraries as u64)),
    ];
    let (active, resident) = (allocator.active_bytes, allocator.resident_bytes);
    let after: [(&str, Figure); 20] = [
        ("overhead.db.hashtable.lut", bytes(if keys == 0 { 0 } else { memory.slot_bytes })),
        ("overhead.db.hashtable.rehashing", bytes(0)),
        ("overhead.total", bytes(memory.overhead_bytes)),
        ("db.dict.rehashing.count", bytes(0)),
        ("keys.count", bytes(keys)),
        ("keys.bytes-per-key", bytes(per_key)),
        ("dataset.bytes", bytes(memory.dataset_bytes())),
        ("dataset.percentage", Figure::Share(memory.dataset_percent())),
        ("peak.percentage", Figure::Share(memory.peak_percent())),
        ("allocator.allocated", bytes(allocator.allocated_bytes)),
        ("allocator.active", bytes(active)),
        ("allocator.resident", bytes(resident)),
        ("allocator.muzzy", bytes(0)),
        ("allocator-fragmentation.ratio", ratio(active, allocator.allocated_bytes)),
        ("allocator-fragmentation.bytes", less(active, allocator.allocated_bytes)),
        ("allocator-rss.ratio", ratio(resident, active)),
        ("allocator-rss.bytes", less(resident, active)),
        ("rss-overhead.ratio", ratio(rss, resident)),
        ("rss-overhead.bytes", less(rss, resident)),
        ("fragmentation", ratio(rss, memory.used_bytes)),
    ];
    ctx.reply.map(before.len() + databases.len() + after.len() + 1);
    before.into_iter().for_each(|(name, figure)| write_figure(ctx, name, figure));
    databases.iter().for_each(|figures| write_database(ctx, figures));
    after.into_iter().for_each(|(name, figure)| write_figure(ctx, name, figure));
    write_figure(ctx, "fragmentation.bytes", less(rss, memory.used_bytes));
    DONE
}

#[derive(Clone, Copy)]
enum Figure {
    Count(i64),
    Share(f64),
}

fn bytes(value: u64) -> Figure {
    Figure::Count(i64::try_from(value).unwrap_or(i64::MAX))
}

fn less(a: u64, b: u64) -> Figure {
    Figure::Count(a.cast_signed().wrapping_sub(b.cast_signed()))
}

fn ratio(a: u64, b: u64) -> Figure {
    Figure::Share(a as f64 / b.max(1) as f64)
}

fn write_figure(ctx: &mut Ctx, name: &str, figure: Figure) {
    ctx.reply.bulk(name.as_bytes());
    match figure {
        Figure::Count(value) => ctx.reply.int(value),
        Figure::Share(value) => ctx.reply.double(value),
    }
}

struct DatabaseFigures {
    db: usize,
    keys: u64,
    expires: u64,
}

/// Of those databases that are not empty.
fn database_figures(node: &Node) -> Vec<DatabaseFigures> {
    let mut all = Vec::new();
    for db in 0..node.keyspace.databases() {
        let keys = node.keyspace.key_counts().total(db);
        if keys > 0 {
            let gauges = node.keyspace.gauges().iter();
            let expires = gauges.map(|shard| shard.expires[db].load(Ordering::Relaxed)).sum();
            all.push(DatabaseFigures { db, keys, expires });
        }
    }
    all
}

fn write_database(ctx: &mut Ctx, figures: &DatabaseFigures) {
    ctx.reply.bulk(format!("db.{}", figures.db).as_bytes());
    ctx.reply.map(2);
    write_figure(ctx, "overhead.hashtable.main", bytes(figures.keys * SLOT_BYTES));
    write_figure(ctx, "overhead.hashtable.expires", bytes(figures.expires * EXPIRY_BYTES));
}

pub(crate) fn memory_doctor(ctx: &mut Ctx, _args: Args) -> Outcome {
    let allocator = ctx.node.host.allocator();
    let memory = MemoryReport::of(ctx.node);
    let counts = (ctx.node.clients.len() as u64, ctx.node.scripts.cached() as u64);
    let text = diagnosis(&memory, allocator, counts);
    ctx.reply.verbatim(b"txt", text.as_bytes());
    DONE
}

fn diagnosis(
    memory: &MemoryReport,
    allocator: AllocatorReport,
    (clients, scripts): (u64, u64),
) -> String {
    if memory.used_bytes < DOCTOR_BYTES_MIN {
        return "This instance is empty or nearly so: there is too little memory in use to say \
                anything about it.\n"
            .to_owned();
    }
    let mut findings = Vec::new();
    if memory.peak_bytes as f64 > memory.used_bytes as f64 * 1.5 {
        findings.push(
            "Peak memory: the most that was ever in use is over 150% of what is in use now. What \
             the allocator keeps since then may be given back by MEMORY PURGE.",
        );
    }
    let rss = allocator.process_rss_bytes as f64;
    if rss > memory.used_bytes as f64 * 1.4 && rss - memory.used_bytes as f64 > SLACK_BYTES {
        findings.push(
            "High fragmentation: the process holds over 140% of the memory that is in use. If that \
             stays, a restart or MEMORY PURGE helps.",
        );
    }
    if memory.clients_bytes / clients.max(1) > CLIENT_BYTES_HIGH {
        findings.push(
            "Large client buffers: on average a client's buffers hold over 200 kB. Clients that \
             read too slowly, or huge pipelines, do this: see CLIENT LIST.",
        );
    }
    if scripts > SCRIPTS_HIGH {
        findings.push(
            "Many scripts: over 1,000 are kept, each with its compiled code. Scripts that are made \
             for one call do this: give them what differs by KEYS and ARGV. SCRIPT FLUSH forgets \
             them.",
        );
    }
    match findings.is_empty() {
        true => "No memory problem was found in this instance.\n".to_owned(),
        false => {
            let lines = findings.iter().map(|finding| format!(" * {finding}\n\n"));
            format!("Memory problems were found in this instance:\n\n{}", lines.collect::<String>())
        }
    }
}

pub(crate) fn memory_purge(ctx: &mut Ctx, _args: Args) -> Outcome {
    ctx.node.host.purge();
    ctx.reply.ok();
    DONE
}

pub(crate) fn memory_malloc_stats(ctx: &mut Ctx, _args: Args) -> Outcome {
    let text = ctx.node.host.allocator_text();
    ctx.reply.verbatim(b"txt", text.as_bytes());
    DONE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_doctor_names_what_is_wrong_and_nothing_else() {
        let mebibytes = |count: u64| count << 20;
        let memory = MemoryReport {
            used_bytes: mebibytes(100),
            peak_bytes: mebibytes(110),
            startup_bytes: mebibytes(1),
            clients_bytes: mebibytes(1),
            slot_bytes: mebibytes(1),
            overhead_bytes: mebibytes(2),
        };
        let allocator =
            AllocatorReport { process_rss_bytes: mebibytes(110), ..AllocatorReport::default() };
        let well = "No memory problem was found in this instance.\n";
        assert_eq!(diagnosis(&memory, allocator, (10, SCRIPTS_HIGH)), well);
        let small = MemoryReport { used_bytes: mebibytes(1), ..memory };
        assert!(diagnosis(&small, allocator, (10, 0)).contains("nearly so"));
        let peak = MemoryReport { peak_bytes: mebibytes(151), ..memory };
        let held = AllocatorReport { process_rss_bytes: mebibytes(141), ..allocator };
        let buffers = MemoryReport { clients_bytes: mebibytes(3), ..memory };
        for (text, found) in [
            (diagnosis(&peak, allocator, (10, 0)), "Peak memory"),
            (diagnosis(&memory, held, (10, 0)), "High fragmentation"),
            (diagnosis(&buffers, allocator, (10, 0)), "Large client buffers"),
            (diagnosis(&memory, allocator, (10, SCRIPTS_HIGH + 1)), "Many scripts"),
        ] {
            let findings: Vec<&str> =
                text.lines().filter_map(|line| line.strip_prefix(" * ")).collect();
            assert!(findings.len() == 1 && findings[0].starts_with(found), "{text}");
        }
    }
}
