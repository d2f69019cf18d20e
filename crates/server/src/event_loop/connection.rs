//! One connection: its socket, what came in and is not run yet, what is to go out.

use super::backlog::Backlog;
use super::input::Input;
use super::stream::Stream;
use super::{Buffers, Service};
use russet_commands::call::mail::Letter;
use russet_protocol::Output;
use std::collections::VecDeque;

pub struct Connection<S: Service> {
    pub slot: usize,
    pub generation: u64,
    pub stream: Stream,
    pub client: S::Client,
    /// Input that was not run yet. Empty for an idle connection: reading goes through a buffer of
    /// the thread.
    pub input: Input,
    /// What came behind that while the client waits. The input is whole as long as there is any.
    pub backlog: Option<Box<Backlog>>,
    /// The batch of the input holds the first commands of the input: they were parsed ahead.
    pub is_parsed: bool,
    /// How much came at once, the last time.
    pub last_read_bytes: usize,
    /// Output that the socket did not take yet.
    pub output: Output,
    pub is_readable: bool,
    pub is_writable: bool,
    /// The other side may have closed behind what it sent, which is reported only once: reading
    /// goes on until the socket says that there is no more.
    pub may_have_ended: bool,
    /// The other side will send no more.
    pub is_at_end: bool,
    /// It takes no more, either: what it has sent is still carried out, and answered to nobody.
    pub is_broken: bool,
    /// It waits for its loop to go on with its handshake.
    pub is_queued_for_handshake: bool,
    /// The deadline that the loop's timers hold for it.
    pub timer_ms: Option<i64>,
    pub letters: VecDeque<Letter>,
}

impl<S: Service> Connection<S> {
    /// The socket has failed.
    pub fn set_broken(&mut self) {
        self.is_broken = true;
        self.is_at_end = true;
        self.is_readable = false;
        self.output.advance(self.output.unsent_bytes());
        if let Stream::Tls(stream) = &mut self.stream {
            stream.forget_unsent();
        }
    }

    /// Output that its stream has not taken yet.
    pub fn output_bytes(&self) -> usize {
        self.output.unsent_bytes()
    }

    /// Whether it may hold complete commands: not while its input breaks off in a long argument.
    pub fn has_input_to_run(&self) -> bool {
        (!self.input.bytes.is_empty() || self.backlog.is_some()) && self.input.long.is_none()
    }

    /// Input that was not run yet, long arguments included.
    pub fn input_bytes(&self) -> usize {
        self.input.len_bytes() + self.backlog.as_ref().map_or(0, |backlog| backlog.len_bytes())
    }

    /// For a client that waits, from its first read on: what came becomes its backlog, which goes
    /// on where the parser stopped. Only a command that must stay found is not part of it.
    pub fn begin_backlog(&mut self) -> &mut Backlog {
        let Connection { input, backlog, is_parsed, .. } = self;
        backlog.get_or_insert_with(|| {
            if std::mem::take(is_parsed) {
                input.batch.truncate(0);
            }
            let under_way = match input.batch.kept_end() {
                0 => std::mem::take(input),
                end => Input::of_bytes(input.bytes.split_off(end)),
            };
            Box::new(Backlog::new(under_way))
        })
    }

    /// What it holds between turns. A buffer with nothing in it goes back to the thread.
    pub fn buffers(&self) -> Buffers {
        let encrypted_bytes = self.stream.unsent_bytes();
        let output_bytes = self.output_bytes();
        let output_capacity_bytes = if output_bytes == 0 { 0 } else { self.output.capacity() };
        Buffers {
            input_bytes: self.input_bytes(),
            input_capacity_bytes: self.input.capacity_bytes()
                + self.backlog.as_ref().map_or(0, |backlog| backlog.capacity_bytes()),
            output_bytes: output_bytes + encrypted_bytes,
            output_capacity_bytes: output_capacity_bytes + encrypted_bytes,
        }
    }
}
