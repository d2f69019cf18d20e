//! Sockets of either kind behind one face.

use mio::event::Source;
use mio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use mio::{Interest, Registry, Token};
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::os::fd::AsRawFd;

/// Who is at the other end, as CLIENT LIST shows it.
#[derive(Clone, Debug)]
pub struct Peer {
    pub address: String,
    pub local_address: String,
    pub fd: i32,
    pub is_unix: bool,
    /// From this machine itself.
    pub is_loopback: bool,
}

pub enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Stream {
    pub fn source(&mut self) -> &mut dyn Source {
        match self {
            Stream::Tcp(stream) => stream,
            Stream::Unix(stream) => stream,
        }
    }

    pub fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.read(into),
            Stream::Unix(stream) => stream.read(into),
        }
    }

    pub fn read_vectored(&mut self, into: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.read_vectored(into),
            Stream::Unix(stream) => stream.read_vectored(into),
        }
    }

    pub fn write_vectored(&mut self, runs: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.write_vectored(runs),
            Stream::Unix(stream) => stream.write_vectored(runs),
        }
    }

    pub fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.write(bytes),
            Stream::Unix(stream) => stream.write(bytes),
        }
    }
}

pub enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener, String),
}

impl Listener {
    pub fn register(&mut self, registry: &Registry, token: Token) -> io::Result<()> {
        match self {
            Listener::Tcp(listener) => registry.register(listener, token, Interest::READABLE),
            Listener::Unix(listener, _) => registry.register(listener, token, Interest::READABLE),
        }
    }

    pub fn deregister(&mut self, registry: &Registry) -> io::Result<()> {
        match self {
            Listener::Tcp(listener) => registry.deregister(listener),
            Listener::Unix(listener, _) => registry.deregister(listener),
        }
    }

    pub fn accept(&self, keepalive_seconds: u32) -> io::Result<(Stream, Peer)> {
        match self {
            Listener::Tcp(listener) => {
                let (stream, from) = listener.accept()?;
                let local = listener.local_addr()?;
                // Replies are written whole, so there is nothing to wait for.
                stream.set_nodelay(true)?;
                set_keepalive(&stream, keepalive_seconds)?;
                let peer = Peer {
                    address: from.to_string(),
                    local_address: local.to_string(),
                    fd: stream.as_raw_fd(),
                    is_unix: false,
                    is_loopback: from.ip().is_loopback(),
                };
                Ok((Stream::Tcp(stream), peer))
            }
            Listener::Unix(listener, path) => {
                let (stream, _) = listener.accept()?;
                let peer = Peer {
                    address: format!("{path}:0"),
                    local_address: format!("{path}:0"),
                    fd: stream.as_raw_fd(),
                    is_unix: true,
                    is_loopback: true,
                };
                Ok((Stream::Unix(stream), peer))
            }
        }
    }
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
