//! The listening sockets, and what the connections of some are encrypted with.

use crate::event_loop::{CurrentTls, Fleet, Listener};
use crate::service::RussetService;
use crate::tls;
use russet_commands::node::config::{Config, Directive};
use russet_commands::node::{CertificateReport, Node};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::{Mutex, MutexGuard};

/// Where a server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Endpoint {
    Tcp(SocketAddr),
    Tls(SocketAddr),
    Unix(String),
}

/// The sockets that are open now. Asked for again, they are handed out again: the loop that has
/// them lets go of them only later, and an address can't be opened twice.
#[derive(Default)]
pub struct Listeners(Mutex<Open>);

#[derive(Default)]
struct Open {
    sockets: Vec<(Endpoint, OwnedFd)>,
    tls: Option<CurrentTls>,
    certificates: CertificateReport,
}

/// Why the server can't listen as it is to.
#[derive(Debug)]
pub enum Obstacle {
    /// A file or directive of TLS.
    Tls(String),
    Address(String),
}

impl std::fmt::Display for Obstacle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Obstacle::Tls(why) => write!(f, "cannot use TLS: {why}"),
            Obstacle::Address(why) => write!(f, "cannot listen on {why}"),
        }
    }
}

impl Listeners {
    /// Opens what `bind`, `port`, `tls-port` and `unixsocket` ask for, and forgets what they no
    /// longer do. An error changes nothing.
    pub fn open(&self, config: &Config) -> Result<Vec<Listener>, Obstacle> {
        self.open_with(config, false)
    }

    /// The same, with certificates as they are in their files now.
    pub fn renew(&self, config: &Config) -> Result<Vec<Listener>, Obstacle> {
        self.open_with(config, true)
    }

    /// What connections over TLS are shown.
    pub fn certificates(&self) -> CertificateReport {
        self.lock().certificates.clone()
    }

    /// The files of certificates are others now.
    pub fn look_at_certificates(&self, config: &Config) {
        let mut open = self.lock();
        if open.tls.is_some() {
            open.certificates = tls::certificate_report(config);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        self.0.lock().unwrap_or_else(|poison| poison.into_inner())
    }

    fn open_with(&self, config: &Config, is_renewed: bool) -> Result<Vec<Listener>, Obstacle> {
        let mut open = self.lock();
        let read = || tls::server_config(config).map_err(Obstacle::Tls);
        let (tls, renewed) = match (config.int(Directive::TlsPort), open.tls.clone()) {
            (0, _) => (None, None),
            (_, Some(known)) if is_renewed => (Some(known), Some(read()?)),
            (_, Some(known)) => (Some(known), None),
            (_, None) => (Some(CurrentTls::new(read()?)), None),
        };
        let certificates = match &tls {
            None => CertificateReport::default(),
            Some(_) if is_renewed || open.tls.is_none() => tls::certificate_report(config),
            Some(_) => open.certificates.clone(),
        };
        let (mut listeners, mut kept) = (Vec::new(), Vec::new());
        for (endpoint, is_optional) in wanted(config).map_err(Obstacle::Address)? {
            let known = open.sockets.iter().find(|(known, _)| *known == endpoint);
            let socket = match known {
                Some((_, socket)) => socket.try_clone(),
                None => open_endpoint(&endpoint, config),
            };
            let listener = match socket {
                Ok(socket) => socket.try_clone().and_then(|copy| {
                    kept.push((endpoint.clone(), copy));
                    listener(&endpoint, socket, tls.as_ref())
                }),
                Err(error) => Err(error),
            };
            match listener {
                Ok(listener) => listeners.push(listener),
                Err(error) if is_optional && is_unavailable(&error) => {}
                Err(error) => return Err(Obstacle::Address(format!("{endpoint}: {error}"))),
            }
        }
        if let (Some(current), Some(renewed)) = (&tls, renewed) {
            current.replace(renewed);
        }
        *open = Open { sockets: kept, tls, certificates };
        Ok(listeners)
    }
}

/// Opens `metrics-port` on the addresses of `bind`.
pub fn open_metrics(config: &Config) -> Result<Vec<std::net::TcpListener>, String> {
    let port = u16::try_from(config.int(Directive::MetricsPort)).unwrap_or(0);
    let mut listeners = Vec::new();
    if port == 0 {
        return Ok(listeners);
    }
    for word in config.list(Directive::Bind) {
        let (is_optional, address) = parse_address(&word)?;
        match open_tcp(SocketAddr::new(address, port), config) {
            Ok(socket) => listeners.push(socket.into()),
            Err(error) if is_optional && is_unavailable(&error) => {}
            Err(error) => {
                return Err(format!("cannot listen on {address} for metrics-port {port}: {error}"));
            }
        }
    }
    Ok(listeners)
}

impl std::fmt::Display for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Endpoint::Tcp(address) | Endpoint::Tls(address) => address.fmt(f),
            Endpoint::Unix(path) => path.fmt(f),
        }
    }
}

/// Where the configuration says to listen, and whether it may be done without.
fn wanted(config: &Config) -> Result<Vec<(Endpoint, bool)>, String> {
    let mut endpoints = Vec::new();
    for directive in [Directive::Port, Directive::TlsPort] {
        let port = u16::try_from(config.int(directive)).unwrap_or(0);
        if port == 0 {
            continue;
        }
        for given in config.list(Directive::Bind) {
            let (is_optional, address) = parse_address(&given)?;
            let address = SocketAddr::new(address, port);
            let endpoint = match directive {
                Directive::TlsPort => Endpoint::Tls(address),
                _ => Endpoint::Tcp(address),
            };
            endpoints.push((endpoint, is_optional));
        }
    }
    let path = config.string(Directive::UnixSocket);
    if !path.is_empty() {
        endpoints.push((Endpoint::Unix(path), false));
    }
    Ok(endpoints)
}

/// Why one of the addresses can't be listened on: this machine may not have it. Whether its port is
/// free is seen when the server starts.
pub fn address_obstacle(config: &Config) -> Option<String> {
    let endpoints = match wanted(config) {
        Ok(endpoints) => endpoints,
        Err(text) => return Some(text),
    };
    endpoints.into_iter().find_map(|(endpoint, is_optional)| {
        let (Endpoint::Tcp(address) | Endpoint::Tls(address)) = endpoint else { return None };
        let error = std::net::TcpListener::bind((address.ip(), 0)).err()?;
        let is_missing = is_unavailable(&error) && !is_optional;
        is_missing.then(|| format!("{}: {error}", address.ip()))
    })
}

fn open_endpoint(endpoint: &Endpoint, config: &Config) -> io::Result<OwnedFd> {
    match endpoint {
        Endpoint::Tcp(address) | Endpoint::Tls(address) => open_tcp(*address, config),
        Endpoint::Unix(path) => open_unix(path, config),
    }
}

fn listener(
    endpoint: &Endpoint,
    socket: OwnedFd,
    tls: Option<&CurrentTls>,
) -> io::Result<Listener> {
    match endpoint {
        Endpoint::Tcp(_) | Endpoint::Tls(_) => {
            let socket = mio::net::TcpListener::from_std(std::net::TcpListener::from(socket));
            Ok(match tls.filter(|_| matches!(endpoint, Endpoint::Tls(_))) {
                Some(tls) => Listener::Tls(socket, tls.clone()),
                None => Listener::Tcp(socket),
            })
        }
        Endpoint::Unix(path) => {
            let socket = std::os::unix::net::UnixListener::from(socket);
            Ok(Listener::Unix(mio::net::UnixListener::from_std(socket), path.clone()))
        }
    }
}

/// A leading `-` means: skip it if this machine has no such address.
fn parse_address(given: &str) -> Result<(bool, IpAddr), String> {
    let (is_optional, text) = match given.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, given),
    };
    let address = match text {
        "*" => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        "::*" => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        "localhost" => IpAddr::V4(Ipv4Addr::LOCALHOST),
        other => other.parse().map_err(|_| format!("bind: '{given}' is not an address"))?,
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

fn open_unix(path: &str, config: &Config) -> io::Result<OwnedFd> {
    // A socket file that an earlier run left behind blocks the name; anything else is not ours.
    if std::os::unix::net::UnixStream::connect(path).is_err() && is_socket(path) {
        std::fs::remove_file(path)?;
    }
    let group = socket_group(config)?;
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    socket.set_nonblocking(true)?;
    socket.bind(&SockAddr::unix(path)?)?;
    let permissions = config.int(Directive::UnixSocketPerm) as u32;
    let opened = set_access(path, permissions, group)
        // Nobody gets in before this, so nobody does whom mode and group keep out.
        .and_then(|()| socket.listen(config.int(Directive::TcpBacklog) as i32));
    if let Err(error) = opened {
        let _removed = std::fs::remove_file(path);
        return Err(error);
    }
    Ok(socket.into())
}

fn set_access(path: &str, permissions: u32, group: Option<u32>) -> io::Result<()> {
    if permissions != 0 {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(permissions))?;
    }
    match group {
        Some(group) => std::os::unix::fs::chown(path, None, Some(group)),
        None => Ok(()),
    }
}

/// The group that `unixsocketgroup` means, if it names one.
pub fn socket_group(config: &Config) -> io::Result<Option<u32>> {
    let group = config.string(Directive::UnixSocketGroup);
    if group.is_empty() { Ok(None) } else { group_id(&group).map(Some) }
}

/// The number of a group, by its name in /etc/group.
///
/// DIFFERS: other sources of groups, a directory service say, are not asked; a number will do.
fn group_id(group: &str) -> io::Result<u32> {
    /// To the system it says: leave the group as it is.
    const NO_GROUP: u32 = u32::MAX;
    let no_group = || io::Error::other(format!("there is no group '{group}'"));
    if let Ok(number) = group.parse() {
        return if number == NO_GROUP { Err(no_group()) } else { Ok(number) };
    }
    let groups = std::fs::read_to_string("/etc/group")?;
    let number_of = |line: &str| {
        let mut fields = line.split(':');
        let is_it = fields.next() == Some(group);
        fields.nth(1).filter(|_| is_it)?.parse().ok()
    };
    let found = groups.lines().find_map(number_of);
    found.filter(|number| *number != NO_GROUP).ok_or_else(no_group)
}

fn is_socket(path: &str) -> bool {
    use std::os::unix::fs::FileTypeExt;
    std::fs::symlink_metadata(Path::new(path)).is_ok_and(|file| file.file_type().is_socket())
}

/// Whether a change of the directive is to be brought to [`apply`].
pub fn concerns(directive: Directive) -> bool {
    let is_socket = matches!(
        directive,
        Directive::TcpKeepalive
            | Directive::Port
            | Directive::Bind
            | Directive::TlsPort
            | Directive::MaxNewTlsConnectionsPerCycle
    );
    is_socket || concerns_encryption(directive)
}

fn concerns_encryption(directive: Directive) -> bool {
    matches!(
        directive,
        Directive::TlsCertFile
            | Directive::TlsKeyFile
            | Directive::TlsKeyFilePass
            | Directive::TlsCaCertFile
            | Directive::TlsCaCertDir
            | Directive::TlsAuthClients
            | Directive::TlsProtocols
            | Directive::TlsCiphers
            | Directive::TlsCiphersuites
            | Directive::TlsPreferServerCiphers
            | Directive::TlsSessionCaching
            | Directive::TlsSessionCacheSize
            | Directive::TlsSessionCacheTimeout
    )
}

/// CONFIG SET of a directive that concerns sockets, and what a start does of them.
pub fn apply(
    listeners: &Listeners,
    fleet: &Fleet<RussetService>,
    node: &Node,
    directive: Directive,
) -> Result<(), String> {
    let config = &node.config;
    let number = || u32::try_from(config.int(directive)).unwrap_or(0);
    let opened = match directive {
        Directive::TcpKeepalive => {
            fleet.set_keepalive_seconds(number());
            return Ok(());
        }
        Directive::MaxNewTlsConnectionsPerCycle => {
            fleet.set_tls_accepts_max(number() as usize);
            return Ok(());
        }
        _ if concerns_encryption(directive) => listeners.renew(config),
        _ => listeners.open(config),
    };
    let opened = opened.map_err(|obstacle| {
        node.host.log(&obstacle.to_string());
        let text = match (obstacle, directive) {
            (Obstacle::Tls(_), _) => "Unable to update TLS configuration. Check server logs.",
            (_, Directive::Bind) => "Failed to bind to specified addresses.",
            _ => "Unable to listen on this port. Check server logs.",
        };
        text.to_owned()
    })?;
    fleet.listen(opened);
    Ok(())
}

/// Reads the files of TLS again. New connections get what they hold; those that are open go on
/// as they are. An error changes nothing.
pub fn reload(
    listeners: &Listeners,
    fleet: &Fleet<RussetService>,
    config: &Config,
) -> Result<(), Obstacle> {
    fleet.listen(listeners.renew(config)?);
    Ok(())
}
