//! One connection: its socket, what came in and is not run yet, what is to go out.

use super::input::LongInput;
use super::stream::Stream;
use super::{Buffers, Service};
use russet_commands::call::mail::Letter;
use russet_protocol::{Batch, Output};
use std::collections::VecDeque;

pub struct Connection<S: Service> {
    pub slot: usize,
    pub generation: u64,
    pub stream: Stream,
    pub client: S::Client,
    /// Input that was not run yet. Empty for an idle connection: reading goes through a buffer of
    /// the thread.
    pub input: Vec<u8>,
    /// The long argument that the input breaks off in.
    pub long_input: Option<Box<LongInput>>,
    pub batch: Batch,
    /// The batch holds the first commands of the input: they were parsed ahead.
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

    /// Whether its input may hold complete commands: not while it breaks off in a long argument.
    pub fn has_input_to_run(&self) -> bool {
        !self.input.is_empty() && self.long_input.is_none()
    }

    /// Input that was not run yet, long arguments included.
    pub fn input_bytes(&self) -> usize {
        let long_bytes = self.long_input.as_ref().map_or(0, |long| long.filled_bytes());
        self.input.len() + long_bytes + self.batch.supplied_bytes()
    }

    /// What it holds between turns. A buffer with nothing in it goes back to the thread.
    pub fn buffers(&self) -> Buffers {
        let encrypted_bytes = self.stream.unsent_bytes();
        let output_bytes = self.output_bytes();
        let output_capacity_bytes = if output_bytes == 0 { 0 } else { self.output.capacity() };
        Buffers {
            input_bytes: self.input_bytes(),
            input_capacity_bytes: self.input.capacity()
                + self.long_input.as_ref().map_or(0, |long| long.taken_bytes())
                + self.batch.supplied_bytes(),
            output_bytes: output_bytes + encrypted_bytes,
            output_capacity_bytes: output_capacity_bytes + encrypted_bytes,
        }
    }
}
