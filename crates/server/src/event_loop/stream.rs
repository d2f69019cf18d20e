//! Sockets of every kind behind one interface.

use super::tls::TlsStream;
use mio::event::Source;
use mio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use mio::{Interest, Registry, Token};
use rustls::ServerConfig;
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::os::fd::AsRawFd;
use std::sync::{Arc, Mutex, MutexGuard};

/// Who is at the other end, as CLIENT LIST shows it.
#[derive(Clone, Debug)]
pub struct Peer {
    pub address: String,
    pub local_address: String,
    pub fd: i32,
    pub is_unix: bool,
    pub is_tls: bool,
    /// From this machine itself.
    pub is_loopback: bool,
}

pub enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
    Tls(Box<TlsStream>),
}

impl Stream {
    pub fn source(&mut self) -> &mut dyn Source {
        match self {
            Stream::Tcp(stream) => stream,
            Stream::Unix(stream) => stream,
            Stream::Tls(stream) => stream.socket(),
        }
    }

    /// Whether nothing can be read or written before more was done for TLS.
    #[inline]
    pub fn is_handshaking(&self) -> bool {
        matches!(self, Stream::Tls(stream) if stream.is_handshaking())
    }

    /// Whether a read would find something although the socket tells of nothing new.
    #[inline]
    pub fn has_more(&self) -> bool {
        matches!(self, Stream::Tls(stream) if stream.has_more())
    }

    /// What was taken for writing and is not sent yet.
    #[inline]
    pub fn unsent_bytes(&self) -> usize {
        match self {
            Stream::Tls(stream) => stream.unsent_bytes(),
            Stream::Tcp(_) | Stream::Unix(_) => 0,
        }
    }

    /// Before the socket is closed: the last that is to be said.
    pub fn close(&mut self) {
        if let Stream::Tls(stream) = self {
            stream.close();
        }
    }

    pub fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.read(into),
            Stream::Unix(stream) => stream.read(into),
            Stream::Tls(stream) => stream.read(into),
        }
    }

    pub fn read_vectored(&mut self, into: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.read_vectored(into),
            Stream::Unix(stream) => stream.read_vectored(into),
            Stream::Tls(stream) => stream.read_vectored(into),
        }
    }

    pub fn write_vectored(&mut self, runs: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.write_vectored(runs),
            Stream::Unix(stream) => stream.write_vectored(runs),
            Stream::Tls(stream) => stream.write_vectored(runs),
        }
    }

    pub fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.write(bytes),
            Stream::Unix(stream) => stream.write(bytes),
            Stream::Tls(stream) => stream.write_vectored(&[IoSlice::new(bytes)]),
        }
    }
}

/// What new connections are encrypted with. It is looked at when one is accepted, so that a change
/// holds from its moment on.
#[derive(Clone)]
pub struct CurrentTls(Arc<Mutex<Arc<ServerConfig>>>);

impl CurrentTls {
    pub fn new(config: Arc<ServerConfig>) -> Self {
        CurrentTls(Arc::new(Mutex::new(config)))
    }

    pub fn replace(&self, config: Arc<ServerConfig>) {
        *self.lock() = config;
    }

    fn config(&self) -> Arc<ServerConfig> {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Arc<ServerConfig>> {
        self.0.lock().unwrap_or_else(|poison| poison.into_inner())
    }
}

pub enum Listener {
    Tcp(TcpListener),
    Tls(TcpListener, CurrentTls),
    Unix(UnixListener, String),
}

impl Listener {
    pub fn register(&mut self, registry: &Registry, token: Token) -> io::Result<()> {
        match self {
            Listener::Tcp(listener) | Listener::Tls(listener, _) => {
                registry.register(listener, token, Interest::READABLE)
            }
            Listener::Unix(listener, _) => registry.register(listener, token, Interest::READABLE),
        }
    }

    pub fn deregister(&mut self, registry: &Registry) -> io::Result<()> {
        match self {
            Listener::Tcp(listener) | Listener::Tls(listener, _) => registry.deregister(listener),
            Listener::Unix(listener, _) => registry.deregister(listener),
        }
    }

    pub fn accept(&self, keepalive_seconds: u32) -> io::Result<(Stream, Peer)> {
        match self {
            Listener::Tcp(listener) => {
                let (socket, peer) = accept_tcp(listener, keepalive_seconds)?;
                Ok((Stream::Tcp(socket), peer))
            }
            Listener::Tls(listener, current) => {
                let (socket, peer) = accept_tcp(listener, keepalive_seconds)?;
                let stream = TlsStream::new(socket, &current.config())?;
                Ok((Stream::Tls(Box::new(stream)), Peer { is_tls: true, ..peer }))
            }
            Listener::Unix(listener, path) => {
                let (stream, _) = listener.accept()?;
                let peer = Peer {
                    address: format!("{path}:0"),
                    local_address: format!("{path}:0"),
                    fd: stream.as_raw_fd(),
                    is_unix: true,
                    is_tls: false,
                    is_loopback: true,
                };
                Ok((Stream::Unix(stream), peer))
            }
        }
    }
}

fn accept_tcp(listener: &TcpListener, keepalive_seconds: u32) -> io::Result<(TcpStream, Peer)> {
    let (socket, from) = listener.accept()?;
    // Not the listener's, which may be any address of this machine.
    let local = socket.local_addr()?;
    // Replies are written whole, so there is nothing to wait for.
    socket.set_nodelay(true)?;
    set_keepalive(&socket, keepalive_seconds)?;
    let peer = Peer {
        address: from.to_string(),
        local_address: local.to_string(),
        fd: socket.as_raw_fd(),
        is_unix: false,
        is_tls: false,
        is_loopback: from.ip().is_loopback(),
    };
    Ok((socket, peer))
}

fn set_keepalive(stream: &TcpStream, seconds: u32) -> io::Result<()> {
    if seconds == 0 {
        return Ok(());
    }
    let interval = (seconds / 3).max(1);
    let keepalive = socket2::TcpKeepalive::new()
        .with_time(std::time::Duration::from_secs(u64::from(seconds)))
        .with_interval(std::time::Duration::from_secs(u64::from(interval)))
        .with_retries(3);
    socket2::SockRef::from(stream).set_tcp_keepalive(&keepalive)
}
