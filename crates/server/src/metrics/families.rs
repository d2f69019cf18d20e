//! The metrics of redis_exporter, under its names and labels, so that dashboards and alerts which
//! were made for it work: INFO's figures, commands, errors, databases, latencies.

use super::page::{MetricKind, Page};
use MetricKind::{Counter, Gauge};
use russet_catalog::Command;
use russet_commands::node::Node;
use russet_commands::node::config::Directive;
use russet_commands::node::stats::CommandReport;
use std::collections::HashMap;

/// How a figure of INFO becomes a value.
#[derive(Clone, Copy)]
enum As {
    Number,
    /// `ok` is 1, anything else 0.
    Status,
    /// Microseconds, shown as seconds.
    Micros,
}

/// A field of INFO, its metric, and what that is.
const FIELDS: &[(&str, &str, MetricKind, As)] = &[
    ("uptime_in_seconds", "redis_uptime_in_seconds", Gauge, As::Number),
    ("process_id", "redis_process_id", Gauge, As::Number),
    ("io_threads_active", "redis_io_threads_active", Gauge, As::Number),
    ("connected_clients", "redis_connected_clients", Gauge, As::Number),
    ("cluster_connections", "redis_cluster_connections", Gauge, As::Number),
    (
        "client_recent_max_input_buffer",
        "redis_client_recent_max_input_buffer_bytes",
        Gauge,
        As::Number,
    ),
    (
        "client_recent_max_output_buffer",
        "redis_client_recent_max_output_buffer_bytes",
        Gauge,
        As::Number,
    ),
    ("blocked_clients", "redis_blocked_clients", Gauge, As::Number),
    ("tracking_clients", "redis_tracking_clients", Gauge, As::Number),
    ("pubsub_clients", "redis_pubsub_clients", Gauge, As::Number),
    ("watching_clients", "redis_watching_clients", Gauge, As::Number),
    ("total_watched_keys", "redis_total_watched_keys", Gauge, As::Number),
    ("total_blocking_keys", "redis_total_blocking_keys", Gauge, As::Number),
    ("clients_in_timeout_table", "redis_clients_in_timeout_table", Gauge, As::Number),
    ("allocator_active", "redis_allocator_active_bytes", Gauge, As::Number),
    ("allocator_allocated", "redis_allocator_allocated_bytes", Gauge, As::Number),
    ("allocator_resident", "redis_allocator_resident_bytes", Gauge, As::Number),
    ("allocator_frag_ratio", "redis_allocator_frag_ratio", Gauge, As::Number),
    ("allocator_frag_bytes", "redis_allocator_frag_bytes", Gauge, As::Number),
    ("allocator_rss_ratio", "redis_allocator_rss_ratio", Gauge, As::Number),
    ("allocator_rss_bytes", "redis_allocator_rss_bytes", Gauge, As::Number),
    ("used_memory", "redis_memory_used_bytes", Gauge, As::Number),
    ("used_memory_rss", "redis_memory_used_rss_bytes", Gauge, As::Number),
    ("used_memory_peak", "redis_memory_used_peak_bytes", Gauge, As::Number),
    ("used_memory_lua", "redis_memory_used_lua_bytes", Gauge, As::Number),
    ("used_memory_vm_eval", "redis_memory_used_vm_eval_bytes", Gauge, As::Number),
    ("used_memory_scripts_eval", "redis_memory_used_scripts_eval_bytes", Gauge, As::Number),
    ("used_memory_vm_functions", "redis_memory_used_vm_functions", Gauge, As::Number),
    ("used_memory_vm_total", "redis_memory_used_vm_total", Gauge, As::Number),
    ("used_memory_functions", "redis_memory_used_functions", Gauge, As::Number),
    ("used_memory_scripts", "redis_memory_used_scripts_bytes", Gauge, As::Number),
    ("used_memory_overhead", "redis_memory_used_overhead_bytes", Gauge, As::Number),
    ("used_memory_startup", "redis_memory_used_startup_bytes", Gauge, As::Number),
    ("used_memory_dataset", "redis_memory_used_dataset_bytes", Gauge, As::Number),
    ("number_of_cached_scripts", "redis_number_of_cached_scripts", Gauge, As::Number),
    ("number_of_functions", "redis_number_of_functions", Gauge, As::Number),
    ("number_of_libraries", "redis_number_of_libraries", Gauge, As::Number),
    ("maxmemory", "redis_memory_max_bytes", Gauge, As::Number),
    ("total_system_memory", "redis_total_system_memory_bytes", Gauge, As::Number),
    ("mem_fragmentation_ratio", "redis_mem_fragmentation_ratio", Gauge, As::Number),
    ("mem_fragmentation_bytes", "redis_mem_fragmentation_bytes", Gauge, As::Number),
    ("mem_clients_slaves", "redis_mem_clients_slaves", Gauge, As::Number),
    ("mem_clients_normal", "redis_mem_clients_normal", Gauge, As::Number),
    ("mem_not_counted_for_evict", "redis_mem_not_counted_for_eviction_bytes", Gauge, As::Number),
    (
        "mem_total_replication_buffers",
        "redis_mem_total_replication_buffers_bytes",
        Gauge,
        As::Number,
    ),
    ("active_defrag_running", "redis_active_defrag_running", Gauge, As::Number),
    ("lazyfree_pending_objects", "redis_lazyfree_pending_objects", Gauge, As::Number),
    ("lazyfreed_objects", "redis_lazyfreed_objects", Gauge, As::Number),
    ("loading", "redis_loading_dump_file", Gauge, As::Number),
    ("async_loading", "redis_async_loading", Gauge, As::Number),
    ("rdb_changes_since_last_save", "redis_rdb_changes_since_last_save", Gauge, As::Number),
    ("rdb_bgsave_in_progress", "redis_rdb_bgsave_in_progress", Gauge, As::Number),
    ("rdb_last_save_time", "redis_rdb_last_save_timestamp_seconds", Gauge, As::Number),
    ("rdb_last_bgsave_status", "redis_rdb_last_bgsave_status", Gauge, As::Status),
    ("rdb_last_bgsave_time_sec", "redis_rdb_last_bgsave_duration_sec", Gauge, As::Number),
    ("rdb_current_bgsave_time_sec", "redis_rdb_current_bgsave_duration_sec", Gauge, As::Number),
    ("rdb_saves", "redis_rdb_saves_total", Counter, As::Number),
    ("rdb_last_cow_size", "redis_rdb_last_cow_size_bytes", Gauge, As::Number),
    ("rdb_last_load_keys_expired", "redis_rdb_last_load_expired_keys", Gauge, As::Number),
    ("rdb_last_load_keys_loaded", "redis_rdb_last_load_loaded_keys", Gauge, As::Number),
    ("aof_enabled", "redis_aof_enabled", Gauge, As::Number),
    ("aof_rewrite_in_progress", "redis_aof_rewrite_in_progress", Gauge, As::Number),
    ("aof_rewrite_scheduled", "redis_aof_rewrite_scheduled", Gauge, As::Number),
    ("aof_last_rewrite_time_sec", "redis_aof_last_rewrite_duration_sec", Gauge, As::Number),
    ("aof_current_rewrite_time_sec", "redis_aof_current_rewrite_duration_sec", Gauge, As::Number),
    ("aof_last_bgrewrite_status", "redis_aof_last_bgrewrite_status", Gauge, As::Status),
    ("aof_last_write_status", "redis_aof_last_write_status", Gauge, As::Status),
    ("aof_last_cow_size", "redis_aof_last_cow_size_bytes", Gauge, As::Number),
    ("aof_current_size", "redis_aof_current_size_bytes", Gauge, As::Number),
    ("aof_base_size", "redis_aof_base_size_bytes", Gauge, As::Number),
    ("aof_pending_rewrite", "redis_aof_pending_rewrite", Gauge, As::Number),
    ("aof_buffer_length", "redis_aof_buffer_length", Gauge, As::Number),
    ("aof_pending_bio_fsync", "redis_aof_pending_bio_fsync", Gauge, As::Number),
    ("aof_delayed_fsync", "redis_aof_delayed_fsync", Gauge, As::Number),
    ("module_fork_in_progress", "redis_module_fork_in_progress", Gauge, As::Number),
    ("module_fork_last_cow_size", "redis_module_fork_last_cow_size", Gauge, As::Number),
    ("total_connections_received", "redis_connections_received_total", Counter, As::Number),
    ("total_commands_processed", "redis_commands_processed_total", Counter, As::Number),
    ("instantaneous_ops_per_sec", "redis_instantaneous_ops_per_sec", Gauge, As::Number),
    ("total_net_input_bytes", "redis_net_input_bytes_total", Counter, As::Number),
    ("total_net_output_bytes", "redis_net_output_bytes_total", Counter, As::Number),
    ("rejected_connections", "redis_rejected_connections_total", Counter, As::Number),
    ("sync_full", "redis_replica_resyncs_full", Gauge, As::Number),
    ("sync_partial_ok", "redis_replica_partial_resync_accepted", Gauge, As::Number),
    ("sync_partial_err", "redis_replica_partial_resync_denied", Gauge, As::Number),
    ("expired_keys", "redis_expired_keys_total", Counter, As::Number),
    ("expired_subkeys", "redis_expired_subkeys_total", Counter, As::Number),
    ("expired_stale_perc", "redis_expired_stale_percentage", Gauge, As::Number),
    ("expired_time_cap_reached_count", "redis_expired_time_cap_reached_total", Gauge, As::Number),
    ("expire_cycle_cpu_milliseconds", "redis_expire_cycle_cpu_time_ms_total", Counter, As::Number),
    ("evicted_keys", "redis_evicted_keys_total", Counter, As::Number),
    ("evicted_clients", "redis_evicted_clients_total", Counter, As::Number),
    ("evicted_scripts", "redis_evicted_scripts_total", Counter, As::Number),
    ("keyspace_hits", "redis_keyspace_hits_total", Counter, As::Number),
    ("keyspace_misses", "redis_keyspace_misses_total", Counter, As::Number),
    ("pubsub_channels", "redis_pubsub_channels", Gauge, As::Number),
    ("pubsub_patterns", "redis_pubsub_patterns", Gauge, As::Number),
    ("pubsubshard_channels", "redis_pubsubshard_channels", Gauge, As::Number),
    ("latest_fork_usec", "redis_latest_fork_seconds", Gauge, As::Micros),
    ("migrate_cached_sockets", "redis_migrate_cached_sockets_total", Gauge, As::Number),
    ("slave_expires_tracked_keys", "redis_slave_expires_tracked_keys", Gauge, As::Number),
    ("active_defrag_hits", "redis_defrag_hits", Gauge, As::Number),
    ("active_defrag_misses", "redis_defrag_misses", Gauge, As::Number),
    ("active_defrag_key_hits", "redis_defrag_key_hits", Gauge, As::Number),
    ("active_defrag_key_misses", "redis_defrag_key_misses", Gauge, As::Number),
    ("tracking_total_keys", "redis_tracking_total_keys", Gauge, As::Number),
    ("tracking_total_items", "redis_tracking_total_items", Gauge, As::Number),
    ("tracking_total_prefixes", "redis_tracking_total_prefixes", Gauge, As::Number),
    ("unexpected_error_replies", "redis_unexpected_error_replies", Counter, As::Number),
    ("total_error_replies", "redis_total_error_replies", Counter, As::Number),
    ("dump_payload_sanitizations", "redis_dump_payload_sanitizations", Counter, As::Number),
    ("total_reads_processed", "redis_total_reads_processed", Counter, As::Number),
    ("total_writes_processed", "redis_total_writes_processed", Counter, As::Number),
    ("io_threaded_reads_processed", "redis_io_threaded_reads_processed", Counter, As::Number),
    ("io_threaded_writes_processed", "redis_io_threaded_writes_processed", Counter, As::Number),
    ("acl_access_denied_auth", "redis_acl_access_denied_auth_total", Counter, As::Number),
    ("acl_access_denied_cmd", "redis_acl_access_denied_cmd_total", Counter, As::Number),
    ("acl_access_denied_key", "redis_acl_access_denied_key_total", Counter, As::Number),
    ("acl_access_denied_channel", "redis_acl_access_denied_channel_total", Counter, As::Number),
    ("connected_slaves", "redis_connected_slaves", Gauge, As::Number),
    ("master_repl_offset", "redis_master_repl_offset", Gauge, As::Number),
    ("second_repl_offset", "redis_second_repl_offset", Gauge, As::Number),
    ("repl_backlog_active", "redis_repl_backlog_is_active", Gauge, As::Number),
    ("repl_backlog_size", "redis_replication_backlog_bytes", Gauge, As::Number),
    ("repl_backlog_first_byte_offset", "redis_repl_backlog_first_byte_offset", Gauge, As::Number),
    ("repl_backlog_histlen", "redis_repl_backlog_history_bytes", Gauge, As::Number),
    ("used_cpu_sys", "redis_cpu_sys_seconds_total", Counter, As::Number),
    ("used_cpu_user", "redis_cpu_user_seconds_total", Counter, As::Number),
    ("used_cpu_sys_children", "redis_cpu_sys_children_seconds_total", Counter, As::Number),
    ("used_cpu_user_children", "redis_cpu_user_children_seconds_total", Counter, As::Number),
    ("used_cpu_sys_main_thread", "redis_cpu_sys_main_thread_seconds_total", Counter, As::Number),
    ("used_cpu_user_main_thread", "redis_cpu_user_main_thread_seconds_total", Counter, As::Number),
    ("cluster_enabled", "redis_cluster_enabled", Gauge, As::Number),
];

/// Fields of INFO that `redis_instance_info` has as labels.
const INSTANCE: &[&str] = &[
    "maxmemory_policy",
    "os",
    "process_id",
    "redis_build_id",
    "redis_mode",
    "redis_version",
    "role",
    "run_id",
    "tcp_port",
];

const MICROS_PER_SECOND: f64 = 1e6;

pub fn write(page: &mut Page, node: &Node) {
    page.single("redis_up", Gauge, ("1: the server answers.", 1));
    let text = node.info_text();
    let fields: HashMap<&str, &str> =
        text.lines().filter_map(|line| line.trim_end().split_once(':')).collect();
    let of = |name: &str| fields.get(name).copied().unwrap_or("");
    for (field, name, kind, read) in FIELDS {
        let Some(value) = fields.get(field) else { continue };
        let value = match read {
            As::Number => value.parse().unwrap_or(0.0),
            As::Status => f64::from(u8::from(*value == "ok")),
            As::Micros => value.parse().unwrap_or(0.0) / MICROS_PER_SECOND,
        };
        page.single(name, *kind, (format!("{field} of INFO.").as_str(), value));
    }
    let labels: Vec<(&str, &str)> = INSTANCE.iter().map(|name| (*name, of(name))).collect();
    page.family("redis_instance_info", Gauge, "What the server is.");
    page.sample("redis_instance_info", &labels, 1);
    let started = node.started_ms / 1000;
    page.single("redis_start_time_seconds", Gauge, ("When the server started.", started));
    settings(page, node);
    databases(page, node, &fields);
    errors(page, &fields);
    slow_log(page, node);
    commands(page, node);
}

fn settings(page: &mut Page, node: &Node) {
    let clients = node.config.int(Directive::MaxClients);
    let memory = node.config.memory(Directive::MaxMemory);
    let threads = node.config.int(Directive::IoThreads);
    page.single("redis_config_maxclients", Gauge, ("maxclients.", clients));
    page.single("redis_config_maxmemory", Gauge, ("maxmemory.", memory));
    page.single("redis_config_io_threads", Gauge, ("io-threads.", threads));
}

/// Every database has its counts, empty ones too.
fn databases(page: &mut Page, node: &Node, fields: &HashMap<&str, &str>) {
    let mut rows: Vec<(String, [f64; 3])> = Vec::new();
    for db in 0..node.keyspace.databases() {
        let name = format!("db{db}");
        let line = fields.get(name.as_str()).copied().unwrap_or("");
        let part = |wanted: &str| {
            let mut parts = line.split(',').filter_map(|part| part.split_once('='));
            let found = parts.find(|(known, _)| *known == wanted);
            found.and_then(|(_, value)| value.parse().ok()).unwrap_or(0.0)
        };
        rows.push((name.clone(), [part("keys"), part("expires"), part("avg_ttl") / 1000.0]));
    }
    let families = [
        ("redis_db_keys", "Keys of a database."),
        ("redis_db_keys_expiring", "Keys of a database that expire."),
        ("redis_db_avg_ttl_seconds", "Seconds that keys which expire have left, in the mean."),
    ];
    for (at, (name, help)) in families.into_iter().enumerate() {
        page.family(name, Gauge, help);
        for (db, figures) in &rows {
            // As the exporter: only where something expires.
            if at < 2 || figures[2] > 0.0 {
                page.sample(name, &[("db", db.as_str())], figures[at]);
            }
        }
    }
}

fn errors(page: &mut Page, fields: &HashMap<&str, &str>) {
    let mut counts: Vec<(&str, &str)> = fields
        .iter()
        .filter_map(|(name, value)| {
            Some((name.strip_prefix("errorstat_")?, value.strip_prefix("count=")?))
        })
        .collect();
    counts.sort_unstable();
    page.family("redis_errors_total", Counter, "Error replies by their first word.");
    for (code, count) in counts {
        page.sample("redis_errors_total", &[("err", code)], count);
    }
}

fn slow_log(page: &mut Page, node: &Node) {
    let newest = node.slowlog.newest(1);
    let (id, micros) = newest.first().map_or((0, 0), |entry| (entry.id, entry.cost));
    let seconds = micros as f64 / MICROS_PER_SECOND;
    page.single("redis_slowlog_length", Gauge, ("Entries of the slow log.", node.slowlog.len()));
    page.single("redis_slowlog_last_id", Gauge, ("Number of its newest entry.", id));
    page.single(
        "redis_last_slow_execution_duration_seconds",
        Gauge,
        ("What the newest entry of the slow log took.", seconds),
    );
}

fn commands(page: &mut Page, node: &Node) {
    let workers = node.stats.workers();
    let was_used = |command: &&Command| {
        workers.iter().any(|worker| {
            let counters = worker.of(**command);
            [&counters.calls, &counters.rejected, &counters.failed].iter().any(|c| c.read() > 0)
        })
    };
    let reports: Vec<CommandReport> =
        Command::ALL.iter().filter(was_used).map(|command| node.stats.report(*command)).collect();
    type Figure = fn(&CommandReport) -> f64;
    let families: [(&str, &str, Figure); 4] = [
        ("redis_commands_total", "Calls by command.", |it| it.calls as f64),
        ("redis_commands_duration_seconds_total", "Time in calls, by command.", |it| {
            it.micros as f64 / MICROS_PER_SECOND
        }),
        ("redis_commands_rejected_calls_total", "Calls that were refused before they ran.", |it| {
            it.rejected as f64
        }),
        ("redis_commands_failed_calls_total", "Calls that ran and failed.", |it| it.failed as f64),
    ];
    for (name, help, figure) in families {
        page.family(name, Counter, help);
        for report in &reports {
            page.sample(name, &[("cmd", report.command.full_name())], figure(report));
        }
    }
    latencies(page, &reports);
}

/// LATENCY HISTOGRAM's data: how many calls took up to so many microseconds.
fn latencies(page: &mut Page, reports: &[CommandReport]) {
    const NAME: &str = "redis_commands_latencies_usec";
    const BUCKET: &str = "redis_commands_latencies_usec_bucket";
    page.family(NAME, MetricKind::Histogram, "Microseconds of calls, by command.");
    for report in reports {
        let name = report.command.full_name();
        let total: u64 = report.histogram.iter().sum();
        let mut seen = 0;
        for (bucket, count) in report.histogram.iter().enumerate() {
            seen += count;
            // Buckets before the first call and behind the last one say nothing more.
            if seen > 0 {
                let end = (1u64 << bucket).to_string();
                page.sample(BUCKET, &[("cmd", name), ("le", end.as_str())], seen);
            }
            if seen == total {
                break;
            }
        }
        page.sample(BUCKET, &[("cmd", name), ("le", "+Inf")], total);
        let label = [("cmd", name)];
        page.sample("redis_commands_latencies_usec_sum", &label, report.micros);
        page.sample("redis_commands_latencies_usec_count", &label, total);
    }
    if !page.is_open() {
        percentiles(page, reports);
    }
}

/// COMPAT: the exporter's quantiles are percentages, which OpenMetrics does not allow.
fn percentiles(page: &mut Page, reports: &[CommandReport]) {
    const NAME: &str = "redis_latency_percentiles_usec";
    page.family(NAME, MetricKind::Summary, "Percentiles of the microseconds of calls, by command.");
    for report in reports {
        let name = report.command.full_name();
        let total: u64 = report.histogram.iter().sum();
        for (quantile, share) in [("50", 0.5), ("99", 0.99), ("99.9", 0.999)] {
            let wanted = ((total as f64 * share).ceil() as u64).max(1);
            let mut seen = 0;
            let bucket = report.histogram.iter().position(|count| {
                seen += count;
                seen >= wanted
            });
            let end = bucket.map_or(0, |bucket| 1u64 << bucket);
            page.sample(NAME, &[("cmd", name), ("quantile", quantile)], end);
        }
        let label = [("cmd", name)];
        page.sample("redis_latency_percentiles_usec_sum", &label, report.micros);
        page.sample("redis_latency_percentiles_usec_count", &label, total);
    }
}
