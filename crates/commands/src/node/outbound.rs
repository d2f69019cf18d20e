//! Connections that this server opens. What a socket is, is up to the host.

use std::io::{self, Read, Write};
use std::time::Duration;

/// A stream of bytes to another server, which answers no later than its timeout, or fails.
pub trait Connection: Read + Write + Send {
    /// How long a read or a write may take from now on: more than no time.
    fn set_timeout(&mut self, timeout: Duration) -> io::Result<()>;
}

/// Opens connections. It may block for as long as the timeout.
pub trait Connector: Send + Sync {
    /// The timeout is that of finding the address and connecting to it, and of each read and write
    /// later, unless these are given another.
    fn connect(&self, host: &str, port: u16, timeout: Duration) -> io::Result<Box<dyn Connection>>;
}
