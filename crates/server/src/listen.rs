//! The listening sockets.

use crate::event_loop::{Fleet, Listener};
use crate::service::RussetService;
use russet_commands::config::{Config, Directive};
use russet_commands::node::Node;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Opens what `bind`, `port` and `unixsocket` ask for. An error says which address it was.
pub fn open(config: &Config) -> Result<Vec<Listener>, String> {
    let mut listeners = Vec::new();
    let port = u16::try_from(config.int(Directive::Port)).unwrap_or(0);
    if port != 0 {
        for word in config.words(Directive::Bind) {
            let (is_optional, address) = parse_address(&word)?;
            match open_tcp(SocketAddr::new(address, port), config) {
                Ok(listener) => listeners.push(listener),
                Err(error) if is_optional && is_unavailable(&error) => {}
                Err(error) => return Err(format!("cannot listen on {address}:{port}: {error}")),
            }
        }
    }
    let path = config.string(Directive::UnixSocket);
    if !path.is_empty() {
        let listener = open_unix(&path, config.int(Directive::UnixSocketPerm) as u32)
            .map_err(|error| format!("cannot listen on {path}: {error}"))?;
        listeners.push(listener);
    }
    Ok(listeners)
}

/// A leading `-` means: skip it if this machine has no such address.
fn parse_address(word: &str) -> Result<(bool, IpAddr), String> {
    let (is_optional, text) = match word.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, word),
    };
    let address = match text {
        "*" => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        "::*" => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        "localhost" => IpAddr::V4(Ipv4Addr::LOCALHOST),
        other => other.parse().map_err(|_| format!("bind: '{word}' is not an address"))?,
    };
    Ok((is_optional, address))
}

fn is_unavailable(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::AddrNotAvailable | io::ErrorKind::Unsupported)
}

fn open_tcp(address: SocketAddr, config: &Config) -> io::Result<Listener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&SockAddr::from(address))?;
    socket.listen(config.int(Directive::TcpBacklog) as i32)?;
    let listener: std::net::TcpListener = socket.into();
    Ok(Listener::Tcp(mio::net::TcpListener::from_std(listener)))
}

fn open_unix(path: &str, permissions: u32) -> io::Result<Listener> {
    // A socket file that an earlier run left behind is in the way; anything else is not ours.
    if std::os::unix::net::UnixStream::connect(path).is_err() && is_socket(path) {
        std::fs::remove_file(path)?;
    }
    let listener = mio::net::UnixListener::bind(path)?;
    if permissions != 0 {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(permissions))?;
    }
    Ok(Listener::Unix(listener, path.to_owned()))
}

fn is_socket(path: &str) -> bool {
    use std::os::unix::fs::FileTypeExt;
    std::fs::symlink_metadata(Path::new(path)).is_ok_and(|file| file.file_type().is_socket())
}

/// CONFIG SET of a directive that concerns sockets.
pub fn apply(
    fleet: &Fleet<RussetService>,
    node: &Node,
    directive: Directive,
) -> Result<(), String> {
    match directive {
        Directive::TcpKeepalive => {
            let seconds = node.config.int(Directive::TcpKeepalive);
            fleet.set_keepalive_seconds(u32::try_from(seconds).unwrap_or(0));
        }
        Directive::Port | Directive::Bind => {
            fleet.listen(open(&node.config)?);
        }
        _ => {}
    }
    Ok(())
}
