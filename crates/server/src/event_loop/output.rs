//! Sending what a connection's commands have answered.

use super::Service;
use super::connection::Connection;
use super::stream::Stream;
use std::io::{ErrorKind, IoSlice};

/// Runs of bytes that one call of the system sends.
const RUNS_MAX: usize = 64;

/// Writes what the socket takes. False if the connection is broken.
pub fn flush<S: Service>(connection: &mut Connection<S>) -> bool {
    if connection.is_broken {
        return false;
    }
    let Connection { output, stream, is_writable, .. } = connection;
    if let Stream::Tls(stream) = stream {
        if stream.is_handshaking() {
            return true;
        }
        if *is_writable {
            match stream.send() {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => *is_writable = false,
                Err(_) => return false,
            }
        }
    }
    while *is_writable && output.sendable_bytes() > 0 {
        let written = match output.only_run() {
            Some(bytes) => stream.write(bytes),
            None => {
                let mut slices = [IoSlice::new(&[]); RUNS_MAX];
                let count = output.runs(&mut slices);
                stream.write_vectored(&slices[..count])
            }
        };
        match written {
            Ok(0) => return false,
            Ok(count) => output.advance(count),
            Err(error) if error.kind() == ErrorKind::WouldBlock => *is_writable = false,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => return false,
        }
    }
    true
}
