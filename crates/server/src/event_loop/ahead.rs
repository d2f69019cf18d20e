//! Looking ahead: the sockets of the next ready connections are read before the first of them has
//! its turn, and what their commands will touch is fetched meanwhile.
//!
//! A command from a client that sends one at a time waits for memory several times over, and those
//! waits are a good part of its cost. Read ahead, the waits of many clients overlap. What was read
//! stays with its connection, and the connection with its loop: if the first command turns out to
//! be slow, the thread that takes the loop over finds all the others as if nothing had been read.

use super::Service;
use super::connection::Connection;
use super::input::Input;
use super::turn::Thread;
use russet_commands::call::batch::BATCH_MAX;
use std::io::ErrorKind;

/// Connections read before the first of them is served.
pub const AHEAD_MAX: usize = 16;
/// Clients that send more at once than this bring enough commands to look ahead among those.
pub const AHEAD_BYTES_MAX: usize = 4096;

impl<S: Service> Thread<S> {
    /// Reads what a connection has sent, if it is likely to be little, and tells the service what
    /// it will run.
    pub fn read_ahead(&mut self, connection: &mut Connection<S>) {
        if !connection.is_readable
            || !self.service.may_run(&connection.client)
            || !connection.input.bytes.is_empty()
            || connection.backlog.is_some()
            || !connection.letters.is_empty()
            || connection.stream.is_handshaking()
            || connection.last_read_bytes >= AHEAD_BYTES_MAX
        {
            return;
        }
        let mut buffer = std::mem::take(&mut self.read_buffer);
        match connection.stream.read(&mut buffer[..AHEAD_BYTES_MAX]) {
            // The end, or a failure, is found again when the connection has its turn.
            Ok(0) => {}
            Ok(count) => {
                connection.input.bytes = self.inputs.pop().unwrap_or_default();
                connection.input.bytes.extend_from_slice(&buffer[..count]);
                self.received(connection, count, AHEAD_BYTES_MAX);
                self.expect_first(connection);
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                connection.is_readable = false;
                connection.may_have_ended = false;
            }
            Err(_) => {}
        }
        self.read_buffer = buffer;
    }

    /// Tells the service a client's first command. One that has sent more looks ahead by itself.
    fn expect_first(&mut self, connection: &mut Connection<S>) {
        let Connection { client, input: Input { bytes, batch, .. }, .. } = connection;
        let limits = self.service.limits(client);
        // An error is found again when the connection has its turn.
        let count = batch.parse_batch(bytes, &limits, BATCH_MAX).unwrap_or(0);
        connection.is_parsed = count > 0;
        if count == 0 {
            // The request under way begins behind the empty ones.
            bytes.drain(..batch.consumed());
        } else if count == 1 {
            self.service.expect(&mut self.worker, client, batch.command(0, bytes));
        }
    }
}
