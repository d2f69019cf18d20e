//! INFO clients, stats, replication, hotkeys and debug.

use super::Report;
use crate::call::blocking::AwaitedKeys;
use crate::call::pause::PauseKind;
use crate::groups::pubsub::hub::Space;
use crate::node::clients::ClientFlags;
use crate::node::config::Directive;
use crate::node::stats::{Counter, WorkerStats};
use std::sync::atomic::{AtomicU64, Ordering};

fn load(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

pub(super) fn clients(report: &mut Report) {
    let node = report.node;
    let cards = node.clients.all();
    let (mut pubsub, mut watching, mut watched) = (0, 0, 0);
    let (mut tracking, mut input_bytes_max, mut output_bytes_max) = (0, 0, 0);
    for card in &cards {
        let of = |count: &std::sync::atomic::AtomicU32| count.load(Ordering::Relaxed);
        let listens = [&card.subscriptions, &card.patterns, &card.shard_subscriptions];
        pubsub += u64::from(listens.iter().any(|count| of(count) > 0));
        watching += u64::from(of(&card.watching) > 0);
        watched += u64::from(of(&card.watching));
        tracking += u64::from(card.has_flag(ClientFlags::TRACKING));
        input_bytes_max = input_bytes_max.max(load(&card.query_bytes));
        output_bytes_max = output_bytes_max.max(load(&card.output_bytes));
    }
    let pause = node.pause.state();
    let actions = match pause.map(|(kind, _)| kind) {
        None => "none",
        Some(PauseKind::Write) => "write",
        Some(PauseKind::All) => "all",
    };
    let left_ms = pause.map_or(0, |(_, end)| end.ms_since(node.clock.now()).max(0));
    // Who is held back by CLIENT PAUSE counts as blocked, too.
    let held = cards.iter().filter(|card| card.has_flag(ClientFlags::PAUSED)).count() as u64;
    let blocked = load(&node.stats.blocked_clients) + held;
    let awaited = AwaitedKeys::of(&cards);
    report.lines(&[
        ("connected_clients", &cards.len()),
        ("cluster_connections", &0),
        ("maxclients", &node.config.int(Directive::MaxClients)),
        ("client_recent_max_input_buffer", &input_bytes_max),
        ("client_recent_max_output_buffer", &output_bytes_max),
        ("blocked_clients", &blocked),
        ("tracking_clients", &tracking),
        ("pubsub_clients", &pubsub),
        ("watching_clients", &watching),
        ("clients_in_timeout_table", &0),
        ("total_watched_keys", &watched),
        ("total_blocking_keys", &awaited.keys),
        ("total_blocking_keys_on_nokey", &awaited.keys_whose_loss_ends_a_wait),
        ("paused_reason", &(if pause.is_some() { "client_pause" } else { "none" })),
        ("paused_actions", &actions),
        ("paused_timeout_milliseconds", &left_ms),
    ]);
}

pub(super) fn stats(report: &mut Report) {
    traffic(report);
    keys(report);
    let stats = &report.node.stats;
    let reads = stats.sum(|worker| worker.reads.read());
    let writes = stats.sum(|worker| worker.writes.read());
    let (rates, denied) = (stats.rates(), &report.node.acl.denied);
    let command_micros = stats.sum(|worker| worker.commands.iter().map(|c| c.micros.read()).sum());
    report.lines(&[
        ("unexpected_error_replies", &0),
        ("total_error_replies", &load(&stats.error_replies)),
        ("dump_payload_sanitizations", &0),
        ("total_reads_processed", &reads),
        ("total_writes_processed", &writes),
        ("io_threaded_reads_processed", &0),
        ("io_threaded_writes_processed", &0),
        ("client_query_buffer_limit_disconnections", &load(&stats.query_limit_disconnections)),
        ("client_output_buffer_limit_disconnections", &load(&stats.output_limit_disconnections)),
        ("reply_buffer_shrinks", &0),
        ("reply_buffer_expands", &0),
        ("eventloop_cycles", &stats.sum(|worker| worker.rounds.read())),
        ("eventloop_duration_sum", &stats.sum(|worker| worker.round_micros.read())),
        ("eventloop_duration_cmd_sum", &command_micros),
        ("instantaneous_eventloop_cycles_per_sec", &rates.rounds),
        ("instantaneous_eventloop_duration_usec", &rates.micros_per_round()),
        ("acl_access_denied_auth", &load(&denied.logins)),
        ("acl_access_denied_cmd", &load(&denied.commands)),
        ("acl_access_denied_key", &load(&denied.keys)),
        ("acl_access_denied_channel", &load(&denied.channels)),
        ("acl_access_denied_tls_cert", &load(&denied.certificates)),
        ("acl_access_denied_db", &load(&denied.databases)),
    ]);
}

fn traffic(report: &mut Report) {
    let stats = &report.node.stats;
    let rates = stats.rates();
    // Kilobytes, as the name has it: of 1024 bytes.
    let kbps = |bytes: u64| format!("{:.2}", bytes as f64 / 1024.0);
    report.lines(&[
        ("total_connections_received", &load(&stats.connections)),
        ("total_commands_processed", &stats.sum(|worker| worker.processed.read())),
        ("instantaneous_ops_per_sec", &rates.commands),
        ("total_net_input_bytes", &stats.sum(|worker| worker.input_bytes.read())),
        ("total_net_output_bytes", &stats.sum(|worker| worker.output_bytes.read())),
        ("total_net_repl_input_bytes", &0),
        ("total_net_repl_output_bytes", &0),
        ("instantaneous_input_kbps", &kbps(rates.input_bytes)),
        ("instantaneous_output_kbps", &kbps(rates.output_bytes)),
        ("instantaneous_input_repl_kbps", &"0.00"),
        ("instantaneous_output_repl_kbps", &"0.00"),
        ("rejected_connections", &load(&stats.rejected_connections)),
        ("sync_full", &0),
        ("sync_partial_ok", &0),
        ("sync_partial_err", &0),
    ]);
}

fn keys(report: &mut Report) {
    let node = report.node;
    let stats = &node.stats;
    let now_micros = node.clock.monotonic_micros();
    let (exceeded_ms, exceeded_now_ms) = node.memory_limit.exceeded_ms(now_micros);
    report.lines(&[
        ("expired_subkeys", &node.expired_fields()),
        ("expired_keys", &node.expired_keys()),
        ("expired_fields", &node.expired_fields()),
        ("expired_stale_perc", &"0.00"),
        ("expired_keys_with_volatile_items_stale_perc", &"0.00"),
        ("expired_time_cap_reached_count", &0),
        ("expire_cycle_cpu_milliseconds", &(load(&stats.housekeeping_micros) / 1000)),
        ("evicted_keys", &load(&stats.evicted_keys)),
        ("evicted_clients", &load(&stats.evicted_clients)),
        ("evicted_scripts", &node.scripts.evicted()),
        ("script_runs_narrow", &stats.sum(|worker| worker.narrow_runs.read())),
        ("script_runs_wide", &stats.sum(|worker| worker.wide_runs.read())),
        ("script_undeclared_keys", &load(&node.scripts.undeclared_keys)),
        ("total_eviction_exceeded_time", &exceeded_ms),
        ("current_eviction_exceeded_time", &exceeded_now_ms),
        ("keyspace_hits", &stats.sum(|worker| worker.hits.read())),
        ("keyspace_misses", &stats.sum(|worker| worker.misses.read())),
        ("pubsub_channels", &node.hub.channels_len(Space::Global)),
        ("pubsub_patterns", &node.hub.patterns_len()),
        ("pubsubshard_channels", &node.hub.channels_len(Space::Shard)),
        ("latest_fork_usec", &0),
        ("total_forks", &0),
        ("migrate_cached_sockets", &0),
        ("slave_expires_tracked_keys", &0),
        ("active_defrag_hits", &0),
        ("active_defrag_misses", &0),
        ("active_defrag_key_hits", &0),
        ("active_defrag_key_misses", &0),
        ("total_active_defrag_time", &0),
        ("current_active_defrag_time", &0),
        ("tracking_total_keys", &node.keyspace.tracked_totals().keys()),
        ("tracking_total_items", &node.keyspace.tracked_totals().readers()),
        ("tracking_total_prefixes", &node.tracking.prefixes_len()),
    ]);
}

pub(super) fn replication(report: &mut Report) {
    let node = report.node;
    report.lines(&[
        ("role", &"master"),
        ("connected_slaves", &0),
        ("replicas_waiting_psync", &0),
        ("master_failover_state", &"no-failover"),
        ("master_replid", &node.replication_id),
        ("master_replid2", &"0".repeat(node.replication_id.len())),
        ("master_repl_offset", &0),
        ("second_repl_offset", &-1),
        ("repl_backlog_active", &0),
        ("repl_backlog_size", &node.config.memory(Directive::ReplBacklogSize)),
        ("repl_backlog_first_byte_offset", &0),
        ("repl_backlog_histlen", &0),
    ]);
}

/// The names of keys are users' data, and only told to who asks for them: HOTKEYS GET.
pub(super) fn hot_keys(report: &mut Report) {
    let (node, config) = (report.node, &report.node.config);
    report.lines(&[
        ("hotkeys_top_k", &config.int(Directive::HotkeysTopK)),
        ("hotkeys_window_seconds", &config.int(Directive::HotkeysWindowSeconds)),
        ("hotkeys_listed", &node.top_keys().map_or(0, |keys| keys.len())),
        ("hotkeys_hottest_qps", &node.hot_keys.hottest_calls_per_second()),
        ("hotkeys_tracking_active", &u8::from(node.is_tracking_hot_keys())),
        ("hotkeys_memory_bytes", &node.hot_keys.memory_bytes()),
    ]);
}

/// COMPAT: figures of Valkey's own event loop, shown only when asked for by name.
pub(super) fn debug(report: &mut Report) {
    let stats = &report.node.stats;
    let most = |figure: fn(&WorkerStats) -> &Counter| {
        stats.workers().iter().map(|worker| figure(worker).read()).max().unwrap_or(0)
    };
    report.lines(&[
        ("eventloop_duration_aof_sum", &0),
        ("eventloop_duration_cron_sum", &load(&stats.housekeeping_micros)),
        ("eventloop_duration_max", &most(|worker| &worker.round_micros_max)),
        ("eventloop_cmd_per_cycle_max", &most(|worker| &worker.round_commands_max)),
    ]);
}
