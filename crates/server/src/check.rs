//! `--check-config`, where a file meets the machine: what its lines ask for and can't be opened.

use crate::{listen, tls};
use russet_commands::node::acl::acl_file_obstacle;
use russet_commands::node::config::{CheckReport, Config, Directive};
use std::fs::OpenOptions;
use std::os::unix::net::SocketAddr;
use std::path::{Path, PathBuf};

/// Refuses the lines without which the server would start. Nothing is made or left behind. What
/// files name is relative to `dir`, so the process goes there.
pub fn check_machine(report: &mut CheckReport) {
    let Some(config) = report.config() else { return };
    let moved = std::env::set_current_dir(config.string(Directive::Dir));
    let checks: [(Directive, Option<String>); 9] = [
        (Directive::Dir, moved.err().map(|error| error.to_string())),
        (Directive::LogFile, log_obstacle(&config)),
        (Directive::UnixSocket, socket_obstacle(&config)),
        (Directive::UnixSocketGroup, group_obstacle(&config)),
        (Directive::Bind, listen::address_obstacle(&config)),
        (Directive::MetricsPort, port_obstacle(&config, Directive::MetricsPort)),
        (Directive::TlsPort, port_obstacle(&config, Directive::TlsPort).or(tls_obstacle(&config))),
        (Directive::TlsCluster, tls::client_config(&config).err()),
        (Directive::AclFile, acl_file_obstacle(&config)),
    ];
    for (directive, obstacle) in checks {
        if let Some(reason) = obstacle {
            report.refuse(directive, reason);
        }
    }
}

/// Whether another directive has this one's port.
fn port_obstacle(config: &Config, directive: Directive) -> Option<String> {
    let port = config.int(directive);
    let mut others = [Directive::Port, Directive::TlsPort].into_iter();
    let other = others.find(|other| *other != directive && config.int(*other) == port)?;
    (port != 0).then(|| format!("{} is {port} too", other.name()))
}

fn tls_obstacle(config: &Config) -> Option<String> {
    (config.int(Directive::TlsPort) != 0).then(|| tls::server_config(config).err()).flatten()
}

fn log_obstacle(config: &Config) -> Option<String> {
    let path = PathBuf::from(config.string(Directive::LogFile));
    if path.as_os_str().is_empty() {
        return None;
    }
    match path.exists() {
        true => OpenOptions::new().append(true).open(path).err().map(|error| error.to_string()),
        false => directory_obstacle(&path),
    }
}

fn socket_obstacle(config: &Config) -> Option<String> {
    let path = config.string(Directive::UnixSocket);
    if path.is_empty() {
        return None;
    }
    if let Err(error) = SocketAddr::from_pathname(&path) {
        return Some(error.to_string());
    }
    directory_obstacle(Path::new(&path))
}

/// Without a socket nobody asks for its group.
fn group_obstacle(config: &Config) -> Option<String> {
    let has_socket = !config.string(Directive::UnixSocket).is_empty();
    let group = has_socket.then(|| listen::socket_group(config))?;
    group.err().map(|error| error.to_string())
}

/// Why no file can be made under this path.
fn directory_obstacle(path: &Path) -> Option<String> {
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    match std::fs::metadata(parent) {
        Ok(found) if found.is_dir() => None,
        Ok(_) => Some(format!("{} is not a directory", parent.display())),
        Err(error) => Some(format!("{}: {error}", parent.display())),
    }
}
