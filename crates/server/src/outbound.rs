//! Connections to other servers, over TCP, and TLS if `tls-cluster` says so.

use crate::log::{Level, Log};
use russet_commands::node::outbound::{Connection, Connector};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, OnceLock, RwLock};
use std::time::{Duration, Instant};

/// Names that may be looked up at once. The system sets no bound to how long that takes, and nobody
/// can end it.
const LOOKUPS_MAX: usize = 64;

/// How a name becomes addresses.
type Resolve = fn(&str, u16) -> io::Result<Vec<SocketAddr>>;

pub struct TcpConnector {
    resolve: Resolve,
    /// As many others hold it as lookups are under way.
    lookups: Arc<()>,
    tls: RwLock<Option<Arc<ClientConfig>>>,
    /// Gets what clients are not told: why a handshake has failed.
    pub log: OnceLock<Arc<Log>>,
}

impl Default for TcpConnector {
    fn default() -> Self {
        TcpConnector {
            resolve: ask_system,
            lookups: Arc::default(),
            tls: RwLock::default(),
            log: OnceLock::new(),
        }
    }
}

fn ask_system(host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    (host, port).to_socket_addrs().map(Iterator::collect)
}

/// The time that is left.
fn left(until: Instant) -> io::Result<Duration> {
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
}

impl TcpConnector {
    /// What connections from now on are encrypted with, if they are.
    pub fn set_tls(&self, tls: Option<Arc<ClientConfig>>) {
        *self.tls.write().unwrap_or_else(|poison| poison.into_inner()) = tls;
    }

    pub fn is_encrypting(&self) -> bool {
        self.tls().is_some()
    }

    fn tls(&self) -> Option<Arc<ClientConfig>> {
        self.tls.read().unwrap_or_else(|poison| poison.into_inner()).clone()
    }

    /// A connection that is there, encrypted if it is to be.
    fn open(&self, stream: TcpStream, until: Instant) -> io::Result<Box<dyn Connection>> {
        stream.set_nodelay(true)?;
        let Some(tls) = self.tls() else { return Ok(Box::new(TcpConnection(stream))) };
        let address = stream.peer_addr()?;
        match encrypt(stream, tls, until) {
            Ok(encrypted) => Ok(Box::new(TlsConnection(encrypted))),
            Err(error) => {
                if let Some(log) = self.log.get() {
                    let text = format!("Cannot connect to {address} over TLS: {error}");
                    log.say(Level::Warning, &text);
                }
                Err(error)
            }
        }
    }

    /// The addresses of a host, if they are found in time.
    fn addresses(&self, host: &str, port: u16, until: Instant) -> io::Result<Vec<SocketAddr>> {
        if let Ok(address) = host.parse::<IpAddr>() {
            return Ok(vec![SocketAddr::new(address, port)]);
        }
        if Arc::strong_count(&self.lookups) > LOOKUPS_MAX {
            return Err(io::Error::other("too many names are being looked up"));
        }
        let (sender, receiver) = sync_channel(1);
        let (host, resolve, lookup) = (host.to_owned(), self.resolve, self.lookups.clone());
        let run = move || {
            let found = resolve(&host, port);
            drop(lookup);
            // Nobody may wait for it any more.
            let _sent = sender.send(found);
        };
        std::thread::Builder::new().name("lookup".into()).spawn(run)?;
        let found = receiver.recv_timeout(left(until)?);
        found.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?
    }
}

impl Connector for TcpConnector {
    fn connect(&self, host: &str, port: u16, timeout: Duration) -> io::Result<Box<dyn Connection>> {
        let until = Instant::now() + timeout;
        let mut failure = io::Error::from(io::ErrorKind::NotFound);
        for address in self.addresses(host, port, until)? {
            match TcpStream::connect_timeout(&address, left(until)?) {
                Ok(stream) => {
                    let mut connection = self.open(stream, until)?;
                    connection.set_timeout(timeout)?;
                    return Ok(connection);
                }
                Err(error) => failure = error,
            }
        }
        Err(failure)
    }
}

struct TcpConnection(TcpStream);

impl Read for TcpConnection {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer)
    }
}

impl Write for TcpConnection {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl Connection for TcpConnection {
    fn set_timeout(&mut self, timeout: Duration) -> io::Result<()> {
        self.0.set_read_timeout(Some(timeout))?;
        self.0.set_write_timeout(Some(timeout))
    }
}

/// The handshake, all of it, so that what is wrong with it is a failure to connect.
fn encrypt(
    mut socket: TcpStream,
    config: Arc<ClientConfig>,
    until: Instant,
) -> io::Result<StreamOwned<ClientConnection, TcpStream>> {
    // Neither sent nor checked.
    let name = ServerName::from(socket.peer_addr()?.ip());
    let mut session = ClientConnection::new(config, name).map_err(io::Error::other)?;
    while session.is_handshaking() || session.wants_write() {
        socket.set_read_timeout(Some(left(until)?))?;
        socket.set_write_timeout(Some(left(until)?))?;
        if session.wants_write() {
            session.write_tls(&mut socket)?;
            continue;
        }
        if session.read_tls(&mut socket)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if let Err(error) = session.process_new_packets() {
            // The other side is told, if it still listens.
            let _told = session.write_tls(&mut socket);
            return Err(io::Error::other(error));
        }
    }
    Ok(StreamOwned::new(session, socket))
}

struct TlsConnection(StreamOwned<ClientConnection, TcpStream>);

impl Read for TlsConnection {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer)
    }
}

impl Write for TlsConnection {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl Connection for TlsConnection {
    fn set_timeout(&mut self, timeout: Duration) -> io::Result<()> {
        self.0.sock.set_read_timeout(Some(timeout))?;
        self.0.sock.set_write_timeout(Some(timeout))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn never(_host: &str, _port: u16) -> io::Result<Vec<SocketAddr>> {
        loop {
            std::thread::park();
        }
    }

    /// A name server that did not answer held MIGRATE, its thread and its keys for as long as the
    /// system was willing to wait, whatever its timeout said.
    #[test]
    fn a_name_is_looked_up_no_longer_than_the_timeout() {
        let connector = TcpConnector { resolve: never, ..TcpConnector::default() };
        let ask = |timeout| connector.connect("some.name", 1, timeout).err().unwrap();
        for _ in 0..LOOKUPS_MAX {
            assert_eq!(ask(Duration::from_millis(1)).kind(), io::ErrorKind::TimedOut);
        }
        let refused = ask(Duration::from_secs(3600));
        assert_eq!(refused.kind(), io::ErrorKind::Other, "no further thread waits for it");
    }
}
