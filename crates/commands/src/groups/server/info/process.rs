//! INFO server and cpu.

use super::Report;
use crate::node::config::Directive;

const SECONDS_PER_DAY: i64 = 86_400;
/// The access clock that entries are stamped with: seconds, 24 bits.
const ACCESS_CLOCK_MASK: i64 = 0x00ff_ffff;

pub(super) fn server(report: &mut Report) {
    let node = report.node;
    let config = &node.config;
    let now = node.clock.now();
    let uptime_seconds = (now.0 - node.started_ms).max(0) / 1000;
    let process = report.process.clone();
    let hz = config.int(Directive::Hz);
    let file = config.file().map(|path| path.display().to_string()).unwrap_or_default();
    report.lines(&[
        ("redis_version", &config.string(Directive::RedisVersion)),
        ("server_name", &"russet"),
        ("russet_version", &env!("CARGO_PKG_VERSION")),
        ("redis_git_sha1", &"00000000"),
        ("redis_git_dirty", &0),
        ("redis_build_id", &"0"),
        ("redis_mode", &"standalone"),
        ("server_mode", &"standalone"),
        ("os", &process.os),
        ("arch_bits", &usize::BITS),
        ("monotonic_clock", &"POSIX clock_gettime"),
        ("multiplexing_api", &"epoll"),
        ("atomicvar_api", &"rust-std"),
        ("gcc_version", &"0.0.0"),
        ("process_id", &process.id),
        ("process_supervised", &config.choice(Directive::Supervised)),
        ("run_id", &node.run_id),
        ("tcp_port", &config.int(Directive::Port)),
        ("server_time_usec", &node.clock.now_micros()),
        ("uptime_in_seconds", &uptime_seconds),
        ("uptime_in_days", &(uptime_seconds / SECONDS_PER_DAY)),
        ("hz", &hz),
        ("configured_hz", &hz),
        ("lru_clock", &(now.seconds() & ACCESS_CLOCK_MASK)),
        ("executable", &process.executable),
        ("config_file", &file),
        ("io_threads_active", &0),
        ("event_loop_threads", &node.host.threads()),
        ("keyspace_shards", &node.keyspace.shards()),
        ("availability_zone", &config.string(Directive::AvailabilityZone)),
    ]);
    listeners(report);
}

fn listeners(report: &mut Report) {
    let config = &report.node.config;
    let mut lines = Vec::new();
    let port = config.int(Directive::Port);
    if port != 0 {
        let binds = config.list(Directive::Bind);
        let binds: String = binds.iter().map(|address| format!("bind={address},")).collect();
        lines.push(format!("name=tcp,{binds}port={port}"));
    }
    let path = config.string(Directive::UnixSocket);
    if !path.is_empty() {
        lines.push(format!("name=unix,bind={path}"));
    }
    for (at, line) in lines.iter().enumerate() {
        report.line(&format!("listener{at}"), line);
    }
}

pub(super) fn cpu(report: &mut Report) {
    let process = report.process.clone();
    let figures = [
        ("", process.cpu),
        ("_children", process.children_cpu),
        ("_main_thread", process.command_threads_cpu),
    ];
    for (suffix, times) in figures {
        report.line(&format!("used_cpu_sys{suffix}"), format!("{:.6}", times.system_seconds));
        report.line(&format!("used_cpu_user{suffix}"), format!("{:.6}", times.user_seconds));
    }
}
