//! A connection's turn: read, run what is complete, write. Done without any lock of the loop.

use super::Service;
use super::ahead::{AHEAD_BYTES_MAX, AHEAD_MAX};
use super::backlog::Next;
use super::connection::Connection;
use super::input::{Input, READ_BYTES};
use super::output::flush;
use super::owner::Ownership;
use super::stream::Stream;
use russet_base::shared::shrink_beyond;
use russet_commands::call::batch::BATCH_MAX;
use russet_commands::call::client::After;
use russet_commands::call::dispatch::Progress;
use russet_commands::call::mail::Letter;
use russet_protocol::{Batch, ProtocolError};
use std::io::{self, ErrorKind};
use std::sync::Arc;

/// Commands that are parsed before the first of them is run.
const BATCH_COMMANDS_MAX: usize = BATCH_MAX;
/// What one turn reads, in how many reads: then the other connections get theirs.
const TURN_READ_BYTES_MAX: usize = 4 * READ_BYTES;
const READS_MAX: usize = 16;
/// A connection whose input breaks off within a command keeps this much room for it, or twice what
/// it has.
const INPUT_KEPT_BYTES_MAX: usize = 4 * READ_BYTES;
/// A thread keeps an output buffer of up to this size between turns.
const OUTPUT_KEPT_BYTES_MAX: usize = 256 * 1024;

/// What a thread brings to the turns of any connection.
pub struct Thread<S: Service> {
    pub service: Arc<S>,
    pub worker: S::Worker,
    /// What is read goes here first, for every connection.
    pub(super) read_buffer: Vec<u8>,
    /// Buffers for input that is read ahead.
    pub(super) inputs: Vec<Vec<u8>>,
    out: Vec<u8>,
}

/// What becomes of the connection after its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Keep,
    /// It has more to do, but others come first.
    Again,
    Close,
}

impl<S: Service> Thread<S> {
    pub fn new(service: Arc<S>) -> Self {
        let worker = service.worker();
        Thread {
            service,
            worker,
            read_buffer: vec![0; READ_BYTES],
            inputs: Vec::new(),
            out: Vec::new(),
        }
    }

    /// One turn of one connection.
    pub fn turn(&mut self, connection: &mut Connection<S>, ownership: &Ownership) -> Verdict {
        // An idle connection has no buffer of its own: replies go to the thread's, and what the
        // socket does not take stays with the connection.
        connection.output.borrow_buffer(&mut self.out);
        let mut verdict = self.act(connection, ownership);
        if self.service.is_cut_off(&connection.client) {
            verdict = Verdict::Close;
        }
        if verdict != Verdict::Close && !self.flush(connection) {
            connection.set_broken();
        }
        if verdict != Verdict::Close {
            let buffers = connection.buffers();
            if !self.service.may_hold_output(&mut connection.client, buffers)
                || (buffers.output_bytes == 0 && self.is_finished(connection, verdict))
            {
                verdict = Verdict::Close;
            }
        }
        if verdict == Verdict::Keep {
            self.service.turn_over(&mut connection.client);
        }
        connection.output.return_buffer(&mut self.out);
        shrink_beyond(&mut self.out, OUTPUT_KEPT_BYTES_MAX);
        verdict
    }

    /// Whether nothing more is to be done for a connection than to send what was not sent yet.
    fn is_finished(&self, connection: &Connection<S>, verdict: Verdict) -> bool {
        let is_done = connection.is_at_end && verdict == Verdict::Keep;
        // The reply of CLIENT KILL waits for those it has closed, even if its own is among them.
        (is_done || self.service.is_closing(&connection.client))
            && !self.service.is_under_way(&connection.client)
    }

    fn act(&mut self, connection: &mut Connection<S>, ownership: &Ownership) -> Verdict {
        while !connection.letters.is_empty() {
            // A letter may have a call tried again, which takes as long as it takes.
            if !ownership.beat() {
                return Verdict::Again;
            }
            let Some(letter) = connection.letters.pop_front() else { break };
            if matches!(letter, Letter::SocketReady) {
                connection.is_readable = true;
                connection.is_writable = true;
                connection.may_have_ended = true;
                continue;
            }
            let Connection { client, output, .. } = connection;
            let after = self.service.letter(&mut self.worker, client, letter, output);
            if after == After::Close {
                self.flush(connection);
                return Verdict::Close;
            }
        }
        if connection.stream.is_handshaking()
            && let Some(verdict) = self.handshake(connection, ownership)
        {
            return verdict;
        }
        if connection.has_input_to_run() && self.service.may_run(&connection.client) {
            let verdict = self.run_waiting(connection, ownership);
            if verdict != Verdict::Keep {
                return verdict;
            }
        }
        let mut bytes = 0;
        for _ in 0..READS_MAX {
            if !connection.is_readable
                || connection.is_at_end
                || self.service.is_closing(&connection.client)
                || !self.service.may_read(&connection.client)
                || ownership.is_lost()
            {
                return Verdict::Keep;
            }
            if bytes >= TURN_READ_BYTES_MAX {
                break;
            }
            let verdict = self.read_and_run(connection, ownership);
            if verdict != Verdict::Keep {
                return verdict;
            }
            bytes += connection.last_read_bytes;
        }
        Verdict::Again
    }

    /// Goes on with a TLS handshake; None when it is complete.
    fn handshake(&mut self, connection: &mut Connection<S>, own: &Ownership) -> Option<Verdict> {
        connection.is_queued_for_handshake = false;
        // A signature may take milliseconds; the loop need not wait for it.
        if !own.beat() {
            return Some(Verdict::Again);
        }
        let Connection { stream: Stream::Tls(stream), client, .. } = connection else {
            return None;
        };
        match stream.handshake() {
            Ok(true) => {
                self.service.secured(client, stream.certificate());
                // What came with the end of the handshake is reported by no poller.
                connection.is_readable = true;
                connection.is_writable = true;
                None
            }
            Ok(false) => Some(Verdict::Keep),
            Err(error) => {
                self.service.handshake_failed(client, &error);
                Some(Verdict::Close)
            }
        }
    }

    fn read_and_run(&mut self, connection: &mut Connection<S>, own: &Ownership) -> Verdict {
        if !connection.input.bytes.is_empty() || !self.service.may_run(&connection.client) {
            return self.read_more(connection, own);
        }
        let mut buffer = std::mem::take(&mut self.read_buffer);
        let verdict = match connection.stream.read(&mut buffer) {
            Ok(0) => at_end(connection),
            Ok(count) => {
                self.received(connection, count, buffer.len());
                self.run_bytes(connection, &buffer[..count], own)
            }
            Err(error) => read_failed(connection, error.kind()),
        };
        self.read_buffer = buffer;
        verdict
    }

    /// Reads behind input that is there already: a large argument, or a client that waits.
    fn read_more(&mut self, connection: &mut Connection<S>, own: &Ownership) -> Verdict {
        let waits = !self.service.may_run(&connection.client);
        let Connection { stream, input, backlog, .. } = connection;
        debug_assert!(waits || backlog.is_none(), "the backlog of a client that may run is run");
        // Together they were too much to be read ahead.
        let is_much = waits || input.long.is_some();
        let have = if is_much { AHEAD_BYTES_MAX } else { input.bytes.len() };
        let result = match backlog {
            Some(backlog) => backlog.read(stream, &mut self.read_buffer),
            None => input.read(stream, &mut self.read_buffer),
        };
        match result {
            Ok((0, _)) => return at_end(connection),
            Ok((count, room)) => self.received(connection, count, room),
            Err(error) => return read_failed(connection, error.kind()),
        }
        connection.last_read_bytes += have;
        if !self.service.may_hold_input(&connection.client, connection.input_bytes()) {
            return Verdict::Close;
        }
        if waits {
            let limits = self.service.limits(&connection.client);
            connection.begin_backlog().scan(&limits);
            return Verdict::Keep;
        }
        if connection.input.long.is_some() {
            return Verdict::Keep;
        }
        self.run_input(connection, own)
    }

    /// `count` bytes came where there was room for `room`.
    pub(super) fn received(&mut self, connection: &mut Connection<S>, count: usize, room: usize) {
        connection.is_readable =
            count == room || connection.may_have_ended || connection.stream.has_more();
        connection.last_read_bytes = count;
        self.service.received(&mut self.worker, &mut connection.client, count);
    }

    /// Writes what the socket takes, and tells the service. False if the connection is broken.
    fn flush(&mut self, connection: &mut Connection<S>) -> bool {
        let before = connection.output_bytes();
        if before == 0 {
            return connection.stream.unsent_bytes() == 0 || flush(connection);
        }
        self.service.before_send(&mut connection.client, &mut connection.output);
        let is_sound = flush(connection);
        let sent = before - connection.output_bytes();
        self.service.sent(&mut self.worker, &mut connection.client, sent);
        is_sound
    }

    /// Runs input that has waited, a segment of it at a time: then the other connections get their
    /// turns.
    fn run_waiting(&mut self, connection: &mut Connection<S>, own: &Ownership) -> Verdict {
        if connection.input.bytes.is_empty()
            && let Some(backlog) = &mut connection.backlog
        {
            match backlog.next(&self.service.limits(&connection.client)) {
                Next::Whole(input) => connection.input = input,
                Next::Last(input) => {
                    connection.input = input;
                    connection.backlog = None;
                }
                Next::Refused(error) => {
                    refuse(connection, error);
                    return Verdict::Keep;
                }
            }
        }
        if connection.input.long.is_some() {
            return Verdict::Keep;
        }
        let verdict = self.run_input(connection, own);
        if verdict == Verdict::Keep
            && connection.backlog.is_some()
            && self.service.may_run(&connection.client)
        {
            return Verdict::Again;
        }
        verdict
    }

    /// Runs what is complete of a connection's own input and keeps the rest.
    fn run_input(&mut self, connection: &mut Connection<S>, own: &Ownership) -> Verdict {
        let mut bytes = std::mem::take(&mut connection.input.bytes);
        let (verdict, consumed) = self.run_commands(connection, &bytes, own);
        if consumed < bytes.len() {
            bytes.drain(..consumed);
            if let Some(part) = connection.input.begin_long(&bytes) {
                bytes.drain(part);
            }
            let kept_max = INPUT_KEPT_BYTES_MAX.max(2 * bytes.len());
            shrink_beyond(&mut bytes, kept_max);
            connection.input.bytes = bytes;
        } else if bytes.capacity() <= AHEAD_BYTES_MAX && self.inputs.len() < AHEAD_MAX {
            bytes.clear();
            self.inputs.push(bytes);
        }
        verdict
    }

    /// The same for bytes in the thread's buffer: the rest moves to the connection.
    fn run_bytes(
        &mut self,
        connection: &mut Connection<S>,
        bytes: &[u8],
        own: &Ownership,
    ) -> Verdict {
        let (verdict, consumed) = self.run_commands(connection, bytes, own);
        let mut bytes = &bytes[consumed..];
        let input = &mut connection.input;
        if let Some(long) = input.begin_long(bytes) {
            input.bytes.extend_from_slice(&bytes[..long.start]);
            bytes = &bytes[long.end..];
        }
        input.bytes.extend_from_slice(bytes);
        verdict
    }

    /// Runs the complete commands of `bytes`; how many bytes of them are done with.
    fn run_commands(
        &mut self,
        connection: &mut Connection<S>,
        bytes: &[u8],
        own: &Ownership,
    ) -> (Verdict, usize) {
        let mut done = 0;
        self.service.begin_turn(&mut self.worker, &mut connection.client);
        let mut is_parsed = std::mem::take(&mut connection.is_parsed);
        let verdict = loop {
            let rest = &bytes[done..];
            if !std::mem::take(&mut is_parsed) {
                let limits = self.service.limits(&connection.client);
                let batch = &mut connection.input.batch;
                if let Err(error) = batch.parse_batch(rest, &limits, BATCH_COMMANDS_MAX) {
                    refuse(connection, error);
                    done = bytes.len();
                    break Verdict::Keep;
                }
            }
            if connection.input.batch.is_empty() {
                done += connection.input.batch.consumed();
                break Verdict::Keep;
            }
            let (ran, stop) = self.run_batch(connection, rest, own);
            connection.input.batch.truncate(ran);
            done += connection.input.batch.consumed();
            if let Some(verdict) = stop {
                break verdict;
            }
        };
        connection.input.batch.shrink();
        self.service.end_turn(&mut self.worker, &mut connection.client);
        (verdict, done)
    }

    /// Runs parsed commands until one must wait; how many are done with, and why it stopped.
    fn run_batch(
        &mut self,
        connection: &mut Connection<S>,
        bytes: &[u8],
        own: &Ownership,
    ) -> (usize, Option<Verdict>) {
        if !own.beat() {
            return (0, Some(Verdict::Again));
        }
        let Connection { client, output, input: Input { batch, .. }, .. } = connection;
        let mut at = 0;
        let is_full = batch.len() == BATCH_COMMANDS_MAX;
        while at < batch.len() {
            // Of a full batch even the last may be the begin of a transaction.
            if at + 1 < batch.len() || (is_full && at > 0) {
                let commands = batch.commands(at, bytes);
                let ran = self.service.run_batch(&mut self.worker, client, commands, output);
                at += ran.count;
                if ran.count > 0 && self.service.is_closing(client) {
                    return (at, Some(Verdict::Keep));
                }
                if ran.is_cut && is_full && at > 0 {
                    // The rest is parsed again, with what follows it.
                    return (at, None);
                }
                if ran.count > 0 {
                    continue;
                }
            }
            let args = batch.command(at, bytes);
            match self.service.run(&mut self.worker, client, args, output) {
                Progress::Done => {}
                Progress::Busy => return (at, Some(Verdict::Keep)),
                Progress::Blocked => return (at + 1, Some(Verdict::Keep)),
            }
            at += 1;
            if self.service.is_closing(client) {
                return (at, Some(Verdict::Keep));
            }
        }
        (batch.len(), None)
    }

    /// A second has passed, or the client's time is over.
    pub fn tick(&mut self, connection: &mut Connection<S>) -> Verdict {
        if matches!(&connection.stream, Stream::Tls(stream) if stream.is_overdue()) {
            let error = io::Error::from(ErrorKind::TimedOut);
            self.service.handshake_failed(&connection.client, &error);
            return Verdict::Close;
        }
        connection.output.recount_shared();
        let buffers = connection.buffers();
        let Connection { client, output, .. } = connection;
        match self.service.tick(&mut self.worker, client, buffers, output) {
            After::Continue => Verdict::Again,
            After::Wait if self.flush(connection) => Verdict::Keep,
            After::Wait => {
                connection.set_broken();
                Verdict::Again
            }
            After::Close => Verdict::Close,
        }
    }
}

/// Answers a protocol error. Nothing behind it can be read; what was asked before is still
/// answered.
fn refuse<S: Service>(connection: &mut Connection<S>, error: ProtocolError) {
    error.write_reply(&mut connection.output);
    connection.is_at_end = true;
    connection.input.batch = Batch::new();
    connection.backlog = None;
}

/// The other side has closed: what it asked for is done, and then the connection is over.
fn at_end<S: Service>(connection: &mut Connection<S>) -> Verdict {
    connection.is_readable = false;
    connection.is_at_end = true;
    Verdict::Keep
}

fn read_failed<S: Service>(connection: &mut Connection<S>, kind: ErrorKind) -> Verdict {
    match kind {
        ErrorKind::WouldBlock => {
            connection.is_readable = false;
            connection.may_have_ended = false;
            Verdict::Keep
        }
        ErrorKind::Interrupted => Verdict::Keep,
        _ => {
            connection.set_broken();
            Verdict::Keep
        }
    }
}
