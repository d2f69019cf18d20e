//! INFO server, tls and cpu.

use super::Report;
use crate::node::config::Directive;
use crate::node::{CertificateFacts, CertificateReport};
use std::sync::atomic::Ordering;

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
    let port = match config.int(Directive::Port) {
        0 => config.int(Directive::TlsPort),
        port => port,
    };
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
        ("process_supervised", &process.supervisor.unwrap_or("no")),
        ("run_id", &node.run_id),
        ("tcp_port", &port),
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

/// The certificates, and how many clients have agreed on keys with us or have not.
pub(super) fn tls(report: &mut Report) {
    let node = report.node;
    let CertificateReport { server, client, authority } = node.host.certificates();
    let now = node.clock.now().seconds();
    for (name, facts) in [("server", server), ("client", client), ("ca", authority)] {
        let (serial, seconds) = match facts {
            Some(CertificateFacts { serial, expires_at }) => (serial, (expires_at - now).max(0)),
            None => ("none".to_owned(), 0),
        };
        report.line(&format!("tls_{name}_cert_serial"), serial);
        report.line(&format!("tls_{name}_cert_expires_in_seconds"), seconds);
    }
    let stats = &node.stats;
    report.lines(&[
        ("tls_handshakes", &stats.tls_handshakes.load(Ordering::Relaxed)),
        ("tls_handshakes_failed", &stats.tls_handshakes_failed.load(Ordering::Relaxed)),
    ]);
}

fn listeners(report: &mut Report) {
    let config = &report.node.config;
    let mut lines = Vec::new();
    let binds = config.list(Directive::Bind);
    let binds: String = binds.iter().map(|address| format!("bind={address},")).collect();
    for (name, directive) in [("tcp", Directive::Port), ("tls", Directive::TlsPort)] {
        let port = config.int(directive);
        if port != 0 {
            lines.push(format!("name={name},{binds}port={port}"));
        }
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
