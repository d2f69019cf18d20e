//! A socket whose bytes are encrypted. What it reads and writes is what the other side means; the
//! records of TLS stay in here.
//!
//! Three things are not as with a plain socket. A short read says nothing about the socket, because
//! a record gives what it gives: [`TlsStream::has_more`] says whether reading goes on. Bytes that
//! were taken for writing may wait here encrypted: at most a few records, and they count as unsent.
//! And before all that there is the handshake, which computes for a while and is done by itself,
//! within limits of bytes and time.

use mio::net::TcpStream;
use rustls::{ServerConfig, ServerConnection};
use std::io::{self, ErrorKind, IoSlice, IoSliceMut, Read, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A handshake that takes longer is given up, with the connection.
const HANDSHAKE_TIME_MAX: Duration = Duration::from_secs(10);
/// What a client may send until the handshake is complete: certificates have a few thousand bytes.
const HANDSHAKE_BYTES_MAX: usize = 128 * 1024;
/// Bytes from the socket in one read. Records without content are possible, and could go on.
const READ_BYTES_MAX: usize = 1024 * 1024;

pub struct TlsStream {
    socket: TcpStream,
    session: ServerConnection,
    started: Instant,
    is_handshaking: bool,
    handshake_bytes: usize,
    /// The socket had nothing more when it was last read.
    is_drained: bool,
    /// The other side will send no more.
    is_ended: bool,
    /// A record was wrong, or the socket failed. The record is used up, so that nothing else would
    /// say it again.
    has_failed: bool,
    /// About what is encrypted and not sent; 0 if nothing is.
    unsent_bytes: usize,
}

impl TlsStream {
    pub fn new(socket: TcpStream, config: &Arc<ServerConfig>) -> io::Result<Self> {
        Ok(TlsStream {
            socket,
            session: ServerConnection::new(config.clone()).map_err(io::Error::other)?,
            started: Instant::now(),
            is_handshaking: true,
            handshake_bytes: 0,
            is_drained: false,
            is_ended: false,
            has_failed: false,
            unsent_bytes: 0,
        })
    }

    pub fn socket(&mut self) -> &mut TcpStream {
        &mut self.socket
    }

    pub fn is_handshaking(&self) -> bool {
        self.is_handshaking
    }

    /// It began its handshake so long ago that it will not end it.
    pub fn is_overdue(&self) -> bool {
        self.is_handshaking && self.started.elapsed() > HANDSHAKE_TIME_MAX
    }

    /// Whether a read would find something although the socket tells of nothing new.
    pub fn has_more(&self) -> bool {
        !self.is_drained || self.is_ended || self.has_failed
    }

    pub fn unsent_bytes(&self) -> usize {
        self.unsent_bytes
    }

    /// Nobody is there to send the rest to.
    pub fn forget_unsent(&mut self) {
        self.unsent_bytes = 0;
    }

    /// The certificate that the client has shown and that was found good.
    pub fn certificate(&self) -> Option<&[u8]> {
        self.session.peer_certificates()?.first().map(|certificate| certificate.as_ref())
    }

    /// Goes on with the handshake as far as the socket allows. True when it is complete.
    pub fn handshake(&mut self) -> io::Result<bool> {
        loop {
            if is_blocked(&self.send())? {
                return Ok(false);
            }
            if !self.session.is_handshaking() {
                self.is_handshaking = false;
                return Ok(true);
            }
            match self.receive() {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(count) => self.handshake_bytes += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            }
            if self.handshake_bytes > HANDSHAKE_BYTES_MAX {
                return Err(io::Error::other("the handshake is too long"));
            }
        }
    }

    /// As much as there is room for, or as the socket has. 0 is the end; `Interrupted` means that
    /// much was read and nothing was in it.
    pub fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.has_failed {
            return Err(ErrorKind::InvalidData.into());
        }
        let (mut filled, mut received) = (0, 0);
        // What it had when it was last read says nothing about now.
        self.is_drained = false;
        loop {
            filled += self.take_plaintext(&mut into[filled..])?;
            let is_enough =
                filled == into.len() || self.is_ended || (filled > 0 && self.is_drained);
            if is_enough || (filled > 0 && received >= READ_BYTES_MAX) {
                return Ok(filled);
            }
            if received >= READ_BYTES_MAX {
                return Err(ErrorKind::Interrupted.into());
            }
            match self.receive() {
                Ok(0) => self.is_ended = true,
                Ok(count) => received += count,
                Err(error) if filled > 0 && error.kind() == ErrorKind::WouldBlock => {}
                // What came before it counts; a failure is found by the next read.
                Err(_) if filled > 0 => return Ok(filled),
                Err(error) => return Err(error),
            }
        }
    }

    pub fn read_vectored(&mut self, into: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        let mut filled = 0;
        for slice in into.iter_mut().filter(|slice| !slice.is_empty()) {
            match self.read(slice) {
                Ok(count) => filled += count,
                Err(error) if filled == 0 => return Err(error),
                // It is found again by the next read.
                Err(_) => return Ok(filled),
            }
            if filled == 0 || !self.has_plaintext() {
                return Ok(filled);
            }
        }
        Ok(filled)
    }

    /// Encrypts and sends as much as the socket takes, and a few records that it does not.
    pub fn write_vectored(&mut self, runs: &[IoSlice<'_>]) -> io::Result<usize> {
        if self.is_handshaking {
            return Err(ErrorKind::WouldBlock.into());
        }
        self.send()?;
        let taken = self.session.writer().write_vectored(runs)?;
        self.unsent_bytes += taken;
        is_blocked(&self.send())?;
        Ok(taken)
    }

    /// Sends what waits here encrypted; `WouldBlock` if some of it still does.
    pub fn send(&mut self) -> io::Result<()> {
        while self.session.wants_write() {
            let count = match self.session.write_tls(&mut self.socket) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(count) => count,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => {
                    self.unsent_bytes = self.unsent_bytes.max(1);
                    return Err(error);
                }
            };
            self.unsent_bytes = self.unsent_bytes.saturating_sub(count);
        }
        self.unsent_bytes = 0;
        Ok(())
    }

    /// Tells the other side that the end is meant, if the socket takes that now.
    pub fn close(&mut self) {
        if !self.is_handshaking {
            self.session.send_close_notify();
            let _sent = self.send();
        }
    }

    fn has_plaintext(&mut self) -> bool {
        self.session.reader().into_first_chunk().is_ok_and(|chunk| !chunk.is_empty())
    }

    /// Moves what was decrypted, and sees whether it was all that there will be.
    fn take_plaintext(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let mut filled = 0;
        while filled < into.len() {
            match self.session.reader().read(&mut into[filled..]) {
                Ok(0) => {
                    self.is_ended = true;
                    break;
                }
                Ok(count) => filled += count,
                // The socket has ended without a word: commands say themselves where they end.
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
                    self.is_ended = true;
                    break;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        Ok(filled)
    }

    /// Takes records from the socket and does what they say; how many bytes came. What is answered
    /// by TLS itself is sent if the socket takes it.
    fn receive(&mut self) -> io::Result<usize> {
        let mut source = Source { socket: &mut self.socket, is_drained: false };
        let result = self.session.read_tls(&mut source);
        self.is_drained = source.is_drained;
        let count = result.inspect_err(|error| {
            let is_passing =
                [ErrorKind::WouldBlock, ErrorKind::Interrupted].contains(&error.kind());
            self.has_failed |= !is_passing;
        })?;
        if count == 0 {
            return Ok(0);
        }
        if let Err(error) = self.session.process_new_packets() {
            // The alert says what is wrong; whether it arrives or not, the connection is over.
            let _sent = self.session.write_tls(&mut self.socket);
            self.has_failed = true;
            return Err(io::Error::new(ErrorKind::InvalidData, error));
        }
        is_blocked(&self.send())?;
        Ok(count)
    }
}

/// Whether the socket takes no more for now; other errors are errors.
fn is_blocked(result: &io::Result<()>) -> io::Result<bool> {
    match result {
        Ok(()) => Ok(false),
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(true),
        Err(error) => Err(error.kind().into()),
    }
}

/// The socket, which notes whether it has given all that it had.
struct Source<'a> {
    socket: &'a mut TcpStream,
    is_drained: bool,
}

impl Read for Source<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let result = self.socket.read(into);
        self.is_drained = match &result {
            Ok(count) => *count < into.len(),
            Err(error) => error.kind() == ErrorKind::WouldBlock,
        };
        result
    }
}
