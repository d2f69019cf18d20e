//! The listening sockets.

use crate::event_loop::{Fleet, Listener};
use crate::service::RussetService;
use russet_commands::node::Node;
use russet_commands::node::config::{Config, Directive};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Mutex;

/// Where a server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Endpoint {
    Tcp(SocketAddr),
    Unix(String),
}

/// The sockets that are open now. Asked for again, they are handed out again: the loop that has
/// them lets go of them only later, and an address can't be opened twice.
#[derive(Default)]
pub struct Listeners(Mutex<Vec<(Endpoint, OwnedFd)>>);

impl Listeners {
    /// Opens what `bind`, `port` and `unixsocket` ask for, and forgets what they no longer do. An
    /// error says which address it was, and changes nothing.
    pub fn open(&self, config: &Config) -> Result<Vec<Listener>, String> {
        let mut open = self.0.lock().unwrap_or_else(|poison| poison.into_inner());
        let (mut listeners, mut kept) = (Vec::new(), Vec::new());
        for (place, is_optional) in wanted(config)? {
            let known = open.iter().find(|(known, _)| *known == place);
            let socket = match known {
                Some((_, socket)) => socket.try_clone(),
                None => open_place(&place, config),
            };
            let listener = match socket {
                Ok(socket) => socket.try_clone().and_then(|copy| {
                    kept.push((place.clone(), copy));
                    listener(&place, socket)
                }),
                Err(error) => Err(error),
            };
            match listener {
                Ok(listener) => listeners.push(listener),
                Err(error) if is_optional && is_unavailable(&error) => {}
                Err(error) => return Err(format!("cannot listen on {place}: {error}")),
            }
        }
        *open = kept;
        Ok(listeners)
    }
}

impl std::fmt::Display for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Endpoint::Tcp(address) => address.fmt(f),
            Endpoint::Unix(path) => path.fmt(f),
        }
    }
}

/// Where the configuration says to listen, and whether it may be done without.
fn wanted(config: &Config) -> Result<Vec<(Endpoint, bool)>, String> {
    let mut places = Vec::new();
    let port = u16::try_from(config.int(Directive::Port)).unwrap_or(0);
    if port != 0 {
        for word in config.list(Directive::Bind) {
            let (is_optional, address) = parse_address(&word)?;
            places.push((Endpoint::Tcp(SocketAddr::new(address, port)), is_optional));
        }
    }
    let path = config.string(Directive::UnixSocket);
    if !path.is_empty() {
        places.push((Endpoint::Unix(path), false));
    }
    Ok(places)
}

fn open_place(place: &Endpoint, config: &Config) -> io::Result<OwnedFd> {
    match place {
        Endpoint::Tcp(address) => open_tcp(*address, config),
        Endpoint::Unix(path) => open_unix(path, config.int(Directive::UnixSocketPerm) as u32),
    }
}

fn listener(place: &Endpoint, socket: OwnedFd) -> io::Result<Listener> {
    match place {
        Endpoint::Tcp(_) => {
            let socket = std::net::TcpListener::from(socket);
            Ok(Listener::Tcp(mio::net::TcpListener::from_std(socket)))
        }
        Endpoint::Unix(path) => {
            let socket = std::os::unix::net::UnixListener::from(socket);
            Ok(Listener::Unix(mio::net::UnixListener::from_std(socket), path.clone()))
        }
    }
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

fn open_tcp(address: SocketAddr, config: &Config) -> io::Result<OwnedFd> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&SockAddr::from(address))?;
    socket.listen(config.int(Directive::TcpBacklog) as i32)?;
    Ok(socket.into())
}

fn open_unix(path: &str, permissions: u32) -> io::Result<OwnedFd> {
    // A socket file that an earlier run left behind is in the way; anything else is not ours.
    if std::os::unix::net::UnixStream::connect(path).is_err() && is_socket(path) {
        std::fs::remove_file(path)?;
    }
    let listener = std::os::unix::net::UnixListener::bind(path)?;
    listener.set_nonblocking(true)?;
    if permissions != 0 {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(permissions))?;
    }
    Ok(listener.into())
}

fn is_socket(path: &str) -> bool {
    use std::os::unix::fs::FileTypeExt;
    std::fs::symlink_metadata(Path::new(path)).is_ok_and(|file| file.file_type().is_socket())
}

/// CONFIG SET of a directive that concerns sockets.
pub fn apply(
    listeners: &Listeners,
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
            let listeners = listeners.open(&node.config).map_err(|reason| {
                node.host.log(&reason);
                match directive {
                    Directive::Bind => "Failed to bind to specified addresses.".to_owned(),
                    _ => "Unable to listen on this port. Check server logs.".to_owned(),
                }
            })?;
            fleet.listen(listeners);
        }
        _ => {}
    }
    Ok(())
}
