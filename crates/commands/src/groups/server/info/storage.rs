//! INFO memory, persistence and keyspace.

use super::Report;
use crate::groups::server::memory::MemoryReport;
use crate::node::config::Directive;
use russet_base::num::human_bytes;
use russet_engine::barrier::Barrier;
use russet_engine::keys::DbCounts;
use russet_persistence::log::LogStatus;
use std::sync::atomic::{AtomicU64, Ordering};

pub(super) fn memory(report: &mut Report) {
    let (node, allocator) = (report.node, report.allocator);
    let memory = MemoryReport::of(node);
    used(report, &memory);
    scripts(report);
    let limit = node.config.memory(Directive::MaxMemory);
    let (pending, freed) = node.keyspace.reclaimer().counts();
    let ratio = |a: u64, b: u64| format!("{:.2}", a as f64 / b.max(1) as f64);
    let less = |a: u64, b: u64| a.cast_signed().wrapping_sub(b.cast_signed());
    let (active, resident) = (allocator.active_bytes, allocator.resident_bytes);
    let rss = allocator.process_rss_bytes;
    report.lines(&[
        ("maxmemory", &limit),
        ("maxmemory_human", &human_bytes(limit)),
        ("maxmemory_policy", &node.config.choice(Directive::MaxMemoryPolicy)),
        ("allocator_frag_ratio", &ratio(active, allocator.allocated_bytes)),
        ("allocator_frag_bytes", &less(active, allocator.allocated_bytes)),
        ("allocator_rss_ratio", &ratio(resident, active)),
        ("allocator_rss_bytes", &less(resident, active)),
        ("rss_overhead_ratio", &ratio(rss, resident)),
        ("rss_overhead_bytes", &less(rss, resident)),
        ("mem_fragmentation_ratio", &ratio(rss, memory.used_bytes)),
        ("mem_fragmentation_bytes", &less(rss, memory.used_bytes)),
        ("mem_not_counted_for_evict", &0),
        ("mem_replication_backlog", &0),
        ("mem_total_replication_buffers", &0),
        ("mem_replicas_repl_buffer", &0),
        ("mem_clients_slaves", &0),
        ("mem_clients_normal", &memory.clients_bytes),
        ("mem_cluster_links", &0),
        ("mem_aof_buffer", &node.keyspace.journal().backlog_bytes()),
        ("mem_allocator", &report.process.allocator.clone()),
        ("mem_overhead_db_hashtable_rehashing", &0),
        ("active_defrag_running", &0),
        ("lazyfree_pending_objects", &pending),
        ("lazyfreed_objects", &freed),
    ]);
}

fn used(report: &mut Report, memory: &MemoryReport) {
    let (node, allocator) = (report.node, report.allocator);
    let system_bytes = report.process.system_memory_bytes;
    report.lines(&[
        ("used_memory", &memory.used_bytes),
        ("used_memory_human", &human_bytes(memory.used_bytes)),
        ("used_memory_rss", &allocator.process_rss_bytes),
        ("used_memory_rss_human", &human_bytes(allocator.process_rss_bytes)),
        ("used_memory_peak", &memory.peak_bytes),
        ("used_memory_peak_human", &human_bytes(memory.peak_bytes)),
        ("used_memory_peak_time", &node.stats.memory_peak_seconds.load(Ordering::Relaxed)),
        ("used_memory_peak_perc", &format!("{:.2}%", memory.peak_percent())),
        ("used_memory_overhead", &memory.overhead_bytes),
        ("used_memory_startup", &memory.startup_bytes),
        ("used_memory_dataset", &memory.dataset_bytes()),
        ("used_memory_dataset_perc", &format!("{:.2}%", memory.dataset_percent())),
        ("allocator_allocated", &allocator.allocated_bytes),
        ("allocator_active", &allocator.active_bytes),
        ("allocator_resident", &allocator.resident_bytes),
        ("allocator_muzzy", &0),
        ("total_system_memory", &system_bytes),
        ("total_system_memory_human", &human_bytes(system_bytes)),
    ]);
}

fn scripts(report: &mut Report) {
    let scripts = &report.node.scripts;
    let bytes = scripts.memory();
    let cached = scripts.cached();
    let (libraries, functions) = scripts.libraries().counts();
    let vm_total = bytes.vm_eval + bytes.vm_functions;
    let sources = bytes.scripts + bytes.libraries;
    let human = |bytes: usize| human_bytes(bytes as u64);
    report.lines(&[
        ("used_memory_lua", &bytes.vm_eval),
        ("used_memory_vm_eval", &bytes.vm_eval),
        ("used_memory_lua_human", &human(bytes.vm_eval)),
        ("used_memory_scripts_eval", &bytes.scripts),
        ("number_of_cached_scripts", &cached),
        ("number_of_functions", &functions),
        ("number_of_libraries", &libraries),
        ("used_memory_vm_functions", &bytes.vm_functions),
        ("used_memory_vm_total", &vm_total),
        ("used_memory_vm_total_human", &human(vm_total)),
        ("used_memory_functions", &bytes.libraries),
        ("used_memory_scripts", &sources),
        ("used_memory_scripts_human", &human(sources)),
    ]);
}

pub(super) fn persistence(report: &mut Report) {
    let node = report.node;
    let is_loading = node.keyspace.barriers().is_up(Barrier::Loading);
    let log = node.durability.log_status();
    let status = if node.saves.is_last_good() { "ok" } else { "err" };
    let (keys_loaded, keys_expired) = node.saves.last_load();
    let (last_seconds, last_bytes) = node.saves.last_background();
    let taken = node.saves.figures().unwrap_or_default();
    let percent = 100.0 * taken.keys_saved as f64 / taken.keys_total.max(1) as f64;
    report.lines(&[
        ("loading", &u8::from(is_loading)),
        ("async_loading", &0),
        ("current_cow_peak", &taken.copies_peak_bytes),
        ("current_cow_size", &taken.copies_bytes),
        ("current_cow_size_age", &0),
        ("current_fork_perc", &format!("{percent:.2}")),
        ("current_save_keys_processed", &taken.keys_saved),
        ("current_save_keys_total", &taken.keys_total),
        ("rdb_changes_since_last_save", &node.unsaved_changes()),
        ("rdb_bgsave_in_progress", &u8::from(taken.is_save)),
        ("rdb_last_save_time", &node.saves.last_seconds()),
        ("rdb_last_bgsave_status", &status),
        ("rdb_last_bgsave_time_sec", &last_seconds),
        ("rdb_current_bgsave_time_sec", &if taken.is_save { taken.seconds as i64 } else { -1 }),
        ("rdb_saves", &node.saves.count()),
        ("rdb_last_cow_size", &last_bytes),
        ("rdb_last_load_keys_expired", &keys_expired),
        ("rdb_last_load_keys_loaded", &keys_loaded),
    ]);
    log_figures(report, log.unwrap_or_default(), log.is_some());
    report.lines(&[("module_fork_in_progress", &0), ("module_fork_last_cow_size", &0)]);
    if is_loading {
        loading(report);
    }
}

fn log_figures(report: &mut Report, log: LogStatus, is_on: bool) {
    let node = report.node;
    let good = |is_bad: bool| if is_bad { "err" } else { "ok" };
    let seconds = log.rewrite_seconds.map_or(-1, |seconds| seconds as i64);
    let current_seconds = log.current_rewrite_seconds.map_or(-1, |seconds| seconds as i64);
    report.lines(&[
        ("aof_enabled", &u8::from(is_on)),
        ("aof_rewrite_in_progress", &u8::from(log.is_rewriting)),
        ("aof_rewrite_scheduled", &u8::from(node.durability.scheduled.has_rewrite())),
        ("aof_last_rewrite_time_sec", &seconds),
        ("aof_current_rewrite_time_sec", &current_seconds),
        ("aof_last_bgrewrite_status", &good(log.is_rewrite_bad)),
        ("aof_rewrites", &log.rewrites),
        ("aof_rewrites_consecutive_failures", &u8::from(log.is_rewrite_bad)),
        ("aof_last_write_status", &good(log.is_failed)),
        ("aof_last_cow_size", &0),
    ]);
    if is_on {
        report.lines(&[
            ("aof_current_size", &log.size_bytes),
            ("aof_base_size", &log.rewritten_bytes),
            ("aof_pending_rewrite", &0),
            ("aof_buffer_length", &node.keyspace.journal().backlog_bytes()),
            ("aof_pending_bio_fsync", &u8::from(log.is_syncing)),
            ("aof_delayed_fsync", &log.delays),
            ("aof_syncs", &log.syncs),
            ("aof_synced_frames", &log.frames),
        ]);
    }
}

fn loading(report: &mut Report) {
    let figures = &report.node.durability.loading;
    let figure = |figure: &AtomicU64| figure.load(Ordering::Relaxed);
    let (total, loaded) = (figure(&figures.bytes_total), figure(&figures.bytes_loaded));
    let percent = 100.0 * loaded as f64 / total.max(1) as f64;
    let started = figure(&figures.started_seconds);
    let now = u64::try_from(report.node.clock.now().seconds()).unwrap_or(0);
    // COMPAT: a second is left as long as nothing is known.
    let left = match loaded {
        0 => 1,
        _ => now.saturating_sub(started) * total.saturating_sub(loaded) / loaded,
    };
    report.lines(&[
        ("loading_start_time", &started),
        ("loading_total_bytes", &total),
        ("loading_rdb_used_mem", &figure(&figures.saved_memory_bytes)),
        ("loading_loaded_bytes", &loaded),
        ("loading_loaded_perc", &format!("{percent:.2}")),
        ("loading_eta_seconds", &left),
    ]);
}

/// DIFFERS: counted when asked, and shown only by its name.
pub(super) fn key_sizes(report: &mut Report) {
    let lines = report.sizes.take().map(|sizes| sizes.lines());
    lines.iter().flatten().for_each(|(name, value)| report.line(name, value));
}

pub(super) fn keyspace(report: &mut Report) {
    let keyspace = &report.node.keyspace;
    for (db, counts) in std::mem::take(&mut report.counts).into_iter().enumerate() {
        let DbCounts { keys, expires, volatile } = counts;
        if keys == 0 {
            continue;
        }
        let ttl_ms = keyspace.mean_ttl_ms(db, report.node.clock.now());
        // No field more: there are exporters which read a line of five as one of no keys.
        let figures =
            format!("keys={keys},expires={expires},avg_ttl={ttl_ms},subexpiry={volatile}");
        report.line(&format!("db{db}"), figures);
    }
}
