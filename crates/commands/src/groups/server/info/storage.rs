//! INFO memory, persistence and keyspace.

use super::Report;
use crate::groups::server::memory::MemoryReport;
use crate::node::config::Directive;
use russet_base::num::human_bytes;
use std::sync::atomic::Ordering;

pub(super) fn memory(report: &mut Report) {
    used(report);
    scripts(report);
    let (node, allocator) = (report.node, report.allocator);
    let memory = MemoryReport::of(node);
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
        ("mem_aof_buffer", &0),
        ("mem_allocator", &report.process.allocator.clone()),
        ("mem_overhead_db_hashtable_rehashing", &0),
        ("active_defrag_running", &0),
        ("lazyfree_pending_objects", &pending),
        ("lazyfreed_objects", &freed),
    ]);
}

fn used(report: &mut Report) {
    let (node, allocator) = (report.node, report.allocator);
    let memory = MemoryReport::of(node);
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
    let (cached, _) = scripts.cached();
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

/// There is no persistence yet: nothing is ever saved or loaded.
pub(super) fn persistence(report: &mut Report) {
    let node = report.node;
    report.lines(&[
        ("loading", &0),
        ("async_loading", &0),
        ("current_cow_peak", &0),
        ("current_cow_size", &0),
        ("current_cow_size_age", &0),
        ("current_fork_perc", &"0.00"),
        ("current_save_keys_processed", &0),
        ("current_save_keys_total", &0),
        ("rdb_changes_since_last_save", &node.stats.sum(|worker| worker.dirty.read())),
        ("rdb_bgsave_in_progress", &0),
        ("rdb_last_save_time", &(node.started_ms / 1000)),
        ("rdb_last_bgsave_status", &"ok"),
        ("rdb_last_bgsave_time_sec", &-1),
        ("rdb_current_bgsave_time_sec", &-1),
        ("rdb_saves", &0),
        ("rdb_last_cow_size", &0),
        ("rdb_last_load_keys_expired", &0),
        ("rdb_last_load_keys_loaded", &0),
        ("aof_enabled", &0),
        ("aof_rewrite_in_progress", &0),
        ("aof_rewrite_scheduled", &0),
        ("aof_last_rewrite_time_sec", &-1),
        ("aof_current_rewrite_time_sec", &-1),
        ("aof_last_bgrewrite_status", &"ok"),
        ("aof_rewrites", &0),
        ("aof_rewrites_consecutive_failures", &0),
        ("aof_last_write_status", &"ok"),
        ("aof_last_cow_size", &0),
        ("module_fork_in_progress", &0),
        ("module_fork_last_cow_size", &0),
    ]);
}

pub(super) fn keyspace(report: &mut Report) {
    let keyspace = &report.node.keyspace;
    for db in 0..keyspace.databases() {
        let (mut keys, mut expires, mut volatile) = (0, 0, 0);
        for gauges in keyspace.gauges() {
            keys += gauges.keys[db].load(Ordering::Relaxed);
            expires += gauges.expires[db].load(Ordering::Relaxed);
            volatile += gauges.volatile[db].load(Ordering::Relaxed);
        }
        if keys > 0 {
            let ttl_ms = keyspace.mean_ttl_ms(db, report.node.clock.now());
            // No field more: there are exporters which read a line of five as one of no keys.
            let figures =
                format!("keys={keys},expires={expires},avg_ttl={ttl_ms},subexpiry={volatile}");
            report.line(&format!("db{db}"), figures);
        }
    }
}
